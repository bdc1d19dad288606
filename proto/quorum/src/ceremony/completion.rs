//! Ends a ceremony, with success or without.

use alloc::collections::BTreeMap;
use core::time::Duration;

use quiver_ainq::KgcId;
use quiver_machine::{Now, Offence};
use quiver_message::quorum::{CeremonyAbort, QuorumMessage};
use quiver_quorum::QuorumSuite;
use rand_core::CryptoRngCore;

use super::state::CandidateShares;
use crate::{AbortCause, QuorumEvent, QuorumNode};

/// Time for which a member does not join a refresh after the last one ended.
const REST: Duration = Duration::from_secs(60);

impl<S: QuorumSuite> QuorumNode<S> {
    /// Handles a member's report whether its new shares are durable.
    pub(crate) fn handle_confirmation(
        &mut self,
        now: Now,
        from: KgcId,
        confirmation: Option<[u8; 32]>,
        asks: bool,
    ) {
        let others = self.base.config.membership.parameters().others(self.base.config.id).count();
        let Some(candidate) = &mut self.ceremonies.candidate else { return };
        match confirmation {
            // §5.2: H(new public shares), once the new shares are durable there.
            Some(digest) if digest == candidate.digest => {
                candidate.confirmed.insert(from);
            }
            Some(_) => self.blame(from, Offence::OutOfPlace("confirmation of other shares")),
            None => {}
        }
        if asks {
            self.send_ceremony(from, false);
        }
        // §5.2: in force once all n have confirmed, each by itself.
        let all = |candidate: &mut CandidateShares<S>| candidate.confirmed.len() == others;
        if let Some(candidate) = self.ceremonies.candidate.take_if(all) {
            self.put_in_force(now, candidate);
        }
    }

    /// New shares take the place of the old ones, which are erased.
    fn put_in_force(&mut self, now: Now, candidate: CandidateShares<S>) {
        // §5.2: the old shares are erased.
        let keys = self.ceremonies.settle(candidate);
        self.ceremonies.rest = now.monotonic.saturating_add(REST);
        self.hold_keys(*keys);
        self.persist_ceremonies();
        if self.ceremonies.part.is_some() {
            // §5.2: begun with the shares that were in force before.
            self.leave(now, AbortCause::Superseded);
        }
        self.changed(now);
    }

    /// The operator knows that the new shares are in force elsewhere.
    pub(crate) fn adopt(&mut self, now: Now) {
        // §5.2: operators that know it put the new shares in force (`Adopt`).
        match self.ceremonies.candidate.take() {
            Some(candidate) => self.put_in_force(now, candidate),
            None => self.refuse("no shares wait for confirmation"),
        }
    }

    /// The operator has had enough of it.
    pub(crate) fn abandon(&mut self, now: Now) {
        if self.ceremonies.part.is_some() {
            return self.leave(now, AbortCause::Abandoned);
        }
        match &mut self.ceremonies.candidate {
            // §5.2: they are kept, but need not be waited for.
            Some(candidate) => drop(candidate.gone.insert(self.base.config.id)),
            None => self.refuse("no ceremony is under way"),
        }
    }

    /// A member has left a session.
    pub(crate) fn handle_abort(&mut self, now: Now, from: KgcId, abort: &CeremonyAbort) {
        let cause = AbortCause::Left { member: from, blames: abort.culprit };
        // §5.5: a member's claim that a session is over ends it for all before shares are made.
        if self.ceremonies.session.as_ref().is_some_and(|session| session.id == abort.session) {
            return self.leave(now, cause);
        }
        // §5.2: new shares are kept all the same: others may have confirmed theirs to all but us.
        if let Some(candidate) = &mut self.ceremonies.candidate
            && candidate.session == abort.session
            && candidate.gone.insert(from)
        {
            let kind = candidate.part.kind;
            self.base.out.event(QuorumEvent::Aborted { kind, cause });
        }
    }

    /// Ends this member's part in the ceremony that it is in.
    pub(crate) fn leave(&mut self, now: Now, cause: AbortCause) {
        if let Some(session) = self.ceremonies.session.take() {
            return self.leave_session(now, session.id, &session.attempts, cause);
        }
        self.end(now, cause);
    }

    pub(super) fn leave_session(
        &mut self,
        now: Now,
        id: [u8; 32],
        attempts: &BTreeMap<KgcId, u64>,
        cause: AbortCause,
    ) {
        self.is_over(attempts);
        // §5.2: whatever fails a check ends the session and names its sender.
        let culprit = match cause {
            AbortCause::Fault { culprit, .. } => Some(culprit),
            AbortCause::Transcript { sender, .. } => Some(sender),
            _ => None,
        };
        self.end(now, cause);
        let abort = QuorumMessage::Abort(CeremonyAbort { session: id, culprit });
        for kgc in self.base.config.membership.parameters().others(self.base.config.id) {
            self.send(kgc, &abort);
        }
    }

    fn end(&mut self, now: Now, cause: AbortCause) {
        let Some(part) = self.ceremonies.part.take() else { return };
        self.ceremonies.session = None;
        self.ceremonies.rest = now.monotonic.saturating_add(REST);
        self.persist_ceremonies();
        self.base.out.event(QuorumEvent::Aborted { kind: part.kind, cause });
    }

    /// A member has begun anew: the session is over, and another may begin with its new nonce. This member
    /// keeps its own: no session has the name of this one as long as the other's old nonce is not taken
    /// again.
    pub(super) fn start_over(&mut self, now: Now, member: KgcId, rng: &mut dyn CryptoRngCore) {
        let Some(session) = self.ceremonies.session.take() else { return };
        let old = session.attempts.get(&member).map(|attempt| (member, *attempt));
        self.is_over(&old.into_iter().collect());
        let kind = self.ceremonies.part.as_ref().map(|part| part.kind);
        self.ceremonies.retry.restart(now.monotonic, rng);
        self.persist_ceremonies();
        if let Some(kind) = kind {
            self.base.out.event(QuorumEvent::Aborted { kind, cause: AbortCause::Restarted { member } });
        }
    }

    /// Ends a session: its members' nonces are used for no other.
    pub(super) fn is_over(&mut self, attempts: &BTreeMap<KgcId, u64>) {
        let (over, own) = (&mut self.ceremonies.over, self.base.config.id);
        // §5.2: no session returns under its name with other polynomials.
        for (kgc, attempt) in attempts.iter().filter(|(kgc, _)| **kgc != own) {
            let over = over.entry(*kgc).or_default();
            *over = (*over).max(*attempt);
        }
        self.ceremonies.others.retain(|kgc, part| over.get(kgc).is_none_or(|over| part.attempt > *over));
    }

    /// Notifies a member that waits for this one in a session that this one is not in.
    pub(super) fn send_gone(&mut self, to: KgcId, session: [u8; 32]) {
        self.send(to, &QuorumMessage::Abort(CeremonyAbort { session, culprit: None }));
    }
}
