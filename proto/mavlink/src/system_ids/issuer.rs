//! Messages of a leader about the table of system ids.

use alloc::{sync::Arc, vec::Vec};

use super::{
    IssuedSystemIds, SystemIds, TableDigest, TableMessage,
    issue::{MAX_DIFFERENCE_LEN, MAX_PARTS, PART_LEN, TableContent, TableDifference, TableId},
};

/// Numbers the tables of a leader, and writes the messages that spread them.
///
/// A narrow table is sent whole whenever something is sent, so that older ends take it. Of any other a change is
/// sent as the difference, and besides only an announcement, which says which table holds; whoever has another
/// asks ([`TableReceiver::wanted`](super::TableReceiver::wanted)) and gets the whole.
#[derive(Clone, Debug)]
pub struct TableIssuer {
    number: u32,
    issued: Option<Issued>,
}

#[derive(Clone, Debug)]
struct Issued {
    term: u64,
    table: Arc<SystemIds>,
    encoded: Vec<u8>,
    digest: TableDigest,
    /// Difference to the table before it, of the same term; `None` if that is longer than the table.
    difference: Option<TableDifference>,
}

impl TableIssuer {
    /// Counts on from a number that is greater than those of all tables that were spread before in the same
    /// term.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self { number, issued: None }
    }

    /// Notes the table that holds in a term. Returns whether it is another than before.
    pub fn set(&mut self, term: u64, table: &Arc<SystemIds>) -> bool {
        let is_same = |issued: &Issued| issued.term == term && issued.table == *table;
        if self.issued.as_ref().is_some_and(is_same) {
            return false;
        }
        let before = self.issued.take();
        let base = self.number;
        if before.is_some() {
            self.number = self.number.saturating_add(1);
        }
        let difference = before
            .filter(|before| before.term == term)
            .map(|before| TableDifference::between(base, &before.table, table));
        let encoded = table.encode();
        let digest = TableDigest::of(&encoded);
        self.issued = Some(Issued { term, table: Arc::clone(table), encoded, digest, difference });
        true
    }

    /// Returns true if nothing of the table has to be asked for, because it is sent whole each time.
    #[must_use]
    pub fn is_narrow(&self) -> bool {
        self.issued.as_ref().is_none_or(|issued| issued.table.is_narrow())
    }

    /// The messages that tell of the change that made the table what it is: one, unless so much changed that
    /// the whole is shorter.
    #[must_use]
    pub fn change(&self) -> Vec<Vec<u8>> {
        let Some(issued) = self.issued.as_ref().filter(|issued| !issued.table.is_narrow()) else {
            return self.announcement();
        };
        let difference = issued
            .difference
            .clone()
            .map(|difference| self.message(issued, TableContent::Difference(difference)));
        let most = MAX_DIFFERENCE_LEN.min(issued.encoded.len());
        match difference.filter(|message| message.len() <= most) {
            Some(message) => alloc::vec![message],
            None => self.whole(),
        }
    }

    /// The message that says which table holds.
    #[must_use]
    pub fn announcement(&self) -> Vec<Vec<u8>> {
        let message = |issued: &Issued| match issued.table.is_narrow() {
            true => self.narrow(issued),
            false => self.message(issued, TableContent::Announcement),
        };
        self.issued.iter().map(message).collect()
    }

    /// The messages that carry the whole table, for whoever asked.
    #[must_use]
    pub fn whole(&self) -> Vec<Vec<u8>> {
        let Some(issued) = self.issued.as_ref().filter(|issued| !issued.table.is_narrow()) else {
            return self.announcement();
        };
        let parts = u16::try_from(issued.encoded.len().div_ceil(PART_LEN)).unwrap_or(u16::MAX);
        debug_assert!(usize::from(parts) <= MAX_PARTS, "a table is bounded");
        let part = |(index, part): (u16, &[u8])| {
            self.message(issued, TableContent::Part(index, parts, part.to_vec()))
        };
        (0..).zip(issued.encoded.chunks(PART_LEN)).map(part).collect()
    }

    fn narrow(&self, issued: &Issued) -> Vec<u8> {
        let table = SystemIds::clone(&issued.table);
        IssuedSystemIds { term: issued.term, number: self.number, table }.encode()
    }

    fn message(&self, issued: &Issued, content: TableContent) -> Vec<u8> {
        let id = TableId { term: issued.term, number: self.number, digest: issued.digest };
        TableMessage { id, content }.encode()
    }
}
