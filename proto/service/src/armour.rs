//! Armours small binary values as one line of text: what it is, the suite, hex, a checksum.
//!
//! ```text
//! QUIVER-TOKEN QUIVER-AINQ-RISTRETTO255-SHA512-v1 0a1b2c… 89abcdef
//! ```
//! Tokens and keys travel by hand, so a wrong, cut or mistyped file is named as such.

use std::path::Path;

use quiver_ainq::{Ristretto255, Suite as _};
use quiver_crypto::Hasher;
use zeroize::Zeroizing;

use crate::{Error, Result, private_file, suite};

/// UTF-8 of U+FEFF.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The longest line, in bytes: an attribute key in hex, with the statement about its authority.
const LIMIT: u64 = 2 * 1024 * 1024;

/// Content of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArmourKind {
    /// An issued token with its secret.
    Token,
    /// An operator's secret key.
    OperatorSecretKey,
    /// An operator's secret key, encrypted ([`operator_key`](crate::operator_key)).
    EncryptedOperatorKey,
    /// An operator's public key.
    OperatorPublicKey,
    /// The KGC's statement about an attribute authority.
    AttributeAuthority,
    /// An attribute key, with the statement about its authority.
    AttributeKey,
    /// The statement about the master key of encryption to conditions.
    IbeAuthority,
    /// A policy of admission that the KGC signed.
    AdmissionPolicy,
}

impl ArmourKind {
    const ALL: [Self; 8] = [
        Self::Token,
        Self::OperatorSecretKey,
        Self::EncryptedOperatorKey,
        Self::OperatorPublicKey,
        Self::AttributeAuthority,
        Self::AttributeKey,
        Self::IbeAuthority,
        Self::AdmissionPolicy,
    ];

    /// First word of such a line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Token => "QUIVER-TOKEN",
            Self::OperatorSecretKey => "QUIVER-OPERATOR-SECRET-KEY",
            Self::EncryptedOperatorKey => "QUIVER-OPERATOR-ENCRYPTED-KEY",
            Self::OperatorPublicKey => "QUIVER-OPERATOR-PUBLIC-KEY",
            Self::AttributeAuthority => "QUIVER-ATTRIBUTE-AUTHORITY",
            Self::AttributeKey => "QUIVER-ATTRIBUTE-KEY",
            Self::IbeAuthority => "QUIVER-IBE-AUTHORITY",
            Self::AdmissionPolicy => "QUIVER-ABKE-POLICY",
        }
    }

    /// Name of the kind, in words.
    fn noun(self) -> &'static str {
        match self {
            Self::Token => "a token",
            Self::OperatorSecretKey => "the operator's secret key",
            Self::EncryptedOperatorKey => "the operator's secret key, encrypted",
            Self::OperatorPublicKey => "the operator's public key",
            Self::AttributeAuthority => "the public file of an attribute authority",
            Self::AttributeKey => "an attribute key",
            Self::IbeAuthority => "the public file of the master key of conditions",
            Self::AdmissionPolicy => "a signed policy of admission",
        }
    }

    /// Error for a file of another kind, or of none.
    fn told_apart(self, found: Option<&str>) -> String {
        let wanted = match self {
            Self::OperatorSecretKey | Self::EncryptedOperatorKey => {
                "the operator's secret key (operator.key)"
            }
            Self::OperatorPublicKey => "the operator's public key (operator.pub)",
            other => other.noun(),
        };
        match found {
            Some(found) => format!("this is {found}; give {wanted}"),
            None => format!("this is not {}", self.noun()),
        }
    }

    /// Returns true if such a line must stay between its owner and the file system.
    fn secret(self) -> bool {
        !matches!(
            self,
            Self::OperatorPublicKey | Self::AttributeAuthority | Self::IbeAuthority | Self::AdmissionPolicy
        )
    }
}

/// The text without the byte order mark that some editors put before it.
fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// Kind of a line, by its first word.
#[must_use]
pub fn kind(text: &[u8]) -> Option<ArmourKind> {
    let first = without_mark(text).trim_ascii_start().split(u8::is_ascii_whitespace).next()?;
    ArmourKind::ALL.into_iter().find(|kind| first == kind.word().as_bytes())
}

