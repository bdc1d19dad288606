//! Numbers of KGCs in a plan.

use quiver_quorum::{MAX_MEMBERS, QuorumParameters};

use super::Plan;

/// The most KGCs.
pub const MAX_KGCS: u16 = MAX_MEMBERS;

impl Plan {
    /// The numbers of the quorum; `None` for a single KGC.
    pub fn quorum(&self) -> Option<QuorumParameters> {
        QuorumParameters::new(self.kgcs, self.threshold).ok()
    }

    /// Refuses numbers of KGCs that make no quorum.
    pub(crate) fn check_quorum(&self) -> Result<(), String> {
        match (self.kgcs, self.threshold) {
            (1, 1) => Ok(()),
            (1, _) => Err("--threshold is for several KGCs: give --kgcs 3 or more".into()),
            (kgcs, threshold) => QuorumParameters::new(kgcs, threshold)
                .map(drop)
                .map_err(|error| format!("--kgcs, --threshold: {error}")),
        }
    }
}
