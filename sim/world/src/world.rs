//! The simulated world: nodes, links, event queue, clock.

mod actions;
mod adversary;
mod headers;
mod links;
mod parallel;
mod power;
mod query;
mod repeats;
mod scheduler;
mod setup;
mod split;
mod step;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use quiver_admission::{AdmittingLeader, AdmittingLeaderCommand};
use quiver_ainq::{Epoch, KgcId, Suite};
use quiver_envelope::{EnvelopeCommand, Envelopes};
use quiver_group::EdgeCommand;
use quiver_group::edge::EdgeTiming;
use quiver_group::leader::LeaderTiming;
use quiver_machine::{Either, Node as RoleNode};
use quiver_relay::WithRelays;
use sha2::Sha256;

pub use self::actions::message_number;
pub(crate) use self::adversary::Adversary;
pub(crate) use self::adversary::Doubled;
pub(crate) use self::headers::Headers;
pub(crate) use self::links::Links;
pub use self::setup::{Disks, Setup, WorldError};
pub(crate) use self::split::Split;
pub(crate) use self::split::anonymous_end;
use crate::admission::AnonymousDrone;
use crate::air::Air;
use crate::drone_node::DroneNode;
use crate::event_queue::WorldEventQueue;
use crate::kgc_node::KgcNode;
use crate::mavlink::stations::Stations;
use crate::node_id::NodeIndex;
use crate::relays::RelayNode;
use crate::step::Sabotage;
use crate::two_hops::TwoHopsState;
use crate::{Action, Fleet, Hop, NodeId, SimNetwork};
use quiver_testbed::SimNode;

/// Number of messages kept for the adversary to replay.
const RECORDED: usize = 4096;

/// A leader with its envelopes, whose drones may be behind relays.
pub(crate) type LeaderNode<S> = WithRelays<RoleNode<AdmittingLeader<S>, Envelopes>>;
/// Commands of a leader's node.
pub type LeaderNodeCommand = Either<AdmittingLeaderCommand, EnvelopeCommand>;
/// Commands of an edge with its envelopes.
pub type DroneNodeCommand = Either<EdgeCommand, EnvelopeCommand>;

/// All nodes, the network between them, and the clock. See the [crate](crate) for its guarantees.
pub struct World<S: Suite> {
    pub(crate) setup: Setup,
    pub(crate) fleet: Arc<Fleet<S>>,
    pub(crate) nodes: NodeIndex,
    /// Nanoseconds since the world began.
    pub(crate) now: u64,
    pub(crate) queue: WorldEventQueue,
    pub(crate) scheduled: Vec<Option<ScheduledAction>>,
    pub(crate) network: SimNetwork,
    pub(crate) links: Links,
    pub(crate) kgcs: Vec<SimNode<KgcNode<S>>>,
    pub(crate) leaders: Vec<SimNode<LeaderNode<S>>>,
    pub(crate) relays: Vec<SimNode<RelayNode>>,
    pub(crate) edges: Vec<Option<Box<SimNode<DroneNode<S>>>>>,
    pub(crate) headers: Headers,
    /// Sender, whether to the group, and the message.
    pub(crate) recorded: VecDeque<(NodeId, bool, Arc<[u8]>)>,
    /// Hops that no observer was told of yet.
    pub(crate) hops: Vec<Hop>,
    pub(crate) adversary: Adversary,
    /// Relays that are hostile.
    pub(crate) hostile: BTreeSet<u16>,
    /// Messages that were published to the group, the newest last, and the nodes that have each.
    pub(crate) gossip: VecDeque<(Arc<[u8]>, BTreeSet<NodeId>)>,
    /// KGCs that lie, and those whose operators have approved the second phase.
    pub(crate) lying: BTreeSet<KgcId>,
    pub(crate) approved: BTreeSet<KgcId>,
    /// Edges that have put their names away, where leaders demand a policy.
    pub(crate) anonymous: BTreeMap<u32, AnonymousDrone>,
    /// Time for which nodes that are to crash stay down.
    pub(crate) returns: BTreeMap<NodeId, Duration>,
    pub(crate) air: Option<Air>,
    /// Places of the members, if some do not hear the leader.
    pub(crate) field: Option<Box<TwoHopsState>>,
    /// Stations of MAVLink telemetry in the group's datagrams.
    pub(crate) stations: Option<Box<Stations<S>>>,
    /// Share of this process, if others play the world with it.
    pub(crate) split: Option<Box<Split>>,
    pub(crate) trace: Option<Sha256>,
    pub(crate) steps: u64,
    pub(crate) leader_cpu: Duration,
}

/// An action that the world has scheduled itself.
#[derive(Clone, Debug)]
pub(crate) enum ScheduledAction {
    Act(Box<Action>),
    /// A node tries to reach one that it dials.
    Connect(NodeId, NodeId),
    /// Two nodes notice that the connection between them is lost.
    Sever(NodeId, NodeId),
    /// A crashed node is started again.
    Return(NodeId),
    /// An anonymous drone whose machine was over returns.
    ReturnDrone(u32),
    /// A leader that was started gets the slot keys.
    SlotKeys(u16),
    /// A period of credentials begins.
    Period,
    /// All nodes receive both headers that the leader with two keys signed for this epoch.
    Cross(Epoch),
}
