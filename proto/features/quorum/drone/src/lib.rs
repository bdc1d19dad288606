//! Quorums of KGCs in the programs of edges and leaders.
//!
//! Both list [`QuorumFeature`] among their features; nothing else of them names this crate.

use quiver_ainq::{KgcId, Ristretto255};
use quiver_enrolment::Kgcs;
use quiver_service::drone::feature::DroneFeature;

/// Enrolment with several KGCs, each of which makes a share of the key (docs/protocol.md, 3.6).
#[derive(Clone, Copy, Debug)]
pub struct QuorumFeature;

impl DroneFeature for QuorumFeature {
    fn quorum(&self, ids: &[KgcId]) -> Option<Kgcs<Ristretto255>> {
        Some(Kgcs::quorum(ids.to_vec()))
    }
}
