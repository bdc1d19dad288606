//! Small binary things as one line of text that survives copying: what it is, the suite, hex.
//!
//! ```text
//! QUIVER-TOKEN QUIVER-AINQ-RISTRETTO255-SHA512-v1 0a1b2c…
//! ```
//! Tokens and operator keys travel by hand, so that a wrong or cut file is named as such.

use std::path::Path;

use zeroize::Zeroizing;

use crate::deployment_file::SuiteChoice;
use crate::{Error, Result, private_file};

/// The longest line, in bytes.
const LIMIT: u64 = 64 * 1024;

/// What a line holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An issued token with its secret.
    Token,
    /// An operator's secret key.
    OperatorSecretKey,
    /// An operator's public key.
    OperatorPublicKey,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Token, Self::OperatorSecretKey, Self::OperatorPublicKey];

    /// Its first word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Token => "QUIVER-TOKEN",
            Self::OperatorSecretKey => "QUIVER-OPERATOR-SECRET-KEY",
            Self::OperatorPublicKey => "QUIVER-OPERATOR-PUBLIC-KEY",
        }
    }

    /// Whether it must stay between its owner and the file system.
    fn secret(self) -> bool {
        self != Self::OperatorPublicKey
    }
}

/// Writes a new file; mode 0600 if it is secret. Never overwrites.
pub fn write_new(path: &Path, kind: Kind, suite: SuiteChoice, bytes: &[u8]) -> Result<()> {
    let prefix = format!("{} {} ", kind.word(), suite.id());
    let mut line = Zeroizing::new(vec![b'\n'; prefix.len() + bytes.len() * 2 + 1]);
    let (head, tail) = line.split_at_mut(prefix.len());
    head.copy_from_slice(prefix.as_bytes());
    if let Some(digits) = tail.get_mut(..bytes.len() * 2) {
        // The slice has exactly the length asked for, the only thing that can be wrong.
        let _ = hex::encode_to_slice(bytes, digits);
    }
    if kind.secret() {
        private_file::write_new(path, &line)
    } else {
        private_file::write_new_public(path, &line)
    }
}

/// Reads a file; one that holds a secret must be for its owner alone.
///
/// # Errors
/// [`Error::Garbled`] saying what is wrong, [`Error::TooOpen`], [`Error::Io`].
pub fn read(path: &Path, kind: Kind) -> Result<(SuiteChoice, Zeroizing<Vec<u8>>)> {
    let text = if kind.secret() {
        private_file::read(path, LIMIT)?
    } else {
        Zeroizing::new(private_file::read_public(path, LIMIT)?)
    };
    decode(&text, kind).map_err(|what| Error::Garbled {
        path: path.into(),
        what,
    })
}

fn decode(text: &[u8], kind: Kind) -> std::result::Result<(SuiteChoice, Zeroizing<Vec<u8>>), String> {
    let text = text.trim_ascii();
    let mut words = text.split(|byte| byte.is_ascii_whitespace());
    let (Some(first), Some(suite), Some(digits), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(format!("not one line of the form {} SUITE HEX", kind.word()));
    };
    if first != kind.word().as_bytes() {
        let found = Kind::ALL
            .into_iter()
            .find(|other| first == other.word().as_bytes());
        let found = found.map_or("something else", Kind::word);
        return Err(format!("a {} was expected, this is {found}", kind.word()));
    }
    let suite = SuiteChoice::from_id(&String::from_utf8_lossy(suite))?;
    let mut bytes = Zeroizing::new(vec![0; digits.len() / 2]);
    hex::decode_to_slice(digits, &mut bytes).map_err(|_| "it was cut or changed: not hex digits in pairs")?;
    Ok((suite, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn lines_come_back_and_secrets_are_for_their_owner_alone() {
        let directory = tempfile::tempdir().expect("tempdir");
        for (kind, mode) in [
            (Kind::Token, 0o600),
            (Kind::OperatorSecretKey, 0o600),
            (Kind::OperatorPublicKey, 0o644),
        ] {
            let path = directory.path().join(kind.word());
            write_new(&path, kind, SuiteChoice::Ristretto255, &[1, 2, 254]).expect("write");
            let (suite, bytes) = read(&path, kind).expect("read");
            assert_eq!(
                (suite, bytes.as_slice()),
                (SuiteChoice::Ristretto255, &[1, 2, 254][..])
            );
            let found = std::fs::metadata(&path).expect("metadata").permissions().mode() & 0o777;
            assert_eq!(found & !mode, 0);
            assert!(matches!(
                write_new(&path, kind, SuiteChoice::Ristretto255, &[]),
                Err(Error::Exists { .. })
            ));
        }
    }

    #[test]
    fn wrong_and_garbled_lines_are_told_apart() {
        let suite = SuiteChoice::Ristretto255.id();
        let reason = |text: &str| decode(text.as_bytes(), Kind::Token).expect_err("refused");
        assert!(reason("").contains("one line"));
        assert!(
            reason(&format!("QUIVER-OPERATOR-SECRET-KEY {suite} 00"))
                .contains("this is QUIVER-OPERATOR-SECRET")
        );
        assert!(reason(&format!("QUIVER-TOKEN {suite} 0")).contains("cut or changed"));
        assert!(reason(&format!("QUIVER-TOKEN {suite} 0g")).contains("cut or changed"));
        assert!(reason("QUIVER-TOKEN NO-SUCH-SUITE 00").contains("NO-SUCH-SUITE"));
    }
}
