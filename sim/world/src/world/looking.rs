//! Looking at the world, switching nodes on and off.

use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::{KgcId, Suite};
use quiver_role::{Edge, Kgc, Leader, Now};
use sha2::Digest;

use super::turning::take;
use super::{Errand, World};
use crate::air::Air;
use crate::centre::Centre;
use crate::drive::Sabotage;
use crate::fleet::EPOCH_START;
use crate::network::Traffic;
use crate::seeds::{Dormant, Player};
use crate::station::{Exposed, Station, Stimulus};
use crate::{Cause, DiskState, Effect, Fleet, Network, Node, Setup, Turn};

impl<S: Suite> World<S> {
    /// Time since the world began.
    pub fn time(&self) -> Duration {
        Duration::from_nanos(self.now)
    }

    /// What the world was made of.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Keys, names and tokens.
    pub fn fleet(&self) -> &Fleet<S> {
        &self.fleet
    }

    /// What is between the nodes.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The radio between the nodes, and who paid for it, if the world has one.
    pub fn air(&self) -> Option<&Air> {
        self.air.as_ref()
    }

    /// What was sent and what became of it.
    pub fn traffic(&self) -> Traffic {
        self.network.traffic()
    }

    /// How many edges there are.
    pub fn edge_count(&self) -> u32 {
        u32::try_from(self.edges.len()).unwrap_or(u32::MAX)
    }

    /// How many leaders there are.
    pub fn leader_count(&self) -> u16 {
        self.row.leaders
    }

    /// An edge's machine, if it is switched on.
    pub fn edge(&self, number: u32) -> Option<&Edge<S>> {
        self.edges.get(number as usize)?.as_ref()?.machine.as_deref().map(|drone| &drone.edge)
    }

    /// A leader's machine, if it is switched on.
    pub fn leader(&self, ordinal: u16) -> Option<&Leader<S>> {
        self.leaders.get(usize::from(ordinal))?.machine.as_deref()
    }

    /// How many KGCs there are.
    pub fn kgc_count(&self) -> u16 {
        self.row.kgcs
    }

    /// A KGC's machine, if it is switched on.
    pub fn kgc(&self, id: KgcId) -> Option<&Kgc<S>> {
        self.kgc_station(id)?.machine.as_deref().map(|centre| &centre.kgc)
    }

    pub(super) fn kgc_station(&self, id: KgcId) -> Option<&Station<Centre<S>>> {
        self.kgcs.get(usize::from(id).checked_sub(1)?)
    }

    pub(super) fn kgc_station_mut(&mut self, id: KgcId) -> Option<&mut Station<Centre<S>>> {
        self.kgcs.get_mut(usize::from(id).checked_sub(1)?)
    }

    /// What an edge has made durable last.
    pub fn edge_state(&self, number: u32) -> Option<&quiver_role::Snapshot> {
        self.edges.get(number as usize)?.as_ref()?.disk.records.last()
    }

    /// What a node's clocks say.
    pub fn clock(&self, node: Node) -> Now {
        let now = self.now;
        let clock = match node {
            Node::Kgc(id) => self.kgc_station(id).map(|kgc| kgc.clock(now)),
            Node::Leader(ordinal) => self.leaders.get(usize::from(ordinal)).map(|leader| leader.clock(now)),
            Node::Edge(number) => {
                self.edges.get(number as usize).and_then(Option::as_ref).map(|edge| edge.clock(now))
            }
        };
        clock.unwrap_or(Now { monotonic: self.time(), unix: EPOCH_START + now / 1_000_000_000 })
    }

    /// Whether a node is switched on.
    pub fn alive(&self, node: Node) -> bool {
        match node {
            Node::Kgc(id) => self.kgc(id).is_some(),
            Node::Leader(ordinal) => self.leader(ordinal).is_some(),
            Node::Edge(number) => self.edge(number).is_some(),
        }
    }

    /// How often a node was started.
    pub fn life(&self, node: Node) -> u32 {
        let edge = |number: u32| self.edges.get(number as usize).and_then(Option::as_ref);
        let life = match node {
            Node::Kgc(id) => self.kgc_station(id).map(|kgc| kgc.life),
            Node::Leader(ordinal) => self.leaders.get(usize::from(ordinal)).map(|leader| leader.life),
            Node::Edge(number) => edge(number).map(|edge| edge.life),
        };
        life.unwrap_or_default()
    }

