//! X25519 of one point: the Montgomery ladder of RFC 7748, by curve25519-dalek or by salty.
//!
//! | | when | instructions on a Cortex-M4 |
//! |---|---|---|
//! | curve25519-dalek | without the feature `salty` | 1.45 million |
//! | salty, with field arithmetic in assembly | with it, for Cortex-M4, M7 and M33 | 0.66 million |
//!
//! Both are constant-time, and both clamp a scalar that is clamped already, which changes nothing. Neither
//! erases its steps: the caller erases the stack.

#[cfg_attr(feature = "salty", path = "single/salty.rs")]
mod ladder;

use zeroize::Zeroizing;

/// X25519 of a clamped scalar and a u-coordinate, both 32 little-endian bytes.
///
/// Never part of its caller, which may be compiled for size: this is for speed.
#[inline(never)]
#[must_use]
pub fn x25519(clamped: &[u8; 32], u: &[u8; 32]) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(ladder::multiply(*clamped, *u))
}

#[cfg(test)]
mod tests {
    use curve25519_dalek::montgomery::MontgomeryPoint;

    use super::*;

    fn clamped(seed: u8) -> [u8; 32] {
        let mut scalar = core::array::from_fn(|i| (i as u8).wrapping_mul(37) ^ seed.wrapping_mul(91));
        scalar[0] &= 0xf8;
        scalar[31] = scalar[31] & 0x7f | 0x40;
        scalar
    }

    #[test]
    fn the_ladder_is_that_of_rfc_7748() {
        // Section 5.2, first vector; its scalar clamped, its u-coordinate as it stands.
        let scalar = "a046e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449a44";
        let u = "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c";
        let out = "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552";
        let bytes = |text: &str| hex::decode(text).unwrap().try_into().unwrap();
        assert_eq!(hex::encode(*x25519(&bytes(scalar), &bytes(u))), out);
    }

    #[test]
    fn every_ladder_gives_the_same_bytes() {
        let mut u = [0; 32];
        u[0] = 9;
        for seed in 0..24 {
            let scalar = clamped(seed);
            let dalek = MontgomeryPoint(u).mul_clamped(scalar).to_bytes();
            assert_eq!(*x25519(&scalar, &u), dalek);
            assert_eq!(salty::agreement::x25519(scalar, u), dalek);
            u = dalek;
        }
    }

    #[test]
    fn a_point_of_small_order_gives_zero_by_every_ladder() {
        let (zero, mut one) = ([0; 32], [0; 32]);
        one[0] = 1;
        for u in [zero, one] {
            assert_eq!(*x25519(&clamped(3), &u), zero);
            assert_eq!(salty::agreement::x25519(clamped(3), u), zero);
        }
    }
}
