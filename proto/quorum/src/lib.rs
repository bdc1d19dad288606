//! The KGCs of a quorum among themselves: one machine at each.
//!
//! [`QuorumNode`] generates and refreshes the quorum's two keys with the others (AinQ's, which signs, and
//! that of identity-based encryption), restores the shares of a member that lost them, and has the quorum
//! sign what a single KGC would sign: its revocation lists, statements about authorities, and the quorum's
//! statement. The module `rules` says who may sign what. `Kgc` of `quiver-enrolment` issues drones'
//! partial keys with the key.
//!
//! Members are known by their index in a [`QuorumMembership`], which all have pinned; a driver names with
//! [`Route::Member`] the authenticated member of a connection.
//!
//! | module | what it has |
//! |---|---|
//! | `ceremony` | key generation and refresh |
//! | `recovery` | repair of a member that lost its shares |
//! | `signing`, `rules`, `statements` | statements: how they are signed, which, and what is known of them |
//! | [`keys`] | what a member holds |
#![doc = concat!(
    "\nWithout sockets, on the deterministic testbed:\n\n```\n",
    include_str!("../examples/quorum.rs"),
    "```"
)]
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

mod ceremony;
mod context;
mod interface;
pub mod keys;
mod membership;
mod proposals;
mod recovery;
mod restore;
mod retry_timer;
mod rounds;
mod signing;
mod signing_policy;
mod statements;
mod status;

use alloc::collections::BTreeSet;
use core::time::Duration;

use quiver_ainq::{Deployment, Element, KgcId, Name};
use quiver_message::MessageError;
use quiver_message::quorum::{CeremonyKind, QuorumMessage, RepairAnswer};
use quiver_quorum::QuorumSuite;
use rand_core::CryptoRngCore;

use self::ceremony::{CandidateShares, KeyCeremonies};
use self::context::MemberBase;
pub use self::interface::{
    AbortCause, CeremonyStage, CeremonyView, IbeStatements, MemberView, QuorumCommand, QuorumConfig,
    QuorumEvent, QuorumRecord, QuorumView, approval,
};
pub use self::keys::{Ibe, QuorumKeyShare, QuorumKeys};
pub use self::membership::{MAX_IDENTITY_LEN, MembershipError, QuorumMembership};
use self::recovery::{RecoveryHelper, ShareRecovery};
use self::signing::SigningState;
use self::statements::Statements;
use quiver_machine::{Input, Machine, Now, Offence, Output, Peer, Route, earlier};

/// Name of this feature, in [`Offence::Feature`].
pub const FEATURE: &str = "quorum";

/// A KGC of a quorum, as the other KGCs know it.
#[derive(Debug)]
pub struct QuorumNode<S: QuorumSuite> {
    base: MemberBase<S>,
    /// Members whose last message was framed by another membership than the one pinned here.
    foreign: BTreeSet<KgcId>,
    ceremonies: KeyCeremonies<S>,
    recovery: ShareRecovery<S>,
    helper: RecoveryHelper<S>,
    statements: Statements<S>,
    signing: SigningState<S>,
    started: bool,
}

/// The name that a member's statement about its part in identity-based encryption has: `ibe-` and its
/// identifier.
#[must_use]
pub fn ibe_name(member: KgcId) -> Option<Name> {
    Name::new(&alloc::format!("ibe-{member}")).ok()
}

impl<S: QuorumSuite> QuorumNode<S> {
    /// The same with P_pub, as in the deployment's public file. A member that lost all its shares cannot
    /// check otherwise that t helpers offer those of this quorum; without it, t honest ones are assumed.
    #[must_use]
    pub const fn with_master(mut self, master: Element<S>) -> Self {
        self.recovery.master = Some(master);
        self
    }

    /// The shares in force, of both keys.
    #[must_use]
    pub const fn keys(&self) -> Option<&QuorumKeys<S>> {
        self.base.keys.as_ref()
    }

    /// The deployment under the quorum's key, once there is one.
    #[must_use]
    pub const fn deployment(&self) -> Option<&Deployment<S>> {
        self.base.deployment.as_ref()
    }

    /// The newest revocation list, signed and encoded.
    #[must_use]
    pub fn signed_revocations(&self) -> Option<&[u8]> {
        self.statements.list.signed_bytes()
    }

