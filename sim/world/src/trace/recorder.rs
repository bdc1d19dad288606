//! Records a trace while the world runs.

use std::collections::BTreeMap;
use std::mem::{Discriminant, discriminant, replace};
use std::time::Duration;

use quiver_ainq::{Epoch, Suite};
use quiver_group::{Edge, KemState, LeaderEvent};

use super::descriptions::{self, Lasting, describe};
use super::{
    DronePaths, DronePosition, EventKind, Fact, HopRow, PURPOSES, SecondFactor, Trace, TraceEvent, What,
    micros,
};
use crate::admission::CertifiedFields;
use crate::air::purpose;
use crate::node_id::NodeIndex;
use crate::{Action, Cause, DroneRole, Effect, Hop, NodeEvent, NodeId, Step, StepObserver, World};

/// Hops that are listed; more are counted by second. A page of so many has some 5 MB.
const MAX_HOPS: usize = 250_000;
/// Facts and events that are recorded; when there are more, the trace ends.
const MAX_FACTS: usize = 1_000_000;
const MAX_EVENTS: usize = 20_000;
/// Equal actions that are no further apart are one event.
const TOGETHER: Duration = Duration::from_secs(2);
/// Rows and columns in which a policy is evaluated.
const GRID: u32 = 61;

/// Observes a world, and gives its [`Trace`].
///
/// In a [parallel](crate::Setup::parallel) world the epoch that a drone holds is that at the end of a stretch,
/// which is no longer than the shortest message is under way.
#[derive(Debug)]
pub struct TraceRecorder {
    nodes: NodeIndex,
    edges: u32,
    places: Option<DronePaths>,
    epochs: BTreeMap<Epoch, i64>,
    texts: BTreeMap<String, i64>,
    kems: BTreeMap<SecondFactor, i64>,
    /// Second factors of drones with the leaders that they follow, with when they were made.
    shared: BTreeMap<NodeId, (KemState, u64)>,
    facts: Vec<(u64, u32, What, i64)>,
    hops: Vec<(u64, HopRow)>,
    counted: BTreeMap<u64, [u32; 6]>,
    events: Vec<TraceEvent>,
    /// State of each node when it was recorded last: power, epoch held or led, whether it is cut off.
    last: Vec<(bool, Option<Epoch>, bool)>,
    /// Lasting faults: the indices of the events that began them.
    lasting: BTreeMap<Lasting, Vec<usize>>,
    /// The last action, its kind, and its event.
    action: Option<(Duration, Discriminant<Action>, usize)>,
    /// Time at which there was no more room.
    full: Option<u64>,
}

impl TraceRecorder {
    /// A recorder of this world. `places` is where its edges fly.
    pub fn new<S: Suite>(world: &World<S>, places: Option<DronePaths>) -> Self {
        let nodes = world.index();
        let edges = world.edge_count();
        Self {
            nodes,
            edges,
            places: places.or_else(|| certified_places(world)),
            epochs: BTreeMap::new(),
            texts: BTreeMap::new(),
            kems: BTreeMap::new(),
            shared: BTreeMap::new(),
            facts: Vec::new(),
            hops: Vec::new(),
            counted: BTreeMap::new(),
            events: Vec::new(),
            last: vec![(false, None, false); nodes.hubs() + edges as usize],
            lasting: BTreeMap::new(),
            action: None,
            full: None,
        }
    }

    /// A part of the run is over.
    pub fn phase(&mut self, name: &str, began: Duration, took: Duration) {
        let index = self.event(began, EventKind::Phase, None, name.to_owned());
        if let Some(event) = index.and_then(|index| self.events.get_mut(index)) {
            event.until = Some(micros(began + took));
        }
    }

