//! An anonymous edge: it proves that it satisfies what a leader demands, and is a member until its period
//! ends (§6.5).
//!
//! Such an edge reveals no identity: neither key nor spare points are in this machine. It makes one run of
//! the exchange over one connection, follows its group within the term, and then ends: the caller makes
//! another one for the next run, over another connection.
//!
//! It begins with nothing but its ledger (how often which leader was answered), which alone is stored, and
//! the revocation list that its drone fetched from the KGC under its name. An epoch that it must not fall
//! behind, a leader that it refuses, a list that a leader gave it: whatever a leader can write into a drone
//! and read back in its next membership links the two, however little is said. For the same reason it neither
//! asks leaders for revocation lists nor tells them of its own, takes one welcome in a run, and ends with one
//! that does not hold. Nothing older can be played to it: the pairwise secret is fresh in each run.
//!
//! It receives and sends, but it cannot sign; its boot number is 1 whenever it starts, because a number that
//! counts starts would distinguish drones, and no two runs ever have one epoch's key under one slot.

#[cfg(feature = "compromise")]
mod compromise;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::time::Duration;

use quiver_abke::Credential;
use quiver_ainq::{
    AgreedSecret, Deployment, EpochKeys, EpochPart, Error, GroupContext, GroupMembership, KemKey, Name,
    Pseudonym, Slot, Suite, UnixTime, VerifiedAuthority, leave_tag,
};
use quiver_crypto::Secret;
use quiver_crypto::canonical::{Malformed, Reader, Writer};
use quiver_group::edge::{
    EdgeCommand, EdgeContext, EdgeEvent, EdgeStatus, EdgeTiming, GroupMember, Leaders, MembershipEnd,
    StateChanged,
};
use quiver_kem::KemSetting;
use quiver_machine::{
    Backoff, Context, Destination, Input, Machine, Now, Offence, Outbox, Output, Peer, Primary, RestoreError,
    Revocations, Route, SharedRoleState, Snapshot, Via, due, earlier,
};
use quiver_message::{Message, Nonce, Refusal, Welcome};
use rand_core::CryptoRngCore;

use super::applicant::{Applicant, ApplicantConfig, ApplicantEvent};
use super::{AdmissionError, Ledger};
use crate::certifying::CertificationTerms;
use crate::message::{AdmissionLeave, AdmissionMessage};

/// Version of the encoded state: version ‖ fingerprint of the deployment ‖ lp(ledger).
const VERSION: u8 = 2;
/// Bytes that a ledger has at most.
const MAX_LEDGER: usize = 1 << 16;

/// Configuration of an anonymous edge.
#[derive(Clone, Debug)]
pub struct AnonymousConfig<S: Suite> {
    /// The deployment it belongs to.
    pub deployment: Deployment<S>,
    /// The group to join.
    pub group: Name,
    /// The authority that certified its fields.
    pub authority: VerifiedAuthority<S>,
    /// Credential of the drone.
    pub credential: Credential,
    /// The period that the credential is of.
    pub period: u64,
    /// The signed revocation list that the drone fetched from the KGC, under its name. No other is ever
    /// taken.
    pub revocations: Option<Vec<u8>>,
    /// Maximum number of answers to one leader in a period.
    pub most: u32,
    /// Maximum duration of one run of the exchange.
    pub patience: Duration,
    /// Times and rates.
    pub timing: EdgeTiming,
    /// The deployment's setting of a second factor (§24).
    pub kem: KemSetting,
}

/// Reason why an anonymous edge ended. The caller continues with another edge, over another connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// The drone was not admitted.
    Denied(AdmissionError),
    /// The period of its credential has ended, and the membership with it.
    PeriodOver,
    /// The leader knows it no more, or leads no more.
    Dropped,
    /// The drone was evicted.
    Evicted,
    /// The drone left on command.
    Left,
}

