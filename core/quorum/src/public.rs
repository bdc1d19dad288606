//! The public shares of a quorum: its public key and every KGC's public share.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use frost_core::keys::{PublicKeyPackage, VerifyingShare};
use frost_core::{Ciphersuite, VerifyingKey};
use quiver_ainq::{Element, KgcId};
use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Digest, Hasher};

use crate::suite::{element, identifier};
use crate::{Error, QuorumParameters, QuorumSuite};

const KIND: &str = "quiver/1 quorum public shares";

/// P_pub = x·P and every Y_j = x_j·P, of one version.
///
/// The points of this type lie on one polynomial of degree t − 1: any t KGCs have the same secret. That it is
/// the *right* one only the master public key tells, or the quorum's signature on the encoding.
#[derive(Clone, derive_more::Debug)]
#[debug(
    "PublicShares {{ suite: {:?}, parameters: {parameters:?}, version: {version}, master: {master:?}, .. }}",
    S::ID
)]
pub struct PublicShares<S: QuorumSuite> {
    parameters: QuorumParameters,
    version: u32,
    master: Element<S>,
    /// Y_1 to Y_n.
    shares: Vec<Element<S>>,
}

impl<S: QuorumSuite> PublicShares<S> {
    /// Puts public shares together: `shares` are Y_1 to Y_n in this order.
    ///
    /// # Errors
    /// [`Error::WrongNumber`] unless there are n of them, [`Error::InconsistentShares`] unless they and P_pub
    /// lie on one polynomial of degree t − 1.
    pub fn new(
        parameters: QuorumParameters,
        version: u32,
        master: Element<S>,
        shares: Vec<Element<S>>,
    ) -> Result<Self, Error> {
        if shares.len() != usize::from(parameters.members()) {
            return Err(Error::WrongNumber { actual: shares.len(), threshold: parameters.members() });
        }
        let public = Self { parameters, version, master, shares };
        // With inconsistent shares some t KGCs would sign under another key than P_pub.
        if public.is_consistent() { Ok(public) } else { Err(Error::InconsistentShares) }
    }

    /// n and t.
    #[must_use]
    pub const fn parameters(&self) -> QuorumParameters {
        self.parameters
    }

    /// Number of refreshes of the shares.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// P_pub, which no refresh changes.
    #[must_use]
    pub const fn master(&self) -> &Element<S> {
        &self.master
    }

    /// Y_j.
    ///
    /// # Errors
    /// [`Error::UnknownKgc`].
    pub fn share(&self, kgc: KgcId) -> Result<&Element<S>, Error> {
        let index = usize::from(kgc).checked_sub(1).ok_or(Error::UnknownKgc(kgc))?;
        self.shares.get(index).ok_or(Error::UnknownKgc(kgc))
    }

    /// Every KGC with its Y_j, in ascending order.
    pub fn shares(&self) -> impl Iterator<Item = (KgcId, &Element<S>)> {
        self.parameters.kgcs().zip(&self.shares)
    }

    /// Bytes of the encoding of a quorum of n.
    #[must_use]
    pub fn encoded_len(parameters: QuorumParameters) -> usize {
        let head = 4 + KIND.len() + 4 + S::ID.len() + QuorumParameters::LEN + 4;
        head + (usize::from(parameters.members()) + 1) * S::POINT_LEN
    }

    /// Bytes of the longest encoding, that of a quorum of 64.
    #[must_use]
    pub fn max_len() -> usize {
        4 + KIND.len()
            + 4
            + S::ID.len()
            + QuorumParameters::LEN
            + 4
            + (usize::from(crate::MAX_MEMBERS) + 1) * S::POINT_LEN
    }

