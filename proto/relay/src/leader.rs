//! A leader with relays: every drone behind one is a peer of its own.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use prost::Message as _;
use quiver_ainq::Slot;
use quiver_machine::{
    Destination, Finished, Input, Job, Machine, Misdeed, Now, Output, Peer, RelayedBroadcast, Route, Via,
    earlier,
};
use rand_core::CryptoRngCore;

use crate::session::{Received, Session, ended};
use crate::wire::{Batch, Body, End, Frame, MAX_PAYLOAD, frame, frames};

/// What a leader grants its relays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayLimits {
    /// Drones behind one relay at a time.
    pub drones: usize,
}

impl Default for RelayLimits {
    fn default() -> Self {
        Self { drones: 16_384 }
    }
}

/// A drone behind a relay.
#[derive(Debug)]
struct Drone {
    peer: Peer,
    /// The slot that the relay was told.
    slot: Option<Slot>,
    /// Its messages are ignored: it is to go.
    closed: bool,
}

/// A connected relay.
#[derive(Debug, Default)]
struct Relay {
    session: Option<Session>,
    /// That of the session before, which does not come back.
    previous: u64,
    drones: BTreeMap<u32, Drone>,
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
    relays: BTreeMap<Peer, Relay>,
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
        let Ok(batch) = Batch::decode(bytes) else { return };
        let Some(known) = self.relays.get_mut(&relay) else { return };
        let id = batch.session;
        if known.session.as_ref().is_none_or(|session| session.id != id) {
            // §21.2: the first batch of a session begins it.
            if batch.number != 1 || id == known.previous {
                return self.send(relay, ended(id));
            }
            self.end_session(now, relay, rng);
            if let Some(known) = self.relays.get_mut(&relay) {
                known.session = Some(Session::new(id));
            }
        }
        let Some(session) = self.relays.get_mut(&relay).and_then(|known| known.session.as_mut()) else {
            return;
        };
        match session.receive(now.monotonic, batch) {
            Received::Nothing => {}
            Received::Broken => {
                self.end_session(now, relay, rng);
                self.send(relay, ended(id));
            }
            Received::Frames(bytes) => {
                for frame in frames(&bytes) {
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

    fn handle(&mut self, now: Now, relay: Peer, Frame { drone, body }: Frame, rng: &mut dyn CryptoRngCore) {
        let Some(known) = self.relays.get_mut(&relay) else { return };
        match body {
            Some(Body::Opened(_)) => {
                if known.drones.contains_key(&drone) {
                    return;
                }
                if known.drones.len() >= self.limits.drones {
                    // It is no drone, and the relay has as many frames to say so as it may have drones.
                    if let Some(session) =
                        known.session.as_mut().filter(|it| it.queue.drones() < self.limits.drones)
                    {
                        session.queue.push(drone, frame(drone, Body::Closed(End::Plain as u32)));
                    }
                    return;
                }
                self.last += 1;
                let peer = Peer::relayed(self.last);
                known.drones.insert(drone, Drone { peer, slot: None, closed: false });
                self.homes.insert(peer, (relay, drone));
                self.inner.handle_input(now, Input::Connected { peer, route: Route::Inbound }, rng);
            }
            Some(Body::Data(bytes)) => {
                if let Some(from) =
                    known.drones.get(&drone).filter(|drone| !drone.closed).map(|drone| drone.peer)
                {
                    self.inner.handle_input(
                        now,
                        Input::Received { from, via: Via::Peer, bytes: &bytes },
                        rng,
                    );
                }
            }
            Some(Body::Closed(_)) => {
                if let Some(session) = &mut known.session {
                    session.queue.forget(drone);
                }
                if let Some(Drone { peer, .. }) = known.drones.remove(&drone) {
                    self.homes.remove(&peer);
                    self.inner.handle_input(now, Input::Disconnected { peer }, rng);
                }
            }
            // A leader's.
            Some(Body::Relayed(_) | Body::Slot(_) | Body::Broadcast(_)) | None => {}
        }
    }

    /// The number of a peer behind a relay, and the session with this.
    fn home(&mut self, peer: Peer) -> Option<(u32, &mut Session, &mut Drone)> {
        let (relay, number) = *self.homes.get(&peer)?;
        let Relay { session, drones, .. } = self.relays.get_mut(&relay)?;
        Some((number, session.as_mut()?, drones.get_mut(&number)?))
    }

    fn transmit(&mut self, to: Peer, payload: Vec<u8>) {
        if payload.len() > MAX_PAYLOAD {
            return;
        }
        if let Some((number, session, _)) = self.home(to) {
            // As on any link that is too slow, what there is no room for is lost.
            let _ = session.queue.push_message(number, frame(number, Body::Data(payload)));
        }
    }

    fn close(&mut self, peer: Peer, end: End) {
        if let Some((number, session, drone)) = self.home(peer)
            && !std::mem::replace(&mut drone.closed, true)
        {
            session.queue.push(number, frame(number, Body::Closed(end as u32)));
        }
    }

    /// §21.3: tells relays whose part they have to cut, where that has changed, and sends each the whole once.
    fn broadcast(&mut self, RelayedBroadcast { message, members }: &RelayedBroadcast) {
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
            let Some(Relay { session: Some(session), drones, .. }) = self.relays.get_mut(&relay) else {
                continue;
            };
            for (number, drone) in drones {
                let slot = slots.get(number).copied();
                if drone.slot != slot {
                    drone.slot = slot;
                    let slot = slot.map_or(0, |slot| slot.saturating_add(1));
                    session.queue.push_first(frame(*number, Body::Slot(slot)));
                }
            }
            session.queue.push_first(frame(0, Body::Broadcast(message.clone())));
        }
    }

    /// Takes an output of the machine that is for relays or drones behind them; gives back any other.
    fn route(&mut self, output: Output<M::Event, M::Record>) -> Option<Output<M::Event, M::Record>> {
        match output {
            Output::Transmit { to: Destination::Peer(to), payload } if to.is_relayed() => {
                self.transmit(to, payload)
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
                    session.queue.push(number, frame(number, Body::Relayed(allowed)));
                }
            }
            // What drones publish comes over their relays, which pass it on as they are told.
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
                self.relays.insert(peer, Relay::default());
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
        let stuck = |(peer, relay): (&Peer, &mut Relay)| {
            relay.session.as_mut().is_some_and(|session| session.tick(now.monotonic)).then_some(*peer)
        };
        for relay in self.relays.iter_mut().filter_map(stuck).collect::<Vec<_>>() {
            self.end_session(now, relay, rng);
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
            for (relay, Relay { session, .. }) in &mut self.relays {
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

    fn finish_job(&mut self, now: Now, done: Finished, rng: &mut dyn CryptoRngCore) {
        self.now = now.monotonic;
        self.inner.finish_job(now, done, rng);
    }
}
