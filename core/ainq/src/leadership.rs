//! The group at its leader: opens a term, then makes one epoch after another.
//!
//! | paper | here |
//! |---|---|
//! | GenGroupKey | [`Leadership::open_term`]: T for every member, one secret l for this epoch alone |
//! | Re-Key on expiry | [`Leadership::rekey`] with an empty [`Batch`]: hashing only |
//! | Re-Key on join | the same with joins: T for the newcomers only |
//! | Re-Key on leave | the same with removals: their ratchets are gone |
//!
//! Everything secret lives in memory only. A leader that restarts opens a new term, and so does a deputy that
//! takes over.

mod batch;
mod draft;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use quiver_crypto::{Digest, Secret};
use rand_core::CryptoRngCore;

use self::batch::Newcomer;
pub use self::batch::{Batch, Join};
use self::draft::Draft;
use crate::header::check_leader;
use crate::kem::TermKeys;
use crate::slots::{Slot, SlotChanges, SlotSet};
use crate::strategy::{self, Strategy};
use crate::tree::{PathMessage, PathNonce, WrapTree};
use crate::{
    DroneKeypair, Element, Entry, Epoch, EpochKind, Error, GroupContext, GroupKey, Header, KemTerm, Roster,
    StrategyKind, Suite, UnixTime,
};

/// The leader's clock and revocation list when it makes an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Now.
    pub issued_at: UnixTime,
    /// t_g, later than `issued_at`.
    pub valid_until: UnixTime,
    /// Number of the newest revocation list the leader knows.
    pub revocation_number: u64,
}

/// Messages of an epoch, and its changes.
#[derive(Clone, Debug)]
pub struct EpochOutput<S: Suite> {
    /// The signed header.
    pub header: Header<S>,
    /// D.
    pub digest: Digest,
    /// Slots of removed and added members, of which the header may have the digest only. Empty when a term opens.
    pub changes: SlotChanges,
    /// An entry for each member with a pairwise key, by ascending slot. Under `tree` only when a term opens.
    pub entries: Vec<Entry>,
    /// Wraps for every earlier member of the group, all of them; under `tree` alone. Newcomers get their
    /// [`path_message`](Leadership::path_message), unless they [follow](Self::newcomers_follow). When a term
    /// opens, for all members, in place of their entry and path message.
    pub wraps: Option<WrapTree>,
    /// True if newcomers follow by the wraps, if they are told their slots, as [`Batch::by_wraps`] asked for.
    pub newcomers_follow: bool,
    /// The slots of the batch's joins, in their order. Empty when a term opens.
    pub assigned: Vec<Slot>,
    /// The slots of the batch's admissions, in their order.
    pub admitted: Vec<Slot>,
    /// Slots of removed members, ascending. Empty when a term opens.
    pub dropped: Vec<Slot>,
}

/// A leader's group in the current term.
#[derive(derive_more::Debug)]
#[debug("Leadership {{ group: {:?}, epoch: {epoch:?}, members: {}, .. }}", context.group, roster.len())]
pub struct Leadership<S: Suite> {
    context: GroupContext<S>,
    roster: Roster<S>,
    strategy: Box<dyn Strategy<S>>,
    epoch: Epoch,
    digest: Digest,
    key: GroupKey,
    /// Parameter set and count of the second factor in this term.
    kem: Option<KemTerm>,
}

