//! Generation and sharing of a master key by one dealer: Feldman's verifiable secret sharing.
//!
//! For a single KGC, for tests and for measurements; a quorum generates its key together and no KGC ever has
//! it. Source: Feldman, *A Practical Scheme for Non-interactive Verifiable Secret Sharing*, FOCS 1987. The
//! dealer publishes C_k = a_k·P1 for the coefficients a_k of the sharing polynomial; C_0 is MPK.

use alloc::vec::Vec;

use quiver_crypto::canonical::{Reader, Writer};
use quiver_pairing::{G1, Group, Scalar, scalar_random};
use quiver_sharing::{InvalidShares, Polynomial, PolynomialCommitment, UnverifiedShare};
use rand_core::CryptoRngCore;
use zeroize::Zeroizing;

use crate::error::narrow;
use crate::public_shares::check_threshold;
use crate::{Error, IdentityPoint, KeyShare, MAX_SHARES, MasterPublicKey, MasterShare, PublicShares};

/// A master key that a dealer made and shared: C_0, …, C_(t−1), and s_1, …, s_n.
#[derive(Debug)]
pub struct Dealing {
    commitment: MasterCommitment,
    /// Shares of the indices 1 to n.
    shares: Vec<MasterShare>,
}

impl Dealing {
    /// Makes a master key and shares it among `count`, of whom `threshold` are needed. 1 of 1 is a single
    /// KGC.
    ///
    /// # Errors
    /// [`Error::Threshold`] unless 1 ≤ t ≤ n ≤ [`MAX_SHARES`]; [`Error::InvalidPoint`] or
    /// [`Error::InvalidScalar`] if the source of randomness makes the master key or a share zero.
    pub fn deal(threshold: u16, count: u16, rng: &mut (impl CryptoRngCore + ?Sized)) -> Result<Self, Error> {
        check_threshold(usize::from(threshold), usize::from(count))?;
        // Feldman: s = f(0), f of degree t − 1.
        let secret = Zeroizing::new(scalar_random(rng));
        let polynomial = Polynomial::random(&*secret, usize::from(threshold), rng)?;
        // C_k = a_k·P1 for each coefficient a_k.
        let commitment = MasterCommitment::new(PolynomialCommitment::commit(&polynomial))?;
        // s_j = f(j).
        let shares = (1..=count)
            .map(|index| MasterShare::new(index, polynomial.evaluate(u32::from(index))))
            .collect::<Result<_, _>>()?;
        Ok(Self { commitment, shares })
    }

    /// The published commitment.
    #[must_use]
    pub const fn commitment(&self) -> &MasterCommitment {
        &self.commitment
    }

    /// The share of each KGC, ascending from the index 1.
    #[must_use]
    pub fn shares(&self) -> &[MasterShare] {
        &self.shares
    }

    /// The shares of an identity's key that all n would [extract](MasterShare::extract), ascending from the
    /// index 1. For one who has all master shares: for so many, one table of the identity's point costs less.
    #[must_use]
    pub fn extract(&self, point: &IdentityPoint) -> Vec<KeyShare> {
        let scalars =
            Zeroizing::new(self.shares.iter().map(|share| *share.expose()).collect::<Vec<Scalar>>());
        // K_j = s_j·Q for every j
        let points = Zeroizing::new(point.point().multiply_all(&scalars));
        let pairs = self.shares.iter().zip(points.iter());
        pairs.map(|(share, point)| KeyShare::verified(share.index(), *point)).collect()
    }

    /// The public shares of the quorum.
    ///
    /// # Errors
    /// [`Error::InconsistentShares`]; never, of what [`deal`](Self::deal) made.
    pub fn public_shares(&self) -> Result<PublicShares, Error> {
        let shares = self.shares.iter().map(|share| (share.index(), share.public())).collect();
        PublicShares::new(self.commitment.threshold(), *self.commitment.master(), shares)
    }
}

/// C_0, …, C_(t−1): distinguishes right master shares from wrong ones. C_0 is MPK, which is not the identity.
///
/// Encoded as the number of points in four bytes and 48 for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterCommitment {
    master: MasterPublicKey,
    points: PolynomialCommitment<G1>,
}

