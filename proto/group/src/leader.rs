//! A team leader: enrols, opens a term, admits drones, makes new keys, evicts drones.
//!
//! [`Leader`] routes inputs to its parts, each of which owns its state:
//!
//! | module | what it does |
//! |---|---|
//! | `enrolment` | gets the leader its key |
//! | `revocation` | fetches and gives revocation lists |
//! | `joining` | handles join requests, by name and anonymous ones |
//! | `term` | leads: makes epochs, distributes them, handles what members send |
//! | `failover` | stands by while another leads, replicates, takes over |
//! | `store` | the stored state: what must survive a crash |
//! | `peers` | connections: relays, penalties, rates |
//!
//! Its disk holds the roster, its own key and the newest epoch; no group secret. A leader that starts opens a
//! term.

mod clock_check;
mod context;
mod enrolment;
mod failover;
mod interface;
mod joining;
mod peers;
mod revocation;
mod statements;
mod status;
mod store;
mod term;
#[cfg(test)]
mod test_support;

use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Admission, EquivocationProof, Header, KemTerm, Name, Role, Roster, SlotChanges, Suite};
use quiver_crypto::Secret;
use quiver_enrolment::EnrolmentClient;
use quiver_kem::KemSetting;
use quiver_machine::{
    CookieJar, Input, Machine, Now, Offence, Output, Peer, Primary, RelayedBroadcast, Route, SharedRoleState,
    Via, due, earlier,
};
use quiver_message::{CatchUpRequest, EpochChanges, Message, Nonce, RefusalReason, Rekey};
use rand_core::CryptoRngCore;

pub use quiver_machine::RestoreError;

pub use self::clock_check::{ClockDoubt, ClockWitness};
use self::context::Base;
use self::enrolment::{Enrolment, prove_enrolment};
use self::failover::competing_leaders::{Assessment, is_own, note_departures, publish_proof};
use self::failover::{Failover, FailoverAction, eviction_notices, peer_hints};
pub use self::interface::{
    AnonymousLeave, LeaderCommand, LeaderConfig, LeaderEvent, LeaderRecord, LeaderTiming,
};
use self::joining::LeaderJoins;
use self::joining::anonymous_join::AnonymousJoin;
use self::revocation::RevocationPolling;
pub use self::status::{Laggard, LeaderStatus, Stance};
use self::store::{Change, LeaderStore, origin};
use self::term::Term;
use self::term::member_messages::refuse_unauthenticated;

/// A team leader as a machine.
#[derive(Debug)]
pub struct Leader<S: Suite> {
    base: Base<S>,
    booted: bool,
    /// True if the next term opens above one that is remembered from before the start, perhaps wrongly.
    leaps: bool,
    enrolment: Enrolment<S>,
    revocation_polling: RevocationPolling,
    joining: LeaderJoins<S>,
    /// The term in force, while it leads.
    term: Option<Term<S>>,
    failover: Failover<S>,
}

impl<S: Suite> Leader<S> {
    /// A leader that remembers these records.
    ///
    /// # Errors
    /// If a record is damaged, of another deployment, of another group's leader, or does not hold.
    pub fn new(
        config: LeaderConfig<S>,
        records: impl IntoIterator<Item = LeaderRecord>,
    ) -> Result<Self, RestoreError> {
        let mut store = LeaderStore::new(config.timing.silence.is_some());
        for record in records {
            store.replay(&config.deployment, &record)?;
        }
        match store.keypair.as_ref().map(|keypair| &keypair.public().identity.role) {
            Some(Role::Leader { group, .. }) if *group != config.group => {
                return Err(RestoreError::WrongGroup(group.clone()));
            }
            _ => {}
        }
        Ok(Self {
            booted: false,
            leaps: false,
            enrolment: Enrolment::new(),
            revocation_polling: RevocationPolling::default(),
            joining: LeaderJoins::new(&config),
            term: None,
            failover: Failover::new(),
            base: Base::new(config, store),
        })
    }

    /// The same, but it refuses joins by name while its revocation list is past its next update.
    #[must_use]
    pub const fn with_stale_lists_refused(mut self) -> Self {
        self.base.store.revocations.refuse_stale = true;
        self
    }

