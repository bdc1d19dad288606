//! Powers in the target group, by a split in four.
//!
//! In Gt the Frobenius map f ↦ f^p is the power x, the curve's parameter, because p = x modulo r; and it costs next to
//! nothing. With z = |x|, 64 bits long, a scalar is k₀ + k₁·z + k₂·z² + k₃·z³, so a power of 255 bits is a product of four
//! powers of 64 bits, of f^(z^i) = (f^(p^i))^±1, which share their squarings (S. Galbraith, M. Scott, "Exponentiation in
//! pairing-friendly groups using homomorphisms", Pairing 2008).

use ark_bls12_381::{Config, Fq12};
use ark_ec::bls12::Bls12Config;
use ark_ff::{CyclotomicMultSubgroup, Field};

use super::Gt;
use crate::recoding::{non_adjacent, split};
use crate::{Group, Scalar};

/// Digits are odd and absolutely below 2^(WIDTH − 1).
const WIDTH: u32 = 4;
/// 1, 3, 5 and 7 times.
const ODD: usize = 1 << (WIDTH - 2);

/// f^x for an element of the cyclotomic subgroup.
pub(super) fn to_the_x(f: &Fq12) -> Fq12 {
    // x is negative.
    let mut power = f.cyclotomic_exp(Config::X);
    power.conjugate_in_place();
    power
}

/// scalar · element. Not constant-time.
pub(super) fn multiply(element: &Gt, scalar: &Scalar) -> Gt {
    let digits = split(scalar).map(|quarter| non_adjacent(u128::from(quarter), WIDTH));
    let tables = tables(element);
    let longest = digits.iter().map(|digits| digits.len()).max().unwrap_or(0);
    let mut sum = Gt::identity();
    for index in (0..longest).rev() {
        sum = sum.double();
        for (table, digits) in tables.iter().zip(&digits) {
            let digit = digits.get(index).copied().unwrap_or(0);
            if let (1, Some(multiple)) = (digit & 1, table.get(usize::from(digit.unsigned_abs() / 2))) {
                if digit < 0 { sum -= *multiple } else { sum += *multiple }
            }
        }
    }
    sum
}

/// The odd multiples of z^i times the element, for i from 0 to 3.
fn tables(element: &Gt) -> [[Gt; ODD]; 4] {
    let twice = element.double();
    let mut multiple = *element;
    let odd = [(); ODD].map(|()| {
        let next = multiple + twice;
        core::mem::replace(&mut multiple, next)
    });
    [0, 1, 2, 3].map(|power| {
        odd.map(|Gt(mut image)| {
            image.frobenius_map_in_place(power);
            // x is negative: odd powers of z are minus those of x.
            if power % 2 == 0 { Gt(image) } else { -Gt(image) }
        })
    })
}
