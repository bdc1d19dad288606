//! The KGCs that a drone enrols with.

use alloc::boxed::Box;
use alloc::vec::Vec;

use quiver_ainq::{KgcId, Suite};
use quiver_machine::Backoff;

#[cfg(feature = "threshold")]
use crate::client::Coordinator;
use crate::client::{KgcSelection, Single};
#[cfg(feature = "threshold")]
use crate::threshold::QuorumSuite;

/// The KGCs a drone enrols with.
#[derive(Clone, Debug)]
pub struct Kgcs<S: Suite> {
    ids: Vec<KgcId>,
    /// Selection of the KGCs that are asked. Only callers that name a quorum link the arithmetic of quorums.
    select: fn(Backoff) -> Box<dyn KgcSelection<S>>,
}

impl<S: Suite> Kgcs<S> {
    /// A single KGC, whose id is 1.
    #[must_use]
    pub fn single() -> Self {
        Self { ids: alloc::vec![1], select: |backoff| Box::new(Single::new(backoff)) }
    }

    /// Returns true if a quorum issues.
    #[must_use]
    pub const fn is_quorum(&self) -> bool {
        self.ids.len() > 1
    }

    pub(crate) fn select(&self, backoff: Backoff) -> Box<dyn KgcSelection<S>> {
        (self.select)(backoff)
    }

    /// Ids of the KGCs, as configured.
    #[must_use]
    pub fn ids(&self) -> &[KgcId] {
        &self.ids
    }
}

#[cfg(feature = "threshold")]
impl<S: QuorumSuite> Kgcs<S> {
    /// The KGCs of a quorum, 64 at most; a single KGC if there is one id.
    #[must_use]
    pub fn quorum(ids: Vec<KgcId>) -> Self {
        match ids.len() {
            0 | 1 => Self { ids, ..Self::single() },
            _ => Self { ids, select: |backoff| Box::new(Coordinator::new(backoff)) },
        }
    }
}
