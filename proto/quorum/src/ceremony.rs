//! Key generation and refresh.
//!
//! ```text
//! gathering    each member → all     attempt and nonce; once all have the same purpose, the nonces name the session
//! committing   each member → all     commitments to its polynomials, with proofs
//! echoing      each member → all     what it has got of all
//! sharing      each member → each    the other's shares of its polynomials
//! confirming   each member → all     a hash of the new public shares: its own new share is durable
//! ```
//!
//! New shares are in force, and old ones erased, at a member that has received from each of the n its own
//! confirmation that its shares are durable. Only the confirmations of all can make it erase shares, and no
//! message can make it drop new ones that it has confirmed; so a liar can delay a refresh, but leaves every
//! honest member with shares that go with those of all other honest members.
//!
//! Every message leaves only after the state that it depends on is durable, and a member's randomness in a
//! session comes from one stored seed: after a crash it sends the same again. A member that leaves a session
//! by itself takes a fresh nonce for the next, and takes no nonce again of one that left it: no session has
//! the name of an earlier one.

mod completion;
mod rounds;
mod state;
mod store;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::KgcId;
use quiver_message::quorum::{Ceremony, CeremonyAbort, CeremonyKind, QuorumMessage};
use quiver_quorum::QuorumSuite;

pub(super) use self::state::CandidateShares;
use self::state::{CeremonyPart, CeremonySession, Settled};
use crate::context::MemberContext;
use crate::retry_timer::RetryTimer;
use crate::rounds::CeremonyRound;
use crate::{
    AbortCause, CeremonyStage, CeremonyView, QuorumConfig, QuorumEvent, QuorumMembership, QuorumRecord,
};
use quiver_machine::Offence;

/// Ceremonies of a member: those in which it takes part, those of others, and the last that ended.
#[derive(Debug)]
pub(crate) struct KeyCeremonies<S: QuorumSuite> {
    /// The highest attempt ever used.
    last_attempt: u64,
    /// The ceremony in which this member takes part, and has not made new shares in yet.
    part: Option<CeremonyPart>,
    /// Session of that, once all take part.
    session: Option<CeremonySession<S>>,
    candidate: Option<CandidateShares<S>>,
    settled: Option<Settled>,
    /// Contributions of the others.
    others: BTreeMap<KgcId, CeremonyPart>,
    /// Attempts that are over, and all before them: no session that was left comes again under its name.
    over: BTreeMap<KgcId, u64>,
    /// Timer for asking members whose messages are awaited.
    retry: RetryTimer,
    /// Time until which invitations to refresh are not accepted automatically.
    rest: Duration,
}

impl<S: QuorumSuite> KeyCeremonies<S> {
    pub(super) fn new() -> Self {
        Self {
            last_attempt: 0,
            part: None,
            session: None,
            candidate: None,
            settled: None,
            others: BTreeMap::new(),
            over: BTreeMap::new(),
            // §5.2: asks again after 1 s to 30 s.
            retry: RetryTimer::new(Duration::from_secs(1), Duration::from_secs(30)),
            rest: Duration::ZERO,
        }
    }

    /// Returns true if there are new shares that all members may still come to confirm: nothing new is begun
    /// meanwhile.
    fn waits(&self) -> bool {
        // §5.2: shares that all may still come to confirm are waited for.
        self.candidate.as_ref().is_some_and(|candidate| candidate.gone.is_empty())
    }

    /// Returns true while this member takes part in a ceremony that has not come to new shares.
    pub(super) const fn takes_part(&self) -> bool {
        self.part.is_some()
    }

    /// Takes part in a ceremony from now on, with a fresh nonce; not while the shares are being recovered.
    pub(super) fn take_part(&mut self, cx: &mut MemberContext<'_, S>, kind: CeremonyKind, recovering: bool) {
        let keys = cx.digest();
        match kind {
            CeremonyKind::Generation if keys.is_some() => {
                return cx.refuse("this member has shares in force");
            }
            CeremonyKind::Refresh if keys.is_none() => return cx.refuse("there are no shares to refresh"),
            _ => {}
        }
        // §5.3: shares that are asked for are not those of the others yet.
        if recovering {
            return cx.refuse("the shares are being asked for");
        }
        if self.part.is_some() {
            return cx.refuse("a ceremony is under way");
        }
        if self.waits() {
            return cx.refuse("new shares wait for confirmation");
        }
        // §5.2: attempts rise. The clock beside the counter: a member that has lost its state is not taken
        // for a late message of its own.
        self.last_attempt = self.last_attempt.saturating_add(1).max(cx.now.unix);
        let mut nonce = [0; 32];
        cx.rng.fill_bytes(&mut nonce);
        self.part = Some(CeremonyPart { kind, attempt: self.last_attempt, nonce, keys });
        self.retry.restart(cx.now.monotonic, cx.rng);
        self.persist(cx);
        self.send_to_all(cx, false);
        self.begin_if_all_are_there(cx);
    }

