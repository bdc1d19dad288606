//! The counter of a KGC where key shares are released.
//!
//! Order matters: cookie before any curve arithmetic; identity and signature before anything is looked up; policy and rule
//! before the pace, the pace before a share is made; the record durable before the share leaves.

mod interface;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{DeliveryRequest, Deployment, Error, Identity, Label, Suite, VerifiedDelivery};
use quiver_ibe::{Condition, IdentityPoint, KeyShare, Kind};
use quiver_message::{
    Message, Reason, Refusal, ReleaseChallenge, ReleaseHello, ReleaseReply, ReleaseRequest,
};
use rand_core::CryptoRngCore;

pub use self::interface::{
    Holding, HoldingError, ReleaseCommand, ReleaseConfig, ReleaseEvent, ShareReleased,
};
use super::inner::{ReleaseAnswer, ReleaseQuestion};
use super::pace::Pace;
use super::policy::Policies;
use quiver_machine::Outbox;
use quiver_machine::Revocations;
use quiver_machine::{COOKIE_LIFETIME, CookieJar};
use quiver_machine::{Input, Machine, Now, Offence, Output, Peer};

/// What tells these cookies from those of other machines that may have the same key.
const COOKIE: &[u8] = b"release";
/// Conditions whose share is kept ready: when a phase begins, a swarm asks for one key.
const MAX_READY: usize = 256;

/// A KGC's release of key shares as a machine.
#[derive(Debug)]
pub struct ReleaseOffice<S: Suite> {
    deployment: Deployment<S>,
    cookies: CookieJar,
    holding: Option<Holding<S>>,
    policies: Policies,
    pace: Pace,
    /// Shares made already, of conditions that are met.
    ready: BTreeMap<Condition, KeyShare>,
    revocations: Revocations<S>,
    out: Outbox<ReleaseEvent, ShareReleased>,
}

impl<S: Suite> ReleaseOffice<S> {
    /// An office with this share and these policies. Later ones come as commands.
    #[must_use]
    pub fn new(config: ReleaseConfig<S>) -> Self {
        let mut policies = Policies::default();
        config.policies.into_iter().for_each(|policy| policies.apply(policy));
        config.approvals.into_iter().for_each(|approval| policies.approve(approval));
        Self {
            deployment: config.deployment,
            cookies: CookieJar::new(config.cookie_key, COOKIE_LIFETIME),
            holding: config.holding,
            policies,
            pace: Pace::new(config.allowance),
            ready: BTreeMap::new(),
            revocations: Revocations::new(),
            out: Outbox::new(),
        }
    }

    /// The share, if there is a master key.
    #[must_use]
    pub const fn holding(&self) -> Option<&Holding<S>> {
        self.holding.as_ref()
    }

    /// Takes a share in place of the one held: after key generation, a refresh or a repair.
    pub fn hold(&mut self, holding: Holding<S>) {
        self.ready.clear();
        self.holding = Some(holding);
    }

    /// Takes a revocation list from anywhere: kept if it verifies and is newer.
    ///
    /// # Errors
    /// What does not hold about it.
    pub fn offer_revocations(&mut self, list: &[u8]) -> Result<(), Error> {
        self.revocations.offer(&self.deployment, list).map(drop)
    }

    #[cfg(feature = "abe")]
    pub(crate) fn revocation_number(&self) -> u64 {
        self.revocations.number()
    }

    /// Takes a message that is already decoded. Returns false if it is none for a release office.
    pub(crate) fn hear(
        &mut self,
        now: Now,
        from: Peer,
        message: &Message<S>,
        rng: &mut dyn CryptoRngCore,
    ) -> bool {
        match message {
            Message::ReleaseHello(hello) => self.hello(now, from, hello),
            Message::ReleaseRequest(request) => self.request(now, from, request, rng),
            _ => return false,
        }
        true
    }

    fn hello(&mut self, now: Now, from: Peer, hello: &ReleaseHello) {
        let Some(holding) = &self.holding else {
            return self.refuse(from, Reason::UnknownAuthority, &hello.nonce, Duration::ZERO);
        };
        let answer = ReleaseChallenge {
            nonce: hello.nonce,
            cookie: self.cookies.bake(now.monotonic, from, &[COOKIE, &hello.nonce]),
            kgc: holding.kgc(),
            master: holding.authority.fingerprint(),
            version: holding.authority.version(),
        };
        self.out.send(&self.deployment, from, &Message::ReleaseChallenge(answer));
    }

