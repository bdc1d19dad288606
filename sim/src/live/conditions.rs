//! Collects the key of a condition from the KGCs, on a node of its own, as the services do, and opens an order
//! with it.

pub(super) mod kgc;
pub(super) mod phases;

use std::convert::Infallible;
use std::time::Duration;

use futures::future::join_all;
use futures::stream::{self, StreamExt, TryStreamExt};
use quiver_ainq::{DroneKeypair, Name, Suite};
use quiver_delivery::Standalone;
use quiver_ibe::{Condition, IdentityKey};
use quiver_key_release::{CollectCommand, CollectEvent, CollectTiming, Collector, Shortfall};
use quiver_machine::Route;
use quiver_net::{Host, HostError, Multiaddr, NodeConfig, NodeKey};
use quiver_world::conditions::{CHANNEL, SealedOrder};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::drone_event::{DroneEvent, EventSink};
use super::node::LiveNode;
use super::node_settings::NodeSettings;
use super::swarm::Swarm;
use super::worker_message::{PER_MESSAGE, WorkerCommand, WorkerMessage};
use super::worker_pool::{WorkerPool, texts};
use super::{drone::Drone, drone_name};
use crate::rng_stream::{self, RngStream};
use crate::{Result, SimError};

/// Never for the conditions there are.
fn refused(error: impl std::fmt::Display) -> SimError {
    SimError::Usage(format!("orders for the second phase: {error}"))
}

/// The event of an order that the group was sent; `None` for messages on other channels.
pub(super) fn order_event(channel: &Name, data: &[u8]) -> Option<DroneEvent> {
    (channel.as_str() == CHANNEL).then(|| DroneEvent::OrderReceived(data.to_vec()))
}

/// Terms on which drones collect the key of an order's condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OrderTerms {
    /// The condition.
    pub(crate) condition: String,
    /// Time limit of a drone.
    pub(crate) patience: Duration,
    /// True if it goes on asking while the condition is not met.
    pub(crate) wait: bool,
    /// Number of drones that collect at a time.
    pub(crate) at_once: usize,
}

/// The outcome of a collection.
type Collected = std::result::Result<IdentityKey, Shortfall>;

impl<S: Suite> Drone<S> {
    /// Collects the key of an order's condition and opens the order that the drone received. Returns whether
    /// it did.
    pub(crate) async fn read_order(
        &self,
        setting: &NodeSettings<S>,
        kgcs: &[Multiaddr],
        terms: &OrderTerms,
    ) -> Result<bool> {
        let condition = terms.condition.parse().map_err(refused)?;
        let collected = self.collect(setting, kgcs, &condition, (terms.patience, terms.wait)).await?;
        let order = setting.reports.order_of(self.index());
        let order = order.and_then(|order| SealedOrder::decode(&order).ok());
        let Some((key, order)) = collected.ok().zip(order) else { return Ok(false) };
        let Ok(text) = order.open(&key) else { return Ok(false) };
        setting.reports.record_event(self.index(), DroneEvent::OrderRead(text.to_vec()));
        Ok(true)
    }

    /// Collects the key of a condition from the KGCs. With `wait`, it goes on asking while the condition is
    /// not met.
    async fn collect(
        &self,
        setting: &NodeSettings<S>,
        kgcs: &[Multiaddr],
        condition: &Condition,
        (patience, wait): (Duration, bool),
    ) -> Result<Collected> {
        let who = drone_name(self.index());
        let deployment = setting.deployment.clone();
        let own =
            self.node()?.inspect(|edge| edge.keypair().map(|own| (own.public().clone(), own.to_bytes())));
        let (public, secret) = own.await?.ok_or_else(|| SimError::Stopped { who: who.clone() })?;
        let keypair = DroneKeypair::restore(&deployment, public, &secret)
            .map_err(|source| SimError::Protocol { what: "a drone's key", source })?;
        let collector = Collector::new(None, CollectTiming::default());
        let collector = Standalone::client(deployment, keypair, collector);
        let key =
            NodeKey::from_seed(rng_stream::node_key(setting.seed, RngStream::KeyCollector, self.index()))
                .map_err(|source| SimError::Node { who: who.clone(), source })?;
        let mut config = setting.lean(NodeConfig::spoke(key, setting.transport()));
        config.dial = kgcs.iter().map(|kgc| (Route::Kgc, kgc.clone())).collect();
        let (told, done) = oneshot::channel();
        let host = CollectionHost { who: who.clone(), reports: setting.reports.clone(), told: Some(told) };
        let rng = rng_stream::generator(setting.seed, RngStream::KeyCollector, self.index(), u32::from(wait));
        let mut node = LiveNode::start(who, &config, collector, host, rng)?;
        let condition = Some(condition.clone());
        node.command(CollectCommand::Collect { condition, patience, wait }).await?;
        let collected = done.await.map_err(|_| node.stopped())?;
        node.kill().await;
        Ok(collected)
    }
}

