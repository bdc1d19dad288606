//! The groups that a virtual world can compute in.

use std::str::FromStr;

/// The group that a virtual world computes in. Its name is `ristretto255` or `toy`.
///
/// A program that runs a world names one, and so compiles none of its machines a second time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, derive_more::Display)]
#[display("{}", self.name())]
pub enum WorldSuite {
    /// [`Ristretto255`](quiver_ainq::Ristretto255).
    #[default]
    Ristretto255,
    /// [`InsecureToy`](crate::InsecureToy), which hides nothing: the same protocol code, many times faster.
    Toy,
}

impl WorldSuite {
    /// All.
    pub const ALL: [Self; 2] = [Self::Ristretto255, Self::Toy];

    /// Name of the suite.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ristretto255 => "ristretto255",
            Self::Toy => "toy",
        }
    }
}

impl FromStr for WorldSuite {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|suite| suite.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|suite| suite.name()).collect();
            let more = match name {
                "bls12-381-g1" => "; bls12-381-g1 runs in the tests of core/ainq alone",
                "ristretto255-shared" => "; to share verifications, add --share-verifications",
                _ => "",
            };
            format!("no suite of the virtual world: give one of {}{more}", names.join(", "))
        })
    }
}

/// Calls a generic function over the type of a [`WorldSuite`].
macro_rules! over {
    ($suite:expr, $S:ident => $call:expr) => {
        match $suite {
            $crate::WorldSuite::Ristretto255 => {
                type $S = quiver_ainq::Ristretto255;
                $call
            }
            $crate::WorldSuite::Toy => {
                type $S = $crate::InsecureToy;
                $call
            }
        }
    };
}
pub(crate) use over;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_are_refused_with_what_there_is() {
        for suite in WorldSuite::ALL {
            assert_eq!(suite.to_string().parse(), Ok(suite));
        }
        let refused = |name: &str| name.parse::<WorldSuite>().unwrap_err();
        assert!(refused("rsa").ends_with("ristretto255, toy"));
        assert!(refused("bls12-381-g1").contains("core/ainq"));
        assert!(refused("ristretto255-shared").contains("--share-verifications"));
    }
}
