//! Repair: a member that has lost its shares gets the same shares again, with the help of t others.
//!
//! ```text
//! member → all          RepairRequest(nonce)
//! helper → member       RepairOffer(nonce of its own, public shares), if its operator says so
//! member → t helpers    RepairStart(helpers and nonces): t who offer the very same public shares
//! helper → helper       RepairDelta: commitments to its deltas, and the one for the other
//! helper → member       RepairAnswer: the same commitments, and the sum of the deltas that it got
//! ```
//!
//! Nothing of it is stored. A helper that restarted has another nonce, so that its earlier randomness is
//! void; the member starts over whenever helpers are silent. Of t helpers who offer the same public shares
//! one at least is honest.
//!
//! A member that a refresh has left behind, with shares of an earlier version, recovers in the same way.

mod helper;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Element, KgcId};
use quiver_message::quorum::{
    Both, Helper, QuorumMessage, RepairAnswer, RepairOffer, RepairRequest, RepairStart,
};
use quiver_quorum::repair::Recovering;
use quiver_quorum::{Error, PublicShares, QuorumSuite};

pub(super) use self::helper::RecoveryHelper;
use crate::QuorumEvent;
use crate::context::MemberContext;
use crate::keys::{Ibe, QuorumKeyShare, QuorumKeys};
use crate::retry_timer::RetryTimer;

/// Number of times that helpers are asked again before the member starts over with others.
const ROUNDS: u32 = 5;

/// Recovery of this member's shares from the others.
#[derive(Debug)]
pub(super) struct ShareRecovery<S: QuorumSuite> {
    /// P_pub as the operator knows it: a member that lost everything takes no shares of another key.
    pub(super) master: Option<Element<S>>,
    /// The attempt under way, while the shares are being asked for.
    attempt: Option<RecoveryAttempt<S>>,
}

/// State of a member that asks for its shares.
#[derive(Debug)]
struct RecoveryAttempt<S: QuorumSuite> {
    /// Nonce of this attempt.
    nonce: [u8; 32],
    offers: BTreeMap<KgcId, RepairOffer>,
    chosen: Option<Chosen<S>>,
    /// Members that have been proved to lie, and are not asked again.
    culprits: Vec<KgcId>,
    /// Number of times that the chosen ones were asked.
    rounds: u32,
    retry: RetryTimer,
}

/// Helpers that were chosen, and their answers.
#[derive(Debug)]
struct Chosen<S: QuorumSuite> {
    start: RepairStart,
    ainq: PublicShares<S>,
    ibe: PublicShares<Ibe>,
    answers: BTreeMap<KgcId, RepairAnswer>,
}

impl<S: QuorumSuite> ShareRecovery<S> {
    pub(super) const fn new() -> Self {
        Self { master: None, attempt: None }
    }

    /// Returns true while the shares are being asked for.
    pub(super) const fn is_under_way(&self) -> bool {
        self.attempt.is_some()
    }

    /// Starts a recovery: the operator reports that the shares are lost, or out of date.
    pub(super) fn start(&mut self, cx: &mut MemberContext<'_, S>) {
        let retry = RetryTimer::new(Duration::from_secs(2), Duration::from_secs(20));
        let mut attempt = RecoveryAttempt {
            nonce: [0; 32],
            offers: BTreeMap::new(),
            chosen: None,
            culprits: Vec::new(),
            rounds: 0,
            retry,
        };
        attempt.start_over(cx);
        self.attempt = Some(attempt);
        self.ask_for_help(cx);
    }

    fn ask_for_help(&self, cx: &mut MemberContext<'_, S>) {
        for kgc in cx.others() {
            self.send(cx, kgc);
        }
    }

    /// Sends a member the message that the recovery needs.
    pub(super) fn send(&self, cx: &mut MemberContext<'_, S>, to: KgcId) {
        let Some(attempt) = &self.attempt else { return };
        let message = match &attempt.chosen {
            // §5.3: `RepairRequest` to all, then `RepairStart` to the chosen helpers.
            None => QuorumMessage::RepairRequest(RepairRequest { nonce: attempt.nonce }),
            Some(chosen) if chosen.waits_for(to) => QuorumMessage::RepairStart(chosen.start.clone()),
            Some(_) => return,
        };
        cx.send(to, &message);
    }

