//! Standing by: asking the leader whether it is there, and taking over when it is not.
//!
//! Every question is fresh and every answer is signed over it, so nobody else can keep a dead leader alive. What counts is
//! when a question was asked that was answered, not when the answer came.
//!
//! Silence is measured on the monotonic clock alone. If the key of a leader that answers has run out by our wall clock, one of
//! the two is off: unless others confirm that it is not ours ([`LeaderCommand::ClockConfirmed`](super::LeaderCommand)), the
//! leader goes on leading.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{DronePublicKey, Epoch, Error, Header, Label, Role, Suite};
use quiver_message::{COOKIE_LEN, JoinChallenge, JoinHello, Message, Nonce, StandBy};
use rand_core::CryptoRngCore;

use super::clocks::RanOut;
use super::memory::Change;
use super::replica::Staged;
use super::{Leader, LeaderEvent};
use crate::statements;
use quiver_machine::{Now, Peer};
use quiver_machine::{due, earlier};

/// Questions in a row that go unanswered before another leader is tried. An answer may come as many questions later.
const UNANSWERED: usize = 8;
/// How much longer a deputy that holds no roster waits: those who hold one go first.
const EMPTY_HANDED: u32 = 4;
/// How often a leader that is overruled again and again doubles its patience at most.
const MAX_DOUBLINGS: u32 = 6;
/// Ordinals beyond wait as long as this one.
const LAST_IN_LINE: u32 = 64;

/// What a leader that does not lead knows about the one that does.
#[derive(Debug)]
pub(super) struct Standby<S: Suite> {
    pub(super) session: Option<Session<S>>,
    /// When the leader was last known to be there; at first, when the standing by began.
    pub(super) alive: Duration,
    /// When to ask next.
    pub(super) next: Option<Duration>,
    /// How often in a row this leader led and was overruled without having heard of the other: two leaders that cannot
    /// reach each other, but whose members reach both, must not take turns for ever.
    pub(super) overruled: u32,
    /// The newest header of another leader, verified.
    pub(super) seen: Option<Header<S>>,
    /// Whether most others are known to have our time.
    pub(super) clock_confirmed: bool,
    /// By our clock, the key of the leader that answered last had run out long before.
    pub(super) ran_out: Option<RanOut>,
    /// Whether the present leader is proven to be none: then there is nothing to wait for but one's turn.
    pub(super) void: bool,
    /// The connection to try first.
    pub(super) prefer: Option<Peer>,
    /// For a leader that is alone: when the keys run out of the term that made it step down.
    vacant: Option<Duration>,
}

/// Questions to one leader.
#[derive(Debug)]
pub(super) struct Session<S: Suite> {
    pub(super) peer: Peer,
    pub(super) nonce: Nonce,
    /// Once the leader gave its challenge.
    pub(super) opened: Option<(DronePublicKey<S>, [u8; COOKIE_LEN])>,
    /// Of the last question.
    pub(super) number: u64,
    /// The latest questions that were not answered, and when they were asked.
    pub(super) asked: VecDeque<(u64, Duration)>,
    /// Of the last chunk taken.
    pub(super) received: u64,
    pub(super) staged: Staged<S>,
}

impl<S: Suite> Standby<S> {
    pub(super) fn new() -> Self {
        Self {
            session: None,
            alive: Duration::ZERO,
            next: None,
            overruled: 0,
            seen: None,
            clock_confirmed: false,
            ran_out: None,
            void: false,
            prefer: None,
            vacant: None,
        }
    }

    pub(super) fn disconnected(&mut self, now: Now, peer: Peer) {
        if self.session.take_if(|session| session.peer == peer).is_some() {
            self.next = Some(now.monotonic);
        }
    }

    /// Whose answers are heard, once there was one.
    pub(super) fn leader(&self) -> Option<&DronePublicKey<S>> {
        self.session
            .as_ref()
            .filter(|session| session.received > 0)?
            .opened
            .as_ref()
            .map(|(leader, _)| leader)
    }
}

impl<S: Suite> Leader<S> {
    /// Whether it stands by: it may lead, others may too, and it does not at present.
    pub(super) fn stands_by(&self) -> bool {
        self.lead.is_none() && self.config.timing.silence.is_some() && self.may_lead()
    }

    /// Whether it has a key, and nobody can prove that it contradicted itself.
    fn may_lead(&self) -> bool {
        self.memory.keypair.as_ref().is_some_and(|own| !self.memory.refused.names(own.public()))
    }

