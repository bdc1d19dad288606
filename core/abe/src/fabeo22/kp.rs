//! FABEO with key policies: keys have a policy, ciphertexts attributes (figure 1, right).
//!
//! | algorithm | paper | here |
//! |---|---|---|
//! | key for a policy | sk1_i = g1^(M_i·(α‖v)) · H(π(i))^r'[ρ(i)], sk2_j = g2^r'[j] | `FabeoKpKeyElements::leaves`, `FabeoKpKeyElements::uses` |
//! | encryption to attributes S | ct1_u = H(u)^s, ct2 = g2^s | `CiphertextElements::attributes`, `CiphertextElements::s` |
//! | the element | e(g1,g2)^(αs) | s·y |
//!
//! # Correctness
//! With Σ γ_i λ_i = α over the leaves used, and leaves by use number j:
//!
//! ```text
//! e(Σ γ_i sk1_i, ct2) − Σ_j e(Σ_{ρ(i)=j} γ_i ct1_π(i), sk2_j)
//!   = e(Σ γ_i (λ_i g1 + r'[ρ(i)] H(π(i))), s g2) − Σ_j e(Σ_{ρ(i)=j} γ_i s H(π(i)), r'[j] g2)
//!   = e(α g1, s g2) + Σ_i γ_i s r'[ρ(i)] e(H(π(i)), g2) − the same
//!   = α s e(g1, g2)
//! ```
//!
//! Two pairings, and one more for every further use number among the leaves used, all in one Miller loop.
//!
//! # Sizes
//! | | bytes |
//! |---|---|
//! | key, l leaves, attributes used up to τ times | 39 + policy + 48·l + 96·τ |
//! | ciphertext, n attributes | 39 + attributes + 48·n + 96 |

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

/// FABEO with the policy in the key: for data whose reader is unknown when a sensor seals it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FabeoKp;

impl Variant for FabeoKp {
    const ATTRIBUTE_DOMAIN: &'static str =
        "QUIVER-ABE-FABEO22-KP-v1-ATTRIBUTE-with-BLS12381G1_XMD:SHA-256_SSWU_RO_";
    const BASE_DOMAIN: &'static str = "QUIVER-ABE-FABEO22-KP-v1-BASE-with-BLS12381G1_XMD:SHA-256_SSWU_RO_";
}

/// A key's elements.
pub struct FabeoKpKeyElements {
    /// sk1: λ_i·g1 + r'[ρ(i)]·H(π(i)), per leaf from left to right.
    leaves: Zeroizing<Vec<G1>>,
    /// sk2: r'[j]·g2, per use number.
    uses: Zeroizing<Vec<G2>>,
}

/// A ciphertext's elements.
#[derive(Clone)]
pub struct CiphertextElements {
    /// ct1: s·H(u), per attribute in ascending order.
    attributes: Vec<G1>,
    /// ct2: s·g2.
    s: G2,
}

impl SchemeAlgebra for FabeoKp {
    const ID: &'static str = "fabeo22-kp";
    const NUMBER: u8 = 2;

    type KeyTerms = AccessTree;
    type CiphertextTerms = AttributeSet;
    type Public = FabeoParameters<Self>;
    type Master = Alpha;
    type KeyElements = FabeoKpKeyElements;
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
        formula: &Formula,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<FabeoKpKeyElements, AbeError> {
        // FABEO, figure 1, KeyGen: λ_i = M_i·(α‖v)
        let shares = share(formula, master.0, rng)?;
        // r' ← Z_p^τ
        let randomness: Zeroizing<Vec<Scalar>> =
            Zeroizing::new((0..formula.uses()).map(|_| nonzero(rng)).collect());
        // sk1_i = λ_i·g1 + r'[ρ(i)]·H(π(i))
        let mut leaves = public.times_leaves(formula, &randomness)?;
        for (leaf, share) in leaves.iter_mut().zip(shares.iter()) {
            *leaf += public.times_g1(share);
        }
        Ok(FabeoKpKeyElements {
            leaves,
            // sk2_j = r'[j]·g2
            uses: Zeroizing::new(randomness.iter().map(|r| public.times_g2(r)).collect()),
        })
    }

