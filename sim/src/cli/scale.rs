//! `sim scale`: measures re-keys of groups of several sizes, and fits their growth.

use clap::Args;
use quiver_ainq::StrategyKind;
use quiver_report::{Making, OutputArgs, complain};

use super::{check_results, show};
use crate::plan::{MAX_DRONES, TransportKind};
use crate::report::Outcome;
use crate::scale::ScalePlan;
use crate::{Result, SimError, logging, measure};

const EXAMPLES: &str = "\
Examples:
  sim scale                                    100 to 3,000 drones, flat and tree, over the memory transport
  sim scale -n 100,300,1000,3000,10000 --strategy flat,tree --transport memory,tcp
  sim scale -n 50,100,200 --open               look at the report when it is there

Writes a CSV per table, an SVG per drawing, report.json and report.html.

Exit codes:
  0  every invariant held at every drone of every run
  1  one did not, or a run could not be carried out
  2  wrong usage";

#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ScaleArgs {
    /// Sizes of the groups
    #[arg(
        short = 'n',
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_values_t = [100, 300, 1000, 3000],
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_DRONES))
    )]
    drones: Vec<u32>,
    /// Re-key strategies of the leaders
    #[arg(long, value_name = "STRATEGY,…", value_delimiter = ',', default_values_t = StrategyKind::ALL)]
    strategy: Vec<StrategyKind>,
    /// Networks between the drones
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [TransportKind::Memory])]
    transport: Vec<TransportKind>,
    /// Seed for all random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Open the report in a browser when the runs are over
    #[arg(long, conflicts_with = "no_results")]
    open: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// Carries out the runs, prints and writes their report.
pub(super) fn scale(args: &ScaleArgs) -> Result<Outcome> {
    let plan = ScalePlan {
        drones: args.drones.clone(),
        strategies: args.strategy.clone(),
        transports: args.transport.clone(),
        seed: args.seed,
    };
    check_results(&args.output)?;
    let progress = args.output.progress();
    logging::start(&progress)?;
    let date = measure::wall_clock();
    let runs = plan.run(&progress)?;
    let version = env!("CARGO_PKG_VERSION").into();
    let report = runs.report(Making { date, version, command: measure::command_line() });
    let folder = args.output.folder().map(|results| report.write_under(results)).transpose();
    let outcome = runs.outcome();
    let ending = if outcome == Outcome::Passed { "All runs passed" } else { "Runs FAILED" };
    let text = || format!("{}\n{ending}", report.terminal());
    let shown = show(&args.output, folder.map_err(SimError::from), args.open, || report.json(), text);
    if outcome == Outcome::Failed {
        complain(&runs.failures());
    }
    shown?;
    Ok(outcome)
}
