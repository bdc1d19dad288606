//! Handles what KGCs answer to a collector: challenges, replies and refusals.

use quiver_ainq::{KgcId, SealedDelivery, Suite};
use quiver_delivery::client::LONGEST_WAIT;
use quiver_ibe::Condition;
use quiver_machine::Peer;
use quiver_message::{DeliveryChallenge, DeliveryReply, Payload, Refusal, RefusalReason};

use super::collection::{Asked, Collection};
use super::interface::Verdict;
use super::link::CollectionStage;
use super::{CollectContext, Collector, ReleaseAuthority, blame};
use crate::query::ShareResponse;

impl<S: Suite> Collector<S> {
    /// §4.1, step 2. Returns whether the challenge answers a hello of this collector.
    pub(super) fn challenged(
        &mut self,
        cx: &mut CollectContext<'_, S>,
        from: Peer,
        message: &DeliveryChallenge,
    ) -> bool {
        let link = self.links.iter_mut().find(|link| link.peer == from);
        link.is_some_and(|link| link.challenged(cx.now.monotonic, message))
    }

    /// §4.1, step 4. Returns whether the reply is to a request of this collector.
    pub(super) fn replied(
        &mut self,
        cx: &mut CollectContext<'_, S>,
        from: Peer,
        reply: &DeliveryReply,
    ) -> bool {
        let digest = &reply.request_digest;
        // §4.1: H(request) identifies the request that this answers, be it one that was given up on.
        let pending = self.collections.iter().find_map(|(wanted, collection)| {
            collection.pending(from, digest).map(|pending| (wanted.clone(), pending))
        });
        let (Some((wanted, pending)), Some(keypair), Payload::KeyShares) =
            (pending, cx.keypair, reply.payload)
        else {
            return false;
        };
        // §4.3: unattested: an attacker may have made a reply that does not open, and the KGC's own may still
        // come.
        let opened = SealedDelivery::decode(&reply.sealed)
            .and_then(|sealed| pending.open_unattested(keypair, &sealed))
            .and_then(|response| ShareResponse::decode(&response));
        let response = match opened {
            Ok(response) => response,
            Err(error) => {
                blame(cx, from, error);
                return true;
            }
        };
        // §4.3: a statement is genuine for its signature: a newer one is taken from whomever. All KGCs of a quorum send the
        // same bytes, which are read and verified once.
        let known = self.authority.as_ref().is_some_and(|known| known.statement().bytes() == reply.statement);
        if !reply.statement.is_empty() && !known {
            match ReleaseAuthority::decode(cx.deployment, &reply.statement) {
                Ok(authority) => self.learn(cx, authority),
                Err(error) => blame(cx, from, error),
            }
        }
        if let Some(link) = self.links.iter_mut().find(|link| link.peer == from) {
            link.backoff.reset();
            if let Some(kgc) = link.kgc {
                self.answered(cx, (from, kgc), &wanted, response);
            }
        }
        true
    }

    /// A refusal is not authenticated: it ends one attempt at one KGC or slows it down.
    /// Returns whether it is about something that this collector asked.
    pub(super) fn refused(&mut self, cx: &mut CollectContext<'_, S>, from: Peer, refusal: &Refusal) -> bool {
        let Some(link) = self.links.iter_mut().find(|link| link.peer == from) else { return false };
        // §4.1: a refusal refers to the nonce of a hello or challenge, or to H(request).
        let ours = match link.stage {
            CollectionStage::Greeting { nonce, .. } => refusal.reference == nonce,
            CollectionStage::Open(open) => refusal.reference == open.challenge.nonce,
            CollectionStage::Fresh => false,
        };
        let about = self
            .collections
            .iter()
            .find(|(_, collection)| collection.pending(from, &refusal.reference).is_some());
        let about = about.map(|(wanted, _)| wanted.clone());
        if !ours && about.is_none() {
            return false;
        }
        // §4.1: an old cookie, or the rate: this KGC is asked again later, for whatever is wanted of it.
        if matches!(refusal.reason, RefusalReason::BadCookie | RefusalReason::Busy) {
            let wait = link.backoff.next(cx.rng).max(refusal.retry_after.min(LONGEST_WAIT));
            link.rests_until = cx.now.monotonic + wait;
            if ours {
                link.stage = CollectionStage::Fresh;
            }
            let verdict = Verdict::Refused(refusal.reason);
            let until = cx.now.monotonic + wait;
            self.for_those_waiting(from, about.as_ref(), |collection, kgc| {
                let resting = Asked::Resting { until, pending: None, kgc, verdict: Some(verdict) };
                collection.asked.insert(from, resting);
            });
            return true;
        }
        if ours {
            link.stage = CollectionStage::Fresh;
        }
        let until = cx.now.monotonic + link.backoff.next(cx.rng);
        let verdict = Verdict::Refused(refusal.reason);
        self.for_those_waiting(from, about.as_ref(), |collection, kgc| {
            // §4.3: a collection that waits must not end with this: the request may have been altered on its
            // way, or an attacker refuses in the KGC's name.
            let asked = if collection.wait {
                Asked::Resting { until, pending: None, kgc, verdict: Some(verdict) }
            } else {
                Asked::Refused { kgc, verdict }
            };
            collection.asked.insert(from, asked);
        });
        true
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
