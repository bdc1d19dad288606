//! Stands by: asks the active leader whether it is there, and decides when to take over. docs/protocol.md
//! §10.3, §10.4.
//!
//! Every question is fresh and every answer is signed over it, so no other peer can keep a dead leader alive.
//! The time of the question that was answered counts, not that of the answer.
//!
//! Silence is measured on the monotonic clock alone. If the key of a leader that answers has run out by our
//! wall clock, one of the two is off: unless others confirm that it is not ours
//! ([`LeaderCommand::ClockConfirmed`](crate::LeaderCommand)), the leader goes on leading.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{DronePublicKey, Epoch, Error, Header, Label, Role, Suite};
use quiver_machine::{Now, Peer, due, earlier};
use quiver_message::{COOKIE_LEN, JoinChallenge, JoinHello, Message, Nonce, StandBy};

use super::eviction_notices::remove_evicted;
use super::replica::StagedChunks;
use super::{Failover, FailoverAction};
use crate::leader::context::{Base, LeaderContext};
use crate::leader::interface::LeaderConfig;
use crate::leader::joining::kem_exchange::compare_kem;
use crate::leader::statements;
use crate::leader::store::{Change, LeaderStore};

/// Questions in a row that go unanswered before another leader is tried. An answer may come as many questions
/// later.
const UNANSWERED: usize = 8;
/// Factor by which a deputy without a roster waits longer: deputies with one go first.
const EMPTY_HANDED: u32 = 4;
/// Maximum number of doublings of the patience of a leader that is overruled again and again.
const MAX_DOUBLINGS: u32 = 6;
/// Ordinals beyond wait as long as this one.
const LAST_IN_LINE: u32 = 64;

/// Questions to one leader.
#[derive(Debug)]
pub(super) struct StandbySession<S: Suite> {
    pub(super) peer: Peer,
    pub(super) nonce: Nonce,
    /// Once the leader gave its challenge.
    pub(super) opened: Option<(DronePublicKey<S>, [u8; COOKIE_LEN])>,
    /// Number of the last question.
    pub(super) number: u64,
    /// The latest questions that were not answered, and when they were asked.
    pub(super) asked: VecDeque<(u64, Duration)>,
    /// Number of the last chunk taken.
    pub(super) received: u64,
    pub(super) staged: StagedChunks<S>,
}

impl<S: Suite> Failover<S> {
    /// The leader whose answers arrive; `None` before the first answer.
    pub(in crate::leader) fn active_leader(&self) -> Option<&DronePublicKey<S>> {
        let session = self.session.as_ref().filter(|session| session.received > 0)?;
        session.opened.as_ref().map(|(leader, _)| leader)
    }

    pub(in crate::leader) fn disconnected(&mut self, now: Now, peer: Peer) {
        if self.session.take_if(|session| session.peer == peer).is_some() {
            self.next = Some(now.monotonic);
        }
        self.hints.disconnect(peer);
    }

    /// Another leader was dialled: it is asked, unless one is already, or we lead.
    pub(in crate::leader) fn leader_connected(&mut self, now: Now) {
        if self.session.is_none() {
            self.next = Some(now.monotonic);
        }
    }

    /// Starts to stand by, after a start or after having led.
    pub(in crate::leader) fn begin_standby(&mut self, now: Now) {
        self.session = None;
        self.alive = now.monotonic;
        self.next = Some(now.monotonic);
    }

    /// Another leader's term is higher than ours.
    pub(in crate::leader) fn note_overruled(&mut self) {
        self.overruled = (self.overruled + 1).min(MAX_DOUBLINGS);
    }

    /// The active leader is proven to be none.
    pub(super) fn leader_is_void(&mut self, now: Now) {
        self.begin_standby(now);
        self.void = true;
        // §9.2: a single leader need not wait until the key runs out: that time is the void leader's own.
        if let Some(vacant) = &mut self.vacant {
            *vacant = now.monotonic;
        }
    }

    /// Another term is in force that a single leader did not follow: its own from before it lost its state,
    /// or one that it must not open another above. The leader of that term renews its key in time; if none
    /// does, we lead again.
    pub(in crate::leader) fn await_vacancy(
        &mut self,
        config: &LeaderConfig<S>,
        now: Now,
        header: &Header<S>,
    ) {
        if config.timing.silence.is_none() {
            let left = header.core.valid_until.saturating_sub(now.unix);
            self.vacant = Some(now.monotonic.saturating_add(Duration::from_secs(left)));
        }
    }

    /// Time at which a single leader leads again.
    fn vacancy(&self, store: &LeaderStore<S>, leading: bool) -> Option<Duration> {
        self.vacant.filter(|_| !leading && may_lead(store))
    }

