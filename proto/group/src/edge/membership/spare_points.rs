//! The one-time points that let a leader open a term without a round trip to every member.

use alloc::boxed::Box;
use core::time::Duration;

use quiver_ainq::{SparePair, Suite};
use quiver_crypto::ct_eq;
use quiver_message::{Message, SpareAck, SparePublication};
use rand_core::CryptoRngCore;

use crate::edge::{Edge, EdgeTiming, Standing};
use crate::statements;
use quiver_machine::{Now, Offence, Peer};
use quiver_machine::{due, earlier};

/// For how long a used spare pair is kept, so that of two competing terms the higher can still be followed.
const KEEP_USED: Duration = Duration::from_secs(60);
/// How long to wait for the leader to acknowledge a spare point before showing it again, if other answers are not waited
/// for even longer; doubles from there.
const REPUBLISH: Duration = Duration::from_secs(5);
/// How often it doubles at most.
const MAX_DOUBLINGS: u32 = 6;

/// The edge's spare pairs.
#[derive(Debug)]
pub(in crate::edge) struct SparePoints<S: Suite> {
    /// Unused; published, or about to be.
    pub(in crate::edge) current: Option<SparePair<S>>,
    /// Used by the newest term; erased when its successor is acknowledged or after a while.
    /// In a box, because it goes soon.
    used: Option<Box<(SparePair<S>, Duration)>>,
    /// The number of the next pair. Strictly rising.
    pub(in crate::edge) next_q: u64,
    /// When to publish again, until it is acknowledged.
    pub(in crate::edge) republish: Option<Duration>,
    /// How often it was published in vain.
    published: u32,
    /// When to show the current pair to leaders that do not lead.
    pub(in crate::edge) introduce: Option<Duration>,
}

impl<S: Suite> SparePoints<S> {
    pub(in crate::edge) fn new() -> Self {
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

    pub(in crate::edge) fn numbered(&self, q: u64) -> Option<&SparePair<S>> {
        let used = self.used.as_deref().map(|(spare, _)| spare);
        [self.current.as_ref(), used].into_iter().flatten().find(|spare| spare.q() == q)
    }

    /// All pairs whose secrets are still in memory.
    #[cfg(feature = "compromise")]
    pub(in crate::edge) fn held(&self) -> impl Iterator<Item = &SparePair<S>> {
        self.current.iter().chain(self.used.iter().map(|used| &used.0))
    }

    /// A term was opened with the current pair, or with the one before: the next one takes its place.
    pub(in crate::edge) fn used(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if let Some(spare) = self.current.take() {
            self.used = Some(Box::new((spare, now.monotonic + KEEP_USED)));
        }
        self.published = 0;
        self.current(rng);
    }

    /// The leader has the current pair.
    pub(in crate::edge) fn delivered(&mut self) {
        self.republish = None;
        self.published = 0;
        self.used = None;
    }

    /// How long to wait for the acknowledgement this time: a channel that is too slow for all answers must not be asked
    /// for them again and again.
    fn patience(&mut self, timing: &EdgeTiming) -> Duration {
        let first = REPUBLISH.max(timing.retry);
        let doubled = first * (1 << self.published.min(MAX_DOUBLINGS));
        self.published = self.published.saturating_add(1);
        doubled.min(timing.retry_max.max(first))
    }

    pub(in crate::edge) fn deadline(&self) -> Option<Duration> {
        let shown = earlier(self.republish, self.introduce);
        earlier(shown, self.used.as_deref().map(|(_, until)| *until))
    }
}

impl<S: Suite> Edge<S> {
    pub(in crate::edge) fn publish_spare(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if !matches!(self.standing, Standing::Member(_)) || self.keypair.is_none() {
            self.spares.republish = None;
            return;
        }
        self.spares.republish = Some(now.monotonic + self.spares.patience(&self.config.timing));
        let leaders = self.leaders.clone();
        self.send_spare(&leaders, rng);
    }

    /// Shows leaders the current spare point: the one in office acknowledges it, the others may need it one day.
    pub(in crate::edge) fn send_spare(&mut self, to: &[Peer], rng: &mut dyn CryptoRngCore) {
        let (Standing::Member(member), Some(keypair)) = (&self.standing, &self.keypair) else {
            return;
        };
        if to.is_empty() {
            return;
        }
        // Only who persists draws one: what is shown here is durable.
        let Some(current) = &self.spares.current else { return };
        let (group, slot) = (member.membership.group().clone(), member.membership.slot());
        let spare = current.statement(keypair, &self.config.deployment, &group, rng);
        let message = Message::SparePublication(SparePublication { group, slot, spare });
        let message = message.encode(&self.config.deployment);
        for peer in to {
            self.out.send_encoded(*peer, message.clone());
        }
    }

    pub(in crate::edge) fn spare_acknowledged(&mut self, from: Peer, ack: &SpareAck) {
        let (Standing::Member(member), Some(current)) = (&self.standing, &self.spares.current) else {
            return;
        };
        if ack.q != current.q() {
            return;
        }
        let tag = statements::spare_ack_tag::<S>(member.membership.auth_key(), ack.q);
        if ct_eq(&tag, &ack.tag) {
            self.spares.delivered();
        } else {
            self.blame(from, Offence::Mac("SpareAck"));
        }
    }

    pub(in crate::edge) fn tick_spares(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if due(self.spares.used.as_deref().map(|(_, until)| *until), now.monotonic) {
            self.spares.used = None;
        }
        if due(self.spares.introduce, now.monotonic) {
            self.introduce(rng);
        }
        if due(self.spares.republish, now.monotonic) {
            self.publish_spare(now, rng);
        }
    }
}

#[cfg(test)]
mod tests {
    use quiver_ainq::Ristretto255;

    use super::*;

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
}