    /// The same in a deployment with a second factor of pairwise secrets (§24), from the next opening of a
    /// term on.
    #[must_use]
    pub fn with_kem(mut self, setting: KemSetting) -> Self {
        self.base.store.kem.configure(setting);
        self
    }

    /// The same that renews κ at a join when it is so old: [`KEM_LIFETIME`](crate::KEM_LIFETIME) at most,
    /// which is the default.
    #[must_use]
    pub fn with_kem_lifetime(mut self, lifetime: Duration) -> Self {
        self.base.store.kem.set_lifetime(lifetime);
        self
    }

    /// A leader of anonymous members only: drones show that they satisfy a policy, and their verifier calls
    /// [`admit`](Self::admit) (§6.5). Terms open without members.
    #[must_use]
    pub const fn with_anonymous_members_only(mut self) -> Self {
        self.joining.anonymous_only = true;
        self
    }

    /// Takes a drone that showed that it satisfies the policy into the next batch. The welcome goes to this
    /// connection, with this nonce.
    pub fn admit(&mut self, now: Now, peer: Peer, nonce: Nonce, admission: Admission<S>) {
        self.joining.admit(now, &self.base.config.timing, AnonymousJoin { peer, nonce, admission });
    }

    /// Takes the leave of a member without a name, which came from this connection.
    pub fn anonymous_leave(
        &mut self,
        now: Now,
        from: Peer,
        leave: &AnonymousLeave,
        rng: &mut dyn CryptoRngCore,
    ) {
        self.begin_input(now, rng);
        let mut cx = self.base.context(now, rng);
        if let Some(term) = self.term.as_mut().filter(|_| leave.group == cx.config.group) {
            term.anonymous_leave(&mut cx, from, leave);
        }
        self.end_input(now, rng);
    }

    /// Parameter set and count of the term in force, if it has a second factor.
    #[must_use]
    pub fn kem(&self) -> Option<KemTerm> {
        self.term.as_ref().and_then(Term::kem)
    }

    /// The whole state as records, in place of all records so far.
    pub fn checkpoint(&self) -> Vec<LeaderRecord> {
        let evictions = self.term.iter().flat_map(|term| term.pending.all_evictions());
        let deployment = &self.base.config.deployment;
        self.base.store.checkpoint(deployment, self.enrolment.encode(), self.roster(), evictions)
    }

    fn roster(&self) -> &Roster<S> {
        self.term.as_ref().map_or(&self.base.store.roster, Term::roster)
    }

    /// The first input after a start: a new boot number, durable first; then enrol, or open a term.
    fn boot(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        self.booted = true;
        let lifetime = self.base.config.timing.challenge_lifetime();
        // §14: the cookie key dies with the process.
        self.base.cookies = CookieJar::new(Secret::random(rng), lifetime);
        let mut cx = self.base.context(now, rng);
        // §13.2: raised and stored before the first message.
        cx.store.boot_no = cx.store.boot_no.saturating_add(1);
        // §9.2: the first term after a start opens above the one remembered.
        self.leaps = cx.store.newest.is_some();
        let mut changes = alloc::vec![origin(&cx.config.deployment), Change::Boot(cx.store.boot_no)];
        if self.enrolment.start(&mut cx) {
            changes.extend(self.enrolment.encode().map(Change::Pending));
        }
        // §24.8: the driver puts a checkpoint without κ in place of the log.
        changes.extend(cx.store.kem.erasure());
        cx.persist(&changes);
        self.begin(now, rng);
    }

    /// Goes on after a suspension as after a start: another copy may have gone on with this term, so that the
    /// next epoch of it would be a second one. The term ends, and the next leaps above what either knows
    /// (§13.9).
    fn resumed(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let led = self.term.as_ref().map(Term::epoch);
        self.end_term();
        self.boot(now, rng);
        if let (Some(epoch), None) = (led, &self.term) {
            self.base.out.event(LeaderEvent::SteppedDown { term: epoch.term });
        }
    }

