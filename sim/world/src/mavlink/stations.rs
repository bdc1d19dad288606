//! All stations of a world: who is a member, which system id each has, what is on its way.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quiver_ainq::{Deployment, EpochKeys, LEADER_SLOT, Slot, Suite};
use quiver_datagram::{Config, Datagrams, Event};
use quiver_mavlink::{SystemIds, batch};
use rand_chacha::ChaCha8Rng;

use super::station::{Offered, OutgoingDatagram, Station};
use super::stream::{Stream, system_in_text};
use super::tally::{MavlinkReport, Tally};
use super::{DatagramEvent, DatagramEventKind, HEARTBEAT, HEARTBEAT_EVERY, MavlinkSetup};
use crate::NodeId;
use crate::fleet::edge_name;
use crate::step::Sabotage;

/// Numbers of datagrams whose payloads are remembered: far more than are on their way at any time.
const IN_FLIGHT: u64 = 8_192;
/// The system id of the first leader; the next has one less.
const GROUND_STATION: u32 = 255;
/// The most edges and leaders: their system ids are 1 to 250.
pub(crate) const MAX_STATIONS: usize = quiver_mavlink::MAX_NARROW_SYSTEM_IDS;

/// A question of a station to its member's machine.
pub(crate) enum StationQuestion<S: Suite> {
    /// Perhaps there is a newer epoch.
    Epoch,
    /// An answerable event of the datagrams: something to sign, or a signer to judge.
    Signing(Event<S>),
}

/// Payloads of a datagram on its way.
struct DatagramInFlight {
    sender: NodeId,
    payloads: Vec<Vec<u8>>,
}

/// All stations.
pub(crate) struct Stations<S: Suite> {
    setup: MavlinkSetup,
    config: Config,
    deployment: Deployment<S>,
    edges: u32,
    stations: BTreeMap<NodeId, Station<S>>,
    /// Numbers with which the streams of nodes that were switched off go on.
    frame_numbers: BTreeMap<NodeId, u32>,
    /// Edges and leaders of the newest epoch.
    members: BTreeSet<NodeId>,
    /// System ids that the leader granted; all members are taken to know them.
    system_ids: SystemIds,
    flights: BTreeMap<u64, DatagramInFlight>,
    next_number: u64,
    tally: Tally,
    /// Events that no observer was told of yet.
    events: Vec<DatagramEvent>,
    rng: ChaCha8Rng,
}

impl<S: Suite> Stations<S> {
    pub(crate) fn new(
        setup: MavlinkSetup,
        config: Config,
        deployment: Deployment<S>,
        (edges, leaders): (u32, u16),
        rng: ChaCha8Rng,
    ) -> Self {
        let mut system_ids = SystemIds::new();
        for node in (0..edges).map(NodeId::Edge).chain((0..leaders).map(NodeId::Leader)) {
            // The setup was checked: there are enough.
            let _ = system_ids.grant(&name(node), system_of(node));
        }
        Self {
            setup,
            config,
            deployment,
            edges,
            stations: BTreeMap::new(),
            frame_numbers: BTreeMap::new(),
            members: BTreeSet::new(),
            system_ids,
            flights: BTreeMap::new(),
            next_number: 0,
            tally: Tally::default(),
            events: Vec::new(),
            rng,
        }
    }

    pub(crate) fn get_mut(&mut self, node: NodeId) -> Option<&mut Station<S>> {
        self.stations.get_mut(&node)
    }

    /// The nodes with a station.
    pub(crate) fn nodes(&self) -> Vec<NodeId> {
        self.stations.keys().copied().collect()
    }

    pub(crate) fn rng(&mut self) -> &mut ChaCha8Rng {
        &mut self.rng
    }

    /// A leader made an epoch with these members.
    pub(crate) fn set_members(&mut self, now: Duration, leader: u16, members: BTreeMap<NodeId, Slot>) {
        let mut next: BTreeSet<NodeId> = members.keys().copied().collect();
        next.insert(NodeId::Leader(leader));
        let gone: Vec<NodeId> = self.members.difference(&next).copied().collect();
        for node in &gone {
            self.system_ids.set_slot(&name(*node), None);
            self.tally.forget(*node);
        }
        if !gone.is_empty() {
            self.tally.removal = Some(now);
        }
        self.system_ids.set_slot(&name(NodeId::Leader(leader)), Some(LEADER_SLOT));
        for (node, slot) in members {
            self.system_ids.set_slot(&name(node), Some(slot));
        }
        self.members = next;
    }

