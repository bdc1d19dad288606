//! The world: nodes, links, queue, clock.

mod acting;
mod adversary;
mod headers;
mod links;
mod looking;
mod masses;
mod running;
mod setup;
mod turning;
mod unnamed;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::{Epoch, KgcId, Suite};
use quiver_role::{Leader, edge::EdgeTiming, leader::LeaderTiming};
use sha2::Sha256;

pub use self::acting::spoken;
use self::adversary::Adversary;
pub(crate) use self::adversary::Doubled;
use self::headers::Headers;
use self::links::Links;
pub use self::setup::{Disks, Setup, WorldError};
use crate::admission::Incognito;
use crate::air::Air;
use crate::centre::Centre;
use crate::drive::Sabotage;
use crate::drone::Drone;
use crate::node::Row;
use crate::queue::Queue;
use crate::station::Station;
use crate::{Action, Fleet, Network, Node};

/// How many messages are kept for the adversary to repeat.
const RECORDED: usize = 4096;

/// All nodes, what is between them, and the clock. See the [crate](crate) for what it promises.
pub struct World<S: Suite> {
    setup: Setup,
    fleet: Arc<Fleet<S>>,
    row: Row,
    /// Nanoseconds since the world began.
    now: u64,
    queue: Queue,
    errands: Vec<Option<Errand>>,
    network: Network,
    links: Links,
    kgcs: Vec<Station<Centre<S>>>,
    leaders: Vec<Station<Leader<S>>>,
    edges: Vec<Option<Box<Station<Drone<S>>>>>,
    headers: Headers,
    /// Who sent it, whether to the group, and the message.
    recorded: VecDeque<(Node, bool, Arc<[u8]>)>,
    adversary: Adversary,
    /// KGCs that lie, and those whose operators have approved the second phase.
    lying: BTreeSet<KgcId>,
    approved: BTreeSet<KgcId>,
    /// Edges that have put their names away, where leaders demand a policy.
    incognito: BTreeMap<u32, Incognito>,
    /// For how long nodes that are doomed stay down.
    returns: BTreeMap<Node, Duration>,
    air: Option<Air>,
    trace: Option<Sha256>,
    turns: u64,
    leader_cpu: Duration,
}

/// What the world has planned for itself.
#[derive(Clone, Debug)]
enum Errand {
    Act(Box<Action>),
    /// A node tries to reach one that it dials.
    Connect(Node, Node),
    /// Two nodes notice that they do not hear each other.
    Sever(Node, Node),
    /// A node that died comes back.
    Return(Node),
    /// A drone without a name whose machine was over comes back.
    ComeBack(u32),
    /// A leader that was started is told the slot keys.
    SlotKeys(u16),
    /// A period of credentials begins.
    Period,
    /// Everybody is handed both headers that the leader with two keys signed for this epoch.
    Cross(Epoch),
}
