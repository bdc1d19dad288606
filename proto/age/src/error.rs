//! Errors of age files.

use std::io;

use crate::{KEYS_LIMIT, RECIPIENTS_LIMIT};

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error. No message contains a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A text that should be a recipient or an identity is none.
    #[error("this is no {what}: {reason}")]
    Text {
        /// Name of the expected value.
        what: &'static str,
        /// The mistake.
        reason: &'static str,
    },
    /// A condition that is not spelled as conditions are, or a point that is none.
    #[error(transparent)]
    Ibe(#[from] quiver_ibe::Error),
    /// A key that was not made for this condition under this master key.
    #[error("the key given for {condition} does not fit the condition and the master public key")]
    WrongKey {
        /// The condition.
        condition: String,
    },
    /// More keys than an identity holds.
    #[error("an identity holds at most {KEYS_LIMIT} keys")]
    TooManyKeys,
    /// There is no recipient.
    #[error("no condition to encrypt to")]
    NoRecipients,
    /// More recipients than a header has room for.
    #[error("a file is encrypted to at most {RECIPIENTS_LIMIT} conditions")]
    TooManyRecipients,
    /// A line of an identity file is no identity. The line itself is not repeated: it may be a secret.
    #[error("line {line} is no identity of Quiver: {reason}")]
    IdentityLine {
        /// The line, from 1.
        line: usize,
        /// The mistake.
        reason: String,
    },
    /// A file that does not begin as an age file does.
    #[error("this is no age file")]
    NotAnAgeFile,
    /// An age file with a damaged header.
    #[error("the age file's header is damaged")]
    DamagedHeader,
    /// A header longer than any that is opened here.
    #[error("the header is longer than {limit} bytes or {lines} lines")]
    HeaderTooLong {
        /// Bound in bytes.
        limit: usize,
        /// Bound in lines.
        lines: usize,
    },
    /// An age file for other kinds of recipients only.
    #[error("the file is not encrypted to any condition")]
    NotToConditions,
    /// An age file for conditions of other deployments only.
    #[error("the file is encrypted under another master key: {}, not {own}", found.join(", "))]
    OtherMaster {
        /// Fingerprints in the file, hex.
        found: Vec<String>,
        /// The fingerprint of the master key that is held, hex.
        own: String,
    },
    /// The file opens under other conditions than those of the held keys.
    #[error("no key for any of the file's conditions: {}", conditions.join(", "))]
    NoKey {
        /// The file's conditions.
        conditions: Vec<String>,
    },
    /// A header that was altered after it was made.
    #[error("the header was altered")]
    AlteredHeader,
    /// The content ends too early or was altered.
    #[error(
        "the file was cut short or altered after the first {genuine} bytes of its content, which are genuine"
    )]
    Damaged {
        /// Number of plaintext bytes before the error, all of them authentic.
        genuine: u64,
    },
    /// The input cannot be read.
    #[error("cannot read: {0}")]
    Read(io::Error),
    /// The output cannot be written.
    #[error("cannot write: {0}")]
    Write(io::Error),
    /// The `age` crate refused for a reason that is not expected.
    #[error("age: {0}")]
    Age(String),
}
