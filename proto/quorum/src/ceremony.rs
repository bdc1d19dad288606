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

use alloc::vec::Vec;

use quiver_ainq::KgcId;
use quiver_message::quorum::{Ceremony, CeremonyKind, QuorumMessage};
use quiver_quorum::QuorumSuite;
use rand_core::CryptoRngCore;

pub(super) use self::state::{CandidateShares, Ceremonies};
use self::state::{CeremonyPart, CeremonySession};
use super::{AbortCause, QuorumEvent, QuorumMembership, QuorumNode, QuorumRecord};
use crate::rounds::CeremonyRound;
use quiver_machine::{Now, Offence};

impl<S: QuorumSuite> QuorumNode<S> {
    /// Takes part in a ceremony from now on, with a fresh nonce.
    pub(super) fn take_part(&mut self, now: Now, kind: CeremonyKind, rng: &mut dyn CryptoRngCore) {
        let keys = self.base.keys.as_ref().map(|keys| keys.digest());
        match kind {
            CeremonyKind::Generation if keys.is_some() => {
                return self.refuse("this member has shares in force");
            }
            CeremonyKind::Refresh if keys.is_none() => return self.refuse("there are no shares to refresh"),
            _ => {}
        }
        // §5.3: shares that are asked for are not those of the others yet.
        if self.recovery.is_under_way() {
            return self.refuse("the shares are being asked for");
        }
        if self.ceremonies.part.is_some() {
            return self.refuse("a ceremony is under way");
        }
        if self.ceremonies.waits() {
            return self.refuse("new shares wait for confirmation");
        }
        let ceremonies = &mut self.ceremonies;
        // §5.2: attempts rise. The clock beside the counter: a member that has lost its state is not taken
        // for a late message of its own.
        ceremonies.last_attempt = ceremonies.last_attempt.saturating_add(1).max(now.unix);
        let mut nonce = [0; 32];
        rng.fill_bytes(&mut nonce);
        ceremonies.part = Some(CeremonyPart { kind, attempt: ceremonies.last_attempt, nonce, keys });
        ceremonies.retry.restart(now.monotonic, rng);
        self.persist_ceremonies();
        self.send_to_all(false);
        self.begin_if_all_are_there(now, rng);
    }

    /// Handles a member's message about a ceremony.
    pub(super) fn handle_ceremony(
        &mut self,
        now: Now,
        from: KgcId,
        message: Ceremony,
        rng: &mut dyn CryptoRngCore,
    ) {
        let asks = message.asks;
        let Ceremony { kind, attempt, nonce, keys, rounds, .. } = message;
        let part = CeremonyPart { kind, attempt, nonce, keys };
        let session = rounds.as_ref().map(|rounds| rounds.session);
        let ceremonies = &mut self.ceremonies;
        // §5.2, confirming: our new shares are made, and the sender may have made its own.
        if let Some(candidate) = &mut ceremonies.candidate
            && session == Some(candidate.session)
        {
            let confirmation = rounds.and_then(|rounds| rounds.confirmation);
            return self.handle_confirmation(now, from, confirmation, asks);
        }
        // All n have confirmed: the answer to one that does not know that yet.
        if ceremonies.settled.as_ref().is_some_and(|settled| session == Some(settled.session)) {
            if asks {
                self.send_settled(from);
            }
            return;
        }
        if let Some(rounds) = rounds {
            if ceremonies.session.as_ref().is_some_and(|own| own.id == rounds.session) {
                return self.handle_rounds(now, from, rounds, asks, rng);
            }
            if asks && ceremonies.part.is_none() {
                // §5.2: it waits for a session that is over.
                return self.send_gone(from, rounds.session);
            }
        }
        self.handle_part(now, from, part, asks, rng);
    }

    /// Handles a member's invitation to a ceremony in which this one is not, or not yet.
    fn handle_part(
        &mut self,
        now: Now,
        from: KgcId,
        part: CeremonyPart,
        asks: bool,
        rng: &mut dyn CryptoRngCore,
    ) {
        let ceremonies = &mut self.ceremonies;
        // §5.2: no lower attempt than one received, and none of a session that was left, is accepted again.
        let over = ceremonies.over.get(&from).is_some_and(|over| part.attempt <= *over);
        let known = ceremonies.others.get(&from);
        let older = known.is_some_and(|known| part.attempt < known.attempt);
        if over || older {
            return;
        }
        // §5.2: an attempt has one nonce: what contradicts an earlier message names its sender.
        if known.is_some_and(|known| known.attempt == part.attempt && *known != part) {
            return self.blame(from, Offence::OutOfPlace("second nonce for one attempt"));
        }
        let new = known.is_none_or(|known| known.attempt < part.attempt);
        let kind = part.kind;
        let ours = ceremonies.session.as_ref().and_then(|session| session.attempts.get(&from)).copied();
        // §5.2: a member that receives a higher attempt leaves the session.
        let restarted = ours.is_some_and(|ours| part.attempt > ours);
        ceremonies.others.insert(from, part);
        if restarted {
            self.start_over(now, from, rng);
        }
        if self.ceremonies.part.is_none() {
            self.invited(now, from, kind, new, rng);
        }
        if asks {
            self.send_ceremony(from, false);
        }
        self.begin_if_all_are_there(now, rng);
    }

