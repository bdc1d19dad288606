//! Second factor of a pair of drone and leader, in what `status` says.

use quiver_group::KemState;
use serde::{Deserialize, Serialize};

use crate::clock;

/// Second factor of a pair, as a status says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KemRow {
    /// Name of the parameter set.
    pub set: String,
    /// g: the number of the leader's terms to which it was stepped.
    pub terms: u64,
    /// Time of the exchange that it comes from.
    #[serde(with = "clock::rfc3339")]
    pub made: Option<u64>,
}

impl From<KemState> for KemRow {
    fn from(state: KemState) -> Self {
        Self { set: state.term.set().to_string(), terms: state.term.g(), made: Some(state.made) }
    }
}

impl KemRow {
    /// Describes it for people.
    #[must_use]
    pub fn describe(&self, now: u64) -> String {
        let age = self.made.map(|made| format!(", {} old", clock::span(now.saturating_sub(made))));
        format!("{}, term {}{}", self.set, self.terms, age.unwrap_or_default())
    }
}
