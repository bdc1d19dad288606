//! Generates random access trees of every size: those of `quiver-bench`, so that a board measures the same.

use quiver_bench::large::forest;
pub(super) use quiver_bench::large::forest::{attributes, conjunction, layered, listed};
use quiver_policy::AccessTree;

use super::plan::AbePlan;
use crate::Result;

/// Trees of every size.
pub(super) struct RandomTrees {
    /// Trees by set, then by leaves less one.
    sets: Vec<Vec<AccessTree>>,
}

impl RandomTrees {
    /// Generates as many sets as planned, of trees with one leaf up to as many as there are attributes.
    pub(super) fn generate(plan: &AbePlan) -> Result<Self> {
        let grown = |number| Ok(forest::set(plan.seed, number, plan.most())?);
        Ok(Self { sets: (0..plan.sets as u64).map(grown).collect::<Result<_>>()? })
    }

    /// The trees with so many leaves.
    pub(super) fn trees(&self, leaves: usize) -> impl Iterator<Item = &AccessTree> {
        self.sets.iter().filter_map(move |trees| trees.get(leaves.checked_sub(1)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_trees_of_every_size_as_sets_were_planned() {
        let trees_by_size = RandomTrees::generate(&AbePlan::quick()).unwrap();
        for leaves in 1..=30 {
            assert_eq!(trees_by_size.trees(leaves).count(), 2);
            assert!(trees_by_size.trees(leaves).all(|tree| tree.formula().leaves().len() == leaves));
        }
        assert_eq!(trees_by_size.trees(31).count() + trees_by_size.trees(0).count(), 0);
    }
}
