//! Attributes, and access trees over them that grow leaf by leaf in random places.
//!
//! A tree begins as one leaf. A new leaf goes to a node that is drawn from all nodes: beside a leaf, under a new gate over
//! both, or under a gate. The gate's threshold is then drawn anew. So the tree of n + 1 leaves is the tree of n leaves with
//! one more. Every leaf has an attribute of its own.

use quiver_abe::Universe;
use quiver_policy::{AccessTree, Attribute, AttributeSet, Condition, Fault, Schema};
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};

use super::plan::Plan;
use crate::Result;

/// Trees of every size.
pub(super) struct Forest {
    /// By set, then by leaves less one.
    sets: Vec<Vec<AccessTree>>,
}

impl Forest {
    /// As many sets as planned, of trees with one leaf up to as many as there are attributes.
    pub(super) fn grow(plan: &Plan) -> Result<Self> {
        let grown = |number: usize| {
            let mut rng = ChaCha20Rng::seed_from_u64(plan.seed);
            rng.set_stream(number as u64 + 1);
            set(plan.most(), &mut rng)
        };
        Ok(Self { sets: (0..plan.sets).map(grown).collect::<Result<_>>()? })
    }

    /// The trees with so many leaves.
    pub(super) fn trees(&self, leaves: usize) -> impl Iterator<Item = &AccessTree> {
        self.sets.iter().filter_map(move |trees| trees.get(leaves.checked_sub(1)?))
    }
}

/// The name of an attribute.
fn name(number: usize) -> String {
    format!("attribute-{number}")
}

/// The first attributes, as a set.
pub(super) fn attributes(count: usize) -> Result<AttributeSet> {
    let mut set = AttributeSet::new();
    for number in 0..count {
        set.insert_plain(&name(number))?;
    }
    Ok(set)
}

/// The first attributes, as a list.
pub(super) fn listed(count: usize) -> Result<Universe> {
    let list: Vec<Attribute> =
        (0..count).map(|number| Attribute::plain(&name(number))).collect::<Result<_, Fault>>()?;
    Ok(Universe::closed(list)?)
}

/// All of the first attributes.
pub(super) fn conjunction(count: usize) -> Result<AccessTree> {
    layered(count, 1)
}

/// All of the first attributes, in so many gates one below the other with about as many leaves each.
pub(super) fn layered(leaves: usize, layers: usize) -> Result<AccessTree> {
    let names: Vec<String> = (0..leaves).map(name).collect();
    let per_layer = leaves.div_ceil(layers.max(1)).max(1);
    // From the innermost gate outwards.
    let text = names.chunks(per_layer).rev().fold(String::new(), |inner, names| {
        let own = names.join(" and ");
        if inner.is_empty() { own } else { format!("{own} and ({inner})") }
    });
    Ok(AccessTree::parse(&text, &Schema::new()).map_err(quiver_abe::AbeError::from)?)
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

fn set(most: usize, rng: &mut ChaCha20Rng) -> Result<Vec<AccessTree>> {
    let mut nodes = vec![Sprout::Leaf(0)];
    let mut trees = vec![tree(&nodes)?];
    for attribute in 1..most {
        sprout(&mut nodes, attribute, rng);
        trees.push(tree(&nodes)?);
    }
    Ok(trees)
}

/// A number below `bound`; the bias of the remainder, 2⁻⁵⁰ and less, matters to nobody here.
fn below(bound: usize, rng: &mut ChaCha20Rng) -> usize {
    (rng.next_u64() % bound.max(1) as u64) as usize
}

/// One more leaf. The root stays the first node.
fn sprout(nodes: &mut Vec<Sprout>, attribute: usize, rng: &mut ChaCha20Rng) {
    let place = below(nodes.len(), rng);
    let leaf = nodes.len();
    nodes.push(Sprout::Leaf(attribute));
    match &mut nodes[place] {
        Sprout::Gate { threshold, children } => {
            children.push(leaf);
            *threshold = 1 + below(children.len(), rng);
        }
        Sprout::Leaf(old) => {
            let old = Sprout::Leaf(*old);
            let gate = Sprout::Gate { threshold: 1 + below(2, rng), children: vec![leaf + 1, leaf] };
            nodes[place] = gate;
            nodes.push(old);
        }
    }
}

fn tree(nodes: &[Sprout]) -> Result<AccessTree> {
    // Parents before children, and then from the back.
    let (mut order, mut next) = (vec![0], 0);
    while let Some(&node) = order.get(next) {
        if let Sprout::Gate { children, .. } = &nodes[node] {
            order.extend(children);
        }
        next += 1;
    }
    let mut builder = AccessTree::builder();
    let mut built = vec![0; nodes.len()];
    for &node in order.iter().rev() {
        built[node] = match &nodes[node] {
            Sprout::Leaf(attribute) => builder.leaf(Condition::plain(&name(*attribute))?)?,
            Sprout::Gate { threshold, children } => {
                builder.gate(*threshold, children.iter().map(|child| built[*child]).collect())?
            }
        };
    }
    Ok(builder.finish(built[0])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forest(seed: u64) -> Forest {
        Forest::grow(&Plan { seed, ..Plan::quick() }).unwrap()
    }

    #[test]
    fn tree_of_n_leaves_has_the_first_n_attributes_once_each() {
        let forest = forest(1);
        for leaves in 1..=30 {
            assert_eq!(forest.trees(leaves).count(), 2);
            for tree in forest.trees(leaves) {
                let formula = tree.formula();
                let mut names: Vec<String> =
                    formula.leaves().iter().map(|leaf| leaf.attribute().name().to_string()).collect();
                names.sort();
                let mut expected: Vec<String> = (0..leaves).map(name).collect();
                expected.sort();
                assert_eq!(names, expected);
                assert!(tree.satisfied_by(&attributes(leaves).unwrap()));
                assert_eq!(AccessTree::parse(&tree.to_string(), &Schema::new()).as_ref(), Ok(tree));
            }
        }
        assert_eq!(forest.trees(31).count() + forest.trees(0).count(), 0);
    }

    #[test]
    fn same_seed_grows_the_same_trees_and_another_seed_others() {
        let texts = |seed| forest(seed).trees(30).map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(texts(1), texts(1));
        assert_ne!(texts(1), texts(2));
        assert_ne!(texts(1)[0], texts(1)[1]);
    }

    #[test]
    fn layered_tree_needs_every_leaf() {
        for layers in 1..=4 {
            let tree = layered(Plan::LEAVES, layers).unwrap();
            let gates = tree.to_string().matches('(').count() + 1;
            assert_eq!((gates, tree.formula().leaves().len()), (layers, Plan::LEAVES));
            assert!(tree.satisfied_by(&attributes(Plan::LEAVES).unwrap()));
            assert!(!tree.satisfied_by(&attributes(Plan::LEAVES - 1).unwrap()));
        }
    }
}
