//! Quorums from their making to what they sign, over every suite, and everything that can go wrong on the
//! way.

mod dkg;
mod encodings;
mod fixture;
mod misbehaviour;
mod plain;
mod repair;
mod signing;
mod vectors;

/// Instantiates generic tests for every suite: both of AinQ, and one that has no ciphersuite of its own.
macro_rules! for_each_suite {
    ($($test:ident),+ $(,)?) => {
        mod ristretto255 {
            $(#[test] fn $test() { super::$test::<quiver_ainq::Ristretto255>(); })+
        }
        mod bls12381g1 {
            $(#[test] fn $test() { super::$test::<quiver_ainq::Bls12381G1>(); })+
        }
        mod plain {
            $(#[test] fn $test() { super::$test::<crate::plain::Plain>(); })+
        }
    };
}
pub(crate) use for_each_suite;
