//! Checks the invariants after every step.
//!
//! [`Invariants`] is a [`StepObserver`]. It knows what no node knows (every key, every request, every durable
//! record) and compares only what a step may have changed, so a step costs the same in a group of any size.

mod admission;
mod compromise;
mod contradiction;
mod convergence;
mod datagrams;
mod durability;
mod forgeries;
mod group_messages;
mod ibe_orders;
mod keys;
mod masks;
mod quantum;
mod quorum;
mod rosters;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use quiver_ainq::{Epoch, Name, Suite};
use quiver_testbed::nanos;

use self::admission::AnonymousMembers;
use self::compromise::CompromisedNodes;
use self::contradiction::Contradiction;
pub use self::convergence::bound;
use self::datagrams::SealedPayloads;
use self::durability::Durability;
use self::forgeries::Forgeries;
use self::group_messages::GroupMessages;
use self::ibe_orders::Orders;
use self::masks::Masks;
pub(crate) use self::quantum::QuantumAdversary;
use self::quorum::QuorumEvidence;
use crate::ranks::wire::RankWriter;
use crate::{Action, Cause, DatagramEvent, Effect, NodeEvent, NodeId, Step, StepObserver, World};

/// A property that must hold at all times.
///
/// The live world checks those of them that are visible from outside; serialised under these names in snake
/// case.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, derive_more::Display,
)]
#[serde(rename_all = "snake_case")]
pub enum Invariant {
    /// All members of an epoch hold the same key, and no epoch is made twice.
    #[display("agreement")]
    Agreement,
    /// A drone that left or was evicted holds no later key, and cannot derive one from all it held and
    /// receives.
    #[display("forward secrecy after leave")]
    ForwardSecrecyAfterLeave,
    /// A drone that joined holds no earlier key, and cannot derive one from recorded messages.
    #[display("backward secrecy before join")]
    BackwardSecrecyBeforeJoin,
    /// Epochs never go back.
    #[display("no epoch regression")]
    NoEpochRegression,
    /// No mask hides two keys.
    #[display("no mask reuse")]
    NoMaskReuse,
    /// Once faults stop, every live member reaches the newest epoch within the stated [`bound`].
    #[display("convergence")]
    Convergence,
    /// A crash at any point loses no acknowledged enrolment, join, leave or epoch.
    #[display("persistence")]
    Persistence,
    /// NoObserver who may not be is a member or holds a key.
    #[display("no unauthorised member")]
    NoUnauthorisedMember,
    /// No node receives a message that was not sent, or any message twice.
    #[display("delivery")]
    Delivery,
    /// Drones with fitting attributes open an envelope, and no others.
    #[display("sealed to few")]
    SealedToFew,
    /// A token gives one key to one drone, however many race for it and whichever KGCs are asked.
    #[display("one identity per token")]
    OneIdentityPerToken,
    /// The adversary mints no key and opens no order with the state of fewer KGCs than the threshold.
    #[display("few KGCs know nothing")]
    FewKgcsKnowNothing,
    /// A ciphertext to a condition opens nowhere before its key was released.
    #[display("opens when released")]
    OpensWhenReleased,
    /// Anonymous members are exactly those that the policy admits, and they share a secret with the leader.
    #[display("admission")]
    Admission,
    /// A leader sees nothing that links two runs of one anonymous drone.
    #[display("unlinkability")]
    Unlinkability,
    /// No node answers a group message from a sender without an identity; leaders answer requests of such
    /// senders rarely, and with nothing that only members may learn.
    #[display("no reflection")]
    NoReflection,
    /// No message of a sender without an identity ends a membership.
    #[display("no membership ended by a forgery")]
    NoForgedEnd,
    /// Datagrams that a member opens were sealed by the member in that slot, under an epoch in which both
    /// are; none is opened twice, and none of a member that the receiver knows to be removed.
    #[display("datagrams")]
    Datagrams,
    /// A node that sees a leader sign two headers for one epoch, under whichever of its keys, follows none of
    /// its keys from then on, and the KGC revokes it.
    #[display("refused for good")]
    RefusedForGood,
    /// No honest node is blamed.
    #[display("no honest node blamed")]
    NoFalseBlame,
    /// Recorded epochs stay closed to whoever computes discrete logarithms later, where there is a second
    /// factor; of a captured drone, those before the last term that it followed.
    #[display("closed to quantum computers")]
    ClosedToQuantum,
}

