//! FABEO with ciphertext policies: keys have attributes, ciphertexts a policy (figure 1, left).
//!
//! | algorithm | paper | here |
//! |---|---|---|
//! | key for attributes S | sk1 = g1^α · b^r, sk2_u = H(u)^r, sk3 = g2^r | `FabeoCpKeyElements::alpha`, `FabeoCpKeyElements::attributes`, `FabeoCpKeyElements::r` |
//! | encryption to a policy | ct1 = g2^s1, ct2_j = g2^s'[j], ct3_i = b^(M_i·(s1‖v)) · H(π(i))^s'[ρ(i)] | `CiphertextElements::s1`, `CiphertextElements::uses`, `CiphertextElements::leaves` |
//! | the element | e(g1,g2)^(α s1) | s1·y |
//!
//! # Correctness
//! With Σ γ_i λ_i = s1 over the leaves used, and leaves by use number j:
//!
//! ```text
//! e(sk1, ct1) + Σ_j e(Σ_{ρ(i)=j} γ_i sk2_π(i), ct2_j) − e(Σ γ_i ct3_i, sk3)
//!   = e(α g1 + r b, s1 g2) + Σ_i γ_i r s'[ρ(i)] e(H(π(i)), g2) − e(s1 b + Σ_i γ_i s'[ρ(i)] H(π(i)), r g2)
//!   = α s1 e(g1, g2) + r s1 e(b, g2) − s1 r e(b, g2)
//!   = α s1 e(g1, g2)
//! ```
//!
//! Three pairings, and one more for every further use number among the leaves used, all in one Miller loop.
//!
//! # Sizes
//! | | bytes |
//! |---|---|
//! | key, n attributes | 39 + attributes + 48 + 48·n + 96 |
//! | ciphertext, l leaves, attributes used up to τ times | 39 + policy + 96 + 96·τ + 48·l |

use alloc::vec::Vec;

use quiver_crypto::Zeroizing;
use quiver_crypto::canonical::{Reader, Writer};
use quiver_pairing::{G1, G2, Group, Scalar, pairing_product};
use quiver_policy::{AccessTree, AttributeSet, Formula};
use rand_core::CryptoRngCore;

use super::{Alpha, FabeoParameters, Variant, cost, setup, uses, weighted};
use crate::elements::{nonzero, read_point, read_points, shared, write_points};
use crate::scheme_algebra::{ElementEncoding, SchemeAlgebra, SharedElement};
use crate::shares::{Weights, share};
use crate::terms::Atoms;
use crate::{AbeError, Universe};

/// FABEO with the policy in the ciphertext: for orders that are sealed to a role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FabeoCp;

impl Variant for FabeoCp {
    const ATTRIBUTE_DOMAIN: &'static str =
        "QUIVER-ABE-FABEO22-CP-v1-ATTRIBUTE-with-BLS12381G1_XMD:SHA-256_SSWU_RO_";
    const BASE_DOMAIN: &'static str = "QUIVER-ABE-FABEO22-CP-v1-BASE-with-BLS12381G1_XMD:SHA-256_SSWU_RO_";
}

/// A key's elements.
pub struct FabeoCpKeyElements {
    /// sk1: α·g1 + r·b.
    alpha: Zeroizing<G1>,
    /// sk2: r·H(u), per attribute in ascending order.
    attributes: Zeroizing<Vec<G1>>,
    /// sk3: r·g2.
    r: Zeroizing<G2>,
}

/// A ciphertext's elements.
#[derive(Clone)]
pub struct CiphertextElements {
    /// ct1: s1·g2.
    s1: G2,
    /// ct2: s'[j]·g2, per use number.
    uses: Vec<G2>,
    /// ct3: λ_i·b + s'[ρ(i)]·H(π(i)), per leaf from left to right.
    leaves: Vec<G1>,
}

impl SchemeAlgebra for FabeoCp {
    const ID: &'static str = "fabeo22-cp";
    const NUMBER: u8 = 3;

    type KeyTerms = AttributeSet;
    type CiphertextTerms = AccessTree;
    type Public = FabeoParameters<Self>;
    type Master = Alpha;
    type KeyElements = FabeoCpKeyElements;
    type CiphertextElements = CiphertextElements;