    /// The canonical encoding, which the quorum signs and drones pin.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(Self::encoded_len(self.parameters));
        writer.lp(KIND.as_bytes()).lp(S::ID.as_bytes());
        self.parameters.write(&mut writer);
        writer.u32(self.version).fixed(self.master.as_bytes());
        for share in &self.shares {
            writer.fixed(share.as_bytes());
        }
        writer.finish()
    }

    /// Reads and checks an encoding, of [`max_len`](Self::max_len) bytes at most.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::WrongQuorum`] for another suite, [`Error::InvalidParameters`],
    /// [`Error::InvalidPoint`], [`Error::InconsistentShares`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let public = Self::read(&mut reader)?;
        reader.end()?;
        Ok(public)
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        read_kind::<S>(reader, KIND)?;
        let parameters = QuorumParameters::read(reader)?;
        let version = reader.u32()?;
        let master = element(reader.take(S::POINT_LEN)?)?;
        let shares =
            parameters.kgcs().map(|_| element(reader.take(S::POINT_LEN)?)).collect::<Result<_, _>>()?;
        Self::new(parameters, version, master, shares)
    }

    /// A hash of the encoding, for comparing.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Hasher::new("quiver/1 quorum public shares digest").lp(&self.encode()).finish()
    }

    /// Checks that Y_0 = P_pub and that Y_1 to Y_n are f(0) to f(n) times the generator for one f of degree t
    /// − 1 at most.
    ///
    /// The values of such an f are orthogonal to those of every polynomial g of degree n − t at most, in the
    /// sense that Σ v_i·g(i)·f(i) = 0 with v_i = Π_{j≠i} 1/(i − j); times n!, v_i is ±C(n, i). (Cascudo,
    /// David, *SCRAPE*, ACNS 2017, lemma 1.) One g suffices whose coefficients are hashes of all points.
    fn is_consistent(&self) -> bool {
        let n = u128::from(self.parameters.members());
        let seed = self.digest();
        // SCRAPE, lemma 1: one g of degree n − t, with hashes of all points as coefficients.
        let coefficients: Vec<S::Scalar> = (self.parameters.threshold()..=self.parameters.members())
            .map(|k| S::hash_to_scalar("quiver/1 quorum consistency", &[&seed, &k.to_be_bytes()]))
            .collect();
        let mut binomial = 1;
        let mut scalars = Vec::with_capacity(self.shares.len().saturating_add(1));
        for i in 0..=n {
            let at = S::scalar_from_u128(i);
            let value =
                coefficients.iter().fold(S::scalar_from_u128(0), |sum, coefficient| sum * at + *coefficient);
            let weight = S::scalar_from_u128(binomial);
            // v_i·g(i), where v_i times n! is ±C(n, i).
            scalars.push(value * if i % 2 == 0 { weight } else { -weight });
            // C(n, i + 1) = C(n, i)·(n − i)/(i + 1); C(64, 32)·32 has 66 bits.
            binomial = binomial * (n - i) / (i + 1);
        }
        let points: Vec<S::Point> =
            core::iter::once(&self.master).chain(&self.shares).map(|share| *share.point()).collect();
        // Σ v_i·g(i)·Y_i = 0 if all points lie on one f of degree t − 1.
        S::is_identity(&S::vartime_multiscalar(&scalars, &points))
    }

    /// The same for FROST, with the public shares of `kgcs` alone: every one costs a decoding.
    pub(crate) fn for_frost(
        &self,
        kgcs: impl IntoIterator<Item = KgcId>,
    ) -> Result<PublicKeyPackage<S::Frost>, Error> {
        let shares = gathered(
            kgcs.into_iter().map(|kgc| Ok((identifier::<S>(kgc)?, verifying_share::<S>(self.share(kgc)?)?))),
        )?;
        Ok(PublicKeyPackage::new(
            shares,
            verifying_key::<S>(&self.master)?,
            Some(self.parameters.threshold()),
        ))
    }

    /// The result of FROST.
    pub(crate) fn of_frost(
        parameters: QuorumParameters,
        version: u32,
        package: &PublicKeyPackage<S::Frost>,
    ) -> Result<Self, Error> {
        let master = element(&package.verifying_key().serialize().map_err(|_| Error::InvalidPoint)?)?;
        let share = |kgc| {
            let share =
                package.verifying_shares().get(&identifier::<S>(kgc)?).ok_or(Error::UnknownKgc(kgc))?;
            element(&share.serialize().map_err(|_| Error::InvalidPoint)?)
        };
        let shares = parameters.kgcs().map(share).collect::<Result<_, _>>()?;
        Self::new(parameters, version, master, shares)
    }
}

/// Reads what every stored or signed encoding starts with: its kind and suite.
pub(crate) fn read_kind<S: QuorumSuite>(reader: &mut Reader<'_>, kind: &str) -> Result<(), Error> {
    if reader.lp(kind.len())? != kind.as_bytes() {
        return Err(Error::Malformed("another kind of thing"));
    }
    if reader.lp(S::ID.len()).ok() != Some(S::ID.as_bytes()) {
        return Err(Error::WrongQuorum);
    }
    Ok(())
}

/// Collects pairs one by one, because `collect` sorts first, and a sort for each type takes a board more
/// flash than it saves time with a quorum's few.
pub(crate) fn gathered<K: Ord, V>(
    pairs: impl Iterator<Item = Result<(K, V), Error>>,
) -> Result<BTreeMap<K, V>, Error> {
    let mut map = BTreeMap::new();
    for pair in pairs {
        let (key, value) = pair?;
        map.insert(key, value);
    }
    Ok(map)
}

pub(crate) fn verifying_share<S: QuorumSuite>(share: &Element<S>) -> Result<VerifyingShare<S::Frost>, Error> {
    VerifyingShare::deserialize(share.as_bytes()).map_err(frost)
}

pub(crate) fn verifying_key<S: QuorumSuite>(master: &Element<S>) -> Result<VerifyingKey<S::Frost>, Error> {
    VerifyingKey::deserialize(master.as_bytes()).map_err(frost)
}

pub(crate) fn frost<C: Ciphersuite>(_: frost_core::Error<C>) -> Error {
    Error::Frost
}

impl<S: QuorumSuite> PartialEq for PublicShares<S> {
    fn eq(&self, other: &Self) -> bool {
        self.parameters == other.parameters
            && self.version == other.version
            && self.master == other.master
            && self.shares == other.shares
    }
}

impl<S: QuorumSuite> Eq for PublicShares<S> {}
