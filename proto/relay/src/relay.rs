//! The relay: a machine for a hub that dials one leader.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::time::Duration;

use prost::Message as _;
use quiver_ainq::Slot;
use quiver_machine::{Destination, Input, Machine, Misdeed, Now, Output, Peer, Route, Via, earlier};
use quiver_message::RekeyParts;
use rand_core::CryptoRngCore;

use crate::session::{RETRANSMIT_TIMEOUT, ReceivedBatch, RelaySession};
use crate::wire::{End, FrameBody, MAX_PAYLOAD, RelayBatch, RelayFrame, frame, frames};

/// Times of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayTiming {
    /// Time after which a leader that sends nothing is asked to confirm that it is there.
    pub probe: Duration,
    /// Time after which what it does not confirm is sent again; after the third time it is given up.
    pub resend: Duration,
}

impl Default for RelayTiming {
    fn default() -> Self {
        Self { probe: Duration::from_secs(10), resend: RETRANSMIT_TIMEOUT }
    }
}

/// Event that a relay reports to its operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayEvent {
    /// A connection to the leader exists.
    LeaderConnected,
    /// The connection is lost, or the leader confirms nothing: the relay disconnected its drones, so that
    /// they go elsewhere.
    LeaderLost {
        /// The drones.
        drones: usize,
    },
    /// A peer was disconnected because there are as many drones as the relay may have.
    Full,
    /// A message was dropped because too many wait or it is too long.
    Dropped {
        /// Bytes of the message.
        bytes: usize,
    },
}

/// A drone.
#[derive(Debug)]
struct AttachedDrone {
    peer: Peer,
    slot: Option<Slot>,
    /// The leader has its group messages passed on: it has proven who it is.
    relayed: bool,
}

/// The connection to the leader.
#[derive(Debug)]
struct Uplink {
    peer: Peer,
    session: RelaySession,
    /// True if the leader has confirmed a batch of this session.
    confirmed: bool,
    /// Time to ask whether it is there.
    probe: Duration,
}

/// A relay without keys. Drones are its inbound peers; of the leaders that it dialled it serves one at a time, the
/// first that is connected.
///
/// Strangers are inbound peers, too, and the machine cannot tell them from drones that come back: the driver
/// knows by their transport identities who has proven itself before. So the driver bounds how many peers are
/// connected and decides who makes room for whom, and the machine counts those alone that its leader vouches
/// for.
#[derive(Debug)]
pub struct Relay {
    now: Duration,
    most: usize,
    timing: RelayTiming,
    uplink: Option<Uplink>,
    /// Leaders that are connected and not used, in the order in which they came.
    spare: VecDeque<Peer>,
    numbers: BTreeMap<Peer, u32>,
    drones: BTreeMap<u32, AttachedDrone>,
    last: u32,
    out: VecDeque<Output<RelayEvent, Infallible>>,
}

impl Relay {
    /// A relay of at most so many drones at a time that the leader vouches for.
    #[must_use]
    pub const fn new(most: usize, timing: RelayTiming) -> Self {
        Self {
            now: Duration::ZERO,
            most,
            timing,
            uplink: None,
            spare: VecDeque::new(),
            numbers: BTreeMap::new(),
            drones: BTreeMap::new(),
            last: 0,
            out: VecDeque::new(),
        }
    }

    /// Number of connected peers that may be drones, strangers included.
    #[must_use]
    pub fn drones(&self) -> usize {
        self.drones.len()
    }

    /// The slot that the leader has for a drone, once it has sent a part of a broadcast there.
    #[must_use]
    pub fn slot(&self, peer: Peer) -> Option<Slot> {
        self.drones.get(self.numbers.get(&peer)?)?.slot
    }

    /// Returns true if the leader vouches for fewer drones than there may be.
    fn has_room(&self) -> bool {
        self.drones.len() < self.most
            || self.drones.values().filter(|drone| drone.relayed).count() < self.most
    }

    /// Returns true if a leader is connected that serves this relay: it has confirmed what it was sent.
    #[must_use]
    pub const fn has_leader(&self) -> bool {
        matches!(&self.uplink, Some(Uplink { confirmed: true, .. }))
    }

