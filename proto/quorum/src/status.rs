//! Exchanges status among members: shares in force, lists, proposals and approvals of each.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{KgcId, Purpose, Revoked};
use quiver_crypto::canonical::Reader;
use quiver_message::quorum::{MAX_BODY_LEN, QuorumMessage, QuorumProof, QuorumStatus, SignedStatement};
use quiver_quorum::QuorumSuite;

use super::context::MemberContext;
use super::interface::tag;
use super::retry_timer::RetryTimer;
use super::statements::{PendingProposals, StatementBook};

/// Status of the other members, as they reported it, and when this member reports its own.
#[derive(Debug)]
pub(super) struct StatusExchange {
    /// Last status of each other member.
    received: BTreeMap<KgcId, QuorumStatus>,
    /// Timer for sending and asking for it again.
    retry: RetryTimer,
}

impl StatusExchange {
    pub(super) fn new() -> Self {
        let retry = RetryTimer::new(Duration::from_secs(20), Duration::from_secs(30));
        Self { received: BTreeMap::new(), retry }
    }

    /// Starts the timer.
    pub(super) fn start<S: QuorumSuite>(&mut self, cx: &mut MemberContext<'_, S>) {
        self.retry.start(cx.now.monotonic, cx.rng);
    }

    pub(super) const fn deadline(&self) -> Option<Duration> {
        self.retry.deadline()
    }

    /// The last status of a member.
    pub(super) fn of(&self, member: KgcId) -> Option<&QuorumStatus> {
        self.received.get(&member)
    }

    /// Number of other members that want this drone revoked.
    pub(super) fn wanting(&self, serial: &[u8; 16]) -> usize {
        let wants = |status: &&QuorumStatus| status.proposed.iter().any(|drone| drone.serial == *serial);
        self.received.values().filter(wants).count()
    }

    /// Drones that this member and enough others propose to revoke, each as long and for as many readers as
    /// any of them proposes.
    pub(super) fn proposed_by(&self, enough: usize, pending: &PendingProposals) -> Vec<Revoked> {
        let proposed = |own: &Revoked| {
            let proposal = |status: &'_ QuorumStatus| {
                let place =
                    status.proposed.binary_search_by_key(&own.serial, |proposal| proposal.serial).ok()?;
                status.proposed.get(place).copied()
            };
            // §5.4: t operators must agree to revoke.
            let others: Vec<Revoked> = self.received.values().filter_map(proposal).collect();
            (others.len() + 1 >= enough).then(|| others.iter().fold(*own, Revoked::and))
        };
        pending.drones.values().filter_map(proposed).collect()
    }

    /// Sends all others a change that they want to know.
    pub(super) fn announce<S: QuorumSuite>(
        &self,
        cx: &mut MemberContext<'_, S>,
        statements: &StatementBook<S>,
    ) {
        for kgc in cx.others() {
            send_status(cx, statements, kgc, false);
            self.pass_on(cx, statements, kgc);
        }
    }

    /// Handles a member's status: answers it, and passes on what the member lacks.
    pub(super) fn receive<S: QuorumSuite>(
        &mut self,
        cx: &mut MemberContext<'_, S>,
        statements: &StatementBook<S>,
        from: KgcId,
        status: QuorumStatus,
    ) {
        let asks = status.asks;
        self.received.insert(from, status);
        if asks {
            send_status(cx, statements, from, false);
        }
        self.pass_on(cx, statements, from);
    }

    /// Sends and asks for all members' status again, in case a message was lost.
    pub(super) fn tick<S: QuorumSuite>(
        &mut self,
        cx: &mut MemberContext<'_, S>,
        statements: &StatementBook<S>,
    ) {
        if !self.retry.has_come(cx.now.monotonic, cx.rng) {
            return;
        }
        for kgc in cx.others() {
            send_status(cx, statements, kgc, true);
        }
    }

    /// Sends a member the statements that it lacks, by its last status.
    fn pass_on<S: QuorumSuite>(
        &self,
        cx: &mut MemberContext<'_, S>,
        statements: &StatementBook<S>,
        to: KgcId,
    ) {
        let Some(status) = self.received.get(&to) else { return };
        let newer = statements.list.number() > status.list;
        let list = statements.list.newest().filter(|_| newer);
        let list = list.map(|list| (Purpose::Revocation, list.encode(), list.signature().encode()));
        let lacks = !status.statement && status.keys.is_some() && status.keys == cx.digest();
        let statement = statements.quorum.as_ref().filter(|_| lacks).and_then(|signed| parts(signed));
        let statement = statement.map(|(body, signature)| (Purpose::Quorum, body, signature));
        for (purpose, body, signature) in list.into_iter().chain(statement) {
            if let Some(purpose) = tag(purpose) {
                let message = SignedStatement { purpose, body, signature };
                cx.send(to, &QuorumMessage::SignedStatement(message));
            }
        }
        // §10.7: a proof goes to all who do not want that leader revoked yet.
        let unknown = |serial: &[u8; 16]| {
            status.proposed.binary_search_by_key(serial, |proposal| proposal.serial).is_err()
        };
        for (_, proof) in statements.proofs.iter().filter(|(serial, _)| unknown(serial)) {
            cx.send(to, &QuorumMessage::Proof(QuorumProof { proof: proof.clone() }));
        }
    }
}

/// Sends this member's status.
// §5.4: what operators want is exchanged, so that members propose only what t of them want.
pub(super) fn send_status<S: QuorumSuite>(
    cx: &mut MemberContext<'_, S>,
    statements: &StatementBook<S>,
    to: KgcId,
    asks: bool,
) {
    let status = QuorumStatus {
        version: cx.keys.map_or(0, |keys| keys.version()),
        keys: cx.digest(),
        list: statements.list.number(),
        statement: statements.quorum.is_some(),
        asks,
        proposed: statements.pending.drones.values().copied().collect(),
    };
    cx.send(to, &QuorumMessage::Status(status));
}

/// A quorum's statement is encoded as `lp(body)`, then the signature.
fn parts(signed: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut reader = Reader::new(signed);
    let body = reader.lp(MAX_BODY_LEN).ok()?.to_vec();
    Some((body, reader.take(reader.remaining()).ok()?.to_vec()))
}
