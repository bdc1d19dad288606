//! Keys of a quorum, both of them, as one member holds them.

use alloc::vec::Vec;

use quiver_ainq::{Bls12381G1, KgcId};
use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Hasher, Zeroizing};
use quiver_message::quorum::Both;
use quiver_quorum::{Error, PublicShares, QuorumParameters, QuorumSuite, SecretShare};

/// The group of the key of identity-based encryption.
pub type Ibe = Bls12381G1;

/// A member's share of one key, and the public shares. They belong together.
#[derive(Debug)]
pub struct QuorumKeyShare<S: QuorumSuite> {
    share: SecretShare<S>,
    public: PublicShares<S>,
}

/// A member's shares of both keys, of the same version.
#[derive(Debug)]
pub struct QuorumKeys<S: QuorumSuite> {
    ainq: QuorumKeyShare<S>,
    ibe: QuorumKeyShare<Ibe>,
}

impl<S: QuorumSuite> QuorumKeyShare<S> {
    /// Puts share and public shares together.
    ///
    /// # Errors
    /// As [`SecretShare::matches`].
    pub fn new(share: SecretShare<S>, public: PublicShares<S>) -> Result<Self, Error> {
        share.matches(&public)?;
        Ok(Self { share, public })
    }

    /// The secret share.
    #[must_use]
    pub const fn share(&self) -> &SecretShare<S> {
        &self.share
    }

    /// The public shares.
    #[must_use]
    pub const fn public(&self) -> &PublicShares<S> {
        &self.public
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let share = SecretShare::decode(reader.lp(SecretShare::<S>::encoded_len())?)?;
        Self::new(share, PublicShares::decode(reader.lp(PublicShares::<S>::max_len())?)?)
    }
}

impl<S: QuorumSuite> QuorumKeys<S> {
    /// Puts both together.
    ///
    /// # Errors
    /// [`Error::WrongVersion`] or [`Error::WrongQuorum`] unless they are one member's, of one version.
    pub fn new(ainq: QuorumKeyShare<S>, ibe: QuorumKeyShare<Ibe>) -> Result<Self, Error> {
        let (expected, actual) = (ainq.public.version(), ibe.public.version());
        if expected != actual {
            return Err(Error::WrongVersion { expected, actual });
        }
        let same = ainq.share.kgc() == ibe.share.kgc() && ainq.public.parameters() == ibe.public.parameters();
        if same { Ok(Self { ainq, ibe }) } else { Err(Error::WrongQuorum) }
    }

    /// The key that signs: AinQ's.
    #[must_use]
    pub const fn ainq(&self) -> &QuorumKeyShare<S> {
        &self.ainq
    }

    /// The key of identity-based encryption.
    #[must_use]
    pub const fn ibe(&self) -> &QuorumKeyShare<Ibe> {
        &self.ibe
    }

    /// Number of refreshes of the shares.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.ainq.public.version()
    }

    /// The member whose shares they are.
    #[must_use]
    pub const fn kgc(&self) -> KgcId {
        self.ainq.share.kgc()
    }

    /// n and t.
    #[must_use]
    pub const fn parameters(&self) -> QuorumParameters {
        self.ainq.public.parameters()
    }

    /// H("quiver/1 quorum keys", public shares of both keys), which is the same at all members. 32 bytes.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        // §5.2: H(new public shares) of a confirmation, and what a refresh starts from.
        digest(&self.ainq.public, &self.ibe.public)
    }

    /// The public shares of both, encoded.
    pub(super) fn public(&self) -> Both<Vec<u8>> {
        Both { ainq: self.ainq.public.encode(), ibe: self.ibe.public.encode() }
    }

    /// The encoding, secret, for the member's own encrypted storage.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let parameters = self.parameters();
        let secret = SecretShare::<S>::encoded_len() + SecretShare::<Ibe>::encoded_len();
        let public =
            PublicShares::<S>::encoded_len(parameters) + PublicShares::<Ibe>::encoded_len(parameters);
        // All of it at once: a buffer that grows leaves copies behind.
        let mut writer = Writer::with_capacity(4 * 4 + secret + public);
        writer.lp(&self.ainq.share.encode()).lp(&self.ainq.public.encode());
        writer.lp(&self.ibe.share.encode()).lp(&self.ibe.public.encode());
        Zeroizing::new(writer.finish())
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// As [`SecretShare::decode`], [`PublicShares::decode`] and [`new`](Self::new).
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let (ainq, ibe) = (QuorumKeyShare::read(&mut reader)?, QuorumKeyShare::read(&mut reader)?);
        reader.end()?;
        Self::new(ainq, ibe)
    }
}

/// Digest by which members compare their keys.
pub(super) fn digest<S: QuorumSuite>(ainq: &PublicShares<S>, ibe: &PublicShares<Ibe>) -> [u8; 32] {
    Hasher::new("quiver/1 quorum keys").fixed(&ainq.digest()).fixed(&ibe.digest()).finish()
}
