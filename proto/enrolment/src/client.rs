//! Enrols a drone (docs/protocol.md §3): hello, cookie, request, and a partial key, whole from a single KGC
//! or in shares from a quorum. Edges and leaders enrol alike.

#[cfg(feature = "threshold")]
mod coordinator;
#[cfg(not(feature = "threshold"))]
mod no_coordinator;
#[cfg(feature = "threshold")]
mod round;
mod single;
mod trouble;

use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Deployment, DroneKeypair, Error, IssuedToken, PendingEnrolment, SealedReply, Suite};
#[cfg(feature = "threshold")]
use quiver_ainq::{KgcId, Label};
#[cfg(feature = "threshold")]
use quiver_message::EnrolDone;
use quiver_message::{EnrolCookie, EnrolReply, EnrolRequest, Message, Reason};
use rand_core::CryptoRngCore;
use zeroize::Zeroizing;

#[cfg(feature = "threshold")]
use self::coordinator::Coordinator;
#[cfg(not(feature = "threshold"))]
use self::no_coordinator::Coordinator;
use self::single::Single;
pub use self::trouble::EnrolmentTrouble;
use crate::Kgcs;
use quiver_machine::{Backoff, Now, Peer};

/// In ascending order of their keys, equals in their order. For the few that a quorum has: a library's sort
/// for each of their types takes a board more flash than it saves time.
#[cfg(feature = "threshold")]
fn ascending<T, K: Ord>(items: impl IntoIterator<Item = T>, key: impl Fn(&T) -> K) -> Vec<T> {
    let mut sorted: Vec<T> = Vec::new();
    for item in items {
        let place = sorted.partition_point(|before| key(before) <= key(&item));
        sorted.insert(place, item);
    }
    sorted
}

/// A drone that has a token and wants a key.
#[derive(Debug)]
pub struct EnrolmentClient<S: Suite> {
    shared: SharedRequest<S>,
    selection: KgcSelection<S>,
}

/// The request to every KGC: always the same, byte for byte.
#[derive(Debug)]
struct SharedRequest<S: Suite> {
    pending: PendingEnrolment<S>,
    request: Vec<u8>,
    digest: [u8; 32],
}

/// The KGCs of the request.
#[derive(Debug)]
enum KgcSelection<S: Suite> {
    /// One KGC after another, each of which can answer alone.
    Single(Single),
    /// All KGCs of a quorum at once.
    #[cfg_attr(not(feature = "threshold"), expect(dead_code, reason = "there is no quorum"))]
    Quorum(Coordinator<S>),
}

/// Results of an input, in order.
pub type Steps<S> = Vec<Step<S>>;

