//! Stores the enrolments that a KGC of a quorum took part in: which request a token is bound to, which keys
//! it contributed to, and which one the drone proved that it holds.

use quiver_ainq::UnixTime;
use quiver_enrolment::KgcRecord;
use rusqlite::{OptionalExtension, Row, params};

use super::audit::{CONTRIBUTED, ENROLLED, PINNED};
use super::authentication::Written;
use super::{RegistryReader, RegistryTransaction};
use crate::error::{Error, Result};

fn pinned_record(row: &Row<'_>) -> rusqlite::Result<KgcRecord> {
    Ok(KgcRecord::Pinned {
        token_id: row.get(0)?,
        name: row.get(1)?,
        identity: row.get(2)?,
        pin: row.get(3)?,
        request: row.get(4)?,
        at: row.get(5)?,
    })
}

fn contributed_record(row: &Row<'_>) -> rusqlite::Result<KgcRecord> {
    Ok(KgcRecord::Contributed { token_id: row.get(0)?, handle: row.get(1)?, at: row.get(2)? })
}

fn enrolled_record(row: &Row<'_>) -> rusqlite::Result<KgcRecord> {
    Ok(KgcRecord::Enrolled { token_id: row.get(0)?, handle: row.get(1)?, at: row.get(2)? })
}

/// Queries of enrolments in a quorum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PinnedTable<'a>(pub(super) RegistryReader<'a>);

impl PinnedTable<'_> {
    /// Records of them, from which a KGC's machine is rebuilt.
    pub(super) fn records(&self) -> Result<Vec<KgcRecord>> {
        let pinned = "SELECT token_id, name, identity, pin, request, at FROM pinned ORDER BY at, token_id";
        let contributed = "SELECT token_id, handle, at FROM contributed ORDER BY at, handle";
        let proven = "SELECT token_id, handle, at FROM proven ORDER BY at, token_id";
        self.0.read(|db| {
            let mut records: Vec<KgcRecord> =
                db.prepare(pinned)?.query_map([], pinned_record)?.collect::<rusqlite::Result<_>>()?;
            let mut statement = db.prepare(contributed)?;
            for record in statement.query_map([], contributed_record)? {
                records.push(record?);
            }
            let mut statement = db.prepare(proven)?;
            for record in statement.query_map([], enrolled_record)? {
                records.push(record?);
            }
            Ok(records)
        })
    }
}

/// Enrolments in a quorum within a change.
pub(crate) struct PinnedWriter<'a>(pub(super) &'a RegistryTransaction<'a>);

impl PinnedWriter<'_> {
    /// Binds a token to a request.
    pub(super) fn bind(&self, record: &KgcRecord) -> Result<()> {
        let Self(change) = self;
        let KgcRecord::Pinned { token_id, name, identity, pin, request, at } = record else {
            return Ok(());
        };
        // A commit that failed halfway may have happened after all: the same once more is fine, anything else
        // is not.
        let stored = "SELECT request FROM pinned WHERE token_id = ?1";
        let stored = change.transaction.query_row(stored, params![token_id], |row| row.get::<_, [u8; 32]>(0));
        match change.sql(stored.optional())? {
            Some(stored) if stored == *request => return Ok(()),
            Some(_) => return Err(Error::TokenBoundTwice),
            None => {}
        }
        let insert =
            "INSERT INTO pinned (token_id, name, identity, pin, request, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let values = params![token_id, name, identity, pin, request, at];
        change.sql(change.transaction.execute(insert, values))?;
        let row = change.written("pinned");
        change.audit(PINNED, name, &format!("serial {}", hex::encode(token_id)), &[row])
    }

    /// Records a key that this KGC contributed to.
    pub(super) fn contribute(&self, token_id: &[u8; 16], handle: &[u8; 32], at: UnixTime) -> Result<()> {
        let Self(change) = self;
        let insert = "INSERT OR IGNORE INTO contributed (handle, token_id, at) VALUES (?1, ?2, ?3)";
        if change.sql(change.transaction.execute(insert, params![handle, token_id, at]))? == 0 {
            return Ok(());
        }
        self.audit_of_a_key(CONTRIBUTED, change.written("contributed"), token_id, handle)
    }

    /// Records the key that a drone proved to hold.
    pub(super) fn prove(&self, token_id: &[u8; 16], handle: &[u8; 32], at: UnixTime) -> Result<()> {
        let Self(change) = self;
        let insert = "INSERT OR IGNORE INTO proven (token_id, handle, at) VALUES (?1, ?2, ?3)";
        if change.sql(change.transaction.execute(insert, params![token_id, handle, at]))? == 0 {
            return Ok(());
        }
        self.audit_of_a_key(ENROLLED, change.written("proven"), token_id, handle)
    }

    /// Audits a key, whose row was just written.
    fn audit_of_a_key(
        &self,
        action: &str,
        row: Written,
        token_id: &[u8; 16],
        handle: &[u8; 32],
    ) -> Result<()> {
        let Self(change) = self;
        let detail = format!("serial {} handle {}", hex::encode(token_id), hex::encode(handle));
        let name = "SELECT name FROM pinned WHERE token_id = ?1";
        let name: String =
            change.sql(change.transaction.query_row(name, params![token_id], |row| row.get(0)))?;
        change.audit(action, &name, &detail, &[row])
    }
}
