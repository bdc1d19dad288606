//! Interface of features in a running service: their flags, settings and tasks.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use quiver_ainq::Name;
use quiver_machine::Machine;
use quiver_net::{Handle, Multiaddr, NodeConfig, PeerId};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use tokio::task::JoinSet;

use super::{Features, LeaderGate, Memberships};
use crate::config::Layers;
use crate::drone::{DroneProgram, Result};

/// A feature's part in a running service.
pub trait ServiceFeature {
    /// Adds its flags to those of the subcommand that runs the service.
    fn flags(&self, command: Command) -> Command;

    /// Values of its flags, by the names of its settings.
    ///
    /// # Errors
    /// Those of clap.
    fn given(&self, arguments: &ArgMatches) -> std::result::Result<Map<String, Value>, clap::Error>;

    /// Takes its settings out of their layers.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) naming what is wrong.
    fn settings(&self, layers: &mut Layers) -> Result<Arc<dyn ServicePart>>;
}

/// Settings of a feature, and the tasks that they ask for.
pub trait ServicePart: fmt::Debug + Send + Sync {
    /// Checks what its settings name, before anything is done for the service.
    ///
    /// # Errors
    /// Those of the files that its settings name.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Adds what it needs to the configuration of the service's node.
    ///
    /// # Errors
    /// Those of the files that its settings name.
    fn configure(&self, _node: &mut NodeConfig) -> Result<()> {
        Ok(())
    }

    /// Starts its tasks beside the machine. They end with the service.
    fn start(&self, _service: &ServiceContext<'_>, _tasks: &mut JoinSet<()>) {}

    /// The memberships that its settings want in place of those under the drone's name. Asked at edges alone.
    fn memberships(&self) -> Option<&dyn Memberships> {
        None
    }

    /// The gate that it puts before a leader. Asked at leaders alone.
    fn gate(&self) -> Option<&dyn LeaderGate> {
        None
    }
}

/// Settings of a program's features.
pub type ServiceParts = Vec<Arc<dyn ServicePart>>;

/// The service, as a feature's tasks see it.
pub struct ServiceContext<'a> {
    /// Configuration of its node.
    pub node: &'a NodeConfig,
    /// The group.
    pub group: &'a Name,
    /// The node that runs.
    pub running: Arc<dyn RunningNode>,
}

impl fmt::Debug for ServiceContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceContext").field("group", &self.group).finish_non_exhaustive()
    }
}

/// A node that runs, whatever its machine.
#[async_trait]
pub trait RunningNode: Send + Sync {
    /// Identity of the node.
    fn peer_id(&self) -> PeerId;

    /// Addresses on which it listens, as soon as there is one; `None` once it has stopped.
    async fn listening(&self) -> Option<Vec<Multiaddr>>;
}

#[async_trait]
impl<M: Machine + Send> RunningNode for Handle<M>
where
    M::Command: Send,
    Self: Send + Sync,
{
    fn peer_id(&self) -> PeerId {
        self.peer_id()
    }

    async fn listening(&self) -> Option<Vec<Multiaddr>> {
        self.listening().await.ok()
    }
}

/// Takes the settings of these features out of their layers.
///
/// # Errors
/// Those of [`ServiceFeature::settings`].
pub fn settings(features: Features, layers: &mut Layers) -> Result<ServiceParts> {
    of(features).map(|feature| feature.settings(layers)).collect()
}

fn of(features: Features) -> impl Iterator<Item = &'static dyn ServiceFeature> {
    features.iter().filter_map(|feature| feature.service())
}

/// Flags of the features of the program `P`, for its command line.
pub struct ServiceFlags<P> {
    given: Map<String, Value>,
    program: PhantomData<fn() -> P>,
}

impl<P> fmt::Debug for ServiceFlags<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.given.fmt(f)
    }
}

impl<P> Serialize for ServiceFlags<P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.given.serialize(serializer)
    }
}

impl<P: DroneProgram> FromArgMatches for ServiceFlags<P> {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        let mut given = Map::new();
        for feature in of(P::FEATURES) {
            given.extend(feature.given(matches)?);
        }
        Ok(Self { given, program: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<P: DroneProgram> Args for ServiceFlags<P> {
    fn augment_args(command: Command) -> Command {
        of(P::FEATURES).fold(command, |command, feature| feature.flags(command))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Values of flags, by their names.
///
/// # Errors
/// [`ErrorKind::Io`](clap::error::ErrorKind::Io) for values that JSON has no form for.
pub fn values(flags: &impl Serialize) -> std::result::Result<Map<String, Value>, clap::Error> {
    match serde_json::to_value(flags) {
        Ok(Value::Object(given)) => Ok(given),
        Ok(_) => Ok(Map::new()),
        Err(error) => Err(std::io::Error::from(error).into()),
    }
}
