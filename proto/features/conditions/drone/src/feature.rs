//! Hooks encryption to conditions into the programs of edges and leaders: the subcommand `ibe`, and its requests.

use std::path::PathBuf;

use async_trait::async_trait;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use quiver_ibe::{Condition, MasterPublicKey, UnverifiedIdentityKey};
use quiver_service::config::Layers;
use quiver_service::drone::Error as DroneError;
use quiver_service::drone::feature::{
    CommandFeature, DroneFeature, FeatureAnswer, FeatureCaller, FeatureCommand,
};
use quiver_service::drone::fetch::KeyClient;
use quiver_service::drone::running::DroneIdentity;
use quiver_service::terminal;
use serde::Deserialize;
use serde_json::Value;

use crate::Result;
use crate::ibe::{self, KeySource};
use crate::release::{
    IbeCommand, IbeOptions, IdentityKeys, KeyCall, KeyReport, NAME, key_call, read_authority,
};

/// Encryption to conditions.
#[derive(Clone, Copy, Debug)]
pub struct ConditionFeature;

impl DroneFeature for ConditionFeature {
    fn commands(&self) -> Vec<&dyn CommandFeature> {
        vec![self]
    }
}

#[async_trait]
impl CommandFeature for ConditionFeature {
    fn name(&self) -> &'static str {
        NAME
    }

    fn subcommand(&self) -> Command {
        let about = "Encryption to conditions: files that open when one is met, and the keys that open them";
        IbeOptions::augment_args(Command::new(NAME)).about(about).long_about(None::<&str>)
    }

    fn parse(&self, arguments: &ArgMatches) -> std::result::Result<Box<dyn FeatureCommand>, clap::Error> {
        Ok(Box::new(IbeOptions::from_arg_matches(arguments)?))
    }

    async fn answer(
        &self,
        client: &KeyClient,
        identity: DroneIdentity,
        call: &Value,
    ) -> std::result::Result<FeatureAnswer, DroneError> {
        let call = KeyCall::deserialize(call).map_err(|_| {
            DroneError::Answered("a request of another version: restart the service".into(), 1)
        })?;
        let keys = IdentityKeys::of(client.keys());
        let report = key_call::answer(&keys, identity.keypair.as_ref(), client.plan(), &call).await?;
        FeatureAnswer::new(&report)
    }
}

#[async_trait(?Send)]
impl FeatureCommand for IbeOptions {
    fn flags(&self, layers: Layers) -> quiver_service::Result<Layers> {
        layers.flags(&self.kgcs)
    }

    async fn run(self: Box<Self>, caller: &dyn FeatureCaller) -> std::result::Result<(), DroneError> {
        let IbeOptions { authority, command, .. } = *self;
        let mut asked = AskedSource { caller, authority };
        match command {
            IbeCommand::Keys(args) => {
                if asked.authority.is_some() {
                    return Err(DroneError::config(
                        "`--authority`: `ibe key`, `ibe list` and `ibe authority` are about keys \
                        of the KGCs, and take no file; leave it out",
                    ));
                }
                let report = asked.call(&args.call()).await?;
                let file = caller.settings().read_deployment()?;
                args.print(&file.pin()?, &report)?;
            }
            IbeCommand::Files(args) => {
                let told = ibe::run(args, &mut asked).await?;
                if let Some(told) = told {
                    terminal::line(&told)?;
                }
            }
        }
        Ok(())
    }
}

/// Source of keys that asks the running service, or the state file where none runs.
struct AskedSource<'a> {
    caller: &'a dyn FeatureCaller,
    /// The master key's public file, if it was given.
    authority: Option<PathBuf>,
}

impl AskedSource<'_> {
    async fn call(&self, call: &KeyCall) -> Result<KeyReport> {
        Ok(self.caller.call(call.request()?).await?.read()?)
    }
}

impl KeySource for AskedSource<'_> {
    async fn master(&mut self) -> Result<MasterPublicKey> {
        let file = self.caller.settings().read_deployment()?;
        let deployment = file.pin()?;
        let authority = match &self.authority {
            Some(path) => read_authority(path, &deployment)?,
            None => self.call(&KeyCall::Authority).await?.authority(&deployment)?,
        };
        Ok(*authority.master())
    }

    async fn key(&mut self, condition: &Condition) -> Result<UnverifiedIdentityKey> {
        self.call(&KeyCall::Key { condition: condition.to_string(), wait: 0 }).await?.key()
    }

    async fn held(&mut self) -> Result<Vec<Condition>> {
        Ok(self.call(&KeyCall::List).await?.conditions())
    }
}