    /// Another leader was dialled: it is asked, or shown who leads.
    pub(super) fn leader_connected(&mut self, now: Now, peer: Peer) {
        self.leaders.insert(peer);
        self.relays.changed([peer]);
        match &self.lead {
            Some(lead) => self.out.send_encoded(peer, lead.now.message_with(None)),
            None if self.standby.session.is_none() => self.standby.next = Some(now.monotonic),
            None => {}
        }
    }

    /// Starts to stand by, after a start or after having led.
    pub(super) fn begin_standby(&mut self, now: Now) {
        self.standby.session = None;
        self.standby.alive = now.monotonic;
        self.standby.next = Some(now.monotonic);
    }

    /// Another leader's term is higher than ours.
    pub(super) fn overruled(&mut self) {
        self.standby.overruled = (self.standby.overruled + 1).min(MAX_DOUBLINGS);
    }

    /// The leader is proven to be none.
    pub(super) fn leaderless(&mut self, now: Now) {
        self.standby.session = None;
        self.standby.next = Some(now.monotonic);
        self.standby.alive = now.monotonic;
        self.standby.void = true;
        // A leader that is alone need not wait until the key runs out: that leader said itself when it does.
        if let Some(vacant) = &mut self.standby.vacant {
            *vacant = now.monotonic;
        }
    }

    /// Another term is in force that a leader that is alone was not told of: its own from before it lost its state, or one
    /// that it must not outbid. Whoever leads that term renews its key in time; if nobody does, we lead again.
    pub(super) fn await_vacancy(&mut self, now: Now, header: &Header<S>) {
        if self.config.timing.silence.is_none() {
            let left = header.core.valid_until.saturating_sub(now.unix);
            self.standby.vacant = Some(now.monotonic.saturating_add(Duration::from_secs(left)));
        }
    }

    /// When a leader that is alone leads again.
    fn vacancy(&self) -> Option<Duration> {
        self.standby.vacant.filter(|_| self.lead.is_none() && self.may_lead())
    }

    pub(super) fn own_ordinal(&self) -> u16 {
        match self.memory.keypair.as_ref().map(|keypair| &keypair.public().identity.role) {
            Some(Role::Leader { ordinal, .. }) => *ordinal,
            _ => 0,
        }
    }

    /// When this leader opens a term if it hears nothing until then.
    fn takeover(&self) -> Option<Duration> {
        let silence = self.config.timing.silence.filter(|_| self.stands_by())?;
        let standby = &self.standby;
        let turn = silence / 2 * u32::from(self.own_ordinal()).min(LAST_IN_LINE);
        if standby.void {
            return Some(standby.alive.saturating_add(turn));
        }
        let empty = self.memory.newest.is_some() && self.memory.held.is_none();
        let patience = silence * if empty { EMPTY_HANDED } else { 1 } * (1 << standby.overruled);
        Some(standby.alive.saturating_add(patience).saturating_add(turn))
    }

    /// How long it takes, as far as it knows, until this leader leads; zero if it does not know, or stands by for one that
    /// answers.
    pub(super) fn ready_in(&self, now: Now) -> Duration {
        if self.standby.leader().is_some() {
            return Duration::ZERO;
        }
        let at = self.takeover().or(self.vacancy());
        at.map_or(Duration::ZERO, |at| at.saturating_sub(now.monotonic))
    }

    /// The pause between two questions: several fit into the silence that makes a deputy act.
    pub(super) fn asking_pause(&self) -> Duration {
        self.config.timing.silence.map_or(Duration::from_secs(1), |silence| silence / 4)
    }

    pub(super) fn standby_deadline(&self) -> Option<Duration> {
        if self.lead.is_none() && !self.stands_by() {
            return self.vacancy();
        }
        earlier(self.standby.next.filter(|_| !self.leaders.is_empty()), self.takeover())
    }

    pub(super) fn tick_standby(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let asks = due(self.standby.next, now.monotonic) && !self.leaders.is_empty();
        if self.lead.is_some() && asks {
            // A message may have been lost, or another leader have come back: who leads says so now and then.
            self.standby.next = self.config.timing.silence.map(|silence| now.monotonic + silence);
            return self.announce();
        }
        if due(self.vacancy(), now.monotonic) {
            self.standby.vacant = None;
            return self.open_term(now, rng);
        }
        if !self.stands_by() {
            return;
        }
        if due(self.takeover(), now.monotonic) {
            return self.take_over(now, rng);
        }
        if asks {
            let session = self.standby.session.as_ref().filter(|session| session.opened.is_some());
            let opened = session.is_some_and(|session| session.asked.len() < UNANSWERED);
            if opened { self.ask_leader(now, rng) } else { self.greet_leader(now, rng) }
        }
    }

