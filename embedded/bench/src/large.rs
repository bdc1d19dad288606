//! Benchmarks that take more flash or memory than a board has beside its node: pairings, attribute-based encryption, RSA.

mod attributes;
pub mod forest;
mod groups;
mod rivest;

use crate::BenchTarget;
use crate::arguments::Arguments;
use crate::error::{BenchError, Result};
use crate::runner::Runner;

/// Usage, as it is printed.
pub(crate) const USAGE: &[&str] = &[rivest::USAGE, groups::USAGE, attributes::USAGE];

/// Runs the benchmark of this name.
pub(crate) async fn run<H: BenchTarget>(
    benchmark: &str,
    runner: &mut Runner<'_, '_, H>,
    words: Arguments<'_>,
) -> Result<()> {
    match benchmark {
        "group" => groups::group(runner, words).await,
        "pairing" => groups::pairings(runner, words).await,
        "abe" => attributes::abe(runner, words).await,
        "rsa" => rivest::rsa(runner, words).await,
        _ => Err(BenchError::NotInThisImage),
    }
}
