//! The KGCs of a quorum among themselves: one machine at each.
//!
//! [`QuorumNode`] generates and refreshes the quorum's two keys with the others (AinQ's, which signs, and
//! that of identity-based encryption), restores the shares of a member that lost them, and has the quorum
//! sign what a single KGC would sign: its revocation lists, statements about authorities, and the quorum's
//! statement. The module `signing_policy` says who may sign what. `Kgc` of `quiver-enrolment` issues drones'
//! partial keys with the key.
//!
//! Each part has its state and takes the member's context as an argument:
//!
//! | module | what it has |
//! |---|---|
//! | `ceremony` | key generation and refresh |
//! | `recovery` | repair of a member that lost its shares |
//! | `statements`, `proposals`, `signing_policy` | statements: what is known of them, what operators want, what may be signed |
//! | `signing` | rounds in which statements are signed |
//! | `status` | what members report to each other |
//! | `context` | settings, connections, shares in force and outputs, which all parts share |
//! | [`keys`] | what a member holds |
//!
//! Members are known by their index in a [`QuorumMembership`], which all have pinned; a driver names with
//! [`Route::Member`] the authenticated member of a connection.
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
use quiver_message::quorum::{CeremonyKind, QuorumMessage, QuorumProof, RepairAnswer};
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
use self::signing::SigningRounds;
use self::statements::StatementBook;
use self::status::{StatusExchange, send_status};
use quiver_machine::{Input, Machine, Now, Offence, Output, Peer, Route, Snapshot, earlier};

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
    statements: StatementBook<S>,
    statuses: StatusExchange,
    signing: SigningRounds<S>,
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
            QuorumCommand::Revoke(drones) => {
                let news = self.statements.propose_revocation(&mut cx, &drones);
                self.announce(now, news, rng);
            }
            QuorumCommand::TakeRevocations(list) => {
                let news = self.statements.take_list(&mut cx, &list);
                self.announce(now, news, rng);
            }
            QuorumCommand::Prove(proof) => self.prove(now, None, &proof, rng),
            QuorumCommand::Approve(digest) => self.statements.approve(&mut cx, digest),
            QuorumCommand::Withdraw(digest) => self.statements.withdraw(&mut cx, &digest),
            QuorumCommand::Propose(body) => {
                if self.statements.propose(&mut cx, body) {
                    self.signing.hurry_at_once(&cx);
                }
            }
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
                self.base.context(now, rng).blame(member, error.into());
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
            QuorumMessage::Status(status) => {
                if status.keys.is_some() && status.keys == cx.digest() {
                    // §5.3: what its repair was approved for is done.
                    self.helper.end(from);
                }
                self.statuses.receive(&mut cx, &self.statements, from, status);
                self.signing.hurry(&cx);
            }
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
            QuorumMessage::SignProposal(proposal) => {
                self.signing.handle_proposal(&mut cx, &self.statements, from, proposal);
            }
            QuorumMessage::SignCommitment(commitment) => {
                self.signing.handle_commitment(&mut cx, &mut self.statements, from, &commitment);
            }
            QuorumMessage::SignPackage(package) => {
                self.signing.handle_package(&mut cx, &mut self.statements, from, &package);
            }
            QuorumMessage::SignShare(share) => {
                let news = self.signing.handle_share(&mut cx, &mut self.statements, from, &share);
                self.announce(now, news, rng);
            }
            QuorumMessage::SignRefusal(refusal) => {
                self.signing.handle_refusal(&mut cx, &self.statements, from, &refusal);
            }
            QuorumMessage::SignedStatement(statement) => {
                let news = self.statements.handle_statement(&mut cx, from, statement);
                self.announce(now, news, rng);
            }
            QuorumMessage::Proof(proof) => self.prove(now, Some(from), &proof.proof, rng),
            _ => cx.blame(from, Offence::OutOfPlace("message to a member of a quorum")),
        }
    }

    /// Puts shares of a ceremony in force, if there are any. The old ones are erased.
    fn put_in_force(&mut self, now: Now, candidate: Option<CandidateShares<S>>, rng: &mut dyn CryptoRngCore) {
        let Some(candidate) = candidate else { return };
        // §5.2: the old shares are erased.
        let keys = self.ceremonies.settle(now, candidate);
        self.hold_keys(*keys);
        self.ceremonies.shares_replaced(&mut self.base.context(now, rng));
        self.announce(now, true, rng);
    }

    /// Holds other shares than before: durable, then in force. What goes with those before ends in all parts.
    fn hold_keys(&mut self, keys: QuorumKeys<S>) {
        let version = keys.version();
        self.base.out.persist(QuorumRecord::Keys(Snapshot::new(keys.encode().to_vec())));
        self.base.put_in_force(keys);
        self.statements.shares_replaced();
        // §5.4: nonces and repairs are for the shares that they were begun with.
        self.signing.forget();
        self.helper.forget();
        self.base.out.event(QuorumEvent::SharesInForce { version });
    }

    /// Announces what others are to know, if there is news, and has signed what may have to be.
    fn announce(&mut self, now: Now, news: bool, rng: &mut dyn CryptoRngCore) {
        if news {
            let mut cx = self.base.context(now, rng);
            self.statuses.announce(&mut cx, &self.statements);
            self.signing.hurry(&cx);
        }
    }

    /// Takes proof that a leader signed two headers for one epoch, and passes it on. It needs no operator's
    /// approval.
    fn prove(&mut self, now: Now, from: Option<KgcId>, proof: &[u8], rng: &mut dyn CryptoRngCore) {
        let mut cx = self.base.context(now, rng);
        let Some(drone) = self.statements.prove(&mut cx, from, proof) else { return };
        let news = self.statements.propose_revocation(&mut cx, &[drone]);
        self.announce(now, news, rng);
        let message = QuorumMessage::Proof(QuorumProof { proof: proof.to_vec() });
        self.base.context(now, rng).send_to_others(&message);
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
        self.announce(now, true, rng);
    }

    fn connected(&mut self, now: Now, peer: Peer, member: KgcId, rng: &mut dyn CryptoRngCore) {
        let known = self.base.config.membership.parameters().check(member).is_ok();
        if !known || member == self.base.config.id {
            return self.base.out.event(QuorumEvent::Stranger(peer));
        }
        // §5.1: the transport has authenticated the member behind this connection.
        self.base.links.insert(member, peer);
        // §5.2: a message marks whether its sender waits for something.
        let mut cx = self.base.context(now, rng);
        send_status(&mut cx, &self.statements, member, true);
        let awaited = self.ceremonies.awaited(cx.config).contains(&member);
        self.ceremonies.send(&mut cx, member, awaited);
        self.recovery.send(&mut cx, member);
    }

    /// Handles everything due, whatever the input was.
    fn tick(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if !self.started {
            self.started = true;
            self.statuses.start(&mut self.base.context(now, rng));
            self.announce(now, true, rng);
        }
        let mut cx = self.base.context(now, rng);
        self.ceremonies.tick(&mut cx);
        self.recovery.tick(&mut cx);
        self.statuses.tick(&mut cx, &self.statements);
        self.signing.tick(&mut cx, &self.statements, &self.statuses);
    }

    fn deadline(&self) -> Option<Duration> {
        if !self.started {
            return Some(Duration::ZERO);
        }
        let ceremonies = earlier(self.ceremonies.deadline(), self.recovery.deadline());
        earlier(ceremonies, earlier(self.statuses.deadline(), self.signing.deadline()))
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
