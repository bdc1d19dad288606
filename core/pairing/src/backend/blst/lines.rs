//! Lines of points of G2 that are computed beforehand, and Miller loops over them, where there are no vector
//! lanes.
//!
//! | symbol | here |
//! |---|---|
//! | f | what Miller's loop accumulates, in Fp¹² = Fp²\[w\] with w⁶ = ξ = 1 + u |
//! | ℓ | a line at a point (x, y) of G1: 1 + λx·w² + μy·w³ |
//! | λ, μ | what is kept of a line, in Fp²: [`Line`] |
//!
//! Lines are multiplied two by two, with three products in Fp², before they are multiplied into f, with
//! eighteen. All pairs of points share the squarings of f.

use alloc::vec::Vec;

use ::blst::{blst_fp2, blst_fp6, blst_fp12};
use ark_ec::AffineRepr as _;
use ark_ec::bls12::G2Prepared;
use ark_ff::{AdditiveGroup as _, Field as _, Zero as _, batch_inversion};

use super::convert::{Coordinate as _, to_gt};
use crate::parameters::{Config, Fq, Fq2};
use crate::point::affine;
use crate::recoding::Z;
use crate::{G1, G2, Gt};

/// Lines of one point: one for each bit of the curve's parameter but the highest, and one more for each of
/// these that is one.
pub(super) const LINES: usize = (Z.ilog2() + Z.count_ones() - 1) as usize;

/// λ and μ.
pub(super) type Line = [Fq2; 2];

/// The [`LINES`] lines of each point; `None` for the identity, and for a point with a line through (0, 0), of
/// which there are next to none.
pub(super) fn of_each(points: &[G2]) -> Option<Vec<Vec<Line>>> {
    let lines = affine(points).into_iter().map(|point| {
        let prepared = G2Prepared::<Config>::from(point);
        // c0 + c1·x·w² + c2·y·w³ is divided by c0, which the final exponentiation removes.
        let mut inverses: Vec<Fq2> = prepared.ell_coeffs.iter().map(|(c0, ..)| *c0).collect();
        if prepared.infinity || inverses.len() != LINES || inverses.iter().any(Fq2::is_zero) {
            return None;
        }
        batch_inversion(&mut inverses);
        let lines = prepared.ell_coeffs.iter().zip(&inverses);
        Some(lines.map(|((_, c1, c2), inverse)| [*c1 * inverse, *c2 * inverse]).collect())
    });
    lines.collect()
}

/// Lines of many points, 13 kB each.
pub struct PairedLines {
    /// The first line of each point, the second of each, and so on.
    steps: Vec<Vec<Line>>,
}

impl PairedLines {
    /// `None` where [`of_each`] has none.
    pub(super) fn new(points: &[G2]) -> Option<Self> {
        let lines = of_each(points)?;
        let step = |at| lines.iter().filter_map(|lines| lines.get(at)).copied().collect();
        Some(Self { steps: (0..LINES).map(step).collect() })
    }

    /// Σ e(p, q) over the points and the owners of these lines.
    pub(super) fn product(&self, points: &[G1]) -> Gt {
        // (0, 0) for the identity: its lines are 1.
        let points: Vec<[Fq; 2]> =
            affine(points).iter().map(|point| point.xy().map_or([Fq::ZERO; 2], |(x, y)| [x, y])).collect();
        let mut f = blst_fp12::default();
        let mut steps = self.steps.iter();
        for bit in (0..Z.ilog2()).rev() {
            f = f * f;
            // A line of a doubling, and one of an addition where the bit is one.
            for lines in steps.by_ref().take(1 + (Z >> bit & 1) as usize) {
                for (lines, points) in lines.chunks(2).zip(points.chunks(2)) {
                    let mut values = lines.iter().zip(points).map(|(line, point)| at(line, point));
                    let [first, second] = [(); 2].map(|()| values.next().unwrap_or([Fq2::ZERO; 2]));
                    f *= product(first, second);
                }
            }
        }
        // The parameter is negative, so that f is to be conjugated, and with it its power, which is then the
        // opposite.
        -to_gt(&f.final_exp())
    }
}

/// λx and μy.
fn at([lambda, mu]: &Line, [x, y]: &[Fq; 2]) -> Line {
    let scaled = |element: &Fq2, factor| Fq2::new(element.c0 * factor, element.c1 * factor);
    [scaled(lambda, x), scaled(mu, y)]
}

/// (1 + a·w² + b·w³)·(1 + c·w² + d·w³) = 1 + ξbd + (a + c)·w² + (b + d)·w³ + ac·w⁴ + (ad + bc)·w⁵
fn product([a, b]: Line, [c, d]: Line) -> blst_fp12 {
    let (ac, bd) = (a * c, b * d);
    let mixed = (a + b) * (c + d) - ac - bd;
    let first = Fq2::new(Fq::ONE + bd.c0 - bd.c1, bd.c0 + bd.c1);
    // Even powers of w in the one half, odd ones in the other.
    let even = [first, a + c, ac].map(|coefficient| coefficient.to_native());
    let odd = [(b + d).to_native(), mixed.to_native()];
    let [third, fifth] = odd;
    blst_fp12 { fp6: [blst_fp6 { fp2: even }, blst_fp6 { fp2: [blst_fp2::default(), third, fifth] }] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Arkworks, Backend as _};
    use crate::{Group as _, Scalar};

    #[test]
    fn products_over_lines_are_those_of_pairings() {
        for count in [0, 1, 2, 7] {
            let scalars = 1..=count as u64;
            let qs: Vec<G2> = scalars.clone().map(|at| G2::generator() * Scalar::from(at * at + 5)).collect();
            let mut ps: Vec<G1> = scalars.map(|at| G1::generator() * Scalar::from(at + 77)).collect();
            let lines = PairedLines::new(&qs).unwrap();
            let expected = |ps: &[G1]| {
                Arkworks::pairing_product(&ps.iter().copied().zip(qs.iter().copied()).collect::<Vec<_>>())
            };
            assert_eq!(lines.product(&ps), expected(&ps));
            // An identity, and fewer points than there are lines of.
            if let Some(p) = ps.get_mut(2) {
                *p = G1::identity();
            }
            assert_eq!(lines.product(&ps), expected(&ps));
            ps.truncate(count / 2);
            assert_eq!(lines.product(&ps), expected(&ps));
        }
    }

    #[test]
    fn the_identity_has_no_lines() {
        assert!(PairedLines::new(&[G2::generator(), G2::identity()]).is_none());
    }
}
