//! Draws, publishes and erases the one-time points that let a leader open a term without a round trip to
//! every member.

use alloc::boxed::Box;
use core::time::Duration;

use quiver_ainq::{GroupMembership, SparePair, Suite};
use quiver_crypto::ct_eq;
use quiver_machine::{Now, Offence, due, earlier};
use quiver_message::{Message, SpareAck, SparePublication};
use rand_core::CryptoRngCore;

use crate::edge::{EdgeContext, EdgeTiming};
use crate::statements;

/// Time for which a used spare pair is kept, so that of two competing terms the higher can still be followed.
const KEEP_USED: Duration = Duration::from_secs(60);
/// Time to wait for the leader to acknowledge a spare point before it is sent again, unless other answers
/// take longer; doubles from there.
const REPUBLISH: Duration = Duration::from_secs(5);
/// Maximum number of doublings.
const MAX_DOUBLINGS: u32 = 6;

/// The edge's spare pairs.
#[derive(Debug)]
pub(in crate::edge) struct SparePoints<S: Suite> {
    /// Unused; published, or about to be.
    current: Option<SparePair<S>>,
    /// Used by the newest term; erased when its successor is acknowledged or after a while.
    /// In a box, because it goes soon.
    used: Option<Box<(SparePair<S>, Duration)>>,
    /// The number of the next pair. Strictly rising.
    next_q: u64,
    /// Time of the next publication, until it is acknowledged.
    republish: Option<Duration>,
    /// Number of publications without acknowledgement.
    published: u32,
    /// Time to send the current point to leaders that do not lead.
    introduce: Option<Duration>,
}

impl<S: Suite> SparePoints<S> {
    pub(super) const fn new() -> Self {
        Self { current: None, used: None, next_q: 1, republish: None, published: 0, introduce: None }
    }

    /// The unused pair; drawn if there is none. The caller persists before it is published.
    pub(in crate::edge) fn current(&mut self, rng: &mut dyn CryptoRngCore) -> &SparePair<S> {
        let next_q = &mut self.next_q;
        self.current.get_or_insert_with(|| {
            let q = *next_q;
            *next_q = q.saturating_add(1);
            SparePair::generate(q, rng)
        })
    }

    /// Erases all pairs, published or not; the next is a fresh one.
    pub(in crate::edge) fn discard(&mut self) {
        *self = Self { next_q: self.next_q, ..Self::new() };
    }

    /// The unused pair and the number of the next, as they are stored.
    pub(in crate::edge) const fn stored(&self) -> (Option<&SparePair<S>>, u64) {
        (self.current.as_ref(), self.next_q)
    }

    /// Restores the stored points.
    pub(in crate::edge) fn restore(&mut self, current: Option<SparePair<S>>, next_q: u64) {
        (self.current, self.next_q) = (current, next_q);
    }

    /// The stored point may not have been acknowledged: it is published at once.
    pub(in crate::edge) fn republish_restored(&mut self) {
        self.republish = self.current.as_ref().map(|_| Duration::ZERO);
    }

    /// All pairs whose secrets are still in memory: the unused one, and the one before it for a while.
    pub(in crate::edge) fn held(&self) -> impl Iterator<Item = &SparePair<S>> {
        self.current.iter().chain(self.used.iter().map(|used| &used.0))
    }

    /// §9.3: A term was opened with the current pair, or with the one before: the next one takes its place.
    pub(super) fn used(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if let Some(spare) = self.current.take() {
            self.used = Some(Box::new((spare, now.monotonic + KEEP_USED)));
        }
        // §9.3: e_{q+1} is stored with the new term before it is published.
        self.published = 0;
        self.current(rng);
    }

    /// The leader has the current pair.
    pub(super) fn delivered(&mut self) {
        // §9.3: e_q is erased once its successor is acknowledged.
        (self.republish, self.published, self.used) = (None, 0, None);
    }

    /// Time to wait for this acknowledgement: a channel that is too slow for all answers must not be asked
    /// for them again and again.
    fn patience(&mut self, timing: &EdgeTiming) -> Duration {
        let first = REPUBLISH.max(timing.retry);
        let doubled = first * (1 << self.published.min(MAX_DOUBLINGS));
        self.published = self.published.saturating_add(1);
        doubled.min(timing.retry_max.max(first))
    }

    /// §10.5: Publishes the current point to every leader that is connected, until it is acknowledged.
    pub(super) fn publish(&mut self, cx: &mut EdgeContext<'_, S>, membership: Option<&GroupMembership<S>>) {
        let (Some(membership), true) = (membership, cx.keypair.is_some()) else {
            self.republish = None;
            return;
        };
        self.republish = Some(cx.now.monotonic + self.patience(cx.timing));
        self.send(cx, membership, 0);
    }

