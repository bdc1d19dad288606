//! A KGC's composite machine: enrolment, release of condition keys, and byzantine behaviour on request.

use quiver_ainq::{Deployment, KgcId, OperatorPublicKey, Suite};
use quiver_message::Message;
use quiver_role::release::{ReleaseCommand, ReleaseEvent, ReleaseOffice, ShareReleased};
use quiver_role::{
    Destination, Input, Kgc, KgcCommand, KgcEvent, KgcRecord, Machine, Now, Output, Peer, Via,
};
use rand_core::CryptoRngCore;

use crate::NodeEvent;
use crate::byzantine_kgc::ByzantineKgc;

/// A command to either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KgcNodeCommand {
    Kgc(KgcCommand),
    Release(ReleaseCommand),
}

/// A record of either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KgcNodeRecord {
    Kgc(KgcRecord),
    Released(ShareReleased),
}

/// A KGC with what is beside it.
pub(crate) struct KgcNode<S: Suite> {
    deployment: Deployment<S>,
    pub(crate) kgc: Kgc<S>,
    office: Option<Box<ReleaseOffice<S>>>,
    /// The number of the revocation list that the office was told of.
    told: u64,
    byzantine: Option<Box<ByzantineKgc<S>>>,
}

impl<S: Suite> KgcNode<S> {
    pub(crate) fn new(deployment: Deployment<S>, kgc: Kgc<S>, office: Option<ReleaseOffice<S>>) -> Self {
        let mut node = Self { deployment, kgc, office: office.map(Box::new), told: 0, byzantine: None };
        node.tell_of_revocations();
        node
    }

    /// From now on it lies, or it tells the truth again.
    pub(crate) fn set_lying(&mut self, lies: Option<(KgcId, OperatorPublicKey<S>, [u8; 32])>) {
        self.byzantine = lies.map(|(id, operator, dice)| Box::new(ByzantineKgc::new(id, operator, dice)));
    }

    fn received(&mut self, now: Now, from: Peer, bytes: &[u8], rng: &mut dyn CryptoRngCore) {
        if self.office.is_none() && self.byzantine.is_none() {
            return self.kgc.handle_input(now, Input::Received { from, via: Via::Peer, bytes }, rng);
        }
        let message = Message::decode(&self.deployment, bytes).ok();
        if let (Some(byzantine), Some(message)) = (&mut self.byzantine, &message) {
            byzantine.observe(&self.deployment, now, from, message);
        }
        let about_release = matches!(message, Some(Message::ReleaseHello(_) | Message::ReleaseRequest(_)));
        match self.office.as_mut().filter(|_| about_release) {
            Some(office) => office.handle_input(now, Input::Received { from, via: Via::Peer, bytes }, rng),
            None => self.kgc.handle_input(now, Input::Received { from, via: Via::Peer, bytes }, rng),
        }
    }

    /// A drone that is revoked gets no key from the very next request on.
    fn tell_of_revocations(&mut self) {
        let (Some(office), Some(list)) = (&mut self.office, self.kgc.signed_revocations()) else { return };
        if self.told < self.kgc.revocation_number() {
            self.told = self.kgc.revocation_number();
            // The KGC has just signed or checked it.
            let _ = office.offer_revocations(list);
        }
    }

    fn transmit<E, R>(&mut self, to: Destination, payload: Vec<u8>) -> Output<E, R> {
        let payload = match (&mut self.byzantine, to) {
            (Some(byzantine), Destination::Peer(peer)) => byzantine.tamper(&self.deployment, peer, payload),
            _ => payload,
        };
        Output::Transmit { to, payload }
    }
}

impl<S: Suite> Machine for KgcNode<S> {
    type Command = KgcNodeCommand;
    type Event = NodeEvent;
    type Record = KgcNodeRecord;

    fn handle_input(&mut self, now: Now, input: Input<'_, KgcNodeCommand>, rng: &mut dyn CryptoRngCore) {
        match input {
            Input::Timeout => self.kgc.handle_input(now, Input::Timeout, rng),
            Input::Connected { peer, route } => {
                self.kgc.handle_input(now, Input::Connected { peer, route }, rng);
            }
            Input::Disconnected { peer } => {
                if let Some(byzantine) = &mut self.byzantine {
                    byzantine.forget(peer);
                }
                self.kgc.handle_input(now, Input::Disconnected { peer }, rng);
            }
            Input::Received { from, bytes, .. } => self.received(now, from, bytes, rng),
            Input::Resumed => self.kgc.handle_input(now, Input::Resumed, rng),
            Input::Command(KgcNodeCommand::Kgc(command)) => {
                self.kgc.handle_input(now, Input::Command(command), rng);
            }
            Input::Command(KgcNodeCommand::Release(command)) => {
                if let Some(office) = &mut self.office {
                    office.handle_input(now, Input::Command(command), rng);
                }
            }
        }
        self.tell_of_revocations();
    }

    fn poll_output(&mut self) -> Output<NodeEvent, KgcNodeRecord> {
        // The office has no deadlines: the KGC's is that of both.
        match self.office.as_mut().map_or(Output::Timeout(None), |office| office.poll_output()) {
            Output::Persist(record) => return Output::Persist(KgcNodeRecord::Released(record)),
            Output::Transmit { to, payload } => return self.transmit(to, payload),
            Output::Event(event) => return Output::Event(event.into()),
            Output::Block(peer) => return Output::Block(peer),
            Output::Relay { peer, allowed } => return Output::Relay { peer, allowed },
            Output::Penalize { peer, misdeed } => return Output::Penalize { peer, misdeed },
            Output::Timeout(_) => {}
        }
        match self.kgc.poll_output() {
            Output::Persist(record) => Output::Persist(KgcNodeRecord::Kgc(record)),
            Output::Transmit { to, payload } => self.transmit(to, payload),
            Output::Event(event) => Output::Event(event.into()),
            Output::Block(peer) => Output::Block(peer),
            Output::Relay { peer, allowed } => Output::Relay { peer, allowed },
            Output::Penalize { peer, misdeed } => Output::Penalize { peer, misdeed },
            Output::Timeout(deadline) => Output::Timeout(deadline),
        }
    }
}

impl From<KgcEvent> for NodeEvent {
    fn from(event: KgcEvent) -> Self {
        Self::Kgc(event)
    }
}

impl From<ReleaseEvent> for NodeEvent {
    fn from(event: ReleaseEvent) -> Self {
        Self::Release(event)
    }
}