    /// The quorum's statement about the shares in force, encoded.
    #[must_use]
    pub fn quorum_statement(&self) -> Option<&[u8]> {
        self.statements.quorum.as_deref()
    }

    /// Finds the member that a connection goes to, if it is one.
    #[must_use]
    pub fn member(&self, peer: Peer) -> Option<KgcId> {
        self.base.links.iter().find(|(_, link)| **link == peer).map(|(kgc, _)| *kgc)
    }

    /// t.
    fn enough(&self) -> usize {
        usize::from(self.base.config.membership.parameters().threshold())
    }

    fn command(&mut self, now: Now, command: QuorumCommand, rng: &mut dyn CryptoRngCore) {
        let mut cx = self.base.context(now, rng);
        match command {
            QuorumCommand::Generate => {
                self.ceremonies.take_part(&mut cx, CeremonyKind::Generation, self.recovery.is_under_way());
            }
            QuorumCommand::Refresh => {
                self.ceremonies.take_part(&mut cx, CeremonyKind::Refresh, self.recovery.is_under_way());
            }
            QuorumCommand::Abandon => self.ceremonies.abandon(&mut cx),
            QuorumCommand::Adopt => {
                let adopted = self.ceremonies.adopt(&mut cx);
                self.put_in_force(now, adopted, rng);
            }
            QuorumCommand::Recover => self.recover(now, rng),
            QuorumCommand::HelpRecover(member) => self.helper.approve(&mut cx, member),
            QuorumCommand::Revoke(drones) => self.propose_revocation(now, &drones),
            QuorumCommand::TakeRevocations(list) => self.take_list(now, &list),
            QuorumCommand::Prove(proof) => self.prove(now, None, &proof),
            QuorumCommand::Approve(digest) => self.approve(digest),
            QuorumCommand::Withdraw(digest) => self.withdraw(&digest),
            QuorumCommand::Propose(body) => self.have_it_signed(now, body),
        }
    }

    fn handle_received(&mut self, now: Now, from: Peer, bytes: &[u8], rng: &mut dyn CryptoRngCore) {
        let Some(member) = self.member(from) else { return self.base.out.event(QuorumEvent::Stranger(from)) };
        // §5.1: the fingerprint of the membership frames every message: before there is a key there is no
        // deployment.
        match QuorumMessage::decode(self.base.config.membership.fingerprint(), bytes) {
            Err(error) => {
                if error == MessageError::ForeignDeployment {
                    self.foreign.insert(member);
                }
                self.blame(member, error.into());
            }
            Ok(message) => {
                self.foreign.remove(&member);
                self.handle_message(now, member, message, rng);
            }
        }
    }

    fn handle_message(&mut self, now: Now, from: KgcId, message: QuorumMessage, rng: &mut dyn CryptoRngCore) {
        let mut cx = self.base.context(now, rng);
        match message {
            QuorumMessage::Status(status) => self.handle_status(now, from, status),
            QuorumMessage::Ceremony(message) => {
                let confirmed = self.ceremonies.handle(&mut cx, from, message, self.recovery.is_under_way());
                self.put_in_force(now, confirmed, rng);
            }
            QuorumMessage::Abort(abort) => self.ceremonies.handle_abort(&mut cx, from, &abort),
            QuorumMessage::RepairRequest(request) => {
                self.helper.handle_request(&mut cx, from, &request, self.ceremonies.takes_part());
            }
            QuorumMessage::RepairOffer(offer) => self.recovery.handle_offer(&mut cx, from, offer),
            QuorumMessage::RepairStart(start) => self.helper.handle_start(&mut cx, from, &start),
            QuorumMessage::RepairDelta(delta) => self.helper.handle_delta(&mut cx, from, &delta),
            QuorumMessage::RepairAnswer(answer) => self.handle_repair_answer(now, from, answer, rng),
            QuorumMessage::SignProposal(proposal) => self.handle_proposal(now, from, proposal, rng),
            QuorumMessage::SignCommitment(commitment) => self.handle_commitment(now, from, &commitment),
            QuorumMessage::SignPackage(package) => self.handle_package(now, from, &package),
            QuorumMessage::SignShare(share) => self.handle_share(now, from, &share),
            QuorumMessage::SignRefusal(refusal) => self.handle_sign_refusal(now, from, &refusal),
            QuorumMessage::SignedStatement(statement) => self.handle_statement(now, from, statement),
            QuorumMessage::Proof(proof) => self.prove(now, Some(from), &proof.proof),
            _ => self.blame(from, Offence::OutOfPlace("message to a member of a quorum")),
        }
    }

