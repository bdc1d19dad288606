//! The file with an operator's secret key (`operator.key`): one line of text, encrypted like a state file under a
//! passphrase or key, or, where that was asked for, as it is.
//!
//! A thief of the key lets drones of his own enrol, as many as he likes.

use std::fmt;
use std::path::Path;

use zeroize::Zeroizing;

use crate::armour::{self, ArmourKind};
use crate::secrets::Protection;
use crate::state_file::{self, Owner};
use crate::{Result, private_file};

/// The longest line, in bytes.
const LIMIT: u64 = 64 * 1024;

/// An operator's key as a file has it.
pub struct OperatorKeyFile {
    /// The encoded key.
    pub key: Zeroizing<Vec<u8>>,
    /// True if the file is encrypted.
    pub encrypted: bool,
}

impl fmt::Debug for OperatorKeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperatorKeyFile").field("encrypted", &self.encrypted).finish_non_exhaustive()
    }
}

fn owner() -> Owner {
    Owner { role: "operator".into(), deployment: String::new(), fingerprint: [0; 32] }
}

/// Writes a new file (mode 0600), encrypted unless nothing is given to encrypt it by. Never overwrites.
///
/// # Errors
/// [`Error::Exists`](crate::Error::Exists), [`Error::DiskFull`](crate::Error::DiskFull),
/// [`Error::Io`](crate::Error::Io).
pub fn write_new(path: &Path, key: &[u8], by: Option<&Protection>) -> Result<()> {
    match by {
        Some(by) => {
            let sealed = state_file::seal_once(path, &owner(), by, key)?;
            armour::write_new(path, ArmourKind::EncryptedOperatorKey, &sealed)
        }
        None => armour::write_new(path, ArmourKind::OperatorSecretKey, key),
    }
}

/// Reads a file. `obtain` gives what decrypts it, and is asked only if that is needed.
///
/// # Errors
/// Those of [`armour::read`], of `obtain`, and of a state file that does not open.
pub fn read(path: &Path, obtain: impl FnOnce() -> Result<Protection>) -> Result<OperatorKeyFile> {
    let (bytes, encrypted) = private_file::read_decoded(path, LIMIT, |text| {
        let encrypted = armour::kind(text) == Some(ArmourKind::EncryptedOperatorKey);
        let kind = if encrypted { ArmourKind::EncryptedOperatorKey } else { ArmourKind::OperatorSecretKey };
        Ok((armour::read_text(text, kind, path)?, encrypted))
    })?;
    if !encrypted {
        return Ok(OperatorKeyFile { key: bytes, encrypted });
    }
    let key = state_file::open_once(path, &owner(), &obtain()?, &bytes)?;
    Ok(OperatorKeyFile { key, encrypted })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use quiver_crypto::Secret;

    const KEY: [u8; 32] = [0x5a; 32];

    fn by(byte: u8) -> Protection {
        Protection::Key(Secret::new([byte; 32]))
    }

    #[test]
    fn encrypted_key_comes_back_under_its_own_protection_alone() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("operator.key");
        write_new(&path, &KEY, Some(&by(1))).expect("write");
        let text = std::fs::read_to_string(&path).expect("read");
        assert!(
            text.starts_with("QUIVER-OPERATOR-ENCRYPTED-KEY ") && !text.contains(&hex::encode(KEY)),
            "{text}"
        );
        let read_by = |byte| read(&path, || Ok(by(byte)));
        let found = read_by(1).expect("good");
        assert!(found.encrypted && found.key.as_slice() == KEY);
        assert!(matches!(read_by(2), Err(Error::WrongKey { .. })));
        let passphrase = || Protection::from_passphrase_text(b"hunter2", "test");
        assert!(matches!(read(&path, passphrase), Err(Error::WrongProtection { .. })));
        assert!(matches!(read(&path, || Err(Error::NoProtection)), Err(Error::NoProtection)));
        assert!(matches!(write_new(&path, &KEY, Some(&by(1))), Err(Error::Exists { .. })));
    }

    #[test]
    fn key_that_is_not_encrypted_is_read_without_asking_for_anything() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("operator.key");
        write_new(&path, &KEY, None).expect("write");
        let found = read(&path, || Err(Error::NoProtection)).expect("good");
        assert!(!found.encrypted && found.key.as_slice() == KEY);
        assert!(!format!("{found:?}").contains("90"), "no secret in Debug: {found:?}");
    }

    #[test]
    fn changed_and_cut_files_are_refused() {
        let directory = tempfile::tempdir().expect("tempdir");
        let sealed = state_file::seal_once(Path::new("x"), &owner(), &by(1), &KEY).expect("seal");
        for position in 0..sealed.len() {
            let mut bad = sealed.clone();
            bad[position] ^= 1;
            let path = directory.path().join(format!("{position}.key"));
            armour::write_new(&path, ArmourKind::EncryptedOperatorKey, &bad).expect("write");
            read(&path, || Ok(by(1))).expect_err("changed");
            let cut = directory.path().join(format!("{position}-cut.key"));
            armour::write_new(&cut, ArmourKind::EncryptedOperatorKey, &sealed[..position]).expect("write");
            read(&cut, || Ok(by(1))).expect_err("cut");
        }
    }
}
