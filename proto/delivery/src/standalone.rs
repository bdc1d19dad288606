//! A part of delivery as a machine of its own: a drone that fetches or collects keys and does nothing else,
//! or one server of a KGC.

use quiver_ainq::{Deployment, DroneKeypair, Error, Suite};
use quiver_machine::{
    Context, Handled, Input, Machine, MachinePart, Now, Offence, Outbox, Output, Peer, Revocations,
};
use quiver_message::Message;
use rand_core::CryptoRngCore;

/// A part with the state that a drone or a KGC would share with it.
#[derive(Debug, derive_more::Deref)]
pub struct Standalone<S: Suite, P: MachinePart<S>> {
    deployment: Deployment<S>,
    /// Keypair of a drone; a server has none.
    keypair: Option<DroneKeypair<S>>,
    revocations: Revocations<S>,
    #[deref]
    part: P,
    out: Outbox<P::Event, P::Record>,
}

impl<S: Suite, P: MachinePart<S>> Standalone<S, P> {
    /// The client of a drone with this key.
    pub fn client(deployment: Deployment<S>, keypair: DroneKeypair<S>, part: P) -> Self {
        Self { keypair: Some(keypair), ..Self::server(deployment, part) }
    }

    /// A server for the drones of this deployment.
    pub fn server(deployment: Deployment<S>, part: P) -> Self {
        Self { deployment, keypair: None, revocations: Revocations::new(), part, out: Outbox::new() }
    }

    /// The part, to be changed.
    pub const fn part_mut(&mut self) -> &mut P {
        &mut self.part
    }

    /// Takes a revocation list from anywhere: kept if it verifies and is newer.
    ///
    /// # Errors
    /// The error of an invalid list.
    pub fn offer_revocations(&mut self, list: &[u8]) -> Result<(), Error> {
        self.revocations.offer(&self.deployment, list).map(drop)
    }

    fn with_part<T>(
        &mut self,
        now: Now,
        rng: &mut dyn CryptoRngCore,
        act: impl FnOnce(&mut P, &mut Context<'_, S, P::Event, P::Record>) -> T,
    ) -> T {
        let mut context = Context {
            now,
            rng,
            out: &mut self.out,
            deployment: &self.deployment,
            keypair: self.keypair.as_ref(),
            revocations: &self.revocations,
            group: None,
        };
        act(&mut self.part, &mut context)
    }

    fn received(&mut self, now: Now, from: Peer, bytes: &[u8], rng: &mut dyn CryptoRngCore)
    where
        P::Event: From<(Peer, Offence)>,
    {
        let offence = match Message::decode(&self.deployment, bytes) {
            Err(error) => Offence::from(error),
            // §13.8: every message is the part's, or is counted against its sender.
            Ok(message) => match self.with_part(now, rng, |part, cx| part.handle(cx, from, &message)) {
                Handled::Yes => return,
                Handled::Offences(offences) => {
                    return offences.into_iter().for_each(|offence| self.out.event((from, offence).into()));
                }
                Handled::No => match (message, &self.keypair) {
                    // Replies that come too late, and lists that a KGC sends to peers it knows.
                    (
                        Message::DeliveryChallenge(_)
                        | Message::DeliveryReply(_)
                        | Message::Refusal(_)
                        | Message::RevocationList(_),
                        Some(_),
                    ) => return,
                    (Message::RevocationList(list), None) => match self.offer_revocations(&list.list) {
                        Ok(()) => return,
                        Err(error) => error.into(),
                    },
                    (message, Some(_)) => {
                        Offence::out_of_place(&message, "message to a drone that fetches keys")
                    }
                    (message, None) => Offence::out_of_place(&message, "message to a server of delivery"),
                },
            },
        };
        self.out.event((from, offence).into());
    }
}

impl<S: Suite, P: MachinePart<S, Event: From<(Peer, Offence)>>> Machine for Standalone<S, P> {
    type Command = P::Command;
    type Event = P::Event;
    type Record = P::Record;

    fn handle_input(&mut self, now: Now, input: Input<'_, P::Command>, rng: &mut dyn CryptoRngCore) {
        match input {
            // A copy of this process asks for nothing that it may not have: requests are signed over fresh
            // nonces.
            Input::Timeout | Input::Resumed => {}
            Input::Connected { peer, route } => {
                self.with_part(now, rng, |part, cx| part.connected(cx, peer, route));
            }
            Input::Disconnected { peer } => self.with_part(now, rng, |part, cx| part.disconnected(cx, peer)),
            Input::Received { from, bytes, .. } => self.received(now, from, bytes, rng),
            Input::Command(command) => self.with_part(now, rng, |part, cx| part.command(cx, command)),
        }
        // Due work is done, whichever input came.
        self.with_part(now, rng, |part, cx| part.tick(cx));
    }

    fn poll_output(&mut self) -> Output<P::Event, P::Record> {
        let deadline = self.part.deadline();
        self.out.poll(deadline)
    }
}
