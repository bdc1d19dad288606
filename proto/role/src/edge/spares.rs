//! The one-time points that let a leader open a term without a round trip to every member.

use core::time::Duration;

use quiver_ainq::{SparePair, Suite};
use quiver_crypto::ct_eq;
use quiver_message::{Message, SpareAck, SparePublication};
use rand_core::CryptoRngCore;

use super::{Edge, Standing};
use crate::backoff::{due, earlier};
use crate::{Now, Offence, Peer, statements};

/// For how long a used spare pair is kept, so that of two competing terms the higher can still be followed.
const KEEP_USED: Duration = Duration::from_secs(60);
const REPUBLISH: Duration = Duration::from_secs(5);

/// The edge's spare pairs.
#[derive(Debug)]
pub(super) struct Spares<S: Suite> {
    /// Unused; published, or about to be.
    pub(super) current: Option<SparePair<S>>,
    /// Used by the newest term; erased when its successor is acknowledged or after a while.
    used: Option<(SparePair<S>, Duration)>,
    /// The number of the next pair. Strictly rising.
    pub(super) next_q: u64,
    /// When to publish again, until it is acknowledged.
    pub(super) republish: Option<Duration>,
    /// When to show the current pair to leaders that do not lead.
    pub(super) introduce: Option<Duration>,
}

impl<S: Suite> Spares<S> {
    pub(super) fn new() -> Self {
        Self { current: None, used: None, next_q: 1, republish: None, introduce: None }
    }

    /// The unused pair; drawn if there is none. The caller persists before it is published.
    pub(super) fn current(&mut self, rng: &mut dyn CryptoRngCore) -> &SparePair<S> {
        let next_q = &mut self.next_q;
        self.current.get_or_insert_with(|| {
            let q = *next_q;
            *next_q = q.saturating_add(1);
            SparePair::generate(q, rng)
        })
    }

    pub(super) fn numbered(&self, q: u64) -> Option<&SparePair<S>> {
        let used = self.used.as_ref().map(|(spare, _)| spare);
        [self.current.as_ref(), used].into_iter().flatten().find(|spare| spare.q() == q)
    }

    /// All pairs whose secrets are still in memory.
    #[cfg(feature = "captured")]
    pub(super) fn held(&self) -> impl Iterator<Item = &SparePair<S>> {
        self.current.iter().chain(self.used.iter().map(|(spare, _)| spare))
    }

    /// A term was opened with the current pair, or with the one before: the next one takes its place.
    pub(super) fn used(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if let Some(spare) = self.current.take() {
            self.used = Some((spare, now.monotonic + KEEP_USED));
        }
        self.current(rng);
    }

    /// The leader has the current pair.
    pub(super) fn delivered(&mut self) {
        self.republish = None;
        self.used = None;
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        let shown = earlier(self.republish, self.introduce);
        earlier(shown, self.used.as_ref().map(|(_, until)| *until))
    }
}

impl<S: Suite> Edge<S> {
    pub(super) fn publish_spare(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if !matches!(self.standing, Standing::Member(_)) || self.keypair.is_none() {
            self.spares.republish = None;
            return;
        }
        self.spares.republish = Some(now.monotonic + REPUBLISH);
        let leaders = self.leaders.clone();
        self.send_spare(&leaders, rng);
    }

    /// Shows leaders the current spare point: the one in office acknowledges it, the others may need it one day.
    pub(super) fn send_spare(&mut self, to: &[Peer], rng: &mut dyn CryptoRngCore) {
        let (Standing::Member(member), Some(keypair)) = (&self.standing, &self.keypair) else {
            return;
        };
        if to.is_empty() {
            return;
        }
        let (group, slot) = (member.membership.group().clone(), member.membership.slot());
        let spare = self.spares.current(rng).statement(keypair, &self.config.deployment, &group, rng);
        let message = Message::SparePublication(SparePublication { group, slot, spare });
        let message = message.encode(&self.config.deployment);
        for peer in to {
            self.out.send_encoded(*peer, message.clone());
        }
    }

    pub(super) fn spare_acknowledged(&mut self, from: Peer, ack: &SpareAck) {
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

    pub(super) fn tick_spares(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if due(self.spares.used.as_ref().map(|(_, until)| *until), now.monotonic) {
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
