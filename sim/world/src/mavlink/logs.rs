//! Telemetry logs of the vehicles, as ground stations write them.

use std::collections::BTreeMap;
use std::time::Duration;

use quiver_mavlink::batch;

use super::stations::system_of;
use crate::formats::tlog;
use crate::{EPOCH_START, NodeId};

/// Telemetry logs by vehicle.
#[derive(Debug, Default)]
pub(crate) struct TelemetryLogs {
    logs: BTreeMap<NodeId, Vec<u8>>,
    logged: usize,
    full: bool,
}

impl TelemetryLogs {
    /// The most bytes of all logs together.
    pub(crate) const MAX: usize = 1 << 30;

    /// Logs what a station sealed, if it is a vehicle's.
    pub(crate) fn note(&mut self, node: NodeId, at: Duration, payloads: &[Vec<u8>]) {
        let NodeId::Edge(_) = node else { return };
        let micros = EPOCH_START * 1_000_000 + u64::try_from(at.as_micros()).unwrap_or(u64::MAX >> 1);
        for payload in payloads {
            for frame in batch::decode(payload, system_of(node)).unwrap_or_default() {
                if self.logged + frame.len() > Self::MAX {
                    self.full = true;
                    return;
                }
                let log = self.logs.entry(node).or_default();
                let before = log.len();
                tlog::append(log, micros, &frame);
                self.logged += log.len() - before;
            }
        }
    }

    /// Returns true if some telemetry is not logged, because it would be more than [`MAX`](Self::MAX).
    pub(crate) const fn is_full(&self) -> bool {
        self.full
    }

    /// The logs by the name of the vehicle.
    pub(crate) fn into_files(self) -> BTreeMap<String, Vec<u8>> {
        self.logs.into_iter().map(|(node, log)| (node.to_string(), log)).collect()
    }
}