impl Ending {
    /// Returns true if showing the same credential once more would end the same way.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            Self::Dropped
            | Self::Denied(
                AdmissionError::Silent
                | AdmissionError::Refused(_)
                | AdmissionError::OutOfTurn(_)
                | AdmissionError::Welcome,
            ) => false,
            Self::Denied(AdmissionError::Exchange(error)) => *error == quiver_abke::Error::Unsatisfied,
            Self::Denied(_) | Self::PeriodOver | Self::Evicted | Self::Left => true,
        }
    }
}

/// Event of an anonymous edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnonymousEvent {
    /// Event that every edge reports.
    Edge(EdgeEvent),
    /// The drone is a member.
    Admitted {
        /// Pseudonym of the drone.
        pseudonym: Pseudonym,
        /// Slot of the drone.
        slot: Slot,
        /// End of this membership.
        until: UnixTime,
    },
    /// The membership, or the attempt, is over.
    Ended(Ending),
}

/// An anonymous edge as a machine: an [`Applicant`], and the member that it becomes.
#[derive(Debug)]
pub struct AnonymousEdge<S: Suite> {
    config: AnonymousConfig<S>,
    out: Outbox<AnonymousEvent, Snapshot>,
    /// Outputs of the membership, until they are passed on.
    member_out: Outbox<EdgeEvent, StateChanged>,
    boot_no: u32,
    /// The group, unless it is to leave.
    wanted: Option<Name>,
    revocations: Revocations<S>,
    leaders: Leaders,
    membership: GroupMember<S>,
    ledger: Ledger,
    /// End of the period.
    until: UnixTime,
    /// The same on the monotonic clock, as far as is known.
    ends: Option<Duration>,
    backoff: Backoff,
    run: AdmissionProgress<S>,
}

/// Progress of an anonymous edge.
#[derive(Debug)]
enum AdmissionProgress<S: Suite> {
    /// Not begun, or to be begun again: nothing was shown.
    Idle(Option<Duration>),
    /// The exchange is under way.
    Applying(Box<Applicant<S>>),
    /// The leader knows that the policy is satisfied; the welcome is to come.
    Admitted(AdmittedRun<S>),
    /// A member.
    Member,
    /// No more is to be done.
    Over,
}

#[derive(Debug)]
struct AdmittedRun<S: Suite> {
    peer: Peer,
    nonce: Nonce,
    pseudonym: Pseudonym,
    secret: AgreedSecret,
    /// κ of the run, where there is a second factor.
    kem: Option<KemKey<S>>,
    deadline: Duration,
}

impl<S: Suite> AnonymousEdge<S> {
    /// An anonymous edge that starts from what one before it persisted, or from nothing.
    ///
    /// # Errors
    /// [`RestoreError`] if the stored state is damaged, of another deployment, or does not hold, or if the
    /// authority certifies nothing.
    pub fn new(config: AnonymousConfig<S>, state: Option<&Snapshot>) -> Result<Self, RestoreError> {
        let terms = CertificationTerms::of(&config.authority).map_err(|_| RestoreError::Foreign)?;
        // §A5.3: the ledger is all that outlives a membership, beside what was fetched from the KGC.
        let ledger = match state {
            None => Ledger::default(),
            Some(state) => restored(state.as_bytes(), &config.deployment)?,
        };
        let mut revocations = Revocations::new();
        // §A5.3: the list was fetched from the KGC under the drone's name; leaders' lists are not taken.
        if let Some(list) = &config.revocations {
            revocations.offer(&config.deployment, list)?;
        }
        Ok(Self {
            out: Outbox::new(),
            member_out: Outbox::new(),
            boot_no: 0,
            wanted: Some(config.group.clone()),
            revocations,
            leaders: Leaders::new(),
            membership: GroupMember::new(tagged_leave).with_kem(config.kem),
            ledger,
            until: terms.end_of(config.period),
            ends: None,
            backoff: config.timing.backoff(),
            run: AdmissionProgress::Idle(None),
            config,
        })
    }

    /// The state of the edge.
    pub fn status(&self) -> EdgeStatus {
        self.membership.status(None, self.wanted.clone(), &self.revocations, self.boot_no)
    }

