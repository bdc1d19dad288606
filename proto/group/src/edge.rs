//! An edge drone: enrols, joins a group, follows its keys, sends and receives messages.
//!
//! After any start an edge is *unsynced*: it neither sends nor opens messages until a leader's answer to its
//! own nonce shows which epoch is current. It is composed of parts that own their state (`enrolment`,
//! `joining`, `membership`, and `failover` for whom it asks); what is here gives each its inputs, and
//! does what their answers say.

#[cfg(feature = "compromise")]
pub mod compromise;
mod context;
mod enrolment;
mod failover;
mod interface;
mod joining;
mod kem_keys;
mod membership;
mod provisioning;
mod store;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{
    Deployment, DroneKeypair, DronePublicKey, EpochKeys, Label, Name, Signature, Slot, Suite, UnixTime,
};
use quiver_crypto::Secret;
use quiver_enrolment::EnrolmentClient;
use quiver_kem::KemSetting;
pub use quiver_machine::RestoreError;
use quiver_machine::{
    Context, Input, Machine, Now, Offence, Outbox, Output, Peer, Primary, Revocations, Route,
    SharedRoleState, Snapshot, Via, earlier,
};
use quiver_message::{Message, MessageError, RefusalReason};
use rand_core::CryptoRngCore;

use crate::group_channel::SenderPolicy;

pub use self::context::{EdgeContext, StateChanged};
use self::enrolment::{Enrolment, EnrolmentInput};
pub use self::failover::Leaders;
pub use self::interface::{EdgeCommand, EdgeConfig, EdgeEvent, EdgeStatus, EdgeTiming};
use self::joining::JoinAttempts;
pub use self::membership::{GroupMember, LeaveMessage, MembershipEnd, signed_leave};
pub use self::provisioning::{MAX_PROVISIONING_LEN, Provisioning, ProvisioningError, RadioPlace};

/// True where edges are compiled for services. On boards messages of an unknown kind pass by, and the code behind this
/// constant, which they have no room for, is left out by the compiler.
const AT_SERVICES: bool = cfg!(feature = "services");

/// An edge drone as a machine.
#[derive(Debug)]
pub struct Edge<S: Suite> {
    config: Settings<S>,
    out: Outbox<EdgeEvent, StateChanged>,
    /// Counts starts; made durable before anything is sent.
    boot_no: u32,
    booted: bool,
    /// The group that the drone is in or wants to be in.
    wanted: Option<Name>,
    revocations: Revocations<S>,
    leaders: Leaders,
    enrolment: Enrolment<S>,
    joining: JoinAttempts<S>,
    membership: GroupMember<S>,
}

/// The lasting part of an [`EdgeConfig`].
#[derive(Debug)]
struct Settings<S: Suite> {
    deployment: Deployment<S>,
    group: Option<Name>,
    timing: EdgeTiming,
}

impl<S: Suite> Edge<S> {
    /// An edge that starts from what it persisted, or from nothing.
    ///
    /// # Errors
    /// Fails if the stored state is damaged, of another version or deployment, or does not verify. A
    /// membership that cannot be restored is no error: it is dropped, with an
    /// [`EdgeEvent::MembershipDropped`], and the edge joins anew.
    pub fn new(config: EdgeConfig<S>, state: Option<&Snapshot>) -> Result<Self, RestoreError> {
        match state {
            Some(snapshot) => Self::replay(config, snapshot),
            None => Ok(Self::fresh(config)),
        }
    }

    fn fresh(config: EdgeConfig<S>) -> Self {
        let EdgeConfig { deployment, group, token, kgcs, timing } = config;
        Self {
            out: Outbox::new(),
            boot_no: 0,
            booted: false,
            wanted: group.clone(),
            revocations: Revocations::new(),
            leaders: Leaders::new(),
            enrolment: Enrolment::new(token, kgcs),
            joining: JoinAttempts::new(timing.backoff()),
            membership: GroupMember::new(signed_leave),
            config: Settings { deployment, group, timing },
        }
    }

