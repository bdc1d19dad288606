//! The scalar field of BLS12-381, and its groups G1 and G2, over arkworks.

use ark_bls12_381::Fr;
use ark_ec::PrimeGroup;
use ark_ec::short_weierstrass::{Projective, SWCurveConfig};
use ark_ff::{AdditiveGroup, PrimeField as _};
use rand_core::CryptoRngCore;
use zeroize::Zeroizing;

use crate::{Field, PrimeOrderGroup};

impl Field for Fr {
    const ZERO: Self = <Self as AdditiveGroup>::ZERO;
    const ONE: Self = <Self as ark_ff::Field>::ONE;

    fn invert(&self) -> Option<Self> {
        ark_ff::Field::inverse(self)
    }

    fn random(rng: &mut (impl CryptoRngCore + ?Sized)) -> Self {
        // 512 bits reduced modulo 255.
        let mut wide = Zeroizing::new([0; 64]);
        rng.fill_bytes(&mut *wide);
        Self::from_le_bytes_mod_order(&*wide)
    }
}

/// G1 and G2.
impl<C: SWCurveConfig<ScalarField = Fr>> PrimeOrderGroup for Projective<C> {
    type Scalar = Fr;

    fn generator() -> Self {
        <Self as PrimeGroup>::generator()
    }

    fn identity() -> Self {
        <Self as AdditiveGroup>::ZERO
    }
}
