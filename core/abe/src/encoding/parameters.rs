//! An authority's public parameters and its master key.

use alloc::vec::Vec;

use quiver_crypto::Zeroizing;
use quiver_crypto::canonical::{Reader, Writer};

use super::{EncodedKind, HEADER_LEN, guarded, read_header, write_header};
use crate::scheme_algebra::{ElementEncoding, SchemeAlgebra};
use crate::{AbeError, AuthorityFingerprint, PublicEncoding, SecretEncoding};

/// Public parameters of an authority; their fingerprint names the authority. Sizes stand with the schemes.
#[derive(Clone, derive_more::Debug)]
#[debug("Parameters {{ scheme: {:?}, authority: {authority:?} }}", M::ID)]
pub struct Parameters<M: SchemeAlgebra> {
    pub(super) public: M::Public,
    authority: AuthorityFingerprint,
}

impl<M: SchemeAlgebra> Parameters<M> {
    pub(super) fn new(public: M::Public) -> Self {
        let authority = AuthorityFingerprint::of_parameters(&encode_parameters::<M>(&public));
        Self { public, authority }
    }
}

fn encode_parameters<M: SchemeAlgebra>(public: &M::Public) -> Vec<u8> {
    let mut writer = Writer::with_capacity(HEADER_LEN + public.encoded_len());
    write_header::<M>(&mut writer, EncodedKind::Parameters);
    public.write(&mut writer);
    writer.finish()
}

impl<M: SchemeAlgebra> PublicEncoding for Parameters<M> {
    fn encode(&self) -> Vec<u8> {
        encode_parameters::<M>(&self.public)
    }

    fn decode(bytes: &[u8]) -> Result<Self, AbeError> {
        let mut reader = Reader::new(bytes);
        read_header::<M>(&mut reader, EncodedKind::Parameters)?;
        let public = M::Public::read(&mut reader, &())?;
        reader.end()?;
        Ok(Self { public, authority: AuthorityFingerprint::of_parameters(bytes) })
    }

    fn authority(&self) -> &AuthorityFingerprint {
        &self.authority
    }
}

impl<M: SchemeAlgebra> PartialEq for Parameters<M> {
    fn eq(&self, other: &Self) -> bool {
        self.authority == other.authority
    }
}

impl<M: SchemeAlgebra> Eq for Parameters<M> {}

/// Master key of an authority, from which every key can be derived. Sizes stand with the schemes.
#[derive(derive_more::Debug)]
#[debug("MasterKey {{ scheme: {:?}, authority: {authority:?}, .. }}", M::ID)]
pub struct MasterKey<M: SchemeAlgebra> {
    pub(super) authority: AuthorityFingerprint,
    pub(super) secret: M::Master,
}

impl<M: SchemeAlgebra> MasterKey<M> {
    pub(super) const fn new(authority: AuthorityFingerprint, secret: M::Master) -> Self {
        Self { authority, secret }
    }
}

impl<M: SchemeAlgebra> SecretEncoding for MasterKey<M> {
    fn encode(&self) -> Zeroizing<Vec<u8>> {
        let len = HEADER_LEN + AuthorityFingerprint::LEN + self.secret.encoded_len();
        let mut writer = Writer::with_capacity(len);
        write_header::<M>(&mut writer, EncodedKind::MasterKey);
        writer.fixed(self.authority.as_bytes());
        self.secret.write(&mut writer);
        guarded(writer.finish())
    }

    fn decode(bytes: &[u8]) -> Result<Self, AbeError> {
        let mut reader = Reader::new(bytes);
        read_header::<M>(&mut reader, EncodedKind::MasterKey)?;
        let authority = AuthorityFingerprint::read(&mut reader)?;
        let secret = M::Master::read(&mut reader, &())?;
        reader.end()?;
        Ok(Self { authority, secret })
    }

    fn authority(&self) -> &AuthorityFingerprint {
        &self.authority
    }
}
