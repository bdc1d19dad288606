//! Counts what waits of the group's messages for strangers that listen.
//!
//! Gossipsub bounds its queue of each peer in messages, and a message may have a mebibyte. It says neither
//! how much a queue holds nor what leaves it. So this counts what gossipsub is given for each stranger, as
//! long as it is on the wire, and what the stranger's streams have taken; the rest waits.

use std::collections::{HashMap, VecDeque};

use libp2p::PeerId;

use crate::config::ListeningLimits;

/// Bytes that gossipsub takes for a message that waits beside its content.
const WAITING_COST: usize = 512;

/// Bytes on the wire of a message without an author, alone in its frame: data and topic with their tags and
/// lengths, in a field of the frame, behind the frame's length.
pub(super) fn frame_len(topic: usize, data: usize) -> usize {
    let field = |len: usize| 1 + varint_len(len) + len;
    let frame = field(field(data) + field(topic));
    varint_len(frame) + frame
}

fn varint_len(number: usize) -> usize {
    let bits = usize::BITS - number.leading_zeros();
    bits.max(1).div_ceil(7) as usize
}

/// Bytes that wait for one stranger.
#[derive(Debug, Default)]
struct ListenerBacklog {
    /// Bytes left of each frame that it was given, the oldest first.
    frames: VecDeque<usize>,
    bytes: usize,
}

impl ListenerBacklog {
    fn cost(&self) -> usize {
        // A flood of short messages must be bounded, too, and takes more memory than their bytes.
        self.bytes + self.frames.len() * WAITING_COST
    }

    fn give(&mut self, frame: usize) {
        self.frames.push_back(frame);
        self.bytes += frame;
    }

    /// Its streams have taken so many bytes. Bytes that they took beside messages, of control messages, count
    /// no further.
    fn take(&mut self, bytes: u64) {
        // Gossipsub's queue gives messages out in order, so that the bytes taken are of the oldest ones.
        let mut left = usize::try_from(bytes).unwrap_or(usize::MAX);
        while left > 0
            && let Some(first) = self.frames.front_mut()
        {
            let part = left.min(*first);
            (left, *first, self.bytes) = (left - part, *first - part, self.bytes - part);
            if *first == 0 {
                self.frames.pop_front();
            }
        }
    }

    /// Gossipsub has dropped the oldest message, none of which was on its way.
    fn lose(&mut self) {
        if let Some(frame) = self.frames.pop_front() {
            self.bytes -= frame;
        }
    }
}

/// Strangers that listen.
#[derive(Debug)]
pub(super) struct Listeners {
    limits: ListeningLimits,
    /// Messages that gossipsub keeps for one peer.
    messages: usize,
    topic: usize,
    waiting: HashMap<PeerId, ListenerBacklog>,
    /// Bytes that still wait for those that are being disconnected.
    ending: HashMap<PeerId, usize>,
}

