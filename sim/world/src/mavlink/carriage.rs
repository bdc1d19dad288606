//! The group's datagrams in the world: from a station to the radio, over the channel, to the others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::{Slot, Suite};
use quiver_datagram::Event as DatagramsEvent;
use quiver_group::{EdgeCommand, LeaderEvent};
use quiver_testbed::{Traffic, nanos};
use sha2::Digest;

use super::station::OutgoingDatagram;
use super::stations::{StationQuestion, Stations};
use super::{DatagramClass, DatagramEventKind, MavlinkReport};
use crate::event_queue::WorldEvent;
use crate::{NodeEvent, NodeId, Step, StepObserver, World};

/// No number of a datagram whose payloads are remembered.
const UNNUMBERED: u64 = u64::MAX;
/// A station that has something to do but cannot now is served again after this at the earliest.
const PAUSE: Duration = Duration::from_micros(1);

impl<S: Suite> World<S> {
    /// Counts of the telemetry so far by outcome, if there is any.
    pub fn mavlink(&self) -> Option<MavlinkReport> {
        self.stations.as_ref().map(|stations| stations.report(self.time()))
    }

    /// Returns true if a node's station is the adversary's.
    pub(crate) fn station_captured(&self, node: NodeId) -> bool {
        self.stations.as_ref().is_some_and(|stations| stations.captured(node))
    }

    /// The station of a node follows a step of the node's machine.
    pub(crate) fn follow_step(&mut self, step: &Step) {
        let (now, node) = (self.time(), step.node);
        let Some(mut stations) = self.stations.take() else { return };
        if let NodeId::Leader(ordinal) = node
            && step
                .events()
                .any(|event| matches!(event, NodeEvent::Leader(LeaderEvent::EpochActivated { .. })))
            && let Some(members) = self.roster(ordinal)
        {
            stations.set_members(now, ordinal, members);
        }
        if !self.alive(node) {
            stations.remove(node);
        } else if !matches!(node, NodeId::Kgc(_) | NodeId::Relay(_)) {
            let clock = self.clock(node);
            let keys = match node {
                NodeId::Edge(number) => {
                    let edge = self.edge(number).and_then(|edge| edge.named());
                    edge.and_then(|edge| edge.epoch_keys(clock))
                }
                NodeId::Leader(ordinal) => self.leader(ordinal).and_then(|leader| leader.epoch_keys(clock)),
                NodeId::Kgc(_) | NodeId::Relay(_) => None,
            };
            stations.follow(now, node, keys, self.setup.sabotage);
            // Questions about the epoch may wait: the machine has just been asked.
            let questions = stations.take_events(now, node);
            self.answer(&mut stations, node, questions);
            self.plan_station(&mut stations, node, now);
        }
        self.stations = Some(stations);
    }

    /// The members of a leader's newest epoch, with their slots.
    fn roster(&self, leader: u16) -> Option<BTreeMap<NodeId, Slot>> {
        let edge = |name: &str| Some(NodeId::Edge(name.strip_prefix("edge-")?.parse().ok()?));
        let members = self.leader(leader)?.members();
        Some(members.filter_map(|(slot, name)| Some((edge(name.as_str())?, slot))).collect())
    }

    /// Takes an event of the datagrams off the queue.
    pub(crate) fn take_datagram(&mut self, observer: &mut dyn StepObserver<S>) {
        let Some(queued) = self.queue.pop() else { return };
        let node = self.nodes.node(queued.event.node as usize);
        let Some(mut stations) = self.stations.take() else { return };
        let now = self.time();
        let asks = match queued.event.event {
            WorldEvent::Station => self.serve_station(&mut stations, node, queued.at),
            WorldEvent::Datagram { number, bytes } => {
                stations.receive(now, node, number, &bytes);
                let questions = stations.take_events(now, node);
                stations.note_unopened(now, node, number);
                let asks = self.answer(&mut stations, node, questions);
                self.plan_station(&mut stations, node, now);
                asks
            }
            _ => false,
        };
        let asks = asks && !stations.captured(node);
        self.stations = Some(stations);
        // §20.8: there may be a newer epoch: the member asks its leader.
        if let NodeId::Edge(edge) = node
            && asks
            && let Some(step) = self.submit_to_edge(edge, EdgeCommand::CatchUp, "catch up")
        {
            self.apply_effects(&step);
            observer.on_step(self, &step);
        }
        self.report_hops(observer);
    }

    /// Serves a station whose time has come. Says whether it asks about the epoch.
    fn serve_station(&mut self, stations: &mut Stations<S>, node: NodeId, due: u64) -> bool {
        let now = self.time();
        match stations.get_mut(node) {
            Some(station) if station.wake == due => station.wake = quiver_testbed::NEVER,
            _ => return false,
        }
        stations.serve(now, node);
        if let Some((outgoing, number)) = stations.poll(now, node) {
            self.broadcast_datagram(stations, node, outgoing, number);
        }
        let questions = stations.take_events(now, node);
        let asks = self.answer(stations, node, questions);
        self.plan_station(stations, node, now + PAUSE);
        asks
    }

