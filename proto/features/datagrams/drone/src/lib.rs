//! Datagrams and MAVLink in the programs of edges and leaders: MAVLink programs beside a drone, joined to the group's
//! datagrams by a bridge, and the group's table of system ids.
//!
//! An edge's program lists [`DatagramFeature`] among its features, a leader's [`LeaderDatagramFeature`]; nothing else of
//! them names this crate.

mod arguments;
mod edge;
mod error;
mod leader;
mod machine;
mod settings;
mod status;
mod system_id;

use std::sync::Arc;

use async_trait::async_trait;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use quiver_bridge::{FORGERIES_CHANNEL, SYSTEM_IDS_CHANNEL, SYSTEM_IDS_REQUEST_CHANNEL};
use quiver_service::config::Layers;
use quiver_service::drone::feature::{
    AliasFeature, CommandFeature, DroneFeature, OpenContext, RunningPart, ServiceFeature, ServicePart, values,
};
use quiver_service::drone::{Error, Result};
use serde_json::{Map, Value};

use self::arguments::{MavlinkArgs, SystemIdArgs};
use self::edge::EdgePart;
use self::leader::LeaderPart;
use self::settings::{MavlinkSettings, SystemIdSettings};

/// Channels of group messages between leaders and bridges.
const CHANNELS: &[&str] = &[SYSTEM_IDS_CHANNEL, SYSTEM_IDS_REQUEST_CHANNEL, FORGERIES_CHANNEL];

/// MAVLink programs beside an edge: the flags of its bridge.
#[derive(Clone, Copy, Debug)]
pub struct DatagramFeature;

/// MAVLink programs beside a leader, and the group's system ids: the flags of its bridge, grants, and the subcommand
/// `system-id`.
#[derive(Clone, Copy, Debug)]
pub struct LeaderDatagramFeature;

/// Settings of a leader's bridge and of its grants.
#[derive(Debug)]
struct LeaderBridgeSettings {
    bridge: MavlinkSettings,
    grants: SystemIdSettings,
}

impl DroneFeature for DatagramFeature {
    fn examples(&self) -> &'static [(&'static str, &'static str)] {
        &[("run --leader … --mavlink udpin:127.0.0.1:14550 --carrier star:10.0.0.1:14800", "MAVLink")]
    }

    fn service(&self) -> Option<&dyn ServiceFeature> {
        Some(self)
    }
}

impl DroneFeature for LeaderDatagramFeature {
    fn examples(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("serve --carrier relay:0.0.0.0:14800", "carries MAVLink between members: a star"),
            ("system-id grant edge-1 1", "this member's vehicle is system 1"),
            ("evict 7", "whoever has MAVLink's system id 7"),
        ]
    }

    fn commands(&self) -> Vec<&dyn CommandFeature> {
        vec![self]
    }

    fn service(&self) -> Option<&dyn ServiceFeature> {
        Some(self)
    }

    fn aliases(&self) -> Option<&dyn AliasFeature> {
        Some(self)
    }
}

impl ServiceFeature for DatagramFeature {
    fn flags(&self, command: Command) -> Command {
        MavlinkArgs::augment_args(command)
    }

    fn given(&self, arguments: &ArgMatches) -> std::result::Result<Map<String, Value>, clap::Error> {
        values(&MavlinkArgs::from_arg_matches(arguments)?)
    }

    fn settings(&self, layers: &mut Layers) -> Result<Arc<dyn ServicePart>> {
        Ok(Arc::new(layers.part(MavlinkSettings::default())?))
    }

    fn channels(&self) -> &'static [&'static str] {
        CHANNELS
    }

    fn status_row(&self, status: &Map<String, Value>) -> Option<(&'static str, String)> {
        status::row(status)
    }

    fn remove_counters(&self, status: &mut Map<String, Value>) {
        status::remove_counters(status);
    }
}

impl ServiceFeature for LeaderDatagramFeature {
    fn flags(&self, command: Command) -> Command {
        SystemIdArgs::augment_args(MavlinkArgs::augment_args(command))
    }

    fn given(&self, arguments: &ArgMatches) -> std::result::Result<Map<String, Value>, clap::Error> {
        let mut given = values(&MavlinkArgs::from_arg_matches(arguments)?)?;
        given.extend(values(&SystemIdArgs::from_arg_matches(arguments)?)?);
        Ok(given)
    }

    fn settings(&self, layers: &mut Layers) -> Result<Arc<dyn ServicePart>> {
        let bridge = layers.part(MavlinkSettings::default())?;
        Ok(Arc::new(LeaderBridgeSettings { bridge, grants: layers.part(SystemIdSettings::default())? }))
    }

    fn channels(&self) -> &'static [&'static str] {
        CHANNELS
    }

    fn status_row(&self, status: &Map<String, Value>) -> Option<(&'static str, String)> {
        status::row(status)
    }

    fn remove_counters(&self, status: &mut Map<String, Value>) {
        status::remove_counters(status);
    }
}

#[async_trait]
impl ServicePart for MavlinkSettings {
    fn check_settings(&self, unnamed: Option<&'static str>) -> Result<()> {
        if let Some(setting) = unnamed.filter(|_| self.is_given()) {
            let text = format!("`mavlink`: not with `{setting}`: a system id is granted to a name");
            return Err(Error::config(text));
        }
        // Now rather than once it has enrolled.
        self.read().map(drop)
    }

    async fn check_ports(&self) -> Result<()> {
        Self::check_ports(self).await
    }

    async fn open(&self, context: OpenContext<'_>) -> Result<Option<Arc<dyn RunningPart>>> {
        Ok(Some(Arc::new(EdgePart::new(Self::open(self, context.deployment).await?))))
    }
}

#[async_trait]
impl ServicePart for LeaderBridgeSettings {
    fn check_settings(&self, _: Option<&'static str>) -> Result<()> {
        self.grants.read()?;
        self.bridge.read().map(drop)
    }

    async fn check_ports(&self) -> Result<()> {
        self.bridge.check_ports().await
    }

    async fn open(&self, context: OpenContext<'_>) -> Result<Option<Arc<dyn RunningPart>>> {
        let bridge = self.bridge.open(context.deployment).await?;
        Ok(Some(Arc::new(LeaderPart::open(bridge, self.grants.read()?, context.store)?)))
    }
}