    /// Puts shares of a ceremony in force, if there are any. The old ones are erased.
    fn put_in_force(&mut self, now: Now, candidate: Option<CandidateShares<S>>, rng: &mut dyn CryptoRngCore) {
        let Some(candidate) = candidate else { return };
        // §5.2: the old shares are erased.
        let keys = self.ceremonies.settle(now, candidate);
        self.hold_keys(*keys);
        self.ceremonies.shares_replaced(&mut self.base.context(now, rng));
        self.changed(now);
    }

    /// Starts a recovery of the shares, unless a ceremony is to make others.
    fn recover(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let mut cx = self.base.context(now, rng);
        if self.ceremonies.takes_part() {
            return cx.refuse("a ceremony is under way");
        }
        self.recovery.start(&mut cx);
    }

    fn handle_repair_answer(
        &mut self,
        now: Now,
        from: KgcId,
        answer: RepairAnswer,
        rng: &mut dyn CryptoRngCore,
    ) {
        let mut cx = self.base.context(now, rng);
        let Some(keys) = self.recovery.handle_answer(&mut cx, from, answer) else { return };
        self.ceremonies.recovered(&mut cx);
        let version = keys.version();
        self.hold_keys(keys);
        self.base.out.event(QuorumEvent::Recovered { version });
        self.changed(now);
    }

    fn connected(&mut self, now: Now, peer: Peer, member: KgcId, rng: &mut dyn CryptoRngCore) {
        let known = self.base.config.membership.parameters().check(member).is_ok();
        if !known || member == self.base.config.id {
            return self.base.out.event(QuorumEvent::Stranger(peer));
        }
        // §5.1: the transport has authenticated the member behind this connection.
        self.base.links.insert(member, peer);
        // §5.2: a message marks whether its sender waits for something.
        self.send_status(member, true);
        let mut cx = self.base.context(now, rng);
        let awaited = self.ceremonies.awaited(cx.config).contains(&member);
        self.ceremonies.send(&mut cx, member, awaited);
        self.recovery.send(&mut cx, member);
    }

    /// Handles everything due, whatever the input was.
    fn tick(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if !self.started {
            self.started = true;
            self.statements.retry.start(now.monotonic, rng);
            self.changed(now);
        }
        let mut cx = self.base.context(now, rng);
        self.ceremonies.tick(&mut cx);
        self.recovery.tick(&mut cx);
        self.tick_statuses(now, rng);
        self.tick_signing(now, rng);
    }

    fn deadline(&self) -> Option<Duration> {
        if !self.started {
            return Some(Duration::ZERO);
        }
        let ceremonies = earlier(self.ceremonies.deadline(), self.recovery.deadline());
        earlier(ceremonies, earlier(self.statements.retry.deadline(), self.signing.deadline()))
    }
}

impl<S: QuorumSuite> Machine for QuorumNode<S> {
    type Command = QuorumCommand;
    type Event = QuorumEvent;
    type Record = QuorumRecord;

    fn handle_input(&mut self, now: Now, input: Input<'_, QuorumCommand>, rng: &mut dyn CryptoRngCore) {
        match input {
            Input::Timeout => {}
            Input::Connected { peer, route: Route::Member(member) } => self.connected(now, peer, member, rng),
            Input::Connected { .. } => {}
            Input::Disconnected { peer } => self.base.links.retain(|_, link| *link != peer),
            Input::Received { from, bytes, .. } => self.handle_received(now, from, bytes, rng),
            // §13.9: another copy may sign with the same nonces, or help with the same deltas.
            Input::Resumed => {
                self.signing.forget();
                self.helper.forget();
                self.helper.forget_approvals();
            }
            Input::Command(command) => self.command(now, command, rng),
        }
        self.tick(now, rng);
    }

    fn poll_output(&mut self) -> Output<QuorumEvent, QuorumRecord> {
        let deadline = self.deadline();
        self.base.out.poll(deadline)
    }
}
