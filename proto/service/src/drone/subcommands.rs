//! `edge ibe` and `leader ibe`: keys of conditions asked of the program's running service, or collected by the command itself
//! where none runs.

use std::future::Future;
use std::path::{Path, PathBuf};

use crate::control::{Patience, call_if_running};
use crate::deployment_file::DeploymentFile;
use crate::{terminal, with_suite};
use quiver_ibe::{Condition, MasterPublicKey, UnverifiedIdentityKey};
use quiver_role::QuorumSuite;
use serde::Serialize;

use crate::drone::Result;
use crate::drone::ibe::{self, KeySource};
use crate::drone::release::{IbeCommand, IbeOptions, KeyCall, KeyReport, read_authority};

/// A program whose service collects keys of conditions.
pub trait Program {
    /// What it asks of its running service.
    type Request: Serialize + Patience;

    /// The request that carries `call`.
    fn request(call: &KeyCall) -> Self::Request;

    /// Where its state is, and the socket of its service.
    fn data_dir(&self) -> &Path;

    /// Whose deployment it is of.
    ///
    /// # Errors
    /// Those of reading the file.
    fn deployment(&self) -> Result<DeploymentFile>;

    /// What the service would answer, while none runs.
    ///
    /// # Errors
    /// Those of the state file and of collecting.
    fn alone<S: QuorumSuite>(
        &self,
        file: &DeploymentFile,
        call: &KeyCall,
    ) -> impl Future<Output = Result<KeyReport>>;
}

/// Runs a subcommand `ibe`.
///
/// # Errors
/// Those of the program, of asking its service, of files and of standard output.
pub async fn run(program: impl Program, options: IbeOptions) -> Result<()> {
    let mut asking = Asking { program, authority: options.authority };
    match options.command {
        IbeCommand::Keys(args) => {
            let report = asking.call(&args.call()).await?;
            let file = asking.program.deployment()?;
            with_suite!(file.suite()?, S => args.tell(&file.pin::<S>()?, &report))
        }
        IbeCommand::Files(args) => {
            let told = ibe::run(args, &mut asking).await?;
            told.map_or(Ok(()), |told| Ok(terminal::line(&told)?))
        }
    }
}

struct Asking<P> {
    program: P,
    /// The master key's public file, if it was given.
    authority: Option<PathBuf>,
}

impl<P: Program> Asking<P> {
    async fn call(&self, call: &KeyCall) -> Result<KeyReport> {
        match call_if_running(self.program.data_dir(), &P::request(call)).await? {
            Some(report) => Ok(report),
            None => {
                let file = self.program.deployment()?;
                with_suite!(file.suite()?, S => self.program.alone::<S>(&file, call).await)
            }
        }
    }
}

impl<P: Program> KeySource for Asking<P> {
    async fn master(&mut self) -> Result<MasterPublicKey> {
        let file = self.program.deployment()?;
        with_suite!(file.suite()?, S => {
            let deployment = file.pin::<S>()?;
            let authority = match &self.authority {
                Some(path) => read_authority(path, &deployment)?,
                None => self.call(&KeyCall::Authority).await?.authority(&deployment)?,
            };
            Ok(*authority.master())
        })
    }

    async fn key(&mut self, condition: &Condition) -> Result<UnverifiedIdentityKey> {
        self.call(&KeyCall::Key { condition: condition.to_string(), wait: 0 }).await?.key()
    }

    async fn held(&mut self) -> Result<Vec<Condition>> {
        Ok(self.call(&KeyCall::List).await?.conditions())
    }
}
