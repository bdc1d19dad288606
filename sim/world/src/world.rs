//! The simulated world: nodes, links, event queue, clock.

mod actions;
mod adversary;
mod anonymous;
mod headers;
mod links;
mod parallel;
mod power;
mod query;
mod scheduler;
mod setup;
mod step;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::{Epoch, KgcId, Suite};
use quiver_role::admission::{AdmittingLeader, AdmittingLeaderCommand};
use quiver_role::edge::EdgeTiming;
use quiver_role::leader::LeaderTiming;
use quiver_role::{EdgeCommand, Either, EnvelopeCommand, Envelopes, Node as RoleNode};
use sha2::Sha256;

pub use self::actions::message_number;
use self::adversary::Adversary;
pub(crate) use self::adversary::Doubled;
use self::headers::Headers;
use self::links::Links;
pub use self::setup::{Disks, Setup, WorldError};
use crate::admission::AnonymousDrone;
use crate::air::Air;
use crate::drone_node::Drone;
use crate::event_queue::EventQueue;
use crate::kgc_node::KgcNode;
use crate::node_id::NodeIndex;
use crate::step::Sabotage;
use crate::{Action, Fleet, Network, NodeId};
use quiver_testbed::SimNode;

/// How many messages are kept for the adversary to repeat.
const RECORDED: usize = 4096;

/// A leader with its envelopes.
type LeaderNode<S> = RoleNode<AdmittingLeader<S>, Envelopes>;
/// What such takes.
pub type LeaderNodeCommand = Either<AdmittingLeaderCommand, EnvelopeCommand>;
/// What an edge with its envelopes takes.
pub type DroneCommand = Either<EdgeCommand, EnvelopeCommand>;

/// All nodes, what is between them, and the clock. See the [crate](crate) for what it promises.
pub struct World<S: Suite> {
    setup: Setup,
    fleet: Arc<Fleet<S>>,
    nodes: NodeIndex,
    /// Nanoseconds since the world began.
    now: u64,
    queue: EventQueue,
    scheduled: Vec<Option<ScheduledAction>>,
    network: Network,
    links: Links,
    kgcs: Vec<SimNode<KgcNode<S>>>,
    leaders: Vec<SimNode<LeaderNode<S>>>,
    edges: Vec<Option<Box<SimNode<Drone<S>>>>>,
    headers: Headers,
    /// Who sent it, whether to the group, and the message.
    recorded: VecDeque<(NodeId, bool, Arc<[u8]>)>,
    adversary: Adversary,
    /// KGCs that lie, and those whose operators have approved the second phase.
    lying: BTreeSet<KgcId>,
    approved: BTreeSet<KgcId>,
    /// Edges that have put their names away, where leaders demand a policy.
    anonymous: BTreeMap<u32, AnonymousDrone>,
    /// For how long nodes that are doomed stay down.
    returns: BTreeMap<NodeId, Duration>,
    air: Option<Air>,
    trace: Option<Sha256>,
    steps: u64,
    leader_cpu: Duration,
}

/// What the world has planned for itself.
#[derive(Clone, Debug)]
enum ScheduledAction {
    Act(Box<Action>),
    /// A node tries to reach one that it dials.
    Connect(NodeId, NodeId),
    /// Two nodes notice that they do not hear each other.
    Sever(NodeId, NodeId),
    /// A node that died comes back.
    Return(NodeId),
    /// A drone without a name whose machine was over comes back.
    ComeBack(u32),
    /// A leader that was started is told the slot keys.
    SlotKeys(u16),
    /// A period of credentials begins.
    Period,
    /// Everybody is handed both headers that the leader with two keys signed for this epoch.
    Cross(Epoch),
}
