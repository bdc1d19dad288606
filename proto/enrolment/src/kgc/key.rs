//! Signing key of a KGC: the master secret, or a quorum's share of it, and what a KGC does differently with each.

use alloc::boxed::Box;
use core::fmt;
use core::time::Duration;

use quiver_ainq::{Deployment, KgcId, MasterSecret, SealedReply, Serial, Suite, VerifiedRequest};
use quiver_machine::{Misdeeds, Now, Offence, Outbox, Peer};
use quiver_message::{EnrolReply, Message, Refusal, RefusalReason};
use rand_core::CryptoRngCore;

use super::registry::Registry;
use super::{KgcEvent, KgcRecord};

/// Signing key of a KGC. A [`MasterSecret`] is all of it; a quorum's KGC has a share.
#[derive(Debug)]
pub struct KgcSigningKey<S: Suite>(pub(crate) Box<dyn IssuingKey<S>>);

impl<S: Suite> From<MasterSecret<S>> for KgcSigningKey<S> {
    fn from(master: MasterSecret<S>) -> Self {
        Self(Box::new(master))
    }
}

/// Key that a KGC issues with. With a share it has rounds of signing open, which need other KGCs.
pub(crate) trait IssuingKey<S: Suite>: fmt::Debug + Send + Sync {
    /// The master secret, if it is all here.
    fn whole(&self) -> Option<&MasterSecret<S>> {
        None
    }

    /// The KGC whose share this is, if it is one.
    fn share_of(&self) -> Option<KgcId> {
        None
    }

    /// Answers a request that holds, and whose token may be bound to it.
    fn answer(&mut self, cx: &mut KgcContext<'_, S>, request: VerifiedRequest<S>, digest: [u8; 32]);

    /// Takes a message of a feature. Returns false if this key is for no such message.
    fn receive(&mut self, _cx: &mut KgcContext<'_, S>, _message: &Message<S>) -> bool {
        false
    }

    /// Ends rounds that have been open for too long.
    fn expire(&mut self, _now: Duration) {}

    /// Time at which to call [`expire`](Self::expire) next.
    fn deadline(&self) -> Option<Duration> {
        None
    }

    /// Ends the rounds of a disconnected peer.
    fn disconnected(&mut self, _peer: Peer) {}

    /// Ends all rounds.
    fn forget(&mut self) {}

    /// Number of rounds that are open.
    fn open_rounds(&self) -> usize {
        0
    }
}

/// Parts of a KGC that its key works with, for a message of one peer.
pub(crate) struct KgcContext<'a, S: Suite> {
    pub(crate) now: Now,
    pub(crate) from: Peer,
    pub(crate) deployment: &'a Deployment<S>,
    /// Identifier of this KGC.
    pub(crate) id: KgcId,
    pub(crate) registry: &'a mut Registry,
    pub(super) misdeeds: &'a mut Misdeeds,
    pub(super) out: &'a mut Outbox<KgcEvent, KgcRecord>,
    pub(crate) rng: &'a mut dyn CryptoRngCore,
}

impl<S: Suite> KgcContext<'_, S> {
    /// Sends the peer a message.
    pub(crate) fn send(&mut self, message: &Message<S>) {
        self.out.send(self.deployment, self.from, message);
    }

    /// Enters a record into the registry, durably.
    pub(crate) fn record(&mut self, record: KgcRecord) {
        self.registry.apply(&record);
        self.out.persist(record);
    }

    /// Reports an event.
    pub(crate) fn event(&mut self, event: KgcEvent) {
        self.out.event(event);
    }

    /// Refuses the peer's request.
    pub(crate) fn refuse(&mut self, token_id: Option<Serial>, reason: RefusalReason, reference: &[u8]) {
        let refusal = Refusal { reason, reference: reference.to_vec(), retry_after: Duration::ZERO };
        self.send(&Message::Refusal(refusal));
        self.event(KgcEvent::Refused { peer: self.from, token_id, reason });
    }

    /// Reports an offence of the peer.
    pub(crate) fn blame(&mut self, offence: Offence) {
        blame(self.out, self.misdeeds, self.from, offence);
    }
}

/// Reports an offence of a peer.
pub(super) fn blame(
    out: &mut Outbox<KgcEvent, KgcRecord>,
    misdeeds: &mut Misdeeds,
    peer: Peer,
    offence: Offence,
) {
    // §13.8: forgeries, and many messages that cannot be read, have the peer refused for a while.
    if let Some(misdeed) = misdeeds.weigh(peer, &offence) {
        out.penalize(peer, misdeed);
    }
    out.event(KgcEvent::Blamed { peer, offence });
}

/// A KGC that issues alone.
impl<S: Suite> IssuingKey<S> for MasterSecret<S> {
    fn whole(&self) -> Option<&MasterSecret<S>> {
        Some(self)
    }

    fn answer(&mut self, cx: &mut KgcContext<'_, S>, request: VerifiedRequest<S>, digest: [u8; 32]) {
        let token_id = *request.token_id();
        let name = request.identity().name.clone();
        // §3.5: s and R, sealed under e·P_i ‖ e·N_i.
        let (reply, public) = SealedReply::issue(self, cx.deployment, &request, cx.id, cx.rng);
        let handle = public.handle();
        // §3.4: pin and reply are durable before the KGC answers.
        cx.record(KgcRecord::Issued {
            token_id,
            name: name.as_str().into(),
            identity: request.identity().encode(),
            handle: *handle.as_bytes(),
            pin: request.pin(),
            request: digest,
            reply: reply.encode(),
            at: cx.now.unix,
        });
        let answer = EnrolReply { request_digest: digest, reply: reply.encode() };
        cx.send(&Message::EnrolReply(answer));
        cx.event(KgcEvent::Issued { token_id, name, handle });
    }
}