    fn request(&mut self, now: Now, from: Peer, message: &ReleaseRequest, rng: &mut dyn CryptoRngCore) {
        if !self.cookies.recognises(now.monotonic, from, &[COOKIE, &message.nonce], &message.cookie) {
            return self.refuse(from, Reason::BadCookie, &message.nonce, Duration::ZERO);
        }
        let request = match DeliveryRequest::<S>::decode(&message.request) {
            Ok(request) => request,
            Err(error) => return self.malformed(from, &message.nonce, error),
        };
        let digest = request.digest();
        let known = self.holding.as_ref().map(|holding| holding.authority.fingerprint());
        if known != Some(*request.authority()) {
            return self.refuse(from, Reason::UnknownAuthority, &digest, Duration::ZERO);
        }
        let challenge = challenge(&message.nonce, &message.cookie);
        let list = self.revocations.list();
        match request.verify(&self.deployment, Label::IbeRelease, &challenge, list, now.unix) {
            Ok(request) => self.answer(now, from, &request, rng),
            Err(error) => {
                let reason = refusal_reason(&error);
                self.refuse(from, reason, &digest, Duration::ZERO);
                if reason == Reason::BadSignature {
                    self.blame(from, error.into());
                }
            }
        }
    }

    /// Answers a drone that has shown who it is.
    fn answer(&mut self, now: Now, from: Peer, request: &VerifiedDelivery<S>, rng: &mut dyn CryptoRngCore) {
        let question = match ReleaseQuestion::decode(request.question()) {
            Ok(question) => question,
            Err(error) => return self.malformed(from, request.digest(), error),
        };
        if self.holding.as_ref().map(Holding::kgc) != Some(question.kgc) {
            return self.malformed(from, request.digest(), Error::WrongKgc);
        }
        let identity = &request.drone().identity;
        let answer = match &question.condition {
            None => ReleaseAnswer::Statement,
            Some(condition) => match self.decide(now, condition, identity) {
                Err(answer) => answer,
                Ok(()) => match self.pace.take(now.monotonic, &identity.serial) {
                    Err(wait) => return self.refuse(from, Reason::Busy, request.digest(), wait),
                    Ok(()) => self.release(now, condition, request),
                },
            },
        };
        // An answer is short enough: this does not fail.
        let Ok(sealed) = request.seal_unattested(&answer.encode(), rng) else { return };
        let held = self.holding.as_ref().filter(|_| question.statement);
        let statement = held.map_or_else(Vec::new, |held| held.authority.statement().bytes());
        let reply = ReleaseReply { request_digest: *request.digest(), statement, sealed: sealed.encode() };
        self.out.send(&self.deployment, from, &Message::ReleaseReply(reply));
        if let Some(condition) = question.condition {
            self.out.event(reported(condition, identity, &answer));
        }
    }

    /// Whether the drone may have its share of the condition's key now; if not, what it is told.
    fn decide(&self, now: Now, condition: &Condition, drone: &Identity) -> Result<(), ReleaseAnswer> {
        if !self.policies.allow(condition, drone) {
            return Err(ReleaseAnswer::NoPolicy);
        }
        match condition.kind() {
            Kind::NotBefore(at) if now.unix < at => Err(ReleaseAnswer::NotYet { at, now: now.unix }),
            Kind::Mission(_) if !self.policies.approved(condition) => Err(ReleaseAnswer::NotApproved),
            Kind::Drone(serial) if serial != drone.serial => Err(ReleaseAnswer::NotItsDrone),
            Kind::NotBefore(_) | Kind::Mission(_) | Kind::Drone(_) => Ok(()),
        }
    }

