//! `edge abe fetch|list` and `edge abke fetch|status`: asked of the running edge, or done here if none runs.

use std::time::Duration;

use quiver_ainq::Deployment;
use quiver_role::{Edge, EdgeConfig, Kgcs, QuorumSuite, Snapshot};
use quiver_service::clock;
use quiver_service::control::call_if_running;
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::drone::abe::{AbeCommand, Line, lines, print_lines, print_report};
use quiver_service::drone::abke::{AbkeCommand, Certified, certified, print_certified};
use quiver_service::drone::fetch::{KeyClient, Report};
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
        AbeCommand::Fetch { json, .. } => Ok(print_report(&fetched(config, protection).await?, *json)?),
        AbeCommand::List { json } => {
            let lines = match call_if_running(&config.data_dir, &Request::Keys).await? {
                Some(lines) => lines,
                None => alone(config, protection, Alone::List).await?.lines,
            };
            Ok(print_lines(&lines, *json)?)
        }
    }
}

/// Runs a subcommand about certified fields.
pub(crate) async fn run_abke(
    config: &Config,
    protection: &ProtectionArgs,
    command: &AbkeCommand,
) -> Result<()> {
    match command {
        AbkeCommand::Fetch { json, .. } => Ok(print_report(&fetched(config, protection).await?, *json)?),
        AbkeCommand::Status { json } => {
            let lines = match call_if_running(&config.data_dir, &Request::Certified).await? {
                Some(lines) => lines,
                None => alone(config, protection, Alone::Status).await?.certified,
            };
            Ok(print_certified(&lines, *json)?)
        }
    }
}

async fn fetched(config: &Config, protection: &ProtectionArgs) -> Result<Report> {
    match call_if_running(&config.data_dir, &Request::Fetch).await? {
        Some(report) => Ok(report),
        None => Ok(alone(config, protection, Alone::Fetch).await?.report),
    }
}

/// What is to be done with the state file at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alone {
    Fetch,
    List,
    Status,
}

/// What came of it.
#[derive(Debug, Default)]
struct Done {
    report: Report,
    lines: Vec<Line>,
    certified: Vec<Certified>,
}

async fn alone(config: &Config, protection: &ProtectionArgs, what: Alone) -> Result<Done> {
    let file = config.read_deployment()?;
    with_suite!(file.suite()?, S => {
        let deployment = file.pin::<S>()?;
        let by = protection.obtain(false)?;
        let (store, state) = Store::open(&config.data_dir, &deployment, &by, Missing::Refuse)?;
        let keys = store.keys(&deployment);
        Ok(match what {
            Alone::Fetch => {
                let client = KeyClient::new(keys, config.fetching(&file, config.enrol_timeout)?);
                let report = fetch(&client, config, &file, &deployment, state.as_ref()).await?;
                Done { report, ..Done::default() }
            }
            Alone::List => Done { lines: lines(&keys.keyring()?), ..Done::default() },
            Alone::Status => {
                Done { certified: certified(&keys.keyring()?, clock::unix_now()), ..Done::default() }
            }
        })
    })
}

async fn fetch<S: QuorumSuite>(
    client: &KeyClient<S>,
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
        return Err(quiver_service::drone::Error::NotEnrolled("run `edge enroll` first").into());
    };
    Ok(client.fetch(keypair).await?)
}
