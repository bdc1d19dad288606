//! The attribute authorities of a KGC, behind one counter.
//!
//! Order matters: cookie before any curve arithmetic; identity and signature before anything is looked up; the pace
//! before a key is made; the record durable before the key leaves.

mod interface;

use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{DeliveryRequest, Deployment, Error, Label, Role, Suite, VerifiedDelivery};
use quiver_crypto::Zeroizing;
use quiver_message::{
    AttributeChallenge, AttributeHello, AttributeReply, AttributeRequest, MAX_AUTHORITIES, Message, Reason,
    Refusal,
};
use rand_core::CryptoRngCore;

pub use self::interface::{Authority, KeyIssued, OfficeCommand, OfficeConfig, OfficeError, OfficeEvent};
use super::grants::{Grants, InForce, Standing, mark_of_published};
use super::inner::{Answer, MAX_KEY_LEN, Question, challenge};
use super::maker::MakeError;
use super::pace::Pace;
use quiver_machine::Outbox;
use quiver_machine::Revocations;
use quiver_machine::{COOKIE_LIFETIME, CookieJar};
use quiver_machine::{Input, Machine, Now, Offence, Output, Peer};

/// What tells these cookies from those of other machines that may have the same key.
const COOKIE: &[u8] = b"attributes";

/// The authorities as a machine.
#[derive(Debug)]
pub struct Office<S: Suite> {
    deployment: Deployment<S>,
    cookies: CookieJar,
    /// By fingerprint, ascending.
    authorities: Vec<Authority<S>>,
    grants: Grants,
    pace: Pace,
    revocations: Revocations<S>,
    out: Outbox<OfficeEvent, KeyIssued>,
}

impl<S: Suite> Office<S> {
    /// An office with these authorities and grants. Later grants come as commands.
    ///
    /// # Errors
    /// [`OfficeError`].
    pub fn new(config: OfficeConfig<S>) -> Result<Self, OfficeError> {
        let OfficeConfig { deployment, cookie_key, mut authorities, grants: granted, interval } = config;
        if authorities.len() > MAX_AUTHORITIES {
            return Err(OfficeError::TooMany);
        }
        for Authority { statement, delivery, .. } in &authorities {
            if !super::is_kind(&statement.kind) || delivery.public() != statement.delivery {
                return Err(OfficeError::WrongKey(statement.name.clone()));
            }
        }
        authorities.sort_by_key(|authority| *authority.statement.fingerprint());
        let fingerprint = |authority: &Authority<S>| *authority.statement.fingerprint();
        if !authorities.is_sorted_by(|a, b| fingerprint(a) < fingerprint(b)) {
            return Err(OfficeError::Twice);
        }
        let mut grants = Grants::default();
        granted.into_iter().for_each(|grant| grants.apply(grant));
        Ok(Self {
            deployment,
            cookies: CookieJar::new(cookie_key, COOKIE_LIFETIME),
            authorities,
            grants,
            pace: Pace::new(interval),
            revocations: Revocations::new(),
            out: Outbox::new(),
        })
    }

    /// How many grants are in force.
    #[must_use]
    pub fn grants(&self) -> usize {
        self.grants.len()
    }

    /// Takes a revocation list from anywhere: kept if it verifies and is newer.
    ///
    /// # Errors
    /// What does not hold about it.
    pub fn offer_revocations(&mut self, list: &[u8]) -> Result<(), Error> {
        self.revocations.offer(&self.deployment, list).map(drop)
    }

    pub(super) fn revocation_number(&self) -> u64 {
        self.revocations.number()
    }

    /// Takes a message that is already decoded. Returns false if it is none for an office.
    pub(super) fn hear(
        &mut self,
        now: Now,
        from: Peer,
        message: &Message<S>,
        rng: &mut dyn CryptoRngCore,
    ) -> bool {
        match message {
            Message::AttributeHello(hello) => self.hello(now, from, hello),
            Message::AttributeRequest(request) => self.request(now, from, request, rng),
            _ => return false,
        }
        true
    }

