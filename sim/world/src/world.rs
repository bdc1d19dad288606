//! The simulated world: nodes, links, event queue, clock.

mod actions;
mod adversary;
mod anonymous;
mod datagrams;
mod headers;
mod links;
mod parallel;
mod power;
mod query;
mod relays;
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
use self::adversary::Adversary;
pub(crate) use self::adversary::Doubled;
use self::headers::Headers;
use self::links::Links;
pub use self::setup::{Disks, Setup, WorldError};
use self::split::Split;
use crate::admission::AnonymousDrone;
use crate::air::Air;
use crate::drone_node::DroneNode;
use crate::event_queue::WorldEventQueue;
use crate::kgc_node::KgcNode;
use crate::mavlink::stations::Stations;
use crate::node_id::NodeIndex;
use crate::relay_node::RelayNode;
use crate::step::Sabotage;
use crate::two_hops::TwoHopsState;
use crate::{Action, Fleet, Hop, NodeId, SimNetwork};
use quiver_testbed::SimNode;

/// Number of messages kept for the adversary to replay.
const RECORDED: usize = 4096;

/// A leader with its envelopes, whose drones may be behind relays.
type LeaderNode<S> = WithRelays<RoleNode<AdmittingLeader<S>, Envelopes>>;
/// Commands of a leader's node.
pub type LeaderNodeCommand = Either<AdmittingLeaderCommand, EnvelopeCommand>;
/// Commands of an edge with its envelopes.
pub type DroneNodeCommand = Either<EdgeCommand, EnvelopeCommand>;

/// All nodes, the network between them, and the clock. See the [crate](crate) for its guarantees.
pub struct World<S: Suite> {
    setup: Setup,
    fleet: Arc<Fleet<S>>,
    nodes: NodeIndex,
    /// Nanoseconds since the world began.
    now: u64,
    queue: WorldEventQueue,
    scheduled: Vec<Option<ScheduledAction>>,
    network: SimNetwork,
    links: Links,
    kgcs: Vec<SimNode<KgcNode<S>>>,
    leaders: Vec<SimNode<LeaderNode<S>>>,
    relays: Vec<SimNode<RelayNode>>,
    edges: Vec<Option<Box<SimNode<DroneNode<S>>>>>,
    headers: Headers,
    /// Sender, whether to the group, and the message.
    recorded: VecDeque<(NodeId, bool, Arc<[u8]>)>,
    /// Hops that no observer was told of yet.
    hops: Vec<Hop>,
    adversary: Adversary,
    /// Relays that are hostile.
    hostile: BTreeSet<u16>,
    /// Messages that were published to the group, the newest last, and the nodes that have each.
    gossip: VecDeque<(Arc<[u8]>, BTreeSet<NodeId>)>,
    /// KGCs that lie, and those whose operators have approved the second phase.
    lying: BTreeSet<KgcId>,
    approved: BTreeSet<KgcId>,
    /// Edges that have put their names away, where leaders demand a policy.
    anonymous: BTreeMap<u32, AnonymousDrone>,
    /// Time for which nodes that are to crash stay down.
    returns: BTreeMap<NodeId, Duration>,
    air: Option<Air>,
    /// Places of the members, if some do not hear the leader.
    field: Option<Box<TwoHopsState>>,
    /// Stations of MAVLink telemetry in the group's datagrams.
    stations: Option<Box<Stations<S>>>,
    /// Share of this process, if others play the world with it.
    split: Option<Box<Split>>,
    trace: Option<Sha256>,
    steps: u64,
    leader_cpu: Duration,
}

/// An action that the world has scheduled itself.
#[derive(Clone, Debug)]
enum ScheduledAction {
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