    /// The trace until `end`; `failures` did not hold, each at a time, if it is known, and at a node, if it
    /// is about one.
    pub fn finish(mut self, end: Duration, failures: &[(Option<Duration>, Option<NodeId>, String)]) -> Trace {
        for (at, node, text) in failures {
            self.event(at.unwrap_or(end), EventKind::Violation, *node, text.clone());
        }
        let mut left_out = Vec::new();
        if let Some(full) = self.full {
            left_out.push(format!(
                "The trace ends at {:.3} s, because there was more to record than {MAX_FACTS} facts or {MAX_EVENTS} events.",
                full as f64 / 1e6
            ));
        }
        let uncounted: u64 = self.counted.values().flatten().map(|count| u64::from(*count)).sum();
        if uncounted > 0 {
            left_out.push(format!(
                "The first {MAX_HOPS} messages fly; {uncounted} later ones are counted by second."
            ));
        }
        self.facts.sort_by_key(|(at, ..)| *at);
        self.hops.sort_by_key(|(sent, _)| *sent);
        self.events.sort_by_key(|event| event.at);
        let mut before = 0;
        let facts = self.facts.iter().map(|(at, node, what, argument)| -> Fact {
            (*at - replace(&mut before, *at), *node, *what as u8, *argument)
        });
        let facts = facts.collect();
        let mut before = 0;
        for (sent, row) in &mut self.hops {
            row.0 = *sent - replace(&mut before, *sent);
        }
        Trace {
            kgcs: self.nodes.kgcs,
            leaders: self.nodes.leaders,
            edges: self.edges,
            end: self.full.unwrap_or(micros(end)),
            epochs: by_index(self.epochs),
            kems: by_index(self.kems),
            purposes: PURPOSES,
            texts: by_index(self.texts),
            facts,
            hops: self.hops.into_iter().map(|(_, row)| row).collect(),
            counted: self.counted.into_iter().collect(),
            events: self.events,
            places: self.places,
            failures: failures.iter().map(|(.., text)| text.clone()).collect(),
            left_out,
        }
    }

    fn number(&self, node: NodeId) -> u32 {
        u32::try_from(self.nodes.index(node)).unwrap_or(u32::MAX)
    }

    fn fact(&mut self, at: Duration, node: NodeId, what: What, argument: i64) {
        let (at, number) = (micros(at), self.number(node));
        if self.facts.len() >= MAX_FACTS {
            self.full.get_or_insert(at);
        }
        if self.full.is_none() {
            self.facts.push((at, number, what, argument));
        }
    }

    fn story(&mut self, at: Duration, node: NodeId, text: String) {
        let next = self.texts.len() as i64;
        let index = *self.texts.entry(text).or_insert(next);
        self.fact(at, node, What::Story, index);
    }

    /// Adds an event; violations always, others while there is room. Gives its index.
    fn event(&mut self, at: Duration, kind: EventKind, node: Option<NodeId>, text: String) -> Option<usize> {
        let at = micros(at);
        if kind != EventKind::Violation {
            if self.events.len() >= MAX_EVENTS {
                self.full.get_or_insert(at);
            }
            if self.full.is_some() {
                return None;
            }
        }
        let node = node.map(|node| self.number(node));
        self.events.push(TraceEvent { at, until: None, kind, node, text, times: 1 });
        Some(self.events.len() - 1)
    }

    fn power(&mut self, at: Duration, node: NodeId, on: bool) {
        if let Some(last) = self.last.get_mut(self.nodes.index(node))
            && last.0 != on
        {
            last.0 = on;
            self.fact(at, node, if on { What::On } else { What::Off }, 0);
        }
    }

    /// A drone holds, or a leader leads since, this epoch. Returns whether it is another than before.
    fn epoch(&mut self, at: Duration, node: NodeId, epoch: Option<Epoch>) -> bool {
        let Some(last) = self.last.get_mut(self.nodes.index(node)).filter(|last| last.1 != epoch) else {
            return false;
        };
        last.1 = epoch;
        let index = epoch.map_or(-1, |epoch| self.index(epoch));
        let what = if let NodeId::Leader(_) = node { What::Leads } else { What::Holds };
        self.fact(at, node, what, index);
        true
    }

    /// A drone shares this second factor with the leader of its epoch, or none.
    fn second_factor(&mut self, at: Duration, node: NodeId, state: Option<KemState>) {
        let Some(state) = state else {
            if self.shared.remove(&node).is_some() {
                self.fact(at, node, What::SecondFactor, -1);
            }
            return;
        };
        let before = self.shared.get(&node).copied();
        if before.is_some_and(|(known, _)| known == state) {
            return;
        }
        // A step leaves the time of its exchange as it was.
        let stepped = before.filter(|(known, _)| known.made == state.made && known.term.g() < state.term.g());
        let made = stepped.map_or(micros(at), |(_, made)| made);
        self.shared.insert(node, (state, made));
        let next = self.kems.len() as i64;
        let factor = (state.term.set().to_string(), state.term.g(), made);
        let index = *self.kems.entry(factor).or_insert(next);
        self.fact(at, node, What::SecondFactor, index);
    }

    fn index(&mut self, epoch: Epoch) -> i64 {
        let next = self.epochs.len() as i64;
        *self.epochs.entry(epoch).or_insert(next)
    }

