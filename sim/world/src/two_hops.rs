//! Members out of the leader's range: where everybody is, who passes messages on, who repeats re-keys.
//!
//! The leader and the KGC are in the middle, members anywhere on a disc, two who are no farther apart than the
//! radio's range hear each other. A message to or from a member that does not hear the leader takes a second
//! transmission, by a member between the two. Broadcasts reach those in range; what a leader broadcasts of an
//! epoch, members can repeat (docs/protocol.md §7.5). There is one channel for all: who is busy at one end of
//! the disc is heard at the other, so that airtime is rather too much than too little.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rand::{Rng, RngCore};
use rand_chacha::ChaCha8Rng;

use crate::NodeId;
use crate::boards::{Coding, Repeating, Repeats};

/// Broadcasts that are repeated at once; beyond, the oldest is dropped.
const MESSAGES: usize = 4;
/// Members that may pass on the messages of one out of range.
const RELAYS: usize = 4;
/// Places tried for a member that shall be out of range of the leader, but not of all who hear it.
const TRIES: u32 = 64;
/// The longest backoff of one who waited for the channel, in nanoseconds.
const BACKOFF: u64 = 10_000_000;

/// Members out of the leader's range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoHops {
    /// Radius of the disc over which members are spread evenly, in ranges of the radio, from 1 to 2.
    pub spread: f64,
    /// Repeats, by members, of a leader's broadcasts of an epoch; `None`: members repeat nothing.
    pub repeats: Option<Repeats>,
    /// The first so many members repeat false frames, whatever they hear.
    pub hostile: u32,
}

/// Counts of the leaders' broadcasts of epochs by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TwoHopsReport {
    /// Members that do not hear the leader.
    pub out_of_range: u32,
    /// Times that a member had a broadcast from the leader.
    pub from_leader: u64,
    /// Times that a member had it from another member.
    pub from_members: u64,
    /// Repetitions by honest members.
    pub repetitions: u64,
    /// Repetitions of false frames.
    pub false_repetitions: u64,
    /// Frames of both.
    pub frames: u64,
    /// Time on air of both.
    pub airtime: Duration,
}

/// Places, and what is repeated.
#[derive(Debug)]
pub(crate) struct TwoHopsState {
    setup: TwoHops,
    places: Vec<(f64, f64)>,
    relays: BTreeMap<u32, Vec<u32>>,
    messages: VecDeque<Repeated>,
    begun: u64,
    pub(crate) report: TwoHopsReport,
    rng: ChaCha8Rng,
}

/// A broadcast, and who has it.
#[derive(Debug)]
pub(crate) struct Repeated {
    number: u64,
    pub(crate) hub: NodeId,
    pub(crate) payload: Arc<[u8]>,
    pub(crate) coding: Option<Coding>,
    members: BTreeMap<u32, Option<Repeating>>,
}

impl TwoHopsState {
    pub(crate) fn new(setup: TwoHops, edges: u32, mut rng: ChaCha8Rng) -> Self {
        let (mut places, mut relays) = (Vec::<(f64, f64)>::new(), BTreeMap::new());
        // Those in range come first: they are there when the others enrol through them.
        let near = (f64::from(edges) / (setup.spread * setup.spread)) as u32;
        for edge in 0..edges {
            let mut place = point(&mut rng, 0.0, 1.0);
            for _ in 0..if edge < near.max(1) { 0 } else { TRIES } {
                let far = point(&mut rng, 1.0, setup.spread);
                let between = between(&places, far);
                if !between.is_empty() {
                    relays.insert(edge, between);
                    place = far;
                    break;
                }
            }
            places.push(place);
        }
        let report = TwoHopsReport { out_of_range: relays.len() as u32, ..TwoHopsReport::default() };
        Self { setup, places, relays, messages: VecDeque::new(), begun: 0, report, rng }
    }

    /// Returns true if a node hears the leaders.
    pub(crate) fn hears_leaders(&self, node: NodeId) -> bool {
        !matches!(node, NodeId::Edge(edge) if self.relays.contains_key(&edge))
    }

    /// Members that can pass on messages between a leader and a node that does not hear it.
    pub(crate) fn relays(&self, node: NodeId) -> Option<&[u32]> {
        let NodeId::Edge(edge) = node else { return None };
        self.relays.get(&edge).map(Vec::as_slice)
    }