    /// Time at which the key of the epoch held was made, by the leader's clock.
    pub fn key_issued_at(&self) -> Option<UnixTime> {
        self.membership.key_issued_at(&self.config.deployment)
    }

    /// The leader of the epoch held.
    pub fn leader_name(&self) -> Option<Name> {
        self.membership.leader_name(&self.config.deployment)
    }

    /// A secret that all synced members of the epoch can derive under this name; `None` unless synced.
    pub fn export(&self, name: &Name) -> Option<Secret<32>> {
        self.membership.export(name)
    }

    /// Returns the epoch's keys, as [`Edge::epoch_keys`](quiver_group::Edge::epoch_keys) does, without a key
    /// to sign with.
    pub fn epoch_keys(&self, now: Now) -> Option<EpochKeys<S>> {
        self.membership.epoch_keys(now, None)
    }

    /// Shares the header, as [`Edge::share_header`](quiver_group::Edge::share_header) does.
    pub fn share_header(&mut self, shared: impl FnOnce(&Arc<[u8]>) -> Arc<[u8]>) {
        self.membership.share_header(shared);
    }

    /// Gives the membership an input, and passes on its outputs. It stores nothing: state that outlives a
    /// membership would distinguish it from those of other drones.
    fn follow<T>(
        &mut self,
        now: Now,
        rng: &mut dyn CryptoRngCore,
        act: impl FnOnce(&mut GroupMember<S>, &mut EdgeContext<'_, S>) -> T,
    ) -> T {
        let base = Context {
            now,
            rng,
            out: &mut self.member_out,
            deployment: &self.config.deployment,
            keypair: None,
            revocations: &self.revocations,
            group: self.wanted.as_ref(),
        };
        let (leaders, timing, boot_no) = (&mut self.leaders, &self.config.timing, self.boot_no);
        let result = act(&mut self.membership, &mut EdgeContext { base, leaders, timing, boot_no });
        loop {
            match self.member_out.poll(None) {
                Output::Timeout(_) => return result,
                Output::Transmit { to: Destination::Peer(peer), payload } => {
                    self.out.send_encoded(peer, payload);
                }
                Output::Transmit { to: Destination::Group, payload } => {
                    self.out.send_encoded_to_group(payload);
                }
                Output::Event(event) => self.out.event(AnonymousEvent::Edge(event)),
                // It does none of these but the first.
                Output::Persist(StateChanged)
                | Output::Block(_)
                | Output::Disconnect(_)
                | Output::Relay { .. }
                | Output::Penalize { .. } => {}
            }
        }
    }

    fn report_offence(&mut self, peer: Peer, offence: Offence) {
        self.out.event(AnonymousEvent::Edge(EdgeEvent::Blamed { peer, offence }));
    }

    /// Does the next thing that brings the edge into its group, if a leader is connected.
    fn approach(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if self.membership.is_member() {
            self.follow(now, rng, GroupMember::request_catch_up);
        } else {
            self.begin_run(now, rng);
        }
    }

    /// §A5: Greets the first connected leader, unless that was done already.
    fn begin_run(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let Some(peer) = self.leaders.first() else { return };
        if !matches!(&self.run, AdmissionProgress::Idle(retry) if retry.is_none_or(|retry| retry <= now.monotonic))
        {
            return;
        }
        // §A5.2: with the period, whatever could become a membership is over.
        if now.unix >= self.until {
            return self.end(Ending::PeriodOver);
        }
        self.run = AdmissionProgress::Applying(Box::new(Applicant::new(ApplicantConfig {
            deployment: self.config.deployment.clone(),
            group: self.config.group.clone(),
            authority: self.config.authority.clone(),
            credential: self.config.credential.clone(),
            period: self.config.period,
            revocations: self.revocations.list().clone(),
            ledger: self.ledger.clone(),
            most: self.config.most,
            patience: self.config.patience,
            kem: self.config.kem,
        })));
        self.apply(now, Input::Connected { peer, route: Route::Leader }, rng);
    }

    /// Gives the exchange under way an input, and does what it wants done.
    fn apply(&mut self, now: Now, input: Input<'_, Infallible>, rng: &mut dyn CryptoRngCore) {
        if let AdmissionProgress::Applying(applicant) = &mut self.run {
            applicant.handle_input(now, input, rng);
            self.drain_applicant(now, rng);
        }
    }

    /// A step of the exchange.
    fn exchange(&mut self, now: Now, from: Peer, message: &AdmissionMessage<S>, rng: &mut dyn CryptoRngCore) {
        match message {
            // §10.7: a leader that contradicted itself is not answered.
            AdmissionMessage::Challenge(challenge) if self.leaders.refuses(&challenge.leader) => {
                return self.report_offence(from, Offence::RefusedLeader);
            }
            AdmissionMessage::Challenge(_) | AdmissionMessage::Step(_) => {}
            AdmissionMessage::Hello(_) | AdmissionMessage::Proof(_) | AdmissionMessage::Leave(_) => {
                return self.report_offence(from, Offence::OutOfPlace("message to an edge"));
            }
        }
        match &mut self.run {
            AdmissionProgress::Applying(applicant) => {
                applicant.exchange(now, from, message, rng);
                self.drain_applicant(now, rng);
            }
            _ => self.report_offence(from, Offence::OutOfPlace("message to an applicant")),
        }
    }

    fn drain_applicant(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let mut events = Vec::new();
        while let AdmissionProgress::Applying(applicant) = &mut self.run {
            match applicant.poll_output() {
                // §A5.2: the count is stored before the leader learns anything.
                Output::Persist(ledger) => {
                    self.ledger = ledger;
                    self.out.persist(stored(&self.ledger, &self.config.deployment));
                }
                Output::Transmit { to: Destination::Peer(peer), payload } => {
                    self.out.send_encoded(peer, payload);
                }
                Output::Event(event) => events.push(event),
                Output::Timeout(_) => break,
                // It does neither.
                Output::Transmit { to: Destination::Group, .. }
                | Output::Block(_)
                | Output::Disconnect(_)
                | Output::Relay { .. }
                | Output::Penalize { .. } => {}
            }
        }
        for event in events {
            match event {
                ApplicantEvent::Admitted { pseudonym } => self.satisfied(now, Pseudonym(pseudonym)),
                ApplicantEvent::Failed(error) => self.denied(now, error, rng),
                ApplicantEvent::Blamed { peer, offence } => self.report_offence(peer, offence),
            }
        }
    }

    fn satisfied(&mut self, now: Now, pseudonym: Pseudonym) {
        let AdmissionProgress::Applying(applicant) = &mut self.run else { return };
        let Some((peer, nonce, session)) = applicant.take_run() else { return };
        // §A5.1: W, from the key of the exchange, takes the place of T.
        let secret = AgreedSecret::new(session.pairwise().expose());
        // §A4.3: κ of this run stands beside it.
        let kem = applicant.take_kem();
        let deadline = now.monotonic + self.config.timing.admission;
        self.run = AdmissionProgress::Admitted(AdmittedRun { peer, nonce, pseudonym, secret, kem, deadline });
    }

    /// Handles a failed run: as long as nothing was shown, the same may be tried again, with the next leader
    /// first.
    fn denied(&mut self, now: Now, error: AdmissionError, rng: &mut dyn CryptoRngCore) {
        // §A4.2: a connection has one run, once a key was shown on it.
        let shown = !matches!(&self.run, AdmissionProgress::Applying(applicant) if !applicant.has_shown());
        let again = match &error {
            AdmissionError::Silent => true,
            AdmissionError::OtherKem { own, leader } => {
                let (own, leader) = (*own, *leader);
                self.out.event(AnonymousEvent::Edge(EdgeEvent::KemDiffers { own, leader }));
                true
            }
            AdmissionError::Refused(reason) => reason.is_transient(),
            _ => false,
        };
        if shown || !again {
            return self.end(Ending::Denied(error));
        }
        self.leaders.rotate();
        self.run = AdmissionProgress::Idle(Some(now.monotonic + self.backoff.next(rng)));
    }

    fn dispatch(
        &mut self,
        now: Now,
        (from, via): (Peer, Via),
        message: &mut Message<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        // §13.6: messages received by gossip are never answered.
        if via == Via::Group && !message.is_publication() {
            return;
        }
        if let Message::Extension(extension) = message
            && let Some(read) = extension.decode(self.membership.expected())
        {
            return match read {
                Ok(message) => self.exchange(now, from, &message, rng),
                Err(error) => self.report_offence(from, error.into()),
            };
        }
        match (message, &mut self.run) {
            (Message::Refusal(refusal), AdmissionProgress::Applying(applicant)) => {
                applicant.refused(from, refusal);
                self.drain_applicant(now, rng);
            }
            (Message::Refusal(refusal), AdmissionProgress::Admitted(_)) => self.refused(from, refusal),
            (Message::Welcome(welcome), _) => self.welcomed(now, from, welcome, rng),
            // §A5.3: a list that a leader sends to some drones only would distinguish them from others.
            (Message::RevocationList(_), _)
            // For drones with a name.
            | (Message::JoinChallenge(_), _)
            | (Message::EnrolCookie(_), _)
            | (Message::EnrolReply(_), _) => {}
            (message, _) => {
                let handle = |member: &mut GroupMember<S>, cx: &mut EdgeContext<'_, S>| {
                    member.handle(cx, (from, via), message)
                };
                if let Some(end) = self.follow(now, rng, handle) {
                    self.membership_ended(now, end);
                }
            }
        }
    }

