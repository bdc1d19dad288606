//! Shares under a KZG commitment, by the crate `ark-poly-commit`.
//!
//! Source: Kate, Zaverucha, Goldberg, *Constant-Size Commitments to Polynomials and Their Applications*, ASIACRYPT 2010.
//!
//! **Insecure test setup.** The powers of τ are drawn by whoever runs the experiment, who then knows τ, and who knows τ opens
//! a commitment to anything. A real setup is a ceremony after which nobody knows it. Nothing outside this experiment uses
//! KZG: Quiver's quorums check shares with Feldman's commitments, which need no setup.

use std::borrow::Cow;

use ark_bls12_381::{Bls12_381, Fr};
use ark_poly::DenseUVPolynomial;
use ark_poly::univariate::DensePolynomial;
use ark_poly_commit::PCCommitmentState;
use ark_poly_commit::kzg10::{Commitment, KZG10, Powers, Proof, Randomness, VerifierKey};
use ark_serialize::CanonicalSerialize;
use quiver_pairing::{FixedBase, G1, G2, Group, product_is_one, scalar_random};
use rand_chacha::ChaCha20Rng;
use rand_core::RngCore;

use crate::{ExperimentError, Result};

type Coefficients = DensePolynomial<Fr>;
type Kzg = KZG10<Bls12_381, Coefficients>;

/// A dealing of shares under a KZG commitment whose setup is not to be trusted.
pub(super) struct InsecureDealing {
    key: VerifierKey<Bls12_381>,
    commitment: Commitment<Bls12_381>,
    points: Vec<Fr>,
    values: Vec<Fr>,
    proofs: Vec<Proof<Bls12_381>>,
    ours: Points,
}

/// The same points for `quiver-pairing`.
struct Points {
    /// Multiples of P, which every dealing under this setup has.
    generator: FixedBase<G1>,
    /// The proofs, and after them the commitment C.
    proofs_and_commitment: Vec<G1>,
    /// H and τ·H.
    h: G2,
    tau_h: G2,
}

/// Bits of a random weight: with an index of up to 15 bits, the product still fits into 127.
const WEIGHT_BITS: u32 = 112;

impl InsecureDealing {
    /// A setup of exactly `threshold` powers, a polynomial of as many coefficients, the commitment, and a share with its
    /// proof for each of `count`. The threshold is 2 at least.
    ///
    /// # Errors
    /// [`ExperimentError::Kzg`].
    pub(super) fn deal(threshold: u32, count: u32, rng: &mut ChaCha20Rng) -> Result<Self> {
        let coefficients = threshold as usize;
        let (powers, key) = insecure_setup(coefficients, rng)?;
        let polynomial =
            Coefficients::from_coefficients_vec((0..coefficients).map(|_| scalar_random(rng)).collect());
        let (commitment, _) = Kzg::commit(&powers, &polynomial, None, None).map_err(ExperimentError::Kzg)?;
        let points: Vec<Fr> = (1..=count).map(Fr::from).collect();
        let values = points.iter().map(|point| evaluate(&polynomial, point)).collect();
        let hidden = Randomness::empty();
        let open = |point: &Fr| Kzg::open(&powers, &polynomial, *point, &hidden);
        let proofs: Vec<_> =
            points.iter().map(open).collect::<Result<_, _>>().map_err(ExperimentError::Kzg)?;
        let ours = Points::of(&key, &commitment, &proofs)?;
        Ok(Self { key, commitment, points, values, proofs, ours })
    }