    /// The members that hear a member.
    pub(crate) fn neighbours(&self, edge: u32) -> Vec<u32> {
        let Some(&place) = self.places.get(edge as usize) else { return Vec::new() };
        let others = self.places.iter().zip(0..).filter(|(_, other)| *other != edge);
        others.filter(|(other, _)| distance(**other, place) <= 1.0).map(|(_, other)| other).collect()
    }

    /// A leader broadcasts something of an epoch. Gives its number.
    pub(crate) fn begin(&mut self, hub: NodeId, payload: &Arc<[u8]>, coding: Option<Coding>) -> u64 {
        if let Some(known) = self.messages.iter().find(|message| message.payload == *payload) {
            return known.number;
        }
        self.messages.truncate(MESSAGES - 1);
        self.begun += 1;
        let (payload, members) = (Arc::clone(payload), BTreeMap::new());
        self.messages.push_front(Repeated { number: self.begun, hub, payload, coding, members });
        self.begun
    }

    pub(crate) fn message(&self, number: u64) -> Option<&Repeated> {
        self.messages.iter().find(|message| message.number == number)
    }

    pub(crate) fn is_hostile(&self, edge: u32) -> bool {
        edge < self.setup.hostile
    }

    /// Returns true if a member has a message.
    pub(crate) fn has(&self, number: u64, edge: u32) -> bool {
        self.message(number).is_some_and(|message| message.members.contains_key(&edge))
    }

    /// A member has a message from this time on, if it did not before. Gives when it is to be served.
    pub(crate) fn receive(&mut self, number: u64, edge: u32, at: u64) -> Option<u64> {
        let message = self.messages.iter_mut().find(|message| message.number == number)?;
        let rng = &mut self.rng;
        let repeating = self.setup.repeats.map(|repeats| Repeating::begin(repeats, at, rng.next_u64()));
        let wake = repeating.as_ref().map(Repeating::wake);
        if message.members.contains_key(&edge) {
            return None;
        }
        message.members.insert(edge, repeating);
        wake
    }

    /// A member heard another repeat all of a message that it has.
    pub(crate) fn hear(&mut self, number: u64, edge: u32) {
        if !self.is_hostile(edge)
            && let Some(repeating) = self.repeating(number, edge)
        {
            repeating.hear();
        }
    }

    fn repeating(&mut self, number: u64, edge: u32) -> Option<&mut Repeating> {
        let message = self.messages.iter_mut().find(|message| message.number == number)?;
        message.members.get_mut(&edge)?.as_mut()
    }

    /// A member's time has come, if it was planned for now; the channel is taken until `busy`. Says whether it
    /// repeats the message now, and when it is to be served next.
    pub(crate) fn serve(&mut self, number: u64, edge: u32, now: u64, busy: u64) -> (bool, Option<u64>) {
        let (random, backoff) = (self.rng.next_u64(), self.rng.gen_range(0..BACKOFF));
        match self.repeating(number, edge) {
            Some(repeating) if repeating.wake() == now => repeating.serve(now, busy, random, backoff),
            _ => (false, None),
        }
    }
}

/// Anywhere between two distances from the middle.
fn point(rng: &mut impl RngCore, inner: f64, outer: f64) -> (f64, f64) {
    loop {
        let place = (rng.gen_range(-outer..=outer), rng.gen_range(-outer..=outer));
        let from_middle = distance(place, (0.0, 0.0));
        if from_middle >= inner && from_middle <= outer {
            return place;
        }
    }
}

/// Members that hear both the middle and a place, nearest to the point halfway first.
fn between(places: &[(f64, f64)], place: (f64, f64)) -> Vec<u32> {
    let halfway = (place.0 / 2.0, place.1 / 2.0);
    let hears_both = |at: (f64, f64)| distance(at, (0.0, 0.0)) <= 1.0 && distance(at, place) <= 1.0;
    let mut between: Vec<(f64, u32)> = places
        .iter()
        .zip(0..)
        .filter(|(at, _)| hears_both(**at))
        .map(|(at, edge)| (distance(*at, halfway), edge))
        .collect();
    between.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    between.into_iter().take(RELAYS).map(|(_, edge)| edge).collect()
}

fn distance(one: (f64, f64), other: (f64, f64)) -> f64 {
    let (dx, dy) = (one.0 - other.0, one.1 - other.1);
    (dx * dx + dy * dy).sqrt()
}
