//! `lab bench`: the boards' bench shell, natively.

use clap::Args;
use quiver_bench::{BenchError, native};
use quiver_report::print;

use crate::{LabError, Result};

#[derive(Clone, Debug, Args)]
pub(crate) struct BenchArgs {
    /// Words of a board's console line after `bench`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Runs one line as a board would, and prints what its console would print.
pub(crate) fn bench(args: &BenchArgs) -> Result<()> {
    let mut out = String::new();
    let outcome = native::run(&args.words.join(" "), &mut out);
    match outcome {
        Ok(()) => {
            print(out.trim_end())?;
            Ok(())
        }
        // The shell has printed the mistake, with its usage.
        Err(BenchError::Usage(_) | BenchError::OutOfBounds { .. }) => {
            Err(LabError::Usage(out.trim_end().trim_start_matches("error: ").into()))
        }
        Err(error) => Err(error.into()),
    }
}
