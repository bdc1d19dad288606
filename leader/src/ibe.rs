//! `leader ibe`: files that open when a condition is met. Keys are asked of the running leader, or collected here if none runs.

use std::path::PathBuf;

use quiver_drone::fetching::Desk;
use quiver_drone::ibe::{self, KeySource};
use quiver_drone::release::{IbeCommand, IbeOptions, KeyCall, KeyReport, read_authority};
use quiver_ibe::{Condition, MasterPublicKey, UnverifiedIdentityKey};
use quiver_role::{Leader, QuorumSuite};
use quiver_service::control::call_if_running;
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::node_state::Missing;
use quiver_service::secrets::ProtectionArgs;
use quiver_service::{terminal, with_suite};

use crate::attributes::PATIENCE;
use crate::config::Config;
use crate::control::Request;
use crate::error::{Error, Result};
use crate::service::leader_config;
use crate::store::Store;

/// Runs a subcommand.
pub(crate) async fn run(config: &Config, protection: &ProtectionArgs, options: IbeOptions) -> Result<()> {
    let mut program = Program { config, protection, authority: options.authority };
    match options.command {
        IbeCommand::Keys(args) => {
            let report = program.call(&args.call()).await?;
            let file = config.read_deployment()?;
            Ok(with_suite!(file.suite()?, S => args.tell(&file.pin::<S>()?, &report))?)
        }
        IbeCommand::Files(args) => {
            let told = ibe::run(args, &mut program).await?;
            told.map_or(Ok(()), |told| Ok(terminal::line(&told)?))
        }
    }
}

/// This program, with or without a running leader.
struct Program<'a> {
    config: &'a Config,
    protection: &'a ProtectionArgs,
    /// The master key's public file, if it was given.
    authority: Option<PathBuf>,
}

impl KeySource for Program<'_> {
    async fn master(&mut self) -> quiver_drone::Result<MasterPublicKey> {
        let file = self.config.read_deployment().map_err(said)?;
        with_suite!(file.suite()?, S => {
            let deployment = file.pin::<S>()?;
            let authority = match &self.authority {
                Some(path) => read_authority(path, &deployment)?,
                None => self.call(&KeyCall::Authority).await?.authority(&deployment)?,
            };
            Ok(*authority.master())
        })
    }

    async fn key(&mut self, condition: &Condition) -> quiver_drone::Result<UnverifiedIdentityKey> {
        self.call(&KeyCall::Key { condition: condition.to_string(), wait: 0 }).await?.key()
    }

    async fn held(&mut self) -> quiver_drone::Result<Vec<Condition>> {
        Ok(self.call(&KeyCall::List).await?.conditions())
    }
}

impl Program<'_> {
    async fn call(&self, call: &KeyCall) -> quiver_drone::Result<KeyReport> {
        match call_if_running(&self.config.data_dir, &Request::Ibe(call.clone())).await? {
            Some(report) => Ok(report),
            None => {
                let file = self.config.read_deployment().map_err(said)?;
                with_suite!(file.suite()?, S => self.alone::<S>(&file, call).await)
            }
        }
    }

    async fn alone<S: QuorumSuite>(
        &self,
        file: &DeploymentFile,
        call: &KeyCall,
    ) -> quiver_drone::Result<KeyReport> {
        let deployment = file.pin::<S>()?;
        let by = self.protection.obtain(false)?;
        let opened = Store::open(&self.config.data_dir, &deployment, &by, Missing::Refuse);
        let (store, records) = opened.map_err(said)?;
        let plan = self.config.fetching(file, PATIENCE).map_err(said)?;
        let group = store.group().ok_or(Error::NoToken).map_err(said)?;
        let settings = leader_config(self.config, file, deployment.clone(), &group, None).map_err(said)?;
        let machine = Leader::new(settings, records).map_err(|error| said(error.into()))?;
        Desk::new(store.keys(&deployment), plan).release(machine.keypair(), call).await
    }
}

/// An error of this program's own, for whoever asks for keys.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn said(error: Error) -> quiver_drone::Error {
    let code = error.exit() as u8;
    quiver_drone::Error::Answered(error.to_string(), code)
}
