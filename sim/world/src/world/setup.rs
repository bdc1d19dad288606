//! Builds a world from a setup, or from the disks of another world.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::{StrategyKind, Suite};
use quiver_group::LeaderRecord;
use quiver_group::edge::EdgeTiming;
use quiver_group::leader::LeaderTiming;
use quiver_kem::KemSetting;
use quiver_machine::{Either, Snapshot};
use quiver_testbed::{Keep, SimNode, Traffic};
use sha2::{Digest, Sha256};

use super::World;
use super::headers::Headers;
use super::kernel::WorldKernel;
use super::links::Links;
use super::nodes::{SimNodes, Split, StepOptions};
use super::timeline::Timeline;
use super::wire::Wire;
use crate::admission::Rules;
use crate::air::Air;
use crate::features::Features;
use crate::kgc_node::KgcNodeRecord;
use crate::master_key::MasterKeySuite;
use crate::mavlink::stations::MAX_STATIONS;
use crate::node_id::NodeIndex;
use crate::ranks::Ranks;
use crate::relays::RelayGossip;
use crate::rng_stream::{self, RngStream};
use crate::step::Sabotage;
use crate::two_hops::TwoHopsState;
use crate::{AirSetup, Fleet, LinkFaults, MavlinkSetup, NodeId, SimNetwork, TwoHops};

/// The most edges: the most of a group, twice.
const MAX_EDGES: u32 = 1 << 21;

/// Setup of a world.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Seed of all randomness.
    pub seed: u64,
    /// Seed of the deployment's keys and tokens; worlds that share [`Disks`] share it.
    pub fleet_seed: u64,
    /// Edges whose identities list the group.
    pub members: u32,
    /// Edges whose identities do not, numbered after the members.
    pub strangers: u32,
    /// KGCs: one, or a quorum of which any `threshold` issue keys.
    pub kgcs: u16,
    /// Threshold of the KGCs; of no meaning if there is one.
    pub threshold: u16,
    /// True if orders can be sealed that wait for a condition; the KGCs then release its key, and drones
    /// collect it.
    pub orders: bool,
    /// Policy and terms of anonymous admission; `None`: edges join under their names.
    pub admission: Option<Rules>,
    /// Strangers that race for one token: they all have that of the first.
    pub one_token: Vec<u32>,
    /// Leaders, one ordinal each.
    pub leaders: u16,
    /// Relays of each leader, which edges dial in its place; 0: edges dial leaders. Not with a radio.
    pub relays: u16,
    /// Re-key strategy of the leaders.
    pub strategy: StrategyKind,
    /// Second factor of pairwise secrets.
    pub kem: KemSetting,
    /// True if leaders count on one transmission to reach all members. A broadcast is one step of the world
    /// then, where paths for each would be as many as members.
    pub shared_medium: bool,
    /// Timing of the leaders.
    pub leader_timing: LeaderTiming,
    /// Timing of the edges.
    pub edge_timing: EdgeTiming,
    /// Faults of the links at first.
    pub faults: LinkFaults,
    /// The radio between the nodes; `None`: links have all the time and frames they need.
    pub air: Option<AirSetup>,
    /// Members out of the leader's range; `None`: all nodes hear each other. Of no meaning without a radio.
    pub two_hops: Option<TwoHops>,
    /// MAVLink telemetry in the group's datagrams; `None`: no drone sends any.
    pub mavlink: Option<MavlinkSetup>,
    /// True to hash every step into one trace.
    pub traced: bool,
    /// True to measure the CPU time of the leaders' steps.
    pub metered: bool,
    /// True to compute once, per thread and distinct input, what many nodes verify alike; over ristretto255
    /// alone. The trace is the same; CPU times are not those of drones.
    pub share_verifications: bool,
    /// True to take the steps of different nodes in the same stretch of time (no longer than any message
    /// takes) on all cores. Observers then see the steps of a stretch after it.
    pub parallel: bool,
    /// True if edges and the KGC keep what they persist, so that they can be restarted. Leaders always do.
    pub durable: bool,
    /// True to keep messages for the adversary to repeat.
    pub recording: bool,
    /// True to tell observers of every [`Hop`](crate::Hop).
    pub hops: bool,
    /// Processes that play the world together, each with the machines of its share of the edges. The trace is that of
    /// one process; observers see the steps of their own edges, and those of all other nodes. A world with MAVLink
    /// telemetry is played whole by each of them: a station asks its drone's machine between steps.
    pub ranks: Option<Ranks>,
    /// Rules that drivers break.
    #[doc(hidden)]
    pub sabotage: Sabotage,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            seed: 1,
            fleet_seed: 1,
            members: 20,
            strangers: 0,
            kgcs: 1,
            threshold: 1,
            orders: false,
            admission: None,
            one_token: Vec::new(),
            leaders: 1,
            relays: 0,
            strategy: StrategyKind::Flat,
            kem: KemSetting::None,
            shared_medium: false,
            leader_timing: LeaderTiming::default(),
            edge_timing: EdgeTiming::default(),
            faults: LinkFaults::SOUND,
            air: None,
            two_hops: None,
            mavlink: None,
            traced: false,
            metered: false,
            share_verifications: false,
            parallel: false,
            durable: true,
            recording: false,
            hops: false,
            ranks: None,
            sabotage: Sabotage::None,
        }
    }
}