    /// An enrolled leader that is alone leads at once; one among others listens first.
    fn begin(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        match self.base.config.timing.silence {
            None => self.open_term(now, rng),
            Some(_) => self.failover.begin_standby(now),
        }
    }

    fn connected(&mut self, now: Now, peer: Peer, route: Route, rng: &mut dyn CryptoRngCore) {
        let mut cx = self.base.context(now, rng);
        match route {
            Route::Kgc => {
                cx.peers.kgcs.insert(peer);
                let enrolled = self.enrolment.connected(&mut cx, peer);
                prove_enrolment(&mut cx, peer);
                self.revocation_polling.ask_now(now.monotonic);
                if enrolled {
                    self.begin(now, rng);
                }
            }
            Route::Leader => {
                cx.peers.leaders.insert(peer);
                cx.peers.relays_changed([peer]);
                match &self.term {
                    // §10.6: a leader of a lower term steps down.
                    Some(term) => cx.out.send_encoded(peer, term.epochs.current.message_with(None)),
                    None => self.failover.leader_connected(now),
                }
            }
            Route::Inbound | Route::Member(_) | Route::Relay => {}
        }
    }

    fn disconnected(&mut self, now: Now, peer: Peer, rng: &mut dyn CryptoRngCore) {
        let mut cx = self.base.context(now, rng);
        cx.peers.disconnected(peer);
        self.joining.disconnected(peer);
        self.failover.disconnected(now, peer);
        if let Some(term) = &mut self.term {
            term.disconnected(peer);
        }
        if self.enrolment.disconnected(&mut cx, peer) {
            self.begin(now, rng);
        }
    }

    fn dispatch(&mut self, now: Now, from: Peer, message: Message<S>, rng: &mut dyn CryptoRngCore) {
        let mut cx = self.base.context(now, rng);
        // §13.6: messages received by gossip are never answered.
        if cx.published() && !message.is_publication() {
            return;
        }
        match message {
            Message::JoinHello(_) | Message::JoinRequest(_) => self.join(now, from, &message, rng),
            Message::Ack(_) | Message::SparePublication(_) | Message::Leave(_) | Message::GroupMessage(_) => {
                self.member_message(now, from, &message, rng);
            }
            Message::CatchUpRequest(request) => self.catch_up(now, from, &request, rng),
            Message::RevocationQuery(query) => revocation::answer_query(&mut cx, from, &query),
            Message::RevocationList(list) => {
                // §12.3: members that a newer list names are evicted at once, and their connections are cut.
                if revocation::take_list(&mut cx, from, &list.list)
                    && let Some(term) = &mut self.term
                {
                    term.evict_revoked(&mut cx);
                }
            }
            Message::Rekey(rekey) => self.competing_header(now, from, (&rekey.header, None), rng),
            Message::EpochChanges(EpochChanges { header, changes }) => {
                self.competing_header(now, from, (&header, Some(&changes)), rng);
            }
            Message::StandBy(question) => match &mut self.term {
                Some(term) if question.group == cx.config.group => term.stand_by(&mut cx, from, &question),
                term => {
                    let reason =
                        if term.is_none() { RefusalReason::NotReady } else { RefusalReason::WrongGroup };
                    cx.refuse(from, reason, &question.nonce, Duration::from_secs(1));
                }
            },
            Message::JoinChallenge(challenge) => {
                self.failover.challenged(&mut cx, self.term.is_some(), from, challenge);
            }
            Message::Replica(replica) => {
                self.failover.replicated(&mut cx, self.term.is_some(), from, &replica);
            }
            Message::EvictionNotice(notice) => {
                eviction_notices::receive(&mut cx, self.term.as_mut(), from, notice);
            }
            Message::EquivocationProof(proof) => self.equivocation(now, from, *proof, rng),
            Message::Refusal(refusal) if !self.enrolment.is_pending() => {
                self.failover.refused(&cx, from, &refusal);
            }
            message if matches!(message, Message::Refusal(_)) || EnrolmentClient::takes(&message) => {
                if self.enrolment.receive(&mut cx, from, &message) {
                    self.begin(now, rng);
                }
            }
            // A message for a part that this leader does not have.
            message if message.is_publication() => {}
            message => cx.blame(from, Offence::out_of_place(&message, "message to a leader")),
        }
    }