    fn connected(&mut self, peer: Peer, route: Route, rng: &mut dyn CryptoRngCore) {
        // §21.4: leaders that are not in use are kept for the loss of the one that is.
        if route == Route::Leader {
            self.spare.push_back(peer);
            return self.use_next_leader(rng);
        }
        // §21.2: drone numbers are never used twice. Strangers use up none of the drones' places.
        let number = self.last.checked_add(1).filter(|_| self.has_room());
        let Some(number) = number.filter(|_| route == Route::Inbound) else {
            self.out.extend([Output::Event(RelayEvent::Full), Output::Disconnect(peer)]);
            return;
        };
        self.last = number;
        self.numbers.insert(peer, number);
        self.drones.insert(number, AttachedDrone { peer, slot: None, relayed: false });
        self.tell(number, FrameBody::Opened(true));
    }

    fn tell(&mut self, number: u32, body: FrameBody) {
        if let Some(uplink) = &mut self.uplink {
            uplink.session.queue.push(number, frame(number, body));
        }
    }

    fn disconnected(&mut self, peer: Peer, rng: &mut dyn CryptoRngCore) {
        self.spare.retain(|leader| *leader != peer);
        if self.uplink.as_ref().is_some_and(|uplink| uplink.peer == peer) {
            self.leave_leader();
            self.use_next_leader(rng);
        } else if let Some(number) = self.numbers.remove(&peer) {
            self.drones.remove(&number);
            self.tell(number, FrameBody::Closed(End::Plain as u32));
        }
    }

    fn use_next_leader(&mut self, rng: &mut dyn CryptoRngCore) {
        if self.uplink.is_some() {
            return;
        }
        let Some(peer) = self.spare.pop_front() else { return };
        self.begin(peer, rng);
        self.out.push_back(Output::Event(RelayEvent::LeaderConnected));
        // The leader's publications are published here.
        self.out.push_back(Output::Relay { peer, allowed: true });
    }

    /// Begins a session with the leader, to which the drones that are here are new.
    fn begin(&mut self, peer: Peer, rng: &mut dyn CryptoRngCore) {
        let mut session = RelaySession::new(rng.next_u64(), self.timing.resend);
        for number in self.drones.keys() {
            session.queue.push(*number, frame(*number, FrameBody::Opened(true)));
        }
        // §21.2: the first batch goes out at once.
        self.uplink = Some(Uplink { peer, session, confirmed: false, probe: self.now });
    }

    /// §21.4: the drones that the leader knew of are disconnected: their connections ended with the session.
    fn leave_leader(&mut self) {
        self.uplink = None;
        let drones = self.drones.len();
        self.out.push_back(Output::Event(RelayEvent::LeaderLost { drones }));
        for peer in std::mem::take(&mut self.numbers).into_keys() {
            self.out.push_back(Output::Disconnect(peer));
        }
        self.drones.clear();
    }

    /// §21.4: the leader confirms nothing. Perhaps its connection is dead: another one is made, or another leader used.
    fn give_up_leader(&mut self, rng: &mut dyn CryptoRngCore) {
        let Some(peer) = self.uplink.as_ref().map(|uplink| uplink.peer) else { return };
        self.leave_leader();
        self.out.push_back(Output::Disconnect(peer));
        self.use_next_leader(rng);
    }

    fn begin_again(&mut self, rng: &mut dyn CryptoRngCore) {
        if let Some(peer) = self.uplink.as_ref().map(|uplink| uplink.peer) {
            self.leave_leader();
            self.begin(peer, rng);
        }
    }

    fn heard(&mut self, from: Peer, bytes: &[u8], rng: &mut dyn CryptoRngCore) {
        if let Some(number) = self.numbers.get(&from).copied() {
            let Some(uplink) = &mut self.uplink else { return };
            let relayed = self.drones.get(&number).is_some_and(|drone| drone.relayed);
            let queue = &mut uplink.session.queue;
            let mut push = |frame| {
                if relayed {
                    queue.push_message(number, frame)
                } else {
                    queue.push_message_of_stranger(number, frame)
                }
            };
            let dropped = bytes.len() > MAX_PAYLOAD || !push(frame(number, FrameBody::Data(bytes.to_vec())));
            if dropped {
                self.out.push_back(Output::Event(RelayEvent::Dropped { bytes: bytes.len() }));
            }
            return;
        }
        let Some(uplink) = self.uplink.as_mut().filter(|uplink| uplink.peer == from) else { return };
        let Ok(batch) = RelayBatch::decode(bytes) else { return };
        if batch.session != uplink.session.id {
            // It is of a session before, whose drones are gone (§21.4).
            return;
        }
        // The leader does not know this session, or found a fault in it: a new one begins, without the old
        // drones.
        if batch.ended {
            return self.begin_again(rng);
        }
        // §21.2: whatever the leader sends shows that it is there, so only silence is probed.
        uplink.probe = self.now + self.timing.probe;
        // A leader that does not serve relays, or not this one, answers nothing.
        uplink.confirmed |= batch.received > 0;
        match uplink.session.receive(self.now, batch) {
            ReceivedBatch::Nothing => {}
            // A fault of one session: the next begins with empty queues at both ends.
            ReceivedBatch::Broken => self.begin_again(rng),
            ReceivedBatch::Frames(bytes) => {
                for frame in frames(&bytes).flatten() {
                    self.handle(frame);
                }
            }
        }
    }

