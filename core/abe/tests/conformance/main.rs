//! Requirements of every scheme, tested against each: what it does, what it refuses, and what it must not
//! reveal.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bounds;
mod collusion;
mod corruption;
mod decryption;
mod encodings;
mod fixture;
#[path = "../../../ainq/tests/conformance/leaks.rs"]
mod leaks;
mod prepared;
mod redaction;
mod repeated;
mod strangers;
mod vectors;

/// Instantiates tests that are generic over the scheme, once per scheme.
macro_rules! for_each_scheme {
    ($($test:ident),+ $(,)?) => {
        mod gpsw06 {
            $(#[test] fn $test() { super::$test::<quiver_abe::Gpsw06>(); })+
        }
        mod fabeo22_kp {
            $(#[test] fn $test() { super::$test::<quiver_abe::FabeoKp>(); })+
        }
        mod fabeo22_cp {
            $(#[test] fn $test() { super::$test::<quiver_abe::FabeoCp>(); })+
        }
        mod yct14_insecure {
            $(#[test] fn $test() { super::$test::<quiver_yct14::InsecureYct14>(); })+
        }
    };
}
pub(crate) use for_each_scheme;
