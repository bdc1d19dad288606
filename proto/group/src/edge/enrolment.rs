//! Enrols an edge: token, KGCs, and the key that comes of them.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Deployment, DroneKeypair, DronePublicKey, Error, IssuedToken, PendingEnrolment, Suite};
use quiver_enrolment::{EnrolmentClient, EnrolmentStep, Kgcs, Steps};
use quiver_machine::{Backoff, Context, Peer, due};
use quiver_message::{Message, RefusalReason};

use super::{EdgeEvent, StateChanged};

type EnrolmentContext<'a, S> = Context<'a, S, EdgeEvent, StateChanged>;

/// Input of the enrolment.
pub(super) enum EnrolmentInput<'a, S: Suite> {
    /// The edge starts.
    Start(Backoff),
    /// A KGC is connected.
    Connected(Peer),
    /// A connection is gone.
    Disconnected(Peer),
    /// A KGC answers.
    Received(Peer, &'a Message<S>),
    /// Time has passed.
    Tick,
}

/// The key of an edge, or the way to it.
#[derive(Debug)]
pub(super) struct Enrolment<S: Suite> {
    kgcs: Kgcs<S>,
    /// Token of the drone, until it has enrolled. In a box like the client, because an edge lives mostly
    /// without either.
    token: Option<Box<IssuedToken<S>>>,
    client: Option<Box<EnrolmentClient<S>>>,
    keypair: Option<DroneKeypair<S>>,
}

impl<S: Suite> Enrolment<S> {
    pub(super) fn new(token: Option<IssuedToken<S>>, kgcs: Kgcs<S>) -> Self {
        Self { kgcs, token: token.map(Box::new), client: None, keypair: None }
    }

    pub(super) fn keypair(&self) -> Option<&DroneKeypair<S>> {
        self.keypair.as_ref()
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.client.is_some()
    }

    /// Takes an input. Returns whether the drone has come by its key.
    pub(super) fn handle(&mut self, cx: &mut EnrolmentContext<'_, S>, input: EnrolmentInput<'_, S>) -> bool {
        if let EnrolmentInput::Start(backoff) = input {
            self.start(cx, backoff);
            return false;
        }
        // §3.1: the KGC is asked again, or the next one.
        let tick = due(self.deadline(), cx.now.monotonic);
        let steps = match (&mut self.client, &input) {
            (Some(client), EnrolmentInput::Connected(kgc)) => client.connected(cx.now, *kgc, cx.rng),
            (Some(client), EnrolmentInput::Disconnected(peer)) => client.disconnected(cx.now, *peer, cx.rng),
            (Some(client), EnrolmentInput::Received(from, message)) => {
                client.receive(cx.deployment, cx.now, *from, message, cx.rng)
            }
            (Some(client), EnrolmentInput::Tick) if tick => client.retry(cx.now, cx.rng),
            _ => Vec::new(),
        };
        let enrolled = self.carry_out(cx, steps);
        if let EnrolmentInput::Connected(kgc) = input {
            // §3.6: to each KGC, and again at every later contact.
            self.prove(cx, kgc);
        }
        enrolled
    }

    /// §3.1: Starts with the token, unless there is a key or an enrolment is under way.
    #[inline(never)]
    fn start(&mut self, cx: &mut EnrolmentContext<'_, S>, backoff: Backoff) {
        let (None, None, Some(token)) = (&self.keypair, &self.client, &self.token) else { return };
        // §3.3: the request is the same for every KGC, and is stored before it is sent.
        match EnrolmentClient::start(cx.deployment, token, &self.kgcs, backoff, cx.rng) {
            Ok(client) => self.client = Some(Box::new(client)),
            Err(_) => cx.out.event(EdgeEvent::Refused(RefusalReason::TokenForeign)),
        }
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.client.as_deref().and_then(EnrolmentClient::deadline)
    }

    #[inline(never)]
    fn carry_out(&mut self, cx: &mut EnrolmentContext<'_, S>, steps: Steps<S>) -> bool {
        let mut enrolled = false;
        for step in steps {
            match step {
                EnrolmentStep::Send(kgc, message) => cx.send(kgc, &message),
                EnrolmentStep::Wrong(peer, offence) => cx.out.event(EdgeEvent::Blamed { peer, offence }),
                EnrolmentStep::Refused(reason) => cx.out.event(EdgeEvent::Refused(reason)),
                EnrolmentStep::Trouble(trouble) => cx.out.event(EdgeEvent::EnrolmentTrouble(trouble)),
                EnrolmentStep::Enrolled(keypair) => {
                    self.activate(cx, keypair);
                    enrolled = true;
                }
            }
        }
        enrolled
    }

    /// §3.5: the key verified; it replaces the token and what was pending.
    fn activate(&mut self, cx: &mut EnrolmentContext<'_, S>, keypair: DroneKeypair<S>) {
        let name = keypair.public().identity.name.clone();
        self.keypair = Some(keypair);
        let quorum = self.client.as_ref().map(|client| client.quorum()).unwrap_or_default();
        // The token is used up, and the secret value lives on in the key alone.
        (self.client, self.token) = (None, None);
        // §3.6: the key is durable before the quorum is notified.
        cx.out.persist(StateChanged);
        quorum.into_iter().for_each(|kgc| self.prove(cx, kgc));
        cx.out.event(EdgeEvent::Enrolled { name });
    }

    /// §3.9: a KGC makes no more shares for the token of a drone that proved to hold a key. Sent at every
    /// contact, for nothing answers it.
    fn prove(&self, cx: &mut EnrolmentContext<'_, S>, kgc: Peer) {
        let Some(keypair) = &self.keypair else { return };
        if let Some(notice) = self.kgcs.notice_of_key(cx.deployment, keypair, cx.rng) {
            cx.send(kgc, &notice);
        }
    }

    /// The pending enrolment as it is stored.
    pub(super) fn pending(&self) -> Option<zeroize::Zeroizing<Vec<u8>>> {
        self.client.as_ref().map(|client| client.encode())
    }

    /// Goes on with an enrolment that was stored.
    pub(super) fn resume(&mut self, pending: &[u8], backoff: Backoff) -> Result<(), Error> {
        let pending = PendingEnrolment::decode(pending)?;
        // §3.4: with the very request that the token is bound to.
        self.client = Some(Box::new(EnrolmentClient::resume(pending, &self.kgcs, backoff)));
        Ok(())
    }

    /// Restores a stored key.
    pub(super) fn restore_keypair(
        &mut self,
        deployment: &Deployment<S>,
        public: &[u8],
        secret: &[u8],
    ) -> Result<(), Error> {
        let public = DronePublicKey::decode(public)?;
        self.keypair = Some(DroneKeypair::restore(deployment, public, secret)?);
        Ok(())
    }
}
