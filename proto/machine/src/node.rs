//! A machine composed of a primary role and parts beside it: a KGC with what it delivers, a drone with its
//! envelopes.

use quiver_ainq::{Deployment, DroneKeypair, Name, Suite};
use quiver_message::Message;
use rand_core::CryptoRngCore;

use crate::{
    Context, Either, FinishedJob, Handled, Input, Job, Machine, MachinePart, Now, Offence, Outbox, Output,
    Peer, RelayedBroadcast, Revocations, Via, earlier,
};

/// A role that parts can be put beside: it has what they share, and takes the messages that none of them
/// wants.
pub trait Primary: Machine {
    /// The suite of its deployment.
    type Suite: Suite;

    /// Decodes a message, or blames its sender.
    fn decode(&mut self, from: (Peer, Via), bytes: &[u8]) -> Option<Message<Self::Suite>>;

    /// Takes a decoded message as [`Machine::handle_input`] takes its bytes.
    fn receive(
        &mut self,
        now: Now,
        from: (Peer, Via),
        message: Message<Self::Suite>,
        rng: &mut dyn CryptoRngCore,
    );

    /// Does what is due after an input that was not its own.
    fn wake(&mut self, now: Now, rng: &mut dyn CryptoRngCore);

    /// Reports what a peer did wrong, and has it disconnected if need be.
    fn blame(&mut self, from: (Peer, Via), offence: Offence);

    /// The state that its parts use.
    fn shared(&self) -> SharedRoleState<'_, Self::Suite>;

    /// The deployment it belongs to.
    fn deployment(&self) -> &Deployment<Self::Suite> {
        self.shared().deployment
    }

    /// The key of the drone, once it is enrolled; a KGC has none.
    fn keypair(&self) -> Option<&DroneKeypair<Self::Suite>> {
        self.shared().keypair
    }

    /// The newest revocation list held.
    fn revocations(&self) -> &Revocations<Self::Suite> {
        self.shared().revocations
    }
}

/// State that a primary role shares with the parts beside it.
#[derive(Clone, Copy)]
pub struct SharedRoleState<'a, S: Suite> {
    /// The deployment it belongs to.
    pub deployment: &'a Deployment<S>,
    /// The key of the drone, once it is enrolled; a KGC has none.
    pub keypair: Option<&'a DroneKeypair<S>>,
    /// The newest revocation list held.
    pub revocations: &'a Revocations<S>,
    /// The group of the drone, if it is in one or wants to be.
    pub group: Option<&'a Name>,
}

/// A primary role and its parts as one machine, for one driver.
///
/// A message is decoded once and offered to the parts; a message that no part takes is the primary's. Parts
/// use the revocation list and the keypair that the primary has when they are called. The primary's outputs
/// come first, so that its records are durable before a part sends.
#[derive(derive_more::Debug, derive_more::Deref)]
#[debug("Node {{ primary: {primary:?}, parts: {parts:?} }}")]
pub struct Node<P: Primary, Q: MachinePart<P::Suite>> {
    #[deref]
    primary: P,
    parts: Q,
    out: Outbox<Q::Event, Q::Record>,
}

impl<P: Primary, Q: MachinePart<P::Suite>> Node<P, Q> {
    /// Puts them together.
    pub fn new(primary: P, parts: Q) -> Self {
        Self { primary, parts, out: Outbox::new() }
    }

    /// Returns the primary and the parts; outputs not yet polled are lost.
    pub fn into_inner(self) -> (P, Q) {
        (self.primary, self.parts)
    }

    /// The primary role, to be changed.
    pub fn primary_mut(&mut self) -> &mut P {
        &mut self.primary
    }

    /// The parts.
    pub fn parts(&self) -> &Q {
        &self.parts
    }

    /// The parts, to be changed.
    pub fn parts_mut(&mut self) -> &mut Q {
        &mut self.parts
    }

    /// Calls the parts with what they share with the primary.
    fn with_parts<T>(
        &mut self,
        now: Now,
        rng: &mut dyn CryptoRngCore,
        act: impl FnOnce(&mut Q, &mut Context<'_, P::Suite, Q::Event, Q::Record>) -> T,
    ) -> T {
        let SharedRoleState { deployment, keypair, revocations, group } = self.primary.shared();
        let out = &mut self.out;
        act(&mut self.parts, &mut Context { now, rng, out, deployment, keypair, revocations, group })
    }

    #[inline(never)]
    fn received(&mut self, now: Now, (from, via): (Peer, Via), bytes: &[u8], rng: &mut dyn CryptoRngCore) {
        let Some(message) = self.primary.decode((from, via), bytes) else {
            return self.primary.wake(now, rng);
        };
        // §13.6: messages received by gossip are never answered.
        let handled = if via == Via::Group && !message.is_publication() {
            Handled::Yes
        } else {
            self.with_parts(now, rng, |parts, cx| parts.handle(cx, from, &message))
        };
        match handled {
            Handled::No => return self.primary.receive(now, (from, via), message, rng),
            Handled::Yes => {}
            Handled::Offences(offences) => {
                offences.into_iter().for_each(|offence| self.primary.blame((from, via), offence));
            }
        }
        self.primary.wake(now, rng);
    }
}

impl<P: Primary, Q: MachinePart<P::Suite>> Machine for Node<P, Q> {
    type Command = Either<P::Command, Q::Command>;
    type Event = Either<P::Event, Q::Event>;
    type Record = Either<P::Record, Q::Record>;

    fn handle_input(&mut self, now: Now, input: Input<'_, Self::Command>, rng: &mut dyn CryptoRngCore) {
        match input {
            Input::Timeout => self.primary.handle_input(now, Input::Timeout, rng),
            Input::Resumed => self.primary.handle_input(now, Input::Resumed, rng),
            Input::Connected { peer, route } => {
                self.primary.handle_input(now, Input::Connected { peer, route }, rng);
                self.with_parts(now, rng, |parts, cx| parts.connected(cx, peer, route));
            }
            Input::Disconnected { peer } => {
                self.primary.handle_input(now, Input::Disconnected { peer }, rng);
                self.with_parts(now, rng, |parts, cx| parts.disconnected(cx, peer));
            }
            Input::Received { from, via, bytes } if Q::TAKES_MESSAGES => {
                self.received(now, (from, via), bytes, rng);
            }
            Input::Received { from, via, bytes } => {
                self.primary.handle_input(now, Input::Received { from, via, bytes }, rng);
            }
            Input::Command(Either::Left(command)) => {
                self.primary.handle_input(now, Input::Command(command), rng);
            }
            Input::Command(Either::Right(command)) => {
                self.primary.wake(now, rng);
                self.with_parts(now, rng, |parts, cx| parts.command(cx, command));
            }
        }
        self.with_parts(now, rng, |parts, cx| parts.tick(cx));
    }

    fn poll_output(&mut self) -> Output<Self::Event, Self::Record> {
        match self.primary.poll_output() {
            Output::Timeout(deadline) => {
                let deadline = earlier(deadline, self.parts.deadline());
                self.out.poll(deadline).map(Either::Right, Either::Right)
            }
            output => output.map(Either::Left, Either::Left),
        }
    }

    fn take_job(&mut self) -> Option<Job> {
        self.primary.take_job()
    }

    fn take_broadcast(&mut self) -> Option<RelayedBroadcast> {
        self.primary.take_broadcast()
    }

    fn finish_job(&mut self, now: Now, done: FinishedJob, rng: &mut dyn CryptoRngCore) {
        self.primary.finish_job(now, done, rng);
    }
}