impl MasterCommitment {
    /// Takes a commitment of at most [`MAX_SHARES`] points. A caller that expects a threshold compares it
    /// with [`threshold`](Self::threshold).
    ///
    /// # Errors
    /// [`Error::InvalidPoint`] if the first point is the identity.
    pub fn new(points: PolynomialCommitment<G1>) -> Result<Self, Error> {
        // MPK = C_0
        let master = MasterPublicKey::new(points.public(0))?;
        Ok(Self { master, points })
    }

    /// MPK.
    #[must_use]
    pub const fn master(&self) -> &MasterPublicKey {
        &self.master
    }

    /// The points, C_0 first.
    #[must_use]
    pub fn points(&self) -> &[G1] {
        self.points.points()
    }

    /// Number of shares that make a key.
    #[must_use]
    pub fn threshold(&self) -> u16 {
        u16::try_from(self.points.threshold()).unwrap_or(u16::MAX)
    }

    /// S_j = Σ_k j^k·C_k, the public share of the KGC with the index j.
    #[must_use]
    pub fn public(&self, index: u16) -> G1 {
        self.points.public(u32::from(index))
    }

    /// The encoding, 4 bytes and 48 for each point.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(4 + G1::ENCODED_LEN * self.points().len());
        writer.count(self.points().len());
        G1::encode_all(self.points()).iter().for_each(|point| _ = writer.fixed(point));
        writer.finish()
    }

    /// Reads the encoding.
    ///
    /// # Errors
    /// [`Error::Malformed`]; [`Error::InvalidPoint`] for a point outside the subgroup, and for the identity
    /// in the first place.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let count = reader.count(MAX_SHARES, G1::ENCODED_LEN)?;
        let encoded = reader.take(count.saturating_mul(G1::ENCODED_LEN))?;
        reader.end()?;
        let points = encoded
            .chunks(G1::ENCODED_LEN)
            .map(|bytes| G1::decode_or_identity(bytes).map_err(|_| Error::InvalidPoint("G1")));
        Self::new(PolynomialCommitment::new(points.collect::<Result<_, _>>()?)?)
    }

    /// Checks many shares at once: with random weights of 128 bits, one combination of the t points for all
    /// of them. Wrong ones pass with a probability of 2^−128.
    ///
    /// # Errors
    /// [`Error::InvalidMasterShares`] with the index of every wrong share.
    pub fn verify_batch(
        &self,
        shares: Vec<UnverifiedMasterShare>,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<Vec<MasterShare>, Error> {
        let claimed = shares.iter().map(UnverifiedMasterShare::claimed).collect::<Result<_, _>>()?;
        match self.points.verify_batch(claimed, rng) {
            Ok(_) => Ok(shares.into_iter().map(|share| share.0).collect()),
            Err(InvalidShares { culprits }) => {
                Err(Error::InvalidMasterShares(culprits.into_iter().map(narrow).collect()))
            }
        }
    }
}

/// A KGC's received share of the master key, not verified. Erased when dropped; `Debug` prints the index.
#[derive(Clone, Debug)]
pub struct UnverifiedMasterShare(MasterShare);

impl UnverifiedMasterShare {
    /// Takes what was received.
    #[must_use]
    pub const fn new(share: MasterShare) -> Self {
        Self(share)
    }

    /// The index it claims.
    #[must_use]
    pub const fn index(&self) -> u16 {
        self.0.index()
    }

    /// Checks it: s_j·P1 = Σ_k j^k·C_k.
    ///
    /// # Errors
    /// [`Error::InvalidMasterShare`].
    pub fn verify(self, commitment: &MasterCommitment) -> Result<MasterShare, Error> {
        // Feldman: s_j·P1 = Σ_k j^k·C_k
        commitment.points.verify(self.claimed()?)?;
        Ok(self.0)
    }

    fn claimed(&self) -> Result<UnverifiedShare<Scalar>, Error> {
        Ok(UnverifiedShare::new(u32::from(self.index()), *self.0.expose())?)
    }
}
