//! YCT14: Yao, Chen, Tian, *A lightweight attribute-based encryption scheme for the Internet of Things*,
//! Future Generation Computer Systems 49, 2015. **Broken. For measurements, and to show why not.**
//!
//! The scheme is GPSW without a pairing: shares are plain scalars. It runs on ristretto255.
//!
//! | algorithm | paper | here |
//! |---|---|---|
//! | setup | s_i, s; P_i = s_i·G, PK = s·G | `Master`; `YctParameters` |
//! | encryption to attributes γ | C_i = k·P_i for i ∈ γ; k·PK | `YctCiphertextElements` |
//! | key for a tree | D_x = q_x(0) / s_i, i = att(x) | `YctKeyElements` |
//! | decryption | Σ Δ·D_x·C_i, node by node | Σ γ_x·D_x·C_i over the leaves used |
//!
//! # Correctness
//! With Σ γ_x q_x(0) = s over the leaves used: Σ γ_x (q_x(0) / s_i) k s_i·G = s k·G.
//!
//! # The attack
//! A key's scalars are linear in what they share: for a1 ∧ a2, D_1 (s_1/s) + D_2 (s_2/s) = 1. Two keys for
//! that policy, of one holder or of two, are two equations in the two unknowns s_1/s and s_2/s; their
//! inverses are the keys for a1 alone and for a2 alone, which the authority never issued, and which open
//! every ciphertext with the attribute. A test carries it out. J. Herranz, *Attacking Pairing-Free
//! Attribute-Based Encryption Schemes*, IEEE Access 8, 2020, has this and shows that no scheme of this shape
//! can do better.
//!
//! # Sizes
//! | | bytes |
//! |---|---|
//! | parameters, universe of n | 3 + 4 + attributes + 32·n + 32 |
//! | master key | 3 + 32 + 4 + 32·n + 32 |
//! | key, l leaves | 39 + policy + 32·l |
//! | ciphertext, n attributes | 39 + attributes + 32·n |

#![no_std]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

extern crate alloc;

use alloc::vec::Vec;

use curve25519_dalek::ristretto::CompressedRistretto;
use curve25519_dalek::traits::{Identity, MultiscalarMul};
use curve25519_dalek::{RistrettoPoint, Scalar};
use quiver_abe::scheme_algebra::{ElementEncoding, SchemeAlgebra, SharedElement, coefficients, share};
use quiver_abe::terms::Atoms;
use quiver_abe::universe::Listed;
use quiver_abe::{AbeError, MAX_UNIVERSE, Universe};
use quiver_crypto::Zeroizing;
use quiver_crypto::canonical::{Reader, Writer};
use quiver_policy::{AccessTree, AttributeSet, Formula, Leaf};
use rand_core::CryptoRngCore;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Bytes of a point and of a scalar.
const ENCODED_LEN: usize = 32;

/// YCT14, which is broken: two keys give every key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InsecureYct14;

/// Public parameters of an authority.
#[derive(Clone)]
pub struct YctParameters {
    universe: Listed,
    /// P_i = s_i·G, in the universe's order.
    attributes: Vec<RistrettoPoint>,
    /// PK = s·G.
    key: RistrettoPoint,
}

/// An authority's secrets, erased when dropped.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Master {
    /// s_i, in the universe's order.
    attributes: Vec<Scalar>,
    s: Scalar,
}

/// A key's elements: D_x per leaf from left to right.
pub struct YctKeyElements(Zeroizing<Vec<Scalar>>);

/// A ciphertext's elements: C_i per attribute in ascending order.
#[derive(Clone)]
pub struct YctCiphertextElements(Vec<RistrettoPoint>);

impl SchemeAlgebra for InsecureYct14 {
    const ID: &'static str = "yct14-insecure";
    const NUMBER: u8 = 4;

    type KeyTerms = AccessTree;
    type CiphertextTerms = AttributeSet;
    type Public = YctParameters;
    type Master = Master;
    type KeyElements = YctKeyElements;
    type CiphertextElements = YctCiphertextElements;

