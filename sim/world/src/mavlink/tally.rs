//! Counts what became of the frames.

use std::collections::BTreeMap;
use std::time::Duration;

use super::station::ArrivalPeriod;
use crate::NodeId;

/// Counts of the telemetry of a run by outcome. A frame has as many copies as there are other members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MavlinkReport {
    /// Frames that the streams offered while their member had a valid key.
    pub offered: u64,
    /// Frames while it had none, and those that waited when it ended: nothing passes then.
    pub without_key: u64,
    /// Frames that left.
    pub sent: u64,
    /// Frames dropped by shaping: too old, or no room.
    pub shaped: u64,
    /// Bytes of the frames that left, as MAVLink has them.
    pub frame_bytes: u64,
    /// Datagrams that they left in.
    pub datagrams: u64,
    /// Bytes of these.
    pub datagram_bytes: u64,
    /// Announcements.
    pub announcements: u64,
    /// Bytes of these.
    pub announcement_bytes: u64,
    /// Copies of frames that the radio lost.
    pub lost: u64,
    /// Copies of frames that the radio brought.
    pub arrived: u64,
    /// Frames among them that were opened.
    pub delivered: u64,
    /// Copies that the radio brought and the layer did not open, from senders whose announcement had not been
    /// received yet.
    pub unopened_at_first: u64,
    /// The same from senders that were known, within ten seconds after a removal: the former key opens nothing
    /// then, and not all have the new one at once.
    pub unopened_at_removal: u64,
    /// The same at any other time.
    pub unopened: u64,
    /// The longest time from the arrival of the first of these to that of the next frame of the same sender
    /// that was opened, at first.
    pub outage_at_first: Duration,
    /// The same of known senders.
    pub outage: Duration,
    /// The same of known senders, and of frames that arrived within ten seconds after a removal.
    pub outage_at_removal: Duration,
    /// Datagrams that captured vehicles sent again or altered, and their own after their removal.
    pub hostile: u64,
    /// Frames opened whose sender's slot has no system id.
    pub without_system_id: u64,
    /// Datagrams that were not taken, by the reason, over all stations.
    pub refused: BTreeMap<&'static str, u64>,
    /// Reasons to believe that a member sends as another.
    pub suspicions: u64,
}

impl MavlinkReport {
    /// Bytes that a frame takes more on the air than alone, without the radio's headers.
    pub fn added_bytes(&self) -> f64 {
        (self.datagram_bytes as f64 - self.frame_bytes as f64) / (self.sent as f64).max(1.0)
    }

    /// Share of all copies that were delivered.
    pub fn share_delivered(&self) -> f64 {
        self.delivered as f64 / ((self.lost + self.arrived) as f64).max(1.0)
    }

    /// Share of all copies that arrived after a removal and were not opened.
    pub fn share_unopened_at_removal(&self) -> f64 {
        self.unopened_at_removal as f64 / ((self.lost + self.arrived) as f64).max(1.0)
    }

    /// Number of datagrams that were not taken.
    pub fn total_refused(&self) -> u64 {
        self.refused.values().sum()
    }
}

/// State of a receiver about a sender.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SenderReception {
    /// True if anything was opened.
    pub(super) known: bool,
    /// Arrival of the first frame that was not opened since one was.
    pub(super) since: Option<Duration>,
}

/// Time after a removal for which outages count as its own.
const AFTER_REMOVAL: Duration = Duration::from_secs(10);

/// Counts while a world runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) report: MavlinkReport,
    pub(super) pairs: BTreeMap<(NodeId, NodeId), SenderReception>,
    pub(super) removal: Option<Duration>,
}

impl Tally {
    pub(super) fn pair(&mut self, sender: NodeId, receiver: NodeId) -> &mut SenderReception {
        self.pairs.entry((sender, receiver)).or_default()
    }

    /// A frame of the sender was opened: an outage ends.
    pub(super) fn opened(&mut self, now: Duration, sender: NodeId, receiver: NodeId) {
        let pair = self.pair(sender, receiver);
        let (known, since) = (pair.known, pair.since.take());
        pair.known = true;
        if let Some(since) = since {
            self.note_outage(since, now, known);
        }
    }

    /// Kind of the time at which a frame of the sender arrives, if that is now.
    pub(super) fn arrival(&mut self, now: Duration, sender: NodeId, receiver: NodeId) -> ArrivalPeriod {
        let known = self.pair(sender, receiver).known;
        match known {
            false => ArrivalPeriod::SenderUnknown,
            true if self.is_after_removal(now) => ArrivalPeriod::AfterRemoval,
            true => ArrivalPeriod::Usual,
        }
    }

    fn is_after_removal(&self, at: Duration) -> bool {
        self.removal.is_some_and(|removal| at >= removal && at <= removal + AFTER_REMOVAL)
    }

    fn note_outage(&mut self, since: Duration, until: Duration, known: bool) {
        let lasted = until.saturating_sub(since);
        let report = &mut self.report;
        let longest = if known { &mut report.outage } else { &mut report.outage_at_first };
        *longest = lasted.max(*longest);
        if known && self.is_after_removal(since) {
            self.report.outage_at_removal = lasted.max(self.report.outage_at_removal);
        }
    }

    /// Outages that last until now.
    pub(super) fn finish(mut self, now: Duration) -> MavlinkReport {
        for pair in std::mem::take(&mut self.pairs).into_values() {
            if let Some(since) = pair.since {
                self.note_outage(since, now, pair.known);
            }
        }
        self.report
    }

    /// A node is no member any more, or starts anew.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.pairs.retain(|(sender, receiver), _| *sender != node && *receiver != node);
    }
}
