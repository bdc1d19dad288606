//! Secrets that open a state file: a passphrase (stretched with Argon2id, once per start) or a key file.
//!
//! Never a flag's value: other users see command lines. Never logged, never in an error.

use std::env;
use std::fmt;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use argon2::{Algorithm, Argon2, Params, Version};
use clap::Args;
use quiver_crypto::Secret;
use zeroize::{Zeroize, Zeroizing};

use crate::arguments::GLOBAL;
use crate::armour::BYTE_ORDER_MARK;
use crate::{Error, Result, private_file, state_file};

/// The environment variable that may hold the passphrase.
pub const PASSPHRASE_VARIABLE: &str = "QUIVER_PASSPHRASE";
/// The longest passphrase or key file, in bytes.
const LIMIT: u64 = 4096;

/// The flags that say where the passphrase or key is.
#[derive(Args, Clone, Debug, Default)]
pub struct ProtectionArgs {
    /// File whose first line is the passphrase of the state file (mode 0600)
    ///
    /// Without this flag and --key-file: the variable QUIVER_PASSPHRASE, or a prompt if there is a terminal
    #[arg(long, value_name = "FILE", global = true, help_heading = GLOBAL, conflicts_with = "key_file")]
    pub passphrase_file: Option<PathBuf>,

    /// File with a key of 64 hex digits (mode 0600) instead of a passphrase
    ///
    /// Make one with: (umask 077; openssl rand -hex 32 > FILE)
    #[arg(long, value_name = "FILE", global = true, hide_short_help = true, help_heading = GLOBAL)]
    pub key_file: Option<PathBuf>,
}

impl ProtectionArgs {
    /// Returns true if a passphrase or key is given, so that nobody need be asked for one.
    #[must_use]
    pub fn is_given(&self) -> bool {
        let file = self.key_file.is_some() || self.passphrase_file.is_some();
        file || env::var_os(PASSPHRASE_VARIABLE).is_some()
    }

    /// Finds the passphrase or key: flag before environment before prompt. With `new` the prompt asks twice.
    pub fn obtain(&self, new: bool) -> Result<Protection> {
        // The parser does not see it if one stands before the subcommand and the other behind it.
        if let (Some(origin), Some(_)) = (&self.passphrase_file, &self.key_file) {
            let reason = "--key-file is given as well: give one of them".into();
            return Err(Error::BadProtection { origin: origin.display().to_string(), reason });
        }
        if let Some(path) = &self.key_file {
            return read(path, Protection::from_key_text);
        }
        if let Some(path) = &self.passphrase_file {
            return read(path, Protection::from_passphrase_text);
        }
        if let Some(value) = env::var_os(PASSPHRASE_VARIABLE) {
            let text = Zeroizing::new(value.into_encoded_bytes());
            return Protection::from_passphrase_text(&text, PASSPHRASE_VARIABLE);
        }
        if std::io::stdin().is_terminal() { prompt(new) } else { Err(Error::NoProtection) }
    }
}

/// Reads a passphrase or key. Its errors say that the file is to open the state file.
fn read(path: &Path, decode: impl FnOnce(&[u8], &str) -> Result<Protection>) -> Result<Protection> {
    let origin = path.display().to_string();
    let read = private_file::read_decoded(path, LIMIT, |text| decode(text, &origin));
    read.map_err(|error| match error {
        Error::NoFile { .. } => {
            Error::BadProtection { origin, reason: "there is no such file with a passphrase or key".into() }
        }
        Error::TooLarge { limit, .. } => Error::BadProtection {
            origin,
            reason: format!("this is not a file with a passphrase or key: it is longer than {limit} bytes"),
        },
        Error::NotAFile { found, .. } => Error::BadProtection {
            origin,
            reason: format!("this is {found}, not a file with a passphrase or key"),
        },
        error => error,
    })
}