    /// A member's machine took a step: its epoch now, or none.
    pub(crate) fn follow(
        &mut self,
        now: Duration,
        node: NodeId,
        keys: Option<EpochKeys<S>>,
        sabotage: Sabotage,
    ) {
        if keys.is_some() && !self.stations.contains_key(&node) {
            let station = self.station(now, node);
            self.stations.insert(node, station);
        }
        let Some(station) = self.stations.get_mut(&node) else { return };
        if sabotage == Sabotage::ForgetDatagrams && matches!(node, NodeId::Leader(_)) {
            station.forget(Datagrams::new(self.config, self.deployment.clone()));
        }
        station.follow(now, keys, sabotage == Sabotage::KeepDatagramKey, &mut self.rng);
    }

    /// A station whose stream begins somewhere in its first second.
    fn station(&self, now: Duration, node: NodeId) -> Station<S> {
        let (every, lens, first) = match node {
            NodeId::Edge(number) => {
                let offset = self.setup.frame_every * number / self.edges.max(1);
                (self.setup.frame_every, self.setup.frame_bytes.clone(), now + offset)
            }
            _ => (HEARTBEAT_EVERY, vec![HEARTBEAT], now),
        };
        let number = self.frame_numbers.get(&node).copied().unwrap_or_default();
        let stream = Stream::new((system_of(node), number), every, lens, first);
        Station::new(Datagrams::new(self.config, self.deployment.clone()), stream)
    }

    /// The node was switched off: its station is gone, and with it what it knew.
    pub(crate) fn remove(&mut self, node: NodeId) {
        if let Some(station) = self.stations.remove(&node) {
            station.book(&mut self.tally.report);
            self.frame_numbers.insert(node, station.frame_number());
            self.tally.forget(node);
        }
    }

    /// The adversary has this station from now on.
    pub(crate) fn capture(&mut self, node: NodeId) {
        if let Some(station) = self.stations.get_mut(&node) {
            station.captured = true;
        }
    }

    /// Returns true if the adversary has this node's station.
    pub(crate) fn captured(&self, node: NodeId) -> bool {
        self.stations.get(&node).is_some_and(|station| station.captured)
    }

    /// Does what is due at a station.
    pub(crate) fn serve(&mut self, now: Duration, node: NodeId) {
        let Some(station) = self.stations.get_mut(&node) else { return };
        match station.serve(now, &mut self.rng) {
            Some(Offered::Taken) => self.tally.report.offered += 1,
            Some(Offered::NoKey) => self.tally.report.without_key += 1,
            None => {}
        }
    }

    /// The next datagram of a station for the radio, with the number under which its payloads are remembered.
    pub(crate) fn poll(&mut self, now: Duration, node: NodeId) -> Option<(OutgoingDatagram, u64)> {
        let station = self.stations.get_mut(&node)?;
        let outgoing = station.poll(now)?;
        let outside = station.captured && !self.members.contains(&node);
        let report = &mut self.tally.report;
        match &outgoing {
            _ if outside => report.hostile += 1,
            OutgoingDatagram::Hostile(_) => report.hostile += 1,
            OutgoingDatagram::Announcement(bytes) => {
                report.announcements += 1;
                report.announcement_bytes += bytes.len() as u64;
            }
            OutgoingDatagram::Payloads(bytes, payloads) => {
                report.datagrams += 1;
                report.datagram_bytes += bytes.len() as u64;
                report.sent += payloads.len() as u64;
                let frames = payloads.iter().flat_map(|payload| batch::decode(payload, system_of(node)));
                report.frame_bytes += frames.flatten().map(|frame| frame.len() as u64).sum::<u64>();
            }
        }
        let number = self.next_number;
        self.next_number += 1;
        if let (OutgoingDatagram::Payloads(_, payloads), Some((epoch, slot))) = (&outgoing, station.sealing) {
            let kind = DatagramEventKind::Sealed { epoch, slot, payloads: payloads.clone() };
            self.events.push(DatagramEvent { at: now, node, kind });
            self.flights.insert(number, DatagramInFlight { sender: node, payloads: payloads.clone() });
            self.flights.remove(&number.wrapping_sub(IN_FLIGHT));
        }
        Some((outgoing, number))
    }

    /// Returns true if what one sends is for the other.
    fn is_due(&self, sender: NodeId, receiver: NodeId) -> bool {
        self.members.contains(&sender) && self.members.contains(&receiver)
    }

    /// The radio did not bring a datagram to a station.
    pub(crate) fn note_lost(&mut self, number: u64, receiver: NodeId) {
        if let Some(flight) = self.flights.get(&number)
            && self.is_due(flight.sender, receiver)
        {
            self.tally.report.lost += flight.payloads.len() as u64;
        }
    }

