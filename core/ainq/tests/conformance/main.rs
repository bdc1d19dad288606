//! Requirements of every suite, and refusals of keys, statements, tokens, enrolment and revocation.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod corruption;
mod delivery;
mod enrolment;
mod fixture;
mod frost;
mod leaks;
mod pairwise_secret;
mod published_flaws;
mod redaction;
mod signatures;
mod suites;

/// Instantiates tests that are generic over the suite, once per suite.
macro_rules! for_each_suite {
    ($($test:ident),+ $(,)?) => {
        mod ristretto255 {
            $(#[test] fn $test() { super::$test::<quiver_ainq::Ristretto255>(); })+
        }
        mod bls12381g1 {
            $(#[test] fn $test() { super::$test::<quiver_ainq::Bls12381G1>(); })+
        }
    };
}
pub(crate) use for_each_suite;
