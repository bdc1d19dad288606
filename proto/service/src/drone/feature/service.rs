//! Interface of features in a service: their flags and settings, and what of them runs.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use quiver_net::NodeConfig;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::{Features, LeaderGate, Memberships, OpenContext, RunningPart};
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

    /// Channels of group messages that are between the feature's parts, and no program's.
    fn channels(&self) -> &'static [&'static str] {
        &[]
    }

    /// Row for people about the feature's fields in a status, if there are any: a key, and the text.
    fn status_row(&self, _status: &Map<String, Value>) -> Option<(&'static str, String)> {
        None
    }

    /// Removes from a status which of the feature's numbers grow all the time, so that they are no change of it.
    fn remove_counters(&self, _status: &mut Map<String, Value>) {}
}

/// Settings of a feature, and what they ask for.
#[async_trait]
pub trait ServicePart: fmt::Debug + Send + Sync {
    /// Checks its settings at the start of every command. `unnamed`: the setting by which a feature makes memberships in
    /// place of those under the drone's name, if one does ([`Memberships::setting`]).
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) and others that name what is wrong.
    fn check_settings(&self, _unnamed: Option<&'static str>) -> Result<()> {
        Ok(())
    }

    /// Checks what its settings name, before anything is done for the service.
    ///
    /// # Errors
    /// Those of the files that its settings name.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Finds out whether every port that it listens at can be had, before a token is used.
    ///
    /// # Errors
    /// Errors of [`Self::open`].
    async fn check_ports(&self) -> Result<()> {
        Ok(())
    }

    /// Adds what it needs to the configuration of the service's node.
    ///
    /// # Errors
    /// Those of the files that its settings name.
    fn configure(&self, _node: &mut NodeConfig) -> Result<()> {
        Ok(())
    }

    /// Opens what runs in the service of an enrolled drone; `None` if nothing does.
    ///
    /// # Errors
    /// Errors of files, devices and ports that its settings name.
    async fn open(&self, _context: OpenContext<'_>) -> Result<Option<Arc<dyn RunningPart>>> {
        Ok(None)
    }

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

/// Takes the settings of these features out of their layers.
///
/// # Errors
/// Those of [`ServiceFeature::settings`].
pub fn settings(features: Features, layers: &mut Layers) -> Result<ServiceParts> {
    of(features).map(|feature| feature.settings(layers)).collect()
}

/// Channels that are these features' and no program's.
pub fn channels(features: Features) -> Vec<&'static str> {
    of(features).flat_map(|feature| feature.channels()).copied().collect()
}

/// Rows for people about the fields that these features have in a status.
pub fn status_rows(features: Features, status: &Map<String, Value>) -> Vec<(&'static str, String)> {
    of(features).filter_map(|feature| feature.status_row(status)).collect()
}

/// Removes from a status which numbers of these features grow all the time.
pub(crate) fn remove_counters(features: Features, status: &mut Map<String, Value>) {
    of(features).for_each(|feature| feature.remove_counters(status));
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
