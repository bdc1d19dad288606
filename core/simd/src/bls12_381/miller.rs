//! Miller's algorithm on eight pairs at once, for points of the second group whose lines were computed
//! beforehand.
//!
//! | symbol | here |
//! |---|---|
//! | f | an element of the field of p^12 elements for each lane: f₀ + f₁·w + … + f₅·w⁵ over Fp² with w⁶ = ξ = 1 + u |
//! | ℓ | a line at a point (x, y): 1 + λx·w² + μy·w³ |
//! | λ, μ | what is kept of a line: [`Line`] |
//!
//! Each lane multiplies into an f of its own what its share of the pairs gives; the squarings are shared by
//! all of them. A pair that is to count for nothing has (0, 0) for its point, which is no point of the curve:
//! its lines are 1.

use alloc::vec::Vec;

use crate::bls12_381::field::{TightElement, dot};
use crate::bls12_381::{BaseFieldElement, Z};
use crate::words::LANES;

/// Lines of one point: one for each bit of the curve's parameter but the highest, and one more for each of
/// these that is one.
pub const LINES: usize = (Z.ilog2() + Z.count_ones() - 1) as usize;

/// Number of lines that are multiplied into f, each adding 2p to the numbers that stand for it, before these
/// are reduced again. Twice in a row, where two follow one squaring: so these numbers stay below 2·2·128·p +
/// 4p, which is below 2^10·p.
const UNREDUCED: usize = 128;

/// An element of Fp².
type Quadratic = [TightElement; 2];

/// λ and μ of a line for each lane.
struct Line {
    lambda: Quadratic,
    mu: Quadratic,
}

/// The lines of many points, made ready for [`Lanes::miller`](super::Lanes::miller): 2,048 bytes for each
/// line of eight points.
pub struct Lines(Vec<Vec<Line>>);

impl Lines {
    /// Makes lines from λ and μ, each in two coefficients, of the [`LINES`] lines of each point.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn new(points: &[Vec<[BaseFieldElement; 4]>]) -> Self {
        let group = |points: &[Vec<[BaseFieldElement; 4]>]| {
            let line = |at: usize| {
                let mut coefficients = [[[0; 6]; LANES]; 4];
                for (lane, lines) in points.iter().enumerate() {
                    let Some(line) = lines.get(at) else { continue };
                    for (lanes, coefficient) in coefficients.iter_mut().zip(line) {
                        if let Some(place) = lanes.get_mut(lane) {
                            *place = *coefficient;
                        }
                    }
                }
                let [l0, l1, m0, m1] = &coefficients;
                let (lambda, mu) = (
                    [TightElement::enter(l0), TightElement::enter(l1)],
                    [TightElement::enter(m0), TightElement::enter(m1)],
                );
                Line { lambda, mu }
            };
            (0..LINES).map(line).collect()
        };
        Self(points.chunks(LANES).map(group).collect())
    }
}

/// The products of all lines at their points, lane by lane.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(crate) fn miller(lines: &Lines, points: &[[BaseFieldElement; 2]]) -> [[BaseFieldElement; 12]; LANES] {
    let enter = |points: &[[BaseFieldElement; 2]]| {
        let mut coordinates = [[[0; 6]; LANES]; 2];
        for (lane, point) in points.iter().enumerate().take(LANES) {
            for (lanes, coordinate) in coordinates.iter_mut().zip(point) {
                if let Some(place) = lanes.get_mut(lane) {
                    *place = *coordinate;
                }
            }
        }
        coordinates.each_ref().map(|elements| TightElement::enter(elements))
    };
    let points: Vec<[TightElement; 2]> = points.chunks(LANES).map(enter).collect();
    let mut f = Accumulator::one();
    let mut at = 0_usize;
    for bit in (0..Z.ilog2()).rev() {
        f = f.squared();
        for _ in 0..=(Z >> bit & 1) {
            for (group, (lines, point)) in lines.0.iter().zip(&points).enumerate() {
                if let Some(line) = lines.get(at) {
                    f = f.times_line(line, point);
                }
                if group % UNREDUCED == UNREDUCED - 1 {
                    f = f.reduced();
                }
            }
            at += 1;
        }
    }
    f.leave()
}

/// f
struct Accumulator([Quadratic; 6]);