    /// Takes a refusal after the exchange.
    fn refused(&mut self, from: Peer, refusal: &Refusal) {
        if matches!(&self.run, AdmissionProgress::Admitted(run) if run.peer == from && refusal.reference == run.nonce)
        {
            self.end(Ending::Denied(AdmissionError::Refused(refusal.reason)));
        }
    }

    /// The welcome that follows the exchange.
    fn welcomed(&mut self, now: Now, from: Peer, welcome: &mut Welcome<S>, rng: &mut dyn CryptoRngCore) {
        let AdmissionProgress::Admitted(admitted) = &self.run else { return };
        if admitted.peer != from || admitted.nonce != welcome.nonce {
            return;
        }
        let (pseudonym, until) = (admitted.pseudonym, self.until);
        match self.accept(now, admitted, welcome) {
            // §A5.3: once: the choice among several welcomes would reveal what a drone has seen before, or
            // its clock.
            Err(offence) => {
                self.report_offence(from, offence);
                self.end(Ending::Denied(AdmissionError::Welcome));
            }
            Ok(membership) => {
                self.run = AdmissionProgress::Member;
                self.out.event(AnonymousEvent::Admitted { pseudonym, slot: membership.slot(), until });
                self.follow(now, rng, |member, cx| member.admit(cx, from, membership, &welcome.header));
            }
        }
    }

