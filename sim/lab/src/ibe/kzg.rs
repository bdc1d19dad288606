//! Shares under a KZG commitment, by the crate `ark-poly-commit`.
//!
//! Source: Kate, Zaverucha, Goldberg, *Constant-Size Commitments to Polynomials and Their Applications*,
//! ASIACRYPT 2010.
//!
//! **Insecure test setup.** The experiment itself draws the powers of τ, and a holder of τ opens a commitment
//! to anything. A real setup is a ceremony after which nobody knows τ. Nothing outside this experiment uses
//! KZG: Quiver's quorums check shares with Feldman's commitments, which need no setup.

use std::borrow::Cow;

use ark_bls12_381::{Bls12_381, Fr};
use ark_ff::{AdditiveGroup, Field, Zero, batch_inversion};
use ark_poly::DenseUVPolynomial;
use ark_poly::univariate::DensePolynomial;
use ark_poly_commit::PCCommitmentState;
use ark_poly_commit::kzg10::{Commitment, KZG10, Powers, Proof, Randomness, VerifierKey};
use ark_serialize::CanonicalSerialize;
use quiver_pairing::{
    FixedBase, G1, G2, Group, hash_to_scalar, product_is_one, scalar_encode, scalar_random,
};
use rand_chacha::ChaCha20Rng;
use rand_core::RngCore;

use crate::{LabError, Result};

type Coefficients = DensePolynomial<Fr>;
type Kzg = KZG10<Bls12_381, Coefficients>;

/// A dealing of shares under a KZG commitment whose setup is not to be trusted.
pub(super) struct InsecureDealing {
    key: VerifierKey<Bls12_381>,
    commitment: Commitment<Bls12_381>,
    points: Vec<Fr>,
    values: Vec<Fr>,
    proofs: Vec<Proof<Bls12_381>>,
    ours: KzgPoints,
}

/// The domain of the point at which a dealer opens for all shares.
const OPENING: &str = "quiver-lab kzg opening for all shares";

/// The same points for `quiver-pairing`.
struct KzgPoints {
    /// Multiples of P, which every dealing under this setup has.
    generator: FixedBase<G1>,
    /// The proofs, and after them the commitment C.
    proofs_and_commitment: Vec<G1>,
    /// The commitment C.
    commitment: G1,
    /// The proof W of the opening for all shares.
    opening: G1,
    /// H and τ·H.
    h: G2,
    tau_h: G2,
}

/// Bits of a random weight: with an index of up to 15 bits, the product still fits into 127.
const WEIGHT_BITS: u32 = 112;

impl InsecureDealing {
    /// A setup of exactly `threshold` powers, a polynomial of as many coefficients, the commitment, and a
    /// share with its proof for each of `count`. The threshold is 2 at least.
    ///
    /// # Errors
    /// [`LabError::Kzg`].
    pub(super) fn deal(threshold: u32, count: u32, rng: &mut ChaCha20Rng) -> Result<Self> {
        let coefficients = threshold as usize;
        let (powers, key) = insecure_setup(coefficients, rng)?;
        let polynomial =
            Coefficients::from_coefficients_vec((0..coefficients).map(|_| scalar_random(rng)).collect());
        let (commitment, _) = Kzg::commit(&powers, &polynomial, None, None).map_err(LabError::Kzg)?;
        let points: Vec<Fr> = (1..=count).map(Fr::from).collect();
        let values = points.iter().map(|point| evaluate(&polynomial, point)).collect();
        Self::open(&powers, key, commitment, &polynomial, points, values)
    }

    /// A proof for each share, and one for all of them. A dealer who lies gives values that are not the
    /// polynomial's.
    fn open(
        powers: &Powers<'_, Bls12_381>,
        key: VerifierKey<Bls12_381>,
        commitment: Commitment<Bls12_381>,
        polynomial: &Coefficients,
        points: Vec<Fr>,
        values: Vec<Fr>,
    ) -> Result<Self> {
        let hidden = Randomness::empty();
        let open = |point: &Fr| Kzg::open(powers, polynomial, *point, &hidden).map_err(LabError::Kzg);
        let proofs: Vec<_> = points.iter().map(open).collect::<Result<_>>()?;
        let opening = open(&challenge(&converted(&commitment.0)?, &values))?;
        let ours = KzgPoints::of(&key, &commitment, &proofs, &opening)?;
        Ok(Self { key, commitment, points, values, proofs, ours })
    }

