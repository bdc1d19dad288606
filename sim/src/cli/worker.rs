//! `sim worker`: hosts part of the drones of a run in another process.

use std::time::Duration;

use clap::Args;
use quiver_report::{Progress, length_of_time};

use crate::plan::DEFAULT_BIND;
use crate::report::Outcome;
use crate::{Result, live, logging};

pub(super) const ABOUT: &str = "\
Hosts part of the drones of a `sim run --workers N` that goes on elsewhere: the leader, the KGCs and all checks are there, the
drones here. Each worker gets every N-th drone. Any engine can start them: a shell on one
machine, containers, Slurm, an indexed Job of Kubernetes. Workers may start before the run and wait for it.

A worker that is lost takes its drones with it: they count as crashed, and the run goes on with the others and fails.

The connection is not encrypted and carries the simulated drones' tokens: keep it to a network of your own.";

#[derive(Clone, Debug, Args)]
pub(super) struct WorkerArgs {
    /// Address of the run: its --bind
    #[arg(value_name = "HOST:PORT", default_value = DEFAULT_BIND, value_parser = host_and_port)]
    run: String,
    /// Time for which to try to connect
    #[arg(long, value_name = "DURATION", default_value = "120s", value_parser = length_of_time)]
    patience: Duration,
}

/// Refuses an impossible address at once, in place of dialling it until the patience ends.
fn host_and_port(text: &str) -> std::result::Result<String, String> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) => {
            Ok(text.into())
        }
        _ => Err("expected a host and a port, such as 10.0.0.1:7400".into()),
    }
}

/// Works until the run is over.
pub(super) fn worker(args: &WorkerArgs) -> Result<Outcome> {
    logging::start(&Progress::hidden())?;
    live::work(&args.run, args.patience)
}
