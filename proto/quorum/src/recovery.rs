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

use quiver_ainq::KgcId;
use quiver_message::quorum::{
    Both, Helper, QuorumMessage, RepairAnswer, RepairOffer, RepairRequest, RepairStart,
};
use quiver_quorum::repair::Recovering;
use quiver_quorum::{Error, PublicShares, QuorumSuite};
use rand_core::CryptoRngCore;

pub(super) use self::helper::Helping;
use super::keys::{Ibe, QuorumKeyShare, QuorumKeys};
use super::retry_timer::RetryTimer;
use super::{QuorumEvent, QuorumNode};
use quiver_machine::Now;

/// Number of times that helpers are asked again before the member starts over with others.
const ROUNDS: u32 = 5;

/// State of a member that asks for its shares.
#[derive(Debug)]
pub(super) struct Recovery<S: QuorumSuite> {
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

impl<S: QuorumSuite> QuorumNode<S> {
    /// Starts a recovery: the operator reports that the shares are lost, or out of date.
    pub(super) fn recover(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if self.ceremonies.part.is_some() {
            return self.refuse("a ceremony is under way");
        }
        let retry = RetryTimer::new(Duration::from_secs(2), Duration::from_secs(20));
        let mut recovery = Recovery {
            nonce: [0; 32],
            offers: BTreeMap::new(),
            chosen: None,
            culprits: Vec::new(),
            rounds: 0,
            retry,
        };
        recovery.start_over(now, rng);
        self.recovery = Some(recovery);
        self.ask_for_help();
    }

    fn ask_for_help(&mut self) {
        for kgc in self.config.membership.parameters().others(self.config.id) {
            self.send_recovery(kgc);
        }
    }

    /// Sends a member the message that the recovery needs.
    pub(super) fn send_recovery(&mut self, to: KgcId) {
        let Some(recovery) = &self.recovery else { return };
        let message = match &recovery.chosen {
            // §5.3: `RepairRequest` to all, then `RepairStart` to the chosen helpers.
            None => QuorumMessage::RepairRequest(RepairRequest { nonce: recovery.nonce }),
            Some(chosen) if chosen.waits_for(to) => QuorumMessage::RepairStart(chosen.start.clone()),
            Some(_) => return,
        };
        self.send(to, &message);
    }

    pub(super) fn tick_recovery(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let Some(recovery) = &mut self.recovery else { return };
        if !recovery.retry.has_come(now.monotonic, rng) {
            return;
        }
        if recovery.chosen.is_none() {
            self.choose_helpers(now, rng);
            return self.ask_for_help();
        }
        // §5.3: helpers that stay silent are given up after some rounds, and the member starts over.
        recovery.rounds = recovery.rounds.saturating_add(1);
        if recovery.rounds > ROUNDS {
            recovery.start_over(now, rng);
        }
        self.ask_for_help();
    }

    pub(super) fn recovery_deadline(&self) -> Option<Duration> {
        self.recovery.as_ref().and_then(|recovery| recovery.retry.deadline())
    }

    /// Handles an offer to help.
    pub(super) fn handle_repair_offer(
        &mut self,
        now: Now,
        from: KgcId,
        offer: RepairOffer,
        rng: &mut dyn CryptoRngCore,
    ) {
        let others = self.config.membership.parameters().others(self.config.id).count();
        let Some(recovery) = &mut self.recovery else { return };
        let asked = recovery.nonce == offer.nonce && !recovery.culprits.contains(&from);
        if !asked || recovery.chosen.is_some() {
            return;
        }
        recovery.offers.insert(from, offer);
        // §5.3: others are waited for: if it were always the first to answer, they could always spoil it.
        if recovery.offers.len() + recovery.culprits.len() >= others {
            self.choose_helpers(now, rng);
        }
    }

