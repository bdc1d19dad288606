//! A leader with relays: every drone behind one is a peer of its own.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use prost::Message as _;
use quiver_ainq::Slot;
use quiver_machine::{
    Destination, FinishedJob, Input, Job, Machine, Misdeed, Now, Output, Peer, RelayedBroadcast, Route, Via,
    earlier,
};
use rand_core::CryptoRngCore;

use crate::session::{RETRANSMIT_TIMEOUT, ReceivedBatch, RelaySession, WINDOW, ended};
use crate::wire::{End, FrameBody, MAX_PAYLOAD, RelayBatch, RelayFrame, frame, frames};

/// Limits of the relays of a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayLimits {
    /// Peers behind one relay at a time, strangers included.
    pub drones: usize,
    /// Time after which what a relay does not confirm is sent again; after the third time its drones count as
    /// disconnected.
    pub resend: Duration,
}

impl Default for RelayLimits {
    fn default() -> Self {
        // Twice as many as the drones of the largest relay, because strangers have places there, too.
        Self { drones: 32_768, resend: RETRANSMIT_TIMEOUT }
    }
}

/// A drone behind a relay.
#[derive(Debug)]
struct RelayedDrone {
    peer: Peer,
    /// The slot that the relay was told.
    slot: Option<Slot>,
    /// True if the drone's messages are ignored because it is to be disconnected.
    closed: bool,
}

/// A connected relay.
#[derive(Debug, Default)]
struct ConnectedRelay {
    session: Option<RelaySession>,
    /// Id of the session before this one, which does not come back.
    previous: u64,
    drones: BTreeMap<u32, RelayedDrone>,
}

impl ConnectedRelay {
    /// Says that a number is no drone's; as long as the relay takes nothing, once, and of no more numbers than it may
    /// have drones.
    fn refuse(&mut self, number: u32, limits: RelayLimits) {
        let has_room = |it: &&mut RelaySession| it.queue.drones() < limits.drones && !it.queue.holds(number);
        if let Some(session) = self.session.as_mut().filter(has_room) {
            session.queue.push(number, frame(number, FrameBody::Closed(End::Plain as u32)));
        }
    }
}

/// A machine whose peers may be behind relays.
///
/// Connections of [`Route::Relay`] are its own. The drones behind them are inbound peers of the machine inside,
/// with handles of their own, so that whatever the machine bounds or remembers of a peer holds for each of them.
#[derive(derive_more::Debug, derive_more::Deref)]
#[debug("WithRelays {{ relays: {}, inner: {inner:?} }}", relays.len())]
pub struct WithRelays<M: Machine> {
    #[deref]
    inner: M,
    limits: RelayLimits,
    now: Duration,
    relays: BTreeMap<Peer, ConnectedRelay>,
    /// The relay of each peer behind one, and its number there.
    homes: BTreeMap<Peer, (Peer, u32)>,
    last: u64,
    out: VecDeque<Output<M::Event, M::Record>>,
}

impl<M: Machine> From<M> for WithRelays<M> {
    fn from(inner: M) -> Self {
        Self::new(inner, RelayLimits::default())
    }
}

impl<M: Machine> WithRelays<M> {
    /// Puts relays before a machine.
    pub const fn new(inner: M, limits: RelayLimits) -> Self {
        Self {
            inner,
            limits,
            now: Duration::ZERO,
            relays: BTreeMap::new(),
            homes: BTreeMap::new(),
            last: 0,
            out: VecDeque::new(),
        }
    }

    /// Returns the machine; what was to be sent to relays is lost.
    pub fn into_inner(self) -> M {
        self.inner
    }

    /// The machine, to be changed.
    pub const fn inner_mut(&mut self) -> &mut M {
        &mut self.inner
    }

    /// Number of connected relays, and of the drones behind them.
    #[must_use]
    pub fn relayed(&self) -> (usize, usize) {
        (self.relays.len(), self.homes.len())
    }

    /// The relay that a peer is behind.
    #[must_use]
    pub fn relay_of(&self, peer: Peer) -> Option<Peer> {
        self.homes.get(&peer).map(|(relay, _)| *relay)
    }