    /// From what is public: the roster held, less who was evicted, revoked or ended since.
    fn take_over(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let mut changes = self.unseat_the_evicted();
        changes.extend(self.pin_the_copied());
        if !changes.is_empty() {
            self.persist(&changes);
        }
        // If no term can be opened, the next attempt comes after another silence.
        self.begin_standby(now);
        self.standby.void = false;
        let before = self.memory.newest.map(|(epoch, _)| epoch);
        self.out.event(LeaderEvent::TookOver { from: before });
        self.open_term(now, rng);
        self.announce();
        self.announce_to_group();
    }

    /// The keys on a copied roster are the first ones seen for their identities, unless others were.
    fn pin_the_copied(&mut self) -> Vec<Change> {
        let memory = &mut self.memory;
        let unpinned = |public: &&DronePublicKey<S>| !memory.pins.contains_key(&public.identity.serial);
        let copied = memory.roster.iter().map(|(_, public)| public).filter(unpinned);
        let copied: Vec<_> = copied.map(|public| (public.identity.serial, public.handle())).collect();
        let mut changes = Vec::with_capacity(copied.len());
        for (serial, handle) in copied {
            memory.pin(serial, handle);
            changes.push(Change::Pin { serial, handle: *handle.as_bytes() });
        }
        changes
    }

    /// Says hello to the next connected leader, as an edge does.
    fn greet_leader(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let after = self.standby.session.as_ref().map(|session| session.peer);
        let next = self.leaders.iter().find(|peer| after.is_none_or(|after| **peer > after));
        let preferred = self.standby.prefer.take().filter(|peer| self.leaders.contains(peer));
        let peer = preferred.or(next.copied()).or(self.leaders.first().copied());
        let (Some(peer), Some(keypair)) = (peer, &self.memory.keypair) else {
            return;
        };
        let mut nonce = [0; 16];
        rng.fill_bytes(&mut nonce);
        let hello = JoinHello { group: self.config.group.clone(), drone: keypair.public().encode(), nonce };
        self.out.send(&self.config.deployment, peer, &Message::<S>::JoinHello(hello));
        self.standby.session = Some(Session {
            peer,
            nonce,
            opened: None,
            number: 0,
            asked: VecDeque::new(),
            received: 0,
            staged: Staged::new(),
        });
        // Whoever does not lead says so sooner than that.
        self.standby.next = Some(now.monotonic + self.asking_pause() * 2);
    }

    pub(super) fn challenged(
        &mut self,
        now: Now,
        from: Peer,
        message: JoinChallenge<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        let stands_by = self.stands_by();
        let Some(session) = self.standby.session.as_mut().filter(|_| stands_by) else {
            return;
        };
        if session.peer != from || session.nonce != message.nonce || session.opened.is_some() {
            return;
        }
        let role = &message.leader.identity.role;
        let leads = matches!(role, Role::Leader { group, .. } if *group == self.config.group);
        let own = self.memory.keypair.as_ref().map(|keypair| &keypair.public().identity.role);
        if !leads || own == Some(role) || self.memory.refused.names(&message.leader) {
            return self.blame(from, Error::NotALeader);
        }
        session.opened = Some((message.leader, message.challenge));
        self.ask_leader(now, rng);
    }

    /// Asks, signed: which epoch, and what changed since what we hold.
    pub(super) fn ask_leader(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let pause = self.asking_pause();
        let (Some(session), Some(keypair)) = (&mut self.standby.session, &self.memory.keypair) else {
            return;
        };
        let Some((leader, challenge)) = &session.opened else { return };
        session.number += 1;
        // Messages get lost, so a silence has room for many questions; and they take their time, so it has room for few.
        let patience = pause / 4 * (1 << (session.asked.len() / 2).min(UNANSWERED));
        session.asked.push_back((session.number, now.monotonic));
        self.standby.next = Some(now.monotonic + patience);
        let (held, digest) = self.memory.held.unwrap_or((Epoch { term: 0, counter: 0 }, [0; 32]));
        let mut question = StandBy {
            group: self.config.group.clone(),
            deputy: keypair.public().encode(),
            nonce: session.nonce,
            challenge: *challenge,
            number: session.number,
            received: session.received,
            held,
            digest,
            signature: Vec::new(),
        };
        let statement = statements::stand_by(&question, leader);
        let signature = keypair.sign(&self.config.deployment, Label::StandBy, &statement, rng);
        question.signature = signature.encode();
        self.out.send(&self.config.deployment, session.peer, &Message::<S>::StandBy(question));
    }
}
