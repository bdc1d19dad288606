//! Serves one payload of delivery at a KGC (docs/protocol.md §4.1): hello, stateless cookie, signed request,
//! policy, rate, sealed reply.
//!
//! Order matters: cookie before any curve arithmetic; identity and signature before anything is looked up;
//! policy before the rate, the rate before anything is made; the record durable before the reply leaves.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Error, SignedDeliveryRequest, Suite, VerifiedDelivery};
use quiver_crypto::Secret;
use quiver_machine::{
    COOKIE_LIFETIME, Context, CookieJar, Handled, MachinePart, Offence, Peer, Rate, TokenBuckets,
};
use quiver_message as message;
use quiver_message::{DeliveryOffer, Message, Nonce, Payload, Refusal, RefusalReason};

use crate::client::{label, signed_challenge};

/// Default number of shares of condition keys that a drone gets at once, and time until one more.
pub const DEFAULT_RATE: Rate = Rate { burst: 32, refill: Duration::from_secs(2) };

/// Greatest number of drones whose last deliveries are remembered. Each delivery costs curve arithmetic and a
/// line in the registry, so a drone has a rate.
pub const MAX_REMEMBERED: usize = 8192;

/// Rate of the requests of one connection that cost the verification of a signature, and what follows from it. A gateway
/// carries several drones.
const REQUESTS: Rate = Rate { burst: 64, refill: Duration::from_millis(250) };

/// Issuer of a payload: its policy, its rate, and its content.
pub trait Issuer<S: Suite> {
    /// Payload of a delivery of this issuer.
    const PAYLOAD: Payload;
    /// Commands of the operator.
    type Command;
    /// Events of the issuer; among them refusals.
    type Event: From<(Peer, RefusalReason)>;
    /// Record of a delivery: made durable, and audited, before the reply leaves.
    type Record;

    /// The offer in a challenge; `None` if there is nothing to deliver.
    fn offer(&self) -> Option<DeliveryOffer>;

    /// Executes a command.
    fn command(&mut self, command: Self::Command);

    /// Answers an authenticated drone (§4.2, §4.3), and outputs the record of the delivery.
    ///
    /// # Errors
    /// [`DeliveryRefusal`] if the query is malformed, comes too soon, or nothing can be made.
    fn issue(
        &mut self,
        cx: &mut Context<'_, S, Self::Event, Self::Record>,
        request: &VerifiedDelivery<S>,
    ) -> Result<Delivery<Self::Event>, DeliveryRefusal>;
}

/// Answer to a drone.
#[derive(Debug)]
pub struct Delivery<E> {
    /// The authority's statement, if it was asked for.
    pub statement: Vec<u8>,
    /// The sealed response.
    pub sealed: Vec<u8>,
    /// Event once the reply is on its way.
    pub event: Option<E>,
}

/// Reason why a drone is not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryRefusal {
    /// Reason in the refusal.
    pub reason: RefusalReason,
    /// Time after which it may ask again.
    pub retry_after: Duration,
    /// Offence of the peer.
    pub offence: Option<Offence>,
}

impl From<RefusalReason> for DeliveryRefusal {
    fn from(reason: RefusalReason) -> Self {
        Self { reason, retry_after: Duration::ZERO, offence: None }
    }
}

impl DeliveryRefusal {
    /// A request that cannot be read, or is for another KGC.
    #[must_use]
    pub fn malformed(error: Error) -> Self {
        Self { offence: Some(error.into()), ..RefusalReason::Malformed.into() }
    }

    /// Refusal of a request that comes too soon.
    #[must_use]
    pub fn busy(retry_after: Duration) -> Self {
        Self { retry_after, ..RefusalReason::Busy.into() }
    }
}

/// A payload's server, as a part of a KGC.
#[derive(Debug)]
pub struct DeliveryServer<I> {
    cookies: CookieJar,
    issuer: I,
    /// Requests of each connection that are verified and looked up.
    requests: TokenBuckets,
}

/// The context of a server.
type IssuerContext<'a, S, I> = Context<'a, S, <I as Issuer<S>>::Event, <I as Issuer<S>>::Record>;

impl<I> DeliveryServer<I> {
    /// A server with this cookie key, random at every start.
    pub const fn new(cookie_key: Secret<32>, issuer: I) -> Self {
        let cookies = CookieJar::new(cookie_key, COOKIE_LIFETIME);
        Self { cookies, issuer, requests: TokenBuckets::new(REQUESTS) }
    }

    /// The issuer.
    pub const fn issuer(&self) -> &I {
        &self.issuer
    }

    /// The issuer, to be changed.
    pub const fn issuer_mut(&mut self) -> &mut I {
        &mut self.issuer
    }

