//! FABEO: Riepel and Wee, *FABEO: Fast Attribute-Based Encryption with Optimal Security*, CCS 2022, eprint
//! 2022/1415.
//!
//! Both schemes of its figure 1, in the form that lets a policy use an attribute more than once. Attributes
//! are hashed to G1, so any name is one. Adaptively secure in the generic group model with a random oracle.
//!
//! | paper | here |
//! |---|---|
//! | e(g1,g2)^α | `FabeoParameters::y`, in the parameters |
//! | H(u) for an attribute u | `attribute_point`: RFC 9380 with a domain of its own per scheme |
//! | H(\|U\| + 1), which CP-ABE needs besides | b, `base_point`: hashed under another domain, so that no attribute has it |
//! | (M, π, ρ) | a [`Formula`]: rows are leaves, π(i) the leaf's attribute, ρ(i) its use number |
//! | τ | `formula.uses()`: how often the attribute that is used most is used |
//! | γ_i | `Weights` |
//! | M_i·(secret ‖ v) | `share` |
//!
//! Groups are written additively, here and in `quiver-pairing`.
//!
//! # Parameters and master key
//! | | bytes |
//! |---|---|
//! | parameters | 3 + 576 |
//! | master key | 3 + 32 + 32 |
//!
//! # Why use numbers
//! With one r for all leaves of a key (or one s' for all of a ciphertext), two leaves i, j of one attribute
//! would differ by (λ_i − λ_j)·g1: a difference of shares that anybody can compute without having the
//! attribute. The k-th use of every attribute therefore has randomness of its own, and costs one more pairing
//! if it is used. A test performs the attack on the form with one r.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use quiver_crypto::Zeroizing;
use quiver_crypto::canonical::{Reader, Writer};
use quiver_pairing::{FixedBase, G1, G2, Group, Gt, Scalar, pairing};
use quiver_policy::{Attribute, Formula, Selection};
use rand_core::CryptoRngCore;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::elements::{nonzero, read_gt, read_scalar, write_scalar};
use crate::scheme_algebra::ElementEncoding;
use crate::shares::Weights;
use crate::{AbeError, IS_SMALL, Universe};

mod cp;
mod kp;

pub use cp::FabeoCp;
pub use kp::FabeoKp;

/// Number of attributes whose points [`prepare`](crate::Scheme::prepare) keeps as tables: 49,152 bytes each,
/// 3 MiB in all.
const TABLED: usize = 64;

/// Number of attributes whose points it keeps: 144 bytes each, 144 KiB in all.
const KEPT: usize = 1_024;

/// Bits of a window in an attribute's table.
const WINDOW: u32 = 4;

/// The domains, in which the two schemes differ.
pub trait Variant: Copy + fmt::Debug + Send + Sync + 'static {
    /// The domain of H for attributes (RFC 9380, section 3.1).
    const ATTRIBUTE_DOMAIN: &'static str;
    /// The domain of b.
    const BASE_DOMAIN: &'static str;
}

/// Public parameters of an authority: y = α·e(g1, g2).
#[derive(Clone)]
pub struct FabeoParameters<V: Variant> {
    y: Gt,
    tables: Option<Arc<FabeoTables>>,
    variant: PhantomData<V>,
}

/// Tables of points that are multiplied again and again: 1.3 MB, and those of attributes.
struct FabeoTables {
    y: FixedBase<Gt>,
    g1: FixedBase<G1>,
    g2: FixedBase<G2>,
    b: FixedBase<G1>,
    attributes: BTreeMap<Attribute, Hashed>,
}

/// H of an attribute.
enum Hashed {
    Point(G1),
    Table(FixedBase<G1>),
}

impl<V: Variant> FabeoParameters<V> {
    const fn new(y: Gt) -> Self {
        Self { y, tables: None, variant: PhantomData }
    }

    /// The tables, if there are any. A build for boards has no code for them.
    fn tables(&self) -> Option<&FabeoTables> {
        if IS_SMALL { None } else { self.tables.as_deref() }
    }

    fn attribute_point(attribute: &Attribute) -> G1 {
        // RFC 9380, hash_to_curve: nobody knows logarithms of what comes out.
        G1::hash(V::ATTRIBUTE_DOMAIN, &[&attribute.hash_input()])
    }

    fn base_point() -> G1 {
        // The paper's H(|U| + 1): another domain, so that no attribute has this point.
        G1::hash(V::BASE_DOMAIN, &[])
    }

    fn build_tables(&mut self, expected: &Universe) {
        let hashed = |(number, attribute): (usize, &Attribute)| {
            let point = Self::attribute_point(attribute);
            let table = || Hashed::Table(FixedBase::with_window(&point, WINDOW));
            (attribute.clone(), if number < TABLED { table() } else { Hashed::Point(point) })
        };
        self.tables = Some(Arc::new(FabeoTables {
            y: FixedBase::new(&self.y),
            g1: FixedBase::new(&G1::generator()),
            g2: FixedBase::new(&G2::generator()),
            b: FixedBase::new(&Self::base_point()),
            attributes: expected.iter().take(KEPT).enumerate().map(hashed).collect(),
        }));
    }

    /// scalar·y
    fn times_y(&self, scalar: &Scalar) -> Gt {
        self.tables().map_or_else(|| self.y * scalar, |tables| tables.y.multiply(scalar))
    }

    /// scalar·g1
    fn times_g1(&self, scalar: &Scalar) -> G1 {
        self.tables().map_or_else(|| G1::generator() * scalar, |tables| tables.g1.multiply(scalar))
    }