/// Names the secret that was given in the place of a passphrase. Content that can be meant as a passphrase
/// passes: digits, and bytes that are no text.
fn misplaced(text: &[u8]) -> Option<&'static str> {
    let is_text =
        std::str::from_utf8(text).is_ok_and(|text| !text.trim().bytes().all(|byte| byte.is_ascii_hexdigit()));
    private_file::secret_kind(text).filter(|_| is_text || text.starts_with(state_file::MAGIC))
}

fn prompt(new: bool) -> Result<Protection> {
    let ask = |question: &str| {
        rpassword::prompt_password(question)
            .map(Zeroizing::new)
            .map_err(|error| Error::BadProtection { origin: "terminal".into(), reason: error.to_string() })
    };
    let first = ask(if new { "Choose a passphrase: " } else { "Passphrase: " })?;
    if new && *ask("Repeat the passphrase: ")? != *first {
        let reason = "the passphrases do not match; nothing was written".into();
        return Err(Error::BadProtection { origin: "terminal".into(), reason });
    }
    Protection::from_passphrase_text(first.as_bytes(), "terminal")
}

/// The secret that opens a state file. Zeroised on drop, redacted in `Debug`.
pub enum Protection {
    /// A passphrase; the key is derived with Argon2id.
    Passphrase(Zeroizing<Vec<u8>>),
    /// A key of 32 bytes.
    Key(Secret<32>),
}

impl fmt::Debug for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Protection({})", self.describe())
    }
}

impl Protection {
    /// A passphrase: the first line, without its end. Empty ones and text after the first line are refused.
    pub fn from_passphrase_text(text: &[u8], origin: &str) -> Result<Self> {
        let line = text.strip_suffix(b"\n").unwrap_or(text);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let refuse =
            |reason: &str| Err(Error::BadProtection { origin: origin.into(), reason: reason.into() });
        if text.starts_with(BYTE_ORDER_MARK) {
            return refuse(
                "it begins with a byte order mark (U+FEFF), which an editor put there: save it without one",
            );
        }
        if line.is_empty() {
            return refuse("the passphrase is empty");
        }
        if let Some(found) = misplaced(text) {
            return refuse(&format!("this is {found}, not a file with a passphrase"));
        }
        if line.contains(&b'\n') {
            return refuse("more than one line; the passphrase is one line");
        }
        Ok(Self::Passphrase(Zeroizing::new(line.to_vec())))
    }

    /// A key: 64 hex digits, white space around them ignored.
    pub fn from_key_text(text: &[u8], origin: &str) -> Result<Self> {
        let mut key = [0; 32];
        let decoded = hex::decode_to_slice(text.trim_ascii(), &mut key);
        let secret = Secret::new(key);
        key.zeroize();
        match decoded {
            Ok(()) => Ok(Self::Key(secret)),
            Err(_) => {
                let found = private_file::secret_kind(text);
                let found = found.map_or_else(String::new, |found| format!("this is {found}, "));
                let reason = format!("{found}not a key of 64 hex digits");
                Err(Error::BadProtection { origin: origin.into(), reason })
            }
        }
    }

    /// Names the protection, in words.
    pub fn describe(&self) -> &'static str {
        match self {
            Self::Passphrase(_) => "passphrase",
            Self::Key(_) => "key file",
        }
    }
}

/// Parameters of stretching a passphrase; written in the header of the state file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stretching {
    /// Memory in KiB.
    pub(crate) memory: u32,
    /// Passes.
    pub(crate) passes: u32,
    /// Lanes.
    pub(crate) lanes: u32,
    /// Salt.
    pub(crate) salt: [u8; 16],
}

impl Stretching {
    /// RFC 9106's second recommended choice: 64 MiB, three passes, four lanes.
    pub(crate) fn recommended(salt: [u8; 16]) -> Self {
        Self { memory: 64 * 1024, passes: 3, lanes: 4, salt }
    }