impl Invariant {
    /// All.
    const ALL: [Self; 21] = [
        Self::Agreement,
        Self::ForwardSecrecyAfterLeave,
        Self::BackwardSecrecyBeforeJoin,
        Self::NoEpochRegression,
        Self::NoMaskReuse,
        Self::Convergence,
        Self::Persistence,
        Self::NoUnauthorisedMember,
        Self::Delivery,
        Self::SealedToFew,
        Self::OneIdentityPerToken,
        Self::FewKgcsKnowNothing,
        Self::OpensWhenReleased,
        Self::Admission,
        Self::Unlinkability,
        Self::NoReflection,
        Self::NoForgedEnd,
        Self::Datagrams,
        Self::RefusedForGood,
        Self::NoFalseBlame,
        Self::ClosedToQuantum,
    ];
}

/// An invariant that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant.
    pub invariant: Invariant,
    /// Time since the world began.
    pub at: Duration,
    /// Node of the violation, if it is about one.
    pub node: Option<NodeId>,
    /// Description of the violation.
    pub detail: String,
}

impl<S: Suite> World<S> {
    /// The violations that all [ranks](crate::ranks) found, in order of time, each of them once.
    pub(crate) fn all_violations(&self, own: Vec<Violation>) -> Vec<Violation> {
        if !self.is_split() {
            return own;
        }
        let index = self.index();
        let place =
            |invariant| Invariant::ALL.iter().position(|known| *known == invariant).unwrap_or_default();
        let write = |writer: &mut RankWriter, violation: &Violation| {
            writer.u8(place(violation.invariant) as u8).u64(nanos(violation.at));
            writer.u64(violation.node.map_or(u64::MAX, |node| index.index(node) as u64));
            writer.bytes(violation.detail.as_bytes());
        };
        let mut all = self.collect(own, write, |reader| {
            let invariant = *Invariant::ALL.get(usize::from(reader.u8()?))?;
            let at = Duration::from_nanos(reader.u64()?);
            let node = reader.u64()?;
            let node = (node != u64::MAX).then(|| index.node(node as usize));
            let detail = String::from_utf8(reader.bytes()?.to_vec()).ok()?;
            Some(Violation { invariant, at, node, detail })
        });
        all.sort_by_key(|violation| (violation.at, violation.node));
        all.dedup();
        all
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:.3} s", self.invariant, self.at.as_secs_f64())?;
        if let Some(node) = self.node {
            write!(f, ", {node}")?;
        }
        write!(f, ": {}", self.detail)
    }
}

/// An epoch that a leader made.
#[derive(Clone, Debug)]
struct Made {
    /// D, unless the leader died at once.
    digest: Option<[u8; 32]>,
    /// The exported key of the epoch.
    key: Option<[u8; 32]>,
    /// Members of the epoch: numbers of edges. `None` if the leader died at once.
    members: Option<BTreeSet<u32>>,
    /// Anonymous members of the epoch: pseudonyms. `None` if the leader died at once.
    anonymous: Option<BTreeSet<[u8; 16]>>,
    leader: u16,
}

/// The epoch an edge holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    epoch: Epoch,
    digest: [u8; 32],
    key: [u8; 32],
}

/// Looks at every step and notes what does not hold.
pub struct Invariants<S: Suite> {
    violations: Vec<Violation>,
    /// Stop the world at the first violation.
    impatient: bool,
    checks: u64,
    channel: Name,
    epochs: BTreeMap<Epoch, Made>,
    held: Vec<Option<Held>>,
    /// The newest epoch that each edge ever reported, or could use when it was done with a step.
    newest: Vec<Option<Epoch>>,
    /// Edges that leaders evicted for good, and the first epoch without them, by leader.
    evicted: BTreeMap<(u16, u32), Epoch>,
    /// Edges that the KGC revoked, with the number of the list.
    revoked: BTreeMap<u32, u64>,
    /// The edge that the operator revokes; the KGC learns it only if it is on.
    to_be_revoked: Option<u32>,
    asked_to_revoke: BTreeSet<u32>,
    /// Edges that a leader may have evicted although it died before it could report it.
    asked_to_evict: BTreeSet<u32>,
    masks: Masks<S>,
    durability: Durability,
    compromised: CompromisedNodes<S>,
    quantum: QuantumAdversary<S>,
    anonymous: AnonymousMembers,
    group_messages: GroupMessages,
    quorum: QuorumEvidence,
    orders: Orders,
    forgeries: Forgeries,
    contradiction: Contradiction,
    datagrams: SealedPayloads,
}

impl<S: Suite> Invariants<S> {
    /// Looks at worlds of so many edges and leaders. `impatient` stops the world at the first violation.
    pub fn new(world: &World<S>, impatient: bool) -> Self {
        let edges = world.edge_count() as usize;
        Self {
            violations: Vec::new(),
            impatient,
            checks: 0,
            channel: Self::channel(),
            epochs: BTreeMap::new(),
            held: vec![None; edges],
            newest: vec![None; edges],
            evicted: BTreeMap::new(),
            revoked: BTreeMap::new(),
            to_be_revoked: None,
            asked_to_revoke: BTreeSet::new(),
            asked_to_evict: BTreeSet::new(),
            masks: Masks::new(),
            durability: Durability::new(
                edges,
                usize::from(world.leader_count()),
                usize::from(world.kgc_count()),
            ),
            compromised: CompromisedNodes::default(),
            quantum: QuantumAdversary::default(),
            anonymous: AnonymousMembers::default(),
            group_messages: GroupMessages::default(),
            quorum: QuorumEvidence::default(),
            orders: Orders::default(),
            forgeries: Forgeries::default(),
            contradiction: Contradiction::default(),
            datagrams: SealedPayloads::default(),
        }
    }

