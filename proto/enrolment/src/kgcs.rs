//! The KGCs that a drone enrols with.

use alloc::vec::Vec;
#[cfg(not(feature = "threshold"))]
use core::marker::PhantomData;

use quiver_ainq::{KgcId, Suite};

#[cfg(feature = "threshold")]
use crate::threshold::{QuorumSuite, Reader};

/// The KGCs a drone enrols with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kgcs<S: Suite> {
    ids: Vec<KgcId>,
    #[cfg(feature = "threshold")]
    frost: Option<Reader<S>>,
    #[cfg(not(feature = "threshold"))]
    suite: PhantomData<S>,
}

impl<S: Suite> Kgcs<S> {
    /// A single KGC, whose id is 1.
    #[must_use]
    pub fn single() -> Self {
        Self {
            ids: alloc::vec![1],
            #[cfg(feature = "threshold")]
            frost: None,
            #[cfg(not(feature = "threshold"))]
            suite: PhantomData,
        }
    }

    /// Whether a quorum issues.
    #[must_use]
    pub const fn is_quorum(&self) -> bool {
        self.ids.len() > 1
    }

    /// Their ids, as configured.
    #[must_use]
    pub fn ids(&self) -> &[KgcId] {
        &self.ids
    }
}

#[cfg(feature = "threshold")]
impl<S: Suite> Kgcs<S> {
    pub(crate) const fn frost(&self) -> Option<Reader<S>> {
        self.frost
    }
}

#[cfg(feature = "threshold")]
impl<S: QuorumSuite> Kgcs<S> {
    /// The KGCs of a quorum, 64 at most; a single KGC if there is one id.
    #[must_use]
    pub fn quorum(ids: Vec<KgcId>) -> Self {
        let frost = (ids.len() > 1).then(Reader::new);
        Self { ids, frost }
    }
}
