//! Threshold signing with FROST (RFC 9591), in two rounds (§5.4).
//!
//! ```text
//! KGC j → coordinator     (D_j, E_j) = (d_j·P, e_j·P)                            SecretShare::commit
//! coordinator → each      the commitments of all that sign                       SigningPackage
//! KGC j → coordinator     z_j = d_j + ρ_j·e_j + λ_j·c·x_j                        SecretShare::sign
//! coordinator             (R, z) = (Σ D_j + ρ_j·E_j, Σ z_j)                      aggregate
//! ```
//!
//! with c = H2(R ‖ P_pub ‖ message), the challenge of all signatures of a single KGC. So the result has the
//! format of a single KGC's, byte for byte, and no verifier can distinguish them.
//!
//! The coordinator may be anybody, and of a partial key it is the drone itself, so that no KGC ever sees s_i.
//! A KGC therefore builds the message on its own, out of what it has itself checked, and takes from the
//! coordinator the commitments alone.

mod aggregate;
mod package;

use alloc::vec::Vec;

use frost_core::keys::SigningShare;
use frost_core::round1::{self, NonceCommitment, SigningCommitments};
use frost_core::round2;
use quiver_ainq::Element;
use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Zeroizing, ct_eq};
use rand_core::CryptoRngCore;
use zeroize::Zeroize;

pub use self::package::SigningPackage;
use crate::public::frost;
use crate::suite::{SCALAR_LEN, element, is_scalar};
use crate::{Error, QuorumSuite, SecretShare};

/// d_j and e_j, good for one signature share. They cannot be copied or stored, signing takes them by value,
/// and they are erased when dropped: two shares made with the same nonces give x_j away.
#[derive(derive_more::Debug)]
#[debug("SigningNonces {{ commitment: {commitment:?}, .. }}")]
pub struct SigningNonces<S: QuorumSuite> {
    nonces: round1::SigningNonces<S::Frost>,
    commitment: Commitment<S>,
}

/// (D_j, E_j), the commitments to a KGC's nonces: 2 · `S::POINT_LEN` bytes. Public.
#[derive(Clone, Copy, PartialEq, Eq, derive_more::Debug)]
#[debug("Commitment({hiding:?}, {binding:?})")]
pub struct Commitment<S: QuorumSuite> {
    hiding: Element<S>,
    binding: Element<S>,
}

/// z_j, a KGC's share of a signature: `S::SCALAR_LEN` bytes. Secret, for t of them add up to a drone's
/// partial key. Erased when dropped. Unverified until aggregated.
#[derive(derive_more::Debug)]
#[debug("SignatureShare({} bytes)", Self::LEN)]
pub struct SignatureShare<S: QuorumSuite> {
    bytes: Zeroizing<[u8; SCALAR_LEN]>,
    suite: core::marker::PhantomData<S>,
}

