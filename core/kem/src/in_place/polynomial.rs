//! Polynomials of 256 numbers below 3329, and their transform.
//!
//! Numbers are always reduced. Products are reduced by a multiplication and a shift (Barrett), without a
//! branch.

use quiver_crypto::{Secret, erase};
use zeroize::Zeroize as _;

use super::sponge::noise;
use crate::MESSAGE_LEN;

/// q of FIPS 203.
pub(super) const MODULUS: u16 = 3329;
const Q: u32 = MODULUS as u32;
/// Numbers of a polynomial.
const DEGREE: usize = 256;
/// Bytes of an encoded polynomial that is not compressed.
pub(super) const POLYNOMIAL_LEN: usize = 384;
/// ⌊2^24 / q⌋.
const RECIPROCAL: u64 = 5039;
/// 128⁻¹ mod q: what the inverse transform multiplies by.
const SCALE: u16 = 3303;

/// Powers of 17 in the order of 4.3 of FIPS 203: the number at i is 17 to the reversal of the 7 bits of i.
#[expect(clippy::indexing_slicing, reason = "computed by the compiler, which checks the index")]
const ZETAS: [u16; 128] = {
    let mut zetas = [0; 128];
    let mut at = 0;
    while at < 128 {
        let mut power = 1_u32;
        let mut times = (at as u8).reverse_bits() >> 1;
        while times > 0 {
            power = power * 17 % Q;
            times -= 1;
        }
        zetas[at] = power as u16;
        at += 1;
    }
    zetas
};

/// A quotient that is right or one too small, for numbers up to q².
const fn quotient(number: u32) -> u32 {
    ((number as u64 * RECIPROCAL) >> 24) as u32
}

/// A number below 2q, reduced.
const fn reduce_once(number: u16) -> u16 {
    let less = number.wrapping_sub(MODULUS);
    // All bits are set if it was below.
    less.wrapping_add((less >> 15).wrapping_neg() & MODULUS)
}

const fn add(one: u16, other: u16) -> u16 {
    reduce_once(one + other)
}

const fn subtract(one: u16, other: u16) -> u16 {
    reduce_once(one + MODULUS - other)
}

const fn multiply(one: u16, other: u16) -> u16 {
    reduce(one as u32 * other as u32)
}

/// A number up to q², reduced.
const fn reduce(number: u32) -> u16 {
    reduce_once((number - quotient(number) * Q) as u16)
}

/// `Compress` of 4.2.1, equation 4.7.
const fn compress(number: u16, bits: u32) -> u16 {
    let scaled = (number as u32) << bits;
    let below = quotient(scaled);
    let rest = scaled - below * Q;
    // The quotient may be one too small, and is rounded: q is odd, so there is no tie.
    let up = (Q / 2).wrapping_sub(rest) >> 31;
    let twice = (Q + Q / 2).wrapping_sub(rest) >> 31;
    ((below + up + twice) & ((1 << bits) - 1)) as u16
}

/// `Decompress` of 4.2.1, equation 4.8.
const fn decompress(number: u16, bits: u32) -> u16 {
    ((number as u32 * Q + (1 << (bits - 1))) >> bits) as u16
}

/// Numbers of so many bits each, low bits first: Algorithm 6 without reduction.
pub(super) fn numbers(encoded: &[u8], bits: u32) -> impl Iterator<Item = u16> {
    let mut bytes = encoded.iter();
    let (mut held, mut left) = (0_u32, 0);
    core::iter::from_fn(move || {
        while left < bits {
            held |= u32::from(*bytes.next()?) << left;
            left += 8;
        }
        let number = held & ((1 << bits) - 1);
        held >>= bits;
        left -= bits;
        Some(number as u16)
    })
}

/// A polynomial, or its transform. Erased on drop.
pub(super) struct Polynomial([u16; DEGREE]);

impl Default for Polynomial {
    fn default() -> Self {
        Self([0; DEGREE])
    }
}

