//! A relay's machine, and hostile behaviour on request.
//!
//! A hostile relay does what nothing on the way can keep it from (docs/protocol.md, 21.1): it drops, repeats, swaps,
//! withholds and alters what it passes on, lets one drone say what another said, acknowledges in its session what did
//! not come, and says that drones have gone.

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;

use quiver_machine::{Destination, Input, Machine, Now, Output, Peer, Route, Via};
use quiver_relay::{Relay, RelayEvent, RelayTiming};
use rand_chacha::ChaCha8Rng;
use rand_core::{CryptoRngCore, RngCore, SeedableRng};

use super::RelayNodeEvent;
use crate::NodeEvent;
use crate::rng_stream::below;

/// Messages that it keeps to repeat.
const KEPT: usize = 64;
/// Messages that it holds back at most.
const WITHHELD: usize = 16;

/// A relay, honest or not.
pub(crate) struct RelayNode {
    relay: Relay,
    drones: BTreeSet<Peer>,
    hostile: Option<Box<Hostile>>,
}

/// Treatment of a message by a hostile relay.
enum Treatment {
    Pass,
    Drop,
    Twice,
    /// An older one takes its place.
    Older,
    /// The message is said to be another drone's, or given to another.
    Swap,
    Alter,
    /// The message comes after later ones.
    Withhold,
}

struct Hostile {
    rng: ChaCha8Rng,
    /// Older messages from drones, and to drones.
    heard: VecDeque<Vec<u8>>,
    sent: VecDeque<Vec<u8>>,
    withheld: VecDeque<(Destination, Vec<u8>)>,
    out: VecDeque<(Destination, Vec<u8>)>,
}

impl RelayNode {
    /// An honest relay of a world with this many drones.
    pub(crate) fn new(edges: usize) -> Self {
        let relay = Relay::new(edges, RelayTiming::default());
        Self { relay, drones: BTreeSet::new(), hostile: None }
    }

    /// Makes it hostile from now on.
    pub(crate) fn set_hostile(&mut self, dice: [u8; 32]) {
        self.hostile = Some(Box::new(Hostile::new(dice)));
    }
}

impl Hostile {
    fn new(dice: [u8; 32]) -> Self {
        Self {
            rng: ChaCha8Rng::from_seed(dice),
            heard: VecDeque::new(),
            sent: VecDeque::new(),
            withheld: VecDeque::new(),
            out: VecDeque::new(),
        }
    }

    /// Half of all messages are passed on as they are.
    fn treatment(&mut self) -> Treatment {
        match below(&mut self.rng, 12) {
            0 => Treatment::Drop,
            1 => Treatment::Twice,
            2 => Treatment::Older,
            3 => Treatment::Swap,
            4 => Treatment::Alter,
            5 => Treatment::Withhold,
            _ => Treatment::Pass,
        }
    }

    fn any<T: Clone>(&mut self, all: impl ExactSizeIterator<Item = T>) -> Option<T> {
        let place = usize::try_from(below(&mut self.rng, (all.len() as u64).max(1))).unwrap_or(0);
        { all }.nth(place)
    }

