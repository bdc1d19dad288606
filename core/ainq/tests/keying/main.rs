//! Group keying end to end: one leader, its edges, and attackers.

/// Makes one test per suite out of a function generic over the suite.
macro_rules! for_each_suite {
    ($($(#[$attribute:meta])* $name:ident;)*) => {
        mod ristretto255 {
            $(#[test] fn $name() { super::$name::<quiver_ainq::Ristretto255>(); })*
        }
        mod bls12381 {
            $(#[test] fn $name() { super::$name::<quiver_ainq::Bls12381G1>(); })*
        }
    };
}

/// Makes one test per suite and strategy out of a function generic over the suite.
macro_rules! for_each_strategy {
    ($($name:ident;)*) => {
        for_each_strategy! { flat Flat $($name)* }
        for_each_strategy! { tree Tree $($name)* }
    };
    ($strategy:ident $kind:ident $($name:ident)*) => {
        mod $strategy {
            mod ristretto255 {
                $(#[test] fn $name() {
                    super::super::$name::<quiver_ainq::Ristretto255>(quiver_ainq::StrategyKind::$kind);
                })*
            }
            mod bls12381 {
                $(#[test] fn $name() {
                    super::super::$name::<quiver_ainq::Bls12381G1>(quiver_ainq::StrategyKind::$kind);
                })*
            }
        }
    };
}

mod acceptance;
mod adversary;
mod agreement;
mod anonymous;
mod by_hand;
mod climber;
#[cfg(feature = "instrumented")]
mod cost;
mod kem;
mod nonces;
mod rosters;
mod secrecy;
mod short_headers;
mod swarm;
mod traffic;
mod tree;
mod tree_sizes;
