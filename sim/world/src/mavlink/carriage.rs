//! The group's datagrams in the world: from a station to the radio, over the channel, to the others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quiver_ainq::{Slot, Suite};
use quiver_datagram::Event as DatagramsEvent;
use quiver_group::LeaderEvent;
use quiver_testbed::nanos;
use sha2::Digest;

use super::station::OutgoingDatagram;
use super::stations::{StationQuestion, Stations};
use super::{DatagramClass, DatagramEvent, DatagramEventKind, MavlinkReport, MavlinkSetup};
use crate::event_queue::{QueuedEvent, WorldEvent};
use crate::rng_stream::{self, RngStream};
use crate::world::{Acted, WorldFeature, WorldKernel};
use crate::{Action, Fleet, NodeEvent, NodeId, Setup, Step};

/// No number of a datagram whose payloads are remembered.
const UNNUMBERED: u64 = u64::MAX;
/// A station that has something to do but cannot now is served again after this at the earliest.
const PAUSE: Duration = Duration::from_micros(1);

/// Stations of MAVLink telemetry in the group's datagrams; `None` if no drone sends any.
pub(crate) struct Telemetry<S: Suite>(Option<Box<Stations<S>>>);

impl<S: Suite> Telemetry<S> {
    pub(crate) fn new(setup: &Setup, fleet: &Fleet<S>) -> Self {
        Self(setup.mavlink.clone().map(|mavlink| Box::new(stations(mavlink, setup, fleet))))
    }

    /// Counts of the telemetry so far by outcome, if there is any.
    pub(crate) fn report(&self, now: Duration) -> Option<MavlinkReport> {
        self.0.as_ref().map(|stations| stations.report(now))
    }

    /// Returns true if a node's station is the adversary's.
    pub(crate) fn captured(&self, node: NodeId) -> bool {
        self.0.as_ref().is_some_and(|stations| stations.captured(node))
    }

    /// Datagrams that stations sealed and opened since this was last asked.
    pub(crate) fn events(&mut self) -> Vec<DatagramEvent> {
        self.0.as_mut().map(|stations| stations.events()).unwrap_or_default()
    }

    /// Takes an event of the datagrams. Says whether the member must ask its leader about the epoch.
    pub(crate) fn take_event(
        &mut self,
        kernel: &mut WorldKernel<S>,
        node: NodeId,
        queued: QueuedEvent,
    ) -> bool {
        let Some(stations) = &mut self.0 else { return false };
        let now = kernel.time();
        let asks = match queued.event.event {
            WorldEvent::Station => serve_station(kernel, stations, node, queued.at),
            WorldEvent::Datagram { number, bytes } => {
                stations.receive(now, node, number, &bytes);
                let questions = stations.take_events(now, node);
                stations.note_unopened(now, node, number);
                let asks = answer(kernel, stations, node, questions);
                plan_station(kernel, stations, node, now);
                asks
            }
            _ => false,
        };
        asks && !stations.captured(node)
    }
}

impl<S: Suite> WorldFeature<S> for Telemetry<S> {
    /// The state that the adversary captures is for the observer, but a captured vehicle's radio is the adversary's.
    fn act(&mut self, _: &mut WorldKernel<S>, action: &Action, _: &mut Vec<Step>) -> Acted {
        if let (Action::Capture(edge), Some(stations)) = (action, &mut self.0) {
            stations.capture(NodeId::Edge(*edge));
        }
        Acted::Pass
    }

    fn on_stop(&mut self, node: NodeId) {
        if let Some(stations) = &mut self.0 {
            stations.remove(node);
        }
    }

    /// The station of a node follows a step of the node's machine.
    fn on_step(&mut self, kernel: &mut WorldKernel<S>, step: &Step) {
        let Some(stations) = &mut self.0 else { return };
        let (now, node) = (kernel.time(), step.node);
        if let NodeId::Leader(ordinal) = node
            && step
                .events()
                .any(|event| matches!(event, NodeEvent::Leader(LeaderEvent::EpochActivated { .. })))
            && let Some(members) = roster(kernel, ordinal)
        {
            stations.set_members(now, ordinal, members);
        }
        if !kernel.alive(node) {
            return stations.remove(node);
        }
        let clock = kernel.clock(node);
        let keys = match node {
            NodeId::Edge(number) => {
                let edge = kernel.edge(number).and_then(|edge| edge.named());
                edge.and_then(|edge| edge.epoch_keys(clock))
            }
            NodeId::Leader(ordinal) => kernel.leader(ordinal).and_then(|leader| leader.epoch_keys(clock)),
            NodeId::Kgc(_) | NodeId::Relay(_) => return,
        };
        stations.follow(now, node, keys, kernel.setup().sabotage);
        // Questions about the epoch may wait: the machine has just been asked.
        let questions = stations.take_events(now, node);
        answer(kernel, stations, node, questions);
        plan_station(kernel, stations, node, now);
    }
}

/// The stations of a world.
fn stations<S: Suite>(mavlink: MavlinkSetup, setup: &Setup, fleet: &Fleet<S>) -> Stations<S> {
    let (edges, leaders) = (setup.members + setup.strangers, setup.leaders);
    let profile = setup.air.as_ref().map(|air| &air.profile);
    let config = mavlink.config(profile, edges + u32::from(leaders));
    let rng = rng_stream::generator(setup.seed, RngStream::Datagrams);
    Stations::new(mavlink, config, fleet.deployment().clone(), (edges, leaders), rng)
}

