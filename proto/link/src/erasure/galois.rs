//! GF(2⁸) with x⁸ + x⁴ + x³ + x² + 1 (0x11d), the field of RFC 5510. Nothing here is secret: the tables are
//! looked up in variable time.

const POLYNOMIAL: u16 = 0x11d;

/// Powers of 2, and their exponents: 512 bytes of a board's flash.
const TABLES: ([u8; 256], [u8; 256]) = tables();
static POWERS: [u8; 256] = TABLES.0;
static LOGARITHMS: [u8; 256] = TABLES.1;

#[expect(clippy::indexing_slicing, reason = "of constants, checked when they are compiled")]
const fn tables() -> ([u8; 256], [u8; 256]) {
    let (mut powers, mut logarithms) = ([0; 256], [0; 256]);
    let (mut exponent, mut value) = (0, 1u16);
    while exponent < 255 {
        powers[exponent] = value as u8;
        logarithms[value as usize] = exponent as u8;
        value <<= 1;
        if value & 0x100 != 0 {
            value ^= POLYNOMIAL;
        }
        exponent += 1;
    }
    powers[255] = 1;
    (powers, logarithms)
}

fn power(exponent: u16) -> u8 {
    // Exponents count modulo 255.
    POWERS.get(usize::from(exponent % 255)).copied().unwrap_or(0)
}

fn logarithm(value: u8) -> u16 {
    LOGARITHMS.get(usize::from(value)).copied().unwrap_or(0).into()
}

fn product(value: u8, factor: u8) -> u8 {
    if value == 0 || factor == 0 { 0 } else { power(logarithm(value) + logarithm(factor)) }
}

/// 1 / `value`; 0 of 0.
pub(super) fn inverse(value: u8) -> u8 {
    if value == 0 { 0 } else { power(255 - logarithm(value)) }
}

/// Multiplies each byte by `factor`.
pub(super) fn multiply(bytes: &mut [u8], factor: u8) {
    for byte in bytes {
        *byte = product(*byte, factor);
    }
}

/// Adds `factor` times `bytes` to `sum`.
pub(super) fn multiply_add(sum: &mut [u8], bytes: &[u8], factor: u8) {
    for (sum, byte) in sum.iter_mut().zip(bytes) {
        *sum ^= product(*byte, factor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_bits(mut value: u16, mut factor: u8) -> u8 {
        let mut sum = 0;
        while factor != 0 {
            if factor & 1 == 1 {
                sum ^= value;
            }
            value <<= 1;
            if value & 0x100 != 0 {
                value ^= POLYNOMIAL;
            }
            factor >>= 1;
        }
        sum as u8
    }

    #[test]
    fn products_are_those_of_polynomials() {
        for value in 0..=255 {
            for factor in 0..=255 {
                assert_eq!(product(value, factor), by_bits(value.into(), factor));
            }
            assert_eq!(product(value, inverse(value)), u8::from(value != 0));
        }
    }
}
