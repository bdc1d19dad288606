//! Attributes, and access trees over them that grow leaf by leaf in random places.
//!
//! A tree begins as one leaf. A new leaf goes to a node that is drawn from all nodes: beside a leaf, under a
//! new gate over both, or under a gate. The gate's threshold is then drawn anew. So the tree of n + 1 leaves
//! is the tree of n leaves with one more. Every leaf has an attribute of its own. The same seed grows the
//! same trees on every target.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use quiver_abe::Universe;
use quiver_policy::{AccessTree, Attribute, AttributeSet, Condition, Fault, Schema};
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};

use crate::error::Result;

/// The name of an attribute.
#[must_use]
pub fn name(number: usize) -> String {
    format!("attribute-{number}")
}

/// The first attributes, as a set.
///
/// # Errors
/// If there are more than a set may have.
pub fn attributes(count: usize) -> Result<AttributeSet> {
    let mut set = AttributeSet::new();
    for number in 0..count {
        set.insert_plain(&name(number))?;
    }
    Ok(set)
}

/// The first attributes, as a list.
///
/// # Errors
/// If there are none, or more than a universe may have.
pub fn listed(count: usize) -> Result<Universe> {
    let list: Vec<Attribute> =
        (0..count).map(|number| Attribute::plain(&name(number))).collect::<Result<_, Fault>>()?;
    Ok(Universe::closed(list)?)
}

/// All of the first attributes.
///
/// # Errors
/// If there are none, or more than a policy may have.
pub fn conjunction(count: usize) -> Result<AccessTree> {
    layered(count, 1)
}

/// All of the first attributes, in so many gates one below the other with about as many leaves each.
///
/// # Errors
/// If there are none, or more than a policy may have.
pub fn layered(leaves: usize, layers: usize) -> Result<AccessTree> {
    let names: Vec<String> = (0..leaves).map(name).collect();
    let per_layer = leaves.div_ceil(layers.max(1)).max(1);
    // From the innermost gate outwards.
    let text = names.chunks(per_layer).rev().fold(String::new(), |inner, names| {
        let own = names.join(" and ");
        if inner.is_empty() { own } else { format!("{own} and ({inner})") }
    });
    Ok(AccessTree::parse(&text, &Schema::new())?)
}

/// The trees of one set, with one leaf up to `most`.
///
/// # Errors
/// If there are more leaves than a policy may have.
pub fn set(seed: u64, number: u64, most: usize) -> Result<Vec<AccessTree>> {
    let mut growth = Growth::new(seed, number);
    let mut trees = vec![growth.tree()?];
    for attribute in 1..most {
        growth.sprout(attribute);
        trees.push(growth.tree()?);
    }
    Ok(trees)
}

/// The tree of one set that has so many leaves, without those before it.
///
/// # Errors
/// If there are more leaves than a policy may have.
pub fn tree(seed: u64, number: u64, leaves: usize) -> Result<AccessTree> {
    let mut growth = Growth::new(seed, number);
    (1..leaves).for_each(|attribute| growth.sprout(attribute));
    growth.tree()
}

/// A node of a growing tree.
enum Sprout {
    /// The leaf with this attribute.
    Leaf(usize),
    Gate {
        threshold: usize,
        children: Vec<usize>,
    },
}

/// A growing tree. The root stays the first node.
struct Growth {
    nodes: Vec<Sprout>,
    rng: ChaCha20Rng,
}

impl Growth {
    fn new(seed: u64, number: u64) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        rng.set_stream(number.saturating_add(1));
        Self { nodes: vec![Sprout::Leaf(0)], rng }
    }

    /// A number below `bound`; the bias of the remainder, 2⁻⁵⁰ and less, does not matter here.
    fn below(&mut self, bound: usize) -> usize {
        (self.rng.next_u64() % bound.max(1) as u64) as usize
    }

    /// One more leaf.
    fn sprout(&mut self, attribute: usize) {
        let place = self.below(self.nodes.len());
        let leaf = self.nodes.len();
        self.nodes.push(Sprout::Leaf(attribute));
        let threshold = match self.nodes.get(place) {
            Some(Sprout::Gate { children, .. }) => {
                let grown = children.len() + 1;
                1 + self.below(grown)
            }
            _ => 1 + self.below(2),
        };
        let Some(node) = self.nodes.get_mut(place) else { return };
        match node {
            Sprout::Gate { threshold: old, children } => {
                children.push(leaf);
                *old = threshold;
            }
            Sprout::Leaf(_) => {
                let gate = Sprout::Gate { threshold, children: vec![leaf + 1, leaf] };
                let old = core::mem::replace(node, gate);
                self.nodes.push(old);
            }
        }
    }

    fn tree(&self) -> Result<AccessTree> {
        // Parents before children, and then from the back.
        let (mut order, mut next) = (vec![0], 0);
        while let Some(&node) = order.get(next) {
            if let Some(Sprout::Gate { children, .. }) = self.nodes.get(node) {
                order.extend(children);
            }
            next += 1;
        }
        let mut builder = AccessTree::builder();
        let mut built = vec![0; self.nodes.len()];
        for &node in order.iter().rev() {
            let id = match self.nodes.get(node) {
                Some(Sprout::Leaf(attribute)) => builder.leaf(Condition::plain(&name(*attribute))?)?,
                Some(Sprout::Gate { threshold, children }) => {
                    let children = children.iter().filter_map(|child| built.get(*child).copied()).collect();
                    builder.gate(*threshold, children)?
                }
                None => continue,
            };
            if let Some(place) = built.get_mut(node) {
                *place = id;
            }
        }
        Ok(builder.finish(built.first().copied().unwrap_or_default())?)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn tree_of_n_leaves_has_the_first_n_attributes_once_each() {
        for number in 0..2 {
            let trees = set(1, number, 30).unwrap();
            assert_eq!(trees.len(), 30);
            for (tree, leaves) in trees.iter().zip(1..) {
                let formula = tree.formula();
                let mut names: Vec<String> =
                    formula.leaves().iter().map(|leaf| leaf.attribute().name().to_string()).collect();
                names.sort();
                let mut expected: Vec<String> = (0..leaves).map(name).collect();
                expected.sort();
                assert_eq!(names, expected);
                assert!(tree.satisfied_by(&attributes(leaves).unwrap()));
                assert_eq!(AccessTree::parse(&tree.to_string(), &Schema::new()).as_ref(), Ok(tree));
                assert_eq!(super::tree(1, number, leaves).as_ref(), Ok(tree));
            }
        }
    }

    #[test]
    fn same_seed_grows_the_same_trees_and_another_seed_or_set_others() {
        let text = |seed, number| tree(seed, number, 30).unwrap().to_string();
        assert_eq!(text(1, 0), text(1, 0));
        assert_ne!(text(1, 0), text(2, 0));
        assert_ne!(text(1, 0), text(1, 1));
    }

    #[test]
    fn layered_tree_needs_every_leaf() {
        for layers in 1..=4 {
            let tree = layered(30, layers).unwrap();
            let gates = tree.to_string().matches('(').count() + 1;
            assert_eq!((gates, tree.formula().leaves().len()), (layers, 30));
            assert!(tree.satisfied_by(&attributes(30).unwrap()));
            assert!(!tree.satisfied_by(&attributes(29).unwrap()));
        }
    }
}