    /// §21.4: the drones of a session that is over are no longer connected.
    fn end_session(&mut self, now: Now, relay: Peer, rng: &mut dyn CryptoRngCore) {
        let Some(known) = self.relays.get_mut(&relay) else { return };
        if let Some(session) = known.session.take() {
            known.previous = session.id;
        }
        for drone in std::mem::take(&mut known.drones).into_values() {
            self.homes.remove(&drone.peer);
            self.inner.handle_input(now, Input::Disconnected { peer: drone.peer }, rng);
        }
    }

    fn heard(&mut self, now: Now, relay: Peer, bytes: &[u8], rng: &mut dyn CryptoRngCore) {
        let Ok(batch) = RelayBatch::decode(bytes) else { return };
        let Some(known) = self.relays.get_mut(&relay) else { return };
        let id = batch.session;
        if known.session.as_ref().is_none_or(|session| session.id != id) {
            // §21.2: the first batch of a session begins it. Those that overtake it come again.
            if id != known.previous && (2..=WINDOW as u64).contains(&batch.number) {
                return;
            }
            if batch.number != 1 || id == known.previous {
                return self.send(relay, ended(id));
            }
            self.end_session(now, relay, rng);
            if let Some(known) = self.relays.get_mut(&relay) {
                known.session = Some(RelaySession::new(id, self.limits.resend));
            }
        }
        let Some(session) = self.relays.get_mut(&relay).and_then(|known| known.session.as_mut()) else {
            return;
        };
        match session.receive(now.monotonic, batch) {
            ReceivedBatch::Nothing => {}
            // No honest relay sends that: its drones connect again, in a new session.
            ReceivedBatch::Broken => {
                self.end_session(now, relay, rng);
                self.send(relay, ended(id));
            }
            ReceivedBatch::Frames(bytes) => {
                for frame in frames(&bytes) {
                    // §21.2: a frame that is none ends the session, as what follows it cannot be read.
                    let Some(frame) = frame else {
                        self.end_session(now, relay, rng);
                        return self.send(relay, ended(id));
                    };
                    self.handle(now, relay, frame, rng);
                }
            }
        }
    }

    fn send(&mut self, relay: Peer, payload: Vec<u8>) {
        self.out.push_back(Output::Transmit { to: Destination::Peer(relay), payload });
    }

    fn handle(
        &mut self,
        now: Now,
        relay: Peer,
        RelayFrame { drone, body }: RelayFrame,
        rng: &mut dyn CryptoRngCore,
    ) {
        let Some(known) = self.relays.get_mut(&relay) else { return };
        match body {
            Some(FrameBody::Opened(_)) => {
                // §21.2: a number is used once in a session, so this says nothing new.
                if known.drones.contains_key(&drone) {
                    return;
                }
                // §21.2: at most 32,768 peers behind one relay: each costs the leader memory.
                if known.drones.len() >= self.limits.drones {
                    return known.refuse(drone, self.limits);
                }
                // A new handle for each connection, so that the machine never takes one drone for another.
                self.last += 1;
                let peer = Peer::relayed(self.last);
                known.drones.insert(drone, RelayedDrone { peer, slot: None, closed: false });
                self.homes.insert(peer, (relay, drone));
                self.inner.handle_input(now, Input::Connected { peer, route: Route::Inbound }, rng);
            }
            Some(FrameBody::Data(bytes)) => match known.drones.get(&drone) {
                Some(RelayedDrone { closed: true, .. }) => {}
                Some(RelayedDrone { peer, .. }) => {
                    let input = Input::Received { from: *peer, via: Via::Peer, bytes: &bytes };
                    self.inner.handle_input(now, input, rng);
                }
                // §21.2: the relay has it and this leader does not: *closed* makes the drone connect again.
                None => known.refuse(drone, self.limits),
            },
            Some(FrameBody::Closed(_)) => {
                if let Some(session) = &mut known.session {
                    // Messages that wait for a drone that is gone would only take room of others.
                    session.queue.forget(drone);
                }
                if let Some(RelayedDrone { peer, .. }) = known.drones.remove(&drone) {
                    self.homes.remove(&peer);
                    self.inner.handle_input(now, Input::Disconnected { peer }, rng);
                }
            }
            // These are sent by leaders alone.
            Some(FrameBody::Relayed(_) | FrameBody::Slot(_) | FrameBody::Broadcast(_)) | None => {}
        }
    }

