//! Options that a drone within another program is opened with.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use quiver_ainq::Name;
use quiver_service::config::{Layers, ServiceSettings};
use quiver_service::drone::feature::settings;
use quiver_service::drone::{DroneProgram as _, DroneSettings, Error as DroneError};
use quiver_service::secrets::{Protection, ProtectionArgs};
use zeroize::Zeroizing;

use super::{Error, ErrorKind, Result};
use crate::config::{Config, EdgeSettings};

/// The longest token given as text, and the longest passphrase, in bytes.
const MAX_SECRET: usize = 4096;

/// Options of a drone: those of `edge run`. No variable and no other file is read.
#[derive(Debug)]
pub struct Options {
    /// Directory of the drone's state; made at the first start, mode 0700.
    pub data_dir: PathBuf,
    /// Secret that opens the state file.
    pub unlock: Unlock,
    /// The public deployment file; needed at the first start, then a copy is kept in the data directory.
    pub deployment: Option<PathBuf>,
    /// The token to enrol with; needed at the first start.
    pub token: Option<Token>,
    /// The group to join; default: the one joined before, or the only one in the token.
    pub group: Option<String>,
    /// Multiaddresses of the group's leader and its deputies; at least one.
    pub leaders: Vec<String>,
    /// Multiaddresses of KGCs, in place of those in the deployment file.
    pub kgcs: Vec<String>,
    /// Time that enrolling may take.
    pub enrol_timeout: Duration,
}

/// Secret that opens the state file.
pub enum Unlock {
    /// A passphrase.
    Passphrase(Zeroizing<Vec<u8>>),
    /// A file with a key of 64 hex digits, mode 0600.
    KeyFile(PathBuf),
}

/// A token.
pub enum Token {
    /// The file that `kgc token issue` wrote, mode 0600.
    File(PathBuf),
    /// Text of the token.
    Text(Zeroizing<Vec<u8>>),
}

/// The settings of the service, what opens its state file, and the token if it was given as text.
pub(super) type StartSettings = (Config, Unlock, Option<Zeroizing<Vec<u8>>>);

impl Options {
    /// Options of a drone in this directory that has enrolled before.
    pub fn new(data_dir: impl Into<PathBuf>, unlock: Unlock) -> Self {
        Self {
            data_dir: data_dir.into(),
            unlock,
            deployment: None,
            token: None,
            group: None,
            leaders: Vec::new(),
            kgcs: Vec::new(),
            enrol_timeout: EdgeSettings::default().enrol_timeout,
        }
    }

    /// Checks what can be checked without the files.
    pub(super) fn into_parts(self) -> Result<StartSettings> {
        let usage = |text: String| Err(Error::new(ErrorKind::Usage, text));
        if self.leaders.is_empty() {
            return usage("no address of a leader: `leaders` is empty".into());
        }
        if let Some(group) = &self.group
            && let Err(error) = Name::new(group)
        {
            return usage(format!("`group`: {group}: {error}"));
        }
        let (token, text) = match self.token {
            Some(Token::File(path)) => (Some(path), None),
            Some(Token::Text(text)) if text.len() > MAX_SECRET => {
                return usage(format!("the token given has {} bytes, more than {MAX_SECRET}", text.len()));
            }
            Some(Token::Text(text)) => (None, Some(text)),
            None => (None, None),
        };
        let drone = DroneSettings {
            service: ServiceSettings { data_dir: self.data_dir, ..ServiceSettings::default() },
            deployment: self.deployment,
            kgc: self.kgcs,
            token,
            ..DroneSettings::default()
        };
        let edge = EdgeSettings {
            leader: self.leaders,
            group: self.group,
            enrol_timeout: self.enrol_timeout,
            ..EdgeSettings::default()
        };
        let features = settings(Config::FEATURES, &mut Layers::empty())?;
        let config = Config { drone, edge, features };
        // Now rather than once it has enrolled.
        config.leader_addresses()?;
        Ok((config, self.unlock, text))
    }
}

impl Unlock {
    /// A passphrase; the copy is erased.
    #[must_use]
    pub fn passphrase(bytes: &[u8]) -> Self {
        Self::Passphrase(Zeroizing::new(bytes.to_vec()))
    }

    pub(super) fn obtain(&self, new: bool) -> quiver_service::Result<Protection> {
        match self {
            Self::Passphrase(bytes) if bytes.len() > MAX_SECRET => {
                let reason = format!("longer than {MAX_SECRET} bytes");
                Err(quiver_service::Error::BadProtection { origin: "passphrase".into(), reason })
            }
            Self::Passphrase(bytes) => Protection::from_passphrase_text(bytes, "passphrase"),
            Self::KeyFile(path) => {
                let given = ProtectionArgs { key_file: Some(path.clone()), ..ProtectionArgs::default() };
                given.obtain(new)
            }
        }
    }
}

impl Token {
    /// The text of a token; the copy is erased.
    #[must_use]
    pub fn text(bytes: &[u8]) -> Self {
        Self::Text(Zeroizing::new(bytes.to_vec()))
    }
}

impl fmt::Debug for Unlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passphrase(_) => f.write_str("Passphrase"),
            Self::KeyFile(path) => f.debug_tuple("KeyFile").field(path).finish(),
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Text(_) => f.write_str("Text"),
        }
    }
}

impl From<quiver_service::Error> for Error {
    fn from(error: quiver_service::Error) -> Self {
        DroneError::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: impl FnOnce(&mut Options)) -> String {
        let mut options = Options::new("nowhere", Unlock::passphrase(b"hunter2"));
        options.leaders = vec!["/ip4/127.0.0.1/tcp/7001".into()];
        change(&mut options);
        let error = options.into_parts().expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Usage);
        error.to_string()
    }

    #[test]
    fn wrong_options_are_named() {
        assert!(refusal(|options| options.leaders.clear()).contains("leaders"));
        let wrong = refusal(|options| options.leaders = vec!["10.0.0.1:0".into()]);
        assert!(wrong.contains("`leader`: 10.0.0.1:0"), "{wrong}");
        let wrong = refusal(|options| options.group = Some("no spaces".into()));
        assert!(wrong.contains("`group`: no spaces"), "{wrong}");
        let wrong = refusal(|options| options.token = Some(Token::text(&[b'x'; MAX_SECRET + 1])));
        assert!(wrong.contains("4097 bytes"), "{wrong}");
    }

    #[test]
    fn debug_shows_no_secret() {
        let mut options = Options::new("nowhere", Unlock::passphrase(b"hunter2"));
        options.token = Some(Token::text(b"QUIVER-TOKEN"));
        let shown = format!("{options:?}");
        assert!(
            !shown.contains("hunter2") && !shown.contains("104, 117") && !shown.contains("QUIVER"),
            "{shown}"
        );
    }
}