    /// §4.1, step 2: a challenge with a cookie, which costs neither state nor curve arithmetic.
    fn hello<S: Suite>(&self, cx: &mut IssuerContext<'_, S, I>, from: Peer, nonce: Nonce) -> Handled
    where
        I: Issuer<S>,
    {
        let Some(offer) = self.issuer.offer() else {
            return refuse(cx, from, &nonce, RefusalReason::UnknownAuthority.into());
        };
        // §4.1: the cookie is a MAC over connection, payload and nonce: nothing is kept for strangers.
        let cookie = self.cookies.bake(cx.now.monotonic, from, &[I::PAYLOAD.as_str().as_bytes(), &nonce]);
        let challenge = message::DeliveryChallenge { nonce, cookie, offer };
        cx.send(from, &Message::DeliveryChallenge(challenge));
        Handled::Yes
    }

    /// §4.1, step 4: the reply, after the checks in their order.
    fn request<S: Suite>(
        &mut self,
        cx: &mut IssuerContext<'_, S, I>,
        from: Peer,
        request: &message::DeliveryRequest,
    ) -> Handled
    where
        I: Issuer<S>,
    {
        let (nonce, now) = (&request.nonce, cx.now.monotonic);
        // §4.1, first check: the cookie; the sender receives at its address.
        if !self.cookies.recognises(now, from, &[I::PAYLOAD.as_str().as_bytes(), nonce], &request.cookie) {
            return refuse(cx, from, nonce, RefusalReason::BadCookie.into());
        }
        let signed = match SignedDeliveryRequest::<S>::decode(&request.request) {
            Ok(signed) => signed,
            Err(error) => return refuse(cx, from, nonce, DeliveryRefusal::malformed(error)),
        };
        let digest = signed.digest();
        // §4.1: F names one of the authorities that the challenge offers.
        let known = self.issuer.offer().is_some_and(|offer| offer.authorities().contains(signed.authority()));
        if !known {
            return refuse(cx, from, &digest, RefusalReason::UnknownAuthority.into());
        }
        // §4.1: a drone that may have nothing pays, too; one that forged is refused for a while (§13.8).
        if !self.requests.has(now, &from) {
            return refuse(cx, from, &digest, DeliveryRefusal::busy(REQUESTS.refill));
        }
        // §4.1, second check: expiry, revocation, signature; over this challenge, so that a request is good
        // for one.
        let challenge = signed_challenge(nonce, &request.cookie);
        let (deployment, list) = (cx.deployment, cx.revocations.list());
        let verified = signed.verify(deployment, label(I::PAYLOAD), &challenge, list, cx.now.unix);
        // §4.1, third and fourth: policy and rate, which the issuer knows; it outputs the record before the
        // reply.
        let answered = match &verified {
            Ok(request) => {
                // There was one.
                let _ = self.requests.take(now, from);
                self.issuer.issue(cx, request)
            }
            Err(error) => Err(unverified(error)),
        };
        match answered {
            Err(refused) => refuse(cx, from, &digest, refused),
            Ok(Delivery { statement, sealed, event }) => {
                let payload = I::PAYLOAD;
                let reply = message::DeliveryReply { payload, request_digest: digest, statement, sealed };
                cx.send(from, &Message::DeliveryReply(reply));
                event.into_iter().for_each(|event| cx.out.event(event));
                Handled::Yes
            }
        }
    }
}

/// Refuses: not authenticated, so that it takes nothing away from a drone. §13.8: the KGC blames a peer that
/// forged, and weighs it with what else came over that connection.
fn refuse<S: Suite, E: From<(Peer, RefusalReason)>, R>(
    cx: &mut Context<'_, S, E, R>,
    peer: Peer,
    reference: &[u8],
    DeliveryRefusal { reason, retry_after, offence }: DeliveryRefusal,
) -> Handled {
    let refusal = Refusal { reason, reference: reference.to_vec(), retry_after };
    cx.send(peer, &Message::Refusal(refusal));
    cx.out.event((peer, reason).into());
    offence.map_or(Handled::Yes, |offence| Handled::Offences(vec![offence]))
}

fn unverified(error: &Error) -> DeliveryRefusal {
    match error {
        Error::Expired => RefusalReason::Expired.into(),
        Error::Revoked => RefusalReason::Revoked.into(),
        // §13.8: a signature that is none is an offence; an identity that ended or is revoked is not.
        error => {
            DeliveryRefusal { offence: Some(error.clone().into()), ..RefusalReason::BadSignature.into() }
        }
    }
}

impl<S: Suite, I: Issuer<S>> MachinePart<S> for DeliveryServer<I> {
    type Command = I::Command;
    type Event = I::Event;
    type Record = I::Record;

    fn handle(&mut self, cx: &mut IssuerContext<'_, S, I>, from: Peer, message: &Message<S>) -> Handled {
        match message {
            Message::DeliveryHello(hello) if hello.payload == I::PAYLOAD => self.hello(cx, from, hello.nonce),
            Message::DeliveryRequest(request) if request.payload == I::PAYLOAD => {
                self.request(cx, from, request)
            }
            _ => Handled::No,
        }
    }

    fn disconnected(&mut self, _: &mut IssuerContext<'_, S, I>, peer: Peer) {
        self.requests.disconnected(peer);
    }

    fn command(&mut self, _: &mut IssuerContext<'_, S, I>, command: I::Command) {
        self.issuer.command(command);
    }
}
