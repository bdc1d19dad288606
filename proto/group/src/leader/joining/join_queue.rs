//! Join requests that wait for the next batch (§6.3).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Element, Suite};
use quiver_machine::{Now, Peer};
use quiver_message::{COOKIE_LEN, DecodedJoinRequest, Nonce};

use super::anonymous_join::AnonymousJoin;
use crate::leader::interface::LeaderTiming;

/// Number of joins that may wait in any group. In a large one an eighth of its slots may: it is formed in a
/// handful of epochs then, and the memory of waiting joins stays a fraction of that of the members.
const ALWAYS_WAITING: usize = 16_384;
/// Maximum number of them from one connection (a gateway carries many drones).
const MAX_PER_PEER: usize = 256;

/// Maximum number of challenges remembered per connection.
const MAX_TAKEN: usize = 4 * MAX_PER_PEER;
/// Maximum number of waiting requests whose signatures are not verified: one batch verifies as many at once.
const MAX_UNVERIFIED: usize = 4096;

/// A challenge that a request came with.
type Challenge = [u8; COOKIE_LEN];

/// Joins that wait for the next epoch, in the order they came. Their signatures are verified together when it
/// is made, so until then a name on a request means nothing: two requests in one name wait side by side.
#[derive(Debug)]
pub(in crate::leader) struct JoinQueue<S: Suite> {
    joins: Vec<Candidate<S>>,
    /// Drones that showed that they satisfy the policy, in the order they did.
    anonymous: Vec<AnonymousJoin>,
    per_peer: BTreeMap<Peer, usize>,
    /// Nonces of requests that were taken, for as long as their challenge would admit them again: a request
    /// that is replayed would end its sender's membership. Each with the connection that it came over and
    /// when: one map, since most connections have one.
    taken: BTreeMap<(Peer, Challenge), Duration>,
    /// Number of waiting requests that are not verified.
    unverified: usize,
    /// Time at which some of them are old enough to be forgotten.
    forget: Option<Duration>,
    first: Option<Duration>,
    last: Duration,
    capacity: usize,
    /// For how long a request is known: as long as its challenge would admit it.
    remembered: Duration,
}

/// A request to join, its signatures not yet verified.
#[derive(Debug)]
pub(in crate::leader) struct Candidate<S: Suite> {
    pub(in crate::leader) peer: Peer,
    pub(in crate::leader) nonce: Nonce,
    pub(in crate::leader) challenge: [u8; COOKIE_LEN],
    pub(in crate::leader) request: DecodedJoinRequest<S>,
    /// The bytes that the signature `join` covers.
    pub(in crate::leader) statement: Vec<u8>,
    /// Y of the drone, if its signatures were verified.
    pub(in crate::leader) implicit: Option<Element<S>>,
}

impl<S: Suite> JoinQueue<S> {
    pub(super) fn new(max_members: u32, lifetime: Duration) -> Self {
        Self {
            joins: Vec::new(),
            anonymous: Vec::new(),
            per_peer: BTreeMap::new(),
            taken: BTreeMap::new(),
            unverified: 0,
            forget: None,
            first: None,
            last: Duration::ZERO,
            capacity: ALWAYS_WAITING.max(max_members as usize / 8),
            // Cookies count in whole seconds.
            remembered: lifetime + Duration::from_secs(1),
        }
    }

    pub(in crate::leader) fn len(&self) -> usize {
        self.joins.len() + self.anonymous.len()
    }

    /// Whether no more fit.
    pub(super) fn is_full(&mut self, now: Now) -> bool {
        if self.taken.len() >= 8 * self.capacity {
            self.forget_old(now);
        }
        self.joins.len() >= self.capacity || self.taken.len() >= 8 * self.capacity
    }

    /// Whether no more fit from this connection. `verified` is whether an earlier request over it had valid
    /// signatures.
    pub(super) fn is_full_for(&self, peer: Peer, verified: bool) -> bool {
        // §6.4: 256 of a connection and 4,096 unverified in all; 1,024 challenges of a connection.
        self.per_peer.get(&peer).is_some_and(|count| *count >= MAX_PER_PEER)
            || self.taken_over(peer).count() >= MAX_TAKEN
            || (verified && self.unverified >= MAX_UNVERIFIED)
    }

