//! Link faults: loss, bursts, delay, duplication, reordering, corruption and partitions, per message.

mod partition;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;

pub use self::partition::Partition;
use crate::NodeId;
use crate::rng_stream::{self, RngStream, below, unit};

/// Bursts of loss after Gilbert and Elliott: a link is in a good or in a bad state, and every message may change it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// Probability, per message, that a good link turns bad.
    pub start: f64,
    /// Probability, per message, that a bad link turns good: the mean burst is 1/`end` messages long.
    pub end: f64,
    /// Probability that a bad link loses a message.
    pub loss: f64,
}

/// What links do to messages. Probabilities are per message and receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkFaults {
    /// Shortest time under way.
    pub delay: Duration,
    /// Longest time on top of it, evenly distributed; more than the time between two messages reorders them.
    pub jitter: Duration,
    /// Lost, each on its own.
    pub loss: f64,
    /// Lost in bursts.
    pub burst: Option<Burst>,
    /// Arrives twice, the second time up to a second later.
    pub duplicate: f64,
    /// Held back for up to half a second, so that later messages overtake it.
    pub reorder: f64,
    /// Arrives with one to eight bits flipped.
    pub corrupt: f64,
}

impl LinkFaults {
    /// Links without a fault: 5 ms and up to 5 ms more.
    pub const SOUND: Self = Self {
        delay: Duration::from_millis(5),
        jitter: Duration::from_millis(5),
        loss: 0.0,
        burst: None,
        duplicate: 0.0,
        reorder: 0.0,
        corrupt: 0.0,
    };
}

impl Default for LinkFaults {
    fn default() -> Self {
        Self::SOUND
    }
}

/// A copy of a message that arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// After how many nanoseconds.
    pub(crate) after: u64,
    pub(crate) payload: Arc<[u8]>,
}

/// What was sent, what arrived, what did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages handed to the network, one for every receiver.
    pub sent: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Lost to a fault or a partition.
    pub lost: u64,
    /// Arrived twice.
    pub duplicated: u64,
    /// Arrived with flipped bits.
    pub corrupted: u64,
}

/// All links.
#[derive(Debug)]
pub struct Network {
    faults: LinkFaults,
    /// Faults of some nodes' links alone, in either direction, in place of the general ones.
    of_node: BTreeMap<NodeId, LinkFaults>,
    partitions: Vec<Partition>,
    /// Links in their bad state.
    bad: std::collections::BTreeSet<(NodeId, NodeId)>,
    rng: ChaCha8Rng,
    traffic: Traffic,
}

impl Network {
    pub(crate) fn new(seed: u64, faults: LinkFaults) -> Self {
        Self {
            faults,
            of_node: BTreeMap::new(),
            partitions: Vec::new(),
            bad: std::collections::BTreeSet::new(),
            rng: rng_stream::generator(seed, RngStream::Network),
            traffic: Traffic::default(),
        }
    }

    /// What the links do to messages.
    pub fn faults(&self) -> &LinkFaults {
        &self.faults
    }

    pub(crate) fn set_faults(&mut self, faults: LinkFaults) {
        self.faults = faults;
    }

    /// Gives one node's links faults of their own, or takes them away.
    pub(crate) fn set_faults_of(&mut self, node: NodeId, faults: Option<LinkFaults>) {
        match faults {
            Some(faults) => self.of_node.insert(node, faults),
            None => self.of_node.remove(&node),
        };
    }

    /// The partitions in force.
    pub fn partitions(&self) -> &[Partition] {
        &self.partitions
    }

    pub(crate) fn part(&mut self, partition: Partition) {
        self.partitions.push(partition);
    }

    pub(crate) fn heal(&mut self) {
        self.partitions.clear();
    }

    /// Links do nothing to messages any more.
    pub(crate) fn calm(&mut self) {
        self.faults = LinkFaults::SOUND;
        self.of_node.clear();
        self.bad.clear();
    }

    /// Whether messages get from one node to the other at all.
    pub fn reaches(&self, from: NodeId, to: NodeId) -> bool {
        let silent = |node| self.of_node.get(&node).is_some_and(|faults| faults.loss >= 1.0);
        !silent(from) && !silent(to) && !self.partitions.iter().any(|partition| partition.stops(from, to))
    }

    /// What was sent and what became of it.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// The shortest time any message is under way, in nanoseconds.
    pub(crate) fn shortest_delay(&self) -> u64 {
        let delays = self.of_node.values().chain([&self.faults]).map(|faults| faults.delay);
        delays.min().map_or(0, nanos)
    }

    /// What becomes of a message: nothing, one copy, or two.
    pub(crate) fn carry(
        &mut self,
        from: NodeId,
        to: NodeId,
        payload: &Arc<[u8]>,
        arrive: &mut dyn FnMut(Arrival),
    ) {
        self.traffic.sent += 1;
        self.traffic.bytes += payload.len() as u64;
        let faults = *self.of_node.get(&from).or_else(|| self.of_node.get(&to)).unwrap_or(&self.faults);
        if !self.reaches(from, to) || self.loses(from, to, &faults) {
            self.traffic.lost += 1;
            return;
        }
        let mut payload = Arc::clone(payload);
        if self.happens(faults.corrupt) {
            self.traffic.corrupted += 1;
            payload = self.corrupted(&payload);
        }
        let mut after = nanos(faults.delay) + self.up_to(faults.jitter);
        if self.happens(faults.reorder) {
            after += self.up_to(Duration::from_millis(500));
        }
        if self.happens(faults.duplicate) {
            self.traffic.duplicated += 1;
            let later = after + self.up_to(Duration::from_secs(1));
            arrive(Arrival { after: later, payload: Arc::clone(&payload) });
        }
        arrive(Arrival { after, payload });
    }

