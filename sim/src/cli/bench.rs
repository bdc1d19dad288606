//! `sim bench`: the boards' bench shell, natively.

use clap::Args;
use quiver_bench::{BenchError, native};

use crate::report::Outcome;
use crate::{Result, SimError};

#[derive(Clone, Debug, Args)]
pub(super) struct BenchArgs {
    /// What a board's console would be given after `bench`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Does what a board does with the line, and shows what it would show.
pub(super) fn bench(args: &BenchArgs) -> Result<Outcome> {
    let mut out = String::new();
    match native::run(&args.words.join(" "), &mut out) {
        Ok(()) => {
            super::print(out.trim_end());
            Ok(Outcome::Passed)
        }
        // The shell has said what is wrong, with its usage.
        Err(BenchError::Usage(_) | BenchError::OutOfBounds { .. }) => {
            Err(SimError::Usage(out.trim_end().trim_start_matches("error: ").into()))
        }
        Err(_) => {
            super::complain(out.trim_end().trim_start_matches("error: "));
            Ok(Outcome::Failed)
        }
    }
}
