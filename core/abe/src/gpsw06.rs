//! GPSW: Goyal, Pandey, Sahai, Waters, *Attribute-Based Encryption for Fine-Grained Access Control of
//! Encrypted Data*, CCS 2006, eprint 2006/309, section 4: key policy, small universe, selectively secure. The
//! reference others are measured by.
//!
//! The paper's pairing is symmetric; here ciphertexts live in G1 and keys in G2.
//!
//! | algorithm | paper | here |
//! |---|---|---|
//! | setup | t_i, y; T_i = g^t_i, Y = e(g,g)^y | `Master`; T_i = t_i·g1, Y = y·e(g1, g2) in `GpswParameters` |
//! | encryption to attributes γ | E_i = T_i^s for i ∈ γ; e(g,g)^(ys) | E_i = s·T_i, `GpswCiphertextElements`; s·Y |
//! | key for a tree T | D_x = g^(q_x(0) / t_i), i = att(x) | D_x = (q_x(0) / t_i)·g2, `GpswKeyElements` |
//! | decryption | recursively, Π F_z^Δ at every node | Σ e(γ_x·E_i, D_x) over the leaves used, γ_x the product of Δ on the way |
//!
//! # Correctness
//! With Σ γ_x q_x(0) = y over the leaves used:
//!
//! ```text
//! Σ e(γ_x s t_i g1, (q_x(0) / t_i) g2) = Σ γ_x s q_x(0) e(g1, g2) = y s e(g1, g2)
//! ```
//!
//! One Miller loop over as many pairs as leaves are used and one final exponentiation. Leaves of one
//! attribute need no use numbers: D_x − D_x' is divided by t_i as each of them is, and so tells those nothing
//! who lack the attribute.
//!
//! # Sizes
//! | | bytes |
//! |---|---|
//! | parameters, universe of n | 3 + 4 + attributes + 48·n + 576 |
//! | master key | 3 + 32 + 4 + 32·n + 32 |
//! | key, l leaves | 39 + policy + 96·l |
//! | ciphertext, n attributes | 39 + attributes + 48·n |

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use quiver_crypto::Zeroizing;
use quiver_crypto::canonical::{Reader, Writer};
use quiver_pairing::{FixedBase, G1, G2, Group, Gt, SCALAR_LEN, Scalar, pairing, pairing_product};
use quiver_policy::{AccessTree, AttributeSet, Formula, Leaf};
use quiver_sharing::Field;
use rand_core::CryptoRngCore;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::elements::{nonzero, read_gt, read_points, read_scalar, shared, write_points, write_scalar};
use crate::scheme_algebra::{ElementEncoding, SchemeAlgebra, SharedElement};
use crate::shares::{Weights, share};
use crate::terms::Atoms;
use crate::universe::Listed;
use crate::{AbeError, IS_SMALL, MAX_UNIVERSE, Universe};

/// Attributes for which [`prepare`](crate::Scheme::prepare) makes tables: 49,152 bytes each, 3 MiB in all.
const TABLED: usize = 64;

/// Bits of a window in an attribute's table.
const WINDOW: u32 = 4;

/// Multiplications of one base from which on a table of it is worth making and throwing away.
const WORTH_A_TABLE: usize = 32;

/// GPSW over a small universe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gpsw06;

/// Public parameters of an authority.
#[derive(Clone)]
pub struct GpswParameters {
    universe: Listed,
    /// T_i = t_i·g1, in the universe's order.
    attributes: Vec<G1>,
    /// Y = y·e(g1, g2).
    y: Gt,
    tables: Option<Arc<GpswTables>>,
}

/// Tables of Y and g2, 1.1 MB, and of the first attributes that are expected.
struct GpswTables {
    y: FixedBase<Gt>,
    g2: FixedBase<G2>,
    /// Tables by index in the universe.
    attributes: BTreeMap<usize, FixedBase<G1>>,
}

/// An authority's secrets, erased when dropped.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Master {
    /// t_i, in the universe's order.
    attributes: Vec<Scalar>,
    y: Scalar,
}

/// A key's elements: D_x per leaf from left to right.
pub struct GpswKeyElements(Zeroizing<Vec<G2>>);

/// A ciphertext's elements: E_i per attribute in ascending order.
#[derive(Clone)]
pub struct GpswCiphertextElements(Vec<G1>);

