//! Checks the suite that a file names. Programs run ristretto255 alone.

use quiver_ainq::suite::BLS12381G1_ID;
use quiver_ainq::{Ristretto255, Suite as _};

/// Checks that this ID is the one of the suite that programs run.
///
/// # Errors
/// Says of which suite the file is, and what to do.
pub fn check(id: &str) -> Result<(), String> {
    match id {
        Ristretto255::ID => Ok(()),
        BLS12381G1_ID => Err(format!(
            "it is of suite bls12-381-g1 ({id}), whose identifier is reserved and which no program runs; make a new \
             deployment under ristretto255 with `kgc init`, and enrol its drones with new tokens"
        )),
        _ => Err(format!("suite {id} is unknown to this program")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_suites_are_refused_and_the_reserved_one_with_a_way_on() {
        assert_eq!(check("QUIVER-AINQ-RISTRETTO255-SHA512-v1"), Ok(()));
        for id in ["NO-SUCH", "QUIVER-AINQ-RISTRETTO255-SHA512-v1-strict-paper", "ristretto255", ""] {
            assert!(check(id).expect_err("refused").contains("unknown"), "{id}");
        }
        let refused = check("QUIVER-AINQ-BLS12381G1-SHA256-v1").expect_err("refused");
        assert!(refused.contains("bls12-381-g1") && refused.contains("kgc init"), "{refused}");
    }
}