    /// scalar·g2
    fn times_g2(&self, scalar: &Scalar) -> G2 {
        self.tables().map_or_else(|| G2::generator() * scalar, |tables| tables.g2.multiply(scalar))
    }

    /// scalar·b
    fn times_b(&self, scalar: &Scalar) -> G1 {
        self.tables().map_or_else(|| Self::base_point() * scalar, |tables| tables.b.multiply(scalar))
    }

    /// scalar·b for each scalar.
    fn times_b_each(&self, scalars: &[Scalar]) -> Zeroizing<Vec<G1>> {
        Zeroizing::new(match self.tables() {
            Some(tables) => scalars.iter().map(|scalar| tables.b.multiply(scalar)).collect(),
            None => Self::base_point().multiply_all(scalars),
        })
    }

    /// H(attribute) as it is kept in the tables.
    fn kept(&self, attribute: &Attribute) -> Option<&Hashed> {
        self.tables()?.attributes.get(attribute)
    }

    /// scalar·H(attribute) for each pair. Points without a table are multiplied together.
    fn times_hash(&self, uses: &[(&Attribute, &Scalar)]) -> Result<Zeroizing<Vec<G1>>, AbeError> {
        let mut points = Vec::with_capacity(uses.len());
        let mut scalars = Zeroizing::new(Vec::with_capacity(uses.len()));
        for (attribute, scalar) in uses {
            points.push(match self.kept(attribute) {
                Some(Hashed::Table(_)) => continue,
                Some(Hashed::Point(point)) => *point,
                None => Self::attribute_point(attribute),
            });
            scalars.push(**scalar);
        }
        let multiplied = Zeroizing::new(
            G1::multiply_each(&points, &scalars).map_err(|_| AbeError::Malformed("number of points"))?,
        );
        let mut multiplied = multiplied.iter().copied();
        let product = |(attribute, scalar): &(&Attribute, &Scalar)| match self.kept(attribute) {
            Some(Hashed::Table(table)) => Some(table.multiply(scalar)),
            Some(Hashed::Point(_)) | None => multiplied.next(),
        };
        Ok(Zeroizing::new(uses.iter().filter_map(product).collect()))
    }

    /// scalar·H(attribute) for each leaf of a formula, with the scalar of its use number.
    fn times_leaves(&self, formula: &Formula, scalars: &[Scalar]) -> Result<Zeroizing<Vec<G1>>, AbeError> {
        let mut uses = Vec::with_capacity(formula.leaves().len());
        for leaf in formula.leaves() {
            let scalar = scalars.get(leaf.use_number());
            uses.push((leaf.attribute(), scalar.ok_or(AbeError::Malformed("use numbers of a formula"))?));
        }
        self.times_hash(&uses)
    }
}

impl<V: Variant> ElementEncoding<()> for FabeoParameters<V> {
    fn encoded_len(&self) -> usize {
        Gt::ENCODED_LEN
    }

    fn write(&self, writer: &mut Writer) {
        writer.fixed(self.y.encode().as_ref());
    }

    fn read(reader: &mut Reader<'_>, (): &()) -> Result<Self, AbeError> {
        read_gt(reader).map(Self::new)
    }
}

/// An authority's secret α, erased when dropped.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Alpha(Scalar);

impl ElementEncoding<()> for Alpha {
    fn encoded_len(&self) -> usize {
        quiver_pairing::SCALAR_LEN
    }

    fn write(&self, writer: &mut Writer) {
        write_scalar(writer, &self.0);
    }

    fn read(reader: &mut Reader<'_>, (): &()) -> Result<Self, AbeError> {
        read_scalar(reader).map(Self)
    }
}

/// Setup, the same for both: α at random, y = α·e(g1, g2) = e(α·g1, g2).
fn setup<V: Variant>(
    universe: &Universe,
    rng: &mut (impl CryptoRngCore + ?Sized),
) -> Result<(FabeoParameters<V>, Alpha), AbeError> {
    universe.open()?;
    // FABEO, figure 1, Setup: y = α·e(g1, g2).
    let alpha = Alpha(nonzero(rng));
    let y = pairing(&(G1::generator() * alpha.0), &G2::generator());
    Ok((FabeoParameters::new(y), alpha))
}

/// Σ γ·point over those leaves of a selection for which `point` has one. The coefficients' common denominator
/// divides the sum, not its terms.
fn weighted(weights: &Weights<Scalar>, point: impl Fn(usize) -> Option<G1>) -> Result<G1, AbeError> {
    // The γ_i are integers over one denominator, by which the sum is divided.
    weights.combine(point).map(|sum| weights.divisor().map_or(sum, |divisor| sum * divisor))
}

/// Cost of a leaf when the cheapest subset is chosen: of an attribute's first use its additions, of a later
/// one close to the pairing that it may add.
fn cost(_: &Attribute, use_number: usize) -> u32 {
    if use_number == 0 { 1 } else { 32 }
}

/// Use numbers of the selected leaves, each once, ascending.
fn uses(formula: &Formula, selection: &Selection) -> Vec<usize> {
    let mut used = alloc::vec![false; formula.uses()];
    for leaf in selection.leaves().iter().filter_map(|index| formula.leaves().get(*index)) {
        if let Some(used) = used.get_mut(leaf.use_number()) {
            *used = true;
        }
    }
    (0..).zip(used).filter(|(_, used)| *used).map(|(number, _)| number).collect()
}