    /// Whether a node stands still because its disk takes nothing.
    pub fn stalled(&self, node: Node) -> bool {
        match node {
            Node::Kgc(id) => self.kgc_station(id).is_some_and(Station::stalled),
            Node::Leader(ordinal) => {
                self.leaders.get(usize::from(ordinal)).is_some_and(|leader| leader.stalled())
            }
            Node::Edge(number) => {
                let edge = self.edges.get(number as usize).and_then(Option::as_ref);
                edge.is_some_and(|edge| edge.stalled())
            }
        }
    }

    /// Whether two nodes have a connection.
    pub fn connected(&self, a: Node, b: Node) -> bool {
        self.links.connection(a, b).is_some()
    }

    /// The number of the connection of two nodes, if they have one.
    pub(crate) fn connection(&self, a: Node, b: Node) -> Option<u32> {
        self.links.connection(a, b)
    }

    /// Who and which connection a machine's handle means.
    pub(crate) fn behind(&self, peer: quiver_role::Peer) -> (Node, u32) {
        self.row.behind(peer)
    }

    /// How many steps were taken.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// CPU time of all leaders' steps, if the world is metered.
    pub fn leader_cpu(&self) -> Duration {
        self.leader_cpu
    }

    /// SHA-256 over every step so far: time, node, input and outputs. None unless the world is traced.
    pub fn trace_hash(&self) -> Option<[u8; 32]> {
        self.trace.clone().map(|trace| trace.finalize().into())
    }

    /// Plans to switch all nodes on now: the KGCs first, then the leaders, then the edges.
    pub fn start_everyone(&mut self) {
        for index in 0..self.row.hubs() + self.edges.len() {
            self.schedule(self.time(), crate::Action::Start(self.row.node(index)));
        }
    }

    pub(super) fn number(&self, node: Node) -> u32 {
        u32::try_from(self.row.index(node)).unwrap_or(u32::MAX)
    }

    /// Switches a node on with what it has made durable. Machines may act before their first input.
    pub(super) fn start(&mut self, node: Node) -> Option<Turn> {
        if self.alive(node) {
            return None;
        }
        let (seed, now, sabotage) = (self.setup.seed, self.now, self.setup.sabotage);
        let rng = |life| match sabotage {
            Sabotage::SameDice => Dormant::new(seed, Player::Node(node, 1)),
            _ => Dormant::new(seed, Player::Node(node, life)),
        };
        let restored = match node {
            Node::Kgc(id) => {
                let fleet = Arc::clone(&self.fleet);
                let approved = self.approved.contains(&id) || sabotage == Sabotage::EarlyRelease;
                let manner = (approved, self.lying.contains(&id));
                let station = self.kgc_station_mut(id)?;
                let machine = fleet.centre((id, station.life), &station.disk.records, manner);
                machine.map(|machine| station.power_on(now, machine, rng(station.life + 1)))
            }
            Node::Leader(ordinal) => {
                let unix = self.clock(node).unix;
                let station = self.leaders.get_mut(usize::from(ordinal))?;
                let machine =
                    Leader::new(self.fleet.leader(ordinal, true), station.disk.records.iter().cloned());
                let machine = machine.map(|machine| self.fleet.demanding(machine, unix));
                machine.map(|machine| station.power_on(now, machine, rng(station.life + 1)))
            }
            Node::Edge(number) if self.is_unnamed(number) => {
                let machine = self.unnamed(number)?;
                let station = self.edges.get_mut(number as usize)?.as_deref_mut()?;
                machine.map(|machine| station.power_on(now, machine, rng(station.life + 1)))
            }
            Node::Edge(number) => {
                let station = self.edges.get_mut(number as usize)?.as_deref_mut()?;
                let mut records = station.disk.records.iter().rev();
                if sabotage == Sabotage::StaleState && records.len() > 1 {
                    records.next();
                }
                let machine = self.fleet.drone(number, records.next());
                machine.map(|machine| station.power_on(now, machine, rng(station.life + 1)))
            }
        };
        if restored.is_err() {
            let at = self.time();
            let effects = vec![Effect::Broken];
            return Some(Turn { at, node, cause: Cause::Start, effects, cpu: Duration::ZERO, digest: None });
        }
        self.plan_connections(node);
        if let (Node::Leader(ordinal), Some(_)) = (node, self.fleet.checkpoint()) {
            self.plan(Duration::ZERO, Errand::SlotKeys(ordinal));
        }
        self.start_turn(node)
    }

