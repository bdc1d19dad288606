//! Relays in the programs of edges and leaders.
//!
//! An edge's program lists [`RelayFeature`] among its features, a leader's [`RelayedLeaderFeature`]; nothing else of them
//! names this crate.

mod arguments;
mod leader;
mod relay;
mod relayed_leader;

use async_trait::async_trait;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use quiver_service::config::Layers;
use quiver_service::drone::Result;
use quiver_service::drone::feature::{
    CommandFeature, DroneFeature, FeatureCaller, FeatureCommand, LeaderRelays, ServiceFeature,
};

use self::arguments::{EXAMPLE, RELAY, RELAY_KEYS, RELAY_KEYS_MORE, RELAY_MORE, RelayArgs, RelayKeysArgs};

/// Relays: the subcommand `relay`, which runs one, and `relay-keys`, which makes relays' keys.
#[derive(Clone, Copy, Debug)]
pub struct RelayFeature;

/// The subcommand `relay-keys`.
struct RelayKeysFeature;

/// A leader whose drones may be behind relays: its machine, and the flags that say which relays.
#[derive(Clone, Copy, Debug)]
pub struct RelayedLeaderFeature;

impl DroneFeature for RelayFeature {
    fn commands(&self) -> Vec<&dyn CommandFeature> {
        vec![self, &RelayKeysFeature]
    }
}

impl DroneFeature for RelayedLeaderFeature {
    fn service(&self) -> Option<&dyn ServiceFeature> {
        Some(self)
    }

    fn relays(&self) -> Option<&dyn LeaderRelays> {
        Some(self)
    }
}

impl CommandFeature for RelayFeature {
    fn name(&self) -> &'static str {
        "relay"
    }

    fn subcommand(&self) -> Command {
        let command = RelayArgs::augment_args(Command::new(self.name())).after_help(EXAMPLE);
        command.about(RELAY).long_about(format!("{RELAY}\n\n{RELAY_MORE}"))
    }

    fn parse(&self, arguments: &ArgMatches) -> std::result::Result<Box<dyn FeatureCommand>, clap::Error> {
        Ok(Box::new(RelayArgs::from_arg_matches(arguments)?))
    }
}

impl CommandFeature for RelayKeysFeature {
    fn name(&self) -> &'static str {
        "relay-keys"
    }

    fn subcommand(&self) -> Command {
        let command = RelayKeysArgs::augment_args(Command::new(self.name()));
        command.about(RELAY_KEYS).long_about(format!("{RELAY_KEYS}\n\n{RELAY_KEYS_MORE}"))
    }

    fn parse(&self, arguments: &ArgMatches) -> std::result::Result<Box<dyn FeatureCommand>, clap::Error> {
        Ok(Box::new(RelayKeysArgs::from_arg_matches(arguments)?))
    }
}

#[async_trait(?Send)]
impl FeatureCommand for RelayArgs {
    fn serves(&self) -> bool {
        true
    }

    fn flags(&self, layers: Layers) -> quiver_service::Result<Layers> {
        layers.flags(&self.monitoring)
    }

    async fn run(self: Box<Self>, caller: &dyn FeatureCaller) -> Result<()> {
        relay::run(caller.settings(), &self).await
    }
}

#[async_trait(?Send)]
impl FeatureCommand for RelayKeysArgs {
    fn flags(&self, layers: Layers) -> quiver_service::Result<Layers> {
        Ok(layers)
    }

    async fn run(self: Box<Self>, _: &dyn FeatureCaller) -> Result<()> {
        relay::make_keys(&self)
    }
}
