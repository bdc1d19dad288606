//! Signing rounds that a KGC of a quorum has open: in memory alone, each good for one signature share.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{KgcId, Suite, VerifiedRequest};
use quiver_message::EnrolShare;

use crate::Peer;
use crate::threshold::SignOnce;

/// How long a drone may take between commitment and signature.
pub(super) const LIFETIME: Duration = Duration::from_secs(60);
/// Rounds open for one token: a drone that lost the thread, a gateway that repeats what passes through it.
pub(super) const MAX_PER_TOKEN: usize = 4;
/// Rounds open in all, about a kilobyte each. A drone that found enough other KGCs leaves one behind.
pub(super) const MAX_OPEN: usize = 8192;

/// A commitment that was given, and the one share that may be made with it.
pub(super) struct Round<S: Suite> {
    /// Whom it was given to: nobody else can use it up.
    pub(super) peer: Peer,
    pub(super) request: VerifiedRequest<S>,
    pub(super) sign: SignOnce<S>,
}

/// A round that was opened, until its time is over.
struct Open<S: Suite> {
    number: u64,
    /// Until it is taken.
    round: Option<Round<S>>,
    /// Once it was signed for: the package, and the share that was given.
    answer: Option<(Parts, EnrolShare)>,
}

/// Whose commitments a package is made of.
pub(super) type Parts = Vec<(KgcId, Vec<u8>)>;

/// A round is one peer's about one request. A token is bound to one request, so the latter names the token as well.
type Key = (Peer, [u8; 32]);

/// The open rounds.
pub(super) struct Rounds<S: Suite> {
    open: BTreeMap<Key, Open<S>>,
    /// Who has a round open about a request, the oldest first.
    holders: BTreeMap<[u8; 32], VecDeque<Peer>>,
    /// When each ends, in the order in which they began; also of rounds that are over.
    ends: VecDeque<(Duration, u64, Key)>,
    next: u64,
}

impl<S: Suite> Rounds<S> {
    pub(super) fn new() -> Self {
        Self { open: BTreeMap::new(), holders: BTreeMap::new(), ends: VecDeque::new(), next: 0 }
    }

    /// Opens a round. An earlier one of the same peer for the same request is over; if there are too many, the oldest is.
    pub(super) fn open(&mut self, now: Duration, request: [u8; 32], round: Round<S>) {
        let key = (round.peer, request);
        self.remove(&key);
        let holders = self.holders.entry(request).or_default();
        let oldest = (holders.len() >= MAX_PER_TOKEN).then(|| holders.front().copied()).flatten();
        if let Some(oldest) = oldest {
            self.remove(&(oldest, request));
        }
        self.holders.entry(request).or_default().push_back(round.peer);
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.open.insert(key, Open { number, round: Some(round), answer: None });
        self.ends.push_back((now.saturating_add(LIFETIME), number, key));
        while self.open.len() > MAX_OPEN || self.ends.len() > 2 * MAX_OPEN {
            let Some((_, number, key)) = self.ends.pop_front() else { break };
            self.end(number, &key);
        }
    }

    /// Takes the round that was opened for this peer and request: it is over, whatever comes of it.
    pub(super) fn take(&mut self, peer: Peer, request: &[u8; 32]) -> Option<Round<S>> {
        self.open.get_mut(&(peer, *request))?.round.take()
    }

    /// Remembers the share that was given for this package, as long as the round would have been open: the message may get lost, and
    /// another round would give another key.
    pub(super) fn answered(&mut self, peer: Peer, request: [u8; 32], parts: &Parts, share: EnrolShare) {
        if let Some(open) = self.open.get_mut(&(peer, request)) {
            open.answer = Some((parts.clone(), share));
        }
    }

    /// The share that was given to this peer for this very package.
    pub(super) fn answer(&self, peer: Peer, request: &[u8; 32], parts: &Parts) -> Option<&EnrolShare> {
        let (package, share) = self.open.get(&(peer, *request))?.answer.as_ref()?;
        (package == parts).then_some(share)
    }

    /// Ends what has been open for too long.
    pub(super) fn expire(&mut self, now: Duration) {
        while let Some((end, number, key)) = self.ends.front().copied() {
            if end > now {
                break;
            }
            self.ends.pop_front();
            self.end(number, &key);
        }
    }

    /// When to call [`expire`](Self::expire) next.
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.ends.front().filter(|_| !self.open.is_empty()).map(|(end, ..)| *end)
    }

    /// Nobody will come back for these.
    pub(super) fn disconnected(&mut self, peer: Peer) {
        let keys: Vec<Key> =
            self.open.range((peer, [0; 32])..=(peer, [255; 32])).map(|(key, _)| *key).collect();
        for key in keys {
            self.remove(&key);
        }
    }

    /// Ends all: the share that they are for is replaced.
    pub(super) fn clear(&mut self) {
        *self = Self { next: self.next, ..Self::new() };
    }

    /// How many wait for their package.
    pub(super) fn len(&self) -> usize {
        self.open.values().filter(|open| open.round.is_some()).count()
    }

    fn end(&mut self, number: u64, key: &Key) {
        if self.open.get(key).is_some_and(|open| open.number == number) {
            self.remove(key);
        }
    }

    fn remove(&mut self, key: &Key) {
        if self.open.remove(key).is_none() {
            return;
        }
        let (peer, request) = key;
        if let Some(holders) = self.holders.get_mut(request) {
            holders.retain(|holder| holder != peer);
            if holders.is_empty() {
                self.holders.remove(request);
            }
        }
    }
}

impl<S: Suite> core::fmt::Debug for Rounds<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Rounds").field("open", &self.open.len()).finish_non_exhaustive()
    }
}