impl GpswParameters {
    /// The tables, if there are any. A build for boards has no code for them.
    fn tables(&self) -> Option<&GpswTables> {
        if IS_SMALL { None } else { self.tables.as_deref() }
    }

    /// scalar·Y
    fn times_y(&self, scalar: &Scalar) -> Gt {
        self.tables().map_or_else(|| self.y * scalar, |tables| tables.y.multiply(scalar))
    }

    /// scalar·T_i
    fn times_attribute(&self, place: usize, scalar: &Scalar) -> Option<G1> {
        match self.tables().and_then(|tables| tables.attributes.get(&place)) {
            Some(table) => Some(table.multiply(scalar)),
            None => self.attributes.get(place).map(|point| *point * scalar),
        }
    }

    /// Each scalar·g2.
    fn times_g2(&self, scalars: &[Scalar]) -> Vec<G2> {
        if let Some(tables) = self.tables() {
            return scalars.iter().map(|scalar| tables.g2.multiply(scalar)).collect();
        }
        if scalars.len() < WORTH_A_TABLE {
            return scalars.iter().map(|scalar| G2::generator() * scalar).collect();
        }
        let table = FixedBase::new(&G2::generator());
        scalars.iter().map(|scalar| table.multiply(scalar)).collect()
    }
}

impl SchemeAlgebra for Gpsw06 {
    const ID: &'static str = "gpsw06";
    const NUMBER: u8 = 1;

    type KeyTerms = AccessTree;
    type CiphertextTerms = AttributeSet;
    type Public = GpswParameters;
    type Master = Master;
    type KeyElements = GpswKeyElements;
    type CiphertextElements = GpswCiphertextElements;