    /// The membership that a welcome gives, if everything about it holds.
    fn accept(
        &self,
        now: Now,
        admitted: &AdmittedRun<S>,
        welcome: &mut Welcome<S>,
    ) -> Result<GroupMembership<S>, Offence> {
        // §10.7: not by a leader that is refused.
        self.leaders.check(&welcome.header)?;
        let (deployment, group) = (self.config.deployment.clone(), &self.config.group);
        // §7.3, but that no epoch is too old: the secret is of this run, so no other header can have been
        // made for it.
        let header =
            welcome.header.clone().verify(&deployment, group, None, self.revocations.list(), now.unix)?;
        welcome.header.core.leader.clone_from(&header.core().leader);
        // §8.2: the path message of a join carries the nonce of this run as r.
        if matches!(&welcome.part, EpochPart::Path(path) if path.r != admitted.nonce) {
            return Err(Error::Replay.into());
        }
        let context = GroupContext { deployment, group: group.clone(), leader: header.core().leader.clone() };
        let AdmittedRun { pseudonym, secret, kem, .. } = admitted;
        // §14: the context names the pseudonym and the slot, and no key.
        let secrets = (secret, kem.as_ref());
        Ok(GroupMembership::admitted(&context, pseudonym, secrets, &header, &welcome.part)?)
    }

