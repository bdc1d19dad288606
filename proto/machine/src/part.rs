//! A part of a machine: a protocol with state of its own that shares a drone's or a KGC's connections, clock
//! and key.

use alloc::vec::Vec;
use core::convert::Infallible;
use core::time::Duration;

use quiver_ainq::{Deployment, DroneKeypair, Name, Suite};
use quiver_message::Message;
use rand_core::CryptoRngCore;

use crate::{Either, Now, Offence, Outbox, Peer, Revocations, Route, earlier};

/// State that a part reads and changes while it handles one input.
///
/// The part's own state is not in it: only the part itself changes that.
pub struct Context<'a, S: Suite, E, R> {
    /// The driver's clocks.
    pub now: Now,
    /// The driver's randomness.
    pub rng: &'a mut dyn CryptoRngCore,
    /// Queue of messages, events and records.
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

    /// The context of a part of this part: its outputs are converted by `event` and `record`.
    pub fn within<F, Q, T>(
        &mut self,
        event: fn(F) -> E,
        record: fn(Q) -> R,
        act: impl FnOnce(&mut Context<'_, S, F, Q>) -> T,
    ) -> T {
        let mut out = Outbox::new();
        let Self { now, deployment, keypair, revocations, group, .. } = *self;
        let rng = &mut *self.rng;
        let result = act(&mut Context { now, rng, out: &mut out, deployment, keypair, revocations, group });
        self.out.append(out, event, record);
        result
    }
}

/// Result of offering a message to a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handled {
    /// The message was for this part.
    Yes,
    /// The message is not for this part: the next part is asked.
    No,
    /// The message was for this part, and the primary role is to blame its sender for it.
    Offences(Vec<Offence>),
}

/// A protocol beside a primary role: attribute keys, key release, envelopes.
///
/// Two parts are one ([`Either`] command, event and record), and so is a part that may be missing.
pub trait MachinePart<S: Suite> {
    /// Command of the operator or the application.
    type Command;
    /// Event reported to the application.
    type Event;
    /// Record that must survive a crash.
    type Record;

    /// True if the part takes messages at all. Where none does, the primary role decodes what it takes in one
    /// go.
    const TAKES_MESSAGES: bool = true;

    /// A connection stands.
    fn connected(&mut self, _cx: &mut Context<'_, S, Self::Event, Self::Record>, _peer: Peer, _route: Route) {
    }

    /// A connection is gone.
    fn disconnected(&mut self, _cx: &mut Context<'_, S, Self::Event, Self::Record>, _peer: Peer) {}

    /// Takes a message, or returns that it is for another part.
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

    /// Latest time of the next call.
    fn deadline(&self) -> Option<Duration> {
        None
    }
}

/// No part.
impl<S: Suite> MachinePart<S> for () {
    type Command = Infallible;
    type Event = Infallible;
    type Record = Infallible;

    const TAKES_MESSAGES: bool = false;

    fn handle(&mut self, _: &mut Context<'_, S, Infallible, Infallible>, _: Peer, _: &Message<S>) -> Handled {
        Handled::No
    }

    fn command(&mut self, _: &mut Context<'_, S, Infallible, Infallible>, command: Infallible) {
        match command {}
    }
}

/// A part that may be missing: commands to it are lost then.
impl<S: Suite, P: MachinePart<S>> MachinePart<S> for Option<P> {
    type Command = P::Command;
    type Event = P::Event;
    type Record = P::Record;

    fn connected(&mut self, cx: &mut Context<'_, S, P::Event, P::Record>, peer: Peer, route: Route) {
        if let Some(part) = self {
            part.connected(cx, peer, route);
        }
    }

    fn disconnected(&mut self, cx: &mut Context<'_, S, P::Event, P::Record>, peer: Peer) {
        if let Some(part) = self {
            part.disconnected(cx, peer);
        }
    }

    fn handle(
        &mut self,
        cx: &mut Context<'_, S, P::Event, P::Record>,
        from: Peer,
        message: &Message<S>,
    ) -> Handled {
        self.as_mut().map_or(Handled::No, |part| part.handle(cx, from, message))
    }

    fn command(&mut self, cx: &mut Context<'_, S, P::Event, P::Record>, command: P::Command) {
        if let Some(part) = self {
            part.command(cx, command);
        }
    }

    fn tick(&mut self, cx: &mut Context<'_, S, P::Event, P::Record>) {
        if let Some(part) = self {
            part.tick(cx);
        }
    }

    fn deadline(&self) -> Option<Duration> {
        self.as_ref().and_then(P::deadline)
    }
}

/// The context of a pair.
type PairContext<'a, S, A, B> = Context<
    'a,
    S,
    Either<<A as MachinePart<S>>::Event, <B as MachinePart<S>>::Event>,
    Either<<A as MachinePart<S>>::Record, <B as MachinePart<S>>::Record>,
>;

/// Two parts: the first is asked first.
impl<S: Suite, A: MachinePart<S>, B: MachinePart<S>> MachinePart<S> for (A, B) {
    type Command = Either<A::Command, B::Command>;
    type Event = Either<A::Event, B::Event>;
    type Record = Either<A::Record, B::Record>;

    fn connected(&mut self, cx: &mut PairContext<'_, S, A, B>, peer: Peer, route: Route) {
        cx.within(Either::Left, Either::Left, |cx| self.0.connected(cx, peer, route));
        cx.within(Either::Right, Either::Right, |cx| self.1.connected(cx, peer, route));
    }

    fn disconnected(&mut self, cx: &mut PairContext<'_, S, A, B>, peer: Peer) {
        cx.within(Either::Left, Either::Left, |cx| self.0.disconnected(cx, peer));
        cx.within(Either::Right, Either::Right, |cx| self.1.disconnected(cx, peer));
    }

    fn handle(&mut self, cx: &mut PairContext<'_, S, A, B>, from: Peer, message: &Message<S>) -> Handled {
        match cx.within(Either::Left, Either::Left, |cx| self.0.handle(cx, from, message)) {
            Handled::No => cx.within(Either::Right, Either::Right, |cx| self.1.handle(cx, from, message)),
            handled => handled,
        }
    }

    fn command(&mut self, cx: &mut PairContext<'_, S, A, B>, command: Self::Command) {
        match command {
            Either::Left(command) => {
                cx.within(Either::Left, Either::Left, |cx| self.0.command(cx, command));
            }
            Either::Right(command) => {
                cx.within(Either::Right, Either::Right, |cx| self.1.command(cx, command));
            }
        }
    }

    fn tick(&mut self, cx: &mut PairContext<'_, S, A, B>) {
        cx.within(Either::Left, Either::Left, |cx| self.0.tick(cx));
        cx.within(Either::Right, Either::Right, |cx| self.1.tick(cx));
    }

    fn deadline(&self) -> Option<Duration> {
        earlier(self.0.deadline(), self.1.deadline())
    }
}
