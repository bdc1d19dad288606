//! Limits how often a peer is answered: one token bucket for each.

use alloc::collections::BTreeMap;
use core::time::Duration;

use crate::Peer;

/// Rate of a token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// At once.
    pub burst: u32,
    /// Time until one more is allowed.
    pub refill: Duration,
}

/// A token bucket per peer. Those that are full are not kept for longer than it takes to fill one.
#[derive(Debug)]
pub struct TokenBuckets {
    rate: Rate,
    /// Time at which the bucket of each peer is full again.
    full: BTreeMap<Peer, Duration>,
    /// Time at which full buckets are forgotten.
    sweep: Duration,
}

impl TokenBuckets {
    /// A full bucket for every peer.
    pub const fn new(rate: Rate) -> Self {
        Self { rate, full: BTreeMap::new(), sweep: Duration::ZERO }
    }

    /// Forgets the buckets that are full, if that was not done lately.
    pub fn tick(&mut self, clock: Duration) {
        if self.sweep <= clock {
            self.full.retain(|_, full| *full > clock);
            self.sweep = clock.saturating_add(self.rate.refill.saturating_mul(self.rate.burst));
        }
    }

    /// Takes a token. Returns whether there was one.
    pub fn take(&mut self, clock: Duration, peer: Peer) -> bool {
        self.tick(clock);
        let full = self.full.get(&peer).copied().unwrap_or_default().max(clock);
        let next = full.saturating_add(self.rate.refill);
        let room = clock.saturating_add(self.rate.refill.saturating_mul(self.rate.burst));
        if next > room {
            return false;
        }
        self.full.insert(peer, next);
        true
    }

    /// The peer is gone, and its handle is not used again.
    pub fn disconnected(&mut self, peer: Peer) {
        self.full.remove(&peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_takes_its_burst_and_then_the_rate_whatever_others_take() {
        let mut buckets = TokenBuckets::new(Rate { burst: 3, refill: Duration::from_secs(2) });
        let take = |buckets: &mut TokenBuckets, second, peer| {
            (0..9).filter(|_| buckets.take(Duration::from_secs(second), Peer(peer))).count()
        };
        assert_eq!(take(&mut buckets, 100, 1), 3);
        assert_eq!(take(&mut buckets, 100, 2), 3);
        assert_eq!(take(&mut buckets, 101, 1), 0);
        assert_eq!(take(&mut buckets, 104, 1), 2);
        assert_eq!(take(&mut buckets, 10_000, 1), 3);
        buckets.disconnected(Peer(1));
        assert_eq!(take(&mut buckets, 10_000, 1), 3);
    }

    #[test]
    fn buckets_that_are_full_again_are_forgotten() {
        let mut buckets = TokenBuckets::new(Rate { burst: 3, refill: Duration::from_secs(2) });
        for peer in 0..100 {
            assert!(buckets.take(Duration::from_secs(100), Peer(peer)));
        }
        buckets.tick(Duration::from_secs(101));
        assert_eq!(buckets.full.len(), 100);
        buckets.tick(Duration::from_secs(106));
        assert_eq!(buckets.full.len(), 0);
    }
}
