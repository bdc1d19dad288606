//! The suites by name, for choices at run time.

use alloc::format;
use alloc::string::String;
use core::str::FromStr;

use super::{Bls12381G1, Ristretto255, Suite};

/// A suite, chosen at run time. Its name is `ristretto255` or `bls12-381-g1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, derive_more::Display)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum SuiteKind {
    /// [`Ristretto255`], constant-time.
    #[default]
    #[cfg_attr(feature = "serde", serde(rename = "ristretto255"))]
    #[display("ristretto255")]
    Ristretto255,
    /// [`Bls12381G1`], not constant-time.
    #[cfg_attr(feature = "serde", serde(rename = "bls12-381-g1"))]
    #[display("bls12-381-g1")]
    Bls12381G1,
}

impl SuiteKind {
    /// The suite's ID, as it enters every hash.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Ristretto255 => Ristretto255::ID,
            Self::Bls12381G1 => Bls12381G1::ID,
        }
    }

    /// The suite with this ID.
    ///
    /// # Errors
    /// In words.
    pub fn from_id(id: &str) -> Result<Self, String> {
        [Self::Ristretto255, Self::Bls12381G1]
            .into_iter()
            .find(|suite| suite.id() == id)
            .ok_or_else(|| format!("suite {id} is unknown to this program"))
    }
}

impl FromStr for SuiteKind {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "ristretto255" => Ok(Self::Ristretto255),
            "bls12-381-g1" => Ok(Self::Bls12381G1),
            _ => Err("`ristretto255` or `bls12-381-g1`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;
    use crate::StrategyKind;

    #[test]
    fn names_of_suites_and_strategies_are_read_back_and_others_refused() {
        for suite in [SuiteKind::Ristretto255, SuiteKind::Bls12381G1] {
            assert_eq!(suite.to_string().parse(), Ok(suite));
            assert_eq!(SuiteKind::from_id(suite.id()), Ok(suite));
        }
        for strategy in StrategyKind::ALL {
            assert_eq!(strategy.to_string().parse(), Ok(strategy));
        }
        assert!("rot13".parse::<SuiteKind>().is_err() && "forest".parse::<StrategyKind>().is_err());
    }

    #[test]
    fn unknown_suites_are_refused() {
        for id in ["NO-SUCH", "QUIVER-AINQ-RISTRETTO255-SHA512-v1-strict-paper"] {
            assert!(SuiteKind::from_id(id).unwrap_err().contains("unknown"));
        }
    }
}
