//! The sizes and repetitions of the experiments with AinQ.

use crate::measure::Effort;

/// Sizes and effort of the measurements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AinqPlan {
    /// Group sizes for GenGroupKey and Re-Key on expiry.
    pub leader: Vec<u32>,
    /// Members already there and members that join, for Re-Key on join.
    pub join: Vec<u32>,
    /// Group sizes for the growth of both strategies.
    pub growth: Vec<u32>,
    /// Repetitions of each.
    pub effort: Effort,
    /// Seed of all random choices.
    pub seed: u64,
}

impl Default for AinqPlan {
    /// The published parameters, and growth to 100,000 drones.
    fn default() -> Self {
        Self {
            leader: vec![1, 10, 100, 500, 1000, 2000],
            join: vec![1, 100, 500, 1000],
            growth: vec![10, 100, 1000, 2000, 10_000, 100_000],
            effort: Effort::CAREFUL,
            seed: 1,
        }
    }
}

impl AinqPlan {
    /// Plan like the default, with growth to 1,000,000 drones.
    #[must_use]
    pub fn full() -> Self {
        let mut plan = Self::default();
        plan.growth.push(1_000_000);
        plan
    }

    /// Small groups and few repetitions: shows that everything works, and nothing else.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            leader: vec![1, 10, 20],
            join: vec![1, 10],
            growth: vec![10, 50],
            effort: Effort::QUICK,
            seed: 1,
        }
    }

    /// The largest group of the growth.
    pub(super) fn largest(&self) -> u32 {
        self.growth.iter().copied().max().unwrap_or(0)
    }
}
