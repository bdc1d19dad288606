//! Revocation lists that the KGC or its quorum signed.

use quiver_enrolment::KgcRecord;
use rusqlite::{OptionalExtension, Row, params};

use super::{RegistryReader, RegistryTransaction};
use crate::error::Result;

/// Queries of signed revocation lists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RevocationListTable<'a>(pub(super) RegistryReader<'a>);

impl RevocationListTable<'_> {
    /// The list with the highest number.
    pub(crate) fn newest(&self) -> Result<Option<KgcRecord>> {
        let query = "SELECT number, list FROM revocation_list ORDER BY number DESC LIMIT 1";
        let read = |row: &Row<'_>| Ok(KgcRecord::RevocationList { number: row.get(0)?, list: row.get(1)? });
        self.0.read(|db| db.query_row(query, [], read).optional())
    }
}

/// Signed revocation lists within a change.
pub(crate) struct RevocationListWriter<'a>(pub(super) &'a RegistryTransaction<'a>);

impl RevocationListWriter<'_> {
    /// Adds a list; the same once more is only audited.
    pub(super) fn add(&self, number: u64, list: &[u8]) -> Result<()> {
        let Self(change) = self;
        let insert = "INSERT OR IGNORE INTO revocation_list (number, list, at) VALUES (?1, ?2, ?3)";
        let values = params![number, list, change.at];
        let new = change.sql(change.transaction.execute(insert, values))? > 0;
        let row = new.then(|| change.written("revocation_list"));
        change.audit("revocation list signed", &number.to_string(), "", row.as_slice())
    }
}
