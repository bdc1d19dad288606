//! A team leader: enrols, opens a term, lets drones in, makes new keys, puts drones out.
//!
//! Its disk holds the roster, its own key and the newest epoch; no group secret. A leader that starts opens a term.

mod absence;
mod admission;
mod answers;
mod backlog;
mod broadcast;
mod clocks;
#[cfg(test)]
mod crowd;
mod deputies;
mod enrolling;
mod enveloping;
mod epochs;
mod gate;
mod hints;
mod interface;
mod links;
mod members;
mod memory;
mod notices;
mod opening;
mod relays;
mod replica;
mod revoking;
mod rivals;
mod spreading;
mod standby;
mod status;
mod vetting;
mod waiting;

#[cfg(any(feature = "abe", feature = "abke"))]
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use core::time::Duration;

use quiver_ainq::{Name, Role, Roster, Slot, Suite};
use quiver_crypto::Secret;
use quiver_message::Message;
use rand_core::CryptoRngCore;

use self::backlog::Backlog;
pub use self::clocks::{ClockDoubt, ClockWitness};
use self::deputies::Deputies;
use self::epochs::Lead;
#[cfg(feature = "abke")]
use self::gate::Admissions;
#[cfg(feature = "abke")]
pub use self::gate::Demand;
use self::hints::Hints;
pub use self::interface::{LeaderCommand, LeaderConfig, LeaderEvent, LeaderRecord, LeaderTiming};
use self::links::Links;
use self::memory::{Change, Memory};
use self::relays::Relays;
use self::rivals::Outbidding;
use self::standby::Standby;
pub use self::status::{Laggard, LeaderStatus, Stance};
use self::waiting::Waiting;
use crate::speech::Voice;
use quiver_enrolment::Enrollee;
use quiver_machine::CookieJar;
use quiver_machine::Misdeeds;
use quiver_machine::Outbox;
use quiver_machine::REVOCATION_LIST_RATE;
pub use quiver_machine::RestoreError;
use quiver_machine::TokenBuckets;
use quiver_machine::{Finished, Input, Job, Machine, Now, Offence, Output, Peer, Route, Via};
use quiver_machine::{due, earlier};