/// Kind of a line that holds a secret, in words; `None` for any other text.
pub(crate) fn secret_kind(text: &[u8]) -> Option<&'static str> {
    kind(text).filter(|kind| kind.secret()).map(ArmourKind::noun)
}

/// Writes a new file; mode 0600 if it is secret. Never overwrites.
pub fn write_new(path: &Path, kind: ArmourKind, bytes: &[u8]) -> Result<()> {
    let line = encode(kind, bytes);
    if kind.secret() {
        private_file::write_new(path, &line)
    } else {
        private_file::write_new_public(path, &line)
    }
}

fn encode(kind: ArmourKind, bytes: &[u8]) -> Zeroizing<Vec<u8>> {
    let prefix = format!("{} {} ", kind.word(), Ristretto255::ID);
    let suffix = format!(" {}\n", checksum(kind, bytes));
    // Room for all of it from the start: a growing vector would leave copies behind.
    let mut line = Zeroizing::new(Vec::with_capacity(prefix.len() + bytes.len() * 2 + suffix.len()));
    line.extend_from_slice(prefix.as_bytes());
    let digit = |half: u8| char::from_digit(half.into(), 16).map_or(b'0', |digit| digit as u8);
    line.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
    line.extend_from_slice(suffix.as_bytes());
    line
}

/// Checksum against typing and copying errors, not against adversaries.
fn checksum(kind: ArmourKind, bytes: &[u8]) -> String {
    let hash = Hasher::new("quiver/1 armour")
        .lp(kind.word().as_bytes())
        .lp(Ristretto255::ID.as_bytes())
        .lp(bytes)
        .finish();
    hex::encode(hash.first_chunk::<4>().copied().unwrap_or_default())
}

/// Reads a file; one that holds a secret must be for its owner alone.
///
/// # Errors
/// [`Error::Garbled`] saying what is wrong, [`Error::NoFile`], [`Error::NotAFile`], [`Error::TooOpen`],
/// [`Error::Io`].
pub fn read(path: &Path, kind: ArmourKind) -> Result<Zeroizing<Vec<u8>>> {
    let decode = |text: &[u8]| read_text(text, kind, path);
    let read = if kind.secret() {
        private_file::read_decoded(path, LIMIT, decode)
    } else {
        private_file::read_bytes(path, LIMIT).and_then(|text| decode(&text))
    };
    read.map_err(|error| private_file::of_another_kind(error, kind.noun()))
}

/// Reads a line that came otherwise than in a file; errors name its `origin` as their path.
///
/// # Errors
/// [`Error::Garbled`] saying what is wrong, [`Error::TooLarge`].
pub fn read_text(text: &[u8], kind: ArmourKind, origin: &Path) -> Result<Zeroizing<Vec<u8>>> {
    if text.len() as u64 > LIMIT {
        return Err(Error::TooLarge { path: origin.into(), limit: LIMIT });
    }
    decode(text, kind).map_err(|what| Error::Garbled { path: origin.into(), what })
}