    /// The number of a peer behind a relay, and the session with this.
    fn home(&mut self, peer: Peer) -> Option<(u32, &mut RelaySession, &mut RelayedDrone)> {
        let (relay, number) = *self.homes.get(&peer)?;
        let ConnectedRelay { session, drones, .. } = self.relays.get_mut(&relay)?;
        Some((number, session.as_mut()?, drones.get_mut(&number)?))
    }

    fn transmit(&mut self, to: Peer, payload: Vec<u8>) {
        // §21.2: 2^20 - 64 bytes, so that the frame fits a batch and the batch a message.
        if payload.len() > MAX_PAYLOAD {
            return;
        }
        if let Some((number, session, _)) = self.home(to) {
            // As on any link that is too slow, what there is no room for is lost.
            let _ = session.queue.push_message(number, frame(number, FrameBody::Data(payload)));
        }
    }

    fn close(&mut self, peer: Peer, end: End) {
        // Said once: until the relay confirms by its own *closed*, what still comes of the drone is
        // ignored.
        if let Some((number, session, drone)) = self.home(peer)
            && !std::mem::replace(&mut drone.closed, true)
        {
            session.queue.push(number, frame(number, FrameBody::Closed(end as u32)));
        }
    }

    /// §21.3: tells relays whose part they have to cut, where that has changed, and sends each the whole once.
    fn broadcast(&mut self, RelayedBroadcast { message, members }: &RelayedBroadcast) {
        // Members that miss it ask, and are each sent their own part.
        if message.len() > MAX_PAYLOAD {
            return;
        }
        let mut slots: BTreeMap<Peer, BTreeMap<u32, Slot>> = BTreeMap::new();
        for (peer, slot) in members {
            if let Some((relay, number)) = self.homes.get(peer) {
                slots.entry(*relay).or_default().insert(*number, *slot);
            }
        }
        for (relay, slots) in slots {
            let Some(ConnectedRelay { session: Some(session), drones, .. }) = self.relays.get_mut(&relay)
            else {
                continue;
            };
            for (number, drone) in drones {
                let slot = slots.get(number).copied();
                if drone.slot != slot {
                    drone.slot = slot;
                    let slot = slot.map_or(0, |slot| slot.saturating_add(1));
                    // It goes before the broadcast, which waits for all that waited before.
                    session.queue.push(*number, frame(*number, FrameBody::Slot(slot)));
                }
            }
            session.queue.push_for_all(frame(0, FrameBody::Broadcast(message.clone())));
        }
    }

    /// Takes an output of the machine that is for relays or drones behind them; gives back any other.
    fn route(&mut self, output: Output<M::Event, M::Record>) -> Option<Output<M::Event, M::Record>> {
        match output {
            Output::Transmit { to: Destination::Peer(to), payload } if to.is_relayed() => {
                self.transmit(to, payload);
            }
            Output::Block(peer) if peer.is_relayed() => self.close(peer, End::Blocked),
            Output::Disconnect(peer) if peer.is_relayed() => self.close(peer, End::Plain),
            Output::Penalize { peer, misdeed } if peer.is_relayed() => {
                let end = match misdeed {
                    Misdeed::Forgery => End::Forgery,
                    Misdeed::Garbage => End::Garbage,
                };
                self.close(peer, end);
            }
            Output::Relay { peer, allowed } if peer.is_relayed() => {
                if let Some((number, session, _)) = self.home(peer) {
                    session.queue.push(number, frame(number, FrameBody::Relayed(allowed)));
                }
            }
            // Drones' publications come over their relays, which pass them on as they are told.
            Output::Relay { peer, .. } if self.relays.contains_key(&peer) => {}
            output => return Some(output),
        }
        None
    }
}

impl<M: Machine> Machine for WithRelays<M> {
    type Command = M::Command;
    type Event = M::Event;
    type Record = M::Record;

