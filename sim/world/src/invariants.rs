//! Checks the invariants after every step.
//!
//! [`Invariants`] is a [`StepObserver`] with a list of checks, each of them an [`InvariantCheck`] with a state of
//! its own. They know what no node knows (every key, every request, every durable record) and compare only what
//! a step may have changed, so a step costs the same in a group of any size.

mod compromise;
mod contradiction;
pub(crate) mod convergence;
mod durability;
mod forgeries;
mod group_messages;
pub(crate) mod history;
mod keys;
mod masks;
pub(crate) mod publications;
mod quantum;
mod rosters;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::Suite;
use quiver_testbed::nanos;

use self::compromise::CompromisedNodes;
use self::contradiction::Contradiction;
pub use self::convergence::bound;
use self::convergence::{Convergence, LeadingEpoch};
use self::durability::Durability;
use self::forgeries::ForgedMessages;
use self::group_messages::GroupMessages;
use self::history::{GroupHistory, HeldKey};
use self::keys::KeyAgreement;
use self::masks::Masks;
use self::publications::{LeaderPublication, PublicationReader};
pub(crate) use self::quantum::QuantumAdversary;
use self::rosters::Rosters;
use crate::admission::AnonymousAdmission;
use crate::conditions::Orders;
use crate::mavlink::SealedPayloads;
use crate::quorum::QuorumEvidence;
use crate::ranks::wire::RankWriter;
use crate::{Action, DatagramEvent, Effect, NodeId, Step, StepObserver, World};

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
    /// Epochs never go back, those of an anonymous drone within one membership.
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
    /// No node that may not be is a member or holds a key.
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

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:.3} s", self.invariant, self.at.as_secs_f64())?;
        if let Some(node) = self.node {
            write!(f, ", {node}")?;
        }
        write!(f, ": {}", self.detail)
    }
}

