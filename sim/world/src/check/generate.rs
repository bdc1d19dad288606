//! Generates random plans of actions and faults.

use std::fmt;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;

use super::{CheckSetup, nodes};
use crate::admission::CertifiedFields;
use crate::rng_stream::{self, RngStream, below, unit};
use crate::{Action, Burst, DiskState, Forgery, LinkFaults, NodeId, NodeSet, Partition};

/// Start state of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartState {
    /// No drone is enrolled.
    Nothing,
    /// All nodes are enrolled, none is a member.
    Enrolled,
    /// All edges were members when all nodes were switched off.
    Formed,
}

/// A life: what happens when, until the faults are over.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionPlan {
    /// Seed from which the network and the nodes draw.
    pub seed: u64,
    /// Start state.
    pub beginning: StartState,
    /// Actions in order of time.
    pub actions: Vec<(Duration, Action)>,
    /// End of all faults.
    pub calm: Duration,
}

impl fmt::Display for ActionPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "  at the start: {}",
            match self.beginning {
                StartState::Nothing => "nobody is enrolled",
                StartState::Enrolled => "everybody is enrolled, nobody is in the group",
                StartState::Formed => "everybody was in the group when all were switched off",
            }
        )?;
        for (at, action) in &self.actions {
            writeln!(f, "  {:>8.3} s  {action}", at.as_secs_f64())?;
        }
        write!(f, "  {:>8.3} s  all faults end", self.calm.as_secs_f64())
    }
}

/// Thinks up what happens.
struct Planner<'a> {
    setup: &'a CheckSetup,
    rng: ChaCha8Rng,
    end: u64,
    actions: Vec<(u64, Action)>,
    said: u32,
}

impl ActionPlan {
    /// The plan of a seed.
    pub(super) fn new(setup: &CheckSetup, seed: u64) -> Self {
        let mut rng = rng_stream::generator(seed, RngStream::Planner);
        let beginning = match seed % 16 {
            1 => StartState::Nothing,
            // Where several KGCs issue keys, enrolment is what can fail.
            5 | 9 | 13 if setup.kgcs > 1 => StartState::Nothing,
            // Anonymous memberships are not durable.
            _ if rng.next_u32().is_multiple_of(2) || setup.admission => StartState::Enrolled,
            _ => StartState::Formed,
        };
        let end = 30_000 + below(&mut rng, 60_000);
        let mut planner = Planner { setup, rng, end, actions: Vec::new(), said: 0 };
        if beginning != StartState::Formed {
            planner.gather();
        }
        let count = 4 + below(&mut planner.rng, 16);
        for _ in 0..count {
            planner.happening();
        }
        if setup.kgcs > 1 {
            planner.quorum();
        }
        if setup.relays > 0 {
            planner.relays();
        }
        if !setup.kem_of(seed).is_none() {
            planner.renewals();
        }
        let mut actions = planner.actions;
        actions.sort_by_key(|(at, _)| *at);
        Self {
            seed,
            beginning,
            actions: actions.into_iter().map(|(at, action)| (Duration::from_millis(at), action)).collect(),
            calm: Duration::from_millis(end),
        }
    }
}

