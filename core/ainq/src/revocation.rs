//! Revocation lists: what the KGC says is no longer valid. Signed, numbered, carried by anybody.

use alloc::vec::Vec;
use core::ops::Deref;

use quiver_crypto::canonical::{Reader, Writer};
use rand_core::CryptoRngCore;

use crate::{
    Deployment, DronePublicKey, Error, Handle, MasterSecret, Purpose, StatementSignature, Suite, UnixTime,
};

/// Bytes a signed revocation list may have: 1 MiB, some 32,000 handles.
pub const MAX_REVOCATION_LIST_LEN: usize = 1 << 20;

/// Keys and drones that are no longer valid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevocationList {
    /// Rises with every list; everybody keeps the highest.
    pub number: u64,
    /// When the list was made.
    pub issued: UnixTime,
    /// When the next one is due at the latest.
    pub next_update: UnixTime,
    /// Single keys; ascending, none twice.
    pub handles: Vec<Handle>,
    /// Drones with all the keys they ever had; ascending, none twice.
    pub serials: Vec<[u8; 16]>,
}

impl RevocationList {
    /// The list of number 0, which names nobody: what a role starts from.
    #[must_use]
    pub const fn empty() -> Self {
        Self { number: 0, issued: 0, next_update: 0, handles: Vec::new(), serials: Vec::new() }
    }

    /// Whether the list names this key or its drone.
    #[must_use]
    pub fn names<S: Suite>(&self, public: &DronePublicKey<S>) -> bool {
        self.serials.binary_search(&public.identity.serial).is_ok()
            || (!self.handles.is_empty() && self.names_handle(&public.handle()))
    }

    /// Whether the list names this key by its handle. A drone may be named by its serial as well: see
    /// [`names`](Self::names).
    #[must_use]
    pub fn names_handle(&self, handle: &Handle) -> bool {
        self.handles.binary_search(handle).is_ok()
    }

    /// The body of the signed statement.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.u64(self.number).u64(self.issued).u64(self.next_update);
        writer.count(self.handles.len());
        for handle in &self.handles {
            writer.fixed(handle.as_bytes());
        }
        writer.count(self.serials.len());
        for serial in &self.serials {
            writer.fixed(serial);
        }
        writer.finish()
    }

    /// Reads the body of a statement. Whether it was signed is for the caller to ask.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let (number, issued, next_update) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let handles = (0..reader.count(usize::MAX, 32)?)
            .map(|_| reader.array().map(Handle))
            .collect::<Result<Vec<_>, _>>()?;
        let serials =
            (0..reader.count(usize::MAX, 16)?).map(|_| reader.array()).collect::<Result<Vec<_>, _>>()?;
        reader.end()?;
        let list = Self { number, issued, next_update, handles, serials };
        list.check()?;
        Ok(list)
    }

    fn check(&self) -> Result<(), Error> {
        let ascending = self.handles.is_sorted_by(|a, b| a < b) && self.serials.is_sorted_by(|a, b| a < b);
        if !ascending {
            return Err(Error::Malformed("a revocation list must ascend"));
        }
        if self.next_update < self.issued {
            return Err(Error::Malformed("a revocation list ends before it begins"));
        }
        Ok(())
    }
}

/// A revocation list with a signature nobody has checked yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedRevocationList<S: Suite> {
    list: RevocationList,
    signature: StatementSignature<S>,
    bytes: Vec<u8>,
}

impl<S: Suite> MasterSecret<S> {
    /// Signs a revocation list, after sorting it.
    ///
    /// # Errors
    /// [`Error::TooLong`], or [`Error::Malformed`] if the next update is due before the list is issued.
    pub fn sign_revocations(
        &self,
        deployment: &Deployment<S>,
        mut list: RevocationList,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<SignedRevocationList<S>, Error> {
        list.handles.sort_unstable();
        list.handles.dedup();
        list.serials.sort_unstable();
        list.serials.dedup();
        list.check()?;
        let body = list.encode();
        let signature = self.sign(deployment, Purpose::Revocation, &body, rng);
        SignedRevocationList::assemble(list, &body, signature)
    }
}

impl<S: Suite> SignedRevocationList<S> {
    /// Puts a list and a signature on it together that was made elsewhere, for instance by a quorum.
    ///
    /// # Errors
    /// [`Error::TooLong`], or [`Error::Malformed`] unless the list ascends and ends after it begins.
    pub fn new(list: RevocationList, signature: StatementSignature<S>) -> Result<Self, Error> {
        list.check()?;
        let body = list.encode();
        Self::assemble(list, &body, signature)
    }

    fn assemble(list: RevocationList, body: &[u8], signature: StatementSignature<S>) -> Result<Self, Error> {
        let bytes = Writer::new().lp(body).fixed(&signature.encode()).finish();
        if bytes.len() > MAX_REVOCATION_LIST_LEN {
            return Err(Error::TooLong { what: "revocation list", limit: MAX_REVOCATION_LIST_LEN });
        }
        Ok(Self { list, signature, bytes })
    }

    /// The number the list claims to have, to tell before checking whether it would be news.
    pub const fn claimed_number(&self) -> u64 {
        self.list.number
    }

    /// The encoding: `lp(list)`, then the signature. At most [`MAX_REVOCATION_LIST_LEN`] bytes.
    pub fn encode(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    /// Reads the encoding.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::Malformed`], [`Error::InvalidPoint`], [`Error::IdentityPoint`] or
    /// [`Error::InvalidScalar`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() > MAX_REVOCATION_LIST_LEN {
            return Err(Error::TooLong { what: "revocation list", limit: MAX_REVOCATION_LIST_LEN });
        }
        let mut reader = Reader::new(bytes);
        let body = reader.lp(MAX_REVOCATION_LIST_LEN)?;
        let signature = StatementSignature::decode(reader.take(StatementSignature::<S>::LEN)?)?;
        reader.end()?;
        Self::assemble(RevocationList::decode(body)?, body, signature)
    }

    /// Checks that the KGC of `deployment` signed the list. Whether it is new and in time is for the caller to say.
    ///
    /// # Errors
    /// [`Error::InvalidSignature`].
    pub fn verify(self, deployment: &Deployment<S>) -> Result<VerifiedRevocationList<S>, Error> {
        self.signature.verify(deployment, Purpose::Revocation, &self.list.encode())?;
        Ok(VerifiedRevocationList(self))
    }
}

/// A revocation list the KGC signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedRevocationList<S: Suite>(SignedRevocationList<S>);

impl<S: Suite> VerifiedRevocationList<S> {
    /// The signed encoding, to be passed on.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }
}

impl<S: Suite> Deref for VerifiedRevocationList<S> {
    type Target = RevocationList;

    fn deref(&self) -> &RevocationList {
        &self.0.list
    }
}
