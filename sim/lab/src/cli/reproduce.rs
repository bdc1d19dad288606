//! `lab reproduce`: measures published evaluations again.

use clap::{Args, Subcommand};
use quiver_report::{Bars, OutputArgs, Report};

use super::{Presentation, making};
use crate::heap::Heap;
use crate::{LabError, Result, abe, abke, ainq, board, ibe};

const EXAMPLES: &str = "\
Each evaluation gets a folder of its own under results/: report.html to read, report.json, a CSV \
per table and an SVG per plot. Published figures stand beside ours with their ratio. Times are \
CPU times, which other work on the machine disturbs little; measure on an idle one all the same \
for figures to keep.

Examples:
  lab reproduce ainq              the paper's tables, growth to 100,000 drones: a minute or two
  lab reproduce ainq --full       growth to 1,000,000 drones: some five minutes and 3 GB
  lab reproduce ainq --quick      a look at small groups: seconds
  lab reproduce abe               attribute-based encryption, 1 to 30 attributes: a minute or two
  lab reproduce ibe               threshold identity-based encryption, 4 to 1,024 validators: a minute or two
  lab reproduce abke              attribute-based key exchange, 1,000 to 1,000,000 gates: a minute or two
  lab reproduce board             the bench shell, native and emulated, beside two boards: a minute
  lab reproduce all --json        every evaluation, for scripts: an array on standard output

Exit codes:
  0  everything was measured, and both sides held the same keys
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
    Ainq(EvaluationOptions),
    /// Attribute-based encryption (GPSW06, YCT14) on a laptop and a microcontroller; and FABEO22
    #[command(after_help = EXAMPLES)]
    Abe(EvaluationOptions),
    /// Threshold identity-based encryption in files (DistributedIBE); Feldman's and KZG's commitments
    #[command(after_help = EXAMPLES)]
    Ibe(EvaluationOptions),
    /// Attribute-based key exchange (CCS 2016), step by step; growth with gates and attributes; garbling
    #[command(after_help = EXAMPLES)]
    Abke(EvaluationOptions),
    /// The bench shell, native and as recorded in emulation, beside figures of an IoT-LAB M3 and an nRF52840
    #[command(after_help = EXAMPLES)]
    Board(EvaluationOptions),
    /// Every evaluation there is
    #[command(after_help = EXAMPLES)]
    All(EvaluationOptions),
}

#[derive(Clone, Debug, Args)]
struct EvaluationOptions {
    /// Go to the largest sizes: minutes, and gigabytes of memory
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// Small sizes and few repetitions, to see that everything works
    #[arg(long)]
    quick: bool,
    /// Seed for all random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: OutputArgs,
}

impl EvaluationOptions {
    /// The plan of whatever size the flags ask for.
    fn sized<P: Default>(&self, full: fn() -> P, quick: fn() -> P) -> P {
        match (self.full, self.quick) {
            (true, _) => full(),
            (false, true) => quick(),
            (false, false) => P::default(),
        }
    }

    fn ainq(&self) -> ainq::AinqPlan {
        ainq::AinqPlan { seed: self.seed, ..self.sized(ainq::AinqPlan::full, ainq::AinqPlan::quick) }
    }

    fn abe(&self) -> abe::AbePlan {
        abe::AbePlan { seed: self.seed, ..self.sized(abe::AbePlan::full, abe::AbePlan::quick) }
    }

    fn ibe(&self) -> ibe::IbePlan {
        ibe::IbePlan { seed: self.seed, ..self.sized(ibe::IbePlan::full, ibe::IbePlan::quick) }
    }

    fn abke(&self) -> abke::AbkePlan {
        abke::AbkePlan { seed: self.seed, ..self.sized(abke::AbkePlan::full, abke::AbkePlan::quick) }
    }

    /// The shell draws from a seed of its own.
    fn board(&self) -> board::BoardPlan {
        self.sized(board::BoardPlan::full, board::BoardPlan::quick)
    }