    /// Joins this group at the start, as [`EdgeConfig::group`] says: for who reads it off the restored edge.
    #[must_use]
    pub fn with_group(mut self, group: Name) -> Self {
        if self.wanted.is_none() && !self.membership.is_member() {
            self.wanted = Some(group.clone());
        }
        self.config.group = Some(group);
        self
    }

    /// Keeps track of fewer senders in an epoch than a service does: full windows of so many that sign and as
    /// many that do not, some 200 bytes each; of [eight times](quiver_ainq::traffic::REMEMBERED_PER_SENDER)
    /// as many, their last number, 16 bytes each. Twice that for as long as messages of the epoch before are
    /// received. The sender that sent least recently is forgotten first, and nothing of it that was received
    /// is received again.
    #[must_use]
    pub const fn with_senders(mut self, senders: u32) -> Self {
        self.membership.senders = senders;
        self
    }

    /// The same with revocation lists of at most `max_len` bytes: longer ones come without their edges, so
    /// that signed messages of revoked edges are not recognised. For boards.
    #[must_use]
    pub fn with_list_limit(mut self, max_len: u32) -> Self {
        self.revocations.limit(max_len);
        self
    }

    /// The same, but that it does not join under a revocation list that is past its next update. It asks the
    /// leader for a newer one, and tries again.
    #[must_use]
    pub const fn with_stale_lists_refused(mut self) -> Self {
        self.revocations.refuse_stale = true;
        self
    }

    /// The same in a deployment with a second factor of pairwise secrets (§24): it follows no header of
    /// another parameter set, or of none. A restored membership of another is dropped, with an
    /// [`EdgeEvent::MembershipDropped`], and κ of another is forgotten.
    #[must_use]
    pub fn with_kem(mut self, setting: KemSetting) -> Self {
        if self.membership.set_kem(setting, &self.config.deployment) {
            // §24.6: it joins again, and follows the group with the second factor or not at all.
            self.reset(None);
            self.out.event(EdgeEvent::MembershipDropped { error: quiver_ainq::Error::OtherKem });
        }
        self
    }

    /// The state of the edge.
    pub fn status(&self) -> EdgeStatus {
        let (name, group) = (self.keypair().map(DroneKeypair::public), self.wanted.clone());
        let name = name.map(|public| public.identity.name.clone());
        let leader = self.leaders.leading().filter(|_| self.membership.is_member());
        EdgeStatus { leader, ..self.membership.status(name, group, &self.revocations, self.boot_no) }
    }

    /// Time at which the key of the epoch held was made, by the leader's clock.
    pub fn key_issued_at(&self) -> Option<UnixTime> {
        self.membership.key_issued_at(&self.config.deployment)
    }

    /// Returns true if a leader is connected, one that leads or not.
    pub fn has_leader(&self) -> bool {
        self.leaders.first().is_some()
    }

    /// The leader of the epoch held.
    pub fn leader_name(&self) -> Option<Name> {
        self.membership.leader_name(&self.config.deployment)
    }

    /// Second factor that the deployment says.
    pub const fn kem_setting(&self) -> KemSetting {
        self.membership.kem_setting()
    }

    /// State of κ with the leader of the epoch held; `None` without a second factor.
    pub fn kem_state(&self) -> Option<crate::KemState> {
        self.membership.kem_state(&self.config.deployment)
    }

    /// Key of this drone, once enrolled.
    pub fn keypair(&self) -> Option<&DroneKeypair<S>> {
        self.enrolment.keypair()
    }

    /// Returns true if the revocation list held names this drone: no leader admits it, and it asks none.
    pub fn is_revoked(&self) -> bool {
        self.keypair().is_some_and(|keypair| self.revocations.names(keypair.public()))
    }

