//! An edge drone: enrols, joins a group, follows its keys, speaks and listens.
//!
//! After any start an edge is *unsynced*: it neither sends nor reads until a leader's answer to its own nonce shows
//! which epoch is current.

mod anonymous;
#[cfg(feature = "compromise")]
mod compromise;
mod enrolment;
mod enveloping;
mod failover;
mod interface;
mod interning;
mod joining;
mod membership;
mod provisioning;
mod store;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::traffic::MAX_SENDERS;
use quiver_ainq::{
    Deployment, DroneKeypair, DronePublicKey, Epoch, IssuedToken, Name, Slot, Suite, UnixTime,
};
use quiver_crypto::Secret;
use quiver_message::{Message, MessageError};
use rand_core::CryptoRngCore;

#[cfg(feature = "abke")]
use self::anonymous::Anonymous;
#[cfg(feature = "abke")]
pub use self::anonymous::{AnonymousConfig, Ending};
#[cfg(feature = "compromise")]
pub use self::compromise::CompromisedState;

pub use self::interface::{EdgeCommand, EdgeConfig, EdgeEvent, EdgeTiming};
use self::joining::Joining;
use self::membership::history::History;
use self::membership::member::Member;
use self::membership::spare_points::SparePoints;
pub use self::provisioning::{MAX_PROVISIONING_LEN, Provisioning, ProvisioningError, RadioPlace};
use crate::refused::Refused;
use quiver_enrolment::Enrollee;
use quiver_enrolment::Kgcs;
use quiver_machine::Outbox;
pub use quiver_machine::RestoreError;
use quiver_machine::Revocations;
use quiver_machine::{Backoff, due, earlier};
use quiver_machine::{Input, Machine, Now, Offence, Output, Peer, Route, Snapshot, Via};

/// An edge drone as a machine.
#[derive(Debug)]
pub struct Edge<S: Suite> {
    config: Settings<S>,
    /// Until it has enrolled. In a box like the enrolment, because an edge lives mostly without either.
    token: Option<Box<IssuedToken<S>>>,
    out: Outbox<EdgeEvent, Snapshot>,
    /// Counts starts; made durable before anything is sent.
    boot_no: u32,
    booted: bool,
    enrollee: Option<Box<Enrollee<S>>>,
    keypair: Option<DroneKeypair<S>>,
    revocations: Revocations<S>,
    refused: Refused,
    /// Connected leaders, the one to talk to first.
    leaders: Vec<Peer>,
    wanted: Option<Name>,
    /// How far each group was when this drone was in it.
    history: History<S>,
    /// The leader that is likely to speak next, with its Y once a header of it was believed: decoding its key and computing
    /// Y for every header would be most of what following costs. What is believed does not depend on it.
    expected: Option<Box<DronePublicKey<S>>>,
    standing: Standing<S>,
    spares: SparePoints<S>,
    /// How many senders of each kind it keeps windows of in an epoch.
    senders: u32,
    /// Once there are parameters or keys. In a box, because most edges of a swarm have none.
    #[cfg(feature = "abe")]
    envelopes: Option<Box<quiver_envelope::Envelopes>>,
    #[cfg(feature = "abe")]
    envelope_limits: quiver_envelope::EnvelopeLimits,
    /// For one without a name. In a box, because most have one.
    #[cfg(feature = "abke")]
    anonymous: Option<Box<Anonymous<S>>>,
}

/// What stays of an [`EdgeConfig`].
#[derive(Debug)]
struct Settings<S: Suite> {
    deployment: Deployment<S>,
    group: Option<Name>,
    kgcs: Kgcs<S>,
    timing: EdgeTiming,
}

/// Where the edge stands with its group.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one per machine, and most of its life the large one")]
enum Standing<S: Suite> {
    /// No member. The deadline, if any, is for the next attempt to join.
    Outside { retry: Option<Duration>, backoff: Backoff },
    /// Asking to be let in.
    Joining(Joining<S>),
    /// A member, perhaps not yet synced.
    Member(Member<S>),
}