    /// Answers a station's questions from its member's machine. Says whether it asks about the epoch.
    fn answer(
        &mut self,
        stations: &mut Stations<S>,
        node: NodeId,
        questions: Vec<StationQuestion<S>>,
    ) -> bool {
        let (now, clock) = (self.time(), self.clock(node));
        let mut asks = false;
        for question in questions {
            match question {
                StationQuestion::Epoch => asks = true,
                StationQuestion::Signing(DatagramsEvent::SignatureWanted(request)) => {
                    let (statement, rng) = (&request.statement, stations.rng());
                    let signature = match node {
                        NodeId::Edge(number) => self
                            .edge(number)
                            .and_then(|edge| edge.named())
                            .and_then(|edge| edge.sign_datagram(statement, rng)),
                        NodeId::Leader(ordinal) => {
                            self.leader(ordinal).and_then(|leader| leader.sign_datagram(statement, rng))
                        }
                        NodeId::Kgc(_) | NodeId::Relay(_) => None,
                    };
                    if let (Some(signature), Some(station)) = (signature, stations.get_mut(node)) {
                        station.datagrams().provide_signature(now, request.id, &signature);
                    }
                }
                StationQuestion::Signing(DatagramsEvent::SignerAnnounced { slot, drone }) => {
                    let may = match node {
                        NodeId::Edge(number) => self
                            .edge(number)
                            .and_then(|edge| edge.named())
                            .is_some_and(|edge| edge.may_sign_datagrams(clock, slot, &drone).is_ok()),
                        NodeId::Leader(ordinal) => self
                            .leader(ordinal)
                            .is_some_and(|leader| leader.may_sign_datagrams(clock, slot, &drone).is_ok()),
                        NodeId::Kgc(_) | NodeId::Relay(_) => false,
                    };
                    if let Some(station) = stations.get_mut(node).filter(|_| may) {
                        station.datagrams().allow_signer(now, slot, &drone.handle());
                    }
                }
                StationQuestion::Signing(_) => {}
            }
        }
        asks
    }

    /// A broadcast of a station's datagram to all others.
    fn broadcast_datagram(
        &mut self,
        stations: &mut Stations<S>,
        from: NodeId,
        outgoing: OutgoingDatagram,
        number: u64,
    ) {
        let now = self.time();
        let (bytes, number, class) = match outgoing {
            OutgoingDatagram::Payloads(bytes, _) if stations.captured(from) => {
                (bytes, number, DatagramClass::Hostile)
            }
            OutgoingDatagram::Payloads(bytes, _) => (bytes, number, DatagramClass::Payloads),
            OutgoingDatagram::Announcement(bytes) => (bytes, UNNUMBERED, DatagramClass::Announcement),
            OutgoingDatagram::Hostile(bytes) => (bytes, UNNUMBERED, DatagramClass::Hostile),
        };
        let announcement = class == DatagramClass::Announcement;
        let bytes: Arc<[u8]> = bytes.into();
        if let Some(trace) = &mut self.trace {
            trace.update(self.now.to_be_bytes());
            trace.update(self.nodes.index(from).to_be_bytes());
            trace.update(&bytes);
        }
        let flight = self.air.as_mut().map(|air| air.datagram(now, from, bytes.len(), announcement));
        let after = flight.map(|flight| flight.after).unwrap_or_default();
        if let Some(station) = stations.get_mut(from) {
            station.free = now + after;
        }
        let at = self.now.saturating_add(nanos(after));
        let mut lost = Vec::new();
        for to in stations.nodes() {
            if to == from {
                continue;
            }
            let heard = match (&flight, &mut self.air) {
                (Some(flight), Some(air)) => air.datagram_reaches(flight, to),
                _ => true,
            };
            if !heard || !self.carry_datagram(stations, (from, to), at, number, &bytes) {
                stations.note_lost(number, to);
                lost.push(to);
            }
        }
        stations.note_transmitted(now, from, DatagramEventKind::Transmitted { bytes, class, lost });
    }

    /// Hands a datagram to the network. Says whether it arrives as it was sent.
    fn carry_datagram(
        &mut self,
        stations: &mut Stations<S>,
        (from, to): (NodeId, NodeId),
        at: u64,
        number: u64,
        bytes: &Arc<[u8]>,
    ) -> bool {
        let (before, receiver) = (self.network.traffic(), self.number(to));
        let queue = &mut self.queue;
        let mut arrives = false;
        self.network.carry(from, to, bytes, &mut |arrival| {
            let intact = arrival.payload == *bytes;
            arrives |= intact;
            let number = if intact { number } else { UNNUMBERED };
            let due = WorldEvent::Datagram { number, bytes: arrival.payload };
            queue.push(at.saturating_add(arrival.after), receiver, due);
        });
        add(&mut stations.traffic, &self.network.traffic(), &before);
        arrives
    }

    /// Plans when a station is served next, not before a time.
    fn plan_station(&mut self, stations: &mut Stations<S>, node: NodeId, earliest: Duration) {
        let Some(deadline) = stations.deadline(self.time(), node) else { return };
        let at = nanos(deadline.max(earliest));
        let number = self.number(node);
        if let Some(station) = stations.get_mut(node).filter(|station| at < station.wake) {
            station.wake = at;
            self.queue.push(at, number, WorldEvent::Station);
        }
    }

    /// The adversary takes a vehicle's station.
    pub(crate) fn capture_station(&mut self, edge: u32) {
        if let Some(stations) = &mut self.stations {
            stations.capture(NodeId::Edge(edge));
        }
    }

    /// Tells an observer what stations sealed and opened since it was last told.
    pub(crate) fn report_datagrams(&mut self, observer: &mut dyn StepObserver<S>) {
        let events = self.stations.as_mut().map(|stations| stations.events()).unwrap_or_default();
        for event in events {
            observer.on_datagram(self, &event);
        }
    }
}

/// Adds what came to a network's traffic since it was `before`.
fn add(sum: &mut Traffic, after: &Traffic, before: &Traffic) {
    sum.sent += after.sent - before.sent;
    sum.bytes += after.bytes - before.bytes;
    sum.lost += after.lost - before.lost;
    sum.duplicated += after.duplicated - before.duplicated;
    sum.corrupted += after.corrupted - before.corrupted;
}