    /// Asks the members again whose offers or answers are awaited.
    pub(super) fn tick(&mut self, cx: &mut MemberContext<'_, S>) {
        let Some(attempt) = &mut self.attempt else { return };
        if !attempt.retry.has_come(cx.now.monotonic, cx.rng) {
            return;
        }
        if attempt.chosen.is_none() {
            self.choose_helpers(cx);
            return self.ask_for_help(cx);
        }
        // §5.3: helpers that stay silent are given up after some rounds, and the member starts over.
        attempt.rounds = attempt.rounds.saturating_add(1);
        if attempt.rounds > ROUNDS {
            attempt.start_over(cx);
        }
        self.ask_for_help(cx);
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.attempt.as_ref().and_then(|attempt| attempt.retry.deadline())
    }

    /// Handles an offer to help.
    pub(super) fn handle_offer(&mut self, cx: &mut MemberContext<'_, S>, from: KgcId, offer: RepairOffer) {
        let Some(attempt) = &mut self.attempt else { return };
        let asked = attempt.nonce == offer.nonce && !attempt.culprits.contains(&from);
        if !asked || attempt.chosen.is_some() {
            return;
        }
        attempt.offers.insert(from, offer);
        // §5.3: others are waited for: if it were always the first to answer, they could always spoil it.
        if attempt.offers.len() + attempt.culprits.len() >= cx.others().count() {
            self.choose_helpers(cx);
        }
    }

    /// Chooses any t of the members that offer the newest public shares that t offer.
    fn choose_helpers(&mut self, cx: &mut MemberContext<'_, S>) {
        let enough = cx.enough();
        let Some(attempt) = &self.attempt else { return };
        let offers = &attempt.offers;
        let alike =
            |a: &RepairOffer, b: &RepairOffer| a.version == b.version && a.public_shares == b.public_shares;
        let like = |offer: &RepairOffer| offers.values().filter(|other| alike(offer, other)).count();
        // §5.3: the newest shares that t members offer alike: one of them at least is honest.
        let offered = offers.values().filter(|offer| like(offer) >= enough);
        let Some(offer) = offered.max_by_key(|offer| offer.version).cloned() else { return };
        let mut helpers: Vec<Helper> = offers
            .iter()
            .filter(|(_, other)| alike(&offer, other))
            .map(|(kgc, other)| Helper { kgc: *kgc, nonce: other.helper_nonce })
            .collect();
        // §5.3: any t of them, at random.
        while helpers.len() > enough {
            let drawn = usize::try_from(cx.rng.next_u32()).unwrap_or_default();
            drawn.checked_rem(helpers.len()).map(|place| helpers.remove(place));
        }
        self.choose(cx, helpers, &offer);
    }

    fn choose(&mut self, cx: &mut MemberContext<'_, S>, helpers: Vec<Helper>, offer: &RepairOffer) {
        let Some((ainq, ibe)) = self.check_offer(cx, offer) else {
            // More than t − 1 members agree on what cannot be: nothing more to be done without people.
            self.attempt = None;
            return cx.refuse("members offer shares that are not this quorum's");
        };
        let (nonce, version) = (offer.nonce, offer.version);
        let session = cx.config.membership.repair(cx.config.id, &nonce, version, &helpers);
        let Some(attempt) = &mut self.attempt else { return };
        let start = RepairStart { session, nonce, version, helpers };
        attempt.chosen = Some(Chosen { start, ainq, ibe, answers: BTreeMap::new() });
        attempt.rounds = 0;
        attempt.retry.restart(cx.now.monotonic, cx.rng);
        self.ask_for_help(cx);
    }