    /// The radio brought a datagram to a station.
    pub(crate) fn receive(&mut self, now: Duration, node: NodeId, number: u64, bytes: &[u8]) {
        let flight = self.flights.get(&number).filter(|flight| self.is_due(flight.sender, node));
        let Some(station) = self.stations.get_mut(&node) else { return };
        let flight = flight.filter(|_| station.seen.insert(number));
        if let Some(flight) = flight {
            let arrival = self.tally.arrival(now, flight.sender, node);
            self.tally.report.arrived += flight.payloads.len() as u64;
            station.unopened.extend(flight.payloads.iter().map(|payload| (payload.clone(), arrival)));
        }
        station.receive(now, bytes);
    }

    /// Notes payloads of this datagram that are not opened, after the events of a reception were taken.
    pub(crate) fn note_unopened(&mut self, now: Duration, node: NodeId, number: u64) {
        let (Some(flight), Some(station)) = (self.flights.get(&number), self.stations.get(&node)) else {
            return;
        };
        if self.is_due(flight.sender, node)
            && flight.payloads.iter().any(|payload| station.unopened.contains_key(payload))
        {
            self.tally.pair(flight.sender, node).since.get_or_insert(now);
        }
    }

    /// Takes what a station's datagrams have to say. Gives what they ask.
    pub(crate) fn take_events(&mut self, now: Duration, node: NodeId) -> Vec<StationQuestion<S>> {
        let mut questions = Vec::new();
        while let Some(event) = self.stations.get_mut(&node).and_then(Station::poll_event) {
            match event {
                Event::Received { slot, bytes, .. } => self.opened(now, node, slot, &bytes),
                Event::EpochWanted => questions.push(StationQuestion::Epoch),
                Event::SignatureWanted(_) | Event::SignerAnnounced { .. } => {
                    questions.push(StationQuestion::Signing(event));
                }
                Event::Impostor { .. } | Event::TooManyForgeries { .. } => self.tally.report.suspicions += 1,
            }
        }
        questions
    }

    /// A payload was opened: its frames go to the programs beside the station.
    fn opened(&mut self, now: Duration, node: NodeId, slot: Slot, payload: &[u8]) {
        let kind = DatagramEventKind::Opened { slot, payload: payload.to_vec() };
        self.events.push(DatagramEvent { at: now, node, kind });
        let Some(system) = self.system_ids.of_slot(slot) else {
            self.tally.report.without_system_id += 1;
            return;
        };
        let Some(station) = self.stations.get_mut(&node) else { return };
        let awaited = station.unopened.remove(payload).is_some();
        let frames = batch::decode(payload, system).unwrap_or_default();
        let genuine = frames.iter().all(|frame| system_in_text(frame) == Some(system));
        if awaited && genuine && !frames.is_empty() {
            self.tally.report.delivered += 1;
            self.tally.opened(now, node_of(system, self.edges), node);
        }
    }

    /// Time at which a station is to be served next.
    pub(crate) fn deadline(&self, now: Duration, node: NodeId) -> Option<Duration> {
        Some(self.stations.get(&node)?.deadline(now))
    }

    /// A station sent a datagram to all others.
    pub(crate) fn note_transmitted(&mut self, now: Duration, node: NodeId, kind: DatagramEventKind) {
        self.events.push(DatagramEvent { at: now, node, kind });
    }

    /// Events since this was last called.
    pub(crate) fn events(&mut self) -> Vec<DatagramEvent> {
        std::mem::take(&mut self.events)
    }

    /// Counts of the frames so far by outcome.
    pub(crate) fn report(&self, now: Duration) -> MavlinkReport {
        let mut tally = self.tally.clone();
        self.stations.values().for_each(|station| station.book(&mut tally.report));
        tally.finish(now)
    }
}

fn name(node: NodeId) -> String {
    match node {
        NodeId::Edge(number) => edge_name(number).to_string(),
        other => other.to_string(),
    }
}

/// Edges from 1 on, leaders from the other end.
pub(crate) fn system_of(node: NodeId) -> u32 {
    match node {
        NodeId::Leader(ordinal) => GROUND_STATION.saturating_sub(ordinal.into()),
        NodeId::Edge(number) => number + 1,
        NodeId::Kgc(_) | NodeId::Relay(_) => 0,
    }
}

fn node_of(system: u32, edges: u32) -> NodeId {
    match system {
        number if number <= edges => NodeId::Edge(number.saturating_sub(1)),
        _ => NodeId::Leader(u16::try_from(GROUND_STATION.saturating_sub(system)).unwrap_or(u16::MAX)),
    }
}