    fn hello(&mut self, now: Now, from: Peer, hello: &AttributeHello) {
        let cookie = self.cookies.bake(now.monotonic, from, &[COOKIE, &hello.nonce]);
        let authorities =
            self.authorities.iter().map(|authority| *authority.statement.fingerprint()).collect();
        let answer = AttributeChallenge { nonce: hello.nonce, cookie, authorities };
        self.out.send(&self.deployment, from, &Message::AttributeChallenge(answer));
    }

    fn request(&mut self, now: Now, from: Peer, message: &AttributeRequest, rng: &mut dyn CryptoRngCore) {
        if !self.cookies.recognises(now.monotonic, from, &[COOKIE, &message.nonce], &message.cookie) {
            return self.refuse(from, Reason::BadCookie, &message.nonce, Duration::ZERO);
        }
        let request = match DeliveryRequest::<S>::decode(&message.request) {
            Ok(request) => request,
            Err(error) => {
                self.refuse(from, Reason::Malformed, &message.nonce, Duration::ZERO);
                return self.blame(from, error.into());
            }
        };
        let (digest, asked) = (request.digest(), *request.authority());
        let found = |authority: &Authority<S>| *authority.statement.fingerprint() == asked;
        let Some(place) = self.authorities.iter().position(found) else {
            return self.refuse(from, Reason::UnknownAuthority, &digest, Duration::ZERO);
        };
        let challenge = challenge(&message.nonce, &message.cookie);
        let list = self.revocations.list();
        match request.verify(&self.deployment, Label::Attributes, &challenge, list, now.unix) {
            Ok(request) => self.answer(now, from, place, &request, rng),
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
    fn answer(
        &mut self,
        now: Now,
        from: Peer,
        place: usize,
        request: &VerifiedDelivery<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        let question = match Question::decode(request.question()) {
            Ok(question) => question,
            Err(error) => {
                self.refuse(from, Reason::Malformed, request.digest(), Duration::ZERO);
                return self.blame(from, error.into());
            }
        };
        let Some((answer, event)) = self.decide(now, from, place, request, question.held, rng) else {
            return;
        };
        let Some(authority) = self.authorities.get(place) else { return };
        // The authority is the one that the request names, and the key is short enough: this does not fail.
        let sealed = request.seal(&authority.statement, &authority.delivery, &answer.encode(), rng);
        let Ok(sealed) = sealed else {
            return self.refuse(from, Reason::NotReady, request.digest(), Duration::ZERO);
        };
        let statement = if question.statement { authority.statement.bytes() } else { Vec::new() };
        let reply = AttributeReply { request_digest: *request.digest(), statement, sealed: sealed.encode() };
        self.out.send(&self.deployment, from, &Message::AttributeReply(reply));
        self.out.event(event);
    }

    /// What the drone gets and what is reported of it, with the record of it on its way; none if it is refused.
    fn decide(
        &mut self,
        now: Now,
        from: Peer,
        place: usize,
        request: &VerifiedDelivery<S>,
        held: Option<u64>,
        rng: &mut dyn CryptoRngCore,
    ) -> Option<(Answer, OfficeEvent)> {
        let found = self.authorities.get_mut(place)?;
        let period = found.maker.turn(now.unix);
        let fingerprint = *found.statement.fingerprint();
        let identity = &request.drone().identity;
        let (authority, name) = (found.statement.name.clone(), identity.name.clone());
        let standing = self.grants.find(&fingerprint, &identity.serial, period);
        let InForce { revision, mark, granted } = match standing {
            Standing::InForce(grant) => grant,
            without => {
                return Some(match (published(found, period, held, &identity.role), without) {
                    (Some(answer), _) => (answer, OfficeEvent::Published { authority, name }),
                    (None, Standing::Withdrawn) => {
                        (Answer::Withdrawn, OfficeEvent::Withdrawn { authority, name })
                    }
                    (None, _) => (Answer::Nothing, OfficeEvent::NothingGranted { authority, name }),
                });
            }
        };
        if held == Some(mark) {
            return Some((
                Answer::Held { grant: mark },
                OfficeEvent::HeldAlready { authority, name, revision },
            ));
        }
        if let Err(wait) = self.pace.take(now.monotonic, &fingerprint, &identity.serial) {
            self.refuse(from, Reason::Busy, request.digest(), wait);
            return None;
        }
        match found.maker.make(granted, rng).and_then(short_enough) {
            Ok(key) => {
                self.out.persist(KeyIssued {
                    authority: fingerprint,
                    serial: identity.serial,
                    handle: *request.drone().handle().as_bytes(),
                    name: name.clone(),
                    revision,
                    at: now.unix,
                });
                let event = OfficeEvent::Issued { authority, name, revision };
                Some((Answer::Key { grant: mark, key }, event))
            }
            Err(error) => {
                self.out.event(OfficeEvent::NotMade { authority, name, error });
                self.refuse(from, Reason::NotReady, request.digest(), Duration::ZERO);
                None
            }
        }
    }

    fn refuse(&mut self, peer: Peer, reason: Reason, reference: &[u8], retry_after: Duration) {
        let refusal = Refusal { reason, reference: reference.to_vec(), retry_after };
        self.out.send(&self.deployment, peer, &Message::Refusal(refusal));
        self.out.event(OfficeEvent::Refused { peer, reason });
    }

    fn blame(&mut self, peer: Peer, offence: Offence) {
        self.out.event(OfficeEvent::Blamed { peer, offence });
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
                    self.blame(from, Offence::OutOfPlace("message to an attribute authority"));
                }
            }
        }
    }

    pub(super) fn command(&mut self, command: OfficeCommand) {
        match command {
            OfficeCommand::Grant(grant) => self.grants.apply(grant),
        }
    }

    pub(super) fn poll(&mut self) -> Output<OfficeEvent, KeyIssued> {
        self.out.poll(None)
    }
}

