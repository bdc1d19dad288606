//! Has a statement about an authority or a policy of admission signed: by the quorum, by the running KGC, or
//! with the master secret while none runs.

use std::time::Duration;

use clap::Args;
use quiver_ainq::{Deployment, Purpose, Ristretto255, StatementSignature};
use quiver_service::secrets::Protection;
use rand::rngs::OsRng;

use crate::config::Config;
use crate::control::{KgcRequest, ask_if_running};
use crate::error::{Error, Result};
use crate::membership;
use crate::registry::RegistryWriter;
use crate::sealed;

/// Time limit for the approval of what a command has signed.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ApprovalArgs {
    /// In a quorum: how long to wait until enough of the other KGCs' operators approved it
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = quiver_service::duration::parse)]
    pub(crate) wait: Duration,
}

/// Signer of a command that changes the registry.
pub(crate) struct RegistrySigner<'a> {
    pub(crate) config: &'a Config,
    pub(crate) deployment: &'a Deployment<Ristretto255>,
    /// Passphrase or key that the secrets are stored under.
    pub(crate) by: &'a Protection,
    /// Time to wait, in a quorum, until enough others approved it.
    pub(crate) wait: Duration,
}

impl RegistrySigner<'_> {
    /// Signs the body of a statement. No KGC starts before `writer` is done, unless one runs already.
    pub(crate) fn sign(
        &self,
        writer: &RegistryWriter,
        purpose: Purpose,
        body: &[u8],
    ) -> Result<StatementSignature<Ristretto255>> {
        let Self { config, deployment, by, wait } = self;
        if let Some(quorum) = membership::kept(&config.data_dir)? {
            return Ok(StatementSignature::decode(&quorum.sign(config, by, body, *wait)?)?);
        }
        if let Some(master) = writer.master() {
            return Ok(master.sign(deployment, purpose, body, &mut OsRng));
        }
        // The secrets are stored under it, and the running KGC must be able to read them.
        sealed::refuse_wrong_key(&config.data_dir, deployment, by)?;
        let request = KgcRequest::Propose { body: hex::encode(body), wait: 0 };
        let Some(signature) = ask_if_running::<String>(config, &request)? else {
            return Err(quiver_service::Error::InUse { path: sealed::path_in(&config.data_dir) }.into());
        };
        let signature = hex::decode(signature).map_err(Error::scheme)?;
        Ok(StatementSignature::decode(&signature)?)
    }
}
