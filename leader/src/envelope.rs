//! `leader envelope`: asked of the running leader, or done here if none runs.

use quiver_role::{Leader, Primary};
use quiver_service::control::{call, call_if_running};
use quiver_service::drone::envelope::{Answer, EnvelopeArgs, Holder, Job};
use quiver_service::drone::fetch::copy;
use quiver_service::node_state::{Missing, NodeState};
use quiver_service::secrets::ProtectionArgs;
use quiver_service::{terminal, with_suite};

use crate::config::Config;
use crate::control::Request;
use crate::error::{Error, Result};
use crate::service::leader_config;
use crate::store::Store;

/// Runs a subcommand.
pub(crate) async fn run(config: &Config, protection: &ProtectionArgs, command: EnvelopeArgs) -> Result<()> {
    let told = match command {
        EnvelopeArgs::Seal(args) => perform(config, protection, args.job()?).await?,
        EnvelopeArgs::Open(args) => perform(config, protection, args.job()?).await?,
        EnvelopeArgs::Send(args) => {
            call(&config.data_dir, "leader", "serve", &Request::Seal(args.job())).await?
        }
    };
    Ok(terminal::line(&told)?)
}

async fn perform(config: &Config, protection: &ProtectionArgs, job: Job) -> Result<String> {
    let request = Request::Envelope(job.clone());
    match call_if_running::<_, Answer>(&config.data_dir, &request).await? {
        Some(answer) => Ok(answer.told()?),
        None => alone(config, protection, &job),
    }
}

/// What needs no state file is done without one.
fn alone(config: &Config, protection: &ProtectionArgs, job: &Job) -> Result<String> {
    let file = config.read_deployment()?;
    with_suite!(file.suite()?, S => {
        let deployment = file.pin::<S>()?;
        if !NodeState::exists(&config.data_dir) {
            return Ok(Holder::nobody(deployment).perform(job)?);
        }
        let by = protection.obtain(false)?;
        let (store, records) = Store::open(&config.data_dir, &deployment, &by, Missing::Refuse)?;
        let keyring = store.keys(&deployment).keyring()?;
        let group = store.group().ok_or(Error::NoToken)?;
        let machine = Leader::new(leader_config(config, &file, deployment.clone(), &group, None)?, records)?;
        let keypair = machine.keypair().map(|keypair| copy(&deployment, keypair)).transpose()?;
        let revocations = machine.revocations().list().clone();
        Ok(Holder { deployment, keyring, keypair, revocations }.perform(job)?)
    })
}
