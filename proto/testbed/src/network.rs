//! Link faults: loss, bursts, delay, duplication, reordering, corruption and partitions, per message.

mod partition;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;

pub use self::partition::{NodeSet, Partition};
use crate::{below, unit};

/// Bursts of loss after Gilbert and Elliott: a link is in a good or in a bad state, and every message may
/// change it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// Probability, per message, that a good link turns bad.
    pub start: f64,
    /// Probability, per message, that a bad link turns good: the mean burst is 1/`end` messages long.
    pub end: f64,
    /// Probability that a bad link loses a message.
    pub loss: f64,
}

/// Faults of links. Probabilities are per message and receiver.
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
    /// Links without a fault that take no time: messages arrive in the order in which they were sent.
    pub const INSTANT: Self = Self { delay: Duration::ZERO, jitter: Duration::ZERO, ..Self::SOUND };

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

impl fmt::Display for LinkFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} to {:?}", self.delay, self.delay + self.jitter)?;
        let shares = [
            ("lost", self.loss),
            ("twice", self.duplicate),
            ("held back", self.reorder),
            ("corrupted", self.corrupt),
        ];
        for (what, share) in shares.iter().filter(|(_, share)| *share > 0.0) {
            write!(f, ", {:.0} % {what}", share * 100.0)?;
        }
        if let Some(burst) = &self.burst {
            write!(f, ", bursts of {:.0} every {:.0} messages", 1.0 / burst.end, 1.0 / burst.start)?;
        }
        Ok(())
    }
}

/// A copy of a message that arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Delay in nanoseconds.
    pub after: u64,
    /// Bytes of the message, perhaps corrupted.
    pub payload: Arc<[u8]>,
}

/// Counts of messages sent, delivered and lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages handed to the network, one for every receiver.
    pub sent: u64,
    /// Bytes of the messages.
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
pub struct Network<N> {
    faults: LinkFaults,
    /// Faults of some nodes' links alone, in either direction, in place of the general ones.
    of_node: BTreeMap<N, LinkFaults>,
    partitions: Vec<Partition<N>>,
    /// Links in their bad state.
    bad: BTreeSet<(N, N)>,
    rng: ChaCha8Rng,
    traffic: Traffic,
}

impl<N: Copy + Ord> Network<N> {
    /// A network that draws its bad luck from this generator.
    pub fn new(rng: ChaCha8Rng, faults: LinkFaults) -> Self {
        Self {
            faults,
            of_node: BTreeMap::new(),
            partitions: Vec::new(),
            bad: BTreeSet::new(),
            rng,
            traffic: Traffic::default(),
        }
    }

    /// Faults of the links.
    pub fn faults(&self) -> &LinkFaults {
        &self.faults
    }

    /// Gives all links other faults.
    pub fn set_faults(&mut self, faults: LinkFaults) {
        self.faults = faults;
    }

    /// Gives one node's links faults of their own, or takes them away.
    pub fn set_faults_of(&mut self, node: N, faults: Option<LinkFaults>) {
        match faults {
            Some(faults) => self.of_node.insert(node, faults),
            None => self.of_node.remove(&node),
        };
    }

    /// The partitions in force.
    pub fn partitions(&self) -> &[Partition<N>] {
        &self.partitions
    }

    /// Puts a partition in force, beside those that are.
    pub fn part(&mut self, partition: Partition<N>) {
        self.partitions.push(partition);
    }

    /// Ends all partitions.
    pub fn heal(&mut self) {
        self.partitions.clear();
    }

    /// Links do nothing to messages any more.
    pub fn calm(&mut self) {
        self.faults = LinkFaults::SOUND;
        self.of_node.clear();
        self.bad.clear();
    }

    /// Returns true if messages get from one node to the other at all.
    pub fn reaches(&self, from: N, to: N) -> bool {
        let silent = |node| self.of_node.get(&node).is_some_and(|faults| faults.loss >= 1.0);
        !silent(from) && !silent(to) && !self.partitions.iter().any(|partition| partition.stops(from, to))
    }

    /// Counts of messages sent, delivered and lost.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// The shortest time any message is under way, in nanoseconds.
    pub fn shortest_delay(&self) -> u64 {
        let delays = self.of_node.values().chain([&self.faults]).map(|faults| faults.delay);
        delays.min().map_or(0, nanos)
    }

    /// Carries a message over a link, which delivers nothing, one copy, or two.
    pub fn carry(&mut self, from: N, to: N, payload: &Arc<[u8]>, arrive: &mut dyn FnMut(Arrival)) {
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
    pub fn lose(&mut self, payload: &[u8]) {
        self.traffic.sent += 1;
        self.traffic.bytes += payload.len() as u64;
        self.traffic.lost += 1;
    }

    fn loses(&mut self, from: N, to: N, faults: &LinkFaults) -> bool {
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

/// Nanoseconds of a duration.
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    const LEADER: u8 = 0;

    fn network(faults: LinkFaults) -> Network<u8> {
        Network::new(ChaCha8Rng::from_seed([1; 32]), faults)
    }

    fn carried(network: &mut Network<u8>, count: usize) -> Vec<Vec<Arrival>> {
        let payload: Arc<[u8]> = vec![0; 100].into();
        let carry = |_| {
            let mut arrivals = Vec::new();
            network.carry(LEADER, 1, &payload, &mut |arrival| arrivals.push(arrival));
            arrivals
        };
        (0..count).map(carry).collect()
    }

    #[test]
    fn sound_links_deliver_everything_once_and_unchanged() {
        let mut network = network(LinkFaults::SOUND);
        for arrivals in carried(&mut network, 1000) {
            let [arrival] = arrivals.as_slice() else { panic!("{arrivals:?}") };
            assert!((5_000_000..=10_000_000).contains(&arrival.after));
            assert!(arrival.payload.iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn bursts_lose_messages_in_a_row() {
        let burst = Burst { start: 0.02, end: 0.1, loss: 1.0 };
        let mut network = network(LinkFaults { burst: Some(burst), ..LinkFaults::SOUND });
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
        let mut network = network(faults);
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
        let mut network = network(LinkFaults::SOUND);
        network.part(Partition::one_way(NodeSet::only([LEADER]), NodeSet::only([1])));
        assert!(!network.reaches(LEADER, 1));
        assert!(network.reaches(1, LEADER));
        assert!(network.reaches(LEADER, 2));
        network.heal();
        assert!(network.reaches(LEADER, 1));
    }
}
