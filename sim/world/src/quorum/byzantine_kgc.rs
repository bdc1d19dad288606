//! A byzantine KGC: follows the protocol, but issues wrong shares, well-formed and sealed to the right
//! receiver.

use std::collections::BTreeMap;

use quiver_ainq::{
    Deployment, EnrolmentRequest, KgcId, Label, OperatorPublicKey, RevocationStatement, SealedDelivery,
    SecretValue, SignedDeliveryRequest, Suite, VerifiedDelivery, VerifiedRequest,
};
use quiver_enrolment::threshold::{EnrolShare, EnrolmentMessage};
use quiver_ibe::{IdentityPoint, MasterShare};
use quiver_key_release::{ShareQuery, ShareResponse};
use quiver_machine::{Now, Peer};
use quiver_message::{DeliveryReply, Message};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// State of a lying KGC, which tells each peer something else.
pub(crate) struct ByzantineKgc<S: Suite> {
    kgc: KgcId,
    operator: OperatorPublicKey<S>,
    requests: BTreeMap<Peer, VerifiedRequest<S>>,
    questions: BTreeMap<Peer, VerifiedDelivery<S>>,
    rng: ChaCha8Rng,
}

impl<S: Suite> ByzantineKgc<S> {
    pub(crate) fn new(kgc: KgcId, operator: OperatorPublicKey<S>, dice: [u8; 32]) -> Self {
        let rng = ChaCha8Rng::from_seed(dice);
        Self { kgc, operator, requests: BTreeMap::new(), questions: BTreeMap::new(), rng }
    }

    pub(crate) fn observe(&mut self, deployment: &Deployment<S>, now: Now, from: Peer, message: &Message<S>) {
        match message {
            Message::EnrolRequest(message) => {
                let operators = std::slice::from_ref(&self.operator);
                let request = EnrolmentRequest::<S>::decode(&message.request)
                    .and_then(|request| request.verify(deployment, operators, self.kgc, now.unix));
                self.requests.extend(request.ok().map(|request| (from, request)));
            }
            Message::DeliveryRequest(message) => {
                let challenge = [&message.nonce[..], &message.cookie[..]].concat();
                let nobody = RevocationStatement::empty();
                let question = SignedDeliveryRequest::<S>::decode(&message.request).and_then(|request| {
                    request.verify(deployment, Label::IbeRelease, &challenge, &nobody, now.unix)
                });
                self.questions.extend(question.ok().map(|question| (from, question)));
            }
            _ => {}
        }
    }

    pub(crate) fn forget(&mut self, peer: Peer) {
        self.requests.remove(&peer);
        self.questions.remove(&peer);
    }

    /// The altered message in place of an honest one.
    pub(crate) fn tamper(&mut self, deployment: &Deployment<S>, to: Peer, payload: Vec<u8>) -> Vec<u8> {
        let Ok(message) = Message::<S>::decode(deployment, &payload) else { return payload };
        let lie = match (message.extension(), message) {
            (Some(Ok(EnrolmentMessage::Share(share))), _) => {
                self.wrong_share(to, &share).map(|lie| EnrolmentMessage::Share(lie).into())
            }
            (_, Message::DeliveryReply(reply)) => self.wrong_key(to, &reply).map(Message::DeliveryReply),
            _ => None,
        };
        lie.map_or(payload, |lie: Message<S>| lie.encode(deployment))
    }

    /// Some scalar, sealed to the drone.
    fn wrong_share(&mut self, to: Peer, share: &EnrolShare) -> Option<EnrolShare> {
        let request = self.requests.get(&to)?;
        let scalar = SecretValue::<S>::generate(&mut self.rng).to_bytes();
        let sealed = request.seal_share(self.kgc, &share.package_digest, &scalar, &mut self.rng).ok()?;
        Some(EnrolShare { package_digest: share.package_digest, share: sealed.encode() })
    }

    /// The share of some other master key, whether or not the condition is met.
    fn wrong_key(&mut self, to: Peer, reply: &DeliveryReply) -> Option<DeliveryReply> {
        let question = self.questions.get(&to)?;
        let asked = ShareQuery::decode(question.question()).ok()?;
        let mut scalar = [0; 32];
        // Below the order of the group, whatever the other bytes are.
        self.rng.fill_bytes(&mut scalar[1..]);
        let share = MasterShare::from_scalar_bytes(self.kgc, &scalar).ok()?;
        let share = share.extract(&IdentityPoint::of(&asked.condition?)).encode();
        let answer = ShareResponse::Share { version: 1, share }.encode();
        let sealed: SealedDelivery<S> = question.seal_unattested(&answer, &mut self.rng).ok()?;
        Some(DeliveryReply { sealed: sealed.encode(), ..reply.clone() })
    }
}