    /// Sends the current point to the leaders, but for so many in front: the active one acknowledges it, the
    /// others may need it one day.
    fn send(&self, cx: &mut EdgeContext<'_, S>, membership: &GroupMembership<S>, skipped: usize) {
        let to = cx.leaders.as_slice().get(skipped..).unwrap_or_default();
        // §9.3: only an edge that persists draws one: points are durable before they are sent.
        let (Some(current), Some(keypair), false) = (&self.current, cx.keypair, to.is_empty()) else {
            return;
        };
        let (group, slot) = (membership.group().clone(), membership.slot());
        // §6.6: under a signature `spare`.
        let spare = current.statement(keypair, cx.base.deployment, &group, cx.base.rng);
        let message = Message::SparePublication(SparePublication { group, slot, spare });
        let message = message.encode(cx.base.deployment);
        for peer in to {
            cx.base.out.send_encoded(*peer, message.clone());
        }
    }

    /// The leader acknowledges a point. Returns whether it is the current one.
    pub(super) fn acknowledged(
        &mut self,
        membership: &GroupMembership<S>,
        ack: &SpareAck,
    ) -> Result<bool, Offence> {
        if self.current.as_ref().is_none_or(|current| current.q() != ack.q) {
            return Ok(false);
        }
        // §6.6: only the leader of the pairwise key can say so.
        let tag = statements::spare_ack_tag::<S>(membership.auth_key(), ack.q);
        if !ct_eq(&tag, &ack.tag) {
            return Err(Offence::Mac("SpareAck"));
        }
        self.delivered();
        Ok(true)
    }

    /// Sends the current point to the leaders that do not lead at this time.
    pub(super) fn introduce_at(&mut self, deadline: Duration) {
        self.introduce = Some(deadline);
    }

    /// Erases, introduces and publishes what it is time for. Returns whether three publications were not acknowledged in
    /// time.
    pub(super) fn tick(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        membership: Option<&GroupMembership<S>>,
    ) -> bool {
        let now = cx.now.monotonic;
        // §9.3: and after a minute in any case.
        self.used.take_if(|used| used.1 <= now);
        if due(self.introduce, now) {
            self.introduce = None;
            if let Some(membership) = membership {
                self.send(cx, membership, 1);
            }
        }
        let late = due(self.republish, now);
        let again = late && self.published > 2;
        if late {
            self.publish(cx, membership);
        }
        again
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        let sent = earlier(self.republish, self.introduce);
        earlier(sent, self.used.as_deref().map(|(_, until)| *until))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use quiver_ainq::{Deployment, MasterSecret, Name, Ristretto255};
    use quiver_machine::{Context, Outbox, Revocations};
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::edge::failover::Leaders;

    #[test]
    fn a_spare_point_that_nobody_acknowledges_is_shown_less_and_less_often() {
        let timing = EdgeTiming::default();
        let mut spares = SparePoints::<Ristretto255>::new();
        let mut waits =
            |count| -> Vec<u64> { (0..count).map(|_| spares.patience(&timing).as_secs()).collect() };
        assert_eq!(waits(5), [5, 10, 20, 30, 30]);
        spares.delivered();
        assert_eq!(spares.patience(&timing), REPUBLISH);
        let slow =
            EdgeTiming { retry: Duration::from_secs(90), retry_max: Duration::from_secs(400), ..timing };
        assert_eq!(spares.patience(&slow), Duration::from_secs(180));
    }

    #[test]
    fn discarded_pairs_are_erased_used_or_not_and_no_number_comes_twice() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let mut spares = SparePoints::<Ristretto255>::new();
        let q = spares.current(&mut rng).q();
        let now = Now { monotonic: Duration::from_secs(100), unix: 1_000_000 };
        spares.used(now, &mut rng);
        spares.introduce_at(now.monotonic);
        assert_eq!(spares.held().count(), 2);
        spares.discard();
        assert_eq!((spares.held().count(), spares.deadline()), (0, None));
        assert!(spares.stored().0.is_none());
        assert_eq!(spares.current(&mut rng).q(), q + 2);
    }

    #[test]
    fn a_used_pair_is_kept_for_its_minute_and_erased_at_its_end() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let master = MasterSecret::<Ristretto255>::generate(&mut rng);
        let deployment = Deployment::new(Name::new("test").unwrap(), master.public());
        let (revocations, timing, mut leaders) = (Revocations::new(), EdgeTiming::default(), Leaders::new());
        let mut spares = SparePoints::<Ristretto255>::new();
        let start = Now { monotonic: Duration::from_secs(100), unix: 1_000_000 };
        let q = spares.current(&mut rng).q();
        spares.used(start, &mut rng);
        let mut holds_at = |spares: &mut SparePoints<_>, since: Duration| {
            let now = Now { monotonic: start.monotonic + since, ..start };
            let base = Context {
                now,
                rng: &mut rng,
                out: &mut Outbox::new(),
                deployment: &deployment,
                keypair: None,
                revocations: &revocations,
                group: None,
            };
            let mut cx = EdgeContext { base, leaders: &mut leaders, timing: &timing, boot_no: 1 };
            spares.tick(&mut cx, None);
            spares.held().any(|spare| spare.q() == q)
        };
        assert!(holds_at(&mut spares, Duration::ZERO));
        assert!(holds_at(&mut spares, KEEP_USED - Duration::from_nanos(1)));
        assert_eq!(spares.deadline(), Some(start.monotonic + KEEP_USED));
        assert!(!holds_at(&mut spares, KEEP_USED));
        assert!(spares.held().any(|spare| spare.q() == q + 1), "its successor stays");
    }
}
