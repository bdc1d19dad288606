//! The paper's strategy: a fresh K_g for every epoch, wrapped for each member on its own.
//!
//! Frimpong, Rabbaninejad, Michalas, *Arrows in a Quiver*, GenGroupKey and Re-Key: C_i = K_g ⊕ H1(V, T_i, …, t_g). There
//! the mask repeats as long as V, T_i and t_g do; here it is PRF(W_i\[u\], "wrap", D0 ‖ slot) and W_i\[u\] is gone after one use.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use quiver_crypto::{Digest, Secret};

use super::{Change, Plan, Sealed, Strategy};
use crate::pairwise::Ratchet;
use crate::slots::Slot;
use crate::{Entry, Error, GroupKey, StrategyKind};

/// One ratchet per member that has a pairwise key in this term.
pub(crate) struct Flat {
    suite: &'static str,
    members: BTreeMap<Slot, Ratchet>,
}

impl Flat {
    pub(crate) const fn new(suite: &'static str) -> Self {
        Self { suite, members: BTreeMap::new() }
    }
}

impl Strategy for Flat {
    fn kind(&self) -> StrategyKind {
        StrategyKind::Flat
    }

    fn plan(&self, _: &Change<'_>) -> Plan {
        Plan { height: 0, fresh: 1 }
    }

    fn seal(&mut self, change: Change<'_>, fresh: Vec<Secret<32>>, d0: &Digest) -> Result<Sealed, Error> {
        // K_g = 32 random bytes
        let key = fresh.into_iter().next().ok_or(Error::Exhausted)?;
        let key = GroupKey::new(self.suite, key);
        for slot in change.removed.iter() {
            self.members.remove(&slot);
        }
        self.members.extend(change.newcomers);
        let mut entries = Vec::with_capacity(self.members.len());
        for (&slot, ratchet) in &mut self.members {
            // C_i = K_g ⊕ PRF(W_i[u], "wrap", D0 ‖ slot)
            let wrap = key.wrap(&ratchet.take_pad(d0, slot));
            entries.push(Entry { slot, q: None, wrap });
        }
        Ok(Sealed { key, entries, entries_root: [0; 32] })
    }

    fn auth_key(&self, slot: Slot) -> Option<&Secret<32>> {
        self.members.get(&slot).map(Ratchet::auth)
    }
}