/// One thing that an input came to.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "short-lived")]
pub enum Step<S: Suite> {
    /// Send this to a KGC.
    Send(Peer, Message<S>),
    /// The key verified.
    Enrolled(DroneKeypair<S>),
    /// An attacker, or the KGC, sent an invalid message.
    Wrong(Peer, Error),
    /// The KGC refuses, or so many of a quorum that the others are too few.
    Refused(Reason),
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
        let mut session = [0; 16];
        rng.fill_bytes(&mut session);
        let (_, pending) =
            quiver_ainq::EnrolmentRequest::create(deployment, token, kgcs.ids(), session, rng)?;
        Ok(Self::resume(pending, kgcs, backoff))
    }

    /// Goes on with an enrolment that was persisted.
    pub fn resume(pending: PendingEnrolment<S>, kgcs: &Kgcs<S>, backoff: Backoff) -> Self {
        let (request, digest) = (pending.request().encode(), pending.request().digest());
        Self {
            shared: SharedRequest { pending, request, digest },
            selection: KgcSelection::new(kgcs, backoff),
        }
    }

    /// The pending enrolment to persist, with its secrets.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        self.shared.pending.encode()
    }

    /// The connected KGCs of a quorum: they are told when there is a key.
    #[cfg(feature = "threshold")]
    pub fn quorum(&self) -> Vec<Peer> {
        match &self.selection {
            KgcSelection::Single(_) => Vec::new(),
            KgcSelection::Quorum(coordinator) => coordinator.peers().collect(),
        }
    }

    /// Time at which to call [`retry`](Self::retry).
    pub fn deadline(&self) -> Option<Duration> {
        match &self.selection {
            KgcSelection::Single(single) => single.deadline(),
            KgcSelection::Quorum(coordinator) => coordinator.deadline(),
        }
    }

    /// A KGC is connected: say hello.
    pub fn connected(&mut self, now: Now, kgc: Peer, rng: &mut dyn CryptoRngCore) -> Steps<S> {
        match &mut self.selection {
            KgcSelection::Single(single) => single.connected(now, kgc, rng),
            KgcSelection::Quorum(coordinator) => coordinator.connected(now, kgc, rng),
        }
    }

    /// A connection is gone.
    pub fn disconnected(&mut self, now: Now, peer: Peer, rng: &mut dyn CryptoRngCore) -> Steps<S> {
        match &mut self.selection {
            KgcSelection::Single(single) => {
                single.disconnected(peer);
                Vec::new()
            }
            KgcSelection::Quorum(coordinator) => coordinator.disconnected(&self.shared, now, peer, rng),
        }
    }

    /// The deadline has come.
    pub fn retry(&mut self, now: Now, rng: &mut dyn CryptoRngCore) -> Steps<S> {
        match &mut self.selection {
            KgcSelection::Single(single) => single.retry(now, rng),
            KgcSelection::Quorum(coordinator) => coordinator.retry(&self.shared, now, rng),
        }
    }

    /// Takes an answer to the enrolment; other messages are none of its business.
    pub fn hear(
        &mut self,
        deployment: &Deployment<S>,
        now: Now,
        from: Peer,
        message: &Message<S>,
        rng: &mut dyn CryptoRngCore,
    ) -> Steps<S> {
        match &mut self.selection {
            KgcSelection::Single(single) => single.hear(&self.shared, deployment, now, from, message, rng),
            KgcSelection::Quorum(coordinator) => {
                coordinator.hear(&self.shared, deployment, (now, from), message, rng)
            }
        }
    }
}

/// An enrolled drone's message to the KGCs of a quorum: it holds a key, so no more shares are to be made for
/// its token.
#[cfg(feature = "threshold")]
pub fn done<S: Suite>(
    deployment: &Deployment<S>,
    keypair: &DroneKeypair<S>,
    rng: &mut dyn CryptoRngCore,
) -> Message<S> {
    let public = keypair.public();
    let signature = keypair.sign(deployment, Label::Enrolled, &public.identity.serial, rng);
    Message::EnrolDone(EnrolDone { drone: public.encode(), signature: signature.encode() })
}

impl<S: Suite> KgcSelection<S> {
    #[cfg(feature = "threshold")]
    fn new(kgcs: &Kgcs<S>, backoff: Backoff) -> Self {
        match kgcs.frost() {
            Some(frost) => Self::Quorum(Coordinator::new(frost, backoff)),
            None => Self::Single(Single::new(backoff)),
        }
    }

    #[cfg(not(feature = "threshold"))]
    fn new(_: &Kgcs<S>, backoff: Backoff) -> Self {
        Self::Single(Single::new(backoff))
    }
}

impl<S: Suite> SharedRequest<S> {
    /// The KGCs that the request names.
    #[cfg(feature = "threshold")]
    fn kgcs(&self) -> &[KgcId] {
        self.pending.request().kgcs()
    }

    fn request<T: Suite>(&self, cookie: &EnrolCookie) -> Message<T> {
        Message::EnrolRequest(EnrolRequest {
            nonce: cookie.nonce,
            cookie: cookie.cookie,
            request: self.request.clone(),
        })
    }

    /// A whole key, as a single KGC sends it; `None` if it is for another request.
    fn open(
        &self,
        deployment: &Deployment<S>,
        message: &EnrolReply,
    ) -> Option<Result<DroneKeypair<S>, Error>> {
        (message.request_digest == self.digest).then(|| {
            SealedReply::decode(&message.reply).and_then(|reply| self.pending.open(deployment, &reply))
        })
    }
}