    /// Checks every share alone: two pairings each.
    ///
    /// # Errors
    /// [`LabError::Kzg`].
    pub(super) fn verify_each(&self) -> Result<bool> {
        for ((point, value), proof) in self.points.iter().zip(&self.values).zip(&self.proofs) {
            let right = Kzg::check(&self.key, &self.commitment, *point, *value, proof);
            if !right.map_err(LabError::Kzg)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Checks all shares at once by the crate's batch check: two pairings, three multiplications a share.
    ///
    /// # Errors
    /// [`LabError::Kzg`].
    pub(super) fn verify_batch(&self, rng: &mut ChaCha20Rng) -> Result<bool> {
        let commitments = vec![self.commitment; self.points.len()];
        Kzg::batch_check(&self.key, &commitments, &self.points, &self.values, &self.proofs, rng)
            .map_err(LabError::Kzg)
    }

    /// Checks all shares at once by their own proofs, over `quiver-pairing`: as all open one commitment at
    /// small indices, e(C − v_i·P + i·W_i, H) = e(W_i, τ·H) for all i comes down to two multi-scalar
    /// multiplications by short integers and two pairings. Wrong shares pass with probability 2^-112.
    pub(super) fn verify_by_sums(&self, rng: &mut ChaCha20Rng) -> bool {
        let mut weights: Vec<i128> = self.values.iter().map(|_| weight(rng)).collect();
        let mut indexed =
            weights.iter().zip(1..).map(|(weight, index)| weight * index).collect::<Vec<i128>>();
        let value =
            weights.iter().zip(&self.values).map(|(weight, value)| Fr::from(*weight) * value).sum::<Fr>();
        let KzgPoints { generator, proofs_and_commitment, h, tau_h, .. } = &self.ours;
        indexed.push(weights.iter().sum());
        weights.push(0);
        let sums = [indexed, weights].map(|integers| G1::msm_small(proofs_and_commitment, &integers));
        let [Ok(shifted), Ok(plain)] = sums else { return false };
        product_is_one(&[(shifted - generator.multiply(&value), *h), (-plain, *tau_h)])
    }

    /// Checks all shares at once by one opening. The n values are those of exactly one polynomial g of a
    /// degree below n, and the commitment's polynomial F has a degree below the setup's number of powers, at
    /// most n. If they differ they agree at n − 1 points at most; so when F(z) = g(z) at a point z that is
    /// hashed from the commitment and all values, they are one, and every value is F's. Wrong shares pass
    /// with probability n / r, for 128 shares 2^-247, for each hash that a dealer computes.
    ///
    /// The dealer sends one proof of 48 bytes more. Proofs of single shares are then needed only by who holds
    /// single shares, and to find out which are wrong.
    pub(super) fn verify_by_opening(&self) -> bool {
        let KzgPoints { generator, commitment, opening, h, tau_h, .. } = &self.ours;
        let z = challenge(commitment, &self.values);
        // e(C − g(z)·P + z·W, H) = e(W, τ·H)
        interpolate(&self.values, &z).is_some_and(|value| {
            let shifted = *commitment - generator.multiply(&value) + *opening * z;
            product_is_one(&[(shifted, *h), (-*opening, *tau_h)])
        })
    }
}

/// z, from all that a dealer might want to choose after it.
fn challenge(commitment: &G1, values: &[Fr]) -> Fr {
    let values: Vec<u8> = values.iter().flat_map(|value| *scalar_encode(value)).collect();
    hash_to_scalar(OPENING, &[commitment.encode().as_ref(), &values])
}

/// g(z) for the polynomial g of the lowest degree with g(i) = v_i for i = 1, 2, …, n: Lagrange's formula in
/// barycentric form, g(z) = Π (z − i) · Σ v_i / ((z − i) · Π_(j≠i) (i − j)), where the last product is ± (i −
/// 1)! · (n − i)!. None if z is one of the n.
fn interpolate(values: &[Fr], z: &Fr) -> Option<Fr> {
    let factorials: Vec<Fr> = (1..=values.len() as u64)
        .scan(Fr::ONE, |factorial, factor| Some(std::mem::replace(factorial, *factorial * Fr::from(factor))))
        .collect();
    let differences: Vec<Fr> = (1..=values.len() as u64).map(|index| *z - Fr::from(index)).collect();
    let product: Fr = differences.iter().product();
    let mut inverses: Vec<Fr> = factorials
        .iter()
        .zip(factorials.iter().rev())
        .zip(&differences)
        .map(|((below, above), difference)| *below * above * difference)
        .collect();
    batch_inversion(&mut inverses);
    // The sign of the last is +, and they alternate.
    let sum = values.iter().zip(&inverses).rev().enumerate().fold(
        Fr::ZERO,
        |sum, (from_last, (value, inverse))| {
            if from_last % 2 == 0 { sum + *value * inverse } else { sum - *value * inverse }
        },
    );
    (!product.is_zero()).then(|| sum * product)
}

fn weight(rng: &mut ChaCha20Rng) -> i128 {
    let mut bytes = [0; 16];
    rng.fill_bytes(&mut bytes[..WEIGHT_BITS as usize / 8]);
    i128::from_le_bytes(bytes)
}

impl KzgPoints {
    fn of(
        key: &VerifierKey<Bls12_381>,
        commitment: &Commitment<Bls12_381>,
        proofs: &[Proof<Bls12_381>],
        opening: &Proof<Bls12_381>,
    ) -> Result<Self> {
        Ok(Self {
            generator: FixedBase::new(&converted(&key.g)?),
            proofs_and_commitment: proofs
                .iter()
                .map(|proof| &proof.w)
                .chain([&commitment.0])
                .map(converted)
                .collect::<Result<_>>()?,
            commitment: converted(&commitment.0)?,
            opening: converted(&opening.w)?,
            h: converted(&key.h)?,
            tau_h: converted(&key.beta_h)?,
        })
    }
}

fn converted<P: Group>(point: &impl CanonicalSerialize) -> Result<P> {
    let mut bytes = Vec::new();
    point.serialize_compressed(&mut bytes).map_err(|_| LabError::RefusedShare("KZG"))?;
    P::decode(&bytes).map_err(|_| LabError::RefusedShare("KZG"))
}

/// Powers of a τ that is drawn here and could be kept: for measurements only. The powers of another
/// generator, with which commitments are blinded, are cut off, for nothing here is blinded.
fn insecure_setup(
    coefficients: usize,
    rng: &mut ChaCha20Rng,
) -> Result<(Powers<'static, Bls12_381>, VerifierKey<Bls12_381>)> {
    let degree = coefficients.saturating_sub(1);
    let setup = Kzg::setup(degree, false, rng).map_err(LabError::Kzg)?;
    let mut powers = setup.powers_of_g;
    powers.truncate(coefficients);
    let (Some(&g), Some(&gamma_g)) = (powers.first(), setup.powers_of_gamma_g.get(&0)) else {
        return Err(LabError::Kzg(ark_poly_commit::Error::DegreeIsZero));
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
        assert!(dealing.verify_by_opening());
    }

    #[test]
    fn one_wrong_share_does_not_pass() {
        let (mut dealing, mut rng) = dealing();
        dealing.values[2] += Fr::from(1_u32);
        assert!(!dealing.verify_each().unwrap());
        assert!(!dealing.verify_batch(&mut rng).unwrap());
        assert!(!dealing.verify_by_sums(&mut rng));
        assert!(!dealing.verify_by_opening());
    }

    #[test]
    fn dealer_cannot_open_for_shares_that_are_not_the_polynomials() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let (powers, key) = insecure_setup(3, &mut rng).unwrap();
        let polynomial = Coefficients::from_coefficients_vec(vec![Fr::from(5_u32); 3]);
        let (commitment, _) = Kzg::commit(&powers, &polynomial, None, None).unwrap();
        let points: Vec<Fr> = (1_u32..=7).map(Fr::from).collect();
        let values: Vec<Fr> = points.iter().map(|point| evaluate(&polynomial, point)).collect();
        let verified = |values: Vec<Fr>| {
            let key = key.clone();
            InsecureDealing::open(&powers, key, commitment, &polynomial, points.clone(), values)
                .unwrap()
                .verify_by_opening()
        };
        assert!(verified(values.clone()));
        for wrong in 0..values.len() {
            let mut values = values.clone();
            values[wrong] += Fr::from(1_u32);
            assert!(!verified(values));
        }
        // All of them, on another polynomial of the right degree.
        assert!(!verified(values.iter().map(|value| *value + Fr::from(1_u32)).collect()));
    }

    #[test]
    fn interpolation_is_that_of_the_polynomial_through_the_values() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        for count in 1..=9_u32 {
            let polynomial =
                Coefficients::from_coefficients_vec((0..count).map(|_| scalar_random(&mut rng)).collect());
            let values: Vec<Fr> = (1..=count).map(|index| evaluate(&polynomial, &Fr::from(index))).collect();
            let z = scalar_random(&mut rng);
            assert_eq!(interpolate(&values, &z), Some(evaluate(&polynomial, &z)));
            assert_eq!(interpolate(&values, &Fr::from(count)), None);
        }
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