    fn handle(&mut self, RelayFrame { drone: number, body }: RelayFrame) {
        if let Some(FrameBody::Broadcast(message)) = &body {
            return self.cut(message);
        }
        // It may have left.
        let Some(drone) = self.drones.get_mut(&number) else { return };
        let peer = drone.peer;
        self.out.push_back(match body {
            Some(FrameBody::Data(payload)) => Output::Transmit { to: Destination::Peer(peer), payload },
            Some(FrameBody::Relayed(allowed)) => {
                drone.relayed = allowed;
                Output::Relay { peer, allowed }
            }
            Some(FrameBody::Slot(slot)) => {
                // §21.2: 0 is none: the drone needs no part of broadcasts.
                drone.slot = slot.checked_sub(1);
                if !drone.relayed || drone.slot.is_none() {
                    return;
                }
                // §13.8: once more, because it is known now which member was proven.
                Output::Relay { peer, allowed: true }
            }
            Some(FrameBody::Closed(end)) => match End::of(end) {
                End::Plain => Output::Disconnect(peer),
                End::Blocked => Output::Block(peer),
                // §13.8: the leader judges, the relay penalises: it alone knows the drone's transport
                // identity and address.
                End::Forgery => Output::Penalize { peer, misdeed: Misdeed::Forgery },
                End::Garbage => Output::Penalize { peer, misdeed: Misdeed::Garbage },
            },
            // No leader sends these for a drone.
            Some(FrameBody::Opened(_) | FrameBody::Broadcast(_)) | None => return,
        });
    }

    /// §21.3: sends every member its part of a re-key.
    fn cut(&mut self, message: &[u8]) {
        // A leader's message; drones that get no part ask for it.
        let Ok(parts) = RekeyParts::decode(message) else { return };
        for drone in self.drones.values() {
            if let Some(payload) = drone.slot.map(|slot| parts.message(slot)) {
                self.out.push_back(Output::Transmit { to: Destination::Peer(drone.peer), payload });
            }
        }
    }
}

impl Machine for Relay {
    type Command = Infallible;
    type Event = RelayEvent;
    type Record = Infallible;

    fn handle_input(&mut self, now: Now, input: Input<'_, Infallible>, rng: &mut dyn CryptoRngCore) {
        self.now = now.monotonic;
        match input {
            Input::Timeout => {}
            // A copy of this process has its session, too.
            Input::Resumed => self.begin_again(rng),
            Input::Connected { peer, route } => self.connected(peer, route, rng),
            Input::Disconnected { peer } => self.disconnected(peer, rng),
            Input::Received { from, via: Via::Peer, bytes } => self.heard(from, bytes, rng),
            // The driver of a hub passes it on.
            Input::Received { via: Via::Group, .. } => {}
            Input::Command(never) => match never {},
        }
        let Some(uplink) = &mut self.uplink else { return };
        // §21.4: after three repeats without a confirmation the leader counts as lost.
        if uplink.session.tick(now.monotonic) {
            self.give_up_leader(rng);
        } else if uplink.probe <= now.monotonic {
            uplink.session.probe();
            uplink.probe = now.monotonic + self.timing.probe;
        }
    }

    fn poll_output(&mut self) -> Output<RelayEvent, Infallible> {
        if let Some(output) = self.out.pop_front() {
            return output;
        }
        let Some(uplink) = &mut self.uplink else { return Output::Timeout(None) };
        match uplink.session.poll(self.now) {
            Some(payload) => Output::Transmit { to: Destination::Peer(uplink.peer), payload },
            None => Output::Timeout(earlier(Some(uplink.probe), uplink.session.deadline())),
        }
    }
}

#[cfg(test)]
mod tests {
    use quiver_testbed::Outputs;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    const LEADER: Peer = Peer(1000);

    /// A relay whose leader is played by the test.
    struct Bench {
        relay: Relay,
        leader: Option<RelaySession>,
    }

