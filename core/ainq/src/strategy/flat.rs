//! The `flat` strategy, the paper's: a fresh K_g for every epoch, wrapped for each member.
//!
//! Frimpong, Rabbaninejad, Michalas, *Arrows in a Quiver*, GenGroupKey and Re-Key: C_i = K_g ⊕ H1(V, T_i, …,
//! t_g). There the mask repeats as long as V, T_i and t_g do; here it is PRF(W_i\[u\], "wrap", D0 ‖ slot) and
//! W_i\[u\] is gone after one use.
//!
//! The steps after the wraps are deferred to [`settle`](Strategy::settle), so that they do not delay the
//! epoch. Until then the leader's memory opens the entries of the current epoch, whose key it holds anyway.

use alloc::vec::Vec;

use quiver_crypto::{Digest, Secret};
use rand_core::CryptoRngCore;

use super::{MembershipChange, SealedEpoch, Strategy};
use crate::pairwise::Ratchet;
use crate::slab::Slab;
use crate::slots::Slot;
use crate::tree::{PathMessage, PathNonce};
use crate::{Entry, Error, GroupKey, StrategyKind, Suite};

/// A ratchet per member that has a pairwise key in this term.
pub(crate) struct Flat<S: Suite> {
    members: Slab<Ratchet<S>>,
    /// Every chain has wrapped and was not stepped yet.
    owes_steps: bool,
}

impl<S: Suite> Flat<S> {
    pub(crate) const fn new() -> Self {
        Self { members: Slab::new(), owes_steps: false }
    }
}

impl<S: Suite> Strategy<S> for Flat<S> {
    fn kind(&self) -> StrategyKind {
        StrategyKind::Flat
    }

    fn height_after(&self, _: &MembershipChange<'_, S>) -> u8 {
        0
    }

    fn seal(
        &mut self,
        change: MembershipChange<'_, S>,
        d0: &Digest,
        rng: &mut dyn CryptoRngCore,
    ) -> SealedEpoch {
        // §7.2: the steps that the last epoch left for later.
        self.settle();
        // §7.1: K_g = 32 random bytes
        let key = GroupKey::new(S::ID, Secret::random(rng));
        change.removed.iter().for_each(|slot| self.members.clear(slot));
        // Copied, so that the vector erases its content; moving out of one leaves a copy in its memory.
        for (slot, ratchet) in &change.newcomers {
            self.members.set(*slot, ratchet.clone());
        }
        let mut entries = Vec::with_capacity(self.members.len());
        for (slot, ratchet) in self.members.iter() {
            // §7.1: C_i = K_g ⊕ PRF(W_i[u], "wrap", D0 ‖ slot)
            entries.push(Entry { slot, q: None, wrap: key.wrap(&ratchet.pad(d0, slot)) });
        }
        self.owes_steps = true;
        // §7.1: entries_root is zero: nobody signs entries (§7.4).
        SealedEpoch { key, entries, wraps: None, entries_root: [0; 32] }
    }

    fn settle(&mut self) {
        // §7.2: one step after each wrap.
        if core::mem::take(&mut self.owes_steps) {
            self.members.iter_mut().for_each(|(_, ratchet)| ratchet.step());
        }
    }

    fn auth_key(&self, slot: Slot) -> Option<&Secret<32>> {
        self.members.get(slot).map(Ratchet::auth)
    }

    fn path(&mut self, _: Slot, _: &Digest, _: &PathNonce, _: &GroupKey) -> Result<PathMessage, Error> {
        Err(Error::UnsupportedStrategy)
    }
}