    fn setup(
        universe: &Universe,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<(FabeoParameters<Self>, Alpha), AbeError> {
        setup(universe, rng)
    }

    fn prepare(public: &mut FabeoParameters<Self>, expected: &Universe) {
        public.build_tables(expected);
    }

    fn derive(
        public: &FabeoParameters<Self>,
        master: &Alpha,
        atoms: &Atoms,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<FabeoCpKeyElements, AbeError> {
        // FABEO, figure 1, KeyGen: one r for the whole key ties its parts together.
        let r = Zeroizing::new(nonzero(rng));
        let base = public.times_b(&r);
        let uses: Vec<_> = atoms.iter().map(|attribute| (attribute, &*r)).collect();
        Ok(FabeoCpKeyElements {
            // sk1 = α·g1 + r·b
            alpha: Zeroizing::new(public.times_g1(&master.0) + base),
            // sk2_u = r·H(u)
            attributes: public.times_hash(&uses)?,
            // sk3 = r·g2
            r: Zeroizing::new(public.times_g2(&r)),
        })
    }

    fn encapsulate(
        public: &FabeoParameters<Self>,
        formula: &Formula,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<(CiphertextElements, SharedElement), AbeError> {
        // FABEO, figure 1, Enc: s1 is the secret that the policy shares.
        let s1 = Zeroizing::new(nonzero(rng));
        // λ_i = M_i·(s1‖v)
        let shares = share(formula, *s1, rng)?;
        // s' ← Z_p^τ
        let randomness: Zeroizing<Vec<Scalar>> =
            Zeroizing::new((0..formula.uses()).map(|_| nonzero(rng)).collect());
        // ct3_i = λ_i·b + s'[ρ(i)]·H(π(i))
        let masks = public.times_leaves(formula, &randomness)?;
        let leaves = public
            .times_b_each(&shares)
            .iter()
            .zip(masks.iter())
            .map(|(share, mask)| *share + *mask)
            .collect();
        let sent = CiphertextElements {
            // ct1 = s1·g2, ct2_j = s'[j]·g2
            s1: public.times_g2(&s1),
            uses: randomness.iter().map(|s| public.times_g2(s)).collect(),
            leaves,
        };
        // The element: s1·y = α s1·e(g1, g2).
        Ok((sent, shared(public.times_y(&s1))))
    }

    fn decapsulate(
        (atoms, key): (&Atoms, &FabeoCpKeyElements),
        (formula, sent): (&Formula, &CiphertextElements),
    ) -> Result<SharedElement, AbeError> {
        // FABEO, figure 1, Dec: γ_i with Σ γ_i·λ_i = s1, over the cheapest leaves that satisfy the policy.
        let selection = formula.select(atoms.set(), cost).ok_or(AbeError::NotSatisfied)?;
        let weights = Weights::of(formula, &selection);
        let leaf = |index: usize| formula.leaves().get(*selection.leaves().get(index)?);
        // e(sk1, ct1) − e(Σ γ_i·ct3_i, sk3)
        let shares = weighted(&weights, |index| sent.leaves.get(*selection.leaves().get(index)?).copied())?;
        let mut pairs = Zeroizing::new(Vec::with_capacity(2 + formula.uses()));
        pairs.extend([(*key.alpha, sent.s1), (-shares, *key.r)]);
        for number in uses(formula, &selection) {
            // e(Σ_{ρ(i) = j} γ_i·sk2_π(i), ct2_j)
            let attributes = weighted(&weights, |index| {
                let leaf = leaf(index).filter(|leaf| leaf.use_number() == number)?;
                key.attributes.get(atoms.place(leaf.attribute())?).copied()
            })?;
            let sent = sent.uses.get(number).ok_or(AbeError::Malformed("use numbers of a formula"))?;
            pairs.push((attributes, *sent));
        }
        // All pairs in one Miller loop: what is left is α s1·e(g1, g2).
        Ok(shared(pairing_product(&pairs)))
    }

    fn admits(key: &AttributeSet, ciphertext: &AccessTree) -> bool {
        ciphertext.satisfied_by(key)
    }
}

impl ElementEncoding<Atoms> for FabeoCpKeyElements {
    fn encoded_len(&self) -> usize {
        G1::ENCODED_LEN * (1 + self.attributes.len()) + G2::ENCODED_LEN
    }

    fn write(&self, writer: &mut Writer) {
        writer.fixed(self.alpha.encode().as_ref());
        write_points(writer, &self.attributes);
        writer.fixed(self.r.encode().as_ref());
    }

    fn read(reader: &mut Reader<'_>, atoms: &Atoms) -> Result<Self, AbeError> {
        Ok(Self {
            alpha: Zeroizing::new(read_point(reader)?),
            attributes: read_points(reader, atoms.len())?,
            r: Zeroizing::new(read_point(reader)?),
        })
    }
}

impl ElementEncoding<Formula> for CiphertextElements {
    fn encoded_len(&self) -> usize {
        G2::ENCODED_LEN * (1 + self.uses.len()) + G1::ENCODED_LEN * self.leaves.len()
    }

    fn write(&self, writer: &mut Writer) {
        writer.fixed(self.s1.encode().as_ref());
        write_points(writer, &self.uses);
        write_points(writer, &self.leaves);
    }

    fn read(reader: &mut Reader<'_>, formula: &Formula) -> Result<Self, AbeError> {
        Ok(Self {
            s1: read_point(reader)?,
            uses: read_points(reader, formula.uses())?.to_vec(),
            leaves: read_points(reader, formula.leaves().len())?.to_vec(),
        })
    }
}