/// How an edge is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeStatus {
    /// Its name, once enrolled.
    pub name: Option<Name>,
    /// The group it is in or wants to be in.
    pub group: Option<Name>,
    /// The epoch held.
    pub epoch: Option<Epoch>,
    /// D of that epoch.
    pub digest: Option<[u8; 32]>,
    /// Its slot.
    pub slot: Option<Slot>,
    /// Whether it holds the key of an epoch that it knows to be current.
    pub synced: bool,
    /// Until when the key is valid.
    pub valid_until: Option<UnixTime>,
    /// On the monotonic clock: when a leader last answered a question of ours, so that the answer cannot be older than it.
    pub answered: Option<Duration>,
    /// The newest revocation list held, 0 for none.
    pub revocation_number: u64,
    /// When that list is stale; none without a list.
    pub revocations_next_update: Option<UnixTime>,
    /// How often it was started.
    pub boot_no: u32,
}

impl<S: Suite> Edge<S> {
    /// An edge that starts from what it persisted, or from nothing.
    ///
    /// # Errors
    /// If the stored state is damaged, of another version or deployment, or does not hold. A membership that cannot be restored is
    /// no error: it is dropped, as [`EdgeEvent::MembershipDropped`] says, and the edge joins anew.
    pub fn new(config: EdgeConfig<S>, state: Option<&Snapshot>) -> Result<Self, RestoreError> {
        match state {
            Some(snapshot) => Self::restore(config, snapshot),
            None => Ok(Self::fresh(config)),
        }
    }

    fn fresh(config: EdgeConfig<S>) -> Self {
        let EdgeConfig { deployment, group, token, kgcs, timing } = config;
        let (token, config) = (token.map(Box::new), Settings { deployment, group, kgcs, timing });
        let backoff = Backoff::new(config.timing.retry, config.timing.retry_max);
        Self {
            out: Outbox::new(),
            boot_no: 0,
            booted: false,
            token,
            enrollee: None,
            keypair: None,
            revocations: Revocations::new(),
            refused: Refused::new(),
            leaders: Vec::new(),
            wanted: config.group.clone(),
            history: History::new(),
            expected: None,
            standing: Standing::Outside { retry: None, backoff },
            spares: SparePoints::new(),
            senders: MAX_SENDERS,
            #[cfg(feature = "abe")]
            envelopes: None,
            #[cfg(feature = "abe")]
            envelope_limits: quiver_envelope::EnvelopeLimits::default(),
            #[cfg(feature = "abke")]
            anonymous: None,
            config,
        }
    }

    /// Keeps track of fewer senders in an epoch than a service does: full windows of so many that sign and as many that do
    /// not, some 200 bytes each; of [eight times](quiver_ainq::traffic::REMEMBERED_PER_SENDER) as many, their last number, 16 bytes each. Twice
    /// that for as long as the epoch before is still heard. Who is heard least recently is forgotten first, and nothing of
    /// it that was received is received again.
    #[must_use]
    pub const fn with_senders(mut self, senders: u32) -> Self {
        self.senders = senders;
        self
    }

    /// The same with revocation lists of so many bytes at most: longer ones come without their edges, of which an edge loses
    /// nothing but that their signed messages are told from others'. For boards.
    #[must_use]
    pub fn with_list_limit(mut self, max_len: u32) -> Self {
        self.revocations.limit(max_len);
        self
    }

    /// The same, but that it joins nobody under a revocation list that is past its next update. It asks the leader for a newer
    /// one, and tries again.
    #[cfg(feature = "services")]
    #[must_use]
    pub const fn with_stale_lists_refused(mut self) -> Self {
        self.revocations.refuse_stale = true;
        self
    }

    /// How it is doing.
    pub fn status(&self) -> EdgeStatus {
        let member = self.member();
        EdgeStatus {
            name: self.keypair.as_ref().map(|keypair| keypair.public().identity.name.clone()),
            group: self.wanted.clone(),
            epoch: member.map(|member| member.membership.epoch()),
            digest: member.map(|member| *member.membership.digest()),
            slot: member.map(|member| member.membership.slot()),
            synced: member.is_some_and(Member::synced),
            valid_until: member.and_then(|member| member.valid_until),
            answered: member.and_then(|member| member.answered),
            revocation_number: self.revocations.number(),
            revocations_next_update: self.revocations.next_update(),
            boot_no: self.boot_no,
        }
    }