    fn setup(
        universe: &Universe,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<(GpswParameters, Master), AbeError> {
        let universe = universe.listed()?.clone();
        // GPSW06, section 4, Setup: t_i for every attribute of the universe, and y.
        let master =
            Master { attributes: (0..universe.len()).map(|_| nonzero(rng)).collect(), y: nonzero(rng) };
        let table = (universe.len() >= WORTH_A_TABLE).then(|| FixedBase::new(&G1::generator()));
        let times_g1 =
            |t: &Scalar| table.as_ref().map_or_else(|| G1::generator() * t, |table| table.multiply(t));
        // T_i = t_i·g1, Y = y·e(g1, g2)
        let attributes = master.attributes.iter().map(times_g1).collect();
        let y = pairing(&times_g1(&master.y), &G2::generator());
        Ok((GpswParameters { universe, attributes, y, tables: None }, master))
    }

    fn prepare(public: &mut GpswParameters, expected: &Universe) {
        let places = expected.iter().filter_map(|attribute| public.universe.place(attribute).ok());
        let tabled =
            |place: usize| Some((place, FixedBase::with_window(public.attributes.get(place)?, WINDOW)));
        public.tables = Some(Arc::new(GpswTables {
            y: FixedBase::new(&public.y),
            g2: FixedBase::new(&G2::generator()),
            attributes: places.take(TABLED).filter_map(tabled).collect(),
        }));
    }

    fn derive(
        public: &GpswParameters,
        master: &Master,
        formula: &Formula,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<GpswKeyElements, AbeError> {
        // GPSW06, section 4, Key Generation: q_x(0) of every leaf, q_root(0) = y
        let mut shares = share(formula, master.y, rng)?;
        // D_x = (q_x(0) / t_i)·g2, i = att(x)
        for (leaf, share) in formula.leaves().iter().zip(shares.iter_mut()) {
            let place = public.universe.place(leaf.attribute())?;
            let inverse = master.attributes.get(place).and_then(Field::invert);
            *share *= *Zeroizing::new(inverse.ok_or(AbeError::WrongAuthority)?);
        }
        Ok(GpswKeyElements(Zeroizing::new(public.times_g2(&shares))))
    }

    fn encapsulate(
        public: &GpswParameters,
        atoms: &Atoms,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<(GpswCiphertextElements, SharedElement), AbeError> {
        // GPSW06, section 4, Encryption: one s for all attributes.
        let s = Zeroizing::new(nonzero(rng));
        let mut attributes = Vec::with_capacity(atoms.len());
        for attribute in atoms.iter() {
            // E_i = s·T_i
            attributes.extend(public.times_attribute(public.universe.place(attribute)?, &s));
        }
        // The element: s·Y = ys·e(g1, g2).
        Ok((GpswCiphertextElements(attributes), shared(public.times_y(&s))))
    }

    fn decapsulate(
        (formula, GpswKeyElements(key)): (&Formula, &GpswKeyElements),
        (atoms, GpswCiphertextElements(sent)): (&Atoms, &GpswCiphertextElements),
    ) -> Result<SharedElement, AbeError> {
        // GPSW06, section 4, Decryption, with the Δ of all nodes multiplied into one γ_x for each leaf used.
        let selection = formula.select(atoms.set(), |_, _| 1).ok_or(AbeError::NotSatisfied)?;
        let weights = Weights::of(formula, &selection);
        let mut pairs = Zeroizing::new(Vec::with_capacity(selection.leaves().len()));
        for (place, &leaf) in selection.leaves().iter().enumerate() {
            // e(γ_x·E_i, D_x), i = att(x)
            let attribute = formula.leaves().get(leaf).map(Leaf::attribute);
            let element = attribute.and_then(|attribute| sent.get(atoms.place(attribute)?));
            let pair = element.zip(key.get(leaf)).ok_or(AbeError::Malformed("leaves of a formula"))?;
            pairs.push((weights.weigh(place, pair.0)?, *pair.1));
        }
        // Σ e(γ_x·E_i, D_x) = ys·e(g1, g2), in one Miller loop.
        let sum = pairing_product(&pairs);
        Ok(shared(weights.divisor().map_or(sum, |divisor| sum * divisor)))
    }

    fn admits(key: &AccessTree, ciphertext: &AttributeSet) -> bool {
        key.satisfied_by(ciphertext)
    }
}

impl ElementEncoding<()> for GpswParameters {
    fn encoded_len(&self) -> usize {
        self.universe.encoded_len() + G1::ENCODED_LEN * self.attributes.len() + Gt::ENCODED_LEN
    }

    fn write(&self, writer: &mut Writer) {
        self.universe.write(writer);
        write_points(writer, &self.attributes);
        writer.fixed(self.y.encode().as_ref());
    }

    fn read(reader: &mut Reader<'_>, (): &()) -> Result<Self, AbeError> {
        let universe = Listed::read(reader)?;
        let attributes = read_points(reader, universe.len())?.to_vec();
        Ok(Self { universe, attributes, y: read_gt(reader)?, tables: None })
    }
}

impl ElementEncoding<()> for Master {
    fn encoded_len(&self) -> usize {
        size_of::<u32>() + SCALAR_LEN * (self.attributes.len() + 1)
    }

    fn write(&self, writer: &mut Writer) {
        writer.count(self.attributes.len());
        self.attributes.iter().for_each(|t| write_scalar(writer, t));
        write_scalar(writer, &self.y);
    }

    fn read(reader: &mut Reader<'_>, (): &()) -> Result<Self, AbeError> {
        let count = reader.count(MAX_UNIVERSE, SCALAR_LEN)?;
        let mut master = Self { attributes: Vec::with_capacity(count), y: Scalar::from(0_u64) };
        for _ in 0..count {
            master.attributes.push(read_scalar(reader)?);
        }
        master.y = read_scalar(reader)?;
        Ok(master)
    }
}

impl ElementEncoding<Formula> for GpswKeyElements {
    fn encoded_len(&self) -> usize {
        G2::ENCODED_LEN * self.0.len()
    }

    fn write(&self, writer: &mut Writer) {
        write_points(writer, &self.0);
    }

    fn read(reader: &mut Reader<'_>, formula: &Formula) -> Result<Self, AbeError> {
        read_points(reader, formula.leaves().len()).map(Self)
    }
}

impl ElementEncoding<Atoms> for GpswCiphertextElements {
    fn encoded_len(&self) -> usize {
        G1::ENCODED_LEN * self.0.len()
    }

    fn write(&self, writer: &mut Writer) {
        write_points(writer, &self.0);
    }

    fn read(reader: &mut Reader<'_>, atoms: &Atoms) -> Result<Self, AbeError> {
        read_points(reader, atoms.len()).map(|points| Self(points.to_vec()))
    }
}
