//! Settings that all nodes of a world share, and the network configuration of each kind of node.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::{Deployment, KgcId, Name, Suite};
use quiver_enrolment::Kgcs;
use quiver_group::edge::EdgeTiming;
use quiver_group::leader::LeaderTiming;
use quiver_kem::KemSetting;
use quiver_machine::Route;
use quiver_net::{Multiaddr, NodeConfig, NodeKey, Transport, group_topic};
use tokio::sync::Semaphore;

use super::deployment::name;
use super::drone_event::EventSink;
use super::features::{self, FeatureSettings};
use super::relays::RelaySettings;
use super::world::ENROLLING_AT_ONCE;
use crate::plan::TransportKind;
use crate::rng_stream::{self, RngStream};
use crate::{Result, SimError};

/// Number of handshakes at a time.
const DIALS_AT_ONCE: usize = 128;
/// Drones for which the default patience is enough. More drones share the same processor, so they must wait
/// longer.
const PATIENT_DRONES: u32 = 1000;
/// The most by which the first wait of a drone without an answer is longer, up to 24,000 drones.
const LONGEST_RETRY: u32 = 8;
/// The most by which a batch of joins may wait longer.
const SLOWEST_BATCHES: u32 = 8;
/// Time for which a leader with deputies may be silent, for each thousand of drones. While the group is
/// formed, a question of a deputy waits behind all joins.
const SILENCE: Duration = Duration::from_secs(5);
/// The longest wait between two attempts to reach the leader again.
const REDIAL_CEILING: Duration = Duration::from_secs(2);

/// Settings that all nodes of a world share.
pub(crate) struct NodeSettings<S: Suite> {
    pub(crate) seed: u64,
    pub(crate) transport: TransportKind,
    pub(crate) deployment: Deployment<S>,
    pub(crate) kgcs: Kgcs<S>,
    pub(crate) group: Name,
    /// Name under which keys are exported for comparison.
    pub(crate) export: Arc<Name>,
    /// Sink of the drones' events.
    pub(crate) reports: Arc<dyn EventSink>,
    pub(crate) edge_timing: EdgeTiming,
    pub(crate) leader_timing: LeaderTiming,
    /// Second factor of pairwise secrets.
    pub(crate) kem: KemSetting,
    pub(crate) features: FeatureSettings<S>,
    /// Drones of the run.
    pub(crate) drones: u32,
    /// Factor by which all time limits are longer than elsewhere.
    patience: u32,
    permits: Arc<Semaphore>,
}

/// The part of a run's plan on which its nodes depend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunParameters {
    pub(crate) seed: u64,
    pub(crate) transport: TransportKind,
    pub(crate) kem: KemSetting,
    pub(crate) deputies: u32,
    pub(crate) relays: u32,
    /// All of the run.
    pub(crate) drones: u32,
}

impl<S: Suite> NodeSettings<S> {
    pub(super) fn new(
        terms: &RunParameters,
        (deployment, kgcs): (Deployment<S>, Kgcs<S>),
        reports: Arc<dyn EventSink>,
    ) -> Result<Self> {
        let patience = terms.drones.div_ceil(PATIENT_DRONES).max(1);
        let (edge, leader) = (EdgeTiming::default(), LeaderTiming::default());
        Ok(Self {
            seed: terms.seed,
            transport: terms.transport,
            kem: terms.kem,
            deployment,
            kgcs,
            group: name("swarm")?,
            export: Arc::new(name("simulator")?),
            reports,
            edge_timing: EdgeTiming {
                // It doubles, so that few are in vain; who was told that no more fit asks again before long.
                retry: edge.retry * patience.min(LONGEST_RETRY.max(patience / 3)),
                retry_max: edge.retry_max * patience,
                admission: edge.admission * patience,
                ..edge
            },
            leader_timing: LeaderTiming {
                // Between two turns of the leader on this processor, nobody can have answered. A drone for whom there
                // is no room is told to wait as long.
                batching_max: leader.batching_max * patience.min(SLOWEST_BATCHES),
                resend: leader.resend * patience,
                // A drone that waits that long for its turn shall not have to ask anew.
                challenge: leader.challenge * patience,
                silence: (terms.deputies > 0).then_some(SILENCE * patience),
                ..leader
            },
            features: FeatureSettings { admission: None, relays: RelaySettings::new(terms.relays, patience) },
            drones: terms.drones,
            patience,
            permits: Arc::new(Semaphore::new(DIALS_AT_ONCE)),
        })
    }

