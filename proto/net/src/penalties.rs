//! Penalties of peers: each is refused for a while, for longer each time.
//!
//! A peer is known by its transport identity, of which a stranger makes any number: what a penalty costs it
//! is a handshake, a start from nothing, and a part of its [address's allowance](crate::addresses).

use std::collections::HashMap;
use std::time::Duration;

use libp2p::PeerId;
use tokio::time::Instant;

/// Duration of a peer's first refusal; doubled with each further one.
const FIRST: Duration = Duration::from_secs(5);
const MAX_DOUBLINGS: u32 = 7;
/// Time for which a penalty is remembered after its end.
const MEMORY: Duration = Duration::from_secs(1800);

/// A peer's.
struct Penalty {
    times: u32,
    until: Instant,
    served: bool,
}

/// The penalties of all peers, so many at most.
pub(crate) struct Penalties {
    by_id: HashMap<PeerId, Penalty>,
    capacity: usize,
}

impl Penalties {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { by_id: HashMap::new(), capacity }
    }

    /// A peer is refused from now on. Returns for how long, and the peer that is refused no more because too
    /// many are.
    pub(crate) fn add(&mut self, id: PeerId, now: Instant) -> (Duration, Option<PeerId>) {
        // Bounded: the peer whose penalty ends soonest makes room.
        let soonest = || self.by_id.iter().min_by_key(|(_, penalty)| penalty.until).map(|(id, _)| *id);
        let full = self.by_id.len() >= self.capacity && !self.by_id.contains_key(&id);
        let released = if full { soonest() } else { None };
        if let Some(released) = released {
            self.by_id.remove(&released);
        }
        let penalty = self.by_id.entry(id).or_insert(Penalty { times: 0, until: now, served: false });
        // §13.8: 5 s, and twice as long each further time, up to 640 s.
        let pause = FIRST.saturating_mul(1 << penalty.times.min(MAX_DOUBLINGS));
        penalty.times = penalty.times.saturating_add(1);
        (penalty.until, penalty.served) = (now + pause, false);
        (pause, released)
    }

    /// Removes and returns the peers whose penalty has ended.
    pub(crate) fn ended(&mut self, now: Instant) -> Vec<PeerId> {
        // §13.8: within half an hour.
        self.by_id.retain(|_, penalty| now < penalty.until + MEMORY);
        let ended = self.by_id.iter_mut().filter(|(_, penalty)| !penalty.served && penalty.until <= now);
        ended
            .map(|(id, penalty)| {
                penalty.served = true;
                *id
            })
            .collect()
    }

    /// Time at which the next penalty ends.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.by_id.values().filter(|penalty| !penalty.served).map(|penalty| penalty.until).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_penalty_doubles_with_each_time_and_is_forgotten_after_good_conduct() {
        let (mut penalties, start) = (Penalties::new(8), Instant::now());
        let peer = PeerId::random();
        assert_eq!(penalties.add(peer, start).0, FIRST);
        assert_eq!(penalties.wake_at(), Some(start + FIRST));
        assert!(penalties.ended(start + FIRST / 2).is_empty());
        assert_eq!(penalties.ended(start + FIRST), [peer]);
        assert_eq!((penalties.wake_at(), penalties.ended(start + FIRST).len()), (None, 0));
        assert_eq!(penalties.add(peer, start + FIRST).0, FIRST * 2);
        assert_eq!(penalties.ended(start + FIRST * 4), [peer]);
        assert!(penalties.ended(start + FIRST * 4 + MEMORY).is_empty());
        assert_eq!(penalties.add(peer, start + FIRST * 4 + MEMORY).0, FIRST);
    }

    #[test]
    fn no_more_penalties_are_remembered_than_there_is_room_for() {
        let (mut penalties, start) = (Penalties::new(2), Instant::now());
        let peers = [(); 3].map(|()| PeerId::random());
        for (second, peer) in (0..).zip(peers) {
            let released = penalties.add(peer, start + Duration::from_secs(second)).1;
            assert_eq!(released, (second == 2).then_some(peers[0]));
        }
    }
}