    fn setup(
        universe: &Universe,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<(YctParameters, Master), AbeError> {
        let universe = universe.listed()?.clone();
        // YCT14, setup: s_i for every attribute of the universe, and s.
        let master =
            Master { attributes: (0..universe.len()).map(|_| nonzero(rng)).collect(), s: nonzero(rng) };
        // P_i = s_i·G, PK = s·G
        let attributes = master.attributes.iter().map(RistrettoPoint::mul_base).collect();
        let key = RistrettoPoint::mul_base(&master.s);
        Ok((YctParameters { universe, attributes, key }, master))
    }

    /// Prepares nothing: every point is multiplied once per ciphertext, and quickly.
    fn prepare(_: &mut YctParameters, _: &Universe) {}

    fn derive(
        public: &YctParameters,
        master: &Master,
        formula: &Formula,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<YctKeyElements, AbeError> {
        // YCT14, key for a tree: q_x(0) of every leaf, q_root(0) = s
        let mut shares = share(formula, master.s, rng)?;
        // D_x = q_x(0) / s_i, i = att(x): scalars, of which two keys give two equations in the s_i / s
        let mut inverses = Zeroizing::new(Vec::with_capacity(shares.len()));
        for leaf in formula.leaves() {
            let place = public.universe.place(leaf.attribute())?;
            inverses.push(*master.attributes.get(place).ok_or(AbeError::WrongAuthority)?);
        }
        // All at once, for the price of one inversion: neither setup nor decoding lets a zero in.
        Scalar::batch_invert(&mut inverses);
        shares.iter_mut().zip(inverses.iter()).for_each(|(share, inverse)| *share *= inverse);
        Ok(YctKeyElements(shares))
    }

    fn encapsulate(
        public: &YctParameters,
        atoms: &Atoms,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<(YctCiphertextElements, SharedElement), AbeError> {
        // YCT14, encryption: one k for all attributes.
        let k = Zeroizing::new(nonzero(rng));
        let mut attributes = Vec::with_capacity(atoms.len());
        for attribute in atoms.iter() {
            // C_i = k·P_i
            attributes
                .extend(public.attributes.get(public.universe.place(attribute)?).map(|point| point * *k));
        }
        // The element: k·PK = ks·G.
        Ok((YctCiphertextElements(attributes), shared(&(public.key * *k))))
    }

    fn decapsulate(
        (formula, YctKeyElements(key)): (&Formula, &YctKeyElements),
        (atoms, YctCiphertextElements(sent)): (&Atoms, &YctCiphertextElements),
    ) -> Result<SharedElement, AbeError> {
        // YCT14, decryption, with the Δ of all nodes multiplied into one γ_x for each leaf used.
        let selection = formula.select(atoms.set(), |_, _| 1).ok_or(AbeError::NotSatisfied)?;
        let (mut scalars, mut points) = (Zeroizing::new(Vec::new()), Vec::new());
        for (&leaf, weight) in selection.leaves().iter().zip(coefficients::<Scalar>(formula, &selection)) {
            // γ_x·D_x·C_i, i = att(x)
            let attribute = formula.leaves().get(leaf).map(Leaf::attribute);
            let element = attribute.and_then(|attribute| sent.get(atoms.place(attribute)?));
            let pair = element.zip(key.get(leaf)).ok_or(AbeError::Malformed("leaves of a formula"))?;
            points.push(*pair.0);
            scalars.push(weight * pair.1);
        }
        // Σ γ_x·D_x·C_i = ks·G
        Ok(shared(&RistrettoPoint::multiscalar_mul(scalars.iter(), &points)))
    }

    fn admits(key: &AccessTree, ciphertext: &AttributeSet) -> bool {
        key.satisfied_by(ciphertext)
    }
}

/// A scalar that is not zero, which a draw is once in 2²⁵² times.
fn nonzero(rng: &mut (impl CryptoRngCore + ?Sized)) -> Scalar {
    let scalar = <Scalar as quiver_sharing::Field>::random(rng);
    if scalar == Scalar::ZERO { Scalar::ONE } else { scalar }
}

fn shared(point: &RistrettoPoint) -> SharedElement {
    Zeroizing::new(point.compress().as_bytes().to_vec())
}

fn write_points(writer: &mut Writer, points: &[RistrettoPoint]) {
    for point in points {
        writer.fixed(point.compress().as_bytes());
    }
}

/// Ristretto's decoding takes one encoding per element, and the group has no other subgroup.
fn read_point(reader: &mut Reader<'_>) -> Result<RistrettoPoint, AbeError> {
    let point = CompressedRistretto(reader.array()?).decompress();
    let point = point.filter(|point| *point != RistrettoPoint::identity());
    point.ok_or(AbeError::InvalidElement("ristretto255"))
}

fn read_scalar(reader: &mut Reader<'_>) -> Result<Scalar, AbeError> {
    let scalar = Option::from(Scalar::from_canonical_bytes(reader.array()?));
    scalar.filter(|scalar| *scalar != Scalar::ZERO).ok_or(AbeError::InvalidElement("a secret scalar"))
}

fn read_scalars(reader: &mut Reader<'_>, count: usize) -> Result<Zeroizing<Vec<Scalar>>, AbeError> {
    let mut scalars = Zeroizing::new(Vec::with_capacity(count));
    for _ in 0..count {
        scalars.push(read_scalar(reader)?);
    }
    Ok(scalars)
}

impl ElementEncoding<()> for YctParameters {
    fn encoded_len(&self) -> usize {
        self.universe.encoded_len() + ENCODED_LEN * (self.attributes.len() + 1)
    }

    fn write(&self, writer: &mut Writer) {
        self.universe.write(writer);
        write_points(writer, &self.attributes);
        write_points(writer, &[self.key]);
    }

    fn read(reader: &mut Reader<'_>, (): &()) -> Result<Self, AbeError> {
        let universe = Listed::read(reader)?;
        let attributes = (0..universe.len()).map(|_| read_point(reader)).collect::<Result<_, _>>()?;
        Ok(Self { universe, attributes, key: read_point(reader)? })
    }
}

impl ElementEncoding<()> for Master {
    fn encoded_len(&self) -> usize {
        size_of::<u32>() + ENCODED_LEN * (self.attributes.len() + 1)
    }

    fn write(&self, writer: &mut Writer) {
        writer.count(self.attributes.len());
        self.attributes.iter().chain([&self.s]).for_each(|scalar| {
            writer.fixed(scalar.as_bytes());
        });
    }

    fn read(reader: &mut Reader<'_>, (): &()) -> Result<Self, AbeError> {
        let count = reader.count(MAX_UNIVERSE, ENCODED_LEN)?;
        let attributes = read_scalars(reader, count)?.to_vec();
        let mut master = Self { attributes, s: Scalar::ZERO };
        master.s = read_scalar(reader)?;
        Ok(master)
    }
}

impl ElementEncoding<Formula> for YctKeyElements {
    fn encoded_len(&self) -> usize {
        ENCODED_LEN * self.0.len()
    }

    fn write(&self, writer: &mut Writer) {
        self.0.iter().for_each(|scalar| {
            writer.fixed(scalar.as_bytes());
        });
    }

    fn read(reader: &mut Reader<'_>, formula: &Formula) -> Result<Self, AbeError> {
        read_scalars(reader, formula.leaves().len()).map(Self)
    }
}

impl ElementEncoding<Atoms> for YctCiphertextElements {
    fn encoded_len(&self) -> usize {
        ENCODED_LEN * self.0.len()
    }

    fn write(&self, writer: &mut Writer) {
        write_points(writer, &self.0);
    }

    fn read(reader: &mut Reader<'_>, atoms: &Atoms) -> Result<Self, AbeError> {
        (0..atoms.len()).map(|_| read_point(reader)).collect::<Result<_, _>>().map(Self)
    }
}