    /// The public shares that are offered, if they can be this quorum's, and are newer than what this member
    /// has.
    fn check_offer(
        &self,
        cx: &MemberContext<'_, S>,
        offer: &RepairOffer,
    ) -> Option<(PublicShares<S>, PublicShares<Ibe>)> {
        let ainq = PublicShares::<S>::decode(&offer.public_shares.ainq).ok()?;
        let ibe = PublicShares::<Ibe>::decode(&offer.public_shares.ibe).ok()?;
        let ours = cx.config.membership.parameters();
        let fits = ainq.parameters() == ours && ibe.parameters() == ours;
        // §5.3: of this quorum's key, where it is known, and newer than what this member holds.
        let pinned = self.master.as_ref().is_none_or(|master| ainq.master() == master);
        let versions = ainq.version() == offer.version && ibe.version() == offer.version;
        let newer = cx.keys.is_none_or(|keys| {
            ainq.master() == keys.ainq().public().master()
                && ibe.master() == keys.ibe().public().master()
                && ainq.version() > keys.version()
        });
        (fits && pinned && versions && newer).then_some((ainq, ibe))
    }

    /// Handles a helper's part. Returns the shares once all parts are there, which ends the recovery.
    pub(super) fn handle_answer(
        &mut self,
        cx: &mut MemberContext<'_, S>,
        from: KgcId,
        answer: RepairAnswer,
    ) -> Option<QuorumKeys<S>> {
        let attempt = self.attempt.as_mut()?;
        let chosen = attempt.chosen.as_mut()?;
        if answer.session != chosen.start.session || !chosen.waits_for(from) {
            return None;
        }
        chosen.answers.insert(from, answer);
        if chosen.answers.len() < chosen.start.helpers.len() {
            return None;
        }
        match chosen.finish(cx.config.id) {
            Ok(keys) => {
                self.attempt = None;
                Some(keys)
            }
            Err(error) => {
                let helpers = chosen.start.helpers.iter().map(|helper| helper.kgc).collect();
                let culprits = error.culprits().to_vec();
                // §5.3: members that were proved to lie are not asked again.
                attempt.culprits.extend(&culprits);
                attempt.start_over(cx);
                cx.event(QuorumEvent::RecoveryFailed { helpers, culprits });
                self.ask_for_help(cx);
                None
            }
        }
    }
}

impl<S: QuorumSuite> RecoveryAttempt<S> {
    fn start_over(&mut self, cx: &mut MemberContext<'_, S>) {
        cx.rng.fill_bytes(&mut self.nonce);
        self.offers.clear();
        self.chosen = None;
        self.rounds = 0;
        self.retry.restart(cx.now.monotonic, cx.rng);
    }
}

impl<S: QuorumSuite> Chosen<S> {
    fn waits_for(&self, kgc: KgcId) -> bool {
        self.start.helpers.iter().any(|helper| helper.kgc == kgc) && !self.answers.contains_key(&kgc)
    }

    /// All have answered.
    fn finish(&self, own: KgcId) -> Result<QuorumKeys<S>, Error> {
        let helpers: Vec<KgcId> = self.start.helpers.iter().map(|helper| helper.kgc).collect();
        let context = self.start.session;
        let mut ainq = Recovering::new(&self.ainq, &helpers, own, context)?;
        // §5.3: both keys are repaired in one session, by the same helpers.
        let mut ibe = Recovering::new(&self.ibe, &helpers, own, context)?;
        for (from, RepairAnswer { commitments, .. }) in &self.answers {
            ainq.receive_package(*from, &commitments.ainq)?;
            ibe.receive_package(*from, &commitments.ibe)?;
        }
        for (from, RepairAnswer { answer: Both { ainq: a, ibe: b }, .. }) in &self.answers {
            ainq.receive_answer(*from, a.expose())?;
            ibe.receive_answer(*from, b.expose())?;
        }
        let ainq = QuorumKeyShare::new(ainq.finish()?, self.ainq.clone())?;
        QuorumKeys::new(ainq, QuorumKeyShare::new(ibe.finish()?, self.ibe.clone())?)
    }
}