/// The violations that all [ranks](crate::ranks) found, in order of time, each of them once.
pub(crate) fn all_violations<S: Suite>(world: &World<S>, own: Vec<Violation>) -> Vec<Violation> {
    if !world.is_split() {
        return own;
    }
    let index = world.index();
    let place = |invariant| Invariant::ALL.iter().position(|known| *known == invariant).unwrap_or_default();
    let write = |writer: &mut RankWriter, violation: &Violation| {
        writer.u8(place(violation.invariant) as u8).u64(nanos(violation.at));
        writer.u64(violation.node.map_or(u64::MAX, |node| index.index(node) as u64));
        writer.bytes(violation.detail.as_bytes());
    };
    let mut all = world.collect(own, write, |reader| {
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

/// Violations found so far, and number of comparisons.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    violations: Vec<Violation>,
    pub(crate) checks: u64,
}

impl Findings {
    /// Compares once: notes a violation by the node of a step unless the invariant holds.
    pub(crate) fn require(
        &mut self,
        invariant: Invariant,
        step: &Step,
        holds: bool,
        detail: impl FnOnce() -> String,
    ) {
        self.demand(invariant, (step.at, step.node), holds, detail);
    }

    /// Compares once: notes a violation at a time by a node unless the invariant holds.
    pub(crate) fn demand(
        &mut self,
        invariant: Invariant,
        (at, node): (Duration, NodeId),
        holds: bool,
        detail: impl FnOnce() -> String,
    ) {
        self.checks += 1;
        if !holds {
            self.violate(invariant, at, Some(node), detail());
        }
    }

    /// Notes a violation.
    pub(crate) fn violate(
        &mut self,
        invariant: Invariant,
        at: Duration,
        node: Option<NodeId>,
        detail: String,
    ) {
        self.violations.push(Violation { invariant, at, node, detail });
    }
}

/// Findings of all checks, and the history of the group that they share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    pub(crate) findings: Findings,
    pub(crate) history: GroupHistory,
}

/// Checks one property of the world, or a few that need the same state.
pub(crate) trait InvariantCheck<S: Suite> {
    /// A node took an input.
    fn on_step(&mut self, world: &World<S>, step: &Step, evidence: &mut Evidence) {
        let _ = (world, step, evidence);
    }

    /// The edge of a step took up a key. All checks have seen the step.
    fn on_key(&mut self, world: &World<S>, step: &Step, held: &HeldKey, evidence: &mut Evidence) {
        let _ = (world, step, held, evidence);
    }

    /// A leader sent a header, perhaps with the part for a member. All checks have seen the step.
    fn on_publication(
        &mut self,
        world: &World<S>,
        step: &Step,
        publication: &Arc<LeaderPublication<S>>,
        evidence: &mut Evidence,
    ) {
        let _ = (world, step, publication, evidence);
    }

    /// An action took place.
    fn on_action(&mut self, world: &World<S>, at: Duration, action: &Action, evidence: &mut Evidence) {
        let _ = (world, at, action, evidence);
    }

    /// A station sealed or opened datagrams of the group.
    fn on_datagram(&mut self, world: &World<S>, event: &DatagramEvent, evidence: &mut Evidence) {
        let _ = (world, event, evidence);
    }

    /// Nodes that have not reached, once faults are over, what this check demands of them.
    fn stragglers(
        &self,
        world: &World<S>,
        evidence: &Evidence,
        newest: &LeadingEpoch,
    ) -> Vec<(NodeId, String)> {
        let _ = (world, evidence, newest);
        Vec::new()
    }

    /// Number of attacks of an adversary, which are counted only where they are made.
    fn attempts(&self) -> u64 {
        0
    }
}

/// Looks at every step and notes what does not hold.
pub struct Invariants<S: Suite> {
    evidence: Evidence,
    /// Stop the world at the first violation.
    impatient: bool,
    publications: PublicationReader<S>,
    masks: Masks,
    compromised: CompromisedNodes<S>,
    quantum: QuantumAdversary<S>,
    admission: AnonymousAdmission,
    keys: KeyAgreement,
    rosters: Rosters,
    contradiction: Contradiction,
    forgeries: ForgedMessages<S>,
    durability: Durability,
    quorum: QuorumEvidence,
    group_messages: GroupMessages,
    convergence: Convergence,
    orders: Orders,
    datagrams: SealedPayloads,
}

impl<S: Suite> Invariants<S> {
    /// Looks at worlds of so many edges and leaders. `impatient` stops the world at the first violation.
    pub fn new(world: &World<S>, impatient: bool) -> Self {
        let edges = world.edge_count() as usize;
        let (leaders, kgcs) = (usize::from(world.leader_count()), usize::from(world.kgc_count()));
        Self {
            evidence: Evidence::default(),
            impatient,
            publications: PublicationReader::default(),
            masks: Masks::default(),
            compromised: CompromisedNodes::default(),
            quantum: QuantumAdversary::default(),
            admission: AnonymousAdmission::default(),
            keys: KeyAgreement::new(edges),
            rosters: Rosters,
            contradiction: Contradiction::default(),
            forgeries: ForgedMessages::default(),
            durability: Durability::new(edges, leaders, kgcs),
            quorum: QuorumEvidence::default(),
            group_messages: GroupMessages::default(),
            convergence: Convergence,
            orders: Orders::default(),
            datagrams: SealedPayloads::default(),
        }
    }

    /// All checks, in the order in which they see a step: those of later ones build on the history that earlier
    /// ones write.
    fn each(&mut self, mut tell: impl FnMut(&mut dyn InvariantCheck<S>, &mut Evidence)) {
        let checks: [&mut dyn InvariantCheck<S>; 14] = [
            &mut self.masks,
            &mut self.compromised,
            &mut self.quantum,
            &mut self.admission,
            &mut self.keys,
            &mut self.rosters,
            &mut self.contradiction,
            &mut self.forgeries,
            &mut self.durability,
            &mut self.quorum,
            &mut self.group_messages,
            &mut self.orders,
            &mut self.convergence,
            &mut self.datagrams,
        ];
        for check in checks {
            tell(check, &mut self.evidence);
        }
    }

    /// The same, whose adversary has recorded what was sent before.
    pub(crate) fn with_recording(mut self, recording: QuantumAdversary<S>) -> Self {
        self.publications = PublicationReader::behind(recording.headers().clone());
        self.quantum = recording;
        self
    }

    /// The violations.
    pub fn violations(&self) -> &[Violation] {
        &self.evidence.findings.violations
    }

    /// Number of comparisons.
    pub fn checks(&self) -> u64 {
        self.evidence.findings.checks + self.compromised.attempts() + self.quantum.attempts()
    }

    /// Number of epochs of all leaders.
    pub fn epochs(&self) -> usize {
        self.evidence.history.epochs.len()
    }

    /// Number of anonymous memberships.
    pub fn admitted(&self) -> usize {
        self.evidence.history.pseudonyms.count()
    }

    /// Number of drones that enrolled, each counted once.
    pub fn enrolled(&self) -> usize {
        self.quorum.enrolled()
    }

    /// Number of orders opened.
    pub fn opened(&self) -> usize {
        self.orders.opened()
    }

    /// Number of publications that the adversary opened (that its captive was meant to open, unless it is a
    /// violation).
    pub fn opened_by_compromised(&self) -> u64 {
        self.compromised.opened()
    }

    /// Number of nodes that have had proof against a leader.
    pub fn convinced(&self) -> usize {
        self.contradiction.convinced()
    }

    /// Number of forged messages that arrived.
    pub fn forgeries(&self) -> u64 {
        self.forgeries.seen()
    }

    /// Receivers of a message.
    pub fn heard(&self, number: u32) -> impl Iterator<Item = NodeId> + '_ {
        self.group_messages.heard(number)
    }

    /// Nodes that have not converged: every live edge that wants to be and may be a member must hold the
    /// newest epoch of the leader in force, and no other edge any; a drone with a released order must have
    /// opened it.
    pub fn stragglers(&self, world: &World<S>) -> Vec<(NodeId, String)> {
        let Some(newest) = LeadingEpoch::of(world, &self.evidence.history) else {
            return vec![(NodeId::Leader(0), "no node leads".into())];
        };
        let demanding: [&dyn InvariantCheck<S>; 3] = [&self.convergence, &self.orders, &self.contradiction];
        demanding.iter().flat_map(|check| check.stragglers(world, &self.evidence, &newest)).collect()
    }

    /// Reports every node that has not converged long after the faults.
    pub fn demand_convergence(&mut self, world: &World<S>) {
        let findings = &mut self.evidence.findings;
        findings.checks += (0..world.edge_count()).filter(|edge| world.has(*edge)).count() as u64;
        for (node, detail) in self.stragglers(world) {
            self.evidence.findings.violate(Invariant::Convergence, world.time(), Some(node), detail);
        }
    }
}