    /// §10.4: time at which this leader opens a term if it receives no answer until then.
    fn takeover(&self, config: &LeaderConfig<S>, store: &LeaderStore<S>, leading: bool) -> Option<Duration> {
        let silence = config.timing.silence.filter(|_| stands_by(config, store, leading))?;
        // §10.4: half of the silence again for each ordinal below its own.
        let turn = silence / 2 * u32::from(own_ordinal(store)).min(LAST_IN_LINE);
        if self.void {
            return Some(self.alive.saturating_add(turn));
        }
        // §10.4: a deputy without a replica waits four times as long; an overruled leader doubles its
        // patience.
        let empty = store.newest.is_some() && store.held.is_none();
        let patience = silence * if empty { EMPTY_HANDED } else { 1 } * (1 << self.overruled);
        Some(self.alive.saturating_add(patience).saturating_add(turn))
    }

    /// Expected time until this leader, which does not lead, leads; zero if that is not known, or another
    /// leader answers.
    pub(in crate::leader) fn ready_in(&self, base: &Base<S>, now: Now) -> Duration {
        if self.active_leader().is_some() {
            return Duration::ZERO;
        }
        let at = self.takeover(&base.config, &base.store, false).or(self.vacancy(&base.store, false));
        at.map_or(Duration::ZERO, |at| at.saturating_sub(now.monotonic))
    }

    pub(in crate::leader) fn deadline(&self, base: &Base<S>, leading: bool) -> Option<Duration> {
        let Base { config, store, peers, .. } = base;
        if !leading && !stands_by(config, store, leading) {
            return self.vacancy(store, leading);
        }
        earlier(self.next.filter(|_| !peers.leaders.is_empty()), self.takeover(config, store, leading))
    }

    /// Sends the questions that are due, and returns what else is.
    pub(in crate::leader) fn tick(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        leading: bool,
    ) -> Option<FailoverAction> {
        let asks = due(self.next, cx.now.monotonic) && !cx.peers.leaders.is_empty();
        if leading && asks {
            // A message may have been lost, or another leader have come back: a leader in office announces
            // itself now and then.
            self.next = cx.config.timing.silence.map(|silence| cx.now.monotonic + silence);
            return Some(FailoverAction::Announce);
        }
        if due(self.vacancy(cx.store, leading), cx.now.monotonic) {
            self.vacant = None;
            return Some(FailoverAction::OpenTerm);
        }
        if !stands_by(cx.config, cx.store, leading) {
            return None;
        }
        if due(self.takeover(cx.config, cx.store, leading), cx.now.monotonic) {
            return Some(self.take_over(cx));
        }
        if asks {
            let session = self.session.as_ref().filter(|session| session.opened.is_some());
            let opened = session.is_some_and(|session| session.asked.len() < UNANSWERED);
            if opened { self.ask(cx) } else { self.greet(cx) }
        }
        None
    }

    /// §10.4: from public state: the roster held, without drones evicted, revoked or ended since.
    fn take_over(&mut self, cx: &mut LeaderContext<'_, S>) -> FailoverAction {
        // §10.6: notices count although the replica does not say so.
        let mut changes = remove_evicted(cx.store);
        changes.extend(pin_replicated(cx.store));
        if !changes.is_empty() {
            cx.persist(&changes);
        }
        let silent = cx.now.monotonic.saturating_sub(self.alive);
        // If no term can be opened, the next attempt comes after another silence.
        self.begin_standby(cx.now);
        self.void = false;
        FailoverAction::TakeOver { from: cx.store.newest.map(|(epoch, _)| epoch), silent }
    }

    /// Sends a hello to the next connected leader, as an edge does.
    fn greet(&mut self, cx: &mut LeaderContext<'_, S>) {
        let after = self.session.as_ref().map(|session| session.peer);
        let leaders = &cx.peers.leaders;
        let next = leaders.iter().find(|peer| after.is_none_or(|after| **peer > after));
        let preferred = self.prefer.take().filter(|peer| leaders.contains(peer));
        let peer = preferred.or(next.copied()).or(leaders.first().copied());
        let (Some(peer), Some(keypair)) = (peer, &cx.store.keypair) else { return };
        let mut nonce = [0; 16];
        cx.rng.fill_bytes(&mut nonce);
        let hello = JoinHello {
            group: cx.config.group.clone(),
            drone: keypair.public().encode(),
            nonce,
            kem: cx.store.kem.set(),
        };
        cx.send(peer, &Message::JoinHello(hello));
        self.session = Some(StandbySession {
            peer,
            nonce,
            opened: None,
            number: 0,
            asked: VecDeque::new(),
            received: 0,
            staged: StagedChunks::new(),
        });
        // A leader that does not lead answers so sooner than that.
        self.next = Some(cx.now.monotonic + asking_pause(cx.config) * 2);
    }