/// A team leader as a machine.
#[derive(Debug)]
pub struct Leader<S: Suite> {
    config: LeaderConfig<S>,
    out: Outbox<LeaderEvent, LeaderRecord>,
    memory: Memory<S>,
    booted: bool,
    cookies: CookieJar,
    enrollee: Option<Enrollee<S>>,
    kgcs: BTreeSet<Peer>,
    /// When to ask the KGCs for a newer revocation list.
    ask_revocations: Option<Duration>,
    lead: Option<Lead<S>>,
    /// Leaders of the same group that we dialled.
    leaders: BTreeSet<Peer>,
    standby: Standby<S>,
    outbidding: Outbidding,
    deputies: Deputies<S>,
    hints: Hints,
    links: Links,
    waiting: Waiting<S>,
    /// By which way the message came that is being taken.
    via: Via,
    relays: Relays,
    misdeeds: Misdeeds,
    /// Revocation lists that each peer may be sent.
    list_answers: TokenBuckets,
    /// Questions of each peer that are answered: all, and those that nothing authenticates.
    catch_ups: TokenBuckets,
    bare_catch_ups: TokenBuckets,
    leaves: BTreeSet<Slot>,
    /// Changes that the next epochs make, one after another and at once.
    backlog: Backlog<S>,
    /// When to renew the key because a member restarted, and when that was done last.
    restart_renewal: Option<Duration>,
    last_restart: Option<Duration>,
    /// Whether the next term opens above one that is remembered from before the start, perhaps wrongly.
    leaps: bool,
    /// Once there are parameters or keys.
    #[cfg(feature = "abe")]
    envelopes: Option<Box<quiver_envelope::Envelopes>>,
    /// If it demands a policy.
    #[cfg(feature = "abke")]
    admissions: Option<Box<Admissions<S>>>,
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
        let mut memory = Memory::new(config.timing.silence.is_some());
        for record in records {
            memory.recall(&config.deployment, &record)?;
        }
        match memory.keypair.as_ref().map(|keypair| &keypair.public().identity.role) {
            Some(Role::Leader { group, .. }) if *group != config.group => {
                return Err(RestoreError::WrongGroup(group.clone()));
            }
            _ => {}
        }
        Ok(Self {
            out: Outbox::new(),
            memory,
            booted: false,
            // Replaced by a random key at the first input, before any cookie is made.
            cookies: CookieJar::new(Secret::new([0; 32]), Duration::ZERO),
            enrollee: None,
            kgcs: BTreeSet::new(),
            ask_revocations: None,
            lead: None,
            leaders: BTreeSet::new(),
            standby: Standby::new(),
            outbidding: Outbidding::default(),
            deputies: Deputies::new(),
            hints: Hints::default(),
            links: Links::default(),
            waiting: Waiting::new(config.max_members, config.timing.challenge_lifetime()),
            via: Via::Peer,
            relays: Relays::default(),
            misdeeds: Misdeeds::default(),
            list_answers: TokenBuckets::new(REVOCATION_LIST_RATE),
            catch_ups: TokenBuckets::new(members::CATCH_UPS),
            bare_catch_ups: TokenBuckets::new(members::BARE_CATCH_UPS),
            leaves: BTreeSet::new(),
            backlog: Backlog::new(),
            restart_renewal: None,
            last_restart: None,
            leaps: false,
            #[cfg(feature = "abe")]
            envelopes: None,
            #[cfg(feature = "abke")]
            admissions: None,
            config,
        })
    }

    /// The same, but that it lets nobody in by name while its revocation list is past its next update.
    #[must_use]
    pub const fn with_stale_lists_refused(mut self) -> Self {
        self.memory.revocations.refuse_stale = true;
        self
    }

    /// The leader's own key, once enrolled.
    pub fn keypair(&self) -> Option<&quiver_ainq::DroneKeypair<S>> {
        self.memory.keypair.as_ref()
    }

    /// A secret that all synced members of the epoch can derive under this name.
    pub fn export(&self, name: &Name) -> Option<Secret<32>> {
        let leadership = &self.lead.as_ref()?.leadership;
        Some(leadership.group_key().export(name, leadership.digest()))
    }

    fn roster(&self) -> &Roster<S> {
        self.lead.as_ref().map_or(&self.memory.roster, |lead| lead.leadership.roster())
    }

    fn blame(&mut self, peer: Peer, offence: impl Into<Offence>) {
        let offence = offence.into();
        self.penalize(peer, &offence);
        self.report_offence(peer, offence);
    }

    /// Blames a peer for what an honest one may have sent too, because it could not know better.
    fn report_offence(&mut self, peer: Peer, offence: impl Into<Offence>) {
        self.out.event(LeaderEvent::Blamed { peer, offence: offence.into() });
    }

    /// The first input after a start: a new boot number, durable first; then enrol, or open a term.
    fn boot(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        self.booted = true;
        self.cookies = CookieJar::new(Secret::random(rng), self.config.timing.challenge_lifetime());
        let mut changes = alloc::vec![self.origin()];
        self.memory.boot_no = self.memory.boot_no.saturating_add(1);
        self.leaps = self.memory.newest.is_some();
        changes.push(Change::Boot(self.memory.boot_no));
        if self.memory.keypair.is_none() && self.enrollee.is_none() {
            self.enrollee = self.enrolment_to_make(rng);
            changes.extend(self.enrollee.iter().map(|enrollee| Change::Pending(enrollee.encode().to_vec())));
        }
        self.persist(&changes);
        self.begin(now, rng);
    }

    /// As after a start: another copy may have gone on with this term, so that the next epoch of it would be a second one. The
    /// term ends, and the next leaps above what either knows.
    fn resumed(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let led = self.epoch();
        self.set_down();
        self.boot(now, rng);
        if let (Some(epoch), None) = (led, &self.lead) {
            self.out.event(LeaderEvent::SteppedDown { term: epoch.term });
        }
    }

    /// An enrolled leader that is alone leads at once; one among others listens first.
    fn begin(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        match self.config.timing.silence {
            None => self.open_term(now, rng),
            Some(_) => self.begin_standby(now),
        }
    }

    fn connected(&mut self, now: Now, peer: Peer, route: Route, rng: &mut dyn CryptoRngCore) {
        match route {
            Route::Kgc => {}
            Route::Leader => return self.leader_connected(now, peer),
            Route::Inbound | Route::Member(_) => return,
        }
        self.kgcs.insert(peer);
        for (_, proof) in self.memory.refused.iter().filter(|(_, proof)| !proof.is_empty()) {
            self.out.send_encoded(peer, proof.to_vec());
        }
        if let Some(enrollee) = &mut self.enrollee {
            let steps = enrollee.connected(now, peer, rng);
            self.enrolment(now, steps, rng);
        }
        self.prove_enrolment(peer, rng);
        self.ask_revocations = Some(now.monotonic);
    }

    fn disconnected(&mut self, now: Now, peer: Peer, rng: &mut dyn CryptoRngCore) {
        self.kgcs.remove(&peer);
        self.leaders.remove(&peer);
        self.forget_stranger(peer);
        self.deputies.disconnected(peer);
        self.standby.disconnected(now, peer);
        self.hints.disconnect(peer);
        self.links.disconnect(peer);
        self.gone_from_the_gate(peer);
        if let Some(enrollee) = &mut self.enrollee {
            let steps = enrollee.disconnected(now, peer, rng);
            self.enrolment(now, steps, rng);
        }
    }

    fn received(&mut self, now: Now, from: Peer, bytes: &[u8], rng: &mut dyn CryptoRngCore) {
        let message = match Message::decode(&self.config.deployment, bytes) {
            Ok(message) => message,
            Err(error) => return self.blame(from, error),
        };
        // §13.6: what comes by gossip is answered to nobody.
        if self.via == Via::Group && !message.is_publication() {
            return;
        }
        match message {
            Message::JoinHello(hello) => self.join_hello(now, from, &hello),
            Message::JoinRequest(request) => self.join_request(now, from, &request),
            Message::Ack(ack) => self.acknowledged(now, from, &ack),
            Message::CatchUpRequest(request) => self.catch_up(now, from, &request, rng),
            Message::SparePublication(spare) if self.lead.is_none() => self.spare_shown(now, from, &spare),
            Message::SparePublication(spare) => self.spare_published(now, from, &spare),
            Message::Leave(leave) => self.leave(now, from, &leave),
            Message::AdmissionHello(_) | Message::AdmissionProof(_) | Message::AdmissionStep(_) => {
                self.at_the_gate(now, from, &message, rng);
            }
            Message::AdmissionLeave(leave) => self.unnamed_leave(now, from, &leave),
            Message::Envelope(envelope) => self.envelope(now, from, &envelope),
            Message::OpeningRequest(request) => self.opening_request(now, &request),
            Message::GroupMessage(message) => self.hear(now, from, &message),
            Message::RevocationQuery(query) => self.revocation_query(now, from, &query),
            Message::RevocationList(list) => self.revocation_list(now, from, &list.list, rng),
            Message::Rekey(rekey) => self.rival(now, from, &rekey.header, rng),
            Message::StandBy(question) => self.stand_by(now, from, &question, rng),
            Message::JoinChallenge(challenge) => self.challenged(now, from, challenge, rng),
            Message::Replica(replica) => self.replicated(now, from, &replica, rng),
            Message::EvictionNotice(notice) => self.eviction_notice(now, from, notice, rng),
            Message::EquivocationProof(proof) => self.equivocation(now, from, *proof, rng),
            Message::Refusal(refusal) if self.enrollee.is_none() => self.not_served(now, from, &refusal),
            Message::EnrolCookie(_)
            | Message::EnrolReply(_)
            | Message::EnrolCommitment(_)
            | Message::EnrolShare(_)
            | Message::Refusal(_) => {
                if let Some(enrollee) = &mut self.enrollee {
                    let steps = enrollee.hear(&self.config.deployment, now, from, &message, rng);
                    self.enrolment(now, steps, rng);
                }
            }
            _ => self.blame(from, Offence::OutOfPlace("message to a leader")),
        }
    }

    fn command(&mut self, now: Now, command: LeaderCommand, rng: &mut dyn CryptoRngCore) {
        match command {
            LeaderCommand::Rekey | LeaderCommand::Evict(_) | LeaderCommand::EvictSlot(_)
                if self.lead.is_none() =>
            {
                self.out.event(LeaderEvent::NotLeading);
            }
            LeaderCommand::Rekey => self.rekey(now, rng),
            LeaderCommand::Evict(name) => match self.slot_of(&name) {
                None => self.evict_one_away(now, name, rng),
                Some(slot) => self.evict(now, &[slot], rng),
            },
            LeaderCommand::EvictSlot(slot) => self.evict_slot(now, slot, rng),
            LeaderCommand::Allow(serial) => {
                self.config.allow.insert(serial);
            }
            LeaderCommand::Send { channel, data } => self.speak(now, channel, &data, rng),
            LeaderCommand::ClockConfirmed(confirmed) => self.standby.clock_confirmed = confirmed,
            #[cfg(feature = "abke")]
            LeaderCommand::SlotKeys(key) => self.slot_keys(key),
            #[cfg(feature = "abe")]
            LeaderCommand::Envelope(command) => self.envelope_command(now, command, rng),
        }
    }

    /// What the last epoch left to be done: its outputs are out by now.
    fn go_on(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if let Some(lead) = self.lead.as_mut().filter(|lead| lead.unsettled) {
            lead.leadership.settle();
            lead.unsettled = false;
        }
        if due(self.backlog.deadline(), now.monotonic) {
            self.rekey(now, rng);
        }
    }

    fn tick(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let clock = now.monotonic;
        if due(self.enrollee.as_ref().and_then(Enrollee::deadline), clock) {
            let steps = self.enrollee.as_mut().map(|enrollee| enrollee.retry(now, rng));
            self.enrolment(now, steps.unwrap_or_default(), rng);
        }
        if due(self.ask_revocations, clock) {
            self.ask_for_revocations(now);
        }
        if due(self.waiting.tidying(), clock) {
            self.waiting.forget_old(now);
        }
        if due(self.batch_deadline(), clock) {
            self.close_batch(now, rng);
        }
        let renew = due(self.lead.as_ref().map(|lead| lead.renew), clock);
        let restart = due(self.restart_renewal, clock);
        if restart {
            self.restart_renewal = None;
            self.last_restart = Some(clock);
        }
        let parting = due(self.lead.as_ref().and_then(|lead| lead.parting), clock);
        if renew || restart || parting {
            self.rekey(now, rng);
        }
        if due(self.lead.as_ref().map(|lead| lead.sweep), clock) {
            self.dismiss_the_silent(now, rng);
        }
        self.tick_spreading(now, rng);
        if let Some(lead) = &mut self.lead {
            lead.voice.tick(now);
        }
        for buckets in [&mut self.list_answers, &mut self.catch_ups, &mut self.bare_catch_ups] {
            buckets.tick(clock);
        }
        self.tick_standby(now, rng);
        self.tick_envelopes(now);
    }

    fn batch_deadline(&self) -> Option<Duration> {
        self.waiting.deadline(&self.config.timing, self.arriving())
    }

    fn deadline(&self) -> Option<Duration> {
        if !self.booted {
            return Some(Duration::ZERO);
        }
        let lead = self.lead.as_ref();
        [
            self.enrollee.as_ref().and_then(Enrollee::deadline),
            self.ask_revocations,
            self.batch_deadline(),
            self.waiting.tidying(),
            self.restart_renewal,
            lead.map(|lead| lead.renew.min(lead.sweep)),
            lead.and_then(|lead| lead.parting),
            lead.and_then(|lead| lead.spreading.deadline()),
            // At once.
            lead.filter(|lead| lead.unsettled).map(|_| Duration::ZERO),
            self.backlog.deadline(),
            lead.and_then(|lead| Voice::deadline(&lead.voice)),
            self.standby_deadline(),
            self.envelopes_deadline(),
            self.gate_deadline(),
        ]
        .into_iter()
        .fold(None, earlier)
    }
}

