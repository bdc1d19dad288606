//! Random lives of the virtual world, those of `sim check`, recorded as the runs of the testbed are.
//!
//! A life begins in a base, of which the forming is recorded, too. What travels is taken at every link: a
//! message that an honest node sent is a step, and one that comes to a leader or a KGC over a link whose other
//! end did not send it (repeated, forged, or altered on its way) is another kind of step. A relay is a part of
//! the way from a leader to a drone, and what a hostile one hands to a drone is a kind of step of its own.

mod relays;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quiver_ainq::{Deployment, StrategyKind};
use quiver_enrolment::KgcEvent;
use quiver_kem::KemSetting;
use quiver_message::Message;
use quiver_world::check::{ActionPlan, Base, CheckSetup, StartState};
use quiver_world::{Action, Cause, EPOCH_START, Effect, Hop, NodeEvent, NodeId, StepObserver, World};

use crate::recording::{
    Certification, Epochs, Exchanges, Group, Node, Recording, Step, told_by_edge, told_by_leader,
};
use crate::rules::AdmissionMessage;
use crate::suite::{Overheard as S, take_products, take_secrets};
use crate::wire;

/// Drones that may be in the group.
const EDGES: u32 = 6;

/// Name of the leader with two keys.
const TWO_KEYS: Node = "two-keys";

/// Kinds of lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    strategy: StrategyKind,
    leaders: u16,
    kgcs: u16,
    relays: u16,
    /// Leaders demand a policy, and drones join without their names.
    admission: bool,
    kem: KemSetting,
}

impl Kind {
    pub(crate) const FLAT: Self = Self {
        strategy: StrategyKind::Flat,
        leaders: 1,
        kgcs: 1,
        relays: 0,
        admission: false,
        kem: KemSetting::None,
    };
    const TREE: Self = Self { strategy: StrategyKind::Tree, ..Self::FLAT };
    pub(crate) const ALL: [Self; 14] = [
        Self::FLAT,
        Self::TREE,
        Self { leaders: 3, ..Self::FLAT },
        Self { leaders: 3, ..Self::TREE },
        Self { kgcs: 3, ..Self::FLAT },
        Self { kgcs: 3, leaders: 3, ..Self::TREE },
        Self { relays: 3, ..Self::FLAT },
        Self { relays: 3, ..Self::TREE },
        Self { kem: KemSetting::MlKem768, leaders: 3, ..Self::FLAT },
        Self { kem: KemSetting::MlKem768, ..Self::TREE },
        Self { admission: true, ..Self::FLAT },
        Self { admission: true, ..Self::TREE },
        Self { admission: true, leaders: 3, ..Self::FLAT },
        Self { admission: true, leaders: 3, ..Self::TREE },
    ];

    pub(crate) const fn has_relays(&self) -> bool {
        self.relays > 0
    }

    pub(crate) const fn has_a_quorum_and_deputies(&self) -> bool {
        self.kgcs > 1 && self.leaders > 1
    }

    pub(crate) const fn has_a_quorum(&self) -> bool {
        self.kgcs > 1
    }

    fn setup(self) -> CheckSetup {
        let Self { strategy, leaders, kgcs, relays, admission, kem } = self;
        let kem = Some(kem);
        CheckSetup { edges: EDGES, kgcs, leaders, relays, admission, strategy, kem, ..CheckSetup::default() }
    }

    /// The group that the rules are told of.
    fn group(self) -> Group {
        let kgcs = (1..=self.kgcs).map(NodeId::Kgc);
        // Of a quorum two strangers race for one token.
        let twins = (self.kgcs > 1).then(|| (name(NodeId::Edge(EDGES + 1)), name(NodeId::Edge(EDGES))));
        // It has the ordinal behind those of the leaders. Anonymous members are in no term of another leader's.
        let two_keys = (!self.admission).then_some(TWO_KEYS);
        let leaders = (0..self.leaders).map(NodeId::Leader).map(name);
        Group {
            leaders: leaders.chain(two_keys).collect(),
            two_keys,
            kgcs: kgcs.map(name).collect(),
            threshold: usize::from(self.setup().threshold()),
            strategy: self.strategy,
            kem: !self.kem.is_none(),
            anonymous: self.admission,
            twins: twins.into_iter().collect(),
        }
    }
}

