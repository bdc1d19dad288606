//! Deduction over a recorded run: which epochs can be read by whoever has all that was sent, and a captured
//! state.
//!
//! It knows nothing of when a key may be used: every captured value is tried on everything that was ever sent
//! for its place, and so is what follows from it by steps. What it finds is confirmed by the headers' tags.

use std::collections::BTreeSet;

use quiver_ainq::{Epoch, Slot};
use quiver_crypto::{Secret, aead};

use crate::rules::{Held, Made, Rules};
use crate::table::Table;
use crate::wraps::node;

/// Place of a value: the W of a slot's leaf, or the key of an inner node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Leaf(Slot),
    Node(u8, u32),
}

struct Deduction<'a> {
    rules: &'a Rules<'a>,
    table: &'a Table,
    open: Vec<(Place, Secret<32>, usize)>,
    seen: BTreeSet<(Place, [u8; 32])>,
    read: BTreeSet<Epoch>,
}

/// Epochs whose key follows from these states: of each the slot, its W, and the keys above it.
pub(crate) fn readable(
    rules: &Rules<'_>,
    table: &Table,
    states: &[(Slot, Secret<32>, Option<Vec<Secret<32>>>)],
) -> BTreeSet<Epoch> {
    let mut deduction =
        Deduction { rules, table, open: Vec::new(), seen: BTreeSet::new(), read: BTreeSet::new() };
    for (slot, w, path) in states {
        deduction.learn(Place::Leaf(*slot), w.clone(), 0);
        for (level, key) in (1..).zip(path.iter().flatten()) {
            deduction.learn(Place::Node(level, slot >> level), key.clone(), 0);
        }
    }
    while let Some((place, key, steps)) = deduction.open.pop() {
        deduction.use_key(place, &key, steps);
    }
    deduction.read
}

/// State of a member as it is once the member has an epoch.
pub(crate) fn stepped(held: &Held) -> (Slot, Secret<32>, Option<Vec<Secret<32>>>) {
    (held.slot, held.w.clone(), held.path.clone())
}

/// The same of a member that never stepped its W.
pub(crate) fn without_steps(held: &Held) -> (Slot, Secret<32>, Option<Vec<Secret<32>>>) {
    (held.slot, held.first.0.clone(), None)
}

impl Deduction<'_> {
    fn learn(&mut self, place: Place, key: Secret<32>, steps: usize) {
        // No key steps more often than there are epochs.
        if steps <= self.rules.made.len() && self.seen.insert((place, *key.expose())) {
            self.open.push((place, key, steps));
        }
    }

    fn use_key(&mut self, place: Place, key: &Secret<32>, steps: usize) {
        let (rules, table) = (self.rules, self.table);
        let wrapped = match place {
            Place::Leaf(slot) => {
                self.learn(place, table.prf("step", key, &[]), steps + 1);
                let entries = rules.sealed.entries.iter().filter(|(_, of, _)| *of == slot);
                for (epoch, _, wrap) in entries {
                    let d0 = &rules.made[epoch].d0;
                    let pad = table.prf("pad", key, &[("d0", d0), ("slot", &slot.to_be_bytes())]);
                    self.try_key(*epoch, &pad.unmask(wrap));
                }
                for (epoch, _, path) in rules.sealed.paths.iter().filter(|(_, of, _)| *of == slot) {
                    self.open_path(*epoch, slot, path, key);
                }
                (0, slot)
            }
            Place::Node(level, index) => {
                let stepped = table.prf("node_step", key, &[("node", &node(level, index))]);
                self.learn(place, stepped, steps + 1);
                if index == 0 {
                    for (epoch, made) in &rules.made {
                        self.try_key(*epoch, &table.prf("group_key", key, &[("d0", &made.d0)]));
                    }
                }
                (level, index)
            }
        };
        for (epoch, parent, child, wrap) in
            rules.sealed.wraps.iter().filter(|(_, _, child, _)| *child == wrapped)
        {
            let (v, c) = (node(parent.0, parent.1), node(child.0, child.1));
            let d0 = &rules.made[epoch].d0;
            let seed = table.prf("wrap_node", key, &[("d0", d0), ("v", &v), ("c", &c)]).unmask(wrap);
            self.raise(*epoch, *parent, seed);
        }
    }

    fn try_key(&mut self, epoch: Epoch, key: &Secret<32>) {
        let Made { d0, root, tag, .. } = &self.rules.made[&epoch];
        let confirmed = self.table.prf("confirm", key, &[("d0", d0), ("entries_root", root)]);
        if confirmed.expose() == tag {
            self.read.insert(epoch);
        }
    }

    fn open_path(&mut self, epoch: Epoch, slot: Slot, path: &[u8], w: &Secret<32>) {
        let digest = self.rules.made[&epoch].digest;
        let key = self.table.prf("path", w, &[("digest", &digest), ("r", &path[4..20])]);
        let aad = [&digest[..], &slot.to_be_bytes()].concat();
        let Ok(text) = aead::open(&key, &[0; 12], &aad, &path[20..]) else { return };
        let keys: Vec<_> = text.as_chunks::<32>().0.iter().map(|key| Secret::new(*key)).collect();
        let Some((key, keys)) = keys.split_last() else { return };
        self.try_key(epoch, key);
        for (level, key) in (1..).zip(keys) {
            self.learn(Place::Node(level, slot >> level), key.clone(), 0);
        }
    }

    /// A seed, if it is that of a node which somebody has, gives the node's key and the seeds above.
    fn raise(&mut self, epoch: Epoch, mut at: (u8, u32), mut seed: Secret<32>) {
        loop {
            let name = node(at.0, at.1);
            let key = self.table.prf("node", &seed, &[("node", &name)]);
            let after = self.table.prf("node_step", &key, &[("node", &name)]);
            let known = self.rules.node(epoch, at);
            if known.is_none_or(|known| known.expose() != key.expose() && known.expose() != after.expose()) {
                return;
            }
            self.learn(Place::Node(at.0, at.1), key, 0);
            at = (at.0 + 1, at.1 / 2);
            seed = self.table.prf("up", &seed, &[("node", &node(at.0, at.1))]);
        }
    }
}
