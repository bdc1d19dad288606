//! Test vectors of the tree by another program, in another language: `tests/vectors/tree.py`.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use quiver_crypto::{Digest, Secret};
use serde::Deserialize;

use super::algebra::Rules;
use super::{Delta, Hierarchy, HmacXor, KeyTreeNode, Path, PathMessage, Touched, WrapTree, group_key};
use crate::pairwise::Ratchet;
use crate::slots::{Slot, SlotChanges, SlotSet};
use crate::{GroupKey, Ristretto255, Suite};

type S = Ristretto255;

#[derive(Deserialize)]
struct Vectors {
    suite: String,
    opening: OpeningVector,
    epochs: Vec<EpochVector>,
}

#[derive(Deserialize)]
struct OpeningVector {
    members: Vec<Newcomer>,
    entries: Vec<EntryVector>,
    #[serde(flatten)]
    epoch: EpochVector,
}

#[derive(Deserialize)]
struct EntryVector {
    slot: Slot,
    wrap: String,
}

#[derive(Deserialize)]
struct Newcomer {
    slot: Slot,
    chain: String,
    auth: String,
}

#[derive(Deserialize)]
struct NodeKey {
    level: u8,
    index: u32,
    key: String,
}

#[derive(Deserialize)]
struct EpochVector {
    d0: String,
    removed: Vec<Slot>,
    changes: String,
    added: Vec<Newcomer>,
    fresh: Vec<NodeKey>,
    height: u8,
    delta: String,
    entries_root: String,
    group_key: String,
    keys: Vec<NodeKey>,
    paths: Vec<PathVector>,
    branches: Vec<MemberBranch>,
}

#[derive(Deserialize)]
struct MemberBranch {
    slot: Slot,
    branch: String,
}

#[derive(Deserialize)]
struct PathVector {
    slot: Slot,
    digest: String,
    r: String,
    message: String,
}

fn bytes<const N: usize>(text: &str) -> [u8; N] {
    hex::decode(text).unwrap().try_into().unwrap()
}

/// A chain that starts in the epoch of this counter.
fn ratchet(newcomer: &Newcomer, counter: u64) -> (Slot, Ratchet<S>) {
    let encoded = [&format!("{counter:016x}"), &newcomer.chain, &newcomer.auth].map(String::as_str).concat();
    (newcomer.slot, Ratchet::decode(&hex::decode(encoded).unwrap()).unwrap())
}

fn by_node(keys: &[NodeKey]) -> impl FnMut(KeyTreeNode) -> Secret<32> {
    |node| {
        let key = keys.iter().find(|key| (key.level, key.index) == (node.level, node.index)).unwrap();
        Secret::new(bytes(&key.key))
    }
}

/// A member as its own code keeps it.
struct VectorMember {
    ratchet: Ratchet<S>,
    path: Path<HmacXor<S>>,
}

struct ReplayedGroup {
    nodes: Hierarchy<HmacXor<S>>,
    members: BTreeMap<Slot, VectorMember>,
    height: u8,
    counter: u64,
}

impl ReplayedGroup {
    fn open(opening: &OpeningVector) -> Self {
        let leaves: Vec<_> = opening.members.iter().map(|member| ratchet(member, 1)).collect();
        let nodes = Hierarchy::new(&leaves);
        let none = || Path::new(Vec::new());
        let members =
            leaves.iter().cloned().map(|(slot, ratchet)| (slot, VectorMember { ratchet, path: none() }));
        let mut group = Self { nodes, members: members.collect(), height: opening.epoch.height, counter: 1 };
        let slots = leaves.iter().map(|(slot, _)| *slot).collect();
        group.make(&opening.epoch, &Touched::opening(group.height, &slots), Vec::new());
        let (key, d0) = (bytes(&opening.epoch.group_key), bytes(&opening.epoch.d0));
        let key = GroupKey::new(S::ID, Secret::new(key));
        let wrap =
            |(slot, ratchet): &(Slot, Ratchet<S>)| (*slot, hex::encode(key.wrap(&ratchet.pad(&d0, *slot))));
        let entries: Vec<_> = leaves.iter().map(wrap).collect();
        assert_eq!(
            entries,
            opening.entries.iter().map(|entry| (entry.slot, entry.wrap.clone())).collect::<Vec<_>>()
        );
        group
    }

    fn rekey(&mut self, epoch: &EpochVector) {
        self.counter += 1;
        let removed = epoch.removed.iter().copied().collect();
        let added = epoch.added.iter().map(|newcomer| newcomer.slot).collect();
        let touched = Touched::new(self.height, epoch.height, &removed, &added, Rules::ALL);
        let newcomers: Vec<_> = epoch.added.iter().map(|member| ratchet(member, self.counter)).collect();
        self.make(epoch, &touched, newcomers);
    }

