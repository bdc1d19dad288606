//! The subcommands that edges and leaders both have: their running service is asked, or the command does it
//! by itself where none runs.

use std::time::Duration;

use async_trait::async_trait;
use clap::Subcommand;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::feature::{
    self, FETCHED_IS_KEPT, FeatureAnswer, FeatureCaller, FeatureRequest, FeatureSubcommand,
};
use super::request::{DroneRequest, KeyAnswer, KeyRequest};
use super::running::DroneIdentity;
use super::send::SendReport;
use super::{DroneProgram, DroneService, DroneSettings, Result};
use crate::arguments::HealthArgs;
use crate::config::Layers;
use crate::control::{call, call_if_running};
use crate::deployment_file::DeploymentFile;
use crate::node_state::{Missing, NodeState};
use crate::secrets::ProtectionArgs;
use crate::{monitoring, terminal};

/// Time after which a subcommand says what it waits for.
const SILENCE: Duration = Duration::from_secs(3);

/// Subcommands that every drone's program has.
#[derive(Debug, Subcommand)]
pub enum DroneCommand<P: DroneProgram> {
    /// Whether the running service does its work; exits with 1 and says why if it does not
    Health(HealthArgs),
    /// Subcommands of this build's features
    #[command(flatten)]
    Feature(FeatureSubcommand<P>),
}

impl<P: DroneProgram> DroneCommand<P> {
    /// True if it runs until a signal comes, as a service does.
    #[must_use]
    pub fn serves(&self) -> bool {
        matches!(self, Self::Feature(command) if command.0.serves())
    }

    /// Advice on how to go on after a signal.
    #[must_use]
    pub fn after_a_signal(&self) -> &'static str {
        match self {
            Self::Health(_) => FETCHED_IS_KEPT,
            Self::Feature(command) => command.0.after_a_signal(),
        }
    }

    /// Adds the settings that it was given.
    ///
    /// # Errors
    /// Those of [`Layers::flags`].
    pub fn flags(&self, layers: Layers) -> crate::Result<Layers> {
        match self {
            Self::Health(args) => layers.flags(args),
            Self::Feature(command) => command.0.flags(layers),
        }
    }
}

/// Asks the running service of this program what only its role knows.
///
/// # Errors
/// Those of [`call`].
pub async fn ask<P: DroneProgram, A: DeserializeOwned>(program: &P, request: impl Serialize) -> Result<A> {
    ask_service(program, &DroneRequest::Role(request)).await
}

/// Asks the running service of this program.
async fn ask_service<P: DroneProgram, A: DeserializeOwned>(
    program: &P,
    request: &DroneRequest<impl Serialize>,
) -> Result<A> {
    let answer = call(&program.settings().data_dir, P::NAME, P::SERVE, request);
    tokio::pin!(answer);
    Ok(tokio::select! {
        answer = &mut answer => answer?,
        () = tokio::time::sleep(SILENCE) => {
            tracing::info!("still waiting for an answer of the running {}", P::NAME);
            answer.await?
        }
    })
}

/// The same, and prints the answer, which is one text.
///
/// # Errors
/// Those of [`call`] and of standard output.
pub async fn ask_and_print<P: DroneProgram>(program: &P, request: impl Serialize) -> Result<()> {
    Ok(terminal::line(&ask::<P, String>(program, request).await?)?)
}

/// Prints a status, for people or as JSON.
///
/// # Errors
/// Those of standard output.
pub fn print_status<T: Serialize>(status: &T, json: bool, describe: impl Fn(&T) -> String) -> Result<()> {
    let shown = if json { terminal::json(status) } else { terminal::line(&describe(status)) };
    Ok(shown?)
}

/// Carries out a subcommand.
#[derive(Debug)]
pub struct Subcommands<'a, P> {
    program: &'a P,
    protection: &'a ProtectionArgs,
}

impl<'a, P: DroneProgram> Subcommands<'a, P> {
    /// Makes the subcommands of this program.
    pub fn new(program: &'a P, protection: &'a ProtectionArgs) -> Self {
        Self { program, protection }
    }

    /// Carries out a subcommand.
    ///
    /// # Errors
    /// Those of asking the service or the KGCs, of the state file, of files and of standard output.
    pub async fn run(self, command: DroneCommand<P>) -> Result<()> {
        match command {
            DroneCommand::Health(args) => {
                let settings = self.program.settings();
                let place = (settings.data_dir.as_path(), settings.metrics);
                Ok(terminal::line(&monitoring::ask((P::NAME, P::SERVE), place, args.live).await?)?)
            }
            DroneCommand::Feature(command) => command.0.run(&self).await,
        }
    }

    /// The answer to a request; what is waited for is said after a while.
    async fn ask(&self, request: KeyRequest) -> Result<KeyAnswer> {
        let awaited = request.awaited();
        let answer = self.answer(request);
        let Some(awaited) = awaited else { return answer.await };
        tokio::pin!(answer);
        tokio::select! {
            answer = &mut answer => answer,
            () = tokio::time::sleep(SILENCE) => {
                tracing::info!("still waiting for {awaited}");
                answer.await
            }
        }
    }

    /// The answer of the running service, or of the state file if none runs.
    async fn answer(&self, request: KeyRequest) -> Result<KeyAnswer> {
        let settings = self.program.settings();
        let asked = DroneRequest::<()>::Keys(request.clone());
        if let Some(answer) = call_if_running(&settings.data_dir, P::NAME, &asked).await? {
            return Ok(answer);
        }
        let file = settings.read_deployment()?;
        self.offline(&file, request).await
    }

    async fn offline(&self, file: &DeploymentFile, request: KeyRequest) -> Result<KeyAnswer> {
        // What needs no state file is answered without one.
        if let KeyRequest::Feature(request) = &request
            && !NodeState::exists(&self.program.settings().data_dir)
            && let feature = feature::find(P::FEATURES, &request.feature)?
            && let Some(answer) = feature.answer_without_state(&file.pin()?, &request.call)
        {
            return answer.map(KeyAnswer::Feature);
        }
        let obtain = |new| self.protection.obtain(new);
        let (service, records) = DroneService::open(self.program, file, obtain, Missing::Refuse)?;
        let identity = DroneIdentity::of(&self.program.restore(&service, records)?)?;
        service.client(self.program.fetch_time())?.answer(identity, request).await
    }
}

#[async_trait(?Send)]
impl<P: DroneProgram> FeatureCaller for Subcommands<'_, P> {
    fn settings(&self) -> &DroneSettings {
        self.program.settings()
    }

    async fn call(&self, request: FeatureRequest) -> Result<FeatureAnswer> {
        match self.ask(KeyRequest::Feature(request)).await? {
            KeyAnswer::Feature(answer) => Ok(answer),
            other => Err(other.unexpected()),
        }
    }

    async fn ask(&self, request: FeatureRequest) -> Result<FeatureAnswer> {
        ask_service(self.program, &DroneRequest::<()>::Part(request)).await
    }

    async fn send(&self, request: FeatureRequest) -> Result<SendReport> {
        let request = DroneRequest::<()>::Send(request);
        Ok(call(&self.program.settings().data_dir, P::NAME, P::SERVE, &request).await?)
    }

    async fn fetch(&self, json: bool) -> Result<()> {
        match self.ask(KeyRequest::Fetch).await? {
            KeyAnswer::Fetched(report) => report.print(json),
            other => Err(other.unexpected()),
        }
    }
}