    /// Records power and epoch of a node as they are now.
    fn look<S: Suite>(&mut self, world: &World<S>, at: Duration, node: NodeId) {
        let on = world.alive(node);
        self.power(at, node, on);
        match node {
            NodeId::Kgc(_) | NodeId::Relay(_) => {}
            NodeId::Leader(ordinal) => {
                let epoch = world.leader(ordinal).and_then(|leader| leader.status().epoch);
                self.epoch(at, node, epoch);
            }
            NodeId::Edge(number) => {
                let edge = world.edge(number);
                // It changes with the epoch alone, and looking for it decodes a header.
                if self.epoch(at, node, edge.and_then(|edge| edge.status().epoch)) {
                    match edge.map(DroneRole::named) {
                        // Of its run of admission, and nobody keeps it.
                        Some(None) => self.fact(at, node, What::SecondFactor, -2),
                        named => self.second_factor(at, node, named.flatten().and_then(Edge::kem_state)),
                    }
                }
            }
        }
    }

    /// Records whether edges are cut off from all leaders.
    fn look_at_links<S: Suite>(&mut self, world: &World<S>, at: Duration, node: Option<NodeId>) {
        let edges = match node {
            Some(NodeId::Edge(number)) => number..number + 1,
            _ => 0..self.edges,
        };
        let hears = |one, other| world.network().reaches(one, other) && world.network().reaches(other, one);
        for edge in edges.map(NodeId::Edge) {
            let cut = !self.nodes.leaders().any(|leader| hears(leader, edge));
            if let Some(last) = self.last.get_mut(self.nodes.index(edge)).filter(|last| last.2 != cut) {
                last.2 = cut;
                self.fact(at, edge, What::CutOff, cut.into());
            }
        }
    }

    fn heard(&mut self, step: &Step, event: &NodeEvent) {
        let (at, node) = (step.at, step.node);
        match event {
            NodeEvent::Leader(LeaderEvent::EpochActivated { epoch, kind, members, added, removed }) => {
                self.epoch(at, node, Some(*epoch));
                let text = descriptions::epoch(node, *epoch, *kind, (*members, *added, *removed));
                self.event(at, EventKind::Epoch, Some(node), text);
            }
            NodeEvent::Leader(LeaderEvent::SteppedDown { .. }) => {
                self.epoch(at, node, None);
            }
            _ => {}
        }
        let Some(text) = describe(event) else { return };
        let leader = matches!(
            event,
            NodeEvent::Leader(
                LeaderEvent::SteppedDown { .. }
                    | LeaderEvent::TookOver { .. }
                    | LeaderEvent::Equivocation { .. }
            )
        );
        if leader {
            self.event(at, EventKind::Leader, Some(node), format!("{node} {text}"));
        }
        self.story(at, node, text);
    }

    /// An action on the time line: one event for equal ones that come together.
    fn act(&mut self, at: Duration, action: &Action) {
        let node = descriptions::subject(action);
        let kind = descriptions::kind(action);
        let equal = self.action.filter(|(before, equal, index)| {
            at.saturating_sub(*before) <= TOGETHER
                && *equal == discriminant(action)
                && self.events.get(*index).is_some_and(|event| event.kind == kind)
        });
        let index = match equal {
            Some((.., index)) => {
                if let Some(event) = self.events.get_mut(index) {
                    event.times += 1;
                }
                Some(index)
            }
            None => self.event(at, kind, node, action.to_string()),
        };
        let Some(index) = index else { return };
        self.action = Some((at, discriminant(action), index));
        let (ends, begins) = descriptions::lasting(action);
        for key in ends {
            self.end(at, key);
        }
        if let Some(key) = begins {
            self.lasting.entry(key).or_default().push(index);
        }
    }

    /// A lasting fault is over.
    fn end(&mut self, at: Duration, key: Lasting) {
        for index in self.lasting.remove(&key).into_iter().flatten() {
            if let Some(event) = self.events.get_mut(index) {
                event.until = event.until.max(Some(micros(at)));
            }
        }
    }
}

/// First places of drones of a world with a policy, and the squares where the policy admits them with a full
/// battery.
fn certified_places<S: Suite>(world: &World<S>) -> Option<DronePaths> {
    let checkpoint = world.fleet().checkpoint()?;
    let reach = 1000.0;
    let mut places = DronePaths::new(reach, None, world.edge_count());
    for edge in 0..world.edge_count() {
        if world.fleet().authorises(edge) {
            places.stand(edge, place(Duration::ZERO, checkpoint.fields(edge)));
        }
    }
    let metres = |index: u32| (2.0 * reach * f64::from(index) / f64::from(GRID - 1) - reach) as i16;
    let cell = |row, column| {
        let fields = CertifiedFields { x: metres(column), y: -metres(row), battery: 100 };
        if checkpoint.admits(&fields).unwrap_or(false) { '1' } else { '0' }
    };
    places.admitted = (0..GRID).map(|row| (0..GRID).map(|column| cell(row, column)).collect()).collect();
    Some(places)
}