impl<S: Suite> Leadership<S> {
    /// Opens a term without anonymous members: every member of the roster with an unused spare point (q, E_q)
    /// gets a fresh pairwise key and the group key; the others are listed as absent and have to join again.
    ///
    /// `prev` is D of the newest epoch the leader knows, zero if there is none. Members' Y are computed
    /// unless [`Roster::prepare`] did so before; beyond that it costs one multiplication per member and one
    /// for all.
    ///
    /// # Errors
    /// [`Error::NotALeader`] unless `keypair` is the context's leader, of this group and of the term's
    /// ordinal; [`Error::Expired`] if `times` are not in order.
    #[expect(
        clippy::too_many_arguments,
        reason = "they are the inputs of one operation, each of another origin"
    )]
    pub fn open_term(
        context: GroupContext<S>,
        keypair: &DroneKeypair<S>,
        roster: Roster<S>,
        spares: &BTreeMap<Slot, (u64, Element<S>)>,
        term: u64,
        prev: Digest,
        times: &Times,
        strategy: StrategyKind,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<(Self, EpochOutput<S>), Error> {
        Self::open(context, keypair, (roster, None), spares, (term, prev), times, strategy, rng)
    }

    /// As [`open_term`](Self::open_term), with a second factor: members whose κ is missing, or of another set
    /// or count than the term's, are absent as well.
    ///
    /// # Errors
    /// As [`open_term`](Self::open_term).
    #[expect(
        clippy::too_many_arguments,
        reason = "they are the inputs of one operation, each of another origin"
    )]
    pub fn open_term_with_kem(
        context: GroupContext<S>,
        keypair: &DroneKeypair<S>,
        roster: Roster<S>,
        spares: &BTreeMap<Slot, (u64, Element<S>)>,
        keys: &TermKeys<S>,
        (term, prev): (u64, Digest),
        times: &Times,
        strategy: StrategyKind,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<(Self, EpochOutput<S>), Error> {
        Self::open(context, keypair, (roster, Some(keys)), spares, (term, prev), times, strategy, rng)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "they are the inputs of one operation, each of another origin"
    )]
    fn open(
        context: GroupContext<S>,
        keypair: &DroneKeypair<S>,
        (mut roster, keys): (Roster<S>, Option<&TermKeys<S>>),
        spares: &BTreeMap<Slot, (u64, Element<S>)>,
        (term, prev): (u64, Digest),
        times: &Times,
        strategy: StrategyKind,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<(Self, EpochOutput<S>), Error> {
        // §9.1: the term's ordinal is the signer's own.
        check_signer(&context, keypair, term)?;
        check_times(times)?;
        let mut strategy = strategy::new(strategy);
        // §6.5: anonymous memberships end with their term.
        roster.forget_anonymous();
        roster.prepare(&context.deployment);
        let newcomers: Vec<_> = roster
            .members()
            .filter_map(|(slot, member)| {
                Newcomer::with_spare(slot, member, spares.get(&slot)?)?.with_key(keys)
            })
            .collect();
        // §9.1: members without an unused spare point are absent, and join again.
        let present: SlotSet = newcomers.iter().map(|newcomer| newcomer.slot).collect();
        let absent = roster.iter().map(|(slot, _)| slot).filter(|slot| !present.contains(*slot));
        // §9.1: a new term, counter 1.
        let epoch = Epoch { term, counter: 1 };
        let mut draft = Draft::new(&context, EpochKind::Open, epoch, prev, times);
        draft.absent = absent.collect();
        let kem = keys.map(TermKeys::term);
        draft.kem = kem;
        draft.roster_hash = roster.hash();
        // §9.1: fresh l and V; T with each unused spare point.
        let ratchets = draft.agree(&newcomers, &[], rng)?;
        let highest = roster.highest();
        let (mut output, key) = draft.issue(keypair, strategy.as_mut(), ratchets, highest, rng);
        for entry in &mut output.entries {
            // §9.1: the entry names the q that it used.
            entry.q = spares.get(&entry.slot).map(|(q, _)| *q);
        }
        let digest = output.digest;
        Ok((Self { context, roster, strategy, epoch, digest, key, kem }, output))
    }

    /// Makes the next epoch: removals and evictions first, then joins, then a fresh group key for all. An
    /// empty batch is what expiry asks for.
    ///
    /// A join by a current member takes its old slot away first. Checking who may join is the caller's part.
    ///
    /// # Errors
    /// [`Error::WrongSlot`] if a slot to be freed is free; [`Error::Revoked`] if an evicted drone joins;
    /// [`Error::Malformed`] if one drone joins twice; [`Error::Exhausted`] if there are too few slots or
    /// epochs; [`Error::NotALeader`] for a keypair other than the term's leader's; [`Error::Expired`] if
    /// `times` are not in order; [`Error::TooLong`] for more runs of slots removed or added than
    /// [`MAX_RUNS`](crate::MAX_RUNS); [`Error::MissingKem`] or [`Error::OtherKem`] for a join whose κ is not
    /// of the term's set and count. Nothing has changed then.
    pub fn rekey(
        &mut self,
        keypair: &DroneKeypair<S>,
        batch: Batch<S>,
        times: &Times,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<EpochOutput<S>, Error> {
        check_signer(&self.context, keypair, self.epoch.term)?;
        check_times(times)?;
        let counter = self.epoch.counter.saturating_add(1);
        let epoch = Epoch { term: self.epoch.term, counter };
        // §7.3, 1: no edge accepts a counter above the bound.
        if !epoch.is_within_bounds() {
            return Err(Error::Exhausted);
        }
        // §8.2, 1: removals first: a freed slot may be filled again at once.
        let freed = batch.freed(&self.roster)?;
        let newcomers_follow = batch.adds_by_wraps() && self.strategy() == StrategyKind::Tree;
        // The former member of a slot that is filled again would take the newcomer's wrap for its own.
        let reusable = if newcomers_follow { &BTreeSet::new() } else { &freed };
        let (newcomers, admitted) = batch.placed(&self.roster, reusable)?;
        let assigned: Vec<Slot> = newcomers.iter().map(|newcomer| newcomer.slot).collect();
        // §8.7: nobody accepts more, listed in a header or sent beside it.
        let removed = freed.iter().copied().collect::<SlotSet>().within_bounds()?;
        let added = assigned.iter().chain(&admitted).copied().collect::<SlotSet>().within_bounds()?;
        // §7.1: `prev` is D of the epoch that this one builds on.
        let mut draft = Draft::new(&self.context, EpochKind::Rekey, epoch, self.digest, times);
        draft.kem = self.kem;
        let anonymous: Vec<_> = admitted.iter().copied().zip(&batch.admissions).collect();
        // §7.2: curve work for the newcomers alone.
        let ratchets = draft.agree(&newcomers, &anonymous, rng)?;
        // Nothing below can fail.
        batch.apply(&mut self.roster, &freed, &assigned, &admitted)?;
        draft.newcomers_follow = newcomers_follow;
        draft.changes = SlotChanges { removed, added };
        draft.roster_hash = self.roster.hash();
        let highest = self.roster.highest();
        let (output, key) = draft.issue(keypair, self.strategy.as_mut(), ratchets, highest, rng);
        // The old key is erased here.
        (self.epoch, self.digest, self.key) = (epoch, output.digest, key);
        Ok(EpochOutput { assigned, admitted, dropped: freed.into_iter().collect(), ..output })
    }

    /// Makes the path message of a member that cannot use wraps: the keys above its leaf, and the group key,
    /// beside the header of the current epoch. It may be made as often as it is asked for.
    ///
    /// # Errors
    /// [`Error::UnsupportedStrategy`] if the term has no tree; [`Error::WrongSlot`] if the slot has no key in
    /// this term.
    pub fn path_message(&mut self, slot: Slot, r: &PathNonce) -> Result<PathMessage, Error> {
        self.strategy.path(slot, &self.digest, r, &self.key)
    }

    /// Finishes an epoch after its messages are sent: under `flat` every member's chain is stepped. The next
    /// epoch would do it first, so forgetting it is slow, not unsafe.
    pub fn settle(&mut self) {
        // §7.2: flat's steps are made when the epoch has gone out.
        self.strategy.settle();
    }

    /// Parameter set and count of the second factor in this term, if there is one.
    #[must_use]
    pub const fn kem(&self) -> Option<KemTerm> {
        self.kem
    }

    /// Re-key strategy of this term.
    #[must_use]
    pub fn strategy(&self) -> StrategyKind {
        self.strategy.kind()
    }

    /// The current epoch.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// D of the current epoch.
    #[must_use]
    pub const fn digest(&self) -> &Digest {
        &self.digest
    }

    /// The roster of the group, absent members included.
    #[must_use]
    pub const fn roster(&self) -> &Roster<S> {
        &self.roster
    }

    /// Deployment, group and leader.
    #[must_use]
    pub const fn context(&self) -> &GroupContext<S> {
        &self.context
    }

    /// K_g of the current epoch.
    #[must_use]
    pub const fn group_key(&self) -> &GroupKey {
        &self.key
    }

    /// A of the member in a slot; `None` if it is absent in this term.
    #[must_use]
    pub fn auth_key(&self, slot: Slot) -> Option<&Secret<32>> {
        self.strategy.auth_key(slot)
    }

    /// The members that have no key in this term, by ascending slot.
    pub fn absent(&self) -> impl Iterator<Item = Slot> + '_ {
        self.roster.iter().map(|(slot, _)| slot).filter(|slot| self.auth_key(*slot).is_none())
    }
}

fn check_signer<S: Suite>(
    context: &GroupContext<S>,
    keypair: &DroneKeypair<S>,
    term: u64,
) -> Result<(), Error> {
    if keypair.public().handle() != context.leader.handle() {
        return Err(Error::NotALeader);
    }
    check_leader(&context.leader.identity.role, &context.group, term)
}

fn check_times(times: &Times) -> Result<(), Error> {
    if times.issued_at < times.valid_until { Ok(()) } else { Err(Error::Expired) }
}
