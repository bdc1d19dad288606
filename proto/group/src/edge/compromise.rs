//! Returns all secrets of an edge, as an adversary that compromised it has them: for simulations and tests.

use alloc::vec::Vec;

use quiver_ainq::{DronePublicKey, Handle, Suite};
use zeroize::Zeroizing;

use super::Edge;

/// The long-term and the one-time secrets of an edge, as bytes. The group key itself is what [`Edge::export`]
/// is made of.
pub struct CompromisedState<S: Suite> {
    /// (D, R, P).
    pub public: DronePublicKey<S>,
    /// y, as [`DroneKeypair::to_bytes`](quiver_ainq::DroneKeypair::to_bytes) gives it.
    pub secret: Zeroizing<Vec<u8>>,
    /// Membership as [`GroupMembership::encode`](quiver_ainq::GroupMembership::encode) gives it.
    pub membership: Option<Zeroizing<Vec<u8>>>,
    /// Spare pairs, unused and used, as [`SparePair::encode`](quiver_ainq::SparePair::encode) gives them.
    pub spares: Vec<Zeroizing<Vec<u8>>>,
    /// κ by the leader that shares it, as [`KemKey::encode`](quiver_ainq::KemKey::encode) gives it.
    pub kems: Vec<(Handle, Zeroizing<Vec<u8>>)>,
}

impl<S: Suite> Edge<S> {
    /// The secrets in its memory; `None` before it is enrolled.
    pub fn compromised_state(&self) -> Option<CompromisedState<S>> {
        let keypair = self.keypair()?;
        Some(CompromisedState {
            public: keypair.public().clone(),
            secret: Zeroizing::new(keypair.to_bytes().to_vec()),
            membership: self.membership.membership().map(|membership| membership.encode()),
            spares: self.membership.spare_points.held().map(|spare| spare.encode()).collect(),
            kems: self
                .membership
                .kem
                .stored()
                .into_iter()
                .map(|(leader, key, _)| (Handle(leader), key))
                .collect(),
        })
    }
}
