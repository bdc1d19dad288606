//! The KGCs that a drone enrols with.

use alloc::boxed::Box;
use alloc::vec::Vec;

use quiver_ainq::{Deployment, DroneKeypair, KgcId, Suite};
use quiver_machine::Backoff;
use quiver_message::Message;
use rand_core::CryptoRngCore;

use crate::client::{KgcSelection, Single};

/// Maker of a drone's message to each KGC once it has a key.
type NoticeMaker<S> = fn(&Deployment<S>, &DroneKeypair<S>, &mut dyn CryptoRngCore) -> Option<Message<S>>;

/// The KGCs a drone enrols with.
#[derive(Clone, Debug)]
pub struct Kgcs<S: Suite> {
    pub(crate) ids: Vec<KgcId>,
    /// Selection of the KGCs that are asked. Only callers that name a quorum link the arithmetic of quorums.
    pub(crate) select: fn(Backoff) -> Box<dyn KgcSelection<S>>,
    /// Maker of the message to each KGC once the drone has a key. A single KGC needs none, because it makes no shares.
    pub(crate) notify: NoticeMaker<S>,
}

impl<S: Suite> Kgcs<S> {
    /// A single KGC, whose id is 1.
    #[must_use]
    pub fn single() -> Self {
        Self::one(1)
    }

    /// A single KGC of this id.
    #[must_use]
    pub fn one(id: KgcId) -> Self {
        Self {
            ids: alloc::vec![id],
            select: |backoff| Box::new(Single::new(backoff)),
            notify: |_, _, _| None,
        }
    }

    /// Returns true if a quorum issues.
    #[must_use]
    pub const fn is_quorum(&self) -> bool {
        self.ids.len() > 1
    }

    pub(crate) fn select(&self, backoff: Backoff) -> Box<dyn KgcSelection<S>> {
        (self.select)(backoff)
    }

    /// The message to each KGC once the drone has a key, if a quorum issues: no more shares are to be made for its token.
    /// Send it at every contact, because nothing answers it.
    pub fn notice_of_key(
        &self,
        deployment: &Deployment<S>,
        keypair: &DroneKeypair<S>,
        rng: &mut dyn CryptoRngCore,
    ) -> Option<Message<S>> {
        (self.notify)(deployment, keypair, rng)
    }

    /// Ids of the KGCs, as configured.
    #[must_use]
    pub fn ids(&self) -> &[KgcId] {
        &self.ids
    }
}