/// The name of a node, once for all runs.
fn name(node: NodeId) -> Node {
    static NAMES: Mutex<BTreeMap<NodeId, Node>> = Mutex::new(BTreeMap::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.entry(node).or_insert_with(|| Box::leak(node.to_string().into_boxed_str()))
}

/// The base of lives, and how it came about.
pub(crate) struct Lives {
    kind: Kind,
    base: Base<S>,
    enrolled: Recorder,
    formed: Recorder,
}

impl Lives {
    pub(crate) fn new(kind: Kind) -> Self {
        forget_the_suite();
        let mut formed = Recorder::new(kind);
        let base = Base::watched(kind.setup(), kind.kem, &mut formed).expect("a world");
        // Drones without a name are no members in the base.
        let enrolled = formed.enrolled.take().map_or_else(|| formed.clone(), |enrolled| *enrolled);
        Self { kind, base, enrolled, formed }
    }

    /// Records the life of a seed, behind what brought the group to where it begins.
    pub(crate) fn record(&self, seed: u64) -> Recording {
        self.record_plan(seed, &self.base.plan(seed))
    }

    /// Records the life of a seed in which one KGC lies from the beginning, and no other.
    pub(crate) fn record_with_a_liar(&self, seed: u64) -> Recording {
        let mut plan = self.base.plan(seed);
        plan.actions.retain(|(_, action)| !matches!(action, Action::Lie { .. }));
        plan.actions.insert(0, (Duration::ZERO, Action::Lie { kgc: 1, lies: true }));
        self.record_plan(seed, &plan)
    }

    /// Records the life of a seed in which a leader opens a term under both of its keys, whose headers cross soon.
    pub(crate) fn record_with_two_keys(&self, seed: u64) -> Recording {
        self.record_with_more(seed, |_| Vec::new())
    }

    /// The same, with a drone that is revoked before, so that the KGC's list has a number then.
    pub(crate) fn record_with_two_keys_and_a_list(&self, seed: u64) -> Recording {
        self.record_with_more(seed, |calm| vec![(calm / 4, Action::Revoke(0))])
    }

    fn record_with_more(&self, seed: u64, more: impl Fn(Duration) -> Vec<(Duration, Action)>) -> Recording {
        let mut plan = self.base.plan(seed);
        let crossing = Duration::from_secs(4);
        let double = Action::DoubleTerm { rounds: 1, split: 0x5555_5555, crossing };
        plan.actions.push((plan.calm / 2, double));
        plan.actions.extend(more(plan.calm));
        plan.actions.sort_by_key(|(at, _)| *at);
        self.record_plan(seed, &plan)
    }

    fn record_plan(&self, seed: u64, plan: &ActionPlan) -> Recording {
        forget_the_suite();
        let mut recorder = match plan.beginning {
            StartState::Nothing => Recorder::new(self.kind),
            StartState::Enrolled => self.enrolled.clone(),
            StartState::Formed => self.formed.clone(),
        };
        let violation = self.base.watch(plan, &mut recorder).expect("a world");
        assert_eq!(violation, None, "seed {seed}");
        recorder.recording()
    }
}

/// Results that another world computed on this thread are none of the next one's.
fn forget_the_suite() {
    take_secrets();
    take_products();
}

/// Takes the steps of a world.
#[derive(Clone)]
struct Recorder {
    group: Group,
    relays: u16,
    deployment: Option<Deployment<S>>,
    steps: Vec<Step>,
    secrets: BTreeSet<Vec<u8>>,
    products: Vec<[u8; 32]>,
    exchanges: Exchanges,
    certification: Option<Certification>,
    /// Slot keys by their periods, and the leaders whose clocks showed that a period is over.
    periods: BTreeMap<u64, [u8; 32]>,
    over: BTreeSet<(NodeId, u64)>,
    epochs: Epochs,
    /// Nodes that sent a message.
    senders: BTreeMap<Arc<[u8]>, BTreeSet<NodeId>>,
    /// Messages that relays handed to drones.
    handed: BTreeSet<(NodeId, Arc<[u8]>)>,
    /// Relays that are hostile.
    hostile: BTreeSet<u16>,
    /// KGCs that lie, and what they have sent meanwhile.
    lying: BTreeSet<u16>,
    lies: BTreeSet<Vec<u8>>,
    /// The recorder as it was before the first edge asked to join.
    enrolled: Option<Box<Self>>,
}

impl Recorder {
    fn new(kind: Kind) -> Self {
        Self {
            group: kind.group(),
            relays: kind.relays,
            deployment: None,
            steps: Vec::new(),
            secrets: BTreeSet::new(),
            products: Vec::new(),
            exchanges: Exchanges::default(),
            certification: None,
            periods: BTreeMap::new(),
            over: BTreeSet::new(),
            epochs: Epochs::default(),
            senders: BTreeMap::new(),
            handed: BTreeSet::new(),
            hostile: BTreeSet::new(),
            lying: BTreeSet::new(),
            lies: BTreeSet::new(),
            enrolled: None,
        }
    }

    fn recording(self) -> Recording {
        Recording {
            group: self.group,
            deployment: self.deployment.expect("a step was taken"),
            steps: self.steps,
            secrets: self.secrets,
            products: self.products,
            shared: self.exchanges.shared,
            ephemeral: self.exchanges.ephemeral,
            certification: self.certification,
            opened: self.epochs.opened(),
            silent: self.epochs.silent(),
            lies: self.lies,
            written: Vec::new(),
        }
    }

    fn decode(&self, bytes: &[u8]) -> Option<Arc<Message<S>>> {
        wire::decode(self.deployment.as_ref()?, bytes).ok()
    }

    /// A message came whose neighbour did not send it. Of these the unauthenticated ones are taken, hellos and
    /// cookies, and questions of members, which say where their member is; nothing else may have a consequence.
    fn received(&mut self, at: NodeId, via: NodeId, payload: &[u8]) {
        let relayed = matches!(via, NodeId::Relay(_));
        for bytes in relays::received(at, via, payload) {
            let known = self.senders.get(&bytes[..]);
            if known.is_some_and(|senders| relayed || senders.contains(&via)) {
                continue;
            }
            let of = known.and_then(|senders| senders.first()).copied().map(name);
            let unauthenticated = |message: Arc<Message<S>>| match message.extension() {
                Some(Ok(AdmissionMessage::Hello(_) | AdmissionMessage::Challenge(_))) => true,
                _ => matches!(
                    &*message,
                    Message::EnrolHello(_)
                        | Message::EnrolCookie(_)
                        | Message::JoinHello(_)
                        | Message::JoinChallenge(_)
                        | Message::CatchUpRequest(_)
                ),
            };
            if of.is_some() || self.decode(&bytes).is_some_and(unauthenticated) {
                let to = name(self.behind(at));
                self.steps.push(Step::Injected { to, over: name(via), of, bytes });
            }
        }
    }

    /// Slot keys of the period, and periods that are over by the clock of a leader.
    fn count_periods(&mut self, world: &World<S>, step: &quiver_world::Step) {
        let Some(checkpoint) = world.fleet().checkpoint() else { return };
        let period = checkpoint.period_at(EPOCH_START + step.at.as_secs());
        let certification = self.certification.get_or_insert_with(|| Certification {
            authority: checkpoint.authority().clone(),
            slots: BTreeSet::new(),
        });
        self.periods.entry(period).or_insert_with(|| {
            let slots = checkpoint.slot_keys(period).expect("keys of a period").fingerprint();
            certification.slots.insert(slots);
            slots
        });
        if matches!(step.node, NodeId::Leader(_)) {
            let shown = checkpoint.period_at(world.clock(step.node).unix);
            for (period, slots) in self.periods.range(..shown) {
                if self.over.insert((step.node, *period)) {
                    self.steps.push(Step::PeriodOver { at: name(step.node), slots: *slots });
                }
            }
        }
    }

    fn sent(&mut self, from: NodeId, to: NodeId, bytes: &[u8]) {
        if let Some(message) = self.decode(bytes) {
            self.epochs.see(&message);
        }
        if matches!(from, NodeId::Kgc(kgc) if self.lying.contains(&kgc)) {
            self.lies.insert(bytes.to_vec());
        }
        self.steps.push(Step::Sent { from: name(from), to: name(to), bytes: bytes.to_vec() });
    }
}

impl StepObserver<S> for Recorder {
    fn on_step(&mut self, world: &World<S>, step: &quiver_world::Step) {
        self.deployment.get_or_insert_with(|| world.fleet().deployment().clone());
        self.secrets.extend(take_secrets());
        let products = take_products();
        if matches!(step.node, NodeId::Kgc(_)) {
            self.products.extend(products);
        }
        self.count_periods(world, step);
        let node = name(step.node);
        match &step.cause {
            Cause::Start if !step.effects.contains(&Effect::Broken) => self.steps.push(Step::Started(node)),
            // The adversary hands these over itself.
            Cause::Message { payload, .. } if world.doubled_header(payload).is_some() => {
                self.steps.push(Step::Sent { from: TWO_KEYS, to: node, bytes: payload.to_vec() });
            }
            Cause::Message { via, by_group: false, payload }
                if !matches!((step.node, via), (NodeId::Relay(_), NodeId::Leader(_))) =>
            {
                self.received(step.node, *via, payload);
            }
            _ => {}
        }
        for event in step.events() {
            if let NodeEvent::Leader(event) = event {
                self.epochs.told_by_leader(event);
            }
        }
        let told = step.events().filter_map(|event| match event.clone() {
            NodeEvent::Leader(event) => told_by_leader(node, event),
            NodeEvent::Edge(event) => told_by_edge(node, event),
            NodeEvent::Kgc(KgcEvent::Equivocation { epoch, .. }) => Some(Step::Convicted { at: node, epoch }),
            _ => None,
        });
        self.steps.extend(told);
        for effect in &step.effects {
            let Effect::Sent { payload, .. } = effect else { continue };
            // A relay hands on, and says nothing itself.
            if let NodeId::Relay(_) = step.node {
                continue;
            }
            self.senders.entry(Arc::clone(payload)).or_default().insert(step.node);
            let carried = self.carried(step.node, payload);
            for bytes in &carried {
                self.senders.entry(Arc::clone(bytes)).or_default().insert(step.node);
            }
            if self.group.kem || self.group.anonymous {
                for bytes in [payload].into_iter().chain(&carried) {
                    if let Some(message) = self.decode(bytes) {
                        self.exchanges.see(node, &message);
                    }
                }
            }
        }
        let generator = match step.node {
            NodeId::Leader(ordinal) if self.group.kem => world.leader_generator(ordinal),
            NodeId::Edge(number) if self.group.anonymous => world.edge_generator(number),
            _ => None,
        };
        self.exchanges.before.extend(generator.map(|rng| (node, rng)));
    }

    fn on_action(&mut self, _: &World<S>, _: Duration, action: &Action) {
        match action {
            Action::Subvert { relay, hostile: true } => {
                self.hostile.insert(*relay);
            }
            Action::Lie { kgc, lies: true } => {
                self.lying.insert(*kgc);
            }
            Action::Lie { kgc, lies: false } => {
                self.lying.remove(kgc);
            }
            Action::Calm => {
                self.hostile.clear();
                self.lying.clear();
            }
            Action::Subvert { relay, hostile: false } => {
                self.hostile.remove(relay);
            }
            Action::Join(_) if self.enrolled.is_none() => self.enrolled = Some(Box::new(self.clone())),
            // The KGC has given it two keys by then.
            Action::DoubleTerm { .. } => self.steps.push(Step::Started(TWO_KEYS)),
            // A KGC's list is the leaders' order to evict whom it names: of members without a name, nobody.
            Action::Evict(edge) | Action::Revoke(edge) if !self.group.anonymous => {
                self.steps.push(Step::Evicts(name(NodeId::Edge(*edge))));
            }
            _ => {}
        }
    }

    fn on_hop(&mut self, hop: &Hop) {
        let Hop { from, to, payload, .. } = hop;
        let sent_it = |node: &NodeId| self.senders.get(payload).is_some_and(|senders| senders.contains(node));
        match (from, to) {
            (NodeId::Leader(_), NodeId::Relay(_)) => {
                self.sent_to_a_relay(*from, *to, payload);
            }
            (NodeId::Relay(relay), NodeId::Edge(_)) => self.handed_by_a_relay(*relay, *to, payload),
            (NodeId::Relay(_), _) => {}
            _ if sent_it(from) => self.sent(*from, self.behind(*to), payload),
            // A hub passes on what others say to the group.
            (NodeId::Leader(_), NodeId::Edge(_) | NodeId::Leader(_)) => {
                let senders = self.senders.get(payload).into_iter().flatten();
                if let Some(sender) = senders.copied().find(|sender| sender != to) {
                    self.sent(sender, *to, payload);
                }
            }
            _ => {}
        }
    }
}
