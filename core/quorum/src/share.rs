//! A KGC's share of the master secret.

use alloc::vec::Vec;

use frost_core::keys::{KeyPackage, SigningShare, VerifyingShare};
use quiver_ainq::{Element, KgcId};
use quiver_crypto::Zeroizing;
use quiver_crypto::canonical::{Reader, Writer};

use crate::public::{frost, read_kind, verifying_key};
use crate::suite::{SCALAR_LEN, element, identifier};
use crate::{Error, PublicShares, QuorumParameters, QuorumSuite};

const KIND: &str = "quiver/1 quorum secret share";

/// x_j, KGC j's share of the master secret x, of one version. Erased when dropped; `Debug` prints nothing of
/// it.
#[derive(derive_more::Debug)]
#[debug(
    "SecretShare {{ suite: {:?}, kgc: {kgc}, parameters: {parameters:?}, version: {version}, .. }}",
    S::ID
)]
pub struct SecretShare<S: QuorumSuite> {
    kgc: KgcId,
    parameters: QuorumParameters,
    version: u32,
    master: Element<S>,
    /// Y_j.
    public: Element<S>,
    key: KeyPackage<S::Frost>,
}

impl<S: QuorumSuite> SecretShare<S> {
    /// Puts a share together and computes Y_j of it.
    pub(crate) fn new(
        kgc: KgcId,
        parameters: QuorumParameters,
        version: u32,
        master: Element<S>,
        scalar: &[u8],
    ) -> Result<Self, Error> {
        parameters.check(kgc)?;
        let signing = SigningShare::deserialize(scalar).map_err(|_| Error::InvalidScalar)?;
        // Y_j = x_j·P
        let verifying = VerifyingShare::from(signing);
        let public = element(&verifying.serialize().map_err(|_| Error::InvalidScalar)?)?;
        let key = KeyPackage::new(
            identifier::<S>(kgc)?,
            signing,
            verifying,
            verifying_key::<S>(&master)?,
            parameters.threshold(),
        );
        Ok(Self { kgc, parameters, version, master, public, key })
    }

    /// The result of FROST.
    pub(crate) fn of_frost(
        kgc: KgcId,
        public: &PublicShares<S>,
        key: KeyPackage<S::Frost>,
    ) -> Result<Self, Error> {
        let own = element(&key.verifying_share().serialize().map_err(frost)?)?;
        let share = Self {
            kgc,
            parameters: public.parameters(),
            version: public.version(),
            master: *public.master(),
            public: own,
            key,
        };
        // A share that does not fit the public shares is refused.
        share.matches(public)?;
        Ok(share)
    }

    /// j.
    #[must_use]
    pub const fn kgc(&self) -> KgcId {
        self.kgc
    }

    /// n and t.
    #[must_use]
    pub const fn parameters(&self) -> QuorumParameters {
        self.parameters
    }

    /// Number of its refreshes.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// P_pub.
    #[must_use]
    pub const fn master(&self) -> &Element<S> {
        &self.master
    }

    /// Y_j = x_j·P.
    #[must_use]
    pub const fn public(&self) -> &Element<S> {
        &self.public
    }

    pub(crate) const fn key(&self) -> &KeyPackage<S::Frost> {
        &self.key
    }

    /// x_j as `S::SCALAR_LEN` bytes, canonical, **little-endian** in every suite: for schemes beside AinQ
    /// that share the master key of this quorum, as identity-based encryption does.
    #[must_use]
    pub fn expose(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(self.key.signing_share().serialize())
    }

    /// Checks that this is KGC j's share in the quorum that `public` describes.
    ///
    /// # Errors
    /// [`Error::WrongVersion`] if one of them was refreshed without the other, [`Error::WrongQuorum`].
    pub fn matches(&self, public: &PublicShares<S>) -> Result<(), Error> {
        if self.parameters != public.parameters() || self.master != *public.master() {
            return Err(Error::WrongQuorum);
        }
        if self.version != public.version() {
            return Err(Error::WrongVersion { expected: self.version, actual: public.version() });
        }
        // x_j·P must be the Y_j of the quorum.
        if self.public == *public.share(self.kgc)? { Ok(()) } else { Err(Error::WrongQuorum) }
    }

    /// Bytes of the encoding.
    #[must_use]
    pub fn encoded_len() -> usize {
        4 + KIND.len() + 4 + S::ID.len() + 2 + QuorumParameters::LEN + 4 + S::POINT_LEN + SCALAR_LEN
    }

    /// The encoding, for the KGC's own encrypted storage.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut writer = Writer::with_capacity(Self::encoded_len());
        writer.lp(KIND.as_bytes()).lp(S::ID.as_bytes()).u16(self.kgc);
        self.parameters.write(&mut writer);
        writer.u32(self.version).fixed(self.master.as_bytes()).fixed(&self.expose());
        Zeroizing::new(writer.finish())
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::WrongQuorum`] for another suite, [`Error::InvalidParameters`],
    /// [`Error::UnknownKgc`], [`Error::InvalidPoint`], [`Error::InvalidScalar`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let share = Self::read(&mut reader)?;
        reader.end()?;
        Ok(share)
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        read_kind::<S>(reader, KIND)?;
        let kgc = reader.u16()?;
        let parameters = QuorumParameters::read(reader)?;
        let version = reader.u32()?;
        let master = element(reader.take(S::POINT_LEN)?)?;
        Self::new(kgc, parameters, version, master, reader.take(SCALAR_LEN)?)
    }
}
