//! `sim worker`: part of the drones of a run that goes on elsewhere.

use std::time::Duration;

use clap::Args;

use crate::plan::DEFAULT_BIND;
use crate::progress::Progress;
use crate::report::Outcome;
use crate::{Result, live, logging};

pub(super) const ABOUT: &str = "\
Hosts part of the drones of a `sim run --workers N` that goes on elsewhere: the leader, the KGCs and all checks are there, the
drones here. Each worker gets every N-th drone. Any engine can start them: a shell on one
machine, containers, Slurm, an indexed Job of Kubernetes. Workers may start before the run and wait for it.

A worker that is lost takes its drones with it: they count as crashed, the run goes on with the others, says so, and fails.

The connection is not encrypted and carries the simulated drones' tokens: keep it to a network of your own.";

#[derive(Clone, Debug, Args)]
pub(super) struct WorkerArgs {
    /// Where the run listens: its --bind
    #[arg(value_name = "HOST:PORT", default_value = DEFAULT_BIND)]
    run: String,
    /// How long to try to reach it
    #[arg(long, value_name = "DURATION", default_value = "120s", value_parser = humantime::parse_duration)]
    patience: Duration,
}

/// Works until the run is over.
pub(super) fn worker(args: &WorkerArgs) -> Result<Outcome> {
    logging::start(&Progress::hidden())?;
    live::work(&args.run, args.patience)
}
