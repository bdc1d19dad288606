//! Keys of holders, and ciphertexts.

use alloc::vec::Vec;

use quiver_crypto::Zeroizing;

use super::{Content, EncodedKind, guarded};
use crate::scheme_algebra::SchemeAlgebra;
use crate::{AbeError, AuthorityFingerprint, HasTerms, PublicEncoding, SecretEncoding};

/// A key: opens the ciphertexts that its policy or its attributes fit. Sizes stand with the schemes.
#[derive(derive_more::Debug)]
#[debug("Key {{ scheme: {:?}, authority: {:?}, terms: {}, .. }}", M::ID, self.content.authority, self.content.terms)]
pub struct Key<M: SchemeAlgebra> {
    pub(super) content: Content<M::KeyTerms, M::KeyElements>,
}

impl<M: SchemeAlgebra> Key<M> {
    pub(super) const fn new(content: Content<M::KeyTerms, M::KeyElements>) -> Self {
        Self { content }
    }
}

impl<M: SchemeAlgebra> SecretEncoding for Key<M> {
    fn encode(&self) -> Zeroizing<Vec<u8>> {
        guarded(self.content.encode::<M>(EncodedKind::Key))
    }

    fn decode(bytes: &[u8]) -> Result<Self, AbeError> {
        Content::decode::<M>(bytes, EncodedKind::Key).map(Self::new)
    }

    fn authority(&self) -> &AuthorityFingerprint {
        &self.content.authority
    }
}

impl<M: SchemeAlgebra> HasTerms for Key<M> {
    type Terms = M::KeyTerms;

    fn terms(&self) -> &M::KeyTerms {
        &self.content.terms
    }
}

/// An encapsulated secret. Sizes stand with the schemes.
#[derive(Clone, derive_more::Debug)]
#[debug("Ciphertext {{ scheme: {:?}, authority: {:?}, terms: {}, .. }}", M::ID, self.content.authority, self.content.terms)]
pub struct Ciphertext<M: SchemeAlgebra> {
    pub(super) content: Content<M::CiphertextTerms, M::CiphertextElements>,
    bytes: Vec<u8>,
}

impl<M: SchemeAlgebra> Ciphertext<M> {
    pub(super) fn new(content: Content<M::CiphertextTerms, M::CiphertextElements>) -> Self {
        let bytes = content.encode::<M>(EncodedKind::Ciphertext);
        Self { content, bytes }
    }

    /// The canonical encoding, which a ciphertext stores because its secret depends on it.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<M: SchemeAlgebra> PublicEncoding for Ciphertext<M> {
    fn encode(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    fn decode(bytes: &[u8]) -> Result<Self, AbeError> {
        let content = Content::decode::<M>(bytes, EncodedKind::Ciphertext)?;
        Ok(Self { content, bytes: bytes.to_vec() })
    }

    fn authority(&self) -> &AuthorityFingerprint {
        &self.content.authority
    }
}

impl<M: SchemeAlgebra> HasTerms for Ciphertext<M> {
    type Terms = M::CiphertextTerms;

    fn terms(&self) -> &M::CiphertextTerms {
        &self.content.terms
    }
}

impl<M: SchemeAlgebra> PartialEq for Ciphertext<M> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl<M: SchemeAlgebra> Eq for Ciphertext<M> {}
