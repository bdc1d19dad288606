//! Expectations of a scenario's end, beside the invariants.

use std::collections::BTreeSet;

use quiver_ainq::KgcId;

/// Evidence that a scenario happened. Everything but the members is a lower bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
