//! `edge ibe`: files that open when a condition is met. Keys are asked of the running edge, or collected here if none runs.

use std::path::Path;

use quiver_role::{Edge, EdgeConfig, Kgcs, QuorumSuite};
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::drone::fetch::KeyClient;
use quiver_service::drone::release::{IbeOptions, KeyCall, KeyReport};
use quiver_service::drone::subcommands;
use quiver_service::node_state::Missing;
use quiver_service::secrets::ProtectionArgs;

use crate::config::Config;
use crate::control::Request;
use crate::error::Result;
use crate::store::Store;

/// Runs a subcommand.
pub(crate) async fn run(config: &Config, protection: &ProtectionArgs, options: IbeOptions) -> Result<()> {
    Ok(subcommands::run(Program { config, protection }, options).await?)
}

/// This program, with or without a running edge.
struct Program<'a> {
    config: &'a Config,
    protection: &'a ProtectionArgs,
}

impl subcommands::Program for Program<'_> {
    type Request = Request;

    fn request(call: &KeyCall) -> Request {
        Request::Ibe(call.clone())
    }

    fn data_dir(&self) -> &Path {
        &self.config.data_dir
    }

    fn deployment(&self) -> quiver_service::drone::Result<DeploymentFile> {
        self.config.read_deployment().map_err(said)
    }

    async fn alone<S: QuorumSuite>(
        &self,
        file: &DeploymentFile,
        call: &KeyCall,
    ) -> quiver_service::drone::Result<KeyReport> {
        let deployment = file.pin::<S>()?;
        let by = self.protection.obtain(false)?;
        let opened = Store::open(&self.config.data_dir, &deployment, &by, Missing::Refuse);
        let (store, state) = opened.map_err(said)?;
        let plan = self.config.fetching(file, self.config.enrol_timeout).map_err(said)?;
        let settings = EdgeConfig {
            deployment: deployment.clone(),
            group: None,
            token: None,
            kgcs: Kgcs::quorum(file.kgc_ids()),
            timing: self.config.timing(),
        };
        let machine = Edge::new(settings, state.as_ref()).map_err(|error| said(error.into()))?;
        KeyClient::new(store.keys(&deployment), plan).release(machine.keypair(), call).await
    }
}

/// An error of this program's own, for whoever asks for keys.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn said(error: crate::error::Error) -> quiver_service::drone::Error {
    let code = error.exit() as u8;
    quiver_service::drone::Error::Answered(error.to_string(), code)
}