impl<S: Suite> Machine for Leader<S> {
    type Command = LeaderCommand;
    type Event = LeaderEvent;
    type Record = LeaderRecord;

    fn handle_input(&mut self, now: Now, input: Input<'_, LeaderCommand>, rng: &mut dyn CryptoRngCore) {
        if !self.booted {
            self.boot(now, rng);
        }
        self.go_on(now, rng);
        let timeout = matches!(input, Input::Timeout);
        match input {
            Input::Timeout => {}
            Input::Connected { peer, route } => self.connected(now, peer, route, rng),
            Input::Disconnected { peer } => self.disconnected(now, peer, rng),
            Input::Received { from, via, bytes } => {
                self.via = via;
                self.received(now, from, bytes, rng);
                self.via = Via::Peer;
            }
            Input::Resumed => self.resumed(now, rng),
            Input::Command(command) => self.command(now, command, rng),
        }
        self.tick(now, rng);
        // Last, and with a timeout alone: no message of a member waits for the curve arithmetic of somebody who wants in.
        self.tick_gate(now, timeout, rng);
        self.settle_relays();
    }

    fn take_job(&mut self) -> Option<Job> {
        self.gate_job()
    }

    fn finish_job(&mut self, now: Now, done: Finished, rng: &mut dyn CryptoRngCore) {
        self.gate_done(now, done, rng);
    }

    fn poll_output(&mut self) -> Output<LeaderEvent, LeaderRecord> {
        let deadline = self.deadline();
        self.out.poll(deadline)
    }
}
