//! What a holder is given, and what is sent.

use alloc::vec::Vec;
use core::fmt;

use quiver_crypto::Zeroizing;

use super::{Kind, Stated, guarded};
use crate::mechanism::Mechanism;
use crate::{AbeError, Authority, Guarded, Published, Stating};

/// A key: opens the ciphertexts that its policy or its attributes fit. Sizes stand with the schemes.
pub struct Key<M: Mechanism> {
    pub(super) stated: Stated<M::OfKey, M::Held>,
}

impl<M: Mechanism> Key<M> {
    pub(super) const fn new(stated: Stated<M::OfKey, M::Held>) -> Self {
        Self { stated }
    }
}

impl<M: Mechanism> Guarded for Key<M> {
    fn encode(&self) -> Zeroizing<Vec<u8>> {
        guarded(self.stated.encode::<M>(Kind::Key))
    }

    fn decode(bytes: &[u8]) -> Result<Self, AbeError> {
        Stated::decode::<M>(bytes, Kind::Key).map(Self::new)
    }

    fn authority(&self) -> &Authority {
        &self.stated.authority
    }
}

impl<M: Mechanism> Stating for Key<M> {
    type Terms = M::OfKey;

    fn terms(&self) -> &M::OfKey {
        &self.stated.terms
    }
}

impl<M: Mechanism> fmt::Debug for Key<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("scheme", &M::ID)
            .field("authority", &self.stated.authority)
            .field("terms", &format_args!("{}", self.stated.terms))
            .finish_non_exhaustive()
    }
}

/// An encapsulated secret. Sizes stand with the schemes.
#[derive(Clone)]
pub struct Ciphertext<M: Mechanism> {
    pub(super) stated: Stated<M::OfCiphertext, M::Sent>,
    bytes: Vec<u8>,
}

impl<M: Mechanism> Ciphertext<M> {
    pub(super) fn new(stated: Stated<M::OfCiphertext, M::Sent>) -> Self {
        let bytes = stated.encode::<M>(Kind::Ciphertext);
        Self { stated, bytes }
    }

    /// The canonical encoding, which a ciphertext has at hand because its secret depends on it.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<M: Mechanism> Published for Ciphertext<M> {
    fn encode(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    fn decode(bytes: &[u8]) -> Result<Self, AbeError> {
        let stated = Stated::decode::<M>(bytes, Kind::Ciphertext)?;
        Ok(Self { stated, bytes: bytes.to_vec() })
    }

    fn authority(&self) -> &Authority {
        &self.stated.authority
    }
}

impl<M: Mechanism> Stating for Ciphertext<M> {
    type Terms = M::OfCiphertext;

    fn terms(&self) -> &M::OfCiphertext {
        &self.stated.terms
    }
}

impl<M: Mechanism> PartialEq for Ciphertext<M> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl<M: Mechanism> Eq for Ciphertext<M> {}

impl<M: Mechanism> fmt::Debug for Ciphertext<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ciphertext")
            .field("scheme", &M::ID)
            .field("authority", &self.stated.authority)
            .field("terms", &format_args!("{}", self.stated.terms))
            .finish_non_exhaustive()
    }
}
