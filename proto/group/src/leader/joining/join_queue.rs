//! Join requests that wait for the next batch (§6.3).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Element, Suite};
use quiver_machine::{Now, Peer};
use quiver_message::{COOKIE_LEN, DecodedJoinRequest, Nonce};

use super::anonymous_join::AnonymousJoin;
use super::kem_exchange::JoinKey;
use crate::leader::interface::LeaderTiming;

/// Number of joins that may wait in any group. In a large one as many may as half its slots: it is formed in a
/// handful of epochs then, each of which all who are connected hear, and the memory of waiting joins stays a
/// fraction of that of the members.
const ALWAYS_WAITING: usize = 16_384;
/// Maximum number of them from one connection (a gateway carries many drones).
const MAX_PER_PEER: usize = 256;

/// Maximum number of challenges remembered per connection.
const MAX_TAKEN: usize = 4 * MAX_PER_PEER;
/// Maximum number of waiting requests whose signatures are not verified: one batch verifies as many at once.
const MAX_UNVERIFIED: usize = 4096;

/// Changes of an epoch below which the next batch waits longer for company.
const SPARSE: usize = 8;
/// Maximum number of doublings of that wait.
const MAX_DOUBLINGS: u32 = 16;

/// A challenge that a request came with.
type Challenge = [u8; COOKIE_LEN];

/// Joins that wait for the next epoch, in the order they came. Their signatures are verified together when it
/// is made, so until then a name on a request means nothing: two requests in one name wait side by side.
#[derive(Debug)]
pub(in crate::leader) struct JoinQueue<S: Suite> {
    joins: Vec<UnverifiedJoin<S>>,
    /// Drones that showed that they satisfy the policy, in the order they did.
    anonymous: Vec<AnonymousJoin<S>>,
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
    /// Wait of the batch for company, as a number of doublings of `batching`.
    doublings: u32,
    /// The epoch that the last batch made: when, and whether it had few changes.
    made: Option<(Duration, bool)>,
    capacity: usize,
    /// Time for which a request is known: as long as its challenge would admit it.
    remembered: Duration,
}

