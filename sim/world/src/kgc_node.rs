//! A KGC's composite machine: enrolment, the parts that features put beside it, and byzantine behaviour on request.

use quiver_ainq::{Deployment, Suite};
use quiver_enrolment::{Kgc, KgcCommand, KgcRecord};
use quiver_machine::{Destination, Either, Input, Machine, Node, Now, Output, Peer, Primary};
use quiver_message::Message;
use rand_core::CryptoRngCore;

use crate::NodeEvent;
use crate::feature_part::AnyFeatureCommand;
use crate::features::{KgcPartRecord, KgcParts};

/// A command to the KGC or to a feature's part of it.
pub(crate) type KgcNodeCommand = Either<KgcCommand, AnyFeatureCommand>;
/// A record of either.
pub(crate) type KgcNodeRecord = Either<KgcRecord, KgcPartRecord>;

/// Behaviour of a byzantine KGC between its machine, which is honest, and its peers.
pub(crate) trait ByzantineBehaviour<S: Suite>: Send + Sync {
    /// Sees a message that the KGC receives.
    fn observe(&mut self, deployment: &Deployment<S>, now: Now, from: Peer, message: &Message<S>);

    /// Handles the end of a connection.
    fn forget(&mut self, peer: Peer);

    /// The altered message in place of an honest one.
    fn tamper(&mut self, deployment: &Deployment<S>, to: Peer, payload: Vec<u8>) -> Vec<u8>;
}

/// A KGC with its parts.
#[derive(derive_more::Deref)]
pub(crate) struct KgcNode<S: Suite> {
    #[deref(forward)]
    node: Node<Kgc<S>, KgcParts<S>>,
    byzantine: Option<Box<dyn ByzantineBehaviour<S>>>,
}

impl<S: Suite> KgcNode<S> {
    pub(crate) fn new(kgc: Kgc<S>) -> Self {
        Self { node: Node::new(kgc, KgcParts::default()), byzantine: None }
    }

    /// The features' parts, to be changed.
    pub(crate) fn parts_mut(&mut self) -> &mut KgcParts<S> {
        self.node.parts_mut()
    }

    /// Makes it byzantine from now on, or honest again.
    pub(crate) fn set_byzantine(&mut self, byzantine: Option<Box<dyn ByzantineBehaviour<S>>>) {
        self.byzantine = byzantine;
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
