//! Hooks attributes into the programs of edges and leaders: the subcommands `abe` and `envelope`, their requests, and the
//! part of the machine that seals and opens envelopes of the group.

use std::time::Duration;

use async_trait::async_trait;
use clap::{ArgMatches, Command, FromArgMatches, Subcommand};
use quiver_ainq::{Deployment, Ristretto255};
use quiver_envelope::{EnvelopeCommand, EnvelopeEvent, Envelopes};
use quiver_service::config::Layers;
use quiver_service::drone::Result as DroneResult;
use quiver_service::drone::feature::{
    AnyPartEvent, CommandFeature, DroneFeature, DronePart, FeatureAnswer, FeatureCaller, FeatureCommand,
    FeaturePart, FeatureRequest, PartCommand, PartEvent, PartFeature,
};
use quiver_service::drone::fetch::KeyClient;
use quiver_service::drone::keys::Keys;
use quiver_service::drone::running::DroneIdentity;
use quiver_service::drone::send::SendReport;
use quiver_service::drone::subcommands::print_status;
use quiver_service::keyring::Keyring;
use quiver_service::terminal;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::abe::{AbeCommand, AuthorityLine, authority_lines, print_lines};
use crate::arguments::EnvelopeArgs;
use crate::envelope::{Holder, attribute_keys};
use crate::event_line;
use crate::job::{Job, SendJob};

/// Name of the subcommand about attribute keys.
const ABE: &str = "abe";
/// Name of the subcommand about envelopes.
const ENVELOPE: &str = "envelope";

/// Time limit of sealing or opening a file by the running service: files have any length.
const FILE_TIME: Duration = Duration::from_secs(3600);

/// Place of the subcommand about envelopes in the help: behind those of other features.
const BEHIND_OTHERS: usize = 900;

/// Attributes: keys as shown, envelopes as files, and envelopes of the group.
#[derive(Clone, Copy, Debug)]
pub struct AttributeFeature;

/// The subcommand `abe`.
struct AbeFeature;

/// The subcommand `envelope`.
struct EnvelopeFeature;

impl DroneFeature for AttributeFeature {
    fn examples(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("abe fetch", "authorities, and keys granted to this drone"),
            ("envelope seal map.png --policy 'scout and sector:7' --out map.env", ""),
            ("envelope open order.env --out order.txt", "if this drone's attributes fit"),
            ("envelope send --policy 'scout and sector:7' 'go north'", "only scouts there read it"),
        ]
    }

    fn commands(&self) -> Vec<&dyn CommandFeature> {
        vec![&AbeFeature, &EnvelopeFeature]
    }

    fn part(&self) -> Option<&dyn PartFeature> {
        Some(self)
    }
}

/// Describes a subcommand that has subcommands of its own. Their enum's documentation is for readers of the code.
fn subcommand<T: Subcommand>(name: &'static str, about: &'static str) -> Command {
    let command = T::augment_subcommands(Command::new(name));
    command.subcommand_required(true).arg_required_else_help(true).about(about).long_about(None::<&str>)
}

/// A request of the subcommand `abe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum AbeCall {
    /// List the attribute keys held.
    List,
}

#[async_trait]
impl CommandFeature for AbeFeature {
    fn name(&self) -> &'static str {
        ABE
    }

    fn subcommand(&self) -> Command {
        subcommand::<AbeCommand>(ABE, "Attribute keys: what this drone may seal under and open")
    }

    fn parse(&self, arguments: &ArgMatches) -> Result<Box<dyn FeatureCommand>, clap::Error> {
        Ok(Box::new(AbeCommand::from_arg_matches(arguments)?))
    }

    async fn answer(&self, client: &KeyClient, _: DroneIdentity, call: &Value) -> DroneResult<FeatureAnswer> {
        match FeatureRequest::read(call)? {
            AbeCall::List => FeatureAnswer::new(&authority_lines(&client.keys().keyring()?)),
        }
    }

    fn answers_anonymous(&self) -> bool {
        true
    }
}

