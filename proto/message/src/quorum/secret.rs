//! The same thing for both keys of a quorum, and bytes that are secret.

use alloc::vec::Vec;

use quiver_crypto::{Zeroizing, ct_eq};

use crate::{MessageError, field, wire};

/// The same thing for both keys that a quorum holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Both<T> {
    /// Value for the signing key: AinQ's.
    pub ainq: T,
    /// Value for the key of identity-based encryption.
    pub ibe: T,
}

/// Bytes that are erased when dropped, never printed and compared in constant time. A transport's copies of
/// them are not erased.
#[derive(Clone, derive_more::Debug)]
#[debug("SecretBytes({} bytes)", self.0.len())]
pub struct SecretBytes(Zeroizing<Vec<u8>>);

impl SecretBytes {
    /// Takes over the bytes.
    #[must_use]
    pub const fn new(bytes: Zeroizing<Vec<u8>>) -> Self {
        Self(bytes)
    }

    /// The bytes. The caller controls where they go.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl PartialEq for SecretBytes {
    fn eq(&self, other: &Self) -> bool {
        ct_eq(&self.0, &other.0)
    }
}

impl Eq for SecretBytes {}

impl Both<Vec<u8>> {
    pub(super) fn from_wire(
        field: &'static str,
        wire: wire::BothKeys,
        limit: usize,
    ) -> Result<Self, MessageError> {
        Ok(Self {
            ainq: field::bounded(field, wire.ainq, limit)?,
            ibe: field::bounded(field, wire.ibe, limit)?,
        })
    }

    pub(super) fn to_wire(&self) -> wire::BothKeys {
        wire::BothKeys { ainq: self.ainq.clone(), ibe: self.ibe.clone() }
    }
}

impl Both<SecretBytes> {
    /// Bytes an encoded secret scalar may have.
    const LIMIT: usize = 128;

    pub(super) fn secret_from_wire(field: &'static str, wire: wire::BothKeys) -> Result<Self, MessageError> {
        let wire::BothKeys { ainq, ibe } = wire;
        let (ainq, ibe) = (SecretBytes::new(Zeroizing::new(ainq)), SecretBytes::new(Zeroizing::new(ibe)));
        let fits = |secret: &SecretBytes| (1..=Self::LIMIT).contains(&secret.expose().len());
        if fits(&ainq) && fits(&ibe) { Ok(Self { ainq, ibe }) } else { Err(MessageError::Invalid(field)) }
    }

    pub(super) fn secret_to_wire(&self) -> wire::BothKeys {
        wire::BothKeys { ainq: self.ainq.expose().to_vec(), ibe: self.ibe.expose().to_vec() }
    }
}