    /// A message that the radio lost before the links could.
    pub(crate) fn lose(&mut self, payload: &[u8]) {
        self.traffic.sent += 1;
        self.traffic.bytes += payload.len() as u64;
        self.traffic.lost += 1;
    }

    fn loses(&mut self, from: NodeId, to: NodeId, faults: &LinkFaults) -> bool {
        let mut lost = self.happens(faults.loss);
        if let Some(burst) = faults.burst {
            let link = (from, to);
            let bad = self.bad.contains(&link);
            if bad && self.happens(burst.end) {
                self.bad.remove(&link);
            } else if !bad && self.happens(burst.start) {
                self.bad.insert(link);
            }
            lost |= self.bad.contains(&link) && self.happens(burst.loss);
        }
        lost
    }

    fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && unit(&mut self.rng) < probability
    }

    fn up_to(&mut self, longest: Duration) -> u64 {
        let longest = nanos(longest);
        if longest == 0 { 0 } else { below(&mut self.rng, longest + 1) }
    }

    fn corrupted(&mut self, payload: &[u8]) -> Arc<[u8]> {
        let mut bytes = payload.to_vec();
        for _ in 0..=self.rng.next_u32() % 8 {
            let bit = below(&mut self.rng, bytes.len() as u64 * 8);
            let (byte, bit) = (usize::try_from(bit / 8).unwrap_or(0), bit % 8);
            if let Some(byte) = bytes.get_mut(byte) {
                *byte ^= 1 << bit;
            }
        }
        bytes.into()
    }
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeSet;

    fn carried(network: &mut Network, count: usize) -> Vec<Vec<Arrival>> {
        let payload: Arc<[u8]> = vec![0; 100].into();
        let carry = |_| {
            let mut arrivals = Vec::new();
            network
                .carry(NodeId::Leader(0), NodeId::Edge(1), &payload, &mut |arrival| arrivals.push(arrival));
            arrivals
        };
        (0..count).map(carry).collect()
    }

    #[test]
    fn sound_links_deliver_everything_once_and_unchanged() {
        let mut network = Network::new(1, LinkFaults::SOUND);
        for arrivals in carried(&mut network, 1000) {
            let [arrival] = arrivals.as_slice() else { panic!("{arrivals:?}") };
            assert!((5_000_000..=10_000_000).contains(&arrival.after));
            assert!(arrival.payload.iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn bursts_lose_messages_in_a_row() {
        let burst = Burst { start: 0.02, end: 0.1, loss: 1.0 };
        let mut network = Network::new(1, LinkFaults { burst: Some(burst), ..LinkFaults::SOUND });
        let lost: Vec<bool> = carried(&mut network, 20_000).iter().map(Vec::is_empty).collect();
        let total = lost.iter().filter(|lost| **lost).count();
        let starts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        // The stationary share of the bad state is start / (start + end), and a burst is 1/end messages long.
        assert!((2_800..3_900).contains(&total), "{total}");
        assert!((7.0..13.0).contains(&(total as f64 / starts as f64)), "{total} in {starts} bursts");
    }

    #[test]
    fn every_fault_happens_about_as_often_as_asked_for() {
        let faults =
            LinkFaults { loss: 0.2, duplicate: 0.1, corrupt: 0.1, reorder: 0.1, ..LinkFaults::SOUND };
        let mut network = Network::new(1, faults);
        let all = carried(&mut network, 10_000);
        let traffic = network.traffic();
        assert_eq!(traffic.sent, 10_000);
        assert!((1_800..2_200).contains(&traffic.lost), "{traffic:?}");
        assert!((700..900).contains(&traffic.duplicated), "{traffic:?}");
        let changed =
            all.iter().filter(|copies| copies.iter().any(|copy| copy.payload.iter().any(|byte| *byte != 0)));
        assert!((650..900).contains(&changed.count()));
        assert!(all.iter().flatten().any(|copy| copy.after > 100_000_000));
    }

    #[test]
    fn a_one_way_partition_stops_one_way_only() {
        let mut network = Network::new(1, LinkFaults::SOUND);
        network
            .part(Partition::one_way(NodeSet::only([NodeId::Leader(0)]), NodeSet::only([NodeId::Edge(1)])));
        assert!(!network.reaches(NodeId::Leader(0), NodeId::Edge(1)));
        assert!(network.reaches(NodeId::Edge(1), NodeId::Leader(0)));
        assert!(network.reaches(NodeId::Leader(0), NodeId::Edge(2)));
        network.heal();
        assert!(network.reaches(NodeId::Leader(0), NodeId::Edge(1)));
    }
}