impl Polynomial {
    /// Takes the numbers out of an encoding of 256 compressed ones.
    pub(super) fn decompress(&mut self, encoded: &[u8], bits: u32) {
        for (number, compressed) in self.0.iter_mut().zip(numbers(encoded, bits)) {
            *number = decompress(compressed, bits);
        }
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = u16> {
        self.0.iter().copied()
    }

    /// Adds a polynomial of small numbers (Algorithm 8, η = 2) out of a key.
    pub(super) fn add_noise(&mut self, key: &[u8], nonce: u8) {
        let (pairs, _) = self.0.as_chunks_mut::<2>();
        for (pair, byte) in pairs.iter_mut().zip(noise(key, nonce)) {
            for (number, bits) in pair.iter_mut().zip([byte, byte >> 4]) {
                let count = |bits: u8| u16::from(bits & 1) + u16::from(bits >> 1 & 1);
                *number = add(*number, subtract(count(bits), count(bits >> 2)));
            }
        }
    }

    /// Adds the bits of a message, each as 0 or ⌈q/2⌋.
    pub(super) fn add_message(&mut self, message: &[u8]) {
        for (number, bit) in self.0.iter_mut().zip(numbers(message, 1)) {
            *number = add(*number, bit * MODULUS.div_ceil(2));
        }
    }

    /// NTT (Algorithm 9).
    pub(super) fn transform(&mut self) {
        let mut zetas = ZETAS.iter().skip(1);
        let mut half = DEGREE / 2;
        while half >= 2 {
            for (block, &zeta) in self.0.chunks_exact_mut(2 * half).zip(zetas.by_ref()) {
                let (low, high) = block.split_at_mut(half);
                for (low, high) in low.iter_mut().zip(high) {
                    let product = multiply(zeta, *high);
                    *high = subtract(*low, product);
                    *low = add(*low, product);
                }
            }
            half /= 2;
        }
    }

    /// The inverse of NTT (Algorithm 10).
    pub(super) fn transform_back(&mut self) {
        let mut zetas = ZETAS.iter().rev();
        let mut half = 2;
        while half < DEGREE {
            for (block, &zeta) in self.0.chunks_exact_mut(2 * half).zip(zetas.by_ref()) {
                let (low, high) = block.split_at_mut(half);
                for (low, high) in low.iter_mut().zip(high) {
                    let difference = subtract(*high, *low);
                    *low = add(*low, *high);
                    *high = multiply(zeta, difference);
                }
            }
            half *= 2;
        }
        for number in &mut self.0 {
            *number = multiply(*number, SCALE);
        }
    }

    /// Adds the product of two transforms (Algorithms 11 and 12), of which the other comes number by number
    /// and may be above the modulus, below 2^12.
    pub(super) fn add_product(&mut self, one: &Self, mut other: impl Iterator<Item = u16>) {
        let ((sums, _), (ones, _)) = (self.0.as_chunks_mut::<2>(), one.0.as_chunks::<2>());
        // 17 to the power of 2 · reversed + 1: the later half of the powers, and their negations.
        let gammas = ZETAS.iter().skip(64).flat_map(|&zeta| [zeta, MODULUS - zeta]);
        for ((sum, one), gamma) in sums.iter_mut().zip(ones).zip(gammas) {
            let (Some(even), Some(odd)) = (other.next(), other.next()) else { return };
            let (even, odd) = (reduce_once(even), reduce_once(odd));
            let [low, high] = *one;
            let wrapped = multiply(multiply(high, odd), gamma);
            let [first, second] = sum;
            *first = add(*first, add(multiply(low, even), wrapped));
            *second = add(*second, add(multiply(low, odd), multiply(high, even)));
        }
    }

    /// Compresses every number to so many bits.
    pub(super) fn compress(&mut self, bits: u32) {
        for number in &mut self.0 {
            *number = compress(*number, bits);
        }
    }

    /// Gives the numbers, of so many bits each (Algorithm 5), to `output`, up to 12 bytes at once.
    pub(super) fn encode(&self, bits: u32, output: &mut dyn FnMut(&[u8])) {
        // Eight numbers are as many bytes as one has bits.
        for numbers in self.0.as_chunks::<8>().0 {
            let packed =
                numbers.iter().rev().fold(0_u128, |packed, &number| packed << bits | u128::from(number));
            let bytes = packed.to_le_bytes();
            output(bytes.get(..bits as usize).unwrap_or_default());
        }
    }

    /// The message of v, of which this is the mask: one bit of each number of the difference.
    pub(super) fn message(&self, v: &Self) -> Secret<MESSAGE_LEN> {
        let mut bits = v.0.iter().zip(&self.0).map(|(&v, &mask)| compress(subtract(v, mask), 1));
        let mut bytes: [u8; MESSAGE_LEN] = core::array::from_fn(|_| {
            let [byte, _] =
                bits.by_ref().take(8).zip(0..).fold(0, |byte, (bit, at)| byte | bit << at).to_le_bytes();
            byte
        });
        let message = Secret::new(bytes);
        erase(&mut bytes);
        message
    }
}

impl Drop for Polynomial {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_reduced_as_by_division() {
        for one in 0..MODULUS {
            for other in [0, 1, 2, 1664, 1665, 3327, 3328, one] {
                assert_eq!(u32::from(multiply(one, other)), u32::from(one) * u32::from(other) % Q);
                assert_eq!(u32::from(add(one, other)), (u32::from(one) + u32::from(other)) % Q);
                assert_eq!(u32::from(subtract(one, other)), (u32::from(one) + Q - u32::from(other)) % Q);
            }
        }
        for number in (0..=(Q - 1) * (Q - 1)).rev().step_by(17) {
            assert_eq!(u32::from(reduce(number)), number % Q);
        }
    }

    #[test]
    fn numbers_are_compressed_as_by_division() {
        for bits in [1, 4, 5, 10, 11] {
            for number in 0..MODULUS {
                // ⌈2^d/q · x⌋ mod 2^d
                let rounded =
                    ((2 * (u64::from(number) << bits) + u64::from(Q)) / (2 * u64::from(Q))) % (1 << bits);
                assert_eq!(u64::from(compress(number, bits)), rounded);
            }
            for number in 0..1_u16 << bits {
                let rounded = (2 * u64::from(number) * u64::from(Q) + (1 << bits)) / (2 << bits);
                assert_eq!(u64::from(decompress(number, bits)), rounded);
            }
        }
    }

    #[test]
    fn transform_back_is_the_inverse() {
        let mut polynomial = Polynomial::default();
        polynomial.add_noise(b"key", 1);
        let before = polynomial.0;
        polynomial.transform();
        assert_ne!(polynomial.0, before);
        polynomial.transform_back();
        assert_eq!(polynomial.0, before);
    }
}