    /// Handles a member's message about a ceremony. Returns the new shares once all members have confirmed
    /// theirs: they are to be put in force.
    pub(super) fn handle(
        &mut self,
        cx: &mut MemberContext<'_, S>,
        from: KgcId,
        message: Ceremony,
        recovering: bool,
    ) -> Option<CandidateShares<S>> {
        let asks = message.asks;
        let Ceremony { kind, attempt, nonce, keys, rounds, .. } = message;
        let part = CeremonyPart { kind, attempt, nonce, keys };
        let session = rounds.as_ref().map(|rounds| rounds.session);
        // §5.2, confirming: our new shares are made, and the sender may have made its own.
        if self.candidate.as_ref().is_some_and(|candidate| session == Some(candidate.session)) {
            let confirmation = rounds.and_then(|rounds| rounds.confirmation);
            return self.handle_confirmation(cx, from, confirmation, asks);
        }
        // All n have confirmed: the answer to one that does not know that yet.
        if self.settled.as_ref().is_some_and(|settled| session == Some(settled.session)) {
            if asks {
                self.send_settled(cx, from);
            }
            return None;
        }
        if let Some(rounds) = rounds {
            if self.session.as_ref().is_some_and(|own| own.id == rounds.session) {
                return self.handle_rounds(cx, from, rounds, asks);
            }
            if asks && self.part.is_none() {
                // §5.2: it waits for a session that is over.
                send_gone(cx, from, rounds.session);
                return None;
            }
        }
        self.handle_part(cx, from, part, asks, recovering);
        None
    }

    /// Handles a member's invitation to a ceremony in which this one is not, or not yet.
    fn handle_part(
        &mut self,
        cx: &mut MemberContext<'_, S>,
        from: KgcId,
        part: CeremonyPart,
        asks: bool,
        recovering: bool,
    ) {
        // §5.2: no lower attempt than one received, and none of a session that was left, is accepted again.
        let over = self.over.get(&from).is_some_and(|over| part.attempt <= *over);
        let known = self.others.get(&from);
        let older = known.is_some_and(|known| part.attempt < known.attempt);
        if over || older {
            return;
        }
        // §5.2: an attempt has one nonce: what contradicts an earlier message names its sender.
        if known.is_some_and(|known| known.attempt == part.attempt && *known != part) {
            return cx.blame(from, Offence::OutOfPlace("second nonce for one attempt"));
        }
        let new = known.is_none_or(|known| known.attempt < part.attempt);
        let kind = part.kind;
        let ours = self.session.as_ref().and_then(|session| session.attempts.get(&from)).copied();
        // §5.2: a member that receives a higher attempt leaves the session.
        let restarted = ours.is_some_and(|ours| part.attempt > ours);
        self.others.insert(from, part);
        if restarted {
            self.start_over(cx, from);
        }
        if self.part.is_none() {
            self.invited(cx, from, kind, new, recovering);
        }
        if asks {
            self.send(cx, from, false);
        }
        self.begin_if_all_are_there(cx);
    }

    /// Handles the beginning of a ceremony by another member. A refresh harms none and needs all: it is
    /// joined, though not all the time.
    fn invited(
        &mut self,
        cx: &mut MemberContext<'_, S>,
        by: KgcId,
        kind: CeremonyKind,
        new: bool,
        recovering: bool,
    ) {
        let ours = cx.digest();
        let theirs = self.others.get(&by).and_then(|part| part.keys);
        // §5.2, gathering: every operator has commanded the ceremony for a key; a refresh of the same shares
        // is joined.
        let joins = kind == CeremonyKind::Refresh
            && ours.is_some()
            && ours == theirs
            && !recovering
            && !self.waits()
            && cx.now.monotonic >= self.rest;
        if joins {
            self.take_part(cx, kind, recovering);
        } else if new {
            cx.event(QuorumEvent::Invited { by, kind });
        }
    }

    /// The rounds begin as soon as all members bring the same to the same ceremony.
    fn begin_if_all_are_there(&mut self, cx: &mut MemberContext<'_, S>) {
        let Some(part) = self.part.as_ref().filter(|_| self.session.is_none()) else { return };
        let id = cx.config.id;
        let parameters = cx.config.membership.parameters();
        // §5.2: all bring the same kind and shares: H(shares to refresh) stands in the message.
        let with = |kgc: KgcId| if kgc == id { Some(part) } else { self.others.get(&kgc) };
        let fits = |other: &&CeremonyPart| other.kind == part.kind && other.keys == part.keys;
        let parts: Option<Vec<(KgcId, &CeremonyPart)>> =
            parameters.kgcs().map(|kgc| Some((kgc, with(kgc).filter(fits)?))).collect();
        let Some(parts) = parts else { return };
        // §5.2: session = H(membership, kind, shares, all attempts and nonces).
        let nonces = parts.iter().map(|(_, part)| (part.attempt, &part.nonce));
        let session = cx.config.membership.session(part.kind, part.keys.as_ref(), nonces);
        let attempts = parts.iter().map(|(kgc, part)| (*kgc, part.attempt)).collect();
        let kind = part.kind;
        let refreshed = cx.keys.filter(|_| kind == CeremonyKind::Refresh);
        let Ok(round) = CeremonyRound::begin(parameters, id, refreshed, session, cx.rng) else {
            let cause = AbortCause::Internal("the shares in force cannot be refreshed");
            return self.leave(cx, cause);
        };
        let (digests, received) = Default::default();
        self.session = Some(CeremonySession { id: session, attempts, round, digests, received });
        // §5.2: all n have confirmed that they hold the shares from which this one starts, so the last result
        // is no member's only share.
        self.candidate = None;
        self.retry.restart(cx.now.monotonic, cx.rng);
        // §5.2: the seed is durable, with the session, before anything leaves.
        self.persist(cx);
        cx.event(QuorumEvent::SessionBegun { kind });
        self.send_to_all(cx, false);
    }