    fn altered(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        let at = usize::try_from(below(&mut self.rng, (bytes.len() as u64).max(1))).unwrap_or(0);
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1 << (self.rng.next_u32() % 8);
        }
        bytes
    }

    /// Messages, with their senders, that its machine is told in the place of this drone's.
    fn said(&mut self, drones: &BTreeSet<Peer>, from: Peer, bytes: &[u8]) -> Vec<(Peer, Vec<u8>)> {
        let treatment = self.treatment();
        let said = match treatment {
            Treatment::Drop | Treatment::Withhold => Vec::new(),
            Treatment::Twice => vec![(from, bytes.to_vec()); 2],
            Treatment::Older => {
                let heard = std::mem::take(&mut self.heard);
                let older = self.any(heard.iter().cloned());
                self.heard = heard;
                older.map(|older| (from, older)).into_iter().collect()
            }
            Treatment::Swap => {
                let other = self.any(drones.iter().copied()).unwrap_or(from);
                vec![(other, bytes.to_vec())]
            }
            Treatment::Alter => vec![(from, self.altered(bytes))],
            Treatment::Pass => vec![(from, bytes.to_vec())],
        };
        keep(&mut self.heard, bytes.to_vec());
        said
    }

    /// Sends other messages in the place of a message, of a drone's or of a batch.
    fn send(&mut self, drones: &BTreeSet<Peer>, to: Destination, payload: Vec<u8>) {
        let is_drone = matches!(to, Destination::Peer(peer) if drones.contains(&peer));
        match self.treatment() {
            Treatment::Drop => {}
            Treatment::Twice => self.out.extend([(to, payload.clone()), (to, payload.clone())]),
            Treatment::Older => {
                let sent = std::mem::take(&mut self.sent);
                let older = self.any(sent.iter().cloned());
                self.sent = sent;
                self.out.extend(older.map(|older| (to, older)));
            }
            Treatment::Swap if is_drone => {
                let other = self.any(drones.iter().copied()).map_or(to, Destination::Peer);
                self.out.push_back((other, payload.clone()));
            }
            Treatment::Alter => {
                let altered = self.altered(&payload);
                self.out.push_back((to, altered));
            }
            Treatment::Withhold if self.withheld.len() < WITHHELD => {
                self.withheld.push_back((to, payload.clone()));
            }
            Treatment::Swap | Treatment::Withhold | Treatment::Pass => {
                self.out.push_back((to, payload.clone()));
                if below(&mut self.rng, 4) == 0 {
                    self.out.extend(self.withheld.pop_front());
                }
            }
        }
        keep(&mut self.sent, payload);
    }

    /// The next output of a relay's machine, after what is sent in the place of others.
    fn poll_output(&mut self, relay: &mut Relay, drones: &BTreeSet<Peer>) -> Output<RelayEvent, Infallible> {
        loop {
            if let Some((to, payload)) = self.out.pop_front() {
                return Output::Transmit { to, payload };
            }
            match relay.poll_output() {
                Output::Transmit { to, payload } => self.send(drones, to, payload),
                output => return output,
            }
        }
    }
}

fn keep(kept: &mut VecDeque<Vec<u8>>, message: Vec<u8>) {
    if kept.len() == KEPT {
        kept.pop_front();
    }
    kept.push_back(message);
}

impl Machine for RelayNode {
    type Command = Infallible;
    type Event = NodeEvent;
    type Record = Infallible;

    fn handle_input(&mut self, now: Now, input: Input<'_, Infallible>, rng: &mut dyn CryptoRngCore) {
        match &input {
            Input::Connected { peer, route: Route::Inbound } => {
                self.drones.insert(*peer);
            }
            Input::Disconnected { peer } => {
                self.drones.remove(peer);
            }
            _ => {}
        }
        let Some(hostile) = &mut self.hostile else { return self.relay.handle_input(now, input, rng) };
        let Input::Received { from, via: Via::Peer, bytes } = input else {
            return self.relay.handle_input(now, input, rng);
        };
        if !self.drones.contains(&from) {
            return self.relay.handle_input(now, input, rng);
        }
        for (from, bytes) in hostile.said(&self.drones, from, bytes) {
            self.relay.handle_input(now, Input::Received { from, via: Via::Peer, bytes: &bytes }, rng);
        }
        // It says that a drone has gone, which has not.
        if below(&mut hostile.rng, 32) == 0
            && let Some(peer) = hostile.any(self.drones.iter().copied())
        {
            self.relay.handle_input(now, Input::Disconnected { peer }, rng);
        }
    }

    fn poll_output(&mut self) -> Output<NodeEvent, Infallible> {
        let output = match &mut self.hostile {
            None => self.relay.poll_output(),
            Some(hostile) => hostile.poll_output(&mut self.relay, &self.drones),
        };
        output.map(|event| RelayNodeEvent::Relay(event).into(), |never| never)
    }
}
