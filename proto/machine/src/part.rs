//! A part of a machine: a protocol with state of its own that shares a drone's or a KGC's connections, clock and key.

use core::time::Duration;

use quiver_ainq::{Deployment, DroneKeypair, Name, Suite};
use quiver_message::Message;
use rand_core::CryptoRngCore;

use crate::{Now, Offence, Outbox, Peer, Revocations, Route};

/// What a part sees and uses while it handles one input.
///
/// The part's own state is not in it: a part owns that, and nobody else changes it.
pub struct Context<'a, S: Suite, E, R> {
    /// The driver's clocks.
    pub now: Now,
    /// The driver's randomness.
    pub rng: &'a mut dyn CryptoRngCore,
    /// Where messages, events and records go.
    pub out: &'a mut Outbox<E, R>,
    /// The deployment.
    pub deployment: &'a Deployment<S>,
    /// The key of the drone, once it is enrolled; a KGC has none.
    pub keypair: Option<&'a DroneKeypair<S>>,
    /// The newest revocation list held.
    pub revocations: &'a Revocations<S>,
    /// The group of the drone, if it is in one or wants to be.
    pub group: Option<&'a Name>,
}

impl<S: Suite, E, R> Context<'_, S, E, R> {
    /// Encodes a message and sends it to one peer.
    pub fn send(&mut self, peer: Peer, message: &Message<S>) {
        self.out.send(self.deployment, peer, message);
    }

    /// Encodes a message and publishes it to the group.
    pub fn publish(&mut self, message: &Message<S>) {
        self.out.send_to_group(self.deployment, message);
    }
}

/// What a part made of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handled {
    /// It was for this part.
    Yes,
    /// It is none of this part's messages: the next part is asked.
    No,
    /// It was for this part, and its sender is to be blamed for it.
    Offence(Offence),
}

/// A protocol beside a primary role: attribute keys, key release, envelopes.
pub trait Part<S: Suite> {
    /// What the operator or application may ask.
    type Command;
    /// What it reports.
    type Event;
    /// What must survive a crash.
    type Record;

    /// A connection stands.
    fn connected(&mut self, _cx: &mut Context<'_, S, Self::Event, Self::Record>, _peer: Peer, _route: Route) {
    }

    /// A connection is gone.
    fn disconnected(&mut self, _cx: &mut Context<'_, S, Self::Event, Self::Record>, _peer: Peer) {}

    /// Takes a message, or says that it is for another.
    fn handle(
        &mut self,
        cx: &mut Context<'_, S, Self::Event, Self::Record>,
        from: Peer,
        message: &Message<S>,
    ) -> Handled;

    /// Does what the operator or application wants.
    fn command(&mut self, cx: &mut Context<'_, S, Self::Event, Self::Record>, command: Self::Command);

    /// Does what is due; called after every input.
    fn tick(&mut self, _cx: &mut Context<'_, S, Self::Event, Self::Record>) {}

    /// When to be called again at the latest.
    fn deadline(&self) -> Option<Duration> {
        None
    }
}