    /// The same, whose adversary has recorded what was sent before.
    pub(crate) fn with_recording(mut self, recording: QuantumAdversary<S>) -> Self {
        self.quantum = recording;
        self
    }

    /// Name under which keys are exported for comparison.
    fn channel() -> Name {
        Name::new("invariants").expect("a plain name")
    }

    /// The violations.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Number of comparisons.
    pub fn checks(&self) -> u64 {
        self.checks + self.attacks() + self.quantum.attempts()
    }

    /// Number of epochs of all leaders.
    pub fn epochs(&self) -> usize {
        self.epochs.len()
    }

    fn require(&mut self, invariant: Invariant, step: &Step, holds: bool, detail: impl FnOnce() -> String) {
        self.checks += 1;
        if !holds {
            self.violate(invariant, step.at, Some(step.node), detail());
        }
    }

    fn violate(&mut self, invariant: Invariant, at: Duration, node: Option<NodeId>, detail: String) {
        self.violations.push(Violation { invariant, at, node, detail });
    }
}

impl<S: Suite> StepObserver<S> for Invariants<S> {
    fn on_step(&mut self, world: &World<S>, step: &Step) {
        let before = self.checks;
        self.observe_recording(world, step);
        match step.node {
            NodeId::Kgc(_) => self.observe_kgc(world, step),
            NodeId::Leader(ordinal) => self.observe_leader(world, step, ordinal),
            NodeId::Relay(_) => {}
            NodeId::Edge(number) => self.observe_edge(world, step, number),
        }
        self.observe_proofs(world, step);
        self.observe_answers(world, step);
        self.observe_records(world, step);
        self.observe_enrolment(world, step);
        self.observe_group_messages(world, step);
        self.observe_orders(world, step);
        for effect in &step.effects {
            if let Effect::Sent { payload, .. } = effect {
                self.observe_message(world, step, payload);
            }
        }
        if !world.counts(step.node) {
            // All ranks check it, and one counts it.
            self.checks = before;
        }
    }

    fn on_action(&mut self, world: &World<S>, at: Duration, action: &Action) {
        let before = self.checks;
        match action {
            Action::Revoke(edge) => self.to_be_revoked = Some(*edge),
            Action::Evict(edge) => {
                self.asked_to_evict.insert(*edge);
            }
            Action::Capture(edge) => {
                self.capture(world, at, *edge);
                self.capture_second_factors(world, at, *edge);
            }
            Action::Talk { number, .. } => self.group_messages.said(*number),
            Action::Seize(kgc) => self.seize(world, at, *kgc),
            Action::Order(number) => self.order_sealed(world, *number),
            Action::Approve(kgc) => self.approved(*kgc),
            Action::Lie { kgc, lies: true } => self.lied(*kgc),
            _ => {}
        }
        if let Action::Seize(kgc) = action
            && !world.counts(NodeId::Kgc(*kgc))
        {
            self.checks = before;
        }
    }

    fn on_datagram(&mut self, world: &World<S>, event: &DatagramEvent) {
        self.observe_datagram(world, event);
    }

    fn stops(&self) -> bool {
        self.impatient && !self.violations.is_empty()
    }
}

/// Returns true if the node died in this step.
fn died(step: &Step) -> bool {
    step.effects.contains(&Effect::Died)
}

impl<S: Suite> Invariants<S> {
    fn observe_kgc(&mut self, world: &World<S>, step: &Step) {
        // One that its disk held up before takes no command.
        let held_up = world.stalled(step.node) && !step.effects.contains(&Effect::Stalled);
        // A KGC that died before its record was durable has not taken the command.
        let kept = step.effects.iter().any(|effect| matches!(effect, Effect::Persisted { .. }));
        if step.cause == Cause::Command("revoke") && (kept || !died(step)) && !held_up {
            self.asked_to_revoke.extend(self.to_be_revoked.take());
        }
        for event in step.events() {
            if let NodeEvent::Kgc(quiver_enrolment::KgcEvent::RevocationListSigned { number }) = event {
                for edge in std::mem::take(&mut self.asked_to_revoke) {
                    self.revoked.entry(edge).or_insert(*number);
                }
            }
        }
    }
}