impl<S: Suite> StepObserver<S> for Invariants<S> {
    fn on_step(&mut self, world: &World<S>, step: &Step) {
        let before = self.evidence.findings.checks;
        self.each(|check, evidence| check.on_step(world, step, evidence));
        if let Some(held) = self.evidence.history.change.taken_up() {
            self.each(|check, evidence| check.on_key(world, step, &held, evidence));
        }
        let mut publications = std::mem::take(&mut self.publications);
        publications.read(world, step, &mut |publication| {
            self.each(|check, evidence| check.on_publication(world, step, publication, evidence));
        });
        self.publications = publications;
        if !world.counts(step.node) {
            // All ranks check it, and one counts it.
            self.evidence.findings.checks = before;
        }
    }

    fn on_action(&mut self, world: &World<S>, at: Duration, action: &Action) {
        let before = self.evidence.findings.checks;
        self.each(|check, evidence| check.on_action(world, at, action, evidence));
        if let Action::Seize(kgc) = action
            && !world.counts(NodeId::Kgc(*kgc))
        {
            self.evidence.findings.checks = before;
        }
    }

    fn on_datagram(&mut self, world: &World<S>, event: &DatagramEvent) {
        self.each(|check, evidence| check.on_datagram(world, event, evidence));
    }

    fn stops(&self) -> bool {
        self.impatient && !self.evidence.findings.violations.is_empty()
    }
}

/// Returns true if the node died in this step.
pub(crate) fn died(step: &Step) -> bool {
    step.effects.contains(&Effect::Died)
}