    /// Checks every share alone: two pairings each.
    ///
    /// # Errors
    /// [`ExperimentError::Kzg`].
    pub(super) fn verify_each(&self) -> Result<bool> {
        for ((point, value), proof) in self.points.iter().zip(&self.values).zip(&self.proofs) {
            let right = Kzg::check(&self.key, &self.commitment, *point, *value, proof);
            if !right.map_err(ExperimentError::Kzg)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Checks all shares at once by the crate's batch check: two pairings, three multiplications a share.
    ///
    /// # Errors
    /// [`ExperimentError::Kzg`].
    pub(super) fn verify_batch(&self, rng: &mut ChaCha20Rng) -> Result<bool> {
        let commitments = vec![self.commitment; self.points.len()];
        Kzg::batch_check(&self.key, &commitments, &self.points, &self.values, &self.proofs, rng)
            .map_err(ExperimentError::Kzg)
    }

    /// Checks all shares at once over `quiver-pairing`: as all open one commitment at small indices, e(C − v_i·P + i·W_i, H) =
    /// e(W_i, τ·H) for all i comes down to two multi-scalar multiplications by short integers and two pairings. Wrong shares
    /// pass with probability 2^-112.
    ///
    /// For 128 shares that takes 4.1 ms, and this way a hundredth of the published 154 ms is out of reach: of those 1.54 ms, both
    /// pairings take 0.92 ms, and what is left is enough for 900 additions in G1, three and a half for every share and sum, where 112 bits in
    /// buckets take sixteen. Weights for which three are enough have some 20 bits, and wrong shares would pass once in a million times.
    pub(super) fn verify_by_sums(&self, rng: &mut ChaCha20Rng) -> bool {
        let mut weights: Vec<i128> = self.values.iter().map(|_| weight(rng)).collect();
        let mut indexed =
            weights.iter().zip(1..).map(|(weight, index)| weight * index).collect::<Vec<i128>>();
        let value =
            weights.iter().zip(&self.values).map(|(weight, value)| Fr::from(*weight) * value).sum::<Fr>();
        let Points { generator, proofs_and_commitment, h, tau_h } = &self.ours;
        indexed.push(weights.iter().sum());
        weights.push(0);
        let sums = [indexed, weights].map(|integers| G1::msm_small(proofs_and_commitment, &integers));
        let [Ok(shifted), Ok(plain)] = sums else { return false };
        product_is_one(&[(shifted - generator.multiply(&value), *h), (-plain, *tau_h)])
    }
}

fn weight(rng: &mut ChaCha20Rng) -> i128 {
    let mut bytes = [0; 16];
    rng.fill_bytes(&mut bytes[..WEIGHT_BITS as usize / 8]);
    i128::from_le_bytes(bytes)
}

impl Points {
    fn of(
        key: &VerifierKey<Bls12_381>,
        commitment: &Commitment<Bls12_381>,
        proofs: &[Proof<Bls12_381>],
    ) -> Result<Self> {
        Ok(Self {
            generator: FixedBase::new(&converted(&key.g)?),
            proofs_and_commitment: proofs
                .iter()
                .map(|proof| &proof.w)
                .chain([&commitment.0])
                .map(converted)
                .collect::<Result<_>>()?,
            h: converted(&key.h)?,
            tau_h: converted(&key.beta_h)?,
        })
    }
}

fn converted<P: Group>(point: &impl CanonicalSerialize) -> Result<P> {
    let mut bytes = Vec::new();
    point.serialize_compressed(&mut bytes).map_err(|_| ExperimentError::RefusedShare("KZG"))?;
    P::decode(&bytes).map_err(|_| ExperimentError::RefusedShare("KZG"))
}

/// Powers of a τ that is drawn here and could be kept: for measurements only. The powers of another generator, with which
/// commitments are blinded, are cut off, for nothing here is blinded.
fn insecure_setup(
    coefficients: usize,
    rng: &mut ChaCha20Rng,
) -> Result<(Powers<'static, Bls12_381>, VerifierKey<Bls12_381>)> {
    let degree = coefficients.saturating_sub(1);
    let setup = Kzg::setup(degree, false, rng).map_err(ExperimentError::Kzg)?;
    let mut powers = setup.powers_of_g;
    powers.truncate(coefficients);
    let (Some(&g), Some(&gamma_g)) = (powers.first(), setup.powers_of_gamma_g.get(&0)) else {
        return Err(ExperimentError::Kzg(ark_poly_commit::Error::DegreeIsZero));
    };
    let key = VerifierKey {
        g,
        gamma_g,
        h: setup.h,
        beta_h: setup.beta_h,
        prepared_h: setup.prepared_h,
        prepared_beta_h: setup.prepared_beta_h,
    };
    Ok((Powers { powers_of_g: Cow::Owned(powers), powers_of_gamma_g: Cow::Owned(Vec::new()) }, key))
}

fn evaluate(polynomial: &Coefficients, point: &Fr) -> Fr {
    polynomial.coeffs.iter().rev().fold(Fr::from(0_u32), |value, coefficient| value * point + coefficient)
}

#[cfg(test)]
mod tests {
    use rand_core::SeedableRng;

    use super::*;

    fn dealing() -> (InsecureDealing, ChaCha20Rng) {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        (InsecureDealing::deal(3, 4, &mut rng).unwrap(), rng)
    }

    #[test]
    fn shares_pass_alone_and_at_once() {
        let (dealing, mut rng) = dealing();
        assert!(dealing.verify_each().unwrap());
        assert!(dealing.verify_batch(&mut rng).unwrap());
        assert!(dealing.verify_by_sums(&mut rng));
    }

    #[test]
    fn one_wrong_share_does_not_pass() {
        let (mut dealing, mut rng) = dealing();
        dealing.values[2] += Fr::from(1_u32);
        assert!(!dealing.verify_each().unwrap());
        assert!(!dealing.verify_batch(&mut rng).unwrap());
        assert!(!dealing.verify_by_sums(&mut rng));
    }

    #[test]
    fn setup_has_exactly_as_many_powers_as_the_threshold() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let (powers, _) = insecure_setup(5, &mut rng).unwrap();
        assert_eq!(powers.size(), 5);
        let longer = Coefficients::from_coefficients_vec(vec![Fr::from(1_u32); 6]);
        assert!(Kzg::commit(&powers, &longer, None, None).is_err());
    }
}