    /// The command of the lab that makes the same report.
    fn command(&self, evaluation: &str) -> String {
        let size = if self.full {
            " --full"
        } else if self.quick {
            " --quick"
        } else {
            ""
        };
        format!("reproduce {evaluation}{size} --seed {}", self.seed)
    }
}

/// Measures, prints and writes the chosen experiments.
pub(super) fn reproduce(args: &ReproduceArgs, heap: &dyn Heap) -> Result<()> {
    let options = args.evaluation.options();
    let mut bars = options.output.begin().map_err(LabError::Usage)?;
    let mut presentation = Presentation::new(&options.output);
    let reports = args.evaluation.reports(heap, &mut bars, |report| presentation.write(report))?;
    drop(bars);
    presentation.print(&reports)
}

impl Evaluation {
    const fn options(&self) -> &EvaluationOptions {
        match self {
            Self::Ainq(options)
            | Self::Abe(options)
            | Self::Ibe(options)
            | Self::Abke(options)
            | Self::Board(options)
            | Self::All(options) => options,
        }
    }

    /// Carries out the evaluations; each is `finished` before the next one begins.
    fn reports(
        &self,
        heap: &dyn Heap,
        bars: &mut Bars,
        mut finished: impl FnMut(&Report),
    ) -> Result<Vec<Report>> {
        let options = self.options();
        let mut reports = Vec::new();
        let mut keep = |report: Report| {
            finished(&report);
            reports.push(report);
        };
        if matches!(self, Self::Ainq(_) | Self::All(_)) {
            keep(ainq::reproduce(&options.ainq(), making(&options.command("ainq")), bars)?);
        }
        if matches!(self, Self::Abe(_) | Self::All(_)) {
            let making = making(&options.command("abe"));
            keep(abe::reproduce(&options.abe(), making, heap, bars)?);
        }
        if matches!(self, Self::Ibe(_) | Self::All(_)) {
            keep(ibe::reproduce(&options.ibe(), making(&options.command("ibe")), bars)?);
        }
        if matches!(self, Self::Abke(_) | Self::All(_)) {
            keep(abke::reproduce(&options.abke(), making(&options.command("abke")), bars)?);
        }
        if matches!(self, Self::Board(_) | Self::All(_)) {
            keep(board::reproduce(&options.board(), making(&options.command("board")), bars)?);
        }
        Ok(reports)
    }
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

    fn options(words: &[&str]) -> EvaluationOptions {
        let only = Only::try_parse_from(std::iter::once(&"reproduce").chain(words)).unwrap();
        only.args.evaluation.options().clone()
    }

    #[test]
    fn size_of_the_plan_follows_the_flags() {
        assert_eq!(options(&["ainq"]).ainq(), ainq::AinqPlan::default());
        assert_eq!(options(&["all", "--full"]).ainq(), ainq::AinqPlan::full());
        assert_eq!(options(&["all", "--full"]).abe(), abe::AbePlan::full());
        assert_eq!(
            options(&["ainq", "--quick", "--seed", "7"]).ainq(),
            ainq::AinqPlan { seed: 7, ..ainq::AinqPlan::quick() }
        );
        assert_eq!(
            options(&["abe", "--seed", "7"]).abe(),
            abe::AbePlan { seed: 7, ..abe::AbePlan::default() }
        );
        assert_eq!(
            options(&["ibe", "--quick", "--seed", "7"]).ibe(),
            ibe::IbePlan { seed: 7, ..ibe::IbePlan::quick() }
        );
        assert_eq!(
            options(&["abke", "--full", "--seed", "7"]).abke(),
            abke::AbkePlan { seed: 7, ..abke::AbkePlan::full() }
        );
        assert_eq!(options(&["board", "--quick"]).board(), board::BoardPlan::quick());
        assert!(Only::try_parse_from(["reproduce", "ainq", "--quick", "--full"]).is_err());
        assert!(Only::try_parse_from(["reproduce"]).is_err());
    }

    #[test]
    fn a_report_names_the_command_that_repeats_it() {
        let command = options(&["abe", "--quick"]).command("abe");
        assert_eq!(making(&command).command, "cargo lab reproduce abe --quick --seed 1");
    }
}
