//! The published figures of a bench shell for RIOT.

use serde::Deserialize;

use crate::Result;
use crate::reference::rows;

const FILE: &str = "board/aes_rsa.csv";

/// Published figures, in microseconds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct BoardRow {
    pub(super) board: String,
    pub(super) algorithm: String,
    pub(super) iterations: u32,
    #[serde(rename = "blocks_or_bytes")]
    pub(super) size: u32,
    avg_us: f64,
    min_us: f64,
    max_us: f64,
}

impl BoardRow {
    /// Average, minimum and maximum in seconds.
    pub(super) fn seconds(&self) -> [f64; 3] {
        [self.avg_us, self.min_us, self.max_us].map(|micros| micros / 1e6)
    }

    /// The benchmark and its parameters as our shell has them.
    pub(super) fn ours(&self) -> (&str, String) {
        let size = self.size;
        if self.algorithm.starts_with("rsa") {
            return ("rsa decrypt", format!("RSA-1024, PKCS #1 v1.5, {size} bytes"));
        }
        (&self.algorithm, format!("{size} blocks of 16 bytes, key of 16 bytes"))
    }
}

/// All of them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Boards(pub(super) Vec<BoardRow>);

impl Boards {
    pub(super) fn read() -> Result<Self> {
        rows(FILE, include_str!("../../reference/board/aes_rsa.csv")).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_row_is_there() {
        let Boards(rows) = Boards::read().unwrap();
        assert_eq!(rows.len(), 4);
        assert_eq!((rows[0].board.as_str(), rows[0].seconds()[1]), ("iotlab-m3", 0.000_188));
        assert_eq!(rows[3].ours(), ("rsa decrypt", "RSA-1024, PKCS #1 v1.5, 100 bytes".into()));
    }
}
