//! A byzantine KGC: follows the protocol, but issues wrong shares, well-formed and sealed to the right
//! receiver.

use std::collections::BTreeMap;

use quiver_ainq::{
    Deployment, EnrolmentRequest, KgcId, OperatorPublicKey, SecretValue, Suite, VerifiedRequest,
};
use quiver_enrolment::threshold::{EnrolShare, EnrolmentMessage};
use quiver_machine::{Now, Peer};
use quiver_message::Message;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

use crate::Fleet;
use crate::features::kgc_lies;
use crate::kgc_node::ByzantineBehaviour;
use crate::rng_stream::{self, RngStream};

/// A kind of lie: about the answers to one kind of request.
pub(crate) trait KgcLie<S: Suite>: Send + Sync {
    /// Sees a message that the KGC receives, perhaps a request.
    fn observe(&mut self, deployment: &Deployment<S>, now: Now, from: Peer, message: &Message<S>);

    /// Handles the end of a connection.
    fn forget(&mut self, peer: Peer);

    /// The wrong answer in place of an honest one; `None` if the message is no such answer.
    fn lie(&mut self, to: Peer, honest: &Message<S>, rng: &mut ChaCha8Rng) -> Option<Message<S>>;
}

/// State of a lying KGC, which tells each peer something else.
pub(crate) struct ByzantineKgc<S: Suite> {
    lies: Vec<Box<dyn KgcLie<S>>>,
    rng: ChaCha8Rng,
}

impl<S: Suite> ByzantineKgc<S> {
    /// Behaviour of a KGC of this deployment that lies from now on.
    pub(crate) fn behaviour(fleet: &Fleet<S>, kgc: KgcId) -> Box<dyn ByzantineBehaviour<S>> {
        let dice = rng_stream::key(fleet.seed(), RngStream::ByzantineKgc(kgc));
        Box::new(Self { lies: kgc_lies(kgc, fleet.operator()), rng: ChaCha8Rng::from_seed(dice) })
    }
}

impl<S: Suite> ByzantineBehaviour<S> for ByzantineKgc<S> {
    fn observe(&mut self, deployment: &Deployment<S>, now: Now, from: Peer, message: &Message<S>) {
        for lie in &mut self.lies {
            lie.observe(deployment, now, from, message);
        }
    }

    fn forget(&mut self, peer: Peer) {
        for lie in &mut self.lies {
            lie.forget(peer);
        }
    }

    fn tamper(&mut self, deployment: &Deployment<S>, to: Peer, payload: Vec<u8>) -> Vec<u8> {
        let Ok(message) = Message::<S>::decode(deployment, &payload) else { return payload };
        let rng = &mut self.rng;
        let lie = self.lies.iter_mut().find_map(|lie| lie.lie(to, &message, rng));
        lie.map_or(payload, |lie| lie.encode(deployment))
    }
}

/// Wrong shares of the keys of drones that enrol.
pub(crate) struct EnrolmentLie<S: Suite> {
    kgc: KgcId,
    operator: OperatorPublicKey<S>,
    requests: BTreeMap<Peer, VerifiedRequest<S>>,
}

impl<S: Suite> EnrolmentLie<S> {
    pub(crate) const fn new(kgc: KgcId, operator: OperatorPublicKey<S>) -> Self {
        Self { kgc, operator, requests: BTreeMap::new() }
    }
}

impl<S: Suite> KgcLie<S> for EnrolmentLie<S> {
    fn observe(&mut self, deployment: &Deployment<S>, now: Now, from: Peer, message: &Message<S>) {
        if let Message::EnrolRequest(message) = message {
            let operators = std::slice::from_ref(&self.operator);
            let request = EnrolmentRequest::<S>::decode(&message.request)
                .and_then(|request| request.verify(deployment, operators, self.kgc, now.unix));
            self.requests.extend(request.ok().map(|request| (from, request)));
        }
    }

    fn forget(&mut self, peer: Peer) {
        self.requests.remove(&peer);
    }

    /// Some scalar, sealed to the drone.
    fn lie(&mut self, to: Peer, honest: &Message<S>, rng: &mut ChaCha8Rng) -> Option<Message<S>> {
        let EnrolmentMessage::Share(share) = honest.extension()?.ok()? else { return None };
        let request = self.requests.get(&to)?;
        let scalar = SecretValue::<S>::generate(rng).to_bytes();
        let sealed = request.seal_share(self.kgc, &share.package_digest, &scalar, rng).ok()?;
        let share = EnrolShare { package_digest: share.package_digest, share: sealed.encode() };
        Some(EnrolmentMessage::Share(share).into())
    }
}