    /// The epoch at the leader, which must be the vector's, then at every member.
    fn make(&mut self, epoch: &EpochVector, touched: &Touched, newcomers: Vec<(Slot, Ratchet<S>)>) {
        let removed: SlotSet = epoch.removed.iter().copied().collect();
        let added: SlotSet = epoch.added.iter().map(|newcomer| newcomer.slot).collect();
        let d0 = bytes(&epoch.d0);
        let fresh = &mut by_node(&epoch.fresh);
        let wraps = self.nodes.rekey(touched, &removed, &newcomers, &d0, fresh);
        let wraps = WrapTree::pack(touched, &wraps);
        assert_eq!(hex::encode(wraps.whole().as_bytes()), epoch.delta);
        assert_eq!(hex::encode(wraps.root()), epoch.entries_root);
        self.check_keys(epoch, &d0);
        let changes = SlotChanges { removed, added };
        assert_eq!(hex::encode(changes.digest()), epoch.changes);
        epoch.removed.iter().for_each(|slot| drop(self.members.remove(slot)));
        self.check_removed(epoch, &wraps);
        for (slot, member) in &mut self.members {
            member.ratchet.skip_to(self.counter).unwrap();
            let part = epoch.branches.iter().find(|part| part.slot == *slot).unwrap();
            assert_eq!(hex::encode(wraps.branch(*slot).as_bytes()), part.branch);
            let delta = Delta::decode(&hex::decode(&part.branch).unwrap()).unwrap();
            assert_eq!(hex::encode(delta.root()), epoch.entries_root);
            assert_eq!(delta.keeps(*slot), Some(true));
            let branch = delta.branch(*slot).unwrap();
            member.path = member.path.follow(&member.ratchet, &branch, &d0).unwrap();
            let key = group_key::<S>(member.path.root().unwrap(), &d0);
            assert_eq!(hex::encode(key.expose().expose()), epoch.group_key);
        }
        self.height = epoch.height;
        self.check_paths(epoch, &d0, newcomers);
    }

    /// The parts of those who are out show them that they are.
    fn check_removed(&self, epoch: &EpochVector, wraps: &WrapTree) {
        for slot in &epoch.removed {
            let part = epoch.branches.iter().find(|part| part.slot == *slot).unwrap();
            assert_eq!(hex::encode(wraps.branch(*slot).as_bytes()), part.branch);
            let delta = Delta::decode(&hex::decode(&part.branch).unwrap()).unwrap();
            assert_eq!(hex::encode(delta.root()), epoch.entries_root);
            assert_eq!([delta, wraps.whole()].map(|delta| delta.keeps(*slot)), [Some(false); 2]);
        }
    }

    fn check_keys(&self, epoch: &EpochVector, d0: &Digest) {
        for level in 1..=epoch.height {
            for index in 0..1 << (epoch.height - level) {
                let node = KeyTreeNode { level, index };
                let expected = epoch.keys.iter().find(|key| (key.level, key.index) == (level, index));
                let ours = self.nodes.key(node).map(|key| hex::encode(key.expose()));
                assert_eq!(ours.as_ref(), expected.map(|key| &key.key), "{node:?}");
            }
        }
        let root = self.nodes.key(KeyTreeNode { level: epoch.height, index: 0 }).unwrap();
        assert_eq!(hex::encode(group_key::<S>(root, d0).expose().expose()), epoch.group_key);
    }

    fn check_paths(&mut self, epoch: &EpochVector, d0: &Digest, newcomers: Vec<(Slot, Ratchet<S>)>) {
        let mut fresh: BTreeMap<Slot, Ratchet<S>> = newcomers.into_iter().collect();
        for expected in &epoch.paths {
            let (digest, r, slot) = (bytes(&expected.digest), bytes(&expected.r), expected.slot);
            let key = GroupKey::new(S::ID, Secret::new(bytes(&epoch.group_key)));
            let (leaf, keys) = self.nodes.leaf_and_path(slot).unwrap();
            let message = PathMessage::seal(slot, leaf, &digest, &r, keys, &key);
            assert_eq!(hex::encode(message.encode()), expected.message);
            let received = PathMessage::decode(&hex::decode(&expected.message).unwrap()).unwrap();
            let former = self.members.remove(&slot).map(|member| member.ratchet);
            let mut ratchet = fresh.remove(&slot).or(former).unwrap();
            ratchet.skip_to(self.counter).unwrap();
            let (path, key) = received.open(&ratchet, &digest, epoch.height).unwrap();
            assert_eq!(hex::encode(key.expose().expose()), epoch.group_key);
            assert_eq!(group_key::<S>(path.root().unwrap(), d0).expose(), key.expose());
            self.members.insert(slot, VectorMember { ratchet, path });
        }
        assert!(fresh.is_empty());
    }
}

#[test]
fn the_tree_makes_the_bytes_that_another_program_made() {
    let vectors: Vectors = serde_json::from_str(include_str!("../../tests/vectors/tree.json")).unwrap();
    assert_eq!(vectors.suite, S::ID);
    let mut group = ReplayedGroup::open(&vectors.opening);
    for epoch in &vectors.epochs {
        group.rekey(epoch);
    }
    assert_eq!(vectors.epochs.len(), 9);
}
