//! Bytes that a driver stores for a machine, and why they may not restore one.

use alloc::vec::Vec;

use quiver_ainq::{Error, Name};
use zeroize::Zeroizing;

/// Bytes that a driver stores, encrypted, and hands back on start. They hold secret keys: erased on drop,
/// never printed.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("Snapshot({} bytes)", self.0.len())]
pub struct Snapshot(Zeroizing<Vec<u8>>);

impl Snapshot {
    /// Wraps stored bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes to store.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Reason why stored bytes do not restore a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// Not what any version wrote.
    #[error("the stored state is damaged")]
    Damaged,
    /// Written in another form than this program reads.
    #[error(
        "the stored state has form {found}, and this program reads form {expected}: start the version that wrote it, or enrol anew"
    )]
    OtherVersion {
        /// The form that it has.
        found: u8,
        /// The form that is read.
        expected: u8,
    },
    /// Written for another suite or deployment.
    #[error("the stored state belongs to another deployment or suite")]
    Foreign,
    /// The stored identity leads another group than the one configured.
    #[error("the stored identity leads group `{0}`, not the one configured")]
    WrongGroup(Name),
    /// A stored key does not hold.
    #[error("the stored state does not hold: {0}")]
    Invalid(#[from] Error),
}
