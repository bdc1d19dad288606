//! Receiver of the table of system ids at a member.

use alloc::{vec, vec::Vec};

use super::{
    IssuedSystemIds, SystemIds, TableDigest, TableMessage,
    issue::{TableContent, TableDifference, TableId},
};
use crate::error::MavlinkError;

/// Takes the leader's messages about the table of system ids, and knows whether the table that holds is the one
/// that is held.
///
/// Holds one table, and the parts of one other. A fault leaves the table as it was.
#[derive(Clone, Debug, Default)]
pub struct TableReceiver {
    held: Option<(TableId, SystemIds)>,
    /// The newest table that was heard of.
    newest: Option<TableId>,
    parts: Option<(TableId, Vec<Option<Vec<u8>>>)>,
    counters: TableCounters,
}

/// Numbers of messages about tables, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableCounters {
    /// Messages that completed a table.
    pub taken: u64,
    /// Messages that said again what is known, or were a part of a table.
    pub repeated: u64,
    /// Messages of a table before the one that is held, of the same term.
    pub outdated: u64,
    /// Messages of another term than that of the epoch: of an earlier leader, or of a later one.
    pub other_term: u64,
    /// Messages that change a table which is not held.
    pub without_base: u64,
    /// Messages that contradict themselves: bytes of no message, an id or slot twice, a system id of 0, a
    /// table that is not the one it was announced as.
    pub refused: u64,
}

impl TableCounters {
    /// Each with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("taken", self.taken),
            ("repeated", self.repeated),
            ("outdated", self.outdated),
            ("other term", self.other_term),
            ("without base", self.without_base),
            ("refused", self.refused),
        ]
        .into_iter()
    }
}

/// Outcome of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableOutcome {
    /// A new table, which holds now.
    Taken(SystemIds),
    /// No news: said before, outdated, of another term, or not whole yet.
    Nothing,
    /// The table that holds is not held: the leader is to be asked.
    Lacking,
}

impl TableReceiver {
    /// A receiver that holds no table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a message that the leader signed. `term`: of the epoch held.
    ///
    /// # Errors
    /// It contradicts itself; it is counted, and nothing changes.
    pub fn receive(&mut self, term: Option<u64>, bytes: &[u8]) -> Result<TableOutcome, MavlinkError> {
        let outcome = self.try_receive(term, bytes);
        match &outcome {
            Ok(TableOutcome::Taken(_)) => self.counters.taken += 1,
            Ok(_) => {}
            Err(_) => self.counters.refused += 1,
        }
        outcome
    }

    /// Term and number of the table that holds, if it is another than the one held: the leader is to be asked
    /// for it. 12 bytes: [`TableReceiver::request`].
    #[must_use]
    pub fn wanted(&self) -> Option<(u64, u32)> {
        let newest = self.newest?;
        let is_held = self.held.as_ref().is_some_and(|(held, _)| *held == newest);
        (!is_held).then_some((newest.term, newest.number))
    }

    /// A request for a table as it is sent: term (8) and number (4), big-endian.
    #[must_use]
    pub fn request((term, number): (u64, u32)) -> Vec<u8> {
        [&term.to_be_bytes()[..], &number.to_be_bytes()].concat()
    }

    /// Reads a request; `None` if it is none.
    #[must_use]
    pub fn parse_request(bytes: &[u8]) -> Option<(u64, u32)> {
        let (term, left) = bytes.split_first_chunk()?;
        Some((u64::from_be_bytes(*term), u32::from_be_bytes(left.try_into().ok()?)))
    }

    /// Counts of messages by outcome.
    #[must_use]
    pub const fn counters(&self) -> TableCounters {
        self.counters
    }

