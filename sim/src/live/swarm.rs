//! The drones of a run: in this process, or hosted by workers.

use std::ops::Range;

use futures::stream::{self, StreamExt, TryStreamExt};
use quiver_ainq::Suite;
use quiver_crypto::Secret;
use quiver_group::EdgeCommand;
use quiver_net::Multiaddr;
use serde::{Deserialize, Serialize};

use super::deployment::name;
use super::drone::Drone;
use super::hosts::message_body;
use super::node_settings::NodeSettings;
use super::relays::Relays;
use super::worker_pool::WorkerPool;
use crate::{Result, SimError};

/// The drones.
pub(crate) enum Swarm<S: Suite> {
    /// Drones of this process, by index.
    Local(Vec<Drone<S>>),
    /// Drones of workers.
    Workers(WorkerPool),
}

/// A request to a drone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SwarmRequest {
    /// Join the group.
    Join,
    /// Leave the group.
    Leave,
    /// Send the message of this number to the group.
    Send {
        /// The message's number.
        number: u32,
        /// True if the drone signs it.
        signed: bool,
    },
}

impl SwarmRequest {
    /// The command for the drone's machine.
    pub(crate) fn command<S: Suite>(self, setting: &NodeSettings<S>) -> Result<EdgeCommand> {
        Ok(match self {
            Self::Join => EdgeCommand::Join(setting.group.clone()),
            Self::Leave => EdgeCommand::Leave,
            Self::Send { number, signed } => {
                EdgeCommand::Send { channel: name("telemetry")?, data: message_body(number), signed }
            }
        })
    }
}

impl<S: Suite> Swarm<S> {
    /// Waits until a worker is lost; for ever if there are none.
    pub(crate) fn loss(&self) -> impl Future<Output = ()> + use<S> {
        let loss = match self {
            Self::Local(_) => None,
            Self::Workers(workers) => Some(workers.loss()),
        };
        async move {
            match loss {
                Some(loss) => loss.await,
                None => std::future::pending().await,
            }
        }
    }

    /// The drones of this process.
    ///
    /// # Errors
    /// If they are with workers; what needs them here is refused before a run begins.
    pub(crate) fn here(&self) -> Result<&[Drone<S>]> {
        match self {
            Self::Local(drones) => Ok(drones),
            Self::Workers(_) => Err(SimError::Usage("the drones are with workers".into())),
        }
    }

    /// Enrols all of them, so many at a time. The event log records which are late.
    pub(crate) async fn enrol(
        &mut self,
        setting: &NodeSettings<S>,
        kgcs: &[Multiaddr],
        at_once: usize,
    ) -> Result<()> {
        match self {
            Self::Local(drones) => enrol(drones, setting, kgcs, at_once).await,
            Self::Workers(workers) => workers.enrol(kgcs, at_once).await,
        }
    }

    /// Starts these drones from their records; they connect to the leaders in the background.
    pub(crate) async fn start_drones(
        &mut self,
        setting: &NodeSettings<S>,
        relays: &mut Relays,
        leaders: &[Multiaddr],
        drones: Range<u32>,
    ) -> Result<()> {
        match self {
            Self::Local(all) => {
                let ways = relays.ways(setting, 0..setting.features.relays.count, leaders).await?;
                start_drones(all, setting, (leaders, ways), drones).await
            }
            Self::Workers(workers) => workers.start_drones(leaders, drones).await,
        }
    }

    /// Asks each of these drones to do something.
    pub(crate) async fn ask(
        &self,
        setting: &NodeSettings<S>,
        drones: &[u32],
        request: SwarmRequest,
    ) -> Result<()> {
        match self {
            Self::Local(all) => {
                let asked = drones.iter().filter_map(|index| all.get(*index as usize));
                ask(asked, setting, request).await
            }
            Self::Workers(workers) => workers.ask(drones, request).await,
        }
    }

    /// The keys that these drones can export now.
    pub(crate) async fn exports(
        &self,
        setting: &NodeSettings<S>,
        drones: &[u32],
    ) -> Result<Vec<(u32, Option<Secret<32>>)>> {
        match self {
            Self::Local(all) => {
                exports(drones.iter().filter_map(|index| all.get(*index as usize)), setting).await
            }
            Self::Workers(workers) => workers.exports(drones).await,
        }
    }
}

/// Enrols drones of this process.
pub(crate) async fn enrol<'a, S: Suite>(
    drones: impl IntoIterator<Item = &'a mut Drone<S>>,
    setting: &NodeSettings<S>,
    kgcs: &[Multiaddr],
    at_once: usize,
) -> Result<()> {
    stream::iter(drones)
        .map(|drone| drone.enrol(setting, kgcs))
        .buffer_unordered(at_once.max(1))
        .try_collect()
        .await
}

/// Starts those of this process's drones whose indices are in the range. They dial all leaders, or one relay each.
pub(crate) async fn start_drones<'a, S: Suite>(
    drones: impl IntoIterator<Item = &'a mut Drone<S>>,
    setting: &NodeSettings<S>,
    (leaders, relays): (&[Multiaddr], Option<&[Multiaddr]>),
    range: Range<u32>,
) -> Result<()> {
    for (place, drone) in drones.into_iter().enumerate() {
        if !range.contains(&drone.index()) {
            continue;
        }
        let one = relays.and_then(|relays| relays.get(place % relays.len()));
        drone.connect(setting, one.map_or(leaders, std::slice::from_ref))?;
        // The nodes share the threads with this loop.
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Asks drones of this process to do something.
pub(crate) async fn ask<'a, S: Suite>(
    drones: impl IntoIterator<Item = &'a Drone<S>>,
    setting: &NodeSettings<S>,
    request: SwarmRequest,
) -> Result<()> {
    for drone in drones {
        drone.ask(setting, request).await?;
    }
    Ok(())
}

/// The keys that drones of this process can export now.
pub(crate) async fn exports<'a, S: Suite>(
    drones: impl IntoIterator<Item = &'a Drone<S>>,
    setting: &NodeSettings<S>,
) -> Result<Vec<(u32, Option<Secret<32>>)>> {
    let mut exports = Vec::new();
    for drone in drones {
        exports.push((drone.index(), drone.export(setting).await?));
    }
    Ok(exports)
}