/// What a leader gets to whom nothing is granted: what is public of this period.
fn published<S: Suite>(
    authority: &Authority<S>,
    period: Option<u64>,
    held: Option<u64>,
    role: &Role,
) -> Option<Answer> {
    let public = authority.maker.published().filter(|_| matches!(role, Role::Leader { .. }))?;
    let grant = mark_of_published(authority.statement.fingerprint(), period);
    if held == Some(grant) {
        return Some(Answer::Held { grant });
    }
    short_enough(Zeroizing::new(public)).ok().map(|key| Answer::Key { grant, key })
}

fn short_enough(key: Zeroizing<Vec<u8>>) -> Result<Zeroizing<Vec<u8>>, MakeError> {
    if key.len() > MAX_KEY_LEN {
        return Err(MakeError("the key is too long to be delivered".into()));
    }
    Ok(key)
}

fn refusal_reason(error: &Error) -> Reason {
    match error {
        Error::Expired => Reason::Expired,
        Error::Revoked => Reason::Revoked,
        _ => Reason::BadSignature,
    }
}

impl<S: Suite> Machine for Office<S> {
    type Command = OfficeCommand;
    type Event = OfficeEvent;
    type Record = KeyIssued;

    fn handle_input(&mut self, now: Now, input: Input<'_, OfficeCommand>, rng: &mut dyn CryptoRngCore) {
        match input {
            Input::Timeout | Input::Connected { .. } | Input::Disconnected { .. } | Input::Resumed => {}
            Input::Received { from, bytes, .. } => self.received(now, from, bytes, rng),
            Input::Command(command) => self.command(command),
        }
    }

    fn poll_output(&mut self) -> Output<OfficeEvent, KeyIssued> {
        self.poll()
    }
}