    fn start_turn(&mut self, node: Node) -> Option<Turn> {
        let (style, now) = (self.style(), self.now);
        match node {
            Node::Kgc(id) => {
                let station = self.kgc_station_mut(id)?;
                Some(take(station, node, now, (Stimulus::Start, Cause::Start), style))
            }
            Node::Leader(ordinal) => {
                let station = self.leaders.get_mut(usize::from(ordinal))?;
                Some(take(station, node, now, (Stimulus::Start, Cause::Start), style))
            }
            Node::Edge(number) => {
                let station = self.edges.get_mut(number as usize)?.as_deref_mut()?;
                Some(take(station, node, now, (Stimulus::Start, Cause::Start), style))
            }
        }
    }

    pub(super) fn stop(&mut self, node: Node) {
        if !self.alive(node) {
            return;
        }
        match node {
            Node::Kgc(id) => {
                if let Some(station) = self.kgc_station_mut(id) {
                    station.power_off();
                }
            }
            Node::Leader(ordinal) => {
                if let Some(station) = self.leaders.get_mut(usize::from(ordinal)) {
                    station.power_off();
                }
            }
            Node::Edge(number) => {
                if let Some(station) = self.edges.get_mut(number as usize).and_then(Option::as_deref_mut) {
                    station.power_off();
                }
            }
        }
        self.disconnect_all(node);
    }

    /// A node shall die after so many more outputs.
    pub(super) fn doom(&mut self, node: Node, after: u32, down_for: Duration) {
        if self.alive(node) {
            self.with(node, |trouble| *trouble.doom = Some(after));
            self.returns.insert(node, down_for);
        }
    }

    /// A KGC lies, or tells the truth again.
    pub(super) fn set_lying(&mut self, id: KgcId, lies: bool) {
        if lies {
            self.lying.insert(id)
        } else {
            self.lying.remove(&id)
        };
        let lie = lies.then(|| self.fleet.lies(id));
        if let Some(centre) = self.kgc_station_mut(id).and_then(|station| station.machine.as_deref_mut()) {
            centre.set_lying(lie);
        }
    }

    pub(super) fn set_skew(&mut self, node: Node, seconds: i64) {
        self.with(node, |trouble| *trouble.skew = seconds);
    }

    pub(super) fn set_disk(&mut self, node: Node, state: DiskState) {
        self.with(node, |trouble| *trouble.disk = state);
    }

    /// All faults end; who is off is switched on.
    pub(super) fn calm(&mut self, turns: &mut Vec<Turn>) {
        self.network.heal();
        self.network.calm();
        if let Some(air) = &mut self.air {
            air.calm();
        }
        self.returns.clear();
        self.cross_again();
        for id in std::mem::take(&mut self.lying) {
            self.set_lying(id, false);
        }
        for index in 0..self.row.hubs() + self.edges.len() {
            let node = self.row.node(index);
            self.with(node, |trouble| {
                *trouble.doom = None;
                *trouble.skew = 0;
                *trouble.disk = DiskState::Sound;
            });
            turns.extend(self.start(node));
        }
    }

    fn with(&mut self, node: Node, change: impl FnOnce(Exposed<'_>)) {
        match node {
            Node::Kgc(id) => {
                if let Some(station) = self.kgc_station_mut(id) {
                    change(station.exposed());
                }
            }
            Node::Leader(ordinal) => {
                if let Some(station) = self.leaders.get_mut(usize::from(ordinal)) {
                    change(station.exposed());
                }
            }
            Node::Edge(number) => {
                if let Some(station) = self.edges.get_mut(number as usize).and_then(Option::as_deref_mut) {
                    change(station.exposed());
                }
            }
        }
    }
}
