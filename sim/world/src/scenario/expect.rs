//! Expectations of a scenario's end, beside the invariants.

use std::collections::BTreeSet;
use std::time::Duration;

use quiver_ainq::KgcId;

use crate::MavlinkReport;

/// Evidence that a scenario happened. Everything but the members is a lower bound.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expectations {
    /// Number of edges that hold the newest key.
    pub members: Option<u32>,
    /// Edges that must not hold it.
    pub outside: BTreeSet<u32>,
    /// Terms opened.
    pub min_terms: u64,
    /// Epochs activated by leaders.
    pub min_epochs: u64,
    /// Anonymous memberships.
    pub min_admitted: u64,
    /// Deaths between two outputs.
    pub min_crashes: u64,
    /// Writes that a disk refused.
    pub min_stalls: u64,
    /// Messages lost.
    pub min_lost: u64,
    /// Complaints of nodes about each other.
    pub min_blamed: u64,
    /// Drones that are enrolled, one for each token.
    pub enrolled: Option<u32>,
    /// Number of openings of orders for the second phase.
    pub opened: Option<u32>,
    /// The KGCs that drones found to have sent them wrong shares, no more and no fewer.
    pub liars: Option<BTreeSet<KgcId>>,
    /// Bounds of what becomes of telemetry.
    pub mavlink: Option<ExpectedTelemetry>,
}

/// Bounds of what becomes of telemetry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExpectedTelemetry {
    /// Least share of all copies of frames that are delivered.
    pub min_delivered: Option<f64>,
    /// Most copies that the radio brings and the layer does not open, of senders known, but for those that
    /// arrive within ten seconds after a removal.
    pub max_unopened: Option<u64>,
    /// Greatest share of all copies that these are.
    pub max_unopened_at_removal: Option<f64>,
    /// Longest time from the arrival of a frame that is not opened to the next of the same sender that is, of
    /// frames that arrive within ten seconds after a removal.
    pub max_outage_at_removal: Option<Duration>,
    /// Most frames dropped by shaping.
    pub max_shaped: Option<u64>,
    /// Most bytes that a frame takes more on the air than alone, on average.
    pub max_added_bytes: Option<f64>,
    /// Greatest share of time that the air carries datagrams and announcements.
    pub max_air: Option<f64>,
    /// Least number of datagrams that captured vehicles send.
    pub min_hostile: u64,
    /// Least number of datagrams that are not taken.
    pub min_refused: u64,
}

impl ExpectedTelemetry {
    /// The bounds that are not kept, one sentence each. `air` is the share of time that the air carries datagrams
    /// and announcements.
    pub fn unmet(&self, report: &MavlinkReport, air: f64) -> Vec<String> {
        let mut unmet = Vec::new();
        let at_most = [
            ("copies not opened", self.max_unopened.map(|most| most as f64), report.unopened as f64),
            (
                "share of copies not opened after a removal",
                self.max_unopened_at_removal,
                report.share_unopened_at_removal(),
            ),
            ("bytes added to a frame", self.max_added_bytes, report.added_bytes()),
            ("share of the air", self.max_air, air),
            ("frames dropped by shaping", self.max_shaped.map(|most| most as f64), report.shaped as f64),
            (
                "seconds without telemetry at a removal",
                self.max_outage_at_removal.map(|most| most.as_secs_f64()),
                report.outage_at_removal.as_secs_f64(),
            ),
        ];
        for (what, most, counted) in at_most {
            if let Some(most) = most.filter(|most| counted > *most) {
                unmet.push(format!("{what}: {counted:.4}, expected at most {most}"));
            }
        }
        if let Some(least) = self.min_delivered.filter(|least| report.share_delivered() < *least) {
            let counted = report.share_delivered();
            unmet.push(format!("share of frames delivered: {counted:.4}, expected at least {least}"));
        }
        let at_least = [
            ("datagrams of captured vehicles", self.min_hostile, report.hostile),
            ("datagrams not taken", self.min_refused, report.total_refused()),
        ];
        for (what, least, counted) in at_least.into_iter().filter(|(_, least, counted)| counted < least) {
            unmet.push(format!("{what}: {counted}, expected at least {least}"));
        }
        unmet
    }
}

/// Counts of a run, as far as [`Expectations`] name them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Edges that hold the newest key.
    pub members: BTreeSet<u32>,
    /// Terms opened.
    pub terms: u64,
    /// Epochs activated by leaders.
    pub epochs: u64,
    /// Anonymous memberships.
    pub admitted: u64,
    /// Deaths between two outputs.
    pub crashes: u64,
    /// Writes that a disk refused.
    pub stalls: u64,
    /// Messages lost.
    pub lost: u64,
    /// Complaints of nodes about each other.
    pub blamed: u64,
    /// Drones that are enrolled, one for each token.
    pub enrolled: u32,
    /// Number of openings of orders for the second phase.
    pub opened: u32,
    /// The KGCs that drones found to have sent them wrong shares.
    pub liars: BTreeSet<KgcId>,
}

impl Expectations {
    /// The expectations that are not met, one sentence each.
    pub fn unmet(&self, tally: &Tally) -> Vec<String> {
        let mut unmet = Vec::new();
        let members = tally.members.len();
        if let Some(expected) = self.members.filter(|expected| *expected as usize != members) {
            unmet.push(format!("{members} drones hold the newest key, not {expected}"));
        }
        let exact =
            [("enrolled", self.enrolled, tally.enrolled), ("orders opened", self.opened, tally.opened)];
        for (what, expected, counted) in exact {
            if let Some(expected) = expected.filter(|expected| *expected != counted) {
                unmet.push(format!("{what}: {counted}, not {expected}"));
            }
        }
        if let Some(liars) = self.liars.as_ref().filter(|liars| **liars != tally.liars) {
            unmet.push(format!("found to lie: KGCs {:?}, not {liars:?}", tally.liars));
        }
        for edge in self.outside.intersection(&tally.members) {
            unmet.push(format!("edge-{edge} holds the newest key and must not"));
        }
        let bounds = [
            ("terms opened", self.min_terms, tally.terms),
            ("epochs", self.min_epochs, tally.epochs),
            ("anonymous memberships", self.min_admitted, tally.admitted),
            ("crashes", self.min_crashes, tally.crashes),
            ("refused writes", self.min_stalls, tally.stalls),
            ("messages lost", self.min_lost, tally.lost),
            ("complaints", self.min_blamed, tally.blamed),
        ];
        for (what, least, counted) in bounds.into_iter().filter(|(_, least, counted)| counted < least) {
            unmet.push(format!("{what}: {counted}, expected at least {least}"));
        }
        unmet
    }
}