    /// When, by the leader's clock, the key of the epoch held was made.
    pub fn key_issued_at(&self) -> Option<UnixTime> {
        Some(self.member()?.header.header(&self.config.deployment)?.core.issued_at)
    }

    /// This drone's own key, once enrolled.
    pub fn keypair(&self) -> Option<&DroneKeypair<S>> {
        self.keypair.as_ref()
    }

    /// Signs what this drone's clock says, for whom it asks to be let in; none without a key, or if it is not to be known.
    #[cfg(feature = "services")]
    pub fn vouch(&self, statement: &[u8], rng: &mut dyn CryptoRngCore) -> Option<Vec<u8>> {
        let keypair = self.keypair.as_ref().filter(|_| !self.is_anonymous())?;
        Some(quiver_machine::vouch(&self.config.deployment, keypair, statement, rng))
    }

    /// A secret that all synced members of the epoch can derive under this name; none unless synced.
    pub fn export(&self, name: &Name) -> Option<Secret<32>> {
        let member = self.member().filter(|member| member.synced())?;
        Some(member.membership.group_key()?.export(name, member.membership.digest()))
    }

    fn member(&self) -> Option<&Member<S>> {
        match &self.standing {
            Standing::Member(member) => Some(member),
            _ => None,
        }
    }

    fn backoff(&self) -> Backoff {
        Backoff::new(self.config.timing.retry, self.config.timing.retry_max)
    }

    /// Makes the state durable. An edge without a name has none but its ledger, which is made durable when it changes.
    #[inline(never)]
    fn persist(&mut self) {
        if self.is_anonymous() {
            return;
        }
        let snapshot = self.snapshot();
        self.out.persist(snapshot);
    }

    fn blame(&mut self, peer: Peer, offence: impl Into<Offence>) {
        self.out.event(EdgeEvent::Blamed { peer, offence: offence.into() });
    }

    /// The first input after a start: a new boot number, durable before anything is sent.
    #[inline(never)]
    fn boot(&mut self, rng: &mut dyn CryptoRngCore) {
        self.booted = true;
        self.boot_no = if self.is_anonymous() { 1 } else { self.boot_no.saturating_add(1) };
        if !self.is_anonymous() && self.keypair.is_none() && self.enrollee.is_none() {
            self.start_enrolment(rng);
        }
        if self.config.group.is_some() && !matches!(self.standing, Standing::Member(_)) {
            self.wanted.clone_from(&self.config.group);
        }
        self.persist();
    }

    /// As after a start: a new boot number, durable first, and unsynced until a leader's answer shows what is current. The
    /// group key goes, because the receiver that goes with it may have accepted messages before that it does not know of.
    #[cfg(feature = "services")]
    fn resumed(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        self.boot_no = self.boot_no.saturating_add(1);
        let backoff = self.backoff();
        if let Standing::Member(member) = &mut self.standing {
            member.stand_still();
            member.backoff = backoff;
        }
        self.persist();
        if self.member().is_some() {
            self.catch_up(now, rng);
        }
    }

    #[inline(never)]
    fn connected(&mut self, now: Now, peer: Peer, route: Route, rng: &mut dyn CryptoRngCore) {
        match route {
            Route::Kgc => {
                if let Some(enrollee) = &mut self.enrollee {
                    let steps = enrollee.connected(now, peer, rng);
                    self.enrolment(now, steps, rng);
                }
                #[cfg(feature = "threshold")]
                if !self.is_anonymous() {
                    self.prove_enrolment(peer, rng);
                }
            }
            Route::Leader => {
                // Mostly there is one, and a list grows to four.
                self.leaders.reserve_exact(1);
                self.leaders.push(peer);
                self.approach(now, rng);
                self.introduce_soon(now);
            }
            Route::Inbound | Route::Member(_) => {}
        }
    }