/// A request to join, its signatures not yet verified.
#[derive(Debug)]
pub(in crate::leader) struct UnverifiedJoin<S: Suite> {
    pub(in crate::leader) peer: Peer,
    pub(in crate::leader) nonce: Nonce,
    pub(in crate::leader) challenge: [u8; COOKIE_LEN],
    pub(in crate::leader) request: DecodedJoinRequest<S>,
    /// The bytes that the signature `join` covers.
    pub(in crate::leader) statement: Vec<u8>,
    /// Y of the drone, if its signatures were verified.
    pub(in crate::leader) implicit: Option<Element<S>>,
    /// κ, where there is a second factor.
    pub(in crate::leader) kem: Option<JoinKey<S>>,
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
            doublings: 0,
            made: None,
            capacity: ALWAYS_WAITING.max(max_members as usize / 2),
            // Cookies count in whole seconds.
            remembered: lifetime + Duration::from_secs(1),
        }
    }

    pub(in crate::leader) fn len(&self) -> usize {
        self.joins.len() + self.anonymous.len()
    }

    /// Returns true if no more fit.
    pub(super) fn is_full(&mut self, now: Now) -> bool {
        if self.taken.len() >= 8 * self.capacity {
            self.forget_old(now);
        }
        self.joins.len() >= self.capacity || self.taken.len() >= 8 * self.capacity
    }

    /// Returns true if no more fit from this connection. `verified` is whether an earlier request over it had
    /// valid signatures.
    pub(super) fn is_full_for(&self, peer: Peer, verified: bool) -> bool {
        // §6.4: 256 of a connection and 4,096 unverified in all; 1,024 challenges of a connection.
        self.per_peer.get(&peer).is_some_and(|count| *count >= MAX_PER_PEER)
            || self.taken_over(peer).count() >= MAX_TAKEN
            || (verified && self.unverified >= MAX_UNVERIFIED)
    }

    /// Returns true if a challenge was answered before. It holds for one connection alone.
    pub(super) fn knows(&self, peer: Peer, nonce: &Challenge) -> bool {
        self.taken.contains_key(&(peer, *nonce))
    }

    /// The challenges that were answered over this connection.
    fn taken_over(&self, peer: Peer) -> impl Iterator<Item = &(Peer, Challenge)> {
        let (first, last) = ([0; COOKIE_LEN], [u8::MAX; COOKIE_LEN]);
        self.taken.range((peer, first)..=(peer, last)).map(|(taken, _)| taken)
    }

    #[cfg(test)]
    pub(super) const fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
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

    /// Remembers a challenge that was answered, for as long as it would be recognised.
    pub(super) fn note_answered(&mut self, now: Now, peer: Peer, challenge: Challenge) {
        self.taken.insert((peer, challenge), now.monotonic);
        self.forget.get_or_insert(now.monotonic + self.remembered);
    }

    pub(super) fn push(&mut self, now: Now, timing: &LeaderTiming, candidate: UnverifiedJoin<S>) {
        // §6.4: a challenge is answered once: a replay would end its sender's membership.
        self.note_answered(now, candidate.peer, candidate.challenge);
        self.unverified += usize::from(candidate.implicit.is_none());
        *self.per_peer.entry(candidate.peer).or_default() += 1;
        self.joins.push(candidate);
        self.start_batch_timer(now, timing);
    }

    pub(super) fn push_anonymous(&mut self, now: Now, timing: &LeaderTiming, join: AnonymousJoin<S>) {
        self.anonymous.push(join);
        self.start_batch_timer(now, timing);
    }

    /// A drone that disconnected does not join.
    pub(super) fn forget_anonymous(&mut self, peer: Peer) {
        self.anonymous.retain(|one| one.peer != peer);
    }

    pub(super) fn take_anonymous(&mut self) -> Vec<AnonymousJoin<S>> {
        core::mem::take(&mut self.anonymous)
    }

    /// Starts the batch timer at a join or leave: the batch closes when no other follows for a while, or when
    /// the first has waited long enough.
    pub(in crate::leader) fn start_batch_timer(&mut self, now: Now, timing: &LeaderTiming) {
        if self.first.is_none() {
            self.first = Some(now.monotonic);
            self.choose_wait(now, timing);
        }
        self.last = now.monotonic;
    }

    /// Chooses how long a batch that begins now waits for company. Where drones come one after the other,
    /// each too late for the epoch of the one before, the wait doubles until some come together.
    fn choose_wait(&mut self, now: Now, timing: &LeaderTiming) {
        // §6.3: `batching`, unless the last epoch of a batch is younger than `batching_max`.
        let recent = self.made.filter(|(at, _)| now.monotonic < *at + timing.batching_max);
        match recent {
            None => self.doublings = 0,
            // §6.3: twice as long after an epoch with fewer than 8 changes, up to `batching_max`.
            Some((_, true)) if self.company(timing) < timing.batching_max => {
                self.doublings = (self.doublings + 1).min(MAX_DOUBLINGS);
            }
            Some(_) => {}
        }
    }

    /// Time without another join or leave after which the batch closes.
    fn company(&self, timing: &LeaderTiming) -> Duration {
        timing.batching.saturating_mul(1 << self.doublings).min(timing.batching_max)
    }

    /// A batch made an epoch with so many joins and leaves.
    pub(super) fn made_epoch(&mut self, now: Now, changes: usize) {
        self.made = Some((now.monotonic, changes < SPARSE));
    }

    /// Time at which the batch is made: while an epoch is arriving, not before it has, or the first has
    /// waited for much longer than that.
    pub(super) fn deadline(&self, timing: &LeaderTiming, arriving: Option<Duration>) -> Option<Duration> {
        let first = self.first?;
        // §6.3: each join or leave starts the wait anew, up to `batching_max`, and a full batch waits for none.
        let closes = if self.joins.len() >= self.capacity {
            first
        } else {
            (self.last + self.company(timing)).min(first + timing.batching_max)
        };
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
    pub(super) fn take(&mut self, now: Now) -> Vec<UnverifiedJoin<S>> {
        self.forget_old(now);
        (self.first, self.unverified) = (None, 0);
        self.per_peer.clear();
        core::mem::take(&mut self.joins)
    }
}

#[cfg(test)]
mod tests {
    use quiver_ainq::StrategyKind;
    use quiver_machine::Input;

    use super::*;
    use crate::leader::test_support::LeaderFixture;

    /// Far less than `batching`.
    const TICK: Duration = Duration::from_millis(10);

    fn fixture() -> LeaderFixture {
        LeaderFixture::new(StrategyKind::Flat, 0..200)
    }