    impl Bench {
        fn new(most: usize) -> Self {
            let mut bench = Self { relay: Relay::new(most, RelayTiming::default()), leader: None };
            bench.input(Input::Connected { peer: LEADER, route: Route::Leader });
            bench
        }

        /// Messages that the relay sends to its leader, and its other outputs.
        fn input(&mut self, input: Input<'_, Infallible>) -> (Vec<(u32, FrameBody)>, Outputs<Relay>) {
            let now = Now { monotonic: Duration::from_secs(100), unix: 0 };
            self.relay.handle_input(now, input, &mut ChaCha8Rng::seed_from_u64(1));
            let mut told = Vec::new();
            let mut all = Outputs::of(&mut self.relay);
            for (_, payload) in std::mem::take(&mut all.effects.sent) {
                let batch = RelayBatch::decode(payload.as_slice()).unwrap();
                let leader =
                    self.leader.get_or_insert_with(|| RelaySession::new(batch.session, RETRANSMIT_TIMEOUT));
                if let ReceivedBatch::Frames(bytes) = leader.receive(now.monotonic, batch) {
                    told.extend(frames(&bytes).flatten().map(|frame| (frame.drone, frame.body.unwrap())));
                }
            }
            // The leader confirms what came.
            while let Some(bytes) = self.leader.as_mut().and_then(|leader| leader.poll(now.monotonic)) {
                let input = Input::Received { from: LEADER, via: Via::Peer, bytes: &bytes };
                self.relay.handle_input(now, input, &mut ChaCha8Rng::seed_from_u64(1));
            }
            (told, all)
        }

        fn connect(&mut self, peer: u64) -> (Vec<(u32, FrameBody)>, Outputs<Relay>) {
            self.input(Input::Connected { peer: Peer(peer), route: Route::Inbound })
        }

        /// The leader says this.
        fn says(&mut self, drone: u32, body: FrameBody) {
            let leader = self.leader.as_mut().unwrap();
            leader.queue.push(drone, frame(drone, body));
            let batches: Vec<_> = std::iter::from_fn(|| leader.poll(Duration::from_secs(100))).collect();
            for bytes in batches {
                self.input(Input::Received { from: LEADER, via: Via::Peer, bytes: &bytes });
            }
        }
    }

    #[test]
    fn strangers_take_no_drones_place_and_drones_have_no_more_than_there_are() {
        let mut bench = Bench::new(2);
        // However many of them: the driver bounds their number.
        for stranger in 1..=10 {
            let (told, outputs) = bench.connect(stranger);
            assert_eq!(told, [(u32::try_from(stranger).unwrap(), FrameBody::Opened(true))]);
            assert!(outputs.events.is_empty());
        }
        bench.says(3, FrameBody::Relayed(true));
        assert_eq!(bench.connect(11).0, [(11, FrameBody::Opened(true))]);
        bench.says(11, FrameBody::Relayed(true));
        let (told, outputs) = bench.connect(12);
        assert_eq!((told, outputs.events), (vec![], vec![RelayEvent::Full]));
        // A drone that leaves, or is no member any more, makes room.
        bench.input(Input::Disconnected { peer: Peer(3) });
        assert_eq!(bench.connect(13).0, [(12, FrameBody::Opened(true))]);
        bench.says(12, FrameBody::Relayed(true));
        assert_eq!(bench.connect(14).1.events, [RelayEvent::Full]);
        bench.says(11, FrameBody::Relayed(false));
        assert_eq!(bench.connect(15).0, [(13, FrameBody::Opened(true))]);
    }

    #[test]
    fn messages_of_strangers_leave_room_for_those_of_drones() {
        let mut bench = Bench::new(100);
        for peer in 1..=100 {
            bench.connect(peer);
        }
        bench.says(7, FrameBody::Relayed(true));
        // The leader confirms nothing any more.
        let mut dropped = |peer| {
            let input = Input::Received { from: Peer(peer), via: Via::Peer, bytes: &[0; 900_000] };
            let now = Now { monotonic: Duration::from_secs(100), unix: 0 };
            bench.relay.handle_input(now, input, &mut ChaCha8Rng::seed_from_u64(1));
            Outputs::of(&mut bench.relay).events.len()
        };
        let strangers = (1..=100).chain(1..=100).filter(|peer| *peer != 7);
        assert!(strangers.map(&mut dropped).sum::<usize>() > 100, "they are many");
        assert_eq!([dropped(7), dropped(7)], [0, 0]);
    }
}
