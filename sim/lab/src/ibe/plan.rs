//! The sizes and repetitions of the experiments with identity-based encryption.

use std::time::Duration;

use crate::measure::Effort;

/// Bounds of the published parameters that are measured, and the effort.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IbePlan {
    /// Validators at most, for whatever all of them take part in.
    pub validators: u32,
    /// Shares at most, for aggregation.
    pub shares: u32,
    /// Messages at most.
    pub messages: u32,
    /// Bytes of a message at most.
    pub bytes: u32,
    /// Repetitions of each.
    pub effort: Effort,
    /// Seed of all keys. The age format takes its own randomness from the system.
    pub seed: u64,
}

impl Default for IbePlan {
    /// The published parameters.
    fn default() -> Self {
        Self {
            validators: 128,
            shares: 1024,
            messages: 1024,
            bytes: 1 << 20,
            effort: Effort { budget: Duration::from_millis(100), least: 3, most: 31 },
            seed: 1,
        }
    }
}

impl IbePlan {
    /// Plan like the default, with more samples.
    #[must_use]
    pub fn full() -> Self {
        Self { effort: Effort::CAREFUL, ..Self::default() }
    }

    /// Small parameters and few repetitions: shows that everything works, and nothing else.
    #[must_use]
    pub fn quick() -> Self {
        let effort = Effort { budget: Duration::from_millis(2), least: 1, most: 3 };
        Self { validators: 8, shares: 16, messages: 8, bytes: 32_768, effort, seed: 1 }
    }
}
