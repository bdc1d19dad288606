//! Multiplication by a split scalar, in groups with an endomorphism that multiplies by a large number.
//!
//! With such a map λ, a scalar k₀ + k₁·λ + k₂·λ² + … of 255 bits takes as many doublings as its longest part
//! has bits (R. Gallant, R. Lambert, S. Vanstone, "Faster point multiplication on elliptic curves with
//! efficient endomorphisms", CRYPTO 2001; S. Galbraith, M. Scott, "Exponentiation in pairing-friendly groups
//! using homomorphisms", Pairing 2008).

use crate::Group;
use crate::recoding::non_adjacent;

/// Digits are odd and absolutely below 2^(WIDTH − 1), or zero.
const WIDTH: u32 = 4;

/// Number of odd multiples: 1, 3, 5 and 7 times.
const ODD: usize = 1 << (WIDTH - 2);

/// (parts₀ + parts₁·λ + parts₂·λ² + …) · element, where `image` multiplies by λ. Not constant-time.
pub(crate) fn multiply<G: Group, const N: usize>(element: G, parts: [u128; N], image: impl Fn(G) -> G) -> G {
    let twice = element.double();
    let mut multiple = element;
    let mut odd = [(); ODD].map(|()| {
        let current = multiple;
        multiple += twice;
        current
    });
    // The odd multiples of the element, and their images under λ, λ², ….
    let terms = parts.map(|part| {
        let table = odd;
        odd = odd.map(&image);
        (table, non_adjacent(part, WIDTH))
    });
    let longest = terms.iter().map(|(_, digits)| digits.len()).max().unwrap_or(0);
    let mut sum = G::identity();
    for index in (0..longest).rev() {
        // One doubling for each digit of the longest part.
        sum = sum.double();
        for (table, digits) in &terms {
            let digit = digits.get(index).copied().unwrap_or(0);
            if let (1, Some(multiple)) = (digit & 1, table.get(usize::from(digit.unsigned_abs() / 2))) {
                if digit < 0 { sum -= *multiple } else { sum += *multiple }
            }
        }
    }
    sum
}