    #[inline(never)]
    fn disconnected(&mut self, now: Now, peer: Peer, rng: &mut dyn CryptoRngCore) {
        self.leaders.retain(|leader| *leader != peer);
        if let Some(enrollee) = &mut self.enrollee {
            let steps = enrollee.disconnected(now, peer, rng);
            self.enrolment(now, steps, rng);
        }
        self.run_disconnected(now, peer, rng);
        if matches!(&self.standing, Standing::Joining(joining) if joining.peer == peer) {
            if self.wanted.is_none() {
                return self.left();
            }
            self.end_membership();
            self.approach(now, rng);
        }
    }

    /// Does the next thing that brings the edge into its group, if a leader is connected.
    fn approach(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        match self.standing {
            Standing::Outside { .. } => self.begin_join(now, rng),
            Standing::Joining(_) => {}
            // Also while leaving: only who is in step can say so.
            Standing::Member(_) => self.catch_up(now, rng),
        }
    }

    /// Forgets the membership and its keys.
    fn end_membership(&mut self) {
        self.end_membership_until(None, self.backoff());
    }

    fn end_membership_until(&mut self, retry: Option<Duration>, backoff: Backoff) {
        let outside = Standing::Outside { retry, backoff };
        if let Standing::Member(member) = core::mem::replace(&mut self.standing, outside) {
            self.history.keep(member.header);
        }
    }

    #[inline(never)]
    fn received(&mut self, now: Now, (from, via): (Peer, Via), bytes: &[u8], rng: &mut dyn CryptoRngCore) {
        let deployment = &self.config.deployment;
        let message = match Message::decode_expecting(deployment, bytes, self.expected.as_deref()) {
            Ok(message) => message,
            // Built to know some of the messages that there are: others pass by.
            Err(MessageError::NoBody) if cfg!(not(feature = "services")) => return,
            Err(error) => return self.blame(from, error),
        };
        // §13.6: what comes by gossip is answered to nobody.
        if via == Via::Group && !message.is_publication() {
            return;
        }
        match message {
            Message::EnrolCookie(_) | Message::EnrolReply(_) => self.enrolling(now, from, &message, rng),
            #[cfg(feature = "threshold")]
            Message::EnrolCommitment(_) | Message::EnrolShare(_) => {
                self.enrolling(now, from, &message, rng);
            }
            Message::Refusal(_) if self.enrollee.is_some() => self.enrolling(now, from, &message, rng),
            #[cfg(feature = "abke")]
            Message::AdmissionChallenge(_) | Message::AdmissionStep(_) => {
                self.hear_leader(now, from, &message, rng);
            }
            Message::Refusal(refusal) => self.refused(now, from, &refusal, rng),
            Message::JoinChallenge(challenge) => self.challenged(now, from, &challenge, rng),
            Message::Welcome(mut welcome) => self.welcomed(now, from, &mut welcome, rng),
            Message::Rekey(mut rekey) => self.rekeyed(now, (from, via), &mut rekey, rng),
            Message::CatchUpReply(mut reply) => self.caught_up(now, from, &mut reply, rng),
            Message::SpareAck(ack) => self.spare_acknowledged(from, &ack),
            Message::EvictionNotice(notice) => self.eviction_notice(now, from, &notice),
            #[cfg(feature = "abe")]
            Message::Envelope(envelope) => self.envelope(now, from, &envelope),
            #[cfg(feature = "abe")]
            Message::OpeningRequest(request) => self.opening_request(now, &request),
            Message::GroupMessage(message) => self.receive_message(now, from, &message, rng),
            Message::RevocationList(list) => self.revocation_list(now, from, &list.list),
            Message::EquivocationProof(proof) => {
                let _ = self.equivocation(now, from, *proof, rng);
            }
            _ => self.blame(from, Offence::OutOfPlace("message to an edge")),
        }
    }

