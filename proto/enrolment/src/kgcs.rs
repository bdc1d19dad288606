//! The KGCs that a drone enrols with.

use alloc::boxed::Box;
use alloc::vec::Vec;

use quiver_ainq::{KgcId, Suite};
use quiver_machine::Backoff;

use crate::client::{KgcSelection, Single};

/// The KGCs a drone enrols with.
#[derive(Clone, Debug)]
pub struct Kgcs<S: Suite> {
    pub(crate) ids: Vec<KgcId>,
    /// Selection of the KGCs that are asked. Only callers that name a quorum link the arithmetic of quorums.
    pub(crate) select: fn(Backoff) -> Box<dyn KgcSelection<S>>,
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
