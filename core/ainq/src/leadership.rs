//! The leader's side of a group: opening a term, then one epoch after another.
//!
//! | paper | here |
//! |---|---|
//! | GenGroupKey | [`Leadership::open_term`]: T for every member, one secret l for this epoch alone |
//! | Re-Key on expiry | [`Leadership::rekey`] with an empty [`Batch`]: hashing only |
//! | Re-Key on join | the same with joins: T for the newcomers only |
//! | Re-Key on leave | the same with removals: their ratchets are gone |
//!
//! Everything secret lives in memory only. A leader that restarts opens a new term, and so does a deputy that takes over.

mod batch;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;

use quiver_crypto::{Digest, Secret};
use rand_core::CryptoRngCore;

pub use self::batch::{Batch, Join};
use self::batch::{Newcomer, agree_with};
use crate::header::{check_leader, header_digest};
use crate::slots::{Slot, SlotSet};
use crate::strategy::{Change, Flat, Strategy};
use crate::{
    DroneKeypair, Element, Entry, Epoch, Error, GroupContext, GroupKey, Header, HeaderCore, Kind, Label,
    Roster, Suite, UnixTime,
};

/// What the leader's clock and revocation list say when it makes an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Now.
    pub issued_at: UnixTime,
    /// t_g, later than `issued_at`.
    pub valid_until: UnixTime,
    /// Number of the newest revocation list the leader knows.
    pub revocation_number: u64,
}

/// What the leader sends out for an epoch, and what it did.
#[derive(Clone, Debug)]
pub struct EpochOutput<S: Suite> {
    /// The signed header.
    pub header: Header<S>,
    /// D.
    pub digest: Digest,
    /// One entry for each member with a pairwise key, by ascending slot.
    pub entries: Vec<Entry>,
    /// The slots of the batch's joins, in their order. Empty when a term opens.
    pub assigned: Vec<Slot>,
    /// Slots whose former holders are out, ascending. Empty when a term opens.
    pub dropped: Vec<Slot>,
}

/// A leader's group in the current term.
pub struct Leadership<S: Suite> {
    context: GroupContext<S>,
    roster: Roster<S>,
    strategy: Box<dyn Strategy>,
    epoch: Epoch,
    digest: Digest,
    key: GroupKey,
}

/// The parts of a header that its kind decides.
struct Outline<'a, S: Suite> {
    kind: Kind,
    epoch: Epoch,
    prev: Digest,
    point: Option<Element<S>>,
    removed: SlotSet,
    added: SlotSet,
    absent: SlotSet,
    times: &'a Times,
}