    /// `Ok` if this leader leads; otherwise how long it takes until it may, as far as is known.
    ///
    /// # Errors
    /// The time to wait.
    pub fn leading(&self, now: Now) -> Result<(), Duration> {
        if self.term.is_some() { Ok(()) } else { Err(self.failover.ready_in(&self.base, now)) }
    }

    fn join(&mut self, now: Now, from: Peer, message: &Message<S>, rng: &mut dyn CryptoRngCore) {
        let wait = self.leading(now).err().unwrap_or_default();
        let (mut cx, term) = (self.base.context(now, rng), self.term.as_ref().ok_or(wait));
        match message {
            Message::JoinHello(hello) => self.joining.hello(&mut cx, term, from, hello),
            Message::JoinRequest(request) => self.joining.request(&mut cx, term, from, request),
            _ => {}
        }
    }

    /// Handles messages that only members of this group send, to the leader in office; spare points go to
    /// every leader.
    fn member_message(&mut self, now: Now, from: Peer, message: &Message<S>, rng: &mut dyn CryptoRngCore) {
        let mut cx = self.base.context(now, rng);
        let group = match message {
            Message::SparePublication(spare) => Some(&spare.group),
            Message::Leave(leave) => Some(&leave.group),
            Message::GroupMessage(message) => Some(&message.group),
            _ => None,
        };
        if group.is_some_and(|group| *group != cx.config.group) {
            return;
        }
        let Some(term) = &mut self.term else {
            // §10.5: to a deputy a spare point is a hint where the member is reached.
            if let Message::SparePublication(spare) = message
                && let Some((member, news)) = peer_hints::receive_spare(&mut cx, from, spare)
            {
                // §19: anybody may play again what is known: it moves no hint.
                if news {
                    self.failover.hints.insert(member, from);
                } else {
                    self.failover.hints.insert_first(member, from);
                }
            }
            return;
        };
        term.member_message(&mut cx, from, message);
    }

    fn catch_up(&mut self, now: Now, from: Peer, request: &CatchUpRequest, rng: &mut dyn CryptoRngCore) {
        // §11.4: no connection is answered oftener than its rate.
        if self.base.peers.catch_ups.take(now.monotonic, from).is_err() {
            return;
        }
        let wait = self.leading(now).err().unwrap_or_default();
        let mut cx = self.base.context(now, rng);
        let refused = match &mut self.term {
            _ if request.group != cx.config.group => (RefusalReason::WrongGroup, Duration::ZERO),
            None => (RefusalReason::NotReady, wait),
            Some(term) => return term.catch_up(&mut cx, from, request),
        };
        refuse_unauthenticated(&mut cx, from, refused.0, (&request.number, refused.1));
    }

    /// A received header of this group, perhaps with the slots that it changes: if it validly belongs to a
    /// higher term, this leader steps down.
    fn competing_header(
        &mut self,
        now: Now,
        from: Peer,
        (header, changes): (&Header<S>, Option<&SlotChanges>),
        rng: &mut dyn CryptoRngCore,
    ) {
        let mut cx = self.base.context(now, rng);
        match self.failover.assess(&mut cx, self.term.as_mut(), from, (header, changes)) {
            Assessment::Ignored => {}
            Assessment::WentAhead { proof } => {
                // §10.8: a term above it, and the proof with it.
                self.lead_above(now, rng);
                publish_proof(&mut self.base.context(now, rng), &proof);
            }
            Assessment::Contradiction(proof) => self.equivocation(now, from, *proof, rng),
            Assessment::Own => {
                // §9.2: its memory is older than its group: it opens the next term.
                let led = self.term.is_some();
                self.end_term();
                note_departures(&mut self.base.context(now, rng), header, changes);
                // While it stands by, another may have led since.
                if led || self.base.config.timing.silence.is_none() {
                    self.open_term(now, rng);
                }
            }
            Assessment::Higher { news, known } => {
                self.step_down(now, header, rng);
                let mut cx = self.base.context(now, rng);
                // §12.1: the members that the header removes are out, though the roster held has them; also
                // if the header came before the slots.
                note_departures(&mut cx, header, changes);
                self.failover.follow(&cx, from, header, news, known);
            }
        }
    }