impl Listeners {
    /// For a topic of so many bytes, where gossipsub keeps so many messages for one peer.
    pub(super) fn new(limits: ListeningLimits, messages: usize, topic: usize) -> Self {
        Self { limits, messages, topic, waiting: HashMap::new(), ending: HashMap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn contains(&self, peer: &PeerId) -> bool {
        self.waiting.contains_key(peer)
    }

    pub(super) fn peers(&self) -> Vec<PeerId> {
        self.waiting.keys().copied().collect()
    }

    /// A stranger listens from now on.
    pub(super) fn add(&mut self, peer: PeerId) {
        self.waiting.entry(peer).or_default();
    }

    /// The peer has proven who it is, or is gone.
    pub(super) fn remove(&mut self, peer: &PeerId) {
        self.waiting.remove(peer);
        self.ending.remove(peer);
    }

    /// Notes that a stranger's streams have taken so many bytes.
    pub(super) fn take(&mut self, peer: &PeerId, bytes: u64) {
        if let Some(waiting) = self.waiting.get_mut(peer) {
            waiting.take(bytes);
        }
    }

    /// Notes that gossipsub has dropped the oldest message that waits for a stranger.
    pub(super) fn lose(&mut self, peer: &PeerId) {
        if let Some(waiting) = self.waiting.get_mut(peer) {
            waiting.lose();
        }
    }

    /// Strangers that have to go so that those who stay can be given a message of so many bytes, and what
    /// waits for each: those who are given no more whatever others have, then whoever has most, and then
    /// others, until there is room for all who stay. Bytes that still wait for those that are being
    /// disconnected are beside that, as long as they are no more than may wait for all.
    pub(super) fn make_room(&mut self, data: usize) -> Vec<(PeerId, usize)> {
        let needed = frame_len(self.topic, data) + WAITING_COST;
        let (limits, messages) = (self.limits, self.messages);
        let is_behind = |waiting: &ListenerBacklog| {
            waiting.cost() + needed > limits.each || waiting.frames.len() >= messages
        };
        let behind = self.waiting.iter().filter(|(_, waiting)| is_behind(waiting));
        let mut gone: Vec<PeerId> = behind.map(|(peer, _)| *peer).collect();
        gone.iter().for_each(|peer| self.end(peer));
        let mut waiting: usize = self.waiting.values().map(ListenerBacklog::cost).sum();
        let mut ending: usize = self.ending.values().sum();
        let mut others: Vec<_> = self.waiting.iter().map(|(peer, held)| (held.cost(), *peer)).collect();
        // The one with most is taken from the end first, because then fewest have to go.
        others.sort_unstable_by_key(|(cost, _)| *cost);
        // Connections end in their own time. Bytes that they hold meanwhile have an allowance of their own,
        // because strangers that read must not lose their places for them.
        while waiting + ending.saturating_sub(limits.all) + needed * others.len() > limits.all {
            let Some((cost, peer)) = others.pop() else { break };
            (waiting, ending) = (waiting - cost, ending + cost);
            self.end(&peer);
            gone.push(peer);
        }
        let bytes = |peer: PeerId| (peer, self.ending.get(&peer).copied().unwrap_or_default());
        gone.into_iter().map(bytes).collect()
    }

    /// Counts a stranger's bytes among those of connections that end.
    fn end(&mut self, peer: &PeerId) {
        if let Some(waiting) = self.waiting.remove(peer) {
            self.ending.insert(*peer, waiting.cost());
        }
    }

    /// Those of them that it holds for were given a message of so many bytes.
    pub(super) fn give(&mut self, data: usize, holds: impl Fn(&PeerId) -> bool) {
        let frame = frame_len(self.topic, data);
        self.waiting.iter_mut().filter(|(peer, _)| holds(peer)).for_each(|(_, waiting)| waiting.give(frame));
    }

    /// Bytes that wait for all of them.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.waiting.values().map(ListenerBacklog::cost).sum::<usize>() + self.ending.values().sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOPIC: usize = 20;
    const LIMITS: ListeningLimits = ListeningLimits { each: 10_000, all: 40_000 };

    fn listeners(count: usize) -> (Listeners, Vec<PeerId>) {
        let mut listeners = Listeners::new(LIMITS, 64, TOPIC);
        let peers: Vec<_> = (0..count).map(|_| PeerId::random()).collect();
        peers.iter().for_each(|peer| listeners.add(*peer));
        (listeners, peers)
    }

    /// Publishes a message of so many bytes; who has to go for it.
    fn publish(listeners: &mut Listeners, data: usize) -> Vec<PeerId> {
        let gone = listeners.make_room(data).into_iter().map(|(peer, _)| peer).collect();
        listeners.give(data, |_| true);
        let waiting: usize = listeners.waiting.values().map(ListenerBacklog::cost).sum();
        assert!(waiting <= LIMITS.all && listeners.held() <= 2 * LIMITS.all);
        gone
    }

    #[test]
    fn frames_are_as_long_as_protobuf_makes_them() {
        // 18 len { 18 1 d, 34 1 t } behind its length.
        assert_eq!(frame_len(1, 1), 1 + 2 + 3 + 3);
        assert_eq!([0, 1, 127, 128, 16_383, 16_384].map(varint_len), [1, 1, 1, 2, 2, 3]);
        assert_eq!(frame_len(20, 200), 2 + (1 + 2) + (1 + 2 + 200) + (1 + 1 + 20));
    }

    #[test]
    fn whoever_takes_nothing_goes_with_what_it_may_hold_and_nobody_else() {
        let (mut listeners, peers) = listeners(2);
        let frame = frame_len(TOPIC, 1000) as u64;
        for _ in 0..6 {
            assert_eq!(publish(&mut listeners, 1000), []);
            listeners.take(&peers[1], frame);
        }
        assert_eq!(publish(&mut listeners, 1000), [peers[0]]);
        assert!(listeners.contains(&peers[1]) && !listeners.contains(&peers[0]));
        assert!(listeners.held() > 6000, "it waits until the connection is closed");
        listeners.remove(&peers[0]);
        listeners.take(&peers[1], frame + 500);
        assert_eq!(listeners.held(), 0, "more than was given counts for nothing");
    }

    #[test]
    fn all_together_hold_no_more_than_they_may_and_whoever_has_most_goes_first() {
        let (mut listeners, peers) = listeners(10);
        listeners.give(7000, |peer| peers[..5].contains(peer));
        let gone = publish(&mut listeners, 1900);
        assert!(gone.len() == 3 && gone.iter().all(|peer| peers[..5].contains(peer)), "{gone:?}");
        // However slowly they go, what waits for those who went and those who stay is bounded.
        let all: usize = gone.len() + (0..20).map(|_| publish(&mut listeners, 1900).len()).sum::<usize>();
        assert_eq!(all, peers.len());
        // A message that is too long for so many reaches as many as there is room for.
        let (mut listeners, peers) = self::listeners(10);
        assert_eq!(publish(&mut listeners, 8000).len(), peers.len() - LIMITS.all / 8600);
        // Many small messages are as dear as few long ones.
        let (mut listeners, peers) = self::listeners(1);
        let fit = (0..100).take_while(|_| publish(&mut listeners, 1).is_empty()).count();
        assert_eq!(fit, LIMITS.each / (WAITING_COST + frame_len(TOPIC, 1)));
        listeners.remove(&peers[0]);
        assert!(listeners.is_empty() && listeners.held() == 0);
    }

    #[test]
    fn what_gossipsub_drops_waits_no_more() {
        let (mut listeners, peers) = listeners(1);
        for data in [300, 200, 100] {
            publish(&mut listeners, data);
        }
        listeners.take(&peers[0], frame_len(TOPIC, 300) as u64);
        listeners.lose(&peers[0]);
        assert_eq!(listeners.held(), WAITING_COST + frame_len(TOPIC, 100));
    }
}