/// Durable state of all nodes.
#[derive(Clone, Debug)]
pub struct Disks<S: Suite> {
    fleet: Arc<Fleet<S>>,
    kgcs: Vec<Vec<KgcNodeRecord>>,
    leaders: Vec<Vec<Either<LeaderRecord, Infallible>>>,
    edges: Vec<Vec<Snapshot>>,
}

/// Reason why a world cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// Too many edges.
    #[error("{0} edges are too many: at most {MAX_EDGES}")]
    TooManyEdges(u64),
    /// So many KGCs are no quorum.
    #[error("{0}")]
    Quorum(String),
    /// NoObserver leads.
    #[error("a world needs a leader")]
    NoLeader,
    /// The disks are another world's.
    #[error("the disks are of a world with other nodes")]
    OtherDisks,
    /// Leaders cannot demand this policy.
    #[error("{0}")]
    Admission(String),
    /// There are more nodes than MAVLink has system ids.
    #[error("{0} edges and leaders are more than the {MAX_STATIONS} system ids that MAVLink has")]
    SystemIds(usize),
    /// The radio cannot carry the plan.
    #[error("{0}")]
    Radio(String),
    /// Ranks that play a world together cannot do this.
    #[error("{0}")]
    Ranks(&'static str),
    /// A rank that plays the world with others is lost.
    #[error("rank {0} was lost, and the run is over")]
    LostRank(u32),
    /// There are relays that cannot be.
    #[error("{0}")]
    Relays(&'static str),
}

impl<S: Suite> World<S> {
    /// A world whose nodes are all switched off and have empty disks.
    ///
    /// # Errors
    /// If there are too many edges or no leader, or if the KGCs are no quorum.
    pub fn new(setup: Setup) -> Result<Self, WorldError>
    where
        S: MasterKeySuite,
    {
        let fleet = Fleet::new(&setup)?;
        Self::with_fleet(setup, Arc::new(fleet))
    }

    /// A world whose nodes are all switched off and have these disks.
    ///
    /// # Errors
    /// As [`new`](Self::new), and if the disks are of a world with other nodes.
    pub fn from_disks(setup: Setup, disks: &Disks<S>) -> Result<Self, WorldError> {
        let mut world = Self::with_fleet(setup, Arc::clone(&disks.fleet))?;
        let nodes = &mut world.kernel.nodes;
        let others = disks.kgcs.len() != nodes.kgcs.len()
            || disks.leaders.len() != nodes.leaders.len()
            || disks.edges.len() != nodes.edges.len();
        if others {
            return Err(WorldError::OtherDisks);
        }
        for (kgc, records) in nodes.kgcs.iter_mut().zip(&disks.kgcs) {
            kgc.disk.records.clone_from(records);
        }
        for (leader, records) in nodes.leaders.iter_mut().zip(&disks.leaders) {
            leader.disk.records.clone_from(records);
        }
        for (edge, records) in nodes.edges.iter_mut().zip(&disks.edges) {
            if let Some(edge) = edge {
                edge.disk.records.clone_from(records);
            }
        }
        Ok(world)
    }

    /// A world of the deployment that these disks are of, whose nodes are all switched off and have empty ones: founding
    /// several KGCs costs more than a life.
    ///
    /// # Errors
    /// Errors of [`new`](Self::new), except those of a quorum, which has been founded.
    pub(crate) fn with_empty_disks(setup: Setup, disks: &Disks<S>) -> Result<Self, WorldError> {
        Self::with_fleet(setup, Arc::clone(&disks.fleet))
    }

    fn with_fleet(setup: Setup, fleet: Arc<Fleet<S>>) -> Result<Self, WorldError> {
        let edges = u64::from(setup.members) + u64::from(setup.strangers);
        if edges > u64::from(MAX_EDGES) {
            return Err(WorldError::TooManyEdges(edges));
        }
        if setup.leaders == 0 {
            return Err(WorldError::NoLeader);
        }
        if setup.relays > 0 && (setup.air.is_some() || setup.mavlink.is_some()) {
            return Err(WorldError::Relays("relays are for links without a radio"));
        }
        if setup.leaders.checked_mul(setup.relays).is_none() {
            return Err(WorldError::Relays("there are too many relays"));
        }
        let systems = edges as usize + usize::from(setup.leaders);
        if setup.mavlink.is_some() && systems > MAX_STATIONS {
            return Err(WorldError::SystemIds(systems));
        }
        if let Some(two_hops) = &setup.two_hops {
            if !(1.0..=2.0).contains(&two_hops.spread) {
                return Err(WorldError::Radio(format!(
                    "a spread of {} ranges is not in 1 to 2",
                    two_hops.spread
                )));
            }
            if setup.mavlink.is_some() {
                return Err(WorldError::Radio("nobody passes datagrams on to members out of range".into()));
            }
        }
        let rng = |node| rng_stream::compact(setup.seed, RngStream::Node(node, 0));
        let (log, state) =
            if setup.durable { (Keep::All, Keep::Last) } else { (Keep::Nothing, Keep::Nothing) };
        let hoards = matches!(setup.sabotage, Sabotage::StaleState | Sabotage::KeepStates);
        let state = if hoards { Keep::All } else { state };
        let leader = |ordinal| SimNode::new(Keep::All, Vec::new(), rng(NodeId::Leader(ordinal)));
        let edge = |number| Some(Box::new(SimNode::new(state, Vec::new(), rng(NodeId::Edge(number)))));
        let kgc = |node| SimNode::new(log, Vec::new(), rng(node));
        let relay = |node| SimNode::new(Keep::Nothing, Vec::new(), rng(node));
        let index = NodeIndex { kgcs: setup.kgcs, leaders: setup.leaders, relays: setup.relays };
        let edges = u32::try_from(edges).unwrap_or(MAX_EDGES);
        let split =
            setup.ranks.clone().filter(|ranks| ranks.count() > 1 && setup.mavlink.is_none()).map(|ranks| {
                // Those that race for one token stay together.
                let owner = |edge| match fleet.owner(NodeId::Edge(edge)) {
                    NodeId::Edge(owner) => owner,
                    _ => edge,
                };
                Split::new(ranks, edges, owner)
            });
        let nodes = SimNodes {
            index,
            options: StepOptions::new(&setup, index),
            kgcs: index.kgcs().map(kgc).collect(),
            leaders: (0..setup.leaders).map(leader).collect(),
            relays: index.relays().map(relay).collect(),
            edges: (0..edges).map(edge).collect(),
            headers: Headers::default(),
            split: split.unwrap_or_default(),
        };
        let air = |air| Air::new(air, edges, rng_stream::generator(setup.seed, RngStream::Air));
        let field = |two_hops| {
            let rng = rng_stream::generator(setup.seed, RngStream::Field);
            Box::new(TwoHopsState::new(two_hops, edges, rng))
        };
        let wire = Wire {
            index,
            links: Links::new(index, edges),
            network: SimNetwork::new(rng_stream::generator(setup.seed, RngStream::Network), setup.faults),
            air: setup.air.clone().map(air),
            field: setup.two_hops.filter(|_| setup.air.is_some()).map(field),
            gossip: RelayGossip::default(),
            nameless: BTreeMap::new(),
            connects_at_once: setup.parallel,
            hops: setup.hops.then(Vec::new),
            datagrams: Traffic::default(),
        };
        let features = Features::new(&setup, &fleet);
        let kernel = WorldKernel {
            timeline: Timeline::new(index),
            nodes,
            wire,
            returns: BTreeMap::new(),
            stopped: Vec::new(),
            trace: setup.traced.then(Sha256::new),
            steps: 0,
            leader_cpu: Duration::ZERO,
            fleet,
            setup,
        };
        let mut world = Self { kernel, features };
        for feature in world.features.all() {
            feature.begin(&mut world.kernel);
        }
        Ok(world)
    }

    /// Durable state of all nodes so far.
    pub fn disks(&self) -> Disks<S> {
        let nodes = &self.kernel.nodes;
        let edges = nodes.edges.iter().map(|edge| edge.as_ref().map(|edge| edge.disk.records.clone()));
        Disks {
            fleet: self.kernel.shared_fleet(),
            kgcs: nodes.kgcs.iter().map(|kgc| kgc.disk.records.clone()).collect(),
            leaders: nodes.leaders.iter().map(|leader| leader.disk.records.clone()).collect(),
            edges: edges.map(Option::unwrap_or_default).collect(),
        }
    }
}
