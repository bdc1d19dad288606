//! Enrols a drone (docs/protocol.md §3): hello, cookie, request, and a partial key, whole from a single KGC
//! or in shares from a quorum. Edges and leaders enrol alike.

mod single;
mod trouble;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use quiver_ainq::{Deployment, DroneKeypair, Error, IssuedToken, PendingEnrolment, SealedReply, Suite};
use quiver_message::{EnrolCookie, EnrolReply, EnrolRequest, Message, RefusalReason};
use rand_core::CryptoRngCore;
use zeroize::Zeroizing;

pub(crate) use self::single::Single;
pub use self::trouble::EnrolmentTrouble;
use crate::Kgcs;
use quiver_machine::{Backoff, Now, Offence, Peer};

/// A drone that has a token and wants a key.
#[derive(Debug)]
pub struct EnrolmentClient<S: Suite> {
    shared: SharedRequest<S>,
    selection: Box<dyn KgcSelection<S>>,
}

/// The request to every KGC: always the same, byte for byte.
#[derive(Debug)]
pub(crate) struct SharedRequest<S: Suite> {
    pub(crate) pending: PendingEnrolment<S>,
    request: Vec<u8>,
    pub(crate) digest: [u8; 32],
}

/// The KGCs to ask, and their timing: one after another, or all of a quorum at once.
pub(crate) trait KgcSelection<S: Suite>: Send + Sync {
    /// Time at which to call [`retry`](Self::retry).
    fn deadline(&self) -> Option<Duration>;

    /// A KGC is connected.
    fn connected(&mut self, now: Now, kgc: Peer, rng: &mut dyn CryptoRngCore) -> Steps<S>;

    /// A connection is gone.
    fn disconnected(
        &mut self,
        shared: &SharedRequest<S>,
        now: Now,
        peer: Peer,
        rng: &mut dyn CryptoRngCore,
    ) -> Steps<S>;

    /// The deadline has come.
    fn retry(&mut self, shared: &SharedRequest<S>, now: Now, rng: &mut dyn CryptoRngCore) -> Steps<S>;

    /// Takes an answer to the enrolment.
    fn receive(
        &mut self,
        shared: &SharedRequest<S>,
        deployment: &Deployment<S>,
        from: (Now, Peer),
        message: &Message<S>,
        rng: &mut dyn CryptoRngCore,
    ) -> Steps<S>;

    /// The connected KGCs that are notified of the key; a single KGC is not.
    fn quorum(&self) -> Vec<Peer> {
        Vec::new()
    }
}

/// Not by the trait: a board would carry the formatting of all that an implementation has.
impl<S: Suite> fmt::Debug for dyn KgcSelection<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KgcSelection")
    }
}

/// Results of an input, in order.
pub type Steps<S> = Vec<EnrolmentStep<S>>;

/// One thing that an input came to.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "short-lived")]
pub enum EnrolmentStep<S: Suite> {
    /// Send this to a KGC.
    Send(Peer, Message<S>),
    /// The key verified.
    Enrolled(DroneKeypair<S>),
    /// An attacker, or the KGC, sent an invalid message.
    Wrong(Peer, Offence),
    /// The KGC refuses, or so many of a quorum that the others are too few.
    Refused(RefusalReason),
    /// The quorum misbehaves; enrolment goes on.
    Trouble(EnrolmentTrouble),
}

impl<S: Suite> EnrolmentClient<S> {
    /// Starts a new enrolment. The caller persists [`Self::encode`] before anything is sent: the KGC binds
    /// the token to the secret value drawn here for ever.
    pub fn start(
        deployment: &Deployment<S>,
        token: &IssuedToken<S>,
        kgcs: &Kgcs<S>,
        backoff: Backoff,
        rng: &mut dyn CryptoRngCore,
    ) -> Result<Self, Error> {
        // §3.3: the proofs cover a session number, drawn once for each enrolment.
        let mut session = [0; 16];
        rng.fill_bytes(&mut session);
        // §3.3: draws x_i and the reply point N_i, and proves possession of tsk and x_i.
        let (_, pending) =
            quiver_ainq::EnrolmentRequest::create(deployment, token, kgcs.ids(), session, rng)?;
        Ok(Self::resume(pending, kgcs, backoff))
    }

    /// Goes on with an enrolment that was persisted.
    pub fn resume(pending: PendingEnrolment<S>, kgcs: &Kgcs<S>, backoff: Backoff) -> Self {
        // §3.4: byte-identical after a restart: the KGC refuses any other request under this token.
        let (request, digest) = (pending.request().encode(), pending.request().digest());
        Self { shared: SharedRequest { pending, request, digest }, selection: kgcs.select(backoff) }
    }

    /// The pending enrolment to persist, with its secrets.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        self.shared.pending.encode()
    }

    /// The KGCs of a quorum that are connected: they are notified when there is a key.
    pub fn quorum(&self) -> Vec<Peer> {
        self.selection.quorum()
    }

    /// Time at which to call [`retry`](Self::retry).
    pub fn deadline(&self) -> Option<Duration> {
        self.selection.deadline()
    }

    /// §3.1: A KGC is connected: say hello.
    pub fn connected(&mut self, now: Now, kgc: Peer, rng: &mut dyn CryptoRngCore) -> Steps<S> {
        self.selection.connected(now, kgc, rng)
    }

    /// A connection is gone.
    pub fn disconnected(&mut self, now: Now, peer: Peer, rng: &mut dyn CryptoRngCore) -> Steps<S> {
        self.selection.disconnected(&self.shared, now, peer, rng)
    }

    /// The deadline has come.
    pub fn retry(&mut self, now: Now, rng: &mut dyn CryptoRngCore) -> Steps<S> {
        self.selection.retry(&self.shared, now, rng)
    }

    /// Returns true if KGCs send this message to drones that enrol, and to nobody else. They refuse other requests, too.
    pub const fn takes(message: &Message<S>) -> bool {
        match message {
            Message::EnrolCookie(_) | Message::EnrolReply(_) => true,
            #[cfg(feature = "threshold")]
            Message::Extension(message) => crate::threshold::message::is_to_drones(message.number()),
            _ => false,
        }
    }

    /// Takes an answer to the enrolment; other messages are none of its business.
    pub fn receive(
        &mut self,
        deployment: &Deployment<S>,
        now: Now,
        from: Peer,
        message: &Message<S>,
        rng: &mut dyn CryptoRngCore,
    ) -> Steps<S> {
        self.selection.receive(&self.shared, deployment, (now, from), message, rng)
    }
}

impl<S: Suite> SharedRequest<S> {
    pub(crate) fn request<T: Suite>(&self, cookie: &EnrolCookie) -> Message<T> {
        Message::EnrolRequest(EnrolRequest {
            nonce: cookie.nonce,
            cookie: cookie.cookie,
            request: self.request.clone(),
        })
    }

    /// A whole key, as a single KGC sends it; `None` if it is for another request.
    pub(crate) fn open(
        &self,
        deployment: &Deployment<S>,
        message: &EnrolReply,
    ) -> Option<Result<DroneKeypair<S>, Error>> {
        // §3.5: opens a reply to H(request); s·P = R + H0·P_pub is the only way to a usable key.
        (message.request_digest == self.digest).then(|| {
            SealedReply::decode(&message.reply).and_then(|reply| self.pending.open(deployment, &reply))
        })
    }
}
