//! Advances a membership to a newer epoch, by entry, path or wraps; keeps nothing unless the tag verifies.

use alloc::vec::Vec;

use quiver_crypto::ct_eq;

use super::{GroupMembership, LeaderKeys, OneTime, agree};
use crate::slots::Slot;
use crate::tree::{Delta, EpochPart, HmacXor, Path, PathMessage, group_key};
use crate::{
    DroneKeypair, Entry, EpochKind, Error, GroupContext, GroupKey, KemKey, SparePair, StrategyKind, Suite,
    VerifiedHeader,
};

/// State of a membership after an epoch.
struct Next<S: Suite> {
    pair: LeaderKeys<S>,
    path: Option<Path<HmacXor<S>>>,
    key: GroupKey,
}

impl<S: Suite> GroupMembership<S> {
    pub(super) fn follow_to_term(
        &self,
        context: &GroupContext<S>,
        keypair: &DroneKeypair<S>,
        (spare, kem): (Option<&SparePair<S>>, Option<&KemKey<S>>),
        header: &VerifiedHeader<S>,
        part: &EpochPart,
    ) -> Result<Self, Error> {
        let core = header.core();
        // §7.3, 2: only a newer term.
        if core.epoch.term <= self.epoch.term {
            return Err(Error::Stale);
        }
        // §9.1: an absent member joins again.
        if !core.adds(self.slot) {
            return Err(Error::MissingEntry);
        }
        let spare = spare.ok_or(Error::WrongSpare)?;
        match part {
            // §9.1: the entry names the spare pair that the leader used.
            EpochPart::Entry(entry) if entry.q != Some(spare.q()) => return Err(Error::WrongSpare),
            // §8.4: what the header does not bind costs no multiplication.
            EpochPart::Delta(delta) => check_wraps(header, delta)?,
            _ => {}
        }
        let one_time = OneTime { q: spare.q(), secret: spare.secret(), point: *spare.point(), kem };
        let pair = agree(context, keypair, &one_time, header, self.slot)?;
        match part {
            EpochPart::Entry(entry) => Self::open_entry(header, entry, pair),
            EpochPart::Path(path) => Self::open_path(header, path, pair),
            // §9.1: the nodes of a tree are new, and a member holds none of their keys yet.
            EpochPart::Delta(delta) => {
                Self::open_wraps(header, delta, (self.slot, &Path::new(Vec::new())), pair)
            }
        }
    }

    pub(super) fn follow_by_entry(&self, header: &VerifiedHeader<S>, entry: &Entry) -> Result<Self, Error> {
        self.check_in_term(header, StrategyKind::Flat)?;
        if entry.q.is_some() {
            return Err(Error::Malformed("entry"));
        }
        // §8.4: never back, and at most 2^16 steps forward.
        let mut pair = self.pair.clone();
        pair.ratchet.skip_to(header.core().epoch.counter)?;
        Self::open_entry(header, entry, pair)
    }

    pub(super) fn follow_by_path(
        &self,
        header: &VerifiedHeader<S>,
        path: &PathMessage,
    ) -> Result<Self, Error> {
        self.check_in_term(header, StrategyKind::Tree)?;
        Self::open_path(header, path, self.pair.clone())
    }

    pub(super) fn follow_by_wraps(&self, header: &VerifiedHeader<S>, delta: &Delta) -> Result<Self, Error> {
        self.check_in_term(header, StrategyKind::Tree)?;
        let core = header.core();
        if core.kind != EpochKind::Rekey {
            return Err(Error::MissingEntry);
        }
        // §8.4: wraps apply only to the epoch that they build on, and must be those that the header binds.
        if core.prev != self.digest {
            return Err(Error::Gap);
        }
        let path = self.path.as_ref().ok_or(Error::MissingPath)?;
        if core.height < path.height() {
            return Err(Error::Malformed("height"));
        }
        check_wraps(header, delta)?;
        Self::open_wraps(header, delta, (self.slot, path), self.pair.clone())
    }

