//! The parameters of arkworks' own crate.

#[allow(unused_imports, reason = "blst's back end alone needs the middle of the tower")]
pub(crate) use ark_bls12_381::Fq6;
pub(crate) use ark_bls12_381::{Bls12_381, Config, Fq, Fq2, Fq12, g1, g2};
