//! The published figures of attribute-based key exchange.

use serde::Deserialize;

use super::plan::PolicySize;
use crate::Result;
use crate::reference::rows;

/// Measurements of the authors.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PublishedAbke {
    steps: Vec<StepRow>,
    fences: Vec<FenceRow>,
}

/// The computing side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExchangeSide {
    Server,
    Client,
}

impl ExchangeSide {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct StepRow {
    operation: String,
    server_ms: Option<f64>,
    client_ms: Option<f64>,
    optimized_server_ms: Option<f64>,
    optimized_client_ms: Option<f64>,
    gates: u32,
    attributes: u32,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct FenceRow {
    coordinate_bits: u32,
    gates: u32,
}

impl PublishedAbke {
    pub(super) fn read() -> Result<Self> {
        Ok(Self {
            steps: rows("table_10_1.csv", include_str!("../../reference/abke/table_10_1.csv"))?,
            fences: rows("geolocation.csv", include_str!("../../reference/abke/geolocation.csv"))?,
        })
    }

    /// Seconds that an operation took this side.
    pub(super) fn seconds(&self, size: PolicySize, side: ExchangeSide, operation: &str) -> Option<f64> {
        let row = self.row(size, operation)?;
        seconds(if side == ExchangeSide::Server { row.server_ms } else { row.client_ms })
    }

    /// The same with ten keys verified in a batch.
    pub(super) fn optimized(&self, size: PolicySize, side: ExchangeSide, operation: &str) -> Option<f64> {
        let row = self.row(size, operation)?;
        seconds(if side == ExchangeSide::Server { row.optimized_server_ms } else { row.optimized_client_ms })
    }

    fn row(&self, size: PolicySize, operation: &str) -> Option<&StepRow> {
        let of = |row: &&StepRow| (row.gates, row.attributes) == (size.gates, size.attributes);
        self.steps.iter().filter(of).find(|row| row.operation == operation)
    }

    /// Gates of the geolocation policy on coordinates of so many bits.
    pub(super) fn fence(&self, coordinate_bits: u32) -> Option<u32> {
        let row = self.fences.iter().find(|row| row.coordinate_bits == coordinate_bits)?;
        Some(row.gates)
    }
}

fn seconds(milliseconds: Option<f64>) -> Option<f64> {
    milliseconds.map(|milliseconds| milliseconds / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_figure_is_there_in_seconds() {
        let published = PublishedAbke::read().unwrap();
        assert_eq!(published.steps.len(), 12);
        let (large, small) =
            (PolicySize { gates: 100_000, attributes: 200 }, PolicySize { gates: 1000, attributes: 10 });
        assert_eq!(published.seconds(large, ExchangeSide::Server, "verify"), Some(0.857));
        assert_eq!(published.optimized(large, ExchangeSide::Server, "verify"), Some(0.159));
        assert_eq!(published.seconds(large, ExchangeSide::Server, "garble"), Some(0.005));
        assert_eq!(published.optimized(large, ExchangeSide::Server, "garble"), None);
        assert_eq!(published.seconds(large, ExchangeSide::Client, "commit"), Some(0.0005));
        assert_eq!(published.seconds(large, ExchangeSide::Client, "garble"), None);
        assert_eq!(published.seconds(small, ExchangeSide::Server, "total"), Some(0.067));
        assert_eq!(published.seconds(small, ExchangeSide::Client, "total"), Some(0.011));
        assert_eq!(published.seconds(small, ExchangeSide::Client, "unlink"), None);
        assert_eq!((published.fence(64), published.fence(32)), (Some(20_000), None));
    }
}