    /// A leader that must not lead opened a term above ours, and some members follow it: they follow nothing
    /// that is not above.
    fn lead_above(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let newest = self.base.store.newest.map(|(epoch, _)| epoch);
        let term = self.term.as_ref().map(Term::epoch);
        if term.is_some() && newest > term {
            self.failover.pace_term(now);
            self.end_term();
            self.open_term(now, rng);
            self.announce(now, rng);
        }
    }

    /// Proof that a leader contradicted itself. If it led, its deputies take over, one after the other; if it
    /// was ourselves, we lead no more.
    fn equivocation(
        &mut self,
        now: Now,
        from: Peer,
        proof: EquivocationProof<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        let mut cx = self.base.context(now, rng);
        let Some(leader) = self.failover.refuse_leader(&mut cx, from, proof) else { return };
        if is_own(cx.store, &leader) {
            // §10.7: the leader itself leads no more.
            if let Some(epoch) = self.term.as_ref().map(Term::epoch) {
                self.end_term();
                self.base.out.event(LeaderEvent::SteppedDown { term: epoch.term });
            }
        } else if self.term.is_none() && self.failover.lost_leader(now, &leader) {
            // §10.7: deputies open a term in the order of their ordinals, without waiting for silence.
            self.tick_failover(now, rng);
        }
    }

    /// Another leader leads. Its header goes to the members that we reached, so that they ask it for their
    /// entries.
    fn step_down(&mut self, now: Now, header: &Header<S>, rng: &mut dyn CryptoRngCore) {
        let Some(term) = &self.term else { return };
        let (epoch, left) = (term.epoch(), term.pending.all_evictions().copied().collect::<Vec<_>>());
        // §10.6: drones still to be evicted: the notice is for the other leader.
        self.base.context(now, rng).sign_eviction_notice(epoch, &left);
        self.end_term();
        self.base.out.event(LeaderEvent::SteppedDown { term: header.core.epoch.term });
        // §10.4: overruled without having received anything, it doubles its patience.
        self.failover.note_overruled();
        self.failover.begin_standby(now);
        // §10.6: sends its members that header.
        let rekey = Message::Rekey(Rekey::new(header.clone(), None));
        let message = rekey.encode(&self.base.config.deployment);
        for peer in self.failover.hints.peers() {
            self.base.out.send_encoded(peer, message.clone());
        }
        self.base.out.send_encoded_to_group(message);
    }

    /// Erases the state of the term; public state stays.
    fn end_term(&mut self) {
        let Some(term) = self.term.take() else { return };
        for (slot, peer) in term.close(&mut self.base.store) {
            if let Some(public) = self.base.store.roster.get(slot) {
                self.failover.hints.insert(public.identity.serial, peer);
            }
        }
        self.joining.queue.abandon();
        self.base.peers.all_relays_changed();
    }

    /// Opens a term, if this leader may lead, and distributes it.
    fn open_term(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let mut cx = self.base.context(now, rng);
        let Some(mut term) = Term::open(&mut cx, &mut self.leaps, self.joining.anonymous_only) else {
            return;
        };
        // §10.5: the new term's entries go where the hints point.
        term.follow_hints(&self.failover.hints);
        self.failover.hints.clear();
        cx.peers.all_relays_changed();
        term.distribute_opening(&mut cx);
        self.term = Some(term);
    }

    /// Announces the newest epoch to deputies, other leaders and the group's topic.
    fn announce(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let mut cx = self.base.context(now, rng);
        if let Some(term) = &self.term {
            term.announce(&mut cx);
            term.epochs.announce_to_group(&mut cx);
        }
    }