    /// The leader that was greeted gives its challenge.
    pub(in crate::leader) fn challenged(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        leading: bool,
        from: Peer,
        message: JoinChallenge<S>,
    ) {
        let stands_by = stands_by(cx.config, cx.store, leading);
        let Some(session) = self.session.as_mut().filter(|_| stands_by) else { return };
        // §10.1: the challenge answers our nonce.
        if session.peer != from || session.nonce != message.nonce || session.opened.is_some() {
            return;
        }
        let role = &message.leader.identity.role;
        let leads = matches!(role, Role::Leader { group, .. } if *group == cx.config.group);
        let own = cx.store.keypair.as_ref().map(|keypair| &keypair.public().identity.role);
        if !leads || own == Some(role) || cx.store.refused.names(&message.leader) {
            return cx.blame(from, Error::NotALeader);
        }
        // §24.6: what it replicates is public, and the same with any set.
        compare_kem(cx, from, message.kem.map(|term| term.set()));
        session.opened = Some((message.leader, message.challenge));
        self.ask(cx);
    }

    /// Asks, signed: which epoch, and what changed since what we hold.
    fn ask(&mut self, cx: &mut LeaderContext<'_, S>) {
        let pause = asking_pause(cx.config);
        let (Some(session), Some(keypair)) = (&mut self.session, &cx.store.keypair) else { return };
        let Some((leader, challenge)) = &session.opened else { return };
        session.number += 1;
        // Messages get lost, so a silence has room for many questions; and they take their time, so it has
        // room for few.
        let patience = pause / 4 * (1 << (session.asked.len() / 2).min(UNANSWERED));
        session.asked.push_back((session.number, cx.now.monotonic));
        self.next = Some(cx.now.monotonic + patience);
        let (held, digest) = cx.store.held.unwrap_or((Epoch { term: 0, counter: 0 }, [0; 32]));
        let mut question = StandBy {
            group: cx.config.group.clone(),
            deputy: keypair.public().encode(),
            nonce: session.nonce,
            challenge: *challenge,
            number: session.number,
            received: session.received,
            held,
            digest,
            signature: Vec::new(),
        };
        // §10.1: signed over the nonce, the challenge and a rising number; D held confirms what is on the
        // disk.
        let statement = statements::stand_by(&question, leader);
        let signature = keypair.sign(&cx.config.deployment, Label::StandBy, &statement, cx.rng);
        question.signature = signature.encode();
        cx.send(session.peer, &Message::StandBy(question));
    }
}

/// Returns true if the leader stands by: it may lead, others may too, and it does not at present.
pub(in crate::leader) fn stands_by<S: Suite>(
    config: &LeaderConfig<S>,
    store: &LeaderStore<S>,
    leading: bool,
) -> bool {
    !leading && config.timing.silence.is_some() && may_lead(store)
}

/// Returns true if the leader has a key, and there is no proof that it contradicted itself.
fn may_lead<S: Suite>(store: &LeaderStore<S>) -> bool {
    store.keypair.as_ref().is_some_and(|own| !store.refused.names(own.public()))
}

pub(super) fn own_ordinal<S: Suite>(store: &LeaderStore<S>) -> u16 {
    match store.keypair.as_ref().map(|keypair| &keypair.public().identity.role) {
        Some(Role::Leader { ordinal, .. }) => *ordinal,
        _ => 0,
    }
}

/// The pause between two questions: several fit into the silence that makes a deputy act.
pub(super) fn asking_pause<S: Suite>(config: &LeaderConfig<S>) -> Duration {
    config.timing.silence.map_or(Duration::from_secs(1), |silence| silence / 4)
}

/// The keys on a replicated roster are the first ones seen for their identities, unless others were.
fn pin_replicated<S: Suite>(store: &mut LeaderStore<S>) -> Vec<Change> {
    let unpinned = |public: &&DronePublicKey<S>| !store.pins.contains_key(&public.identity.serial);
    let replicated = store.roster.iter().map(|(_, public)| public).filter(unpinned);
    let replicated: Vec<_> = replicated.map(|public| (public.identity.serial, public.handle())).collect();
    let mut changes = Vec::with_capacity(replicated.len());
    for (serial, handle) in replicated {
        store.pin(serial, handle);
        changes.push(Change::Pin { serial, handle: *handle.as_bytes() });
    }
    changes
}
