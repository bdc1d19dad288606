//! An adversary that climbs a tree: from any node keys that it has, through the recorded wraps, up to a group
//! key.
//!
//! Written from the protocol's description, not from the crate: sets of nodes instead of runs of slots.

use std::collections::{BTreeMap, BTreeSet};

use quiver_ainq::{PathMessage, Suite};
use quiver_crypto::{Digest, Secret, aead, prf};

use crate::swarm::Broadcast;

/// Steps computed ahead on the key of every node.
const AHEAD: usize = 12;

/// (level, index).
type Node = (u8, u32);
type Key = [u8; 32];

/// Keys of inner nodes that an adversary has, each with all that follow from it.
#[derive(Default)]
pub(crate) struct Climber {
    known: BTreeMap<Node, BTreeSet<Key>>,
}

/// A guess of a node's seed, and the children's keys from which it comes.
struct Guess {
    seed: Key,
    from: Vec<(Node, Key)>,
}

/// The guesses of each node, by the star that the seed makes.
type Guesses = BTreeMap<Node, BTreeMap<Key, Guess>>;

impl Climber {
    /// Opens the path messages of an epoch that the chains open; returns the group keys in them.
    pub(crate) fn takes_paths<S: Suite>(
        &mut self,
        epoch: &Broadcast<S>,
        digest: &Digest,
        chains: &[Secret<32>],
    ) -> Vec<Secret<32>> {
        let mut keys = Vec::new();
        for path in &epoch.paths {
            let Some(plaintext) = open::<S>(path, digest, chains) else { continue };
            let (group_key, nodes) = plaintext.split_last().unwrap();
            for (level, key) in (1u8..).zip(nodes) {
                self.learns::<S>((level, path.slot >> level), *key);
            }
            keys.push(Secret::new(*group_key));
        }
        keys
    }

    fn learns<S: Suite>(&mut self, node: Node, key: Key) {
        let known = self.known.entry(node).or_default();
        let mut key = Secret::new(key);
        for _ in 0..AHEAD {
            if !known.insert(*key.expose()) {
                return;
            }
            key = prf(&key, S::ID, "step", &[&name(node)]);
        }
    }

    /// Climbs from all its keys towards the root; returns the group key if it gets there, and keeps every key
    /// on the ways that led there.
    pub(crate) fn climbs<S: Suite>(
        &mut self,
        epoch: &Broadcast<S>,
        d0: &Digest,
        chains: &[Secret<32>],
        confirms: &dyn Fn(&Secret<32>) -> bool,
    ) -> Option<Secret<32>> {
        let guesses = self.guesses(epoch, d0, chains);
        let root = (epoch.header.core.height, 0);
        let known = self.known.get(&root).cloned().unwrap_or_default();
        let stars = guesses.get(&root).into_iter().flat_map(|stars| stars.keys().copied());
        let mut found = None;
        for root_key in known.into_iter().chain(stars).collect::<BTreeSet<_>>() {
            let stepped = *prf(&Secret::new(root_key), S::ID, "step", &[&name(root)]).expose();
            for key in [root_key, stepped] {
                let group_key = prf(&Secret::new(key), S::ID, "group key", &[d0]);
                if confirms(&group_key) {
                    self.learns_ways::<S>(&guesses, root, root_key);
                    found = Some(group_key);
                }
            }
        }
        found
    }

    fn learns_ways<S: Suite>(&mut self, guesses: &Guesses, node: Node, key: Key) {
        self.learns::<S>(node, key);
        let guess = guesses.get(&node).and_then(|stars| stars.get(&key));
        for (child, child_key) in guess.into_iter().flat_map(|guess| &guess.from) {
            if child.0 > 0 {
                self.learns_ways::<S>(guesses, *child, *child_key);
            }
        }
    }