    /// The node of an edge drone.
    pub(crate) fn spoke(&self, index: u32) -> Result<NodeConfig> {
        let key = self.key(RngStream::Drone, index)?;
        let mut config = self.lean(NodeConfig::spoke(key, self.transport()));
        config.topic = Some(group_topic(self.group.as_str()));
        config.dial_permits = Some(self.permits.clone());
        // Every event then finds the machine in the state it is about.
        config.limits.batch = 1;
        Ok(config)
    }

    /// The node of a KGC.
    pub(crate) fn registry(&self, kgc: KgcId, listen: Multiaddr) -> Result<NodeConfig> {
        let key = self.key(RngStream::Kgc, u32::from(kgc) - 1)?;
        let mut config = self.lean(NodeConfig::registry(key, self.transport(), 4 * ENROLLING_AT_ONCE));
        config.listen = vec![listen];
        Ok(config)
    }

    /// The node of a leader.
    pub(crate) fn hub(
        &self,
        ordinal: u32,
        listen: Multiaddr,
        dial: Vec<(Route, Multiaddr)>,
        members: u32,
    ) -> Result<NodeConfig> {
        let key = self.key(RngStream::Leader, ordinal)?;
        let mut config = self.lean(NodeConfig::hub(key, self.transport(), members as usize));
        config.topic = Some(group_topic(self.group.as_str()));
        config.listen = vec![listen];
        config.dial = dial;
        features::configure_hub(&mut config, self)?;
        // Every event then finds the machine in the state it is about.
        config.limits.batch = 1;
        Ok(config)
    }

    /// Removes identify, which only tools use, and pings: within one process a dead peer is noticed at once.
    pub(crate) fn lean(&self, mut config: NodeConfig) -> NodeConfig {
        config.identify = false;
        // All nodes of a run have one address, and a machine's clock is everybody's: nobody is known by it.
        config.limits = config.limits.with_any_strangers();
        config.ping = None;
        config.redial_ceiling = REDIAL_CEILING;
        // A message that waits for its turn is not lost: its sender would wait much longer before it asks
        // anew.
        config.request_timeout *= self.patience;
        config
    }

    /// The transport key of a node.
    pub(super) fn key(&self, player: RngStream, index: u32) -> Result<NodeKey> {
        NodeKey::from_seed(rng_stream::node_key(self.seed, player, index))
            .map_err(|source| SimError::Node { who: format!("{player:?} {index}"), source })
    }

    pub(crate) fn transport(&self) -> Transport {
        transport(self.transport)
    }
}

pub(super) const fn transport(kind: TransportKind) -> Transport {
    match kind {
        TransportKind::Memory => Transport::PlainMemory,
        TransportKind::Tcp => Transport::Tcp,
        TransportKind::Quic => Transport::Quic,
    }
}

/// An address of this host of which the system chooses the port.
pub(super) fn address(kind: TransportKind, host: IpAddr) -> Result<Multiaddr> {
    let host = match host {
        IpAddr::V4(host) => format!("/ip4/{host}"),
        IpAddr::V6(host) => format!("/ip6/{host}"),
    };
    let text = match kind {
        TransportKind::Memory => "/memory/0".into(),
        TransportKind::Tcp => format!("{host}/tcp/0"),
        TransportKind::Quic => format!("{host}/udp/0/quic-v1"),
    };
    text.parse().map_err(|_| SimError::Usage(format!("{text} is not an address")))
}