impl Accumulator {
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn one() -> Self {
        let mut coefficients = [[TightElement::zero(); 2]; 6];
        coefficients[0][0] = TightElement::one();
        Self(coefficients)
    }

    /// f²
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[expect(clippy::indexing_slicing, reason = "indices are below six, and reduced to be")]
    fn squared(&self) -> Self {
        let Self(f) = self;
        let wrapped = f.each_ref().map(|coefficient| times_xi(coefficient));
        let minus = f.each_ref().map(|[_, imaginary]| imaginary.neg());
        let mut square = Self::one();
        for (k, coefficient) in square.0.iter_mut().enumerate() {
            // Σ fᵢ·fₖ₋ᵢ, where what is below zero is six more, and multiplied by ξ.
            let other = |i: usize| if i <= k { &f[k - i] } else { &wrapped[k + 6 - i] };
            let real: [[&TightElement; 2]; 12] = core::array::from_fn(|at| match (at / 2, at % 2) {
                (i, 0) => [&f[i][0], &other(i)[0]],
                (i, _) => [&minus[i], &other(i)[1]],
            });
            let imaginary: [[&TightElement; 2]; 12] = core::array::from_fn(|at| match (at / 2, at % 2) {
                (i, 0) => [&f[i][0], &other(i)[1]],
                (i, _) => [&f[i][1], &other(i)[0]],
            });
            *coefficient = [dot(real).carry(), dot(imaginary).carry()];
        }
        square
    }

    /// f·ℓ: fₖ + λx·fₖ₋₂ + μy·fₖ₋₃ at each k, where what is below zero is six more, and multiplied by ξ.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[expect(clippy::indexing_slicing, reason = "indices are reduced to be below six")]
    fn times_line(&self, Line { lambda, mu }: &Line, [x, y]: &[TightElement; 2]) -> Self {
        let Self(f) = self;
        let (second, third) = (Factor::new(lambda, x), Factor::new(mu, y));
        let mut product = Self(*f);
        for (k, [real, imaginary]) in product.0.iter_mut().enumerate() {
            let [b0, b1, minus_b1] = second.for_place(k < 2);
            let [c0, c1, minus_c1] = third.for_place(k < 3);
            let ([g0, g1], [h0, h1]) = (&f[(k + 4) % 6], &f[(k + 3) % 6]);
            *real = dot([[b0, g0], [minus_b1, g1], [c0, h0], [minus_c1, h1]]).plus(&real.wide()).carry();
            *imaginary = dot([[b0, g1], [b1, g0], [c0, h1], [c1, h0]]).plus(&imaginary.wide()).carry();
        }
        product
    }

    /// The same, below 2p.
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn reduced(&self) -> Self {
        let one = TightElement::one();
        Self(self.0.each_ref().map(|coefficient| coefficient.each_ref().map(|number| number.mul(&one))))
    }

    /// f of each lane: its coefficients by powers of w, and in each the real part first.
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn leave(&self) -> [[BaseFieldElement; 12]; LANES] {
        let mut lanes = [[[0; 6]; 12]; LANES];
        for (at, number) in self.0.as_flattened().iter().enumerate() {
            for (lane, element) in lanes.iter_mut().zip(number.leave()) {
                if let Some(place) = lane.get_mut(at) {
                    *place = element;
                }
            }
        }
        lanes
    }
}

/// Factors of coefficients of f: a, and ξ·a for those that wrap around; the opposites of imaginary parts
/// beside them.
struct Factor {
    own: [TightElement; 3],
    times_xi: [TightElement; 3],
}

impl Factor {
    /// coefficient · coordinate.
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn new(coefficient: &Quadratic, coordinate: &TightElement) -> Self {
        let own = coefficient.each_ref().map(|part| part.mul(coordinate));
        let [own, times_xi] =
            [own, times_xi(&own)].map(|[real, imaginary]| [real, imaginary, imaginary.neg()]);
        Self { own, times_xi }
    }

    fn for_place(&self, wraps: bool) -> &[TightElement; 3] {
        if wraps { &self.times_xi } else { &self.own }
    }
}

/// (1 + u)·a
#[target_feature(enable = "avx512f,avx512ifma")]
fn times_xi([real, imaginary]: &Quadratic) -> Quadratic {
    let (real, imaginary) = (real.wide(), imaginary.wide());
    [real.minus(&imaginary).carry(), real.plus(&imaginary).carry()]
}