    fn command(&mut self, now: Now, command: LeaderCommand, rng: &mut dyn CryptoRngCore) {
        let mut cx = self.base.context(now, rng);
        match (command, &mut self.term) {
            (
                LeaderCommand::Rekey
                | LeaderCommand::Evict(_)
                | LeaderCommand::EvictSlot(_)
                | LeaderCommand::RenewKem(_),
                None,
            ) => cx.event(LeaderEvent::NotLeading),
            (LeaderCommand::RenewKem(name), Some(_)) => self.renew_kem(now, name, rng),
            (LeaderCommand::Rekey, Some(term)) => term.rekey(&mut cx),
            (LeaderCommand::Evict(name), Some(term)) => term.evict_name(&mut cx, name),
            (LeaderCommand::EvictSlot(slot), Some(term)) => term.evict_slot(&mut cx, slot),
            (LeaderCommand::Allow(serial), _) => {
                cx.config.allow.insert(serial);
            }
            (LeaderCommand::Send { channel, data }, Some(term)) => term.send_message(&mut cx, channel, &data),
            (LeaderCommand::Send { .. }, None) => cx.event(LeaderEvent::SendFailed("no term is open yet")),
            (LeaderCommand::ClockConfirmed(confirmed), _) => self.failover.clock_confirmed = confirmed,
        }
    }

    /// Forgets κ with a member, or all κ, and opens a term, in which those that have none are absent: they
    /// join again, and make one.
    fn renew_kem(&mut self, now: Now, name: Option<Name>, rng: &mut dyn CryptoRngCore) {
        let mut drone = None;
        if let Some(name) = name {
            let member = self.roster().iter().find(|(_, public)| public.identity.name == name);
            let Some((_, public)) = member else {
                return self.base.out.event(LeaderEvent::NoSuchMember(name));
            };
            drone = Some(public.handle());
        }
        let keys = self.base.store.kem.forget(drone.as_ref());
        if keys > 0 {
            // §24.8: with the opening, the driver puts a checkpoint without κ in place of the log.
            self.end_term();
            self.open_term(now, rng);
            self.announce(now, rng);
        }
        // Last, because it answers an operator: κ must be gone from the disk by then.
        self.base.out.event(LeaderEvent::KemForgotten { keys });
    }

    /// Begins every input: boots, and does what the last epoch left to be done.
    fn begin_input(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if !self.booted {
            self.boot(now, rng);
        }
        self.resume_epochs(now, rng);
    }

    /// Ends every input.
    fn end_input(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        self.tick(now, rng);
        self.update_relays();
    }

    /// Resumes the work that the last epoch left: its outputs are out by now.
    fn resume_epochs(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let mut cx = self.base.context(now, rng);
        if let Some(term) = &mut self.term {
            // §7.2: the steps that follow the wraps are made when the epoch has gone out.
            term.settle();
            if due(term.pending.deadline(), now.monotonic) {
                term.rekey(&mut cx);
            }
        }
    }

    fn tick(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let mut cx = self.base.context(now, rng);
        if self.enrolment.tick(&mut cx) {
            self.begin(now, rng);
        }
        let mut cx = self.base.context(now, rng);
        self.revocation_polling.tick(&mut cx);
        if self.term.as_mut().is_some_and(|term| term.pending.take_leave_requested()) {
            // §6.3: a leave waits for company as a join does.
            self.joining.queue.start_batch_timer(now, &cx.config.timing);
        }
        self.joining.tick(&mut cx, self.term.as_mut());
        if let Some(term) = &mut self.term {
            term.tick(&mut cx);
        }
        cx.peers.tick(now.monotonic);
        self.tick_failover(now, rng);
    }

    fn tick_failover(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let mut cx = self.base.context(now, rng);
        match (self.failover.tick(&mut cx, self.term.is_some()), &self.term) {
            (None, _) => {}
            (Some(FailoverAction::Announce), Some(term)) => term.announce(&mut cx),
            (Some(FailoverAction::Announce), None) => {}
            (Some(FailoverAction::OpenTerm), _) => self.open_term(now, rng),
            (Some(FailoverAction::TakeOver { from, silent }), _) => {
                cx.event(LeaderEvent::TookOver { from, silent });
                self.open_term(now, rng);
                self.announce(now, rng);
            }
        }
    }

