//! No large benchmarks: an image without them says so.

use core::future::{Ready, ready};

use crate::BenchTarget;
use crate::arguments::Arguments;
use crate::error::{BenchError, Result};
use crate::runner::Runner;

/// Usage, of which there is none.
pub(crate) const USAGE: &[&str] = &[];

/// Refuses the benchmark.
pub(crate) fn run<H: BenchTarget>(_: &str, _: &mut Runner<'_, '_, H>, _: Arguments<'_>) -> Ready<Result<()>> {
    ready(Err(BenchError::NotInThisImage))
}