    #[inline(never)]
    fn revocation_list(&mut self, now: Now, from: Peer, bytes: &[u8]) {
        // Without a name it has the list that it was made with: one that a leader gives to some drones only would tell them from others.
        if self.is_anonymous() {
            return;
        }
        match self.revocations.offer(&self.config.deployment, bytes) {
            Ok(false) => {}
            Err(error) => self.blame(from, error),
            Ok(true) => {
                // A revoked leader's group is no group: its keys are erased with the membership.
                let header = self.member().and_then(|member| member.header.header(&self.config.deployment));
                if header.is_some_and(|header| self.revocations.names(&header.core.leader)) {
                    let retry = Some(now.monotonic + self.config.timing.retry);
                    self.end_membership_until(retry, self.backoff());
                }
                self.persist();
                self.out.event(EdgeEvent::RevocationList { number: self.revocations.number() });
            }
        }
    }

    #[inline(never)]
    fn command(&mut self, now: Now, command: EdgeCommand, rng: &mut dyn CryptoRngCore) {
        match command {
            // Its group was chosen when it was made.
            EdgeCommand::Join(_) if self.is_anonymous() => {}
            EdgeCommand::Join(group) => {
                if self.wanted.as_ref() != Some(&group) || self.member().is_none() {
                    self.wanted = Some(group);
                    self.end_membership();
                    self.persist();
                    self.approach(now, rng);
                }
            }
            EdgeCommand::Leave => self.leave(now, rng),
            EdgeCommand::Send { channel, data, signed } => {
                self.send_message(now, channel, &data, signed, rng)
            }
            #[cfg(feature = "abe")]
            EdgeCommand::Envelope(command) => self.envelope_command(now, command, rng),
        }
    }

    #[inline(never)]
    fn tick(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if due(self.enrollee.as_deref().and_then(Enrollee::deadline), now.monotonic) {
            let steps = self.enrollee.as_mut().map(|enrollee| enrollee.retry(now, rng));
            self.enrolment(now, steps.unwrap_or_default(), rng);
        }
        self.tick_standing(now, rng);
        self.tick_run(now, rng);
        self.tick_spares(now, rng);
        self.tick_envelopes(now);
    }

    fn tick_standing(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        match &mut self.standing {
            Standing::Outside { retry, .. } => {
                if due(*retry, now.monotonic) {
                    *retry = None;
                    self.approach(now, rng);
                }
            }
            Standing::Joining(joining) => {
                if due(Some(joining.deadline), now.monotonic) {
                    self.retry_join(now, rng);
                }
            }
            Standing::Member(_) => self.tick_member(now, rng),
        }
    }

    fn deadline(&self) -> Option<Duration> {
        if !self.booted {
            return Some(Duration::ZERO);
        }
        let standing = match &self.standing {
            Standing::Outside { retry, .. } => *retry,
            Standing::Joining(joining) => Some(joining.deadline),
            Standing::Member(member) => member.deadline(),
        };
        let enrolment = self.enrollee.as_deref().and_then(Enrollee::deadline);
        let standing = earlier(standing, self.run_deadline());
        earlier(earlier(standing, enrolment), earlier(self.spares.deadline(), self.envelopes_deadline()))
    }
}

impl<S: Suite> Machine for Edge<S> {
    type Command = EdgeCommand;
    type Event = EdgeEvent;
    type Record = Snapshot;

    fn handle_input(&mut self, now: Now, input: Input<'_, EdgeCommand>, rng: &mut dyn CryptoRngCore) {
        if !self.booted {
            self.boot(rng);
        }
        match input {
            Input::Timeout => {}
            Input::Connected { peer, route } => self.connected(now, peer, route, rng),
            Input::Disconnected { peer } => self.disconnected(now, peer, rng),
            Input::Received { from, via, bytes } => self.received(now, (from, via), bytes, rng),
            #[cfg(feature = "services")]
            Input::Resumed => self.resumed(now, rng),
            // No board is brought back with its memory.
            #[cfg(not(feature = "services"))]
            Input::Resumed => {}
            Input::Command(command) => self.command(now, command, rng),
        }
        self.tick(now, rng);
    }

    fn poll_output(&mut self) -> Output<EdgeEvent, Snapshot> {
        let deadline = self.deadline();
        self.out.poll(deadline)
    }
}