    fn handle_input(&mut self, now: Now, input: Input<'_, M::Command>, rng: &mut dyn CryptoRngCore) {
        self.now = now.monotonic;
        match input {
            Input::Connected { peer, route: Route::Relay } => {
                self.relays.insert(peer, ConnectedRelay::default());
                // §21.3: a relay is a hub of the topic, so it is sent what the leader publishes.
                self.out.push_back(Output::Relay { peer, allowed: true });
            }
            Input::Disconnected { peer } if self.relays.contains_key(&peer) => {
                self.end_session(now, peer, rng);
                self.relays.remove(&peer);
            }
            Input::Received { from, via: Via::Peer, bytes } if self.relays.contains_key(&from) => {
                self.heard(now, from, bytes, rng);
            }
            input => self.inner.handle_input(now, input, rng),
        }
        // §21.4: sessions whose relay confirms nothing, or for which too much waits, are over.
        let stuck = |(peer, relay): (&Peer, &mut ConnectedRelay)| {
            let session = relay.session.as_mut()?;
            session.tick(now.monotonic).then_some((*peer, session.id))
        };
        for (relay, id) in self.relays.iter_mut().filter_map(stuck).collect::<Vec<_>>() {
            self.end_session(now, relay, rng);
            // Perhaps it is slow, and not gone: it begins anew.
            self.send(relay, ended(id));
        }
    }

    fn poll_output(&mut self) -> Output<M::Event, M::Record> {
        loop {
            if let Some(output) = self.out.pop_front() {
                return output;
            }
            let deadline = match self.inner.poll_output() {
                Output::Timeout(deadline) => deadline,
                output => match self.route(output) {
                    Some(output) => return output,
                    None => continue,
                },
            };
            // The machine's records are durable.
            while let Some(broadcast) = self.inner.take_broadcast() {
                self.broadcast(&broadcast);
            }
            let mut deadline = deadline;
            for (relay, ConnectedRelay { session, .. }) in &mut self.relays {
                let Some(session) = session else { continue };
                while let Some(payload) = session.poll(self.now) {
                    self.out.push_back(Output::Transmit { to: Destination::Peer(*relay), payload });
                }
                deadline = earlier(deadline, session.deadline());
            }
            if self.out.is_empty() {
                return Output::Timeout(deadline);
            }
        }
    }

    fn take_job(&mut self) -> Option<Job> {
        self.inner.take_job()
    }