    fn try_receive(&mut self, term: Option<u64>, bytes: &[u8]) -> Result<TableOutcome, MavlinkError> {
        let (id, content) = match IssuedSystemIds::decode(bytes) {
            Ok(IssuedSystemIds { term, number, table }) => {
                let digest = TableDigest::of(&table.encode());
                (TableId { term, number, digest }, Err(table))
            }
            // A table that is not narrow has another version.
            Err(narrow) => match TableMessage::decode(bytes) {
                Ok(TableMessage { id, content }) => (id, Ok(content)),
                Err(MavlinkError::Table("it is of another version")) => return Err(narrow),
                Err(error) => return Err(error),
            },
        };
        if term != Some(id.term) {
            self.counters.other_term += 1;
            return Ok(TableOutcome::Nothing);
        }
        // A table that was delayed does not replace a later one.
        if self.newest.is_some_and(|newest| newest.term == id.term && newest.number > id.number) {
            self.counters.outdated += 1;
            return Ok(TableOutcome::Nothing);
        }
        if self.held.as_ref().is_some_and(|(held, _)| *held == id) {
            self.counters.repeated += 1;
            return Ok(TableOutcome::Nothing);
        }
        match content {
            Err(table) => self.hold_narrow(id, table),
            Ok(TableContent::Announcement) => {
                self.newest = Some(id);
                self.counters.repeated += 1;
                Ok(TableOutcome::Lacking)
            }
            Ok(TableContent::Difference(difference)) => self.change(id, &difference),
            Ok(TableContent::Part(index, parts, part)) => self.collect(id, (index, parts), part),
        }
    }

    /// Takes a narrow table, of which one number names one alone.
    fn hold_narrow(&mut self, id: TableId, table: SystemIds) -> Result<TableOutcome, MavlinkError> {
        let is_other = |(held, _): &(TableId, SystemIds)| (held.term, held.number) == (id.term, id.number);
        if self.held.as_ref().is_some_and(is_other) {
            self.counters.outdated += 1;
            return Ok(TableOutcome::Nothing);
        }
        Ok(self.hold(id, table))
    }

    fn hold(&mut self, id: TableId, table: SystemIds) -> TableOutcome {
        (self.held, self.newest, self.parts) = (Some((id, table.clone())), Some(id), None);
        TableOutcome::Taken(table)
    }

    fn change(&mut self, id: TableId, difference: &TableDifference) -> Result<TableOutcome, MavlinkError> {
        let is_base = |held: &TableId| held.term == id.term && held.number == difference.base;
        let Some((_, base)) = self.held.as_ref().filter(|(held, _)| is_base(held)) else {
            self.newest = Some(id);
            self.counters.without_base += 1;
            return Ok(TableOutcome::Lacking);
        };
        let table = difference.apply(base);
        let table = table.and_then(|table| check_digest(id, &table.encode()).map(|()| table));
        if table.is_err() {
            // The whole says what the leader means.
            self.newest = Some(id);
        }
        Ok(self.hold(id, table?))
    }

    fn collect(
        &mut self,
        id: TableId,
        (index, parts): (u16, u16),
        part: Vec<u8>,
    ) -> Result<TableOutcome, MavlinkError> {
        self.newest = Some(id);
        let is_of_it =
            |(collected, all): &(TableId, Vec<_>)| *collected == id && all.len() == usize::from(parts);
        let mut collected = match self.parts.take().filter(is_of_it) {
            Some((_, collected)) => collected,
            None => vec![None; usize::from(parts)],
        };
        if let Some(place) = collected.get_mut(usize::from(index)) {
            *place = Some(part);
        }
        if collected.iter().any(Option::is_none) {
            self.parts = Some((id, collected));
            self.counters.repeated += 1;
            return Ok(TableOutcome::Nothing);
        }
        let encoded = collected.into_iter().flatten().flatten().collect::<Vec<u8>>();
        check_digest(id, &encoded)?;
        let table = SystemIds::decode(&encoded)?;
        Ok(self.hold(id, table))
    }
}

/// Checks that a table is the one that was announced.
fn check_digest(id: TableId, encoded: &[u8]) -> Result<(), MavlinkError> {
    if TableDigest::of(encoded) == id.digest {
        Ok(())
    } else {
        Err(MavlinkError::Table("it is another than the one that was announced"))
    }
}