    /// Signs the time of this drone's clock, for peers that it asks for admission; `None` without a key.
    pub fn vouch(&self, statement: &[u8], rng: &mut dyn CryptoRngCore) -> Option<Vec<u8>> {
        Some(quiver_machine::vouch(&self.config.deployment, self.keypair()?, statement, rng))
    }

    /// A secret that all synced members of the epoch can derive under this name; `None` unless synced.
    pub fn export(&self, name: &Name) -> Option<Secret<32>> {
        self.membership.export(name)
    }

    /// Keys of the epoch held for the group's datagrams (§20.2): its traffic key above all. `None` unless
    /// synced, and from the input on with which this drone is no member any more: who sends datagrams asks
    /// after each.
    pub fn epoch_keys(&self, now: Now) -> Option<EpochKeys<S>> {
        self.membership.epoch_keys(now, self.keypair())
    }

    /// Signs a statement of this member's datagrams (§20.5); `None` unless it is synced and has a key of its
    /// own.
    pub fn sign_datagram(&self, statement: &[u8], rng: &mut dyn CryptoRngCore) -> Option<Signature<S>> {
        let keypair = self.keypair().filter(|_| self.membership.is_synced())?;
        Some(keypair.sign(&self.config.deployment, Label::Datagram, statement, rng))
    }

    /// Whether this drone may sign datagrams from this slot, as far as an edge knows (§13.4): not revoked,
    /// not refused, not expired, and an edge unless the slot is the leader's. The signature is the caller's
    /// to verify, and that the leader is the term's.
    ///
    /// # Errors
    /// Reason against it.
    pub fn may_sign_datagrams(&self, now: Now, slot: Slot, drone: &DronePublicKey<S>) -> Result<(), Offence> {
        let policy = SenderPolicy {
            deployment: &self.config.deployment,
            revocations: &self.revocations,
            refused: &self.leaders.refused,
            expected: None,
            roster: None,
        };
        policy.may_sign(now, slot, drone)
    }

    /// Lets the edge keep its newest header where others keep the same: all members of a group have an equal
    /// one of 400 bytes and more, so a process that hosts thousands of them saves most of that.
    ///
    /// `shared` is given the encoded header and gives one that is equal to keep in its place, or the same
    /// back. Any other is not taken. It is not called while the edge has no header. The leader's key, which
    /// the edge otherwise keeps decoded, is given up. How the edge behaves depends on neither.
    pub fn share_header(&mut self, shared: impl FnOnce(&Arc<[u8]>) -> Arc<[u8]>) {
        self.membership.share_header(shared);
    }

