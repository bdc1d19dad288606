//! `edge abe fetch` and `edge abe list`: asked of the running edge, or done here if none runs.

use std::time::Duration;

use quiver_ainq::Deployment;
use quiver_drone::command::{AbeCommand, Line, lines, print_lines, print_report};
use quiver_drone::fetching::{Desk, Report};
use quiver_role::{Edge, EdgeConfig, Kgcs, QuorumSuite, Snapshot};
use quiver_service::control::call_if_running;
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::node_state::Missing;
use quiver_service::secrets::ProtectionArgs;
use quiver_service::with_suite;

use crate::config::Config;
use crate::control::Request;
use crate::error::Result;
use crate::store::Store;

/// How long a fetch may take if a subcommand waits for the running edge: less than that waits.
pub(crate) const PATIENCE_OF_A_CALL: Duration = Duration::from_secs(25);

/// Runs a subcommand.
pub(crate) async fn run(config: &Config, protection: &ProtectionArgs, command: &AbeCommand) -> Result<()> {
    match command {
        AbeCommand::Fetch { json, .. } => {
            let report = match call_if_running(&config.data_dir, &Request::Fetch).await? {
                Some(report) => report,
                None => alone(config, protection, Alone::Fetch).await?.0,
            };
            Ok(print_report(&report, *json)?)
        }
        AbeCommand::List { json } => {
            let lines = match call_if_running(&config.data_dir, &Request::Keys).await? {
                Some(lines) => lines,
                None => alone(config, protection, Alone::List).await?.1,
            };
            Ok(print_lines(&lines, *json)?)
        }
    }
}

/// What is to be done with the state file at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alone {
    Fetch,
    List,
}

async fn alone(config: &Config, protection: &ProtectionArgs, what: Alone) -> Result<(Report, Vec<Line>)> {
    let file = config.read_deployment()?;
    with_suite!(file.suite()?, S => {
        let deployment = file.pin::<S>()?;
        let by = protection.obtain(false)?;
        let (store, state) = Store::open(&config.data_dir, &deployment, &by, Missing::Refuse)?;
        let keys = store.keys(&deployment);
        let report = match what {
            Alone::Fetch => {
                let desk = Desk::new(keys.clone(), config.fetching(&file, config.enrol_timeout)?);
                fetch(&desk, config, &file, &deployment, state.as_ref()).await?
            }
            Alone::List => Report::default(),
        };
        Ok((report, lines(&keys.keyring()?)))
    })
}

async fn fetch<S: QuorumSuite>(
    desk: &Desk<S>,
    config: &Config,
    file: &DeploymentFile,
    deployment: &Deployment<S>,
    state: Option<&Snapshot>,
) -> Result<Report> {
    let settings = EdgeConfig {
        deployment: deployment.clone(),
        group: None,
        token: None,
        kgcs: Kgcs::quorum(file.kgc_ids()),
        timing: config.timing(),
    };
    let machine = Edge::new(settings, state)?;
    let Some(keypair) = machine.keypair() else {
        return Err(quiver_drone::Error::NotEnrolled("run `edge enroll` first").into());
    };
    Ok(desk.fetch(keypair).await?)
}