impl Planner<'_> {
    /// Most edges want in soon, strangers too.
    fn gather(&mut self) {
        let spread = 1 + below(&mut self.rng, 8_000);
        for edge in 0..self.setup.edges + 2 {
            if self.one_in(8) {
                continue;
            }
            let at = 100 + below(&mut self.rng, spread);
            self.actions.push((at, Action::Join(edge)));
        }
    }

    fn one_in(&mut self, many: u64) -> bool {
        below(&mut self.rng, many) == 0
    }

    fn time(&mut self) -> u64 {
        1_000 + below(&mut self.rng, self.end - 1_000)
    }

    /// Some time later, but not after the end.
    fn later(&mut self, at: u64, longest: u64) -> u64 {
        (at + 1 + below(&mut self.rng, longest)).min(self.end - 1)
    }

    fn node(&mut self) -> NodeId {
        let nodes: Vec<NodeId> = nodes(self.setup).collect();
        match below(&mut self.rng, 4) {
            0 => NodeId::Leader(
                u16::try_from(below(&mut self.rng, u64::from(self.setup.leaders))).unwrap_or(0),
            ),
            _ => nodes[usize::try_from(below(&mut self.rng, nodes.len() as u64)).unwrap_or(0)],
        }
    }

    fn edge(&mut self) -> u32 {
        u32::try_from(below(&mut self.rng, u64::from(self.setup.edges))).unwrap_or(0)
    }

    fn some_nodes(&mut self) -> Vec<NodeId> {
        let share = 1 + below(&mut self.rng, 4);
        let nodes: Vec<NodeId> = nodes(self.setup).collect();
        nodes.into_iter().filter(|_| below(&mut self.rng, 4) < share).collect()
    }

    /// Plans one event.
    fn happening(&mut self) {
        let at = self.time();
        let edge = self.edge();
        match below(&mut self.rng, 24) {
            0..2 => self.actions.push((at, Action::Join(edge))),
            2..4 => self.actions.push((at, Action::Leave(edge))),
            4 => self.actions.push((at, Action::Evict(edge))),
            5 if self.one_in(3) => self.actions.push((at, Action::Revoke(edge))),
            5..7 => self.actions.push((at, Action::Rekey)),
            7..9 => self.talk(at),
            9..12 => self.crash(at),
            12 => self.rest(at),
            13..15 => self.bad_links(at),
            15 => self.partition(at),
            16 => self.wrong_clock(at),
            // Secrets of an anonymous drone are worth nothing to the adversary of the checks, which looks for
            // keys and spare points.
            18 if self.setup.admission => self.certify(at, edge),
            17 => self.bad_disk(at),
            18 => self.capture(at, edge),
            20 | 21 => self.forge(at),
            // Anonymous members are in no term of another leader's.
            22 if !self.setup.admission => self.double_term(at),
            19 => {
                for _ in 0..8 {
                    let (pick, to) = (self.rng.next_u64() >> 16, self.node());
                    let at = self.time();
                    self.actions.push((at, Action::Replay { pick, to }));
                }
            }
            _ => {
                let rounds = self.rng.next_u32() % 4;
                self.actions.push((at, Action::Usurp { edge, rounds }));
            }
        }
    }

    /// Actions on KGCs and orders, where there are several KGCs.
    fn quorum(&mut self) {
        let (kgcs, threshold) = (self.setup.kgcs, self.setup.threshold());
        let mut all: Vec<u16> = (1..=kgcs).collect();
        for place in (1..all.len()).rev() {
            let other = usize::try_from(below(&mut self.rng, place as u64 + 1)).unwrap_or(0);
            all.swap(place, other);
        }
        // So many that enough honest ones are left; and fewer than it takes are the adversary's.
        let liars = below(&mut self.rng, u64::from(kgcs - threshold) + 1);
        for kgc in all.iter().take(usize::try_from(liars).unwrap_or(0)).copied() {
            let at = below(&mut self.rng, self.end);
            let later = self.later(at, 30_000);
            self.actions.push((at, Action::Lie { kgc, lies: true }));
            self.actions.push((later, Action::Lie { kgc, lies: false }));
        }
        let seized = below(&mut self.rng, u64::from(threshold));
        for kgc in all.iter().rev().take(usize::try_from(seized).unwrap_or(0)).copied() {
            let at = self.time();
            self.actions.push((at, Action::Seize(kgc)));
        }
        for number in 0..u32::try_from(below(&mut self.rng, 3)).unwrap_or(0) {
            let at = self.time();
            self.actions.push((at, Action::Order(number)));
        }
        let approving = below(&mut self.rng, u64::from(kgcs) + 1);
        for kgc in all.iter().take(usize::try_from(approving).unwrap_or(0)).copied() {
            let at = self.time();
            self.actions.push((at, Action::Approve(kgc)));
        }
    }

    /// Renewals of the second factor, and captures of drones that stay in the group.
    fn renewals(&mut self) {
        for _ in 0..below(&mut self.rng, 3) {
            let (at, edge) = (self.time(), self.edge());
            let edge = (!self.one_in(3)).then_some(edge);
            self.actions.push((at, Action::RenewKem(edge)));
        }
        for _ in 0..below(&mut self.rng, 3) {
            let (at, edge) = (self.time(), self.edge());
            self.actions.push((at, Action::Capture(edge)));
        }
    }

    /// Actions on relays, where there are any: they crash, are cut off from their leader, from drones or from all, and
    /// are hostile for a while.
    fn relays(&mut self) {
        let all = self.setup.leaders * self.setup.relays;
        for _ in 0..2 + below(&mut self.rng, 5) {
            let number = u16::try_from(below(&mut self.rng, u64::from(all))).unwrap_or(0);
            let relay = NodeId::Relay(number);
            let at = self.time();
            let later = self.later(at, 25_000);
            match below(&mut self.rng, 6) {
                0 => {
                    let after = self.rng.next_u32() % 40;
                    let down_for = Duration::from_millis(10 + below(&mut self.rng, 8_000));
                    self.actions.push((at, Action::Crash { node: relay, after, down_for }));
                    self.actions.push((at + 1, Action::Rekey));
                }
                1 => {
                    self.actions.push((at, Action::Stop(relay)));
                    self.actions.push((later, Action::Start(relay)));
                }
                2 => self.cut_relay(relay, at, later),
                _ => {
                    self.actions.push((at, Action::Subvert { relay: number, hostile: true }));
                    self.actions.push((later, Action::Subvert { relay: number, hostile: false }));
                }
            }
        }
    }

    /// Messages between a relay and its leader, or some drones, get through one way at most.
    fn cut_relay(&mut self, relay: NodeId, at: u64, later: u64) {
        let leaders: Vec<NodeId> = (0..self.setup.leaders).map(NodeId::Leader).collect();
        let edges: Vec<NodeId> = (0..self.setup.edges).map(NodeId::Edge).collect();
        let others = if self.one_in(2) {
            leaders
        } else {
            edges.into_iter().filter(|_| below(&mut self.rng, 2) == 0).collect()
        };
        let (relay, others) = (NodeSet::only([relay]), NodeSet::only(others));
        let (up, down) =
            (Partition::one_way(others.clone(), relay.clone()), Partition::one_way(relay, others));
        let which = below(&mut self.rng, 4);
        if which != 1 {
            self.actions.push((at, Action::Part(up)));
        }
        if which != 2 {
            self.actions.push((at, Action::Part(down)));
        }
        self.actions.push((later, Action::Heal));
    }

    fn talk(&mut self, at: u64) {
        let mut node = self.node();
        if let NodeId::Kgc(_) | NodeId::Relay(_) = node {
            node = NodeId::Edge(self.edge());
        }
        self.said += 1;
        let signed = self.one_in(2);
        self.actions.push((at, Action::Talk { node, number: self.said, signed }));
    }

    fn crash(&mut self, at: u64) {
        let node = self.node();
        let after = self.rng.next_u32() % 12;
        let down_for = Duration::from_millis(10 + below(&mut self.rng, 8_000));
        self.actions.push((at, Action::Crash { node, after, down_for }));
        // It may be idle now: make it send something.
        if self.one_in(2) {
            self.actions.push((at + 1, Action::Rekey));
        }
    }

    fn rest(&mut self, at: u64) {
        let node = self.node();
        let later = self.later(at, 20_000);
        self.actions.push((at, Action::Stop(node)));
        self.actions.push((later, Action::Start(node)));
    }

    fn bad_links(&mut self, at: u64) {
        let often = |rng: &mut ChaCha8Rng, most: f64| {
            let share = unit(rng) * most;
            if rng.next_u32().is_multiple_of(2) { 0.0 } else { share }
        };
        let rng = &mut self.rng;
        let faults = LinkFaults {
            delay: Duration::from_millis(1 + below(rng, 80)),
            jitter: Duration::from_millis(below(rng, 400)),
            loss: often(rng, 0.5),
            burst: rng.next_u32().is_multiple_of(3).then(|| Burst {
                start: 0.01 + unit(rng) * 0.1,
                end: 0.05 + unit(rng) * 0.3,
                loss: 0.5 + unit(rng) * 0.5,
            }),
            duplicate: often(rng, 0.4),
            reorder: often(rng, 0.4),
            corrupt: often(rng, 0.2),
        };
        let later = self.later(at, 25_000);
        if self.one_in(3) {
            let node = self.node();
            self.actions.push((at, Action::LinksOf(node, Some(faults))));
            self.actions.push((later, Action::LinksOf(node, None)));
        } else {
            self.actions.push((at, Action::Links(faults)));
            self.actions.push((later, Action::Links(LinkFaults::SOUND)));
        }
    }

    fn partition(&mut self, at: u64) {
        let some = self.some_nodes();
        let partition = match below(&mut self.rng, 3) {
            0 => Partition::island(some),
            1 => Partition::one_way(NodeSet::only(some.clone()), NodeSet::all_but(some)),
            _ => Partition::one_way(NodeSet::all_but(some.clone()), NodeSet::only(some)),
        };
        let later = self.later(at, 25_000);
        self.actions.push((at, Action::Part(partition)));
        self.actions.push((later, Action::Heal));
    }

    fn wrong_clock(&mut self, at: u64) {
        let node = self.node();
        let reach = [3, 60, 4_000][usize::try_from(below(&mut self.rng, 3)).unwrap_or(0)];
        let seconds = i64::try_from(below(&mut self.rng, 2 * reach + 1)).unwrap_or(0)
            - i64::try_from(reach).unwrap_or(0);
        let later = self.later(at, 20_000);
        self.actions.push((at, Action::Skew { node, seconds }));
        self.actions.push((later, Action::Skew { node, seconds: 0 }));
    }

    fn bad_disk(&mut self, at: u64) {
        let node = self.node();
        if self.one_in(2) {
            let writes = 1 + self.rng.next_u32() % 5;
            self.actions.push((at, Action::Disk(node, DiskState::Failing(writes))));
        } else {
            let later = self.later(at, 15_000);
            self.actions.push((at, Action::Disk(node, DiskState::Full)));
            if self.one_in(3) {
                let down_for = Duration::from_millis(10 + below(&mut self.rng, 3_000));
                let middle = self.later(at, later.saturating_sub(at).max(1));
                self.actions.push((middle, Action::Stop(node)));
                let again = middle + u64::try_from(down_for.as_millis()).unwrap_or(0);
                self.actions.push((again.min(self.end - 1), Action::Start(node)));
            }
            self.actions.push((later, Action::Disk(node, DiskState::Sound)));
        }
    }

    /// Moves an anonymous drone, or revokes its certificate.
    fn certify(&mut self, at: u64, edge: u32) {
        let metres = |rng: &mut ChaCha8Rng| i16::try_from(below(rng, 2_001)).unwrap_or(0) - 1_000;
        let action = match below(&mut self.rng, 4) {
            0 => Action::Decertify(edge),
            _ => {
                let (x, y) = (metres(&mut self.rng), metres(&mut self.rng));
                let battery = u8::try_from(below(&mut self.rng, 101)).unwrap_or(0);
                Action::Certify { edge, fields: CertifiedFields { x, y, battery } }
            }
        };
        self.actions.push((at, action));
    }

    /// Adds a few forgeries, made without an identity or by a member that uses none of its keys.
    fn forge(&mut self, at: u64) {
        let stranger = self.setup.edges + u32::from(self.one_in(2));
        let by = if self.one_in(2) { stranger } else { self.edge() };
        let mut at = at;
        for _ in 0..=below(&mut self.rng, 4) {
            let place = usize::try_from(below(&mut self.rng, Forgery::ALL.len() as u64)).unwrap_or(0);
            let (what, pick) = (Forgery::ALL.get(place).copied(), self.rng.next_u64());
            self.actions.extend(what.map(|what| (at, Action::Forge { by, what, pick })));
            at = self.later(at, 3_000);
        }
    }

    /// A leader with two keys opens a term twice.
    fn double_term(&mut self, at: u64) {
        let (rounds, split) = (1 + self.rng.next_u32() % 3, self.rng.next_u64());
        let crossing = Duration::from_millis(100 + below(&mut self.rng, 15_000));
        self.actions.push((at, Action::DoubleTerm { rounds, split, crossing }));
    }

    /// Adds a capture of a drone, which then leaves or is evicted.
    fn capture(&mut self, at: u64, edge: u32) {
        let later = self.later(at, 15_000);
        self.actions.push((at, Action::Capture(edge)));
        let out = if self.one_in(2) { Action::Evict(edge) } else { Action::Leave(edge) };
        self.actions.push((later, out));
        let last = self.later(later, 10_000);
        self.actions.push((last, Action::Rekey));
    }
}