    /// Splits the edge into the context of one input and the two parts that talk to leaders.
    #[inline(never)]
    fn parts<'a>(
        &'a mut self,
        now: Now,
        rng: &'a mut dyn CryptoRngCore,
    ) -> (EdgeContext<'a, S>, &'a mut JoinAttempts<S>, &'a mut GroupMember<S>) {
        let base = Context {
            now,
            rng,
            out: &mut self.out,
            deployment: &self.config.deployment,
            keypair: self.enrolment.keypair(),
            revocations: &self.revocations,
            group: self.wanted.as_ref(),
        };
        let (leaders, timing, boot_no) = (&mut self.leaders, &self.config.timing, self.boot_no);
        (EdgeContext { base, leaders, timing, boot_no }, &mut self.joining, &mut self.membership)
    }

    /// Gives the enrolment an input. The drone that has come by its key goes on to join.
    #[inline(never)]
    fn enrol(&mut self, now: Now, input: EnrolmentInput<'_, S>, rng: &mut dyn CryptoRngCore) {
        let mut cx = Context {
            now,
            rng: &mut *rng,
            out: &mut self.out,
            deployment: &self.config.deployment,
            keypair: None,
            revocations: &self.revocations,
            group: None,
        };
        if self.enrolment.handle(&mut cx, input) {
            self.approach(now, rng);
        }
    }

    /// The first input after a start: a new boot number, durable before anything is sent.
    #[inline(never)]
    fn boot(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        self.booted = true;
        // §13.2: raised and stored before the first message after a start.
        self.boot_no = self.boot_no.saturating_add(1);
        self.enrol(now, EnrolmentInput::Start(self.config.timing.backoff()), rng);
        if self.config.group.is_some() && !self.membership.is_member() {
            self.wanted.clone_from(&self.config.group);
        }
        self.out.persist(StateChanged);
        if self.is_revoked() {
            self.out.event(EdgeEvent::Refused(RefusalReason::Revoked));
        }
    }

    /// §13.9: as after a start: a new boot number, durable first, and unsynced until a leader's answer proves
    /// the current epoch.
    fn resumed(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        self.boot_no = self.boot_no.saturating_add(1);
        let (mut cx, _, membership) = self.parts(now, rng);
        membership.resume(&mut cx);
    }

    #[inline(never)]
    fn connected(&mut self, now: Now, peer: Peer, route: Route, rng: &mut dyn CryptoRngCore) {
        match route {
            Route::Kgc => self.enrol(now, EnrolmentInput::Connected(peer), rng),
            Route::Leader => {
                self.leaders.connected(peer);
                self.approach(now, rng);
                // §10.5: leaders that do not lead learn in a while where this member is.
                let (cx, _, membership) = self.parts(now, rng);
                membership.introduce_soon(&cx);
            }
            Route::Inbound | Route::Member(_) | Route::Relay => {}
        }
    }

    #[inline(never)]
    fn disconnected(&mut self, now: Now, peer: Peer, rng: &mut dyn CryptoRngCore) {
        // §21.4: whoever knows another way to the leader says at once that it is there now.
        let asks_another = self.leaders.disconnected(peer);
        self.membership.disconnected(peer);
        self.enrol(now, EnrolmentInput::Disconnected(peer), rng);
        if self.joining.is_with(peer) {
            if self.wanted.is_none() {
                return self.left();
            }
            // §14: the cookie was for that connection.
            self.reset(None);
            self.approach(now, rng);
        } else if asks_another && self.membership.is_member() {
            self.approach(now, rng);
        }
    }

    /// Takes the next step to bring the edge into its group, if a leader is connected. Also while leaving:
    /// only a member in step can ask to leave.
    fn approach(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let (mut cx, joining, membership) = self.parts(now, rng);
        if membership.is_member() {
            membership.request_catch_up(&mut cx);
        } else {
            joining.begin(&mut cx, membership);
        }
    }

    /// Forgets the membership and its keys, or the attempt to join; a next one is made at `retry`, or when
    /// there is a reason.
    fn reset(&mut self, retry: Option<Duration>) {
        // §7.3: the newest epoch and header of the group stay; keys go.
        self.membership.end();
        self.joining.reset(retry, self.config.timing.backoff());
    }

    /// The membership is over; its keys are erased.
    #[inline(never)]
    fn ended(&mut self, now: Now, end: MembershipEnd, rng: &mut dyn CryptoRngCore) {
        match end {
            MembershipEnd::Left => self.left(),
            MembershipEnd::OutOfStep => {
                // §11.1: the newest epoch cannot be reached from what it holds: it joins again.
                self.reset(None);
                self.out.persist(StateChanged);
                self.approach(now, rng);
            }
            MembershipEnd::Removed => {
                self.out.event(EdgeEvent::Evicted);
                self.reset(None);
                if self.wanted.is_some() {
                    // Perhaps only this membership ended (the leader took a second join for ours): ask once
                    // more, slowly.
                    self.joining.postpone(now, rng);
                }
                self.out.persist(StateChanged);
            }
            MembershipEnd::Evicted => {
                // §12.2: an evicted drone asks no more.
                self.wanted = None;
                self.reset(None);
                self.out.persist(StateChanged);
                self.out.event(EdgeEvent::Evicted);
            }
        }
    }

    fn left(&mut self) {
        self.reset(None);
        self.out.persist(StateChanged);
        self.out.event(EdgeEvent::Left);
    }

    #[inline(never)]
    fn dispatch(
        &mut self,
        now: Now,
        (from, via): (Peer, Via),
        message: &mut Message<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        // §3.1: only a KGC refuses a drone that has no key yet.
        let enrolling = self.enrolment.is_under_way();
        let (mut cx, joining, membership) = self.parts(now, rng);
        // §13.6: messages received by gossip are never answered.
        if via == Via::Group && !message.is_publication() {
            return;
        }
        let end = match message {
            // §24.7: a member asks deputies, and no leader for a membership.
            Message::JoinChallenge(challenge) if membership.is_member() => {
                return membership.deputy_challenged(&mut cx, from, challenge);
            }
            Message::JoinChallenge(challenge) => {
                return joining.challenged(&mut cx, membership, from, challenge);
            }
            Message::JoinCiphertext(ciphertext) if membership.is_member() => {
                return membership.deputy_ciphertext(&mut cx, from, ciphertext);
            }
            Message::JoinCiphertext(ciphertext) => return joining.ciphertext(&cx, from, ciphertext),
            Message::Welcome(welcome) => {
                return joining.welcomed(&mut cx, membership, from, welcome);
            }
            Message::EnrolCookie(_) | Message::EnrolReply(_) => {
                return self.enrol(now, EnrolmentInput::Received(from, message), rng);
            }
            Message::Extension(_) if EnrolmentClient::takes(message) => {
                return self.enrol(now, EnrolmentInput::Received(from, message), rng);
            }
            Message::Refusal(_) if enrolling => {
                return self.enrol(now, EnrolmentInput::Received(from, message), rng);
            }
            // §10.5: a leader that does not lead refuses as not ready.
            Message::Refusal(refusal) if !membership.is_member() => {
                return joining.refused(&mut cx, from, refusal);
            }
            epoch @ (Message::Rekey(_) | Message::ShortRekey(_))
                if AT_SERVICES && !membership.is_member() =>
            {
                return joining.waiting(&mut cx, membership, from, epoch);
            }
            Message::RevocationList(list) => return self.revocation_list(now, from, &list.list),
            message => membership.handle(&mut cx, (from, via), message),
        };
        if let Some(end) = end {
            self.ended(now, end, rng);
        }
    }

    /// §12.3: Takes a newer revocation list. A revoked leader's group is no group: its keys are erased with
    /// the membership.
    #[inline(never)]
    fn revocation_list(&mut self, now: Now, from: Peer, bytes: &[u8]) {
        match self.revocations.offer(&self.config.deployment, bytes) {
            // §12.7: not newer: dropped before its signature was verified.
            Ok(false) => {}
            Err(error) => self.out.event(EdgeEvent::Blamed { peer: from, offence: error.into() }),
            Ok(true) => {
                if self.membership.leader_is_revoked(&self.config.deployment, &self.revocations) {
                    // §12.3: another leader may lead the group by then.
                    self.reset(Some(now.monotonic + self.config.timing.retry));
                }
                self.out.persist(StateChanged);
                self.out.event(EdgeEvent::RevocationList { number: self.revocations.number() });
                if self.is_revoked() {
                    self.out.event(EdgeEvent::Refused(RefusalReason::Revoked));
                }
            }
        }
    }

    #[inline(never)]
    fn command(&mut self, now: Now, command: EdgeCommand, rng: &mut dyn CryptoRngCore) {
        match command {
            EdgeCommand::Join(group) => {
                if self.wanted.as_ref() != Some(&group) || !self.membership.is_member() {
                    // §7.3: of the group that it leaves, newest epoch and header stay.
                    self.wanted = Some(group);
                    self.reset(None);
                    self.out.persist(StateChanged);
                    self.approach(now, rng);
                }
            }
            EdgeCommand::Leave => {
                self.wanted = None;
                // §12.1: a drone that asked for admission may be a member already: it leaves as soon as it
                // knows.
                if !self.membership.is_member() && !self.joining.has_requested() {
                    return self.left();
                }
                self.out.persist(StateChanged);
                let (mut cx, _, membership) = self.parts(now, rng);
                membership.leave(&mut cx);
            }
            EdgeCommand::CatchUp => {
                let (mut cx, _, membership) = self.parts(now, rng);
                membership.request_catch_up(&mut cx);
            }
            EdgeCommand::Send { channel, data, signed } => {
                let (mut cx, _, membership) = self.parts(now, rng);
                membership.send(&mut cx, channel, &data, signed);
            }
        }
    }

    #[inline(never)]
    fn tick(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        self.enrol(now, EnrolmentInput::Tick, rng);
        let (mut cx, joining, membership) = self.parts(now, rng);
        if membership.is_member() {
            if let Some(end) = membership.tick(&mut cx) {
                self.ended(now, end, rng);
            }
        } else if joining.tick(&mut cx, membership) {
            self.left();
        }
        let (mut cx, _, membership) = self.parts(now, rng);
        membership.tick_leaders(&mut cx);
    }

    fn deadline(&self) -> Option<Duration> {
        if !self.booted {
            return Some(Duration::ZERO);
        }
        let group = earlier(self.joining.deadline(), self.membership.deadline());
        earlier(group, self.enrolment.deadline())
    }
}