    fn finish_job(&mut self, now: Now, done: FinishedJob, rng: &mut dyn CryptoRngCore) {
        self.now = now.monotonic;
        self.inner.finish_job(now, done, rng);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;
    use quiver_machine::Misdeed;
    use quiver_testbed::Outputs;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    const RELAY: Peer = Peer(1);
    const LIMITS: RelayLimits = RelayLimits { drones: 3, resend: RETRANSMIT_TIMEOUT };

    /// Sends every message back; blocks who says `block`, and penalises who says `lie`.
    #[derive(Debug, Default)]
    struct Echo {
        connected: Vec<Peer>,
        broadcasts: VecDeque<RelayedBroadcast>,
        out: VecDeque<Output<Infallible, Infallible>>,
    }

    impl Machine for Echo {
        type Command = Infallible;
        type Event = Infallible;
        type Record = Infallible;

        fn handle_input(&mut self, _: Now, input: Input<'_, Infallible>, _: &mut dyn CryptoRngCore) {
            match input {
                Input::Connected { peer, .. } => self.connected.push(peer),
                Input::Disconnected { peer } => self.connected.retain(|other| *other != peer),
                Input::Received { from, bytes, .. } => self.out.push_back(match bytes {
                    b"block" => Output::Block(from),
                    b"lie" => Output::Penalize { peer: from, misdeed: Misdeed::Forgery },
                    bytes => Output::Transmit { to: Destination::Peer(from), payload: bytes.to_vec() },
                }),
                _ => {}
            }
        }

        fn poll_output(&mut self) -> Output<Infallible, Infallible> {
            self.out.pop_front().unwrap_or(Output::Timeout(None))
        }

        fn take_broadcast(&mut self) -> Option<RelayedBroadcast> {
            self.broadcasts.pop_front()
        }
    }

    /// A leader with a relay, played by the test.
    struct Bench {
        machine: WithRelays<Echo>,
        session: RelaySession,
    }

    impl Bench {
        fn new() -> Self {
            let mut bench = Self {
                machine: WithRelays::new(Echo::default(), LIMITS),
                session: RelaySession::new(5, RETRANSMIT_TIMEOUT),
            };
            bench.input(Input::Connected { peer: RELAY, route: Route::Relay });
            bench
        }

        fn input(&mut self, input: Input<'_, Infallible>) -> Outputs<WithRelays<Echo>> {
            self.input_at(100, input)
        }

        fn input_at(&mut self, second: u64, input: Input<'_, Infallible>) -> Outputs<WithRelays<Echo>> {
            let now = Now { monotonic: Duration::from_secs(second), unix: 0 };
            self.machine.handle_input(now, input, &mut ChaCha8Rng::seed_from_u64(1));
            Outputs::of(&mut self.machine)
        }

        /// The relay says this; what it is told.
        fn says(&mut self, frames: impl IntoIterator<Item = (u32, FrameBody)>) -> Vec<(u32, FrameBody)> {
            frames.into_iter().for_each(|(drone, body)| self.session.queue.push(drone, frame(drone, body)));
            let mut told = Vec::new();
            while let Some(bytes) = self.session.poll(Duration::ZERO) {
                let outputs = self.input(Input::Received { from: RELAY, via: Via::Peer, bytes: &bytes });
                for (to, payload) in outputs.effects.sent {
                    assert_eq!(to, Destination::Peer(RELAY), "all goes over the relay");
                    let batch = RelayBatch::decode(payload.as_slice()).unwrap();
                    if let ReceivedBatch::Frames(bytes) = self.session.receive(Duration::ZERO, batch) {
                        told.extend(super::frames(&bytes).map(|frame| {
                            let RelayFrame { drone, body } = frame.unwrap();
                            (drone, body.unwrap())
                        }));
                    }
                }
            }
            told
        }
    }

    fn data(bytes: &[u8]) -> FrameBody {
        FrameBody::Data(bytes.to_vec())
    }

    #[test]
    fn drones_behind_one_relay_are_peers_of_their_own() {
        let mut bench = Bench::new();
        let told = bench.says([
            (1, FrameBody::Opened(true)),
            (2, FrameBody::Opened(true)),
            (1, data(b"a")),
            (2, data(b"b")),
        ]);
        assert_eq!(told, [(1, data(b"a")), (2, data(b"b"))]);
        let peers = bench.machine.connected.clone();
        assert!(peers.len() == 2 && peers.iter().all(|peer| peer.is_relayed()) && peers[0] != peers[1]);
        // One drone's deeds are held against it alone.
        assert_eq!(bench.says([(1, data(b"lie"))]), [(1, FrameBody::Closed(End::Forgery as u32))]);
        assert_eq!(bench.says([(1, data(b"again")), (2, data(b"c"))]), [(2, data(b"c"))]);
        assert_eq!(bench.says([(2, data(b"block"))]), [(2, FrameBody::Closed(End::Blocked as u32))]);
        bench.says([(1, FrameBody::Closed(0))]);
        assert_eq!(bench.machine.connected, [peers[1]]);
        bench.input(Input::Disconnected { peer: RELAY });
        assert!(bench.machine.connected.is_empty() && bench.machine.relayed() == (0, 0));
    }

    #[test]
    fn relay_has_no_more_drones_than_it_may_and_speaks_for_none_that_it_did_not_open() {
        let mut bench = Bench::new();
        let told = bench.says((1..=5).map(|drone| (drone, FrameBody::Opened(true))));
        assert_eq!(told, [(4, FrameBody::Closed(0)), (5, FrameBody::Closed(0))]);
        assert_eq!(bench.machine.relayed(), (1, 3));
        let told = bench.says([(9, data(b"hello")), (4, data(b"hello"))]);
        assert_eq!(told, [(9, FrameBody::Closed(0)), (4, FrameBody::Closed(0))]);
        assert_eq!(bench.machine.relayed(), (1, 3));
        // However often it asks while it takes nothing, little waits for it.
        for drone in 10..10_000 {
            bench.session.queue.push(drone, frame(drone, FrameBody::Opened(true)));
        }
        let bytes = std::iter::from_fn(|| bench.session.poll(Duration::ZERO)).next().unwrap();
        bench.input(Input::Received { from: RELAY, via: Via::Peer, bytes: &bytes });
        assert!(bench.machine.relays[&RELAY].session.as_ref().unwrap().queue.drones() <= LIMITS.drones);
    }

    #[test]
    fn another_session_ends_the_connections_of_the_one_before_which_does_not_come_back() {
        let mut bench = Bench::new();
        bench.says([(1, FrameBody::Opened(true))]);
        let first = bench.machine.connected.clone();
        bench.session = RelaySession::new(6, RETRANSMIT_TIMEOUT);
        bench.says([(1, FrameBody::Opened(true))]);
        assert!(bench.machine.connected.len() == 1 && bench.machine.connected != first);
        let replayed = RelayBatch { session: 5, number: 1, ..RelayBatch::default() }.encode_to_vec();
        let outputs = bench.input(Input::Received { from: RELAY, via: Via::Peer, bytes: &replayed });
        assert_eq!(outputs.effects.sent, [(Destination::Peer(RELAY), ended(5))]);
        assert_eq!(bench.says([(1, data(b"still here"))]), [(1, data(b"still here"))]);
    }

    #[test]
    fn batch_that_overtakes_the_first_of_a_session_does_not_end_it() {
        let mut bench = Bench::new();
        let mut batch = |drone| {
            bench.session.queue.push(drone, frame(drone, FrameBody::Opened(true)));
            bench.session.poll(Duration::ZERO).unwrap()
        };
        let (first, second) = (batch(1), batch(2));
        for bytes in [&second, &first, &second] {
            let outputs = bench.input(Input::Received { from: RELAY, via: Via::Peer, bytes });
            let told = outputs
                .effects
                .sent
                .iter()
                .map(|(_, payload)| RelayBatch::decode(payload.as_slice()).unwrap());
            assert!(told.into_iter().all(|batch| !batch.ended));
        }
        assert_eq!(bench.machine.relayed(), (1, 2));
    }

    /// Counts the frames, and their bytes, that wait for the relay.
    fn waiting(bench: &mut Bench) -> (usize, usize) {
        let session = bench.machine.relays.get_mut(&RELAY).and_then(|relay| relay.session.as_mut());
        let Some(session) = session else { return (0, 0) };
        let frames = std::iter::from_fn(|| session.queue.pop(usize::MAX));
        frames.fold((0, 0), |(count, bytes), frame| (count + 1, bytes + frame.len()))
    }

    #[test]
    fn number_that_the_relay_never_opened_is_refused_once_however_often_it_speaks() {
        let mut bench = Bench::new();
        let one = [frame(9, FrameBody::Data(Vec::new())), frame(10, FrameBody::Data(vec![7]))].concat();
        let frames = one.repeat(10_000);
        for number in 1..=20 {
            let batch = RelayBatch { session: 5, number, frames: frames.clone(), ..RelayBatch::default() };
            bench.input(Input::Received { from: RELAY, via: Via::Peer, bytes: &batch.encode_to_vec() });
        }
        assert!(waiting(&mut bench).0 <= 2);
    }

    #[test]
    fn what_waits_for_a_relay_that_confirms_one_batch_in_a_while_is_bounded() {
        let mut bench = Bench::new();
        bench.says([(1, FrameBody::Opened(true)), (2, FrameBody::Opened(true))]);
        let drones = bench.machine.connected.clone();
        let (mut confirmed, mut highest) = (0, 0);
        for second in 101..1_000_u64 {
            // Members change their slots, too.
            let slot = u32::try_from(second).unwrap();
            let members = vec![(drones[0], slot), (drones[1], slot + 1)];
            let mut message = vec![0; 390_000];
            message[..8].copy_from_slice(&second.to_be_bytes());
            bench.machine.inner_mut().broadcasts.push_back(RelayedBroadcast { message, members });
            if second % 14 == 0 {
                confirmed = (confirmed + 1).min(highest);
            }
            let batch =
                RelayBatch { session: 5, received: confirmed, ..RelayBatch::default() }.encode_to_vec();
            let outputs =
                bench.input_at(second, Input::Received { from: RELAY, via: Via::Peer, bytes: &batch });
            let sent = outputs
                .effects
                .sent
                .iter()
                .filter_map(|(_, bytes)| RelayBatch::decode(bytes.as_slice()).ok());
            highest = sent.map(|batch| batch.number).fold(highest, u64::max);
        }
        assert_eq!(bench.machine.relayed(), (1, 2), "the session goes on");
        let session = bench.machine.relays.get_mut(&RELAY).unwrap().session.as_mut().unwrap();
        let last = std::iter::from_fn(|| session.queue.pop(usize::MAX)).last().unwrap();
        let Some(FrameBody::Broadcast(message)) = frames(&last).next().flatten().unwrap().body else {
            panic!("a broadcast goes last")
        };
        assert_eq!(message[..8], 999_u64.to_be_bytes(), "the newest is there");
    }

    #[test]
    fn waiting_broadcasts_take_no_more_than_sixteen_mebibytes() {
        let mut bench = Bench::new();
        bench.says([(1, FrameBody::Opened(true))]);
        let drone = bench.machine.connected[0];
        for _ in 0..200 {
            let broadcast = RelayedBroadcast { message: vec![0; 390_000], members: vec![(drone, 0)] };
            bench.machine.inner_mut().broadcasts.push_back(broadcast);
        }
        bench.input(Input::Timeout);
        let (frames, bytes) = waiting(&mut bench);
        assert!(frames > 10 && bytes <= 16 << 20, "{frames} frames, {bytes} bytes");
    }

    #[test]
    fn session_in_which_there_is_no_room_for_what_must_not_be_lost_ends() {
        let mut bench = Bench::new();
        bench.says([(1, FrameBody::Opened(true))]);
        let peer = bench.machine.connected[0];
        // It confirms nothing, and the machine has ever more to say that must not be lost.
        let mut ends = Vec::new();
        for _ in 0..40 {
            let out = (0..40_000).map(|number| Output::Relay { peer, allowed: number % 2 == 0 });
            bench.machine.inner_mut().out.extend(out);
            let outputs = bench.input(Input::Timeout);
            ends.extend(outputs.effects.sent.into_iter().filter(|(_, bytes)| *bytes == ended(5)));
        }
        assert_eq!(ends, [(Destination::Peer(RELAY), ended(5))]);
        assert_eq!((bench.machine.relayed(), bench.machine.connected.len()), ((1, 0), 0));
    }

    #[test]
    fn strangers_cannot_act_as_relays() {
        let mut bench = Bench::new();
        let stranger = Peer(2);
        bench.input(Input::Connected { peer: stranger, route: Route::Inbound });
        let mut session = RelaySession::new(5, RETRANSMIT_TIMEOUT);
        session.queue.push(1, frame(1, FrameBody::Opened(true)));
        let bytes = session.poll(Duration::ZERO).unwrap();
        let outputs = bench.input(Input::Received { from: stranger, via: Via::Peer, bytes: &bytes });
        assert_eq!(outputs.effects.sent, [(Destination::Peer(stranger), bytes)], "a message as any other");
        assert_eq!(bench.machine.relayed(), (1, 0));
    }

    proptest! {
        #[test]
        fn whatever_a_relay_sends_is_bounded(
            batches in prop::collection::vec(
                (0_u64..3, 0_u64..4, 0_u64..4, prop::collection::vec(any::<u8>(), 0..64), any::<bool>()),
                0..16,
            ),
            raw in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let mut bench = Bench::new();
            for (session, number, received, frames, ended) in batches {
                let bytes = RelayBatch { session, number, received, frames, ended }.encode_to_vec();
                bench.input(Input::Received { from: RELAY, via: Via::Peer, bytes: &bytes });
            }
            bench.input(Input::Received { from: RELAY, via: Via::Peer, bytes: &raw });
            prop_assert!(bench.machine.relayed().1 <= LIMITS.drones);
            prop_assert_eq!(bench.machine.connected.len(), bench.machine.relayed().1);
            bench.input(Input::Disconnected { peer: RELAY });
            prop_assert!(bench.machine.connected.is_empty());
        }
    }
}
