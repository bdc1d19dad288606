//! `sim reproduce`: published evaluations, measured again.

use clap::{Args, Subcommand};
use quiver_experiments::ainq;

use super::showing::{ShowArgs, making};
use crate::Result;
use crate::report::Outcome;

const EXAMPLES: &str = "\
Each evaluation gets a folder of its own under results/: report.html to read, report.json, a CSV \
per table and an SVG per plot. Published figures stand beside ours with their ratio. Times are \
CPU times, which other work on the machine disturbs little; measure on an idle one all the same \
for figures to keep.

Examples:
  sim reproduce ainq              the paper's tables, growth to 100,000 drones: a minute or two
  sim reproduce ainq --full       growth to 1,000,000 drones: some five minutes and 3 GB
  sim reproduce ainq --quick      a look at small groups: seconds
  sim reproduce all --json        every evaluation, for scripts, on standard output

Exit codes:
  0  everything was measured, and drones and leader held the same keys
  1  they did not, or the results could not be written
  2  wrong usage";

#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReproduceArgs {
    #[command(subcommand)]
    evaluation: Evaluation,
}

#[derive(Clone, Debug, Subcommand)]
enum Evaluation {
    /// AinQ (NordSec 2021): edge drone, GenGroupKey, Re-Key; and both strategies far beyond
    #[command(after_help = EXAMPLES)]
    Ainq(Options),
    /// Every evaluation there is
    #[command(after_help = EXAMPLES)]
    All(Options),
}

#[derive(Clone, Debug, Args)]
struct Options {
    /// Go to the largest sizes: minutes, and gigabytes of memory
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// Small sizes and few repetitions, to see that everything works
    #[arg(long)]
    quick: bool,
    /// Whence all keys and choices come
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    show: ShowArgs,
}

impl Options {
    fn plan(&self) -> ainq::Plan {
        let plan = match (self.full, self.quick) {
            (true, _) => ainq::Plan::full(),
            (false, true) => ainq::Plan::quick(),
            (false, false) => ainq::Plan::default(),
        };
        ainq::Plan { seed: self.seed, ..plan }
    }

    /// The command that makes the same report.
    fn command(&self, evaluation: &str) -> String {
        let size = if self.full {
            " --full"
        } else if self.quick {
            " --quick"
        } else {
            ""
        };
        format!("cargo run --release --bin sim -- reproduce {evaluation}{size} --seed {}", self.seed)
    }
}

/// Measures, shows and writes what was asked for.
pub(super) fn reproduce(args: &ReproduceArgs) -> Result<Outcome> {
    let (Evaluation::Ainq(options) | Evaluation::All(options)) = &args.evaluation;
    let mut bars = options.show.begin()?;
    let report = ainq::reproduce(&options.plan(), making(options.command("ainq")), &mut bars)?;
    drop(bars);
    options.show.present(&report)?;
    Ok(Outcome::Passed)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        args: ReproduceArgs,
    }

    fn options(words: &[&str]) -> Options {
        let only = Only::try_parse_from(std::iter::once(&"reproduce").chain(words)).unwrap();
        let (Evaluation::Ainq(options) | Evaluation::All(options)) = only.args.evaluation;
        options
    }

    #[test]
    fn size_of_the_plan_follows_the_flags() {
        assert_eq!(options(&["ainq"]).plan(), ainq::Plan::default());
        assert_eq!(options(&["all", "--full"]).plan(), ainq::Plan::full());
        assert_eq!(
            options(&["ainq", "--quick", "--seed", "7"]).plan(),
            ainq::Plan { seed: 7, ..ainq::Plan::quick() }
        );
        assert!(Only::try_parse_from(["reproduce", "ainq", "--quick", "--full"]).is_err());
        assert!(Only::try_parse_from(["reproduce"]).is_err());
    }

    #[test]
    fn a_report_names_the_command_that_repeats_it() {
        let command = options(&["ainq", "--quick"]).command("ainq");
        assert_eq!(command, "cargo run --release --bin sim -- reproduce ainq --quick --seed 1");
    }
}