impl<S: Suite> Machine for Edge<S> {
    type Command = EdgeCommand;
    type Event = EdgeEvent;
    type Record = Snapshot;

    fn handle_input(&mut self, now: Now, input: Input<'_, EdgeCommand>, rng: &mut dyn CryptoRngCore) {
        if !self.booted {
            self.boot(now, rng);
        }
        match input {
            Input::Timeout => {}
            Input::Connected { peer, route } => self.connected(now, peer, route, rng),
            Input::Disconnected { peer } => self.disconnected(now, peer, rng),
            Input::Received { from, via, bytes } => {
                if let Some(mut message) = self.decode((from, via), bytes) {
                    self.dispatch(now, (from, via), &mut message, rng);
                }
            }
            // No board is brought back with its memory.
            Input::Resumed if AT_SERVICES => self.resumed(now, rng),
            Input::Resumed => {}
            Input::Command(command) => self.command(now, command, rng),
        }
        self.tick(now, rng);
    }

    #[inline(never)]
    fn poll_output(&mut self) -> Output<EdgeEvent, Snapshot> {
        let deadline = self.deadline();
        self.out.poll(deadline).map(|event| event, |StateChanged| self.snapshot())
    }
}

impl<S: Suite> Primary for Edge<S> {
    type Suite = S;

    fn decode(&mut self, (from, _): (Peer, Via), bytes: &[u8]) -> Option<Message<S>> {
        match Message::decode_expecting(&self.config.deployment, bytes, self.membership.expected()) {
            Ok(message) => Some(message),
            Err(MessageError::NoBody) if !AT_SERVICES => None,
            Err(error) => {
                self.out.event(EdgeEvent::Blamed { peer: from, offence: error.into() });
                None
            }
        }
    }

    fn receive(&mut self, now: Now, from: (Peer, Via), mut message: Message<S>, rng: &mut dyn CryptoRngCore) {
        if !self.booted {
            self.boot(now, rng);
        }
        self.dispatch(now, from, &mut message, rng);
        self.tick(now, rng);
    }

    fn wake(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        self.handle_input(now, Input::Timeout, rng);
    }

    fn blame(&mut self, (peer, _): (Peer, Via), offence: Offence) {
        self.out.event(EdgeEvent::Blamed { peer, offence });
    }

    fn shared(&self) -> SharedRoleState<'_, S> {
        SharedRoleState {
            deployment: &self.config.deployment,
            keypair: self.enrolment.keypair(),
            revocations: &self.revocations,
            group: self.wanted.as_ref(),
        }
    }
}
