//! Bytes that a driver stores for a machine.

use alloc::vec::Vec;
use core::fmt;

use zeroize::Zeroizing;

/// Bytes that a driver stores, encrypted, and hands back on start. They hold secret keys: erased on drop, never printed.
#[derive(Clone, PartialEq, Eq)]
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

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Snapshot({} bytes)", self.0.len())
    }
}