impl<S: QuorumSuite> SecretShare<S> {
    /// Round 1: draws nonces and commits to them.
    ///
    /// The nonces are hashes of fresh randomness and x_j (RFC 9591, section 4.1), so a weak generator alone
    /// does not reveal them; one that repeats itself would.
    ///
    /// # Errors
    /// [`Error::InvalidPoint`] or [`Error::Frost`] for a nonce that is zero, which does not happen by chance.
    pub fn commit(
        &self,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<(SigningNonces<S>, Commitment<S>), Error> {
        SigningNonces::draw(self.key().signing_share(), rng)
    }

    /// Round 2: signs, and uses the nonces up.
    ///
    /// `package` has the message that this KGC has built, and the commitments that the coordinator chose.
    ///
    /// # Errors
    /// [`Error::WrongVersion`], [`Error::WrongNumber`] for fewer than t or more than n KGCs,
    /// [`Error::UnknownKgc`], [`Error::WrongCommitment`] unless the package has the commitment of these
    /// nonces, and [`Error::DegenerateCommitments`]. Each costs the nonces.
    #[expect(clippy::needless_pass_by_value, reason = "nonces are used once")]
    pub fn sign(
        &self,
        nonces: SigningNonces<S>,
        package: &SigningPackage<S>,
    ) -> Result<SignatureShare<S>, Error> {
        // §3.6: the package must be of this quorum and of this version of the shares.
        package.check(self.parameters(), self.version())?;
        // §3.7: the nonces are moved in: they sign what they are committed to, once.
        if package.commitments().get(&self.kgc()) != Some(&nonces.commitment) {
            return Err(Error::WrongCommitment);
        }
        // RFC 9591, section 5.2: z_j = d_j + ρ_j·e_j + λ_j·c·x_j.
        let share = round2::sign(&package.for_frost()?, &nonces.nonces, self.key())
            .map_err(|_| Error::DegenerateCommitments)?;
        // FROST's own type prints z_j and erases nothing: it ends here.
        SignatureShare::decode(&Zeroizing::new(share.serialize()))
    }
}

impl<S: QuorumSuite> SigningNonces<S> {
    fn draw(
        secret: &SigningShare<S::Frost>,
        mut rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<(Self, Commitment<S>), Error> {
        // RFC 9591, section 5.1: nonces and the commitments to them.
        let (nonces, public) = round1::commit(secret, &mut rng);
        let bytes = |point: &NonceCommitment<S::Frost>| point.serialize().map_err(frost);
        let commitment = Commitment {
            hiding: element(&bytes(public.hiding())?)?,
            binding: element(&bytes(public.binding())?)?,
        };
        Ok((Self { nonces, commitment }, commitment))
    }

    /// The commitment to these nonces.
    #[must_use]
    pub const fn commitment(&self) -> &Commitment<S> {
        &self.commitment
    }
}

impl<S: QuorumSuite> Drop for SigningNonces<S> {
    fn drop(&mut self) {
        // FROST overwrites nonces by plain assignment, which a compiler may leave out if the value is not
        // read again.
        self.nonces.zeroize();
        core::hint::black_box(&self.nonces);
    }
}

impl<S: QuorumSuite> Commitment<S> {
    /// Bytes of the encoding.
    pub const LEN: usize = 2 * S::POINT_LEN;

    /// D_j.
    #[must_use]
    pub const fn hiding(&self) -> &Element<S> {
        &self.hiding
    }

    /// E_j.
    #[must_use]
    pub const fn binding(&self) -> &Element<S> {
        &self.binding
    }

    /// The encoding: D_j, then E_j.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        Writer::with_capacity(Self::LEN).fixed(self.hiding.as_bytes()).fixed(self.binding.as_bytes()).finish()
    }

    /// Reads [`LEN`](Self::LEN) bytes.
    ///
    /// # Errors
    /// [`Error::Malformed`], or [`Error::InvalidPoint`], also for the identity.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let hiding = element(reader.take(S::POINT_LEN)?)?;
        let binding = element(reader.take(S::POINT_LEN)?)?;
        reader.end()?;
        Ok(Self { hiding, binding })
    }

    fn for_frost(&self) -> Result<SigningCommitments<S::Frost>, Error> {
        let point = |point: &Element<S>| NonceCommitment::deserialize(point.as_bytes()).map_err(frost);
        Ok(SigningCommitments::new(point(&self.hiding)?, point(&self.binding)?))
    }
}

impl<S: QuorumSuite> SignatureShare<S> {
    /// Bytes of the encoding.
    pub const LEN: usize = SCALAR_LEN;

    /// Reads [`LEN`](Self::LEN) bytes.
    ///
    /// # Errors
    /// [`Error::InvalidScalar`] unless they are the canonical encoding of a scalar.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let own = bytes.try_into().map(Zeroizing::new).map_err(|_| Error::InvalidScalar)?;
        if !is_scalar::<S>(bytes) {
            return Err(Error::InvalidScalar);
        }
        Ok(Self { bytes: own, suite: core::marker::PhantomData })
    }

    /// z_j, little-endian.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(self.bytes.to_vec())
    }

    fn for_frost(&self) -> Result<round2::SignatureShare<S::Frost>, Error> {
        round2::SignatureShare::deserialize(&*self.bytes).map_err(|_| Error::InvalidScalar)
    }
}

impl<S: QuorumSuite> PartialEq for SignatureShare<S> {
    fn eq(&self, other: &Self) -> bool {
        ct_eq(&*self.bytes, &*other.bytes)
    }
}

impl<S: QuorumSuite> Eq for SignatureShare<S> {}
