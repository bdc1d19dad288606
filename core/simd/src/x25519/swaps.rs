//! The bits of a scalar as the conditional swaps of the Montgomery ladder.

use zeroize::{Zeroize, ZeroizeOnDrop};

/// Bits 254 to 0.
const STEPS: usize = 255;

/// Swaps of the two points before every step of the ladder: all ones if they are swapped, else zero. As
/// secret as the scalar; erased when dropped.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Swaps {
    steps: [u8; STEPS],
    last: u8,
}

impl Swaps {
    /// The swaps for a scalar, which is clamped as RFC 7748, section 5 says. Without a branch on its bits.
    pub(crate) fn new(scalar: &[u8; 32]) -> Self {
        let mut swaps = Self { steps: [0; STEPS], last: 0 };
        let bits = scalar.iter().flat_map(|byte| (0..8).map(move |bit| (byte >> bit) & 1));
        for (swap, bit) in swaps.steps.iter_mut().rev().zip(bits) {
            *swap = bit;
        }
        // RFC 7748, decodeScalar25519: bit 254 is set, the lowest three are clear.
        let [highest, .., third, second, first] = &mut swaps.steps;
        (*highest, *third, *second, *first) = (1, 0, 0, 0);
        let mut previous = 0;
        for swap in &mut swaps.steps {
            let bit = *swap;
            *swap = 0_u8.wrapping_sub(bit ^ previous);
            previous = bit;
        }
        swaps.last = 0_u8.wrapping_sub(previous);
        swaps
    }

    /// The 255 steps, first to last.
    pub(crate) const fn steps(&self) -> &[u8; STEPS] {
        &self.steps
    }

    /// Swap of the points after the last step.
    pub(crate) const fn last(&self) -> u8 {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn undoing_the_swaps_gives_the_clamped_scalar(scalar: [u8; 32]) {
            let swaps = Swaps::new(&scalar);
            let (mut found, mut bit) = ([0_u8; 32], 0);
            for (place, swap) in (0..255).rev().zip(swaps.steps()) {
                prop_assert!(*swap == 0 || *swap == 0xff);
                bit ^= swap & 1;
                found[place / 8] |= bit << (place % 8);
            }
            prop_assert_eq!(swaps.last(), bit.wrapping_neg());
            prop_assert_eq!(found, curve25519_dalek::scalar::clamp_integer(scalar));
        }
    }

    #[test]
    fn swaps_can_be_erased() {
        let mut swaps = Swaps::new(&[0x55; 32]);
        assert_ne!(swaps.steps(), &[0; STEPS]);
        swaps.zeroize();
        assert_eq!((swaps.steps(), swaps.last()), (&[0; STEPS], 0));
    }
}
