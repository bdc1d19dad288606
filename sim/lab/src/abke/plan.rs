//! The sizes and repetitions of the experiments with attribute-based key exchange.

use std::time::Duration;

use crate::measure::Effort;

/// Size of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicySize {
    /// AND gates.
    pub gates: u32,
    /// Attributes: input bits.
    pub attributes: u32,
}

/// Sizes and effort of the measurements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbkePlan {
    /// Sizes for which the exchange is measured step by step.
    pub exchanges: Vec<PolicySize>,
    /// Numbers of clients that the server verifies at once.
    pub batches: Vec<usize>,
    /// Sizes along which gates grow.
    pub gates: Vec<PolicySize>,
    /// Sizes along which attributes grow.
    pub attributes: Vec<PolicySize>,
    /// AND gates of the circuits that are garbled by themselves.
    pub garbled: Vec<u32>,
    /// Repetitions of each.
    pub effort: Effort,
    /// Seed of all random choices.
    pub seed: u64,
}

/// The size that the publication has step by step.
const LARGE: PolicySize = PolicySize { gates: 100_000, attributes: 200 };
/// The size that it has the totals of.
const SMALL: PolicySize = PolicySize { gates: 1000, attributes: 10 };

impl Default for AbkePlan {
    /// The published parameters, and growth as far as it goes.
    fn default() -> Self {
        let gates = [1000, 10_000, 100_000, 1_000_000];
        let attributes = [10, 20, 50, 100, 200, 500, 1000];
        Self {
            exchanges: vec![LARGE, SMALL],
            batches: vec![1, 10, 100],
            gates: gates.map(|gates| PolicySize { gates, ..LARGE }).into(),
            attributes: attributes.map(|attributes| PolicySize { attributes, ..LARGE }).into(),
            garbled: gates.into(),
            effort: Effort { budget: Duration::from_millis(300), least: 3, most: 31 },
            seed: 1,
        }
    }
}

impl AbkePlan {
    /// Plan like the default, with more samples.
    #[must_use]
    pub fn full() -> Self {
        let effort = Effort { budget: Duration::from_secs(3), least: 9, most: 51 };
        Self { effort, ..Self::default() }
    }

    /// The published parameters, once or twice, and hardly any growth: shows that everything works, and
    /// nothing else.
    #[must_use]
    pub fn quick() -> Self {
        let few = |attributes| PolicySize { gates: 1000, attributes };
        Self {
            batches: vec![1, 10],
            gates: vec![SMALL, PolicySize { gates: 10_000, ..SMALL }],
            attributes: vec![few(10), few(20)],
            garbled: vec![1000, 100_000],
            effort: Effort { budget: Duration::from_millis(2), least: 1, most: 3 },
            ..Self::default()
        }
    }
}
