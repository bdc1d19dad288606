//! Ends a ceremony, with success or without.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use core::time::Duration;

use quiver_ainq::KgcId;
use quiver_machine::{Now, Offence};
use quiver_message::quorum::{CeremonyAbort, QuorumMessage};
use quiver_quorum::QuorumSuite;

use super::KeyCeremonies;
use super::state::{CandidateShares, Settled};
use crate::context::MemberContext;
use crate::keys::QuorumKeys;
use crate::{AbortCause, QuorumEvent};

/// Time for which a member does not join a refresh after the last one ended.
const REST: Duration = Duration::from_secs(60);

impl<S: QuorumSuite> KeyCeremonies<S> {
    /// Handles a member's report whether its new shares are durable. Returns those of this member once all
    /// have confirmed: they are to be put in force.
    pub(super) fn handle_confirmation(
        &mut self,
        cx: &mut MemberContext<'_, S>,
        from: KgcId,
        confirmation: Option<[u8; 32]>,
        asks: bool,
    ) -> Option<CandidateShares<S>> {
        let others = cx.others().count();
        let candidate = self.candidate.as_mut()?;
        match confirmation {
            // §5.2: H(new public shares), once the new shares are durable there.
            Some(digest) if digest == candidate.digest => {
                candidate.confirmed.insert(from);
            }
            Some(_) => cx.blame(from, Offence::OutOfPlace("confirmation of other shares")),
            None => {}
        }
        if asks {
            self.send(cx, from, false);
        }
        // §5.2: in force once all n have confirmed, each by itself.
        self.candidate.take_if(|candidate| candidate.confirmed.len() == others)
    }

    /// Settles the ceremony of new shares, which take the place of the old ones.
    pub(crate) fn settle(&mut self, now: Now, candidate: CandidateShares<S>) -> Box<QuorumKeys<S>> {
        self.rest = now.monotonic.saturating_add(REST);
        self.forget_making(candidate)
    }

    /// Completes, after a restart, what a crash between two records interrupted.
    pub(crate) fn reconcile(&mut self, in_force: Option<[u8; 32]>) {
        // §5.2: stored as being in force, and not yet as settled: the others have all confirmed.
        if let Some(candidate) = self.candidate.take_if(|candidate| Some(candidate.digest) == in_force) {
            drop(self.forget_making(candidate));
        }
        if self.part.is_some() || self.candidate.is_some() {
            // §5.2: members whose messages are awaited are asked at once.
            self.retry.hurry(Duration::ZERO);
        }
    }

    /// Keeps nothing of how shares in force were made, but that they were.
    fn forget_making(&mut self, candidate: CandidateShares<S>) -> Box<QuorumKeys<S>> {
        let CandidateShares { part, session, keys, digest, .. } = candidate;
        // §5.2: in force: the shares for the others and the old ones are erased.
        self.settled = Some(Settled { part, session, digest });
        keys
    }

    /// Goes on with other shares in force, and leaves a ceremony that was begun with the ones before.
    pub(crate) fn shares_replaced(&mut self, cx: &mut MemberContext<'_, S>) {
        self.persist(cx);
        if self.part.is_some() {
            // §5.2: begun with the shares that were in force before.
            self.leave(cx, AbortCause::Superseded);
        }
    }

    /// Drops new shares that a ceremony has left this member behind with: it has recovered others.
    pub(crate) fn recovered(&mut self, cx: &mut MemberContext<'_, S>) {
        // §5.2: shares that were made in a ceremony which left this member behind are superseded.
        self.candidate = None;
        self.persist(cx);
    }

    /// Takes the new shares, because the operator knows that they are in force elsewhere.
    pub(crate) fn adopt(&mut self, cx: &mut MemberContext<'_, S>) -> Option<CandidateShares<S>> {
        // §5.2: operators that know it put the new shares in force (`Adopt`).
        let candidate = self.candidate.take();
        if candidate.is_none() {
            cx.refuse("no shares wait for confirmation");
        }
        candidate
    }

