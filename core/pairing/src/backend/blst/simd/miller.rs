//! Prepared lines of points of G2, and Miller loops over them, on vector lanes.

use ::blst::{blst_fp6, blst_fp12};
use ark_ec::AffineRepr as _;
use ark_ff::{AdditiveGroup as _, BigInt, Field as _};
use quiver_simd::bls12_381::{BaseFieldElement, Lanes, Lines};

use super::super::convert::{Coordinate as _, to_gt};
use super::super::lines::{Line, of_each};
use super::Vec;
use crate::parameters::{Fq, Fq2, Fq6, Fq12};
use crate::point::affine;
use crate::{G1, G2, Gt};

/// Number of points below which pairs of lines one by one are as fast.
const FEW: usize = 8;

/// The points' lines; `None` for few points, and where [`of_each`] has none.
pub(in super::super) fn prepare(points: &[G2]) -> Option<Lines> {
    let lanes = if points.len() < FEW { None } else { Lanes::detect() }?;
    let line = |[lambda, mu]: &Line| [lambda.c0, lambda.c1, mu.c0, mu.c1].map(|part| part.0.0);
    let lines: Vec<Vec<[BaseFieldElement; 4]>> =
        of_each(points)?.iter().map(|lines| lines.iter().map(line).collect()).collect();
    Some(lanes.lines(&lines))
}

/// Σ e(p, q) over the points and the owners of these lines.
pub(in super::super) fn prepared_product(lines: &Lines, points: &[G1]) -> Option<Gt> {
    let lanes = Lanes::detect()?;
    // (0, 0) for the identity, which counts for nothing.
    let coordinates = |(x, y): (Fq, Fq)| [x.0.0, y.0.0];
    let points: Vec<[BaseFieldElement; 2]> =
        affine(points).iter().map(|point| point.xy().map_or([[0; 6]; 2], coordinates)).collect();
    let lanes = lanes.miller(lines, &points);
    let mut product = lanes.iter().map(tower).fold(Fq12::ONE, |product, f| product * f);
    // The parameter is negative.
    product.conjugate_in_place();
    Some(to_gt(&to_native(&product).final_exp()))
}

/// Fp² by powers of w, as the tower has it: those of w² in the one half, w times those of w² in the other.
fn tower(coefficients: &[BaseFieldElement; 12]) -> Fq12 {
    let number = |element: BaseFieldElement| Fq::new_unchecked(BigInt(element));
    let [f0, f1, f2, f3, f4, f5] = {
        let mut pairs = coefficients.as_chunks::<2>().0.iter();
        [(); 6].map(|()| {
            pairs.next().map_or(Fq2::ZERO, |&[real, imaginary]| Fq2::new(number(real), number(imaginary)))
        })
    };
    Fq12::new(Fq6::new(f0, f2, f4), Fq6::new(f1, f3, f5))
}

fn to_native(element: &Fq12) -> blst_fp12 {
    let half = |half: &Fq6| blst_fp6 { fp2: [&half.c0, &half.c1, &half.c2].map(|part| part.to_native()) };
    blst_fp12 { fp6: [half(&element.c0), half(&element.c1)] }
}