impl<S: Suite> Leadership<S> {
    /// Opens a term: everybody of the roster that has an unused spare point (q, E_q) gets a fresh pairwise key and the
    /// group key; the others are listed as absent and have to join again.
    ///
    /// `prev` is D of the newest epoch the leader knows, zero if there is none. Members' Y are computed unless
    /// [`Roster::prepare`] did so before; beyond that it costs one multiplication per member and one for all.
    ///
    /// # Errors
    /// [`Error::NotALeader`] unless `keypair` is the context's leader, of this group and of the term's ordinal;
    /// [`Error::Expired`] if `times` are not in order.
    #[expect(
        clippy::too_many_arguments,
        reason = "they are the inputs of one operation, each of another origin"
    )]
    pub fn open_term(
        context: GroupContext<S>,
        keypair: &DroneKeypair<S>,
        mut roster: Roster<S>,
        spares: &BTreeMap<Slot, (u64, Element<S>)>,
        term: u64,
        prev: Digest,
        times: &Times,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<(Self, EpochOutput<S>), Error> {
        check_signer(&context, keypair, term)?;
        roster.prepare(&context.deployment);
        let epoch = Epoch { term, counter: 1 };
        let newcomers: Vec<_> = roster
            .members()
            .filter_map(|(slot, member)| Newcomer::with_spare(slot, member, spares.get(&slot)?))
            .collect();
        let numbers: Vec<Option<u64>> = newcomers.iter().map(|newcomer| Some(newcomer.q)).collect();
        let present: SlotSet = newcomers.iter().map(|newcomer| newcomer.slot).collect();
        let absent = roster
            .iter()
            .map(|(slot, _)| slot)
            .filter(|slot| !present.contains(*slot))
            .collect();
        let (point, ratchets) = agree_with(&context, epoch, newcomers, rng)?;

        let mut leadership = Self {
            context,
            roster,
            strategy: Box::new(Flat::new(S::ID)),
            epoch,
            digest: prev,
            key: GroupKey::new(S::ID, Secret::random(rng)),
        };
        let removed = SlotSet::new();
        let change = Change {
            removed: &removed,
            newcomers: ratchets,
        };
        let outline = Outline {
            kind: Kind::Open,
            epoch,
            prev,
            point,
            removed: SlotSet::new(),
            added: SlotSet::new(),
            absent,
            times,
        };
        let mut output = leadership.issue(keypair, outline, change, rng)?;
        // Its entry carries q. Everybody who has an entry came with a spare point, in the same order.
        output
            .entries
            .iter_mut()
            .zip(numbers)
            .for_each(|(entry, q)| entry.q = q);
        Ok((leadership, output))
    }

    /// Makes the next epoch: removals and evictions first, then joins, then a fresh group key for all. An empty batch is
    /// what expiry asks for.
    ///
    /// A join by a current member takes its old slot away first. Checking who may join is the caller's part.
    ///
    /// # Errors
    /// [`Error::WrongSlot`] if a slot to be freed is free; [`Error::Revoked`] if an evicted drone joins;
    /// [`Error::Malformed`] if one drone joins twice; [`Error::Exhausted`] if there are too few slots or epochs;
    /// [`Error::NotALeader`] for a keypair other than the term's leader's; [`Error::Expired`] if `times` are not in order.
    /// Nothing has changed then.
    pub fn rekey(
        &mut self,
        keypair: &DroneKeypair<S>,
        batch: Batch<S>,
        times: &Times,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<EpochOutput<S>, Error> {
        check_signer(&self.context, keypair, self.epoch.term)?;
        check_times(times)?;
        let counter = self.epoch.counter.checked_add(1).ok_or(Error::Exhausted)?;
        let epoch = Epoch {
            term: self.epoch.term,
            counter,
        };
        let freed = batch.freed(&self.roster)?;
        let newcomers = batch.placed(&self.roster, &freed)?;
        let assigned: Vec<Slot> = newcomers.iter().map(|newcomer| newcomer.slot).collect();
        let (point, ratchets) = agree_with(&self.context, epoch, newcomers, rng)?;

        batch.apply(&mut self.roster, &freed, &assigned)?;
        let removed: SlotSet = freed.iter().copied().collect();
        let outline = Outline {
            kind: Kind::Rekey,
            epoch,
            prev: self.digest,
            point,
            removed: removed.clone(),
            added: assigned.iter().copied().collect(),
            absent: SlotSet::new(),
            times,
        };
        let change = Change {
            removed: &removed,
            newcomers: ratchets,
        };
        let output = self.issue(keypair, outline, change, rng)?;
        Ok(EpochOutput {
            assigned,
            dropped: freed.into_iter().collect(),
            ..output
        })
    }

    /// Core, D0, wraps, tag, signature; then the new epoch is the current one and the old key is erased.
    fn issue(
        &mut self,
        keypair: &DroneKeypair<S>,
        outline: Outline<'_, S>,
        change: Change<'_>,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<EpochOutput<S>, Error> {
        let plan = self.strategy.plan(&change);
        let mut nonce = [0; 32];
        rng.fill_bytes(&mut nonce);
        let core = HeaderCore {
            group: self.context.group.clone(),
            leader: self.context.leader.clone(),
            epoch: outline.epoch,
            prev: outline.prev,
            nonce,
            issued_at: outline.times.issued_at,
            valid_until: outline.times.valid_until,
            strategy: self.strategy.kind(),
            kind: outline.kind,
            point: outline.point,
            height: plan.height,
            removed: outline.removed,
            added: outline.added,
            absent: outline.absent,
            roster_hash: self.roster.hash(),
            revocation_number: outline.times.revocation_number,
        };
        let deployment = &self.context.deployment;
        let d0 = core.digest(deployment);
        let fresh = (0..plan.fresh).map(|_| Secret::random(rng)).collect();
        let sealed = self.strategy.seal(change, fresh, &d0)?;
        let tag = *sealed.key.tag(&d0, &sealed.entries_root).expose();
        let digest = header_digest(&d0, &sealed.entries_root, &tag);
        let signature = keypair.sign(deployment, Label::Header, &digest, rng);
        (self.epoch, self.digest, self.key) = (outline.epoch, digest, sealed.key);
        let header = Header {
            core,
            entries_root: sealed.entries_root,
            tag,
            signature,
        };
        Ok(EpochOutput {
            header,
            digest,
            entries: sealed.entries,
            assigned: Vec::new(),
            dropped: Vec::new(),
        })
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

    /// Who is in the group, absent members included.
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

    /// A of the member in a slot; none if it is absent in this term.
    #[must_use]
    pub fn auth_key(&self, slot: Slot) -> Option<&Secret<32>> {
        self.strategy.auth_key(slot)
    }

    /// The members that have no key in this term, by ascending slot.
    pub fn absent(&self) -> impl Iterator<Item = Slot> + '_ {
        self.roster
            .iter()
            .map(|(slot, _)| slot)
            .filter(|slot| self.auth_key(*slot).is_none())
    }
}

impl<S: Suite> fmt::Debug for Leadership<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Leadership");
        debug
            .field("group", &self.context.group)
            .field("epoch", &self.epoch);
        debug.field("members", &self.roster.len()).finish_non_exhaustive()
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
    if times.issued_at < times.valid_until {
        Ok(())
    } else {
        Err(Error::Expired)
    }
}