    fn command(&mut self, now: Now, command: EdgeCommand, rng: &mut dyn CryptoRngCore) {
        match command {
            EdgeCommand::Leave => {
                self.wanted = None;
                if self.membership.is_member() {
                    self.follow(now, rng, GroupMember::leave);
                } else {
                    self.membership_ended(now, MembershipEnd::Left);
                }
            }
            EdgeCommand::Send { channel, data, signed } => {
                self.follow(now, rng, |member, cx| member.send(cx, channel, &data, signed));
            }
            EdgeCommand::CatchUp => self.follow(now, rng, GroupMember::request_catch_up),
            // Its group was chosen when it was made, and it has no key that opens envelopes.
            _ => {}
        }
    }

    fn disconnected(&mut self, now: Now, peer: Peer, rng: &mut dyn CryptoRngCore) {
        self.leaders.disconnected(peer);
        self.apply(now, Input::Disconnected { peer }, rng);
        if matches!(&self.run, AdmissionProgress::Admitted(admitted) if admitted.peer == peer) {
            self.end(Ending::Dropped);
        }
    }

    fn membership_ended(&mut self, now: Now, end: MembershipEnd) {
        match end {
            MembershipEnd::Left => {
                self.out.event(AnonymousEvent::Edge(EdgeEvent::Left));
                self.end(Ending::Left);
            }
            // §A5.2: the leader knows this member no more: the drone applies again.
            MembershipEnd::OutOfStep => self.end(Ending::Dropped),
            MembershipEnd::Removed | MembershipEnd::Evicted => {
                self.out.event(AnonymousEvent::Edge(EdgeEvent::Evicted));
                // §A5.2: the end of a period removes all anonymous members.
                let over = now.unix >= self.until;
                self.end(if over { Ending::PeriodOver } else { Ending::Evicted });
            }
        }
    }

    /// Ends the membership or the attempt: the keys are erased, and nothing more is sent.
    fn end(&mut self, why: Ending) {
        if !matches!(self.run, AdmissionProgress::Over) {
            self.run = AdmissionProgress::Over;
            self.membership.end();
            self.out.event(AnonymousEvent::Ended(why));
        }
    }

