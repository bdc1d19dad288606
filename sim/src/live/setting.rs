//! What all nodes of a world share, and how each is set up for the network.

use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::{Deployment, KgcId, Name, Suite};
use quiver_net::{Multiaddr, NodeConfig, NodeKey, Transport, group_topic};
use quiver_role::edge::EdgeTiming;
use quiver_role::leader::LeaderTiming;
use quiver_role::{Kgcs, Route};
use tokio::sync::Semaphore;

use super::board::Board;
use super::services::{Founder, name};
use super::world::ENROLLING_AT_ONCE;
use crate::plan::{Plan, TransportKind};
use crate::seeds::{self, Player};
use crate::{Result, SimError};

/// How many handshakes go on at a time.
const DIALS_AT_ONCE: usize = 128;
/// Drones for which the default patience is enough. More drones share the same processor, so they must wait longer.
const PATIENT_DRONES: u32 = 1000;
/// For how long a leader with deputies may be silent, for each thousand of drones. While the group is formed, a question
/// of a deputy waits behind everybody who wants to join.
const SILENCE: Duration = Duration::from_secs(5);
/// The longest wait between two attempts to reach the leader again.
const REDIAL_CEILING: Duration = Duration::from_secs(2);

/// What all nodes of a world share.
pub(crate) struct Setting<S: Suite> {
    pub(crate) seed: u64,
    pub(crate) transport: TransportKind,
    pub(crate) deployment: Deployment<S>,
    pub(crate) kgcs: Kgcs<S>,
    pub(crate) group: Name,
    /// Under which name keys are exported for comparison.
    pub(crate) export: Arc<Name>,
    pub(crate) board: Arc<Board>,
    pub(crate) edge_timing: EdgeTiming,
    pub(crate) leader_timing: LeaderTiming,
    permits: Arc<Semaphore>,
}

impl<S: Suite> Setting<S> {
    pub(super) fn new(plan: &Plan, founder: &Founder<S>, drones: u32) -> Result<Self> {
        let patience = drones.div_ceil(PATIENT_DRONES).max(1);
        let (edge, leader) = (EdgeTiming::default(), LeaderTiming::default());
        Ok(Self {
            seed: plan.seed,
            transport: plan.transport,
            deployment: founder.deployment.clone(),
            kgcs: founder.treasury.kgcs(),
            group: name("swarm")?,
            export: Arc::new(name("simulator")?),
            board: Arc::new(Board::new(drones as usize)),
            edge_timing: EdgeTiming {
                retry: edge.retry * patience,
                retry_max: edge.retry_max * patience,
                admission: edge.admission * patience,
                ..edge
            },
            leader_timing: LeaderTiming {
                resend: leader.resend * patience,
                silence: (plan.deputies > 0).then_some(SILENCE * patience),
                ..leader
            },
            permits: Arc::new(Semaphore::new(DIALS_AT_ONCE)),
        })
    }

    /// The node of an edge drone.
    pub(crate) fn spoke(&self, index: u32) -> Result<NodeConfig> {
        let key = self.key(Player::Drone, index)?;
        let mut config = self.lean(NodeConfig::spoke(key, self.transport()));
        config.topic = Some(group_topic(self.group.as_str()));
        config.dial_permits = Some(self.permits.clone());
        // Every event then finds the machine in the state it is about.
        config.limits.batch = 1;
        Ok(config)
    }

    /// The node of a KGC.
    pub(crate) fn registry(&self, kgc: KgcId) -> Result<NodeConfig> {
        let key = self.key(Player::Kgc, u32::from(kgc) - 1)?;
        let mut config = self.lean(NodeConfig::registry(key, self.transport(), 4 * ENROLLING_AT_ONCE));
        config.listen = vec![self.any_address()?];
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
        let key = self.key(Player::Leader, ordinal)?;
        let mut config = self.lean(NodeConfig::hub(key, self.transport(), members as usize));
        config.topic = Some(group_topic(self.group.as_str()));
        config.listen = vec![listen];
        config.dial = dial;
        // Every event then finds the machine in the state it is about.
        config.limits.batch = 1;
        Ok(config)
    }

    /// Without what operators' tools use and without pings: within one process a dead peer is noticed at once.
    pub(crate) fn lean(&self, mut config: NodeConfig) -> NodeConfig {
        config.identify = false;
        config.ping = None;
        config.redial_ceiling = REDIAL_CEILING;
        config
    }

    fn key(&self, player: Player, index: u32) -> Result<NodeKey> {
        NodeKey::from_seed(seeds::node_key(self.seed, player, index))
            .map_err(|source| SimError::Node { who: format!("{player:?} {index}"), source })
    }

    pub(crate) fn transport(&self) -> Transport {
        transport(self.transport)
    }

    /// An address of which the system chooses the port.
    pub(crate) fn any_address(&self) -> Result<Multiaddr> {
        address(self.transport)
    }
}

pub(super) const fn transport(kind: TransportKind) -> Transport {
    match kind {
        TransportKind::Memory => Transport::PlainMemory,
        TransportKind::Tcp => Transport::Tcp,
        TransportKind::Quic => Transport::Quic,
    }
}

/// An address of which the system chooses the port.
pub(super) fn address(kind: TransportKind) -> Result<Multiaddr> {
    let text = match kind {
        TransportKind::Memory => "/memory/0",
        TransportKind::Tcp => "/ip4/127.0.0.1/tcp/0",
        TransportKind::Quic => "/ip4/127.0.0.1/udp/0/quic-v1",
    };
    text.parse().map_err(|_| SimError::Usage(format!("{text} is no address")))
}