    fn epochs(fixture: &LeaderFixture) -> u64 {
        fixture.epoch().counter
    }

    /// Lets time pass, as a driver does.
    fn run_for(fixture: &mut LeaderFixture, time: Duration) {
        let end = fixture.now.monotonic + time;
        while fixture.now.monotonic < end {
            fixture.now.monotonic += TICK;
            fixture.input(Input::Timeout);
        }
    }

    /// Time from a member's leave until the epoch without it.
    fn wait_of_a_leave(fixture: &mut LeaderFixture, slot: u32) -> Duration {
        let (counter, start) = (epochs(fixture), fixture.now.monotonic);
        fixture.leave(slot);
        while epochs(fixture) == counter {
            run_for(fixture, TICK);
            assert!(fixture.now.monotonic - start < Duration::from_secs(60), "no epoch");
        }
        fixture.now.monotonic - start
    }

    /// Lets `members` leave one after the other. Returns the number of epochs that it took.
    fn trickle(fixture: &mut LeaderFixture, members: core::ops::Range<u32>, apart: Duration) -> u64 {
        let before = epochs(fixture);
        for slot in members {
            fixture.leave(slot);
            run_for(fixture, apart);
        }
        run_for(fixture, LeaderTiming::default().batching_max);
        epochs(fixture) - before
    }

    #[test]
    fn drones_that_come_one_by_one_enter_few_epochs() {
        let timing = LeaderTiming::default();
        let mut fixture = fixture();
        // Each is too late for the first one's epoch.
        let apart = timing.batching * 2;
        let made = trickle(&mut fixture, 0..60, apart);
        // One for each `batching_max`, and those before the wait has grown.
        let most = (apart * 60).as_millis() / timing.batching_max.as_millis() + 5;
        assert!(u128::from(made) <= most, "{made} epochs, not {most}");
    }

    #[test]
    fn a_lone_change_waits_no_longer_than_batching() {
        let timing = LeaderTiming::default();
        let mut fixture = fixture();
        for slot in 0..5 {
            let waited = wait_of_a_leave(&mut fixture, slot);
            assert!(waited <= timing.batching + TICK, "{waited:?}");
            run_for(&mut fixture, timing.batching_max);
        }
    }

    #[test]
    fn wait_doubles_while_each_epoch_takes_one_and_is_bounded_and_short_again_after_a_pause() {
        let timing = LeaderTiming::default();
        let mut fixture = fixture();
        for slot in 0..8 {
            let waited = wait_of_a_leave(&mut fixture, slot);
            let expected = (timing.batching * (1 << slot)).min(timing.batching_max);
            assert!(waited >= expected && waited <= expected + TICK, "{slot}: {waited:?}, not {expected:?}");
        }
        run_for(&mut fixture, timing.batching_max);
        assert!(wait_of_a_leave(&mut fixture, 8) <= timing.batching + TICK);
    }

    #[test]
    fn epoch_of_many_changes_makes_the_next_batch_wait_no_longer() {
        let timing = LeaderTiming::default();
        let mut fixture = fixture();
        for wave in 0..4 {
            let counter = epochs(&fixture);
            for slot in 0..8 {
                fixture.leave(wave * 8 + slot);
            }
            run_for(&mut fixture, timing.batching + TICK);
            assert_eq!(epochs(&fixture), counter + 1, "wave {wave}");
        }
    }

    #[test]
    fn no_setting_overflows_the_wait() {
        let mut queue = JoinQueue::<crate::leader::test_support::S>::new(10, Duration::ZERO);
        let timing = LeaderTiming {
            batching: Duration::MAX / 3,
            batching_max: Duration::from_secs(1 << 40),
            ..LeaderTiming::default()
        };
        for second in 0..100 {
            let now = Now { monotonic: Duration::from_secs(second), unix: second };
            queue.start_batch_timer(now, &timing);
            assert!(queue.deadline(&timing, None) <= Some(now.monotonic + timing.batching_max));
            queue.first = None;
            queue.made_epoch(now, 1);
        }
        assert_eq!(queue.company(&timing), timing.batching_max);
        let never = LeaderTiming { batching: Duration::ZERO, ..timing };
        for second in 0..100 {
            queue.choose_wait(Now { monotonic: Duration::from_secs(second), unix: second }, &never);
        }
        assert_eq!((queue.company(&never), queue.doublings), (Duration::ZERO, MAX_DOUBLINGS));
    }
}
