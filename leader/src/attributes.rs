//! `leader abe fetch` and `leader abe list`: asked of the running leader, or done here if none runs.

use std::time::Duration;

use quiver_role::Leader;
use quiver_service::control::call_if_running;
use quiver_service::drone::abe::{AbeCommand, Line, lines, print_lines, print_report};
use quiver_service::drone::fetch::{KeyClient, Report};
use quiver_service::node_state::Missing;
use quiver_service::secrets::ProtectionArgs;
use quiver_service::with_suite;

use crate::config::Config;
use crate::control::Request;
use crate::error::{Error, Result};
use crate::service::leader_config;
use crate::store::Store;

/// How long a fetch may take if a subcommand waits for the running leader: less than that waits.
pub(crate) const PATIENCE_OF_A_CALL: Duration = Duration::from_secs(25);
/// How long it may take otherwise.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

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
        let (store, records) = Store::open(&config.data_dir, &deployment, &by, Missing::Refuse)?;
        let keys = store.keys(&deployment);
        if what == Alone::List {
            return Ok((Report::default(), lines(&keys.keyring()?)));
        }
        let group = store.group().ok_or(Error::NoToken)?;
        let settings = leader_config(config, &file, deployment.clone(), &group, None)?;
        let machine = Leader::new(settings, records)?;
        let Some(keypair) = machine.keypair() else {
            return Err(quiver_service::drone::Error::NotEnrolled("run `leader serve` first").into());
        };
        let report = KeyClient::new(keys.clone(), config.fetching(&file, PATIENCE)?).fetch(keypair).await?;
        Ok((report, lines(&keys.keyring()?)))
    })
}