    /// Asks the members again whose messages are awaited.
    pub(super) fn tick(&mut self, cx: &mut MemberContext<'_, S>) {
        if !self.retry.has_come(cx.now.monotonic, cx.rng) {
            return;
        }
        if self.part.is_none() && self.candidate.is_none() {
            return self.retry.stop();
        }
        // §5.2: a member that waits asks again.
        for kgc in self.awaited(cx.config) {
            self.send(cx, kgc, true);
        }
    }

    pub(super) const fn deadline(&self) -> Option<Duration> {
        self.retry.deadline()
    }

    /// Members whose messages are awaited.
    pub(super) fn awaited(&self, config: &QuorumConfig) -> Vec<KgcId> {
        let others = config.membership.parameters().others(config.id);
        match (&self.session, &self.part, &self.candidate) {
            (Some(session), ..) => session.round.missing(),
            (None, Some(part), _) => {
                let there = |kgc: &KgcId| {
                    let fits = |other: &CeremonyPart| other.kind == part.kind && other.keys == part.keys;
                    self.others.get(kgc).is_some_and(fits)
                };
                others.filter(|kgc| !there(kgc)).collect()
            }
            (None, None, Some(candidate)) => {
                others.filter(|kgc| !candidate.confirmed.contains(kgc)).collect()
            }
            (None, None, None) => Vec::new(),
        }
    }

    /// Sends a member all messages of this one about the ceremonies under way.
    pub(super) fn send(&self, cx: &mut MemberContext<'_, S>, to: KgcId, asks: bool) {
        // §5.2: everything that there is for its receiver, so that loss and reordering do no harm.
        let candidate = self.candidate.as_ref().map(|candidate| {
            let asks = asks && !candidate.confirmed.contains(&to);
            candidate.part.message(asks, Some(candidate.rounds_for(to)))
        });
        let part = self.part.as_ref().map(|part| {
            let rounds = self.session.as_ref().map(|session| session.rounds_for(to));
            part.message(asks, rounds)
        });
        for message in candidate.into_iter().chain(part) {
            cx.send(to, &QuorumMessage::Ceremony(message));
        }
    }

    fn send_to_all(&self, cx: &mut MemberContext<'_, S>, asks: bool) {
        for kgc in cx.others() {
            self.send(cx, kgc, asks);
        }
    }

    /// Notifies a member that the ceremony is over.
    fn send_settled(&self, cx: &mut MemberContext<'_, S>, to: KgcId) {
        if let Some(settled) = &self.settled {
            let message = settled.part.message(false, Some(settled.rounds()));
            cx.send(to, &QuorumMessage::Ceremony(message));
        }
    }

    fn persist(&self, cx: &mut MemberContext<'_, S>) {
        cx.persist(QuorumRecord::Ceremony(self.encode()));
    }

    /// The ceremony under way, for the operator.
    pub(super) fn view(&self, config: &QuorumConfig) -> Option<CeremonyView> {
        let part = self.part.as_ref().or(self.candidate.as_ref().map(|candidate| &candidate.part))?;
        let stage = match (&self.part, &self.session) {
            (None, _) => CeremonyStage::Confirming,
            (Some(_), None) => CeremonyStage::Gathering,
            (Some(_), Some(session)) => match session.round {
                CeremonyRound::Dealing(..) => CeremonyStage::Committing,
                CeremonyRound::Echoing(..) => CeremonyStage::Echoing,
                CeremonyRound::Sharing(..) => CeremonyStage::Sharing,
            },
        };
        Some(CeremonyView { kind: part.kind, stage, waits_for: self.awaited(config) })
    }
}

/// Notifies a member that waits for this one in a session that this one is not in.
fn send_gone<S: QuorumSuite>(cx: &mut MemberContext<'_, S>, to: KgcId, session: [u8; 32]) {
    cx.send(to, &QuorumMessage::Abort(CeremonyAbort { session, culprit: None }));
}

/// A digest of each member's commitments, in the order of the members.
fn digests<S: QuorumSuite>(
    session: &CeremonySession<S>,
    own: KgcId,
    parameters: quiver_quorum::QuorumParameters,
) -> Vec<[u8; 32]> {
    let commitments = session.round.commitments();
    let of = |kgc: KgcId| {
        let said = session.received.get(&kgc).and_then(|rounds| rounds.commitments.as_ref());
        let said = if kgc == own { Some(&commitments) } else { said };
        said.map_or([0; 32], |said| QuorumMembership::commitments(&session.id, kgc, said))
    };
    parameters.kgcs().map(of).collect()
}
