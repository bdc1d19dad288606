//! The published figures of AinQ.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Result;
use crate::reference::rows;

/// Measurements of the authors of AinQ, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PublishedAinq {
    edge: BTreeMap<String, EdgeRow>,
    leader: BTreeMap<(String, u32), f64>,
    join: BTreeMap<(u32, u32), f64>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct EdgeRow {
    operation: String,
    ec_multiplications: Option<u32>,
    seconds: f64,
}

#[derive(Deserialize)]
struct LeaderRow {
    operation: String,
    drones: u32,
    seconds: f64,
}

#[derive(Deserialize)]
struct JoinRow {
    existing: u32,
    new: u32,
    seconds: f64,
}

impl PublishedAinq {
    pub(super) fn read() -> Result<Self> {
        let edge = rows::<EdgeRow>("edge.csv", include_str!("../../reference/ainq/edge.csv"))?;
        let leader = rows::<LeaderRow>("leader.csv", include_str!("../../reference/ainq/leader.csv"))?;
        let join = rows::<JoinRow>("rekey_join.csv", include_str!("../../reference/ainq/rekey_join.csv"))?;
        Ok(Self {
            edge: edge.into_iter().map(|row| (row.operation.clone(), row)).collect(),
            leader: leader.into_iter().map(|row| ((row.operation, row.drones), row.seconds)).collect(),
            join: join.into_iter().map(|row| ((row.existing, row.new), row.seconds)).collect(),
        })
    }

    /// An operation of an edge drone.
    pub(super) fn edge(&self, operation: &str) -> Option<f64> {
        self.edge.get(operation).map(|row| row.seconds)
    }

    /// Number of elliptic curve multiplications of an operation of an edge drone.
    pub(super) fn edge_multiplications(&self, operation: &str) -> Option<u32> {
        self.edge.get(operation).and_then(|row| row.ec_multiplications)
    }

    /// An operation of the leader with so many drones.
    pub(super) fn leader(&self, operation: &str, drones: u32) -> Option<f64> {
        self.leader.get(&(operation.into(), drones)).copied()
    }

    /// All figures of an operation of the leader, by drones.
    pub(super) fn leader_points(&self, operation: &str) -> Vec<(f64, f64)> {
        let rows = self.leader.iter().filter(|((name, _), _)| name == operation);
        rows.map(|((_, drones), seconds)| (f64::from(*drones), *seconds)).collect()
    }

    /// Re-Key when so many join so many.
    pub(super) fn join(&self, existing: u32, new: u32) -> Option<f64> {
        self.join.get(&(existing, new)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_figure_is_there() {
        let published = PublishedAinq::read().unwrap();
        assert_eq!(published.edge("ec_multiplication"), Some(0.014));
        assert_eq!(published.edge_multiplications("ec_multiplication"), None);
        assert_eq!(published.edge_multiplications("key_retrieval"), Some(1));
        assert_eq!(published.leader_points("gen_group_key"), [(1.0, 0.043), (2000.0, 59.386)]);
        assert_eq!(published.leader("re_key_expiry", 2000), Some(0.067));
        assert_eq!(published.leader("re_key_expiry", 3), None);
        assert_eq!(published.join.len(), 16);
        assert_eq!(published.join(1000, 1000), Some(29.659));
    }
}