    fn encapsulate(
        public: &FabeoParameters<Self>,
        atoms: &Atoms,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<(CiphertextElements, SharedElement), AbeError> {
        // FABEO, figure 1, Enc: one s for all attributes.
        let s = Zeroizing::new(nonzero(rng));
        // ct1_u = s·H(u)
        let uses: Vec<_> = atoms.iter().map(|attribute| (attribute, &*s)).collect();
        let attributes = public.times_hash(&uses)?.to_vec();
        // ct2 = s·g2; the element is s·y = α s·e(g1, g2).
        Ok((CiphertextElements { attributes, s: public.times_g2(&s) }, shared(public.times_y(&s))))
    }

    fn decapsulate(
        (formula, key): (&Formula, &FabeoKpKeyElements),
        (atoms, sent): (&Atoms, &CiphertextElements),
    ) -> Result<SharedElement, AbeError> {
        // FABEO, figure 1, Dec: γ_i with Σ γ_i·λ_i = α, over the cheapest leaves that satisfy the policy.
        let selection = formula.select(atoms.set(), cost).ok_or(AbeError::NotSatisfied)?;
        let weights = Weights::of(formula, &selection);
        let leaf = |index: usize| formula.leaves().get(*selection.leaves().get(index)?);
        // e(Σ γ_i·sk1_i, ct2)
        let keys = weighted(&weights, |index| key.leaves.get(*selection.leaves().get(index)?).copied())?;
        let mut pairs = Zeroizing::new(Vec::with_capacity(1 + formula.uses()));
        pairs.push((keys, sent.s));
        for number in uses(formula, &selection) {
            // − e(Σ_{ρ(i) = j} γ_i·ct1_π(i), sk2_j)
            let attributes = weighted(&weights, |index| {
                let leaf = leaf(index).filter(|leaf| leaf.use_number() == number)?;
                sent.attributes.get(atoms.place(leaf.attribute())?).copied()
            })?;
            let key = key.uses.get(number).ok_or(AbeError::Malformed("use numbers of a formula"))?;
            pairs.push((-attributes, *key));
        }
        // All pairs in one Miller loop: what is left is α s·e(g1, g2).
        Ok(shared(pairing_product(&pairs)))
    }

    fn admits(key: &AccessTree, ciphertext: &AttributeSet) -> bool {
        key.satisfied_by(ciphertext)
    }
}

impl ElementEncoding<Formula> for FabeoKpKeyElements {
    fn encoded_len(&self) -> usize {
        G1::ENCODED_LEN * self.leaves.len() + G2::ENCODED_LEN * self.uses.len()
    }

    fn write(&self, writer: &mut Writer) {
        write_points(writer, &self.leaves);
        write_points(writer, &self.uses);
    }

    fn read(reader: &mut Reader<'_>, formula: &Formula) -> Result<Self, AbeError> {
        Ok(Self {
            leaves: read_points(reader, formula.leaves().len())?,
            uses: read_points(reader, formula.uses())?,
        })
    }
}

impl ElementEncoding<Atoms> for CiphertextElements {
    fn encoded_len(&self) -> usize {
        G1::ENCODED_LEN * self.attributes.len() + G2::ENCODED_LEN
    }

    fn write(&self, writer: &mut Writer) {
        write_points(writer, &self.attributes);
        writer.fixed(self.s.encode().as_ref());
    }

    fn read(reader: &mut Reader<'_>, atoms: &Atoms) -> Result<Self, AbeError> {
        Ok(Self { attributes: read_points(reader, atoms.len())?.to_vec(), s: read_point(reader)? })
    }
}