    /// Returns true if the parameters of a file are within reason: a file must not be able to demand all
    /// memory.
    pub(crate) fn within_reason(&self) -> bool {
        (8 * 1024..=1024 * 1024).contains(&self.memory)
            && (1..=16).contains(&self.passes)
            && (1..=16).contains(&self.lanes)
    }

    /// The key, or nothing if the parameters do not fit together.
    pub(crate) fn stretch(&self, passphrase: &[u8]) -> Option<Secret<32>> {
        let params = Params::new(self.memory, self.passes, self.lanes, Some(32)).ok()?;
        let mut key = [0; 32];
        let done = Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(passphrase, &self.salt, &mut key);
        let secret = Secret::new(key);
        key.zeroize();
        done.ok().map(|()| secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(result: Result<Protection>) -> String {
        result.expect_err("must be refused").to_string()
    }

    #[test]
    fn passphrase_is_one_line_without_its_end() {
        for text in ["hunter2", "hunter2\n", "hunter2\r\n"] {
            let Ok(Protection::Passphrase(found)) = Protection::from_passphrase_text(text.as_bytes(), "f")
            else {
                panic!("refused {text:?}");
            };
            assert_eq!(found.as_slice(), b"hunter2");
        }
    }

    #[test]
    fn unusable_passphrases_are_refused_without_repeating_them() {
        assert!(reason(Protection::from_passphrase_text(b"\n", "f")).contains("empty"));
        let two_lines = reason(Protection::from_passphrase_text(b"hunter2\nhunter3\n", "f"));
        assert!(two_lines.contains("one line") && !two_lines.contains("hunter"));
    }

    #[test]
    fn file_that_is_none_is_told_without_advice_to_change_it() {
        let with = |args: ProtectionArgs| reason(args.obtain(false));
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().to_path_buf();
        let told = with(ProtectionArgs { passphrase_file: Some(path.clone()), key_file: None });
        assert!(told.contains("this is a directory") && !told.contains("chmod"), "{told}");
        let missing = path.join("missing");
        let told = with(ProtectionArgs { passphrase_file: None, key_file: Some(missing) });
        assert!(told.contains("missing: there is no such file"), "{told}");
        let both = ProtectionArgs { passphrase_file: Some(path.join("a")), key_file: Some(path.join("b")) };
        assert!(with(both).contains("give one of them"));
        // Not a key, whoever may read it.
        let text = path.join("text");
        std::fs::write(&text, "root:x:0\nbin:x:1\n").expect("write");
        for args in [
            ProtectionArgs { passphrase_file: Some(text.clone()), key_file: None },
            ProtectionArgs { passphrase_file: None, key_file: Some(text) },
        ] {
            let told = with(args);
            assert!(!told.contains("chmod"), "{told}");
        }
    }

    #[test]
    fn key_is_64_hex_digits() {
        let text = "0f".repeat(32) + "\n";
        let Ok(Protection::Key(key)) = Protection::from_key_text(text.as_bytes(), "f") else {
            panic!("refused");
        };
        assert_eq!(key.expose(), &[0x0f; 32]);
        for bad in ["", "0f", &"0f".repeat(33), &"zz".repeat(32)] {
            assert!(reason(Protection::from_key_text(bad.as_bytes(), "f")).contains("64 hex digits"));
        }
    }

    #[test]
    fn debug_shows_no_secret() {
        let protection = Protection::from_passphrase_text(b"hunter2", "f").expect("good");
        assert_eq!(format!("{protection:?}"), "Protection(passphrase)");
    }

    #[test]
    fn stretching_depends_on_passphrase_and_salt() {
        let cheap = |salt| Stretching { memory: 64, passes: 1, lanes: 1, salt };
        let key = |salt, passphrase: &[u8]| *cheap(salt).stretch(passphrase).expect("stretch").expose();
        assert_eq!(key([1; 16], b"a"), key([1; 16], b"a"));
        assert_ne!(key([1; 16], b"a"), key([2; 16], b"a"));
        assert_ne!(key([1; 16], b"a"), key([1; 16], b"b"));
    }
}
