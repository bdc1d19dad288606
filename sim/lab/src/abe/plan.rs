//! The sizes and repetitions of the experiments with attribute-based encryption.

use std::time::Duration;

use crate::measure::Effort;

/// Sizes and effort of the measurements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbePlan {
    /// Numbers of attributes, ascending, each from 1 on.
    pub attributes: Vec<usize>,
    /// Sets of random access trees.
    pub sets: usize,
    /// Layers of the access trees whose memory is counted, each from 1 to [`AbePlan::LEAVES`] − 1.
    pub layers: Vec<usize>,
    /// Repetitions of each operation.
    pub effort: Effort,
    /// Repetitions of each operation for each tree.
    pub effort_per_tree: Effort,
    /// Seed of all keys and trees.
    pub seed: u64,
}

impl Default for AbePlan {
    /// The published parameters: 1 to 30 attributes, ten sets of trees, one to four layers.
    fn default() -> Self {
        Self {
            attributes: (1..=30).collect(),
            sets: 10,
            layers: (1..=4).collect(),
            effort: Effort { budget: Duration::from_millis(60), least: 5, most: 31 },
            effort_per_tree: Effort { budget: Duration::from_millis(12), least: 3, most: 11 },
            seed: 1,
        }
    }
}

impl AbePlan {
    /// Leaves of the access trees whose memory is counted.
    pub const LEAVES: usize = 30;

    /// Plan like the default, with five times the samples.
    #[must_use]
    pub fn full() -> Self {
        Self {
            effort: Effort::CAREFUL,
            effort_per_tree: Effort { budget: Duration::from_millis(60), least: 5, most: 31 },
            ..Self::default()
        }
    }

    /// A few numbers of attributes, the largest among them, and few repetitions: shows that everything works.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            attributes: vec![1, 5, 30],
            sets: 2,
            layers: vec![1, 4],
            effort: Effort::QUICK,
            effort_per_tree: Effort { budget: Duration::from_millis(2), least: 1, most: 3 },
            seed: 1,
        }
    }

    /// The largest number of attributes.
    pub(super) fn most(&self) -> usize {
        self.attributes.iter().copied().max().unwrap_or(1)
    }
}