/// Lets drones of this process collect the key of an order's condition, and open the order with it. Returns
/// those that did.
pub(crate) async fn read_orders<'a, S: Suite>(
    drones: impl IntoIterator<Item = &'a Drone<S>>,
    setting: &NodeSettings<S>,
    kgcs: &[Multiaddr],
    terms: &OrderTerms,
) -> Result<Vec<u32>> {
    // Collected: a stream over borrowed drones is too general for the compiler within a task.
    let drones: Vec<&Drone<S>> = drones.into_iter().collect();
    let asked = stream::iter(drones).map(|drone| async move {
        Ok::<_, SimError>(drone.read_order(setting, kgcs, terms).await?.then(|| drone.index()))
    });
    let read: Vec<Option<u32>> = asked.buffer_unordered(terms.at_once.max(1)).try_collect().await?;
    Ok(read.into_iter().flatten().collect())
}

impl<S: Suite> Swarm<S> {
    /// Lets these drones collect the key of an order's condition, and open the order with it. Returns those
    /// that did.
    pub(crate) async fn read_orders(
        &self,
        setting: &NodeSettings<S>,
        kgcs: &[Multiaddr],
        drones: &[u32],
        terms: &OrderTerms,
    ) -> Result<Vec<u32>> {
        match self {
            Self::Local(all) => {
                let asked = drones.iter().filter_map(|index| all.get(*index as usize));
                read_orders(asked, setting, kgcs, terms).await
            }
            Self::Workers(workers) => workers.read_orders(kgcs, drones, terms).await,
        }
    }
}

impl WorkerPool {
    /// Returns those that opened their orders. A lost worker's did not.
    pub(crate) async fn read_orders(
        &self,
        kgcs: &[Multiaddr],
        drones: &[u32],
        terms: &OrderTerms,
    ) -> Result<Vec<u32>> {
        let at_once = terms.at_once.div_ceil(self.workers.len().max(1)).min(PER_MESSAGE);
        let (kgcs, terms) = (texts(kgcs), OrderTerms { at_once, ..terms.clone() });
        let asked = self.workers.iter().map(|worker| {
            let (kgcs, terms) = (&kgcs, &terms);
            async move {
                let mut read = Vec::new();
                // As many as collect at a time: a command takes no longer than one of them may.
                for drones in worker.hosted_of(drones).chunks(at_once.max(1)) {
                    let (drones, kgcs, terms) = (drones.to_vec(), kgcs.clone(), terms.clone());
                    let command = WorkerCommand::ReadOrders { kgcs, drones, terms };
                    match worker.command(&command, self.timeout).await {
                        Some(WorkerMessage::OrdersRead(drones)) => read.extend(drones),
                        _ => break,
                    }
                }
                read
            }
        });
        Ok(join_all(asked).await.into_iter().flatten().collect())
    }
}

/// The callback of a collector.
struct CollectionHost {
    who: String,
    reports: std::sync::Arc<dyn EventSink>,
    told: Option<oneshot::Sender<Collected>>,
}

impl CollectionHost {
    fn finish(&mut self, collected: Collected) {
        if let Some(told) = self.told.take() {
            // The caller may have given up.
            let _ = told.send(collected);
        }
    }
}

impl<S: Suite> Host<Standalone<S, Collector<S>>> for CollectionHost {
    fn persist(&mut self, _: &[Infallible]) -> std::result::Result<(), HostError> {
        Ok(())
    }

    fn event(&mut self, _: &Standalone<S, Collector<S>>, event: CollectEvent) {
        match event {
            CollectEvent::Collected { key, .. } => self.finish(Ok(*key)),
            CollectEvent::NotCollected(shortfall) => self.finish(Err(shortfall)),
            CollectEvent::Culprit { kgc, fault, .. } => {
                self.reports.offence(&self.who, &format!("KGC {kgc} sent a wrong key share: {fault}"));
            }
            CollectEvent::Blamed { offence, .. } => self.reports.offence(&self.who, &offence),
            other => tracing::debug!(?other, "collector"),
        }
    }
}
