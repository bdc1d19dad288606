//! A KGC's composite machine: enrolment, release of condition keys, and byzantine behaviour on request.

use quiver_ainq::{KgcId, OperatorPublicKey, Suite};
use quiver_enrolment::{Kgc, KgcCommand, KgcRecord};
use quiver_key_release::{ReleaseCommand, ShareReleased, ShareServer};
use quiver_machine::{Destination, Either, Input, Machine, Node, Now, Output, Primary};
use quiver_message::Message;
use rand_core::CryptoRngCore;

use crate::NodeEvent;
use crate::quorum::ByzantineKgc;

/// A command to the KGC or to its server of key shares.
pub(crate) type KgcNodeCommand = Either<KgcCommand, ReleaseCommand>;
/// A record of either.
pub(crate) type KgcNodeRecord = Either<KgcRecord, ShareReleased>;

/// A KGC with its parts.
#[derive(derive_more::Deref)]
pub(crate) struct KgcNode<S: Suite> {
    #[deref(forward)]
    node: Node<Kgc<S>, Option<ShareServer<S>>>,
    byzantine: Option<Box<ByzantineKgc<S>>>,
}

impl<S: Suite> KgcNode<S> {
    pub(crate) fn new(kgc: Kgc<S>, shares: Option<ShareServer<S>>) -> Self {
        Self { node: Node::new(kgc, shares), byzantine: None }
    }

    /// Makes it lie from now on, or be honest again.
    pub(crate) fn set_lying(&mut self, lies: Option<(KgcId, OperatorPublicKey<S>, [u8; 32])>) {
        self.byzantine = lies.map(|(id, operator, dice)| Box::new(ByzantineKgc::new(id, operator, dice)));
    }
}

impl<S: Suite> Machine for KgcNode<S> {
    type Command = KgcNodeCommand;
    type Event = NodeEvent;
    type Record = KgcNodeRecord;

    fn handle_input(&mut self, now: Now, input: Input<'_, KgcNodeCommand>, rng: &mut dyn CryptoRngCore) {
        if let Some(byzantine) = &mut self.byzantine {
            match &input {
                Input::Disconnected { peer } => byzantine.forget(*peer),
                Input::Received { from, bytes, .. } => {
                    if let Ok(message) = Message::decode(self.node.deployment(), bytes) {
                        byzantine.observe(self.node.deployment(), now, *from, &message);
                    }
                }
                _ => {}
            }
        }
        self.node.handle_input(now, input, rng);
    }

    fn poll_output(&mut self) -> Output<NodeEvent, KgcNodeRecord> {
        let output = self.node.poll_output().map(NodeEvent::from, |record| record);
        match (&mut self.byzantine, output) {
            (Some(byzantine), Output::Transmit { to: Destination::Peer(peer), payload }) => {
                let payload = byzantine.tamper(self.node.deployment(), peer, payload);
                Output::Transmit { to: Destination::Peer(peer), payload }
            }
            (_, output) => output,
        }
    }
}
