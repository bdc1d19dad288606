//! The drones: in this process, or with workers elsewhere.

use std::ops::Range;

use futures::stream::{self, StreamExt, TryStreamExt};
use quiver_ainq::Suite;
use quiver_crypto::Secret;
use quiver_net::Multiaddr;
use quiver_role::EdgeCommand;
use serde::{Deserialize, Serialize};

use super::crews::Crews;
use super::drone::Drone;
use super::host::message_body;
use super::services::name;
use super::setting::Setting;
use crate::{Result, SimError};

/// The drones.
pub(crate) enum Swarm<S: Suite> {
    /// In this process, by index.
    Here(Vec<Drone<S>>),
    /// With workers.
    Spread(Crews),
}

/// What a drone is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// To join the group.
    Join,
    /// To leave it.
    Leave,
    /// To say the message of this number to the group.
    Say {
        /// The message's number.
        number: u32,
        /// Whether the drone signs it.
        signed: bool,
    },
}

impl Request {
    /// As the drone's machine is told.
    pub(crate) fn command<S: Suite>(self, setting: &Setting<S>) -> Result<EdgeCommand> {
        Ok(match self {
            Self::Join => EdgeCommand::Join(setting.group.clone()),
            Self::Leave => EdgeCommand::Leave,
            Self::Say { number, signed } => {
                EdgeCommand::Send { channel: name("telemetry")?, data: message_body(number), signed }
            }
        })
    }
}

impl<S: Suite> Swarm<S> {
    /// The drones of this process.
    ///
    /// # Errors
    /// If they are with workers; what needs them here is refused before a run begins.
    pub(crate) fn here(&self) -> Result<&[Drone<S>]> {
        match self {
            Self::Here(drones) => Ok(drones),
            Self::Spread(_) => Err(SimError::Usage("the drones are with workers".into())),
        }
    }

    /// Enrols all of them, so many at a time. Who is late shows on the board.
    pub(crate) async fn enrol(
        &mut self,
        setting: &Setting<S>,
        kgcs: &[Multiaddr],
        at_once: usize,
    ) -> Result<()> {
        match self {
            Self::Here(drones) => enrol(drones, setting, kgcs, at_once).await,
            Self::Spread(crews) => crews.enrol(kgcs, at_once).await,
        }
    }

    /// Starts these drones in their second life; they connect to the leaders by and by.
    pub(crate) async fn take_off(
        &mut self,
        setting: &Setting<S>,
        leaders: &[Multiaddr],
        drones: Range<u32>,
    ) -> Result<()> {
        match self {
            Self::Here(all) => take_off(all, setting, leaders, drones).await,
            Self::Spread(crews) => crews.take_off(leaders, drones).await,
        }
    }

    /// Asks each of these drones to do something.
    pub(crate) async fn ask(&self, setting: &Setting<S>, drones: &[u32], request: Request) -> Result<()> {
        match self {
            Self::Here(all) => {
                let asked = drones.iter().filter_map(|index| all.get(*index as usize));
                ask(asked, setting, request).await
            }
            Self::Spread(crews) => crews.ask(drones, request).await,
        }
    }

    /// What these drones can export now. Those that crashed are left out.
    pub(crate) async fn exports(
        &self,
        setting: &Setting<S>,
        drones: &[u32],
    ) -> Result<Vec<(u32, Option<Secret<32>>)>> {
        match self {
            Self::Here(all) => {
                exports(drones.iter().filter_map(|index| all.get(*index as usize)), setting).await
            }
            Self::Spread(crews) => crews.exports(drones).await,
        }
    }
}

/// Enrols drones of this process.
pub(crate) async fn enrol<'a, S: Suite>(
    drones: impl IntoIterator<Item = &'a mut Drone<S>>,
    setting: &Setting<S>,
    kgcs: &[Multiaddr],
    at_once: usize,
) -> Result<()> {
    stream::iter(drones)
        .map(|drone| drone.enrol(setting, kgcs))
        .buffer_unordered(at_once.max(1))
        .try_collect()
        .await
}

/// Starts those of this process's drones whose indices are in the range.
pub(crate) async fn take_off<'a, S: Suite>(
    drones: impl IntoIterator<Item = &'a mut Drone<S>>,
    setting: &Setting<S>,
    leaders: &[Multiaddr],
    range: Range<u32>,
) -> Result<()> {
    for drone in drones.into_iter().filter(|drone| range.contains(&drone.index())) {
        drone.take_off(setting, leaders)?;
        // The nodes share the threads with this loop.
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Asks drones of this process to do something.
pub(crate) async fn ask<'a, S: Suite>(
    drones: impl IntoIterator<Item = &'a Drone<S>>,
    setting: &Setting<S>,
    request: Request,
) -> Result<()> {
    for drone in drones {
        drone.ask(setting, request).await?;
    }
    Ok(())
}

/// What drones of this process can export now.
pub(crate) async fn exports<'a, S: Suite>(
    drones: impl IntoIterator<Item = &'a Drone<S>>,
    setting: &Setting<S>,
) -> Result<Vec<(u32, Option<Secret<32>>)>> {
    let mut exports = Vec::new();
    for drone in drones {
        exports.push((drone.index(), drone.export(setting).await?));
    }
    Ok(exports)
}