    /// Chooses any t of the members that offer the newest public shares that t offer.
    fn choose_helpers(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let enough = self.enough();
        let Some(recovery) = &mut self.recovery else { return };
        let offers = &recovery.offers;
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
            let drawn = usize::try_from(rng.next_u32()).unwrap_or_default();
            drawn.checked_rem(helpers.len()).map(|place| helpers.remove(place));
        }
        self.choose(now, helpers, &offer, rng);
    }

    fn choose(&mut self, now: Now, helpers: Vec<Helper>, offer: &RepairOffer, rng: &mut dyn CryptoRngCore) {
        let Some((ainq, ibe)) = self.check_offer(offer) else {
            // More than t − 1 members agree on what cannot be: nothing more to be done without people.
            self.recovery = None;
            return self.refuse("members offer shares that are not this quorum's");
        };
        let (nonce, version) = (offer.nonce, offer.version);
        let session = self.config.membership.repair(self.config.id, &nonce, version, &helpers);
        let Some(recovery) = &mut self.recovery else { return };
        let start = RepairStart { session, nonce, version, helpers };
        recovery.chosen = Some(Chosen { start, ainq, ibe, answers: BTreeMap::new() });
        recovery.rounds = 0;
        recovery.retry.restart(now.monotonic, rng);
        self.ask_for_help();
    }

    /// The public shares that are offered, if they can be this quorum's, and are newer than what this member
    /// has.
    fn check_offer(&self, offer: &RepairOffer) -> Option<(PublicShares<S>, PublicShares<Ibe>)> {
        let ainq = PublicShares::<S>::decode(&offer.public_shares.ainq).ok()?;
        let ibe = PublicShares::<Ibe>::decode(&offer.public_shares.ibe).ok()?;
        let ours = self.config.membership.parameters();
        let fits = ainq.parameters() == ours && ibe.parameters() == ours;
        // §5.3: of this quorum's key, where it is known, and newer than what this member holds.
        let pinned = self.master.as_ref().is_none_or(|master| ainq.master() == master);
        let versions = ainq.version() == offer.version && ibe.version() == offer.version;
        let newer = self.keys.as_ref().is_none_or(|keys| {
            ainq.master() == keys.ainq().public().master()
                && ibe.master() == keys.ibe().public().master()
                && ainq.version() > keys.version()
        });
        (fits && pinned && versions && newer).then_some((ainq, ibe))
    }

    /// A helper has done its part.
    pub(super) fn handle_repair_answer(
        &mut self,
        now: Now,
        from: KgcId,
        answer: RepairAnswer,
        rng: &mut dyn CryptoRngCore,
    ) {
        let id = self.config.id;
        let Some(recovery) = &mut self.recovery else { return };
        let Some(chosen) = &mut recovery.chosen else { return };
        if answer.session != chosen.start.session || !chosen.waits_for(from) {
            return;
        }
        chosen.answers.insert(from, answer);
        if chosen.answers.len() < chosen.start.helpers.len() {
            return;
        }
        match chosen.finish(id) {
            Ok(keys) => {
                self.recovery = None;
                // §5.2: shares that were made in a ceremony which left this member behind are superseded.
                self.ceremonies.candidate = None;
                self.persist_ceremonies();
                let version = keys.version();
                self.hold_keys(keys);
                self.out.event(QuorumEvent::Recovered { version });
                self.changed(now);
            }
            Err(error) => {
                let helpers = chosen.start.helpers.iter().map(|helper| helper.kgc).collect();
                let culprits = error.culprits().to_vec();
                // §5.3: members that were proved to lie are not asked again.
                recovery.culprits.extend(&culprits);
                recovery.start_over(now, rng);
                self.out.event(QuorumEvent::RecoveryFailed { helpers, culprits });
                self.ask_for_help();
            }
        }
    }
}

impl<S: QuorumSuite> Recovery<S> {
    fn start_over(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        rng.fill_bytes(&mut self.nonce);
        self.offers.clear();
        self.chosen = None;
        self.rounds = 0;
        self.retry.restart(now.monotonic, rng);
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
