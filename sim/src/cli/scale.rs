//! `sim scale`: measures re-keys of groups of several sizes, and fits their growth.

use clap::Args;
use quiver_ainq::StrategyKind;
use quiver_report::{Making, OutputArgs, complain};

use super::{check_results, show};
use crate::plan::relays::MAX_RELAYS;
use crate::plan::{MAX_DEPUTIES, Plan, TransportKind, WorldKind};
use crate::report::RunOutcome;
use crate::scale::{MAX_REPETITIONS, ScalePlan};
use crate::{Result, SimError, interrupt, logging, measure};

const EXAMPLES: &str = "\
Examples:
  sim scale                                    100 to 3,000 drones, flat and tree, over the memory transport
  sim scale -n 100,300,1000,3000,10000 --strategy flat,tree --transport memory,tcp
  sim scale -n 50,100,200 --repetitions 5      medians, extremes and error bars of five runs of each size
  sim scale -n 50,100,200 --open               look at the report when it is there
  sim scale -n 100,1000,10000 --world virtual --toy --radio 802.15.4    bytes on air and airtime of a radio

Writes a CSV per table, an SVG per drawing, report.json and report.html.

Exit codes:
  0  every invariant held at every drone of every run
  1  one did not, or a run could not be carried out
  2  wrong usage
  130, 143  interrupted (Ctrl-C, SIGTERM); the runs that were finished are reported";

#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ScaleArgs {
    /// Sizes of the groups, each once
    #[arg(
        short = 'n',
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_values_t = [100, 300, 1000, 3000],
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    drones: Vec<u32>,
    /// Runs of each size, strategy and network, each with a seed of its own: medians, extremes, error bars
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_REPETITIONS)))]
    repetitions: u32,
    /// Re-key strategies of the leaders
    #[arg(long, value_name = "STRATEGY,…", value_delimiter = ',', default_values_t = StrategyKind::ALL)]
    strategy: Vec<StrategyKind>,
    /// World of the drones
    #[arg(long, value_enum, default_value_t)]
    world: WorldKind,
    /// Live world: networks between the drones; memory if not given
    #[arg(long, value_enum, value_delimiter = ',')]
    transport: Vec<TransportKind>,
    /// Live world: relays between the drones and the leader
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=i64::from(MAX_RELAYS)))]
    relays: u32,
    /// Live world: deputies of the leader, which is lost at the end of each run
    #[arg(long, value_name = "K", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=i64::from(MAX_DEPUTIES)))]
    deputies: u32,
    /// Virtual world: the radio between the drones, such as 802.15.4, ble, lora-sf7 or wifi
    #[arg(long, value_name = "PRESET")]
    radio: Option<String>,
    /// Virtual world: the radio (or `ideal`, a cable) with which drones enrol and join before all change to
    /// --radio
    #[arg(long, value_name = "PRESET", requires = "radio", hide_short_help = true)]
    depot: Option<String>,
    /// Virtual world: compute in a toy group that hides nothing, a hundred times faster
    #[arg(long, hide_short_help = true)]
    toy: bool,
    /// Seed for all random choices of the first run of each size; the others have the seeds after it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Open the report in a browser when the runs are over
    #[arg(long, conflicts_with = "no_results")]
    open: bool,
    #[command(flatten)]
    output: OutputArgs,
}

impl ScaleArgs {
    fn plan(&self) -> Result<ScalePlan> {
        if self.world == WorldKind::Virtual && !self.transport.is_empty() {
            return Err(SimError::Usage("--transport is for --world live".into()));
        }
        let usual = Plan {
            world: self.world,
            relays: self.relays,
            deputies: self.deputies,
            radio: self.radio.clone(),
            depot: self.depot.clone(),
            toy: self.toy,
            seed: self.seed,
            ..Plan::default()
        };
        Ok(ScalePlan {
            drones: self.drones.clone(),
            strategies: self.strategy.clone(),
            transports: match self.transport.as_slice() {
                [] => vec![usual.transport],
                given => given.to_vec(),
            },
            repetitions: self.repetitions,
            usual,
        })
    }
}

/// Carries out the runs, prints and writes their report.
pub(super) fn scale(args: &ScaleArgs) -> Result<RunOutcome> {
    let plan = args.plan()?;
    plan.check()?;
    check_results(&args.output)?;
    let progress = args.output.progress();
    logging::start(&progress)?;
    interrupt::listen()?;
    let date = measure::wall_clock();
    let runs = plan.run(&progress)?;
    let version = env!("CARGO_PKG_VERSION").into();
    let report = runs.report(Making { date, version, command: measure::command_line() });
    let folder = args.output.folder().map(|results| report.write_under(results)).transpose();
    let outcome = runs.outcome();
    let ending = match outcome {
        RunOutcome::Passed => "All runs passed".into(),
        RunOutcome::Failed => "Runs FAILED".into(),
        RunOutcome::Interrupted => format!("INTERRUPTED after {}, which passed", runs.finished()),
    };
    let text = || format!("{}\n{ending}", report.terminal());
    let shown = show(&args.output, folder.map_err(SimError::from), args.open, || report.json(), text);
    if outcome == RunOutcome::Failed {
        complain(&runs.failures());
    }
    shown?;
    Ok(outcome)
}