    /// The share, with the record of it on its way.
    fn release(&mut self, now: Now, condition: &Condition, request: &VerifiedDelivery<S>) -> ReleaseAnswer {
        let Some(holding) = &self.holding else { return ReleaseAnswer::NoPolicy };
        if self.ready.len() >= MAX_READY && !self.ready.contains_key(condition) {
            self.ready.clear();
        }
        let make = || holding.share.extract(&IdentityPoint::of(condition));
        let share = self.ready.entry(condition.clone()).or_insert_with(make).encode();
        let identity = &request.drone().identity;
        self.out.persist(ShareReleased {
            condition: condition.clone(),
            master: holding.authority.fingerprint(),
            serial: identity.serial,
            handle: *request.drone().handle().as_bytes(),
            name: identity.name.clone(),
            at: now.unix,
        });
        ReleaseAnswer::Share { version: holding.authority.version(), share }
    }

    fn malformed(&mut self, peer: Peer, reference: &[u8], error: Error) {
        self.refuse(peer, Reason::Malformed, reference, Duration::ZERO);
        self.blame(peer, error.into());
    }

    fn refuse(&mut self, peer: Peer, reason: Reason, reference: &[u8], retry_after: Duration) {
        let refusal = Refusal { reason, reference: reference.to_vec(), retry_after };
        self.out.send(&self.deployment, peer, &Message::Refusal(refusal));
        self.out.event(ReleaseEvent::Refused { peer, reason });
    }

    fn blame(&mut self, peer: Peer, offence: Offence) {
        self.out.event(ReleaseEvent::Blamed { peer, offence });
    }

    fn received(&mut self, now: Now, from: Peer, bytes: &[u8], rng: &mut dyn CryptoRngCore) {
        match Message::decode(&self.deployment, bytes) {
            Err(error) => self.blame(from, error.into()),
            Ok(Message::RevocationList(list)) => {
                if let Err(error) = self.offer_revocations(&list.list) {
                    self.blame(from, error.into());
                }
            }
            Ok(message) => {
                if !self.hear(now, from, &message, rng) {
                    self.blame(from, Offence::OutOfPlace("message to a KGC that releases key shares"));
                }
            }
        }
    }

    pub(crate) fn command(&mut self, command: ReleaseCommand) {
        match command {
            ReleaseCommand::Policy(policy) => self.policies.apply(policy),
            ReleaseCommand::Approval(approval) => self.policies.approve(approval),
        }
    }

    pub(crate) fn poll(&mut self) -> Output<ReleaseEvent, ShareReleased> {
        self.out.poll(None)
    }
}

/// What is signed besides the request: the drone's nonce and the KGC's cookie.
pub(super) fn challenge(nonce: &[u8; 16], cookie: &[u8]) -> Vec<u8> {
    [nonce.as_slice(), cookie].concat()
}

fn reported(condition: Condition, drone: &Identity, answer: &ReleaseAnswer) -> ReleaseEvent {
    let name = drone.name.clone();
    let why = match answer {
        ReleaseAnswer::Share { .. } | ReleaseAnswer::Statement => {
            return ReleaseEvent::Released { condition, name };
        }
        ReleaseAnswer::NotYet { .. } => "its time has not come",
        ReleaseAnswer::NotApproved => "no operator has approved it",
        ReleaseAnswer::NotItsDrone => "it names another drone",
        ReleaseAnswer::NoPolicy => "no policy allows it",
    };
    ReleaseEvent::Denied { condition, name, why }
}

fn refusal_reason(error: &Error) -> Reason {
    match error {
        Error::Expired => Reason::Expired,
        Error::Revoked => Reason::Revoked,
        _ => Reason::BadSignature,
    }
}

impl<S: Suite> Machine for ReleaseOffice<S> {
    type Command = ReleaseCommand;
    type Event = ReleaseEvent;
    type Record = ShareReleased;

    fn handle_input(&mut self, now: Now, input: Input<'_, ReleaseCommand>, rng: &mut dyn CryptoRngCore) {
        match input {
            Input::Timeout | Input::Connected { .. } | Input::Disconnected { .. } | Input::Resumed => {}
            Input::Received { from, bytes, .. } => self.received(now, from, bytes, rng),
            Input::Command(command) => self.command(command),
        }
    }

    fn poll_output(&mut self) -> Output<ReleaseEvent, ShareReleased> {
        self.poll()
    }
}