fn place(at: Duration, fields: CertifiedFields) -> DronePosition {
    DronePosition { at, x: fields.x.into(), y: fields.y.into() }
}

/// The keys of a map from keys to their places in a list.
fn by_index<T>(map: BTreeMap<T, i64>) -> Vec<T> {
    let mut list: Vec<(T, i64)> = map.into_iter().collect();
    list.sort_by_key(|(_, index)| *index);
    list.into_iter().map(|(key, _)| key).collect()
}

impl<S: Suite> StepObserver<S> for TraceRecorder {
    fn on_step(&mut self, world: &World<S>, step: &Step) {
        let (at, node) = (step.at, step.node);
        // A leader says what it leads, and looking at it takes longer the more members it has.
        if step.cause == Cause::Start || matches!(node, NodeId::Edge(_)) {
            self.look(world, at, node);
        }
        if step.cause == Cause::Start {
            self.story(at, node, format!("is switched on, start {}", world.life(node)));
            self.end(at, ("power", Some(node)));
        }
        for effect in &step.effects {
            match effect {
                Effect::Reported(event) => self.heard(step, event),
                Effect::Died => {
                    self.epoch(at, node, None);
                    self.second_factor(at, node, None);
                    self.power(at, node, false);
                    self.story(at, node, "crashes".into());
                }
                Effect::Broken => {
                    let text = format!("{node} cannot be restored from its disk");
                    self.event(at, EventKind::Fault, Some(node), text.clone());
                    self.story(at, node, "cannot be restored from its disk".into());
                }
                Effect::Stalled => self.story(at, node, "waits: its disk refuses a record".into()),
                Effect::Sent { .. }
                | Effect::Persisted { .. }
                | Effect::Blocked(_)
                | Effect::Penalized(_)
                | Effect::Disconnected(_)
                | Effect::Relayed { .. } => {}
            }
        }
    }

    fn on_action(&mut self, world: &World<S>, at: Duration, action: &Action) {
        // Drones that fly go out of range and come back: where they are says so.
        let flies = self.places.as_ref().is_some_and(|places| places.range.is_some());
        if !(flies && matches!(action, Action::LinksOf(NodeId::Edge(_), _))) {
            self.act(at, action);
        }
        if let Some(node) = descriptions::subject(action) {
            self.look(world, at, node);
            if !matches!(action, Action::Start(_) | Action::LinksOf(..)) {
                let text = action.to_string();
                let own = text.strip_prefix(&format!("{node} ")).map(str::to_owned);
                self.story(at, node, own.unwrap_or(text));
            }
        }
        match action {
            Action::Capture(edge) => self.fact(at, NodeId::Edge(*edge), What::Captured, 1),
            Action::Seize(kgc) => self.fact(at, NodeId::Kgc(*kgc), What::Captured, 1),
            Action::LinksOf(node, _) => self.look_at_links(world, at, Some(*node)),
            Action::Part(_) | Action::Heal => self.look_at_links(world, at, None),
            Action::Calm => {
                for key in self.lasting.keys().copied().collect::<Vec<_>>() {
                    self.end(at, key);
                }
                for index in 0..self.last.len() {
                    self.look(world, at, self.nodes.node(index));
                }
                self.look_at_links(world, at, None);
            }
            Action::Certify { edge, fields } if world.is_anonymous(*edge) => {
                if let Some(places) = &mut self.places
                    && let Some(before) =
                        places.paths.get(*edge as usize).and_then(|path| path.last()).copied()
                {
                    places.stand(*edge, DronePosition { at, ..before });
                    places.stand(*edge, place(at, *fields));
                }
            }
            _ => {}
        }
    }

    fn on_hop(&mut self, hop: &Hop) {
        let (sent, purpose) = (micros(hop.sent), purpose(&hop.payload));
        if self.full.is_some() {
            return;
        }
        if self.hops.len() >= MAX_HOPS {
            let counts = self.counted.entry(sent / 1_000_000).or_default();
            if let Some(count) = counts.get_mut(usize::from(purpose)) {
                *count += 1;
            }
            return;
        }
        let way = hop
            .arrives
            .map_or(-1, |arrives| i64::try_from(micros(arrives).saturating_sub(sent)).unwrap_or(i64::MAX));
        self.hops.push((sent, (0, self.number(hop.from), self.number(hop.to), purpose, way)));
    }
}