fn decode(whole: &[u8], wanted: ArmourKind) -> std::result::Result<Zeroizing<Vec<u8>>, String> {
    let text = without_mark(whole).trim_ascii();
    if text.is_empty() {
        return Err(format!("this is not {}: the file is empty", wanted.noun()));
    }
    let mut words = text.split(|byte| byte.is_ascii_whitespace());
    if words.next().unwrap_or_default() != wanted.word().as_bytes() {
        return Err(
            wanted.told_apart(kind(text).map(ArmourKind::noun).or_else(|| private_file::secret_kind(whole)))
        );
    }
    let (Some(id), Some(digits), Some(sum), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(format!(
            "it was cut or changed: not one line of the form {} SUITE HEX CHECKSUM",
            wanted.word()
        ));
    };
    // Where a word is missing, digits of the secret stand here, which no error may repeat.
    if !id.iter().any(|byte| byte.is_ascii_alphabetic() && !byte.is_ascii_hexdigit()) {
        return Err("it was cut or changed: it names no suite".into());
    }
    suite::check(&String::from_utf8_lossy(id))?;
    let mut bytes = Zeroizing::new(vec![0; digits.len() / 2]);
    hex::decode_to_slice(digits, &mut bytes).map_err(|_| "it was cut or changed: not hex digits in pairs")?;
    if checksum(wanted, &bytes).as_bytes() != sum {
        return Err("it was cut or changed: the checksum does not fit".into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn lines_come_back_and_secrets_are_for_their_owner_alone() {
        let directory = tempfile::tempdir().expect("tempdir");
        for (kind, mode) in [
            (ArmourKind::Token, 0o600),
            (ArmourKind::OperatorSecretKey, 0o600),
            (ArmourKind::EncryptedOperatorKey, 0o600),
            (ArmourKind::OperatorPublicKey, 0o644),
            (ArmourKind::AttributeAuthority, 0o644),
            (ArmourKind::AttributeKey, 0o600),
            (ArmourKind::IbeAuthority, 0o644),
            (ArmourKind::AdmissionPolicy, 0o644),
        ] {
            let path = directory.path().join(kind.word());
            write_new(&path, kind, &[1, 2, 254]).expect("write");
            let bytes = read(&path, kind).expect("read");
            assert_eq!(bytes.as_slice(), [1, 2, 254]);
            let found = std::fs::metadata(&path).expect("metadata").permissions().mode() & 0o777;
            assert_eq!(found & !mode, 0);
            assert!(matches!(write_new(&path, kind, &[]), Err(Error::Exists { .. })));
        }
    }

    #[test]
    fn public_key_in_place_of_the_secret_one_is_named_before_its_permissions() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("operator.pub");
        write_new(&path, ArmourKind::OperatorPublicKey, &[1]).expect("write");
        let refused = read(&path, ArmourKind::OperatorSecretKey).expect_err("refused").to_string();
        let told = "this is the operator's public key; give the operator's secret key (operator.key)";
        assert!(refused.ends_with(told), "{refused}");
    }

    #[test]
    fn byte_order_mark_before_a_line_changes_nothing() {
        let line = encode(ArmourKind::Token, &[1, 2]);
        let marked = [BYTE_ORDER_MARK, &line].concat();
        assert_eq!(*decode(&marked, ArmourKind::Token).expect("a token"), [1, 2]);
        assert_eq!(secret_kind(&marked), Some("a token"), "no error may show it");
    }

    #[test]
    fn wrong_and_garbled_lines_are_told_apart() {
        let reason = |text: &str| decode(text.as_bytes(), ArmourKind::Token).expect_err("refused");
        for empty in ["", "\n", "\u{feff}\r\n"] {
            assert_eq!(reason(empty), "this is not a token: the file is empty");
        }
        let operator = encode(ArmourKind::OperatorSecretKey, &[1, 2]);
        let operator = String::from_utf8_lossy(&operator).into_owned();
        assert_eq!(reason(&operator), "this is the operator's secret key; give a token");
        let public = decode(operator.as_bytes(), ArmourKind::OperatorPublicKey).expect_err("refused");
        assert_eq!(
            public,
            "this is the operator's secret key; give the operator's public key (operator.pub)"
        );
        let suite_left_out = reason("QUIVER-TOKEN 00c0ffee 00 00");
        assert!(!suite_left_out.contains("c0ffee"), "no digit of a secret in an error: {suite_left_out}");
        assert!(reason("QUIVER-TOKEN NO-SUCH-SUITE 00 00").contains("NO-SUCH-SUITE"));
        let good = String::from_utf8_lossy(&encode(ArmourKind::Token, &[1, 2])).into_owned();
        decode(good.as_bytes(), ArmourKind::Token).expect("good");
        for length in "QUIVER-TOKEN".len()..good.trim_end().len() {
            let reason = reason(&good[..length]);
            assert!(reason.contains("cut or changed") || reason.contains("unknown"), "{reason}");
        }
        assert!(reason(&good.replace("0102", "0112")).contains("checksum"));
        assert!(reason(&good.replace("0102", "01z2")).contains("cut or changed"));
    }
}
