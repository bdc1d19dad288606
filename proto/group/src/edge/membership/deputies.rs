//! Makes κ with deputies, so that their terms can be followed without another join. docs/protocol.md §24.7.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Name, SparePair, Suite};
use quiver_machine::{Backoff, Peer, due, earlier};
use quiver_message::{JoinChallenge, JoinCiphertext, JoinHello, KemOffer, Message, Nonce};

use super::spare_points::SparePoints;
use crate::edge::joining::{join_request, may_lead};
use crate::edge::kem_keys::{KemExchange, KemKeys};
use crate::edge::{EdgeContext, EdgeEvent};

/// Attempts at one deputy, after which it is asked again when it is connected once more.
const MAX_ATTEMPTS: u32 = 5;

/// The deputies that a member is connected to, and the exchange with one of them.
#[derive(Debug)]
pub(in crate::edge) struct Deputies<S: Suite> {
    /// Time from which those are asked that were not.
    start: Option<Duration>,
    /// Deputies that were asked over their connections, with or without success.
    asked: Vec<Peer>,
    /// Questions under way, in a box because an edge lives mostly without any.
    session: Option<Box<DeputySession<S>>>,
}

/// Questions to one deputy. Never stored: an exchange does not outlive the process.
#[derive(Debug)]
struct DeputySession<S: Suite> {
    deputy: Peer,
    nonce: Nonce,
    attempts: u32,
    backoff: Backoff,
    /// Once an encapsulation key was sent.
    exchange: Option<KemExchange<S>>,
    deadline: Duration,
}

impl<S: Suite> Deputies<S> {
    pub(super) const fn new() -> Self {
        Self { start: None, asked: Vec::new(), session: None }
    }

    /// Asks the deputies that were not asked yet from this time on.
    pub(super) fn ask_at(&mut self, start: Duration) {
        self.start = earlier(self.start, Some(start));
    }

    /// The membership is over.
    pub(super) fn reset(&mut self) {
        *self = Self::new();
    }

    pub(super) fn disconnected(&mut self, peer: Peer) {
        self.asked.retain(|asked| *asked != peer);
        if self.session.take_if(|session| session.deputy == peer).is_some() {
            self.start = Some(Duration::ZERO);
        }
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.session.as_ref().map_or(self.start, |session| Some(session.deadline))
    }

    /// Asks the next deputy, or the same once more.
    pub(super) fn tick(&mut self, cx: &mut EdgeContext<'_, S>, kem: &KemKeys<S>, group: &Name) {
        if !due(self.deadline(), cx.now.monotonic) {
            return;
        }
        let session = match self.session.take() {
            Some(session) if session.attempts < MAX_ATTEMPTS => Some(session),
            Some(session) => {
                self.asked.push(session.deputy);
                None
            }
            None => None,
        };
        self.start = None;
        // §10.5: the one in front leads, as far as is known.
        let mut deputies = cx.leaders.as_slice().iter().skip(1);
        let next = deputies.find(|deputy| !self.asked.contains(deputy)).copied();
        let mut session = match (session, next) {
            (Some(session), _) if cx.leaders.first() != Some(session.deputy) => session,
            (_, Some(deputy)) => Box::new(DeputySession {
                deputy,
                nonce: [0; 16],
                attempts: 0,
                backoff: cx.timing.backoff(),
                exchange: None,
                deadline: Duration::ZERO,
            }),
            (_, None) => return,
        };
        let Some(keypair) = cx.keypair else { return };
        cx.base.rng.fill_bytes(&mut session.nonce);
        session.attempts += 1;
        session.exchange = None;
        session.deadline = cx.now.monotonic + session.backoff.next(cx.base.rng);
        let hello = JoinHello {
            group: group.clone(),
            drone: keypair.public().encode(),
            nonce: session.nonce,
            kem: kem.setting().set(),
        };
        cx.send(session.deputy, &Message::JoinHello(hello));
        self.session = Some(session);
    }

    /// A deputy that was asked gives its challenge: it is sent an encapsulation key, unless both have κ.
    pub(super) fn challenged(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        (kem, spare_points): (&KemKeys<S>, &SparePoints<S>),
        group: &Name,
        (from, challenge): (Peer, &JoinChallenge<S>),
    ) {
        let asked = |session: &DeputySession<S>| {
            session.deputy == from && session.nonce == challenge.nonce && session.exchange.is_none()
        };
        let Some(session) = self.session.as_mut().filter(|session| asked(session)) else { return };
        if let Err(offence) = may_lead(cx, group, challenge) {
            cx.blame(from, offence);
            return self.end_session(cx);
        }
        let (offer, exchange) =
            match kem.offer(&challenge.leader, challenge.kem, (cx.now.unix, false), cx.base.rng) {
                Ok(Some((KemOffer::Key { set, key }, exchange))) => (KemOffer::Ahead { set, key }, exchange),
                // §24.7: nothing is sent where both have it.
                Ok(_) => return self.end_session(cx),
                Err(_) => {
                    let (own, leader) = (kem.setting(), challenge.kem.map(|term| term.set()).into());
                    cx.event(EdgeEvent::KemDiffers { own, leader });
                    return self.end_session(cx);
                }
            };
        // §9.3: drawn and stored with the membership.
        let Some(spare) = spare_points.stored().0 else { return };
        // §24.7: it asks for no membership: its E_now is used for nothing.
        let ephemeral = SparePair::ephemeral(cx.base.rng);
        let request = join_request(cx, group, challenge, ephemeral.point(), spare, Some(offer));
        if let Some(request) = request {
            session.exchange = Some(exchange);
            cx.send(from, &Message::JoinRequest(request));
        }
    }

    /// A deputy's ciphertext: κ with it is held from now on.
    pub(super) fn ciphertext(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        kem: &mut KemKeys<S>,
        group: &Name,
        (from, message): (Peer, &JoinCiphertext),
    ) {
        let asked = |session: &DeputySession<S>| session.deputy == from && session.nonce == message.nonce;
        let session = self.session.as_mut().filter(|session| asked(session));
        let Some((exchange, keypair)) = session.and_then(|session| session.exchange.as_mut().zip(cx.keypair))
        else {
            return;
        };
        exchange.take((cx.deployment, group), &keypair.public().handle(), message);
        // §24.7: the first that comes: a forged one leads nowhere, and costs a join.
        let Some((leader, entered)) = exchange.made() else { return };
        kem.hold(leader, entered, cx.now.unix);
        cx.persist();
        self.end_session(cx);
    }

    /// Goes on with the next deputy.
    fn end_session(&mut self, cx: &EdgeContext<'_, S>) {
        if let Some(session) = self.session.take() {
            self.asked.push(session.deputy);
            self.start = Some(cx.now.monotonic);
        }
    }
}