    fn guesses<S: Suite>(&self, epoch: &Broadcast<S>, d0: &Digest, chains: &[Secret<32>]) -> Guesses {
        let mut guesses = Guesses::new();
        for (node, child, wrap) in edges(epoch) {
            let guessed = guesses.get(&child).into_iter().flatten();
            let seeds: Vec<(Key, Key)> = match wrap {
                Some(wrap) => {
                    let known = self.known.get(&child).into_iter().flatten().copied();
                    let leaves = chains.iter().filter(|_| child.0 == 0).map(|chain| *chain.expose());
                    let keys: BTreeSet<Key> =
                        known.chain(guessed.map(|(star, _)| *star)).chain(leaves).collect();
                    let unwrapped = keys.into_iter().map(|key| {
                        let place: [&[u8]; 3] = [d0, &name(node), &name(child)];
                        let pad = prf(&Secret::new(key), S::ID, "wrap node", &place);
                        (std::array::from_fn(|i| wrap[i] ^ pad.expose()[i]), key)
                    });
                    unwrapped.collect()
                }
                // A node that wraps nothing leads upwards by its seed, if by anything.
                None => guessed.map(|(star, guess)| (derived::<S>(&guess.seed, "up", node), *star)).collect(),
            };
            for (seed, key) in seeds {
                let star = derived::<S>(&seed, "node", node);
                let guess = guesses.entry(node).or_default().entry(star);
                guess.or_insert(Guess { seed, from: Vec::new() }).from.push((child, key));
            }
        }
        guesses
    }
}

fn derived<S: Suite>(seed: &Key, label: &str, node: Node) -> Key {
    *prf(&Secret::new(*seed), S::ID, label, &[&name(node)]).expose()
}

fn name((level, index): Node) -> [u8; 5] {
    let [a, b, c, d] = index.to_be_bytes();
    [level, a, b, c, d]
}

fn open<S: Suite>(path: &PathMessage, digest: &Digest, chains: &[Secret<32>]) -> Option<Vec<Key>> {
    let encoded = path.encode();
    let aad = [&digest[..], &encoded[..4]].concat();
    let plaintext = chains.iter().find_map(|chain| {
        let key = prf(chain, S::ID, "path", &[digest, &path.r]);
        aead::open(&key, &[0; 12], &aad, &encoded[20..]).ok()
    })?;
    Some(plaintext.chunks(32).map(|key| key.try_into().unwrap()).collect())
}

/// The nodes of an epoch with their children, lowest level first, and the wraps of those that have one; read
/// from the description of the encoding.
fn edges<S: Suite>(epoch: &Broadcast<S>) -> Vec<(Node, Node, Option<Key>)> {
    let whole = epoch.wraps.as_ref().unwrap().whole();
    let (first, bytes) = whole.as_bytes().split_first().unwrap();
    let mut place = 0_usize;
    let mut bit = || {
        place += 1;
        bytes[(place - 1) / 8] >> ((place - 1) % 8) & 1 > 0
    };
    let (mut nodes, mut pending) = (Vec::new(), vec![(first & 31, 0_u32)]);
    while let Some((level, index)) = pending.pop() {
        let said: [bool; 6] = match (bit(), bit()) {
            (false, false) => [true, false, false, false, false, true],
            (true, false) => [false, false, true, true, false, false],
            (false, true) => [true, false, false, true, false, true],
            (true, true) => std::array::from_fn(|_| bit()),
        };
        let children = [(level - 1, 2 * index), (level - 1, 2 * index + 1)];
        for (child, said) in children.iter().zip(said.as_chunks::<3>().0).rev() {
            if level > 1 && (said[0] || said[1]) {
                pending.push(*child);
            }
        }
        nodes.push(((level, index), children.into_iter().zip([said[2], said[5]]).collect::<Vec<_>>()));
    }
    let mut keys = bytes[place.div_ceil(8)..].chunks(32).map(|key| key.try_into().unwrap());
    let mut edges = Vec::new();
    for (node, children) in nodes {
        edges.extend(
            children.into_iter().map(|(child, wraps)| (node, child, wraps.then(|| keys.next().unwrap()))),
        );
    }
    assert_eq!(keys.next(), None);
    edges.sort_unstable();
    edges
}