    /// Whether a challenge was answered before. It holds for one connection alone.
    pub(super) fn knows(&self, peer: Peer, nonce: &Challenge) -> bool {
        self.taken.contains_key(&(peer, *nonce))
    }

    /// The challenges that were answered over this connection.
    fn taken_over(&self, peer: Peer) -> impl Iterator<Item = &(Peer, Challenge)> {
        let (first, last) = ([0; COOKIE_LEN], [u8::MAX; COOKIE_LEN]);
        self.taken.range((peer, first)..=(peer, last)).map(|(taken, _)| taken)
    }

    #[cfg(test)]
    pub(super) fn remembered_challenges(&self) -> usize {
        self.taken.len()
    }

    /// The connection is gone: no challenge of it holds any more.
    pub(super) fn disconnected(&mut self, peer: Peer) {
        let taken: Vec<_> = self.taken_over(peer).copied().collect();
        // §6.4: remembered until the connection ends.
        for challenge in taken {
            self.taken.remove(&challenge);
        }
    }

    pub(super) fn push(&mut self, now: Now, candidate: Candidate<S>) {
        // §6.4: a challenge is answered once: a replay would end its sender's membership.
        self.taken.insert((candidate.peer, candidate.challenge), now.monotonic);
        self.unverified += usize::from(candidate.implicit.is_none());
        self.forget.get_or_insert(now.monotonic + self.remembered);
        *self.per_peer.entry(candidate.peer).or_default() += 1;
        self.joins.push(candidate);
        self.start_batch_timer(now);
    }

    pub(super) fn push_anonymous(&mut self, now: Now, join: AnonymousJoin) {
        self.anonymous.push(join);
        self.start_batch_timer(now);
    }

    /// A drone that disconnected does not join.
    pub(super) fn forget_anonymous(&mut self, peer: Peer) {
        self.anonymous.retain(|one| one.peer != peer);
    }

    pub(super) fn take_anonymous(&mut self) -> Vec<AnonymousJoin> {
        core::mem::take(&mut self.anonymous)
    }

    /// Starts the batch timer at a join or leave: the batch closes when no other follows for a while, or when
    /// the first has waited long enough.
    pub(in crate::leader) fn start_batch_timer(&mut self, now: Now) {
        self.first.get_or_insert(now.monotonic);
        self.last = now.monotonic;
    }

    /// While an epoch is arriving, not before it has, or the first has waited for much longer than that.
    pub(super) fn deadline(&self, timing: &LeaderTiming, arriving: Option<Duration>) -> Option<Duration> {
        let first = self.first?;
        // §6.3: the wait begins with `batching` and stretches up to `batching_max`.
        let closes = (self.last + timing.batching).min(first + timing.batching_max);
        // §6.3: for the newest epoch to arrive, up to eight times `batching_max`.
        let patience = first + timing.batching_max * LeaderTiming::ARRIVING;
        Some(arriving.map_or(closes, |arriving| closes.max(arriving.min(patience))))
    }

    /// Time of the next clean-up.
    pub(super) fn tidying(&self) -> Option<Duration> {
        self.forget
    }

    /// Forgets what no challenge would admit any more.
    pub(super) fn forget_old(&mut self, now: Now) {
        let remembered = self.remembered;
        self.taken.retain(|_, at| *at + remembered > now.monotonic);
        self.forget = self.taken.values().min().map(|at| *at + remembered);
    }

    /// Drops all waiting joins. The requests are known as long as their challenges admit them.
    pub(in crate::leader) fn abandon(&mut self) {
        (self.joins, self.first, self.unverified) = (Vec::new(), None, 0);
        self.anonymous = Vec::new();
        self.per_peer.clear();
    }

    /// Ends the batch and returns all waiting joins.
    pub(super) fn take(&mut self, now: Now) -> Vec<Candidate<S>> {
        self.forget_old(now);
        (self.first, self.unverified) = (None, 0);
        self.per_peer.clear();
        core::mem::take(&mut self.joins)
    }
}