    /// Unwraps along the own path with the keys before their step, then steps W and derives K_g.
    pub(super) fn open_wraps(
        header: &VerifiedHeader<S>,
        delta: &Delta,
        (slot, path): (Slot, &Path<HmacXor<S>>),
        mut pair: LeaderKeys<S>,
    ) -> Result<Self, Error> {
        let branch = delta.branch(slot)?;
        // §8.4: the wraps are made with W of this epoch.
        pair.ratchet.skip_to(header.core().epoch.counter)?;
        let path = path.follow(&pair.ratchet, &branch, header.d0())?;
        let key = group_key::<S>(path.root().ok_or(Error::MissingPath)?, header.d0());
        Self::activate(header, slot, Next { pair, path: Some(path), key })
    }

    /// Checks that an epoch continues this member's term, by its strategy and its leader, and with this
    /// member.
    fn check_in_term(&self, header: &VerifiedHeader<S>, strategy: StrategyKind) -> Result<(), Error> {
        let core = header.core();
        // §9.1: one leader opens a term, and its strategy is fixed then (§8).
        if core.epoch.term != self.epoch.term {
            return Err(Error::TermNotOpened);
        }
        if core.leader.handle() != self.leader {
            return Err(Error::NotALeader);
        }
        if core.strategy != self.strategy || strategy != self.strategy {
            return Err(Error::UnsupportedStrategy);
        }
        // The epoch held may be the one that added this member.
        // A header that frees the slot, or gives it to another drone, ends this membership.
        let newer = core.epoch > self.epoch;
        if newer && (core.removed.contains(self.slot) || core.added.contains(self.slot)) {
            return Err(Error::Removed);
        }
        Ok(())
    }

    /// Unwraps; under flat also steps. The ratchet is a copy: it is kept only if the tag verified.
    pub(super) fn open_entry(
        header: &VerifiedHeader<S>,
        entry: &Entry,
        mut pair: LeaderKeys<S>,
    ) -> Result<Self, Error> {
        let pad = match header.core().strategy {
            StrategyKind::Flat => pair.ratchet.pad_and_step(header.d0(), entry.slot),
            StrategyKind::Tree => pair.ratchet.pad(header.d0(), entry.slot),
        };
        // §7.3, 5: K_g = C_i ⊕ PRF(W_i[u], "wrap", D0 ‖ slot)
        let key = GroupKey::unwrap(S::ID, &entry.wrap, &pad);
        Self::activate(header, entry.slot, Next { pair, path: None, key })
    }

    /// Goes to the epoch's key of the chain, never back, and stays there: another path of this epoch may be
    /// needed.
    pub(super) fn open_path(
        header: &VerifiedHeader<S>,
        path: &PathMessage,
        mut pair: LeaderKeys<S>,
    ) -> Result<Self, Error> {
        // §8.2, 6: the path is sealed under W of this epoch.
        pair.ratchet.skip_to(header.core().epoch.counter)?;
        let slot = path.slot;
        let (path, key) = path.open(&pair.ratchet, header.digest(), header.core().height)?;
        Self::activate(header, slot, Next { pair, path: Some(path), key })
    }

    /// Tag, and everything new at once.
    fn activate(header: &VerifiedHeader<S>, slot: u32, next: Next<S>) -> Result<Self, Error> {
        let Next { pair, path, key } = next;
        let (tag, traffic) = key.tag_and_traffic(header.d0(), &header.header().entries_root, header.digest());
        // §7.3, 5: tag = PRF(K_g, "confirm", D0 ‖ entries_root)
        if !ct_eq(tag.expose(), &header.header().tag) {
            return Err(Error::WrongTag);
        }
        let core = header.core();
        // §8.4: everything is replaced at once.
        Ok(Self {
            group: core.group.clone(),
            leader: core.leader.handle(),
            strategy: core.strategy,
            slot,
            epoch: core.epoch,
            digest: *header.digest(),
            pair,
            path,
            key: Some(key),
            traffic: Some(traffic),
        })
    }
}

/// Checks that wraps, or a part of them, are those that the header binds.
pub(super) fn check_wraps<S: Suite>(header: &VerifiedHeader<S>, delta: &Delta) -> Result<(), Error> {
    // §8.3: the wraps of a part are bound as those of the whole.
    let bound = delta.height() == header.core().height && delta.root() == header.header().entries_root;
    if bound { Ok(()) } else { Err(Error::WrongWraps) }
}