#[async_trait(?Send)]
impl FeatureCommand for AbeCommand {
    fn flags(&self, layers: Layers) -> quiver_service::Result<Layers> {
        match self {
            Self::Fetch { kgcs, .. } => layers.flags(kgcs),
            Self::List { .. } => Ok(layers),
        }
    }

    async fn run(self: Box<Self>, caller: &dyn FeatureCaller) -> DroneResult<()> {
        match *self {
            Self::Fetch { json, .. } => caller.fetch(json).await,
            Self::List { json } => {
                let answer = caller.call(FeatureRequest::new(ABE, &AbeCall::List)?).await?;
                print_lines(&answer.read::<Vec<AuthorityLine>>()?, json)
            }
        }
    }
}

#[async_trait]
impl CommandFeature for EnvelopeFeature {
    fn name(&self) -> &'static str {
        ENVELOPE
    }

    fn subcommand(&self) -> Command {
        let about = "Seal to whoever's attributes fit, and open what fits this drone's";
        subcommand::<EnvelopeArgs>(ENVELOPE, about).display_order(BEHIND_OTHERS)
    }

    fn parse(&self, arguments: &ArgMatches) -> Result<Box<dyn FeatureCommand>, clap::Error> {
        Ok(Box::new(EnvelopeArgs::from_arg_matches(arguments)?))
    }

    async fn answer(
        &self,
        client: &KeyClient,
        identity: DroneIdentity,
        call: &Value,
    ) -> DroneResult<FeatureAnswer> {
        let job: Job = FeatureRequest::read(call)?;
        let holder = Holder::new(client.keys(), identity)?;
        let done = tokio::task::spawn_blocking(move || holder.perform(&job)).await;
        FeatureAnswer::new(&done.map_err(std::io::Error::other)??)
    }

    // A file is sealed without a signature, and opened with keys that are files, by anybody.
    fn answer_without_state(
        &self,
        deployment: &Deployment<Ristretto255>,
        call: &Value,
    ) -> Option<DroneResult<FeatureAnswer>> {
        let holder = Holder::nobody(deployment.clone());
        Some(FeatureRequest::read(call).and_then(|job: Job| FeatureAnswer::new(&holder.perform(&job)?)))
    }

    fn message(&self, keys: &Keys, identity: DroneIdentity, call: &Value) -> DroneResult<PartCommand> {
        let job: SendJob = FeatureRequest::read(call)?;
        Ok(PartCommand::new(Holder::new(keys, identity)?.command(job)?))
    }
}

#[async_trait(?Send)]
impl FeatureCommand for EnvelopeArgs {
    fn flags(&self, layers: Layers) -> quiver_service::Result<Layers> {
        Ok(layers)
    }

    async fn run(self: Box<Self>, caller: &dyn FeatureCaller) -> DroneResult<()> {
        let job = match *self {
            Self::Seal(args) => args.job()?,
            Self::Open(args) => args.job()?,
            Self::Send(args) => {
                let (json, request) = (args.json, FeatureRequest::new(ENVELOPE, &args.job())?);
                return print_status(&caller.send(request).await?, json, SendReport::describe);
            }
        };
        let request = FeatureRequest { time_limit: FILE_TIME, ..FeatureRequest::new(ENVELOPE, &job)? };
        Ok(terminal::line(&caller.call(request).await?.read::<String>()?)?)
    }
}

impl PartFeature for AttributeFeature {
    fn part(&self) -> Box<dyn DronePart> {
        Box::new(FeaturePart::new(Envelopes::default(), |event| -> AnyPartEvent {
            Box::new(Reported(event))
        }))
    }

    fn keys(&self, keyring: &Keyring<Ristretto255>) -> Option<PartCommand> {
        Some(PartCommand::new(EnvelopeCommand::Keys(attribute_keys(keyring))))
    }
}

/// An event of envelopes, as a service reports it.
#[derive(Debug)]
struct Reported(EnvelopeEvent);

impl PartEvent for Reported {
    fn failure(&self) -> Option<&'static str> {
        match self.0 {
            EnvelopeEvent::NotSent(reason) => Some(reason),
            _ => None,
        }
    }

    fn line(&self, group: &str, as_json: bool) -> Option<String> {
        event_line::format(group, &self.0, as_json)
    }
}
