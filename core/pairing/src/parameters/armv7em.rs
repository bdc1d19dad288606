//! Arithmetic for ARMv7E-M, that is Cortex-M4 and up: arkworks' code over a field whose multiplication is
//! assembly.
//!
//! arkworks' constants are taken over number by number; both keep them in the same Montgomery form. On other
//! processors, where the tests run, the multiplication is arkworks'.

mod curves;
#[cfg(target_arch = "arm")]
mod ffi;
mod isogenies;
mod tower;

pub(crate) use curves::{Bls12_381, Config, g1, g2};
#[allow(unused_imports, reason = "blst's back end alone needs the middle of the tower")]
pub(crate) use tower::Fq6;
pub(crate) use tower::{Fq, Fq2, Fq12};