    fn tick(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if let Some(end) = self.follow(now, rng, GroupMember::tick) {
            self.membership_ended(now, end);
        }
        let left = Duration::from_secs(self.until.saturating_sub(now.unix));
        self.ends = Some(now.monotonic.saturating_add(left));
        // §A5.2: a member that misses the end holds a key that no other member accepts any more.
        if now.unix >= self.until {
            return self.end(Ending::PeriodOver);
        }
        match &self.run {
            AdmissionProgress::Idle(retry) if due(*retry, now.monotonic) => self.begin_run(now, rng),
            AdmissionProgress::Admitted(admitted) if due(Some(admitted.deadline), now.monotonic) => {
                self.end(Ending::Denied(AdmissionError::Silent));
            }
            AdmissionProgress::Applying(applicant) if due(applicant.deadline(), now.monotonic) => {
                self.apply(now, Input::Timeout, rng);
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Duration> {
        if self.boot_no == 0 {
            return Some(Duration::ZERO);
        }
        let own = match &self.run {
            AdmissionProgress::Idle(retry) => *retry,
            AdmissionProgress::Applying(applicant) => applicant.deadline(),
            AdmissionProgress::Admitted(admitted) => Some(admitted.deadline),
            AdmissionProgress::Member => None,
            AdmissionProgress::Over => return None,
        };
        earlier(earlier(own, self.ends), self.membership.deadline())
    }
}

impl<S: Suite> Machine for AnonymousEdge<S> {
    type Command = EdgeCommand;
    type Event = AnonymousEvent;
    type Record = Snapshot;

    fn handle_input(&mut self, now: Now, input: Input<'_, EdgeCommand>, rng: &mut dyn CryptoRngCore) {
        // §A5.1: a start is another membership: the boot number begins with 1.
        self.boot_no = self.boot_no.max(1);
        match input {
            Input::Connected { peer, route: Route::Leader } => {
                self.leaders.connected(peer);
                self.approach(now, rng);
            }
            Input::Timeout | Input::Connected { .. } => {}
            Input::Disconnected { peer } => self.disconnected(now, peer, rng),
            Input::Received { from, via, bytes } => {
                if let Some(mut message) = self.decode((from, via), bytes) {
                    self.dispatch(now, (from, via), &mut message, rng);
                }
            }
            // §13.9: the machine may be a copy of itself: another boot number, and the epoch is asked for.
            Input::Resumed => {
                self.boot_no = self.boot_no.saturating_add(1);
                self.follow(now, rng, GroupMember::resume);
            }
            Input::Command(command) => self.command(now, command, rng),
        }
        self.tick(now, rng);
    }

    fn poll_output(&mut self) -> Output<AnonymousEvent, Snapshot> {
        let deadline = self.deadline();
        self.out.poll(deadline)
    }
}

impl<S: Suite> Primary for AnonymousEdge<S> {
    type Suite = S;

    fn decode(&mut self, (from, _): (Peer, Via), bytes: &[u8]) -> Option<Message<S>> {
        let expected = self.membership.expected();
        let decoded = Message::decode_expecting(&self.config.deployment, bytes, expected);
        decoded.map_err(|error| self.report_offence(from, error.into())).ok()
    }

    fn receive(&mut self, now: Now, from: (Peer, Via), mut message: Message<S>, rng: &mut dyn CryptoRngCore) {
        self.boot_no = self.boot_no.max(1);
        self.dispatch(now, from, &mut message, rng);
        self.tick(now, rng);
    }

    fn wake(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        self.handle_input(now, Input::Timeout, rng);
    }

    fn blame(&mut self, (peer, _): (Peer, Via), offence: Offence) {
        self.report_offence(peer, offence);
    }

    fn shared(&self) -> SharedRoleState<'_, S> {
        let (deployment, group) = (&self.config.deployment, self.wanted.as_ref());
        SharedRoleState { deployment, keypair: None, revocations: &self.revocations, group }
    }
}

/// §12.1: An anonymous member leaves with a tag, for there is no key to sign with.
fn tagged_leave<S: Suite>(
    _: &mut Context<'_, S, EdgeEvent, StateChanged>,
    membership: &GroupMembership<S>,
) -> Option<Message<S>> {
    let (group, slot, held) = (membership.group().clone(), membership.slot(), *membership.digest());
    // §14: PRF(A, "leave", D held).
    let tag = leave_tag::<S>(membership.auth_key(), &held);
    Some(AdmissionMessage::Leave(AdmissionLeave { group, slot, held, tag }).into())
}

/// All that an anonymous edge stores.
fn stored<S: Suite>(ledger: &Ledger, deployment: &Deployment<S>) -> Snapshot {
    // §A5.3: the ledger, and nothing that another membership could be recognised by.
    let (fingerprint, ledger) = (deployment.fingerprint(), ledger.encode());
    Snapshot::new(Writer::new().u8(VERSION).fixed(&fingerprint).lp(&ledger).finish())
}

/// The ledger in a stored state.
fn restored<S: Suite>(bytes: &[u8], deployment: &Deployment<S>) -> Result<Ledger, RestoreError> {
    let mut reader = Reader::new(bytes);
    let mut read = || -> Result<_, Malformed> {
        let (version, fingerprint) = (reader.u8()?, reader.array::<32>()?);
        let ledger = Ledger::decode(reader.lp(MAX_LEDGER)?)?;
        reader.end()?;
        Ok((version, fingerprint, ledger))
    };
    match read() {
        Ok((VERSION, fingerprint, ledger)) if fingerprint == deployment.fingerprint() => Ok(ledger),
        Ok((VERSION, ..)) => Err(RestoreError::Foreign),
        _ => Err(RestoreError::Damaged),
    }
}