/// The members of a leader's newest epoch, with their slots.
fn roster<S: Suite>(kernel: &WorldKernel<S>, leader: u16) -> Option<BTreeMap<NodeId, Slot>> {
    let edge = |name: &str| Some(NodeId::Edge(name.strip_prefix("edge-")?.parse().ok()?));
    let members = kernel.leader(leader)?.members();
    Some(members.filter_map(|(slot, name)| Some((edge(name.as_str())?, slot))).collect())
}

/// Serves a station whose time has come. Says whether it asks about the epoch.
fn serve_station<S: Suite>(
    kernel: &mut WorldKernel<S>,
    stations: &mut Stations<S>,
    node: NodeId,
    due: u64,
) -> bool {
    let now = kernel.time();
    match stations.get_mut(node) {
        Some(station) if station.wake == due => station.wake = quiver_testbed::NEVER,
        _ => return false,
    }
    stations.serve(now, node);
    if let Some((outgoing, number)) = stations.poll(now, node) {
        broadcast_datagram(kernel, stations, node, outgoing, number);
    }
    let questions = stations.take_events(now, node);
    let asks = answer(kernel, stations, node, questions);
    plan_station(kernel, stations, node, now + PAUSE);
    asks
}

/// Answers a station's questions from its member's machine. Says whether it asks about the epoch.
fn answer<S: Suite>(
    kernel: &WorldKernel<S>,
    stations: &mut Stations<S>,
    node: NodeId,
    questions: Vec<StationQuestion<S>>,
) -> bool {
    let (now, clock) = (kernel.time(), kernel.clock(node));
    let mut asks = false;
    for question in questions {
        match question {
            StationQuestion::Epoch => asks = true,
            StationQuestion::Signing(DatagramsEvent::SignatureWanted(request)) => {
                let (statement, rng) = (&request.statement, stations.rng());
                let signature = match node {
                    NodeId::Edge(number) => kernel
                        .edge(number)
                        .and_then(|edge| edge.named())
                        .and_then(|edge| edge.sign_datagram(statement, rng)),
                    NodeId::Leader(ordinal) => {
                        kernel.leader(ordinal).and_then(|leader| leader.sign_datagram(statement, rng))
                    }
                    NodeId::Kgc(_) | NodeId::Relay(_) => None,
                };
                if let (Some(signature), Some(station)) = (signature, stations.get_mut(node)) {
                    station.datagrams().provide_signature(now, request.id, &signature);
                }
            }
            StationQuestion::Signing(DatagramsEvent::SignerAnnounced { slot, drone }) => {
                let may = match node {
                    NodeId::Edge(number) => kernel
                        .edge(number)
                        .and_then(|edge| edge.named())
                        .is_some_and(|edge| edge.may_sign_datagrams(clock, slot, &drone).is_ok()),
                    NodeId::Leader(ordinal) => kernel
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
fn broadcast_datagram<S: Suite>(
    kernel: &mut WorldKernel<S>,
    stations: &mut Stations<S>,
    from: NodeId,
    outgoing: OutgoingDatagram,
    number: u64,
) {
    let (now, now_nanos) = (kernel.time(), kernel.timeline.now());
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
    let place = kernel.index().index(from);
    if let Some(trace) = &mut kernel.trace {
        trace.update(now_nanos.to_be_bytes());
        trace.update(place.to_be_bytes());
        trace.update(&bytes);
    }
    let flight = kernel.wire.air.as_mut().map(|air| air.datagram(now, from, bytes.len(), announcement));
    let after = flight.map(|flight| flight.after).unwrap_or_default();
    if let Some(station) = stations.get_mut(from) {
        station.free = now + after;
    }
    let at = now_nanos.saturating_add(nanos(after));
    let due = |intact: bool, bytes| {
        let number = if intact { number } else { UNNUMBERED };
        WorldEvent::Datagram { number, bytes }
    };
    let mut lost = Vec::new();
    for to in stations.nodes() {
        if to == from {
            continue;
        }
        let heard = match (&flight, &mut kernel.wire.air) {
            (Some(flight), Some(air)) => air.datagram_reaches(flight, to),
            _ => true,
        };
        if !heard || !kernel.wire.carry_datagram(&mut kernel.timeline, at, (from, to), &bytes, &due) {
            stations.note_lost(number, to);
            lost.push(to);
        }
    }
    stations.note_transmitted(now, from, DatagramEventKind::Transmitted { bytes, class, lost });
}

/// Plans when a station is served next, not before a time.
fn plan_station<S: Suite>(
    kernel: &mut WorldKernel<S>,
    stations: &mut Stations<S>,
    node: NodeId,
    earliest: Duration,
) {
    let Some(deadline) = stations.deadline(kernel.time(), node) else { return };
    let at = nanos(deadline.max(earliest));
    if let Some(station) = stations.get_mut(node).filter(|station| at < station.wake) {
        station.wake = at;
        kernel.timeline.push(at, node, WorldEvent::Station);
    }
}