    /// Handles the beginning of a ceremony by another member. A refresh harms none and needs all: it is
    /// joined, though not all the time.
    fn invited(&mut self, now: Now, by: KgcId, kind: CeremonyKind, new: bool, rng: &mut dyn CryptoRngCore) {
        let ours = self.base.keys.as_ref().map(|keys| keys.digest());
        let theirs = self.ceremonies.others.get(&by).and_then(|part| part.keys);
        // §5.2, gathering: every operator has commanded the ceremony for a key; a refresh of the same shares
        // is joined.
        let joins = kind == CeremonyKind::Refresh
            && ours.is_some()
            && ours == theirs
            && !self.recovery.is_under_way()
            && !self.ceremonies.waits()
            && now.monotonic >= self.ceremonies.rest;
        if joins {
            self.take_part(now, kind, rng);
        } else if new {
            self.base.out.event(QuorumEvent::Invited { by, kind });
        }
    }

    /// The rounds begin as soon as all members bring the same to the same ceremony.
    fn begin_if_all_are_there(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let ceremonies = &self.ceremonies;
        let Some(part) = ceremonies.part.as_ref().filter(|_| ceremonies.session.is_none()) else { return };
        let (id, parameters) = (self.base.config.id, self.base.config.membership.parameters());
        // §5.2: all bring the same kind and shares: H(shares to refresh) stands in the message.
        let with = |kgc: KgcId| if kgc == id { Some(part) } else { ceremonies.others.get(&kgc) };
        let fits = |other: &&CeremonyPart| other.kind == part.kind && other.keys == part.keys;
        let parts: Option<Vec<(KgcId, &CeremonyPart)>> =
            parameters.kgcs().map(|kgc| Some((kgc, with(kgc).filter(fits)?))).collect();
        let Some(parts) = parts else { return };
        // §5.2: session = H(membership, kind, shares, all attempts and nonces).
        let nonces = parts.iter().map(|(_, part)| (part.attempt, &part.nonce));
        let session = self.base.config.membership.session(part.kind, part.keys.as_ref(), nonces);
        let attempts = parts.iter().map(|(kgc, part)| (*kgc, part.attempt)).collect();
        let kind = part.kind;
        let refreshed = self.base.keys.as_ref().filter(|_| kind == CeremonyKind::Refresh);
        let Ok(round) = CeremonyRound::begin(parameters, id, refreshed, session, rng) else {
            let cause = AbortCause::Internal("the shares in force cannot be refreshed");
            return self.leave(now, cause);
        };
        let (digests, received) = Default::default();
        self.ceremonies.session = Some(CeremonySession { id: session, attempts, round, digests, received });
        // §5.2: all n have confirmed that they hold the shares from which this one starts, so the last result
        // is no member's only share.
        self.ceremonies.candidate = None;
        self.ceremonies.retry.restart(now.monotonic, rng);
        // §5.2: the seed is durable, with the session, before anything leaves.
        self.persist_ceremonies();
        self.base.out.event(QuorumEvent::SessionBegun { kind });
        self.send_to_all(false);
    }

    /// Asks the members again whose messages are awaited.
    pub(super) fn tick_ceremonies(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if !self.ceremonies.retry.has_come(now.monotonic, rng) {
            return;
        }
        if self.ceremonies.part.is_none() && self.ceremonies.candidate.is_none() {
            return self.ceremonies.retry.stop();
        }
        // §5.2: a member that waits asks again.
        for kgc in self.awaited() {
            self.send_ceremony(kgc, true);
        }
    }

    /// Members whose messages are awaited.
    pub(super) fn awaited(&self) -> Vec<KgcId> {
        let ceremonies = &self.ceremonies;
        let others = self.base.config.membership.parameters().others(self.base.config.id);
        match (&ceremonies.session, &ceremonies.part, &ceremonies.candidate) {
            (Some(session), ..) => session.round.missing(),
            (None, Some(part), _) => {
                let there = |kgc: &KgcId| {
                    let fits = |other: &CeremonyPart| other.kind == part.kind && other.keys == part.keys;
                    ceremonies.others.get(kgc).is_some_and(fits)
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
    pub(super) fn send_ceremony(&mut self, to: KgcId, asks: bool) {
        let ceremonies = &self.ceremonies;
        // §5.2: everything that there is for its receiver, so that loss and reordering do no harm.
        let candidate = ceremonies.candidate.as_ref().map(|candidate| {
            let asks = asks && !candidate.confirmed.contains(&to);
            candidate.part.message(asks, Some(candidate.rounds_for(to)))
        });
        let part = ceremonies.part.as_ref().map(|part| {
            let rounds = ceremonies.session.as_ref().map(|session| session.rounds_for(to));
            part.message(asks, rounds)
        });
        for message in candidate.into_iter().chain(part) {
            self.send(to, &QuorumMessage::Ceremony(message));
        }
    }

    pub(super) fn send_to_all(&mut self, asks: bool) {
        for kgc in self.base.config.membership.parameters().others(self.base.config.id) {
            self.send_ceremony(kgc, asks);
        }
    }

    /// Notifies a member that the ceremony is over.
    fn send_settled(&mut self, to: KgcId) {
        if let Some(settled) = &self.ceremonies.settled {
            let message = settled.part.message(false, Some(settled.rounds()));
            self.send(to, &QuorumMessage::Ceremony(message));
        }
    }

    pub(super) fn persist_ceremonies(&mut self) {
        self.base.out.persist(QuorumRecord::Ceremony(self.ceremonies.encode()));
    }
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
