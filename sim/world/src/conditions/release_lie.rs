//! Wrong keys of conditions: the lies of a byzantine KGC about what it releases.

use std::collections::BTreeMap;

use quiver_ainq::{
    Deployment, KgcId, Label, RevocationStatement, SealedDelivery, SignedDeliveryRequest, Suite,
    VerifiedDelivery,
};
use quiver_ibe::{IdentityPoint, MasterShare};
use quiver_key_release::{ShareQuery, ShareResponse};
use quiver_machine::{Now, Peer};
use quiver_message::{DeliveryReply, Message};
use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;

use crate::quorum::KgcLie;

/// Wrong shares of the keys of conditions.
pub(crate) struct ReleaseLie<S: Suite> {
    kgc: KgcId,
    questions: BTreeMap<Peer, VerifiedDelivery<S>>,
}

impl<S: Suite> ReleaseLie<S> {
    pub(crate) const fn new(kgc: KgcId) -> Self {
        Self { kgc, questions: BTreeMap::new() }
    }
}

impl<S: Suite> KgcLie<S> for ReleaseLie<S> {
    fn observe(&mut self, deployment: &Deployment<S>, now: Now, from: Peer, message: &Message<S>) {
        if let Message::DeliveryRequest(message) = message {
            let challenge = [&message.nonce[..], &message.cookie[..]].concat();
            let nobody = RevocationStatement::empty();
            let question = SignedDeliveryRequest::<S>::decode(&message.request).and_then(|request| {
                request.verify(deployment, Label::IbeRelease, &challenge, &nobody, now.unix)
            });
            self.questions.extend(question.ok().map(|question| (from, question)));
        }
    }

    fn forget(&mut self, peer: Peer) {
        self.questions.remove(&peer);
    }

    /// The share of some other master key, whether or not the condition is met.
    fn lie(&mut self, to: Peer, honest: &Message<S>, rng: &mut ChaCha8Rng) -> Option<Message<S>> {
        let Message::DeliveryReply(reply) = honest else { return None };
        let question = self.questions.get(&to)?;
        let asked = ShareQuery::decode(question.question()).ok()?;
        let mut scalar = [0; 32];
        // Below the order of the group, whatever the other bytes are.
        rng.fill_bytes(&mut scalar[1..]);
        let share = MasterShare::from_scalar_bytes(self.kgc, &scalar).ok()?;
        let share = share.extract(&IdentityPoint::of(&asked.condition?)).encode();
        let answer = ShareResponse::Share { version: 1, share }.encode();
        let sealed: SealedDelivery<S> = question.seal_unattested(&answer, rng).ok()?;
        Some(Message::DeliveryReply(DeliveryReply { sealed: sealed.encode(), ..reply.clone() }))
    }
}
