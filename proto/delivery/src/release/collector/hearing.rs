//! What comes in at a collector: challenges, replies and refusals.

use quiver_ainq::{KgcId, SealedDelivery, Suite};
use quiver_ibe::Condition;
use quiver_message::{Message, Reason, Refusal, ReleaseChallenge, ReleaseReply};
use rand_core::CryptoRngCore;

use super::collection::{Asked, Collection};
use super::interface::Verdict;
use super::link::Stage;
use super::{Collector, LONGEST_WAIT, ReleaseAuthority};
use crate::release::inner::ReleaseAnswer;
use quiver_machine::{Now, Offence, Peer};

impl<S: Suite> Collector<S> {
    pub(super) fn received(&mut self, now: Now, from: Peer, bytes: &[u8], rng: &mut dyn CryptoRngCore) {
        match Message::decode(&self.deployment, bytes) {
            Err(error) => self.blame(from, error),
            Ok(Message::ReleaseChallenge(message)) => self.challenged(now, from, &message),
            Ok(Message::ReleaseReply(reply)) => self.replied(now, from, &reply, rng),
            Ok(Message::Refusal(refusal)) => self.refused(now, from, &refusal, rng),
            // A KGC tells whoever it knows of a new revocation list; this is not the place for it.
            Ok(Message::RevocationList(_)) => {}
            Ok(_) => self.blame(from, Offence::OutOfPlace("message to a drone that collects identity keys")),
        }
    }

    fn challenged(&mut self, now: Now, from: Peer, message: &ReleaseChallenge) {
        if let Some(link) = self.links.iter_mut().find(|link| link.peer == from)
            && link.challenged(now.monotonic, message)
        {
            link.backoff.reset();
        }
    }

    fn replied(&mut self, now: Now, from: Peer, reply: &ReleaseReply, rng: &mut dyn CryptoRngCore) {
        let digest = &reply.request_digest;
        let pending = self.collections.iter().find_map(|(wanted, collection)| {
            collection.pending(from, digest).map(|pending| (wanted.clone(), pending))
        });
        let Some((wanted, pending)) = pending else { return };
        // What does not open somebody on the way has made: the KGC's own answer may still come.
        let opened = SealedDelivery::decode(&reply.sealed)
            .and_then(|sealed| pending.open_unattested(&self.keypair, &sealed))
            .and_then(|answer| ReleaseAnswer::decode(&answer));
        let answer = match opened {
            Ok(answer) => answer,
            Err(error) => return self.blame(from, error),
        };
        if !reply.statement.is_empty() {
            match ReleaseAuthority::decode(&self.deployment, &reply.statement) {
                Ok(authority) => self.learn(authority),
                Err(error) => self.blame(from, error),
            }
        }
        let Some(link) = self.links.iter_mut().find(|link| link.peer == from) else { return };
        link.backoff.reset();
        if let Some(kgc) = link.kgc {
            self.answered(now, (from, kgc), &wanted, answer, rng);
        }
    }

    /// A refusal is not authenticated: it ends one attempt at one KGC or slows it down.
    fn refused(&mut self, now: Now, from: Peer, refusal: &Refusal, rng: &mut dyn CryptoRngCore) {
        let Some(link) = self.links.iter_mut().find(|link| link.peer == from) else { return };
        let ours = match link.stage {
            Stage::Greeting { nonce, .. } => refusal.reference == nonce,
            Stage::Open(open) => refusal.reference == open.nonce,
            Stage::Fresh => false,
        };
        let about = self
            .collections
            .iter()
            .find(|(_, collection)| collection.pending(from, &refusal.reference).is_some());
        let about = about.map(|(wanted, _)| wanted.clone());
        if !ours && about.is_none() {
            return;
        }
        if matches!(refusal.reason, Reason::BadCookie | Reason::Busy) {
            let wait = link.backoff.next(rng).max(refusal.retry_after.min(LONGEST_WAIT));
            link.rests_until = now.monotonic + wait;
            if ours {
                link.stage = Stage::Fresh;
            }
            let verdict = Verdict::Refused(refusal.reason);
            return self.for_those_waiting(from, about.as_ref(), |collection, kgc| {
                let until = now.monotonic + wait;
                let resting = Asked::Resting { until, pending: None, kgc, verdict: Some(verdict) };
                collection.asked.insert(from, resting);
            });
        }
        if ours {
            link.stage = Stage::Fresh;
        }
        let until = now.monotonic + link.backoff.next(rng);
        let verdict = Verdict::Refused(refusal.reason);
        self.for_those_waiting(from, about.as_ref(), |collection, kgc| {
            // Of a collection that waits for an answer to change it must not be the end: perhaps a request was altered on its
            // way, or somebody on the way refuses in the KGC's name.
            let asked = if collection.wait {
                Asked::Resting { until, pending: None, kgc, verdict: Some(verdict) }
            } else {
                Asked::Told { kgc, verdict }
            };
            collection.asked.insert(from, asked);
        });
    }

    /// Every collection that waits for this KGC, or the one that something is about.
    fn for_those_waiting(
        &mut self,
        peer: Peer,
        about: Option<&Option<Condition>>,
        mut what: impl FnMut(&mut Collection<S>, Option<KgcId>),
    ) {
        let kgc = self.kgc_of(peer);
        for (wanted, collection) in &mut self.collections {
            let waits = matches!(
                collection.asked.get(&peer),
                Some(Asked::Chosen | Asked::Pending { .. } | Asked::Resting { pending: Some(_), .. })
            );
            if waits && about.is_none_or(|about| about == wanted) {
                what(collection, kgc);
            }
        }
    }
}
