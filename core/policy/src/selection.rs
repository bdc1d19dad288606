//! Selects the cheapest set of leaves that satisfies a formula.

use alloc::vec;
use alloc::vec::Vec;

use crate::PolicyNode;
use crate::arena::Arena;

/// The leaves of a formula that are used, and the gates on the way to them.
///
/// Every gate on the way takes exactly as many children as its threshold, so no leaf can be left out. Secret
/// sharing gives each child of a gate its place, 1 for the leftmost, as the x at which a polynomial is
/// evaluated: [`gates`](Self::gates) lists these places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    leaves: Vec<usize>,
    gates: Vec<SelectedGate>,
    cost: u64,
}

/// A gate that is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedGate {
    node: usize,
    places: Vec<u32>,
}

impl SelectedGate {
    /// The number of its node.
    #[must_use]
    pub const fn node(&self) -> usize {
        self.node
    }

    /// The places of the children that are used, ascending, 1 for the leftmost child. As many as the gate's
    /// threshold.
    #[must_use]
    pub fn places(&self) -> &[u32] {
        &self.places
    }
}

impl Selection {
    /// `cost` is the cost of a leaf, or `None` if it is not available.
    pub(crate) fn of<L>(arena: &Arena<L>, cost: impl Fn(&L) -> Option<u32>) -> Option<Self> {
        let costs = cheapest(arena, cost);
        let total = costs.last().copied()??;
        let mut used = vec![false; arena.nodes().len()];
        if let Some(root) = used.last_mut() {
            *root = true;
        }
        let (mut leaves, mut gates) = (Vec::new(), Vec::new());
        for (number, node) in arena.nodes().iter().enumerate().rev() {
            if !used.get(number).copied().unwrap_or(false) {
                continue;
            }
            match node {
                PolicyNode::Leaf(leaf) => leaves.push(*leaf),
                PolicyNode::Gate(gate) => {
                    let chosen = choose(gate.threshold(), gate.children(), &costs);
                    let mut places = Vec::with_capacity(chosen.len());
                    for (place, child) in chosen {
                        places.push(place);
                        if let Some(used) = used.get_mut(child) {
                            *used = true;
                        }
                    }
                    gates.push(SelectedGate { node: number, places });
                }
            }
        }
        leaves.reverse();
        Some(Self { leaves, gates, cost: total })
    }

    /// The numbers of the leaves that are used, ascending. At least one.
    #[must_use]
    pub fn leaves(&self) -> &[usize] {
        &self.leaves
    }

    /// The gates that are used, every gate before those below it: the root first, unless the formula is a
    /// single leaf.
    #[must_use]
    pub fn gates(&self) -> &[SelectedGate] {
        &self.gates
    }

    /// Total cost of the leaves.
    #[must_use]
    pub const fn cost(&self) -> u64 {
        self.cost
    }
}

/// The least cost of satisfying each node, if it can be.
fn cheapest<L>(arena: &Arena<L>, cost: impl Fn(&L) -> Option<u32>) -> Vec<Option<u64>> {
    arena.fold(
        |_, leaf| cost(leaf).map(u64::from),
        |gate, children| {
            let costs: Vec<Option<u64>> = children.copied().collect();
            let chosen = cheapest_of(gate.threshold(), &costs)?;
            // At most 1,024 leaves of 32 bits: no sum comes near 64.
            Some(costs.iter().zip(chosen).filter(|(_, chosen)| *chosen).filter_map(|(cost, _)| *cost).sum())
        },
    )
}

/// The `threshold` cheapest children, in their order, each with its place.
fn choose(threshold: usize, children: &[usize], costs: &[Option<u64>]) -> Vec<(u32, usize)> {
    let costs: Vec<_> = children.iter().map(|&child| costs.get(child).copied().flatten()).collect();
    let chosen = cheapest_of(threshold, &costs).unwrap_or_default();
    let children = (1..).zip(children).zip(chosen).filter(|(_, chosen)| *chosen);
    children.map(|((place, &child), _)| (place, child)).collect()
}

/// The `number` cheapest, of equals the first; `None` if so many cannot be had at all.
///
/// One after the other: that takes no more code than it must, and with at most 1,024 children no time beside
/// a pairing.
fn cheapest_of(number: usize, costs: &[Option<u64>]) -> Option<Vec<bool>> {
    let mut chosen = vec![false; costs.len()];
    for _ in 0..number {
        let open = costs.iter().zip(&mut chosen).filter(|(cost, chosen)| cost.is_some() && !**chosen);
        let (_, next) = open.min_by_key(|(cost, _)| **cost)?;
        *next = true;
    }
    Some(chosen)
}
