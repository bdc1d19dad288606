//! The parameters of BLS12-381 for arkworks' generic code: arkworks' own, or with the feature `armv7em` the
//! same with field multiplication in assembly.

#[cfg(feature = "armv7em")]
mod armv7em;

#[cfg(feature = "armv7em")]
pub(crate) use armv7em::*;

#[cfg(all(
    not(feature = "armv7em"),
    feature = "blst",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub(crate) use ark_bls12_381::Fq6;
#[cfg(not(feature = "armv7em"))]
pub(crate) use ark_bls12_381::{Bls12_381, Config, Fq, Fq2, Fq12, g1, g2};