    /// Reports to the driver which peers' group messages are relayed from now on, if that changed (§13.7).
    fn update_relays(&mut self) {
        let mut changed = self.base.peers.take_changed();
        if let Some(term) = &mut self.term {
            changed.extend(term.acknowledgements.take_changed());
        }
        changed.extend(self.failover.hints.take_changed());
        for peer in changed {
            let proven = self.is_proven(peer);
            if self.base.peers.set_relayed(peer, proven) {
                self.base.out.relay(peer, proven);
            }
        }
    }

    /// Returns true if a peer's identity is proven: it is a leader that this one dialled, a member is
    /// connected over it, a deputy asks over it, or a member sent its spare point over it while another
    /// leads.
    fn is_proven(&self, peer: Peer) -> bool {
        // §13.7: a member or a deputy was proven over it.
        let carries = |term: &Term<S>| {
            term.acknowledgements.carries(peer) || term.replication.deputy_behind(peer).is_some()
        };
        self.base.peers.leaders.contains(&peer)
            || self.term.as_ref().is_some_and(carries)
            || self.failover.hints.behind(peer).next().is_some()
    }

    fn deadline(&self) -> Option<Duration> {
        if !self.booted {
            return Some(Duration::ZERO);
        }
        let term = self.term.as_ref();
        let deadlines = [
            self.enrolment.deadline(),
            self.revocation_polling.deadline(),
            self.joining.deadline(&self.base.config, term),
            term.and_then(Term::deadline),
            self.failover.deadline(&self.base, term.is_some()),
        ];
        deadlines.into_iter().fold(None, earlier)
    }
}

impl<S: Suite> Machine for Leader<S> {
    type Command = LeaderCommand;
    type Event = LeaderEvent;
    type Record = LeaderRecord;

    fn handle_input(&mut self, now: Now, input: Input<'_, LeaderCommand>, rng: &mut dyn CryptoRngCore) {
        if let Input::Received { from, via, bytes } = input {
            return match self.decode((from, via), bytes) {
                Some(message) => self.receive(now, (from, via), message, rng),
                None => self.wake(now, rng),
            };
        }
        self.begin_input(now, rng);
        match input {
            Input::Timeout | Input::Received { .. } => {}
            Input::Connected { peer, route } => self.connected(now, peer, route, rng),
            Input::Disconnected { peer } => self.disconnected(now, peer, rng),
            Input::Resumed => self.resumed(now, rng),
            Input::Command(command) => self.command(now, command, rng),
        }
        self.end_input(now, rng);
    }

    fn poll_output(&mut self) -> Output<LeaderEvent, LeaderRecord> {
        let deadline = self.deadline();
        self.base.out.poll(deadline)
    }

    fn take_broadcast(&mut self) -> Option<RelayedBroadcast> {
        self.term.as_mut()?.take_relayed()
    }
}

impl<S: Suite> Primary for Leader<S> {
    type Suite = S;

    fn decode(&mut self, from: (Peer, Via), bytes: &[u8]) -> Option<Message<S>> {
        let decoded = Message::decode(&self.base.config.deployment, bytes);
        decoded.map_err(|error| self.blame(from, error.into())).ok()
    }

    fn receive(
        &mut self,
        now: Now,
        (from, via): (Peer, Via),
        message: Message<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        self.begin_input(now, rng);
        self.base.peers.via = via;
        self.dispatch(now, from, message, rng);
        self.base.peers.via = Via::Peer;
        self.end_input(now, rng);
    }

    fn wake(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        self.begin_input(now, rng);
        self.end_input(now, rng);
    }

    fn blame(&mut self, (peer, via): (Peer, Via), offence: Offence) {
        self.base.peers.via = via;
        self.base.blame(peer, offence);
        self.base.peers.via = Via::Peer;
    }

    fn shared(&self) -> SharedRoleState<'_, S> {
        let Base { config, store, .. } = &self.base;
        SharedRoleState {
            deployment: &config.deployment,
            keypair: store.keypair.as_ref(),
            revocations: &store.revocations,
            group: Some(&config.group),
        }
    }
}