    /// The operator has had enough of it.
    pub(crate) fn abandon(&mut self, cx: &mut MemberContext<'_, S>) {
        if self.part.is_some() {
            return self.leave(cx, AbortCause::Abandoned);
        }
        match &mut self.candidate {
            // §5.2: they are kept, but need not be waited for.
            Some(candidate) => drop(candidate.gone.insert(cx.config.id)),
            None => cx.refuse("no ceremony is under way"),
        }
    }

    /// A member has left a session.
    pub(crate) fn handle_abort(&mut self, cx: &mut MemberContext<'_, S>, from: KgcId, abort: &CeremonyAbort) {
        let cause = AbortCause::Left { member: from, blames: abort.culprit };
        // §5.5: a member's claim that a session is over ends it for all before shares are made.
        if self.session.as_ref().is_some_and(|session| session.id == abort.session) {
            return self.leave(cx, cause);
        }
        // §5.2: new shares are kept all the same: others may have confirmed theirs to all but us.
        if let Some(candidate) = &mut self.candidate
            && candidate.session == abort.session
            && candidate.gone.insert(from)
        {
            let kind = candidate.part.kind;
            cx.event(QuorumEvent::Aborted { kind, cause });
        }
    }

    /// Ends this member's part in the ceremony that it is in.
    pub(super) fn leave(&mut self, cx: &mut MemberContext<'_, S>, cause: AbortCause) {
        if let Some(session) = self.session.take() {
            return self.leave_session(cx, session.id, &session.attempts, cause);
        }
        self.end(cx, cause);
    }

    pub(super) fn leave_session(
        &mut self,
        cx: &mut MemberContext<'_, S>,
        id: [u8; 32],
        attempts: &BTreeMap<KgcId, u64>,
        cause: AbortCause,
    ) {
        self.is_over(cx.config.id, attempts);
        // §5.2: whatever fails a check ends the session and names its sender.
        let culprit = match cause {
            AbortCause::Fault { culprit, .. } => Some(culprit),
            AbortCause::Transcript { sender, .. } => Some(sender),
            _ => None,
        };
        self.end(cx, cause);
        cx.send_to_others(&QuorumMessage::Abort(CeremonyAbort { session: id, culprit }));
    }

    fn end(&mut self, cx: &mut MemberContext<'_, S>, cause: AbortCause) {
        let Some(part) = self.part.take() else { return };
        self.session = None;
        self.rest = cx.now.monotonic.saturating_add(REST);
        self.persist(cx);
        cx.event(QuorumEvent::Aborted { kind: part.kind, cause });
    }

    /// A member has begun anew: the session is over, and another may begin with its new nonce. This member
    /// keeps its own: no session has the name of this one as long as the other's old nonce is not taken
    /// again.
    pub(super) fn start_over(&mut self, cx: &mut MemberContext<'_, S>, member: KgcId) {
        let Some(session) = self.session.take() else { return };
        let old = session.attempts.get(&member).map(|attempt| (member, *attempt));
        self.is_over(cx.config.id, &old.into_iter().collect());
        let kind = self.part.as_ref().map(|part| part.kind);
        self.retry.restart(cx.now.monotonic, cx.rng);
        self.persist(cx);
        if let Some(kind) = kind {
            cx.event(QuorumEvent::Aborted { kind, cause: AbortCause::Restarted { member } });
        }
    }

    /// Ends a session: its members' nonces are used for no other.
    pub(super) fn is_over(&mut self, own: KgcId, attempts: &BTreeMap<KgcId, u64>) {
        let over = &mut self.over;
        // §5.2: no session returns under its name with other polynomials.
        for (kgc, attempt) in attempts.iter().filter(|(kgc, _)| **kgc != own) {
            let over = over.entry(*kgc).or_default();
            *over = (*over).max(*attempt);
        }
        self.others.retain(|kgc, part| over.get(kgc).is_none_or(|over| part.attempt > *over));
    }
}
