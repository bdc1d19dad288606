//! Authenticates the registry's rows with a key that is in `master.state` or `quorum.state`.
//!
//! Every line of the audit table has a MAC (`audit_mac`): PRF(key, MAC of the line before, seq, the line's hash,
//! digest of its rows). The rows of a line (`authenticated_row`) are those that the change wrote in other tables, each
//! with a digest. A row that was inserted, changed or deleted from outside is found by that, and so is a line: nobody
//! without the key continues the chain, and its end is noted beside the key (`audit_head`). Row, line and MAC are
//! written in one transaction.
//!
//! SQLite's own table of tables is covered as well, because a trigger or a view from outside could change what is
//! written or read. Not covered are the counters of keys and shares issued (`times`, `last_at`), which decide nothing.

use std::collections::BTreeMap;
use std::fmt;

use quiver_crypto::{Digest, Hasher, Secret, ct_eq, prf};
use rand::rngs::OsRng;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::audit::{AuditLine, AuditTable, AuditWriter, COLUMNS, line};
use super::{RegistryReader, RegistryTransaction};
use crate::error::{Error, Result};

/// A table whose rows are authenticated.
struct AuthenticatedTable {
    name: &'static str,
    /// The columns that a digest covers, an integer key among them. Other numbers of rows are SQLite's own, and may
    /// change when it tidies up.
    columns: &'static str,
}

static TABLES: [AuthenticatedTable; 20] = [
    AuthenticatedTable { name: "sqlite_schema", columns: "type, name, tbl_name, sql" },
    AuthenticatedTable { name: "deployment", columns: "fingerprint" },
    AuthenticatedTable {
        name: "issued",
        columns: "token_id, name, identity, handle, pin, request, reply, at",
    },
    AuthenticatedTable { name: "pinned", columns: "token_id, name, identity, pin, request, at" },
    AuthenticatedTable { name: "contributed", columns: "handle, token_id, at" },
    AuthenticatedTable { name: "proven", columns: "token_id, handle, at" },
    AuthenticatedTable { name: "revocation_list", columns: "number, list, at" },
    AuthenticatedTable { name: "token", columns: "token_id, name, statement, expiry, at" },
    AuthenticatedTable { name: "revoked_token", columns: "seq, token_id, at" },
    AuthenticatedTable { name: "revoked_drone", columns: "seq, token_id, at" },
    AuthenticatedTable { name: "revocation_wish", columns: "seq, token_id, at" },
    AuthenticatedTable { name: "wished_drone", columns: "token_id, not_after, leader" },
    AuthenticatedTable { name: "attribute_authority", columns: "fingerprint, name, scheme, statement, at" },
    AuthenticatedTable {
        name: "attribute_grant",
        columns: "revision, authority, token_id, name, granted, text, at",
    },
    AuthenticatedTable { name: "attribute_key", columns: "authority, token_id, revision, handle, first_at" },
    AuthenticatedTable { name: "ibe_authority", columns: "version, master, name, statement, at" },
    AuthenticatedTable { name: "ibe_policy", columns: "revision, pattern, allowed, groups, at" },
    AuthenticatedTable { name: "ibe_approval", columns: "revision, condition, approved, at" },
    AuthenticatedTable { name: "ibe_share", columns: "condition, token_id, name, handle, first_at" },
    AuthenticatedTable {
        name: "admission_policy",
        columns: "id, authority, name, members, not_after, text, at",
    },
];

impl AuthenticatedTable {
    fn named(name: &str) -> Option<&'static Self> {
        TABLES.iter().find(|table| table.name == name)
    }

    /// Digests of the rows whose number is in this range, each behind its number.
    fn digests(&self, db: &Connection, from: i64, to: i64) -> rusqlite::Result<Vec<(i64, Digest)>> {
        let Self { name, columns } = self;
        // Indexes that SQLite makes by itself, for UNIQUE, have no text.
        let made = if *name == "sqlite_schema" { "AND sql IS NOT NULL" } else { "" };
        let query = format!(
            "SELECT rowid, {columns} FROM {name} WHERE rowid BETWEEN ?1 AND ?2 {made} ORDER BY rowid"
        );
        let mut statement = db.prepare_cached(&query)?;
        let count = statement.column_count();
        let digest = |row: &Row<'_>| Ok((row.get(0)?, self.digest(row, count)?));
        statement.query_map(params![from, to], digest)?.collect()
    }

    fn digest(&self, row: &Row<'_>, count: usize) -> rusqlite::Result<Digest> {
        let mut hasher = Hasher::new("quiver/1 registry row").lp(self.name.as_bytes());
        for column in 1..count {
            hasher = match row.get_ref(column)? {
                ValueRef::Null => hasher.u8(0),
                ValueRef::Integer(value) => hasher.u8(1).fixed(&value.to_be_bytes()),
                ValueRef::Real(value) => hasher.u8(2).u64(value.to_bits()),
                ValueRef::Text(text) => hasher.u8(3).lp(text),
                ValueRef::Blob(bytes) => hasher.u8(4).lp(bytes),
            };
        }
        Ok(hasher.finish())
    }
}

/// A row that was just written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    /// Table of the row.
    pub(crate) table: &'static str,
    /// Number of the row.
    pub(crate) row: i64,
}

/// A row, as the line that it was written with vouches for it.
#[derive(Clone, Debug)]
struct Vouched {
    table: String,
    row: i64,
    digest: Digest,
}

/// A digest of all rows of a line.
fn digest_of(rows: &[Vouched]) -> Digest {
    let add = |hasher: Hasher, vouched: &Vouched| {
        let row = vouched.row.to_be_bytes();
        hasher.lp(vouched.table.as_bytes()).fixed(&row).fixed(&vouched.digest)
    };
    rows.iter().fold(Hasher::new("quiver/1 audit rows"), add).finish()
}

/// The key that authenticates a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RegistryKey(Secret<32>);

impl RegistryKey {
    /// Draws a key.
    pub(crate) fn random() -> Self {
        Self(Secret::random(&mut OsRng))
    }

    /// MAC of a line behind the line with the MAC `previous`.
    fn mac(&self, previous: &Digest, line: &AuditLine, rows: &Digest) -> Digest {
        let (seq, hash) = (line.seq.to_be_bytes(), line.compute());
        *prf(&self.0, "quiver/1 registry", "audit line", &[previous, &seq, &hash, rows]).expose()
    }
}

/// The key as the encrypted file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptKey {
    /// The key.
    pub(crate) key: RegistryKey,
    /// The registry is authenticated by it. Never again is a registry taken as it is then, but if the operator says so.
    pub(crate) settled: bool,
}

impl KeptKey {
    /// Encodes the key as it stands in the file: settled u8 ‖ key 32 B.
    pub(crate) fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(33));
        bytes.push(u8::from(self.settled));
        bytes.extend_from_slice(self.key.0.expose());
        bytes
    }

    /// Reads it.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (settled, key) = bytes.split_first()?;
        let settled = match settled {
            0 => false,
            1 => true,
            _ => return None,
        };
        Some(Self { key: RegistryKey(Secret::try_from(key).ok()?), settled })
    }
}

/// A line of the audit table that was authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuthenticatedLine {
    seq: u64,
    hash: Digest,
    /// MAC of the line.
    pub(crate) mac: Digest,
}

/// Asks the running KGC for the MAC of a line and the digest of its rows.
pub(crate) type AskForMac = Box<dyn Fn(&AuditLine, &Digest) -> Result<Digest> + Send>;

/// Source of the MACs of what is written.
pub(crate) enum Authenticator {
    /// No key: the registry is read only.
    Nobody,
    /// The key.
    Key(RegistryKey),
    /// The KGC that runs on the same data directory.
    Running(AskForMac),
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nobody => "Nobody",
            Self::Key(_) => "Key",
            Self::Running(_) => "Running",
        })
    }
}

impl Authenticator {
    fn mac(&self, previous: &Digest, line: &AuditLine, rows: &Digest) -> Result<Digest> {
        match self {
            Self::Nobody => Err(Error::Terms("the registry was opened to be read, not to be changed".into())),
            Self::Key(key) => Ok(key.mac(previous, line, rows)),
            Self::Running(ask) => ask(line, rows),
        }
    }
}

/// A difference between the registry and what its KGC wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "found")]
pub(crate) enum RegistryFinding {
    /// A line of the audit table, or its MAC or list of rows, is not what was written.
    Line {
        /// The number of the line.
        line: u64,
    },
    /// A row was inserted.
    Inserted {
        /// The table.
        table: String,
        /// The number of the row.
        row: i64,
    },
    /// A row was changed.
    Changed {
        /// The table.
        table: String,
        /// The number of the row.
        row: i64,
    },
    /// A row was deleted.
    Deleted {
        /// The table.
        table: String,
        /// The number of the row.
        row: i64,
        /// The line of the audit table that it was written with.
        line: u64,
    },
    /// The file is not in order.
    Damaged {
        /// SQLite's words.
        what: String,
    },
}

impl fmt::Display for RegistryFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { line } => write!(f, "line {line} of the audit table is not authentic"),
            Self::Inserted { table, row } => write!(f, "row {row} of {table} was inserted"),
            Self::Changed { table, row } => write!(f, "row {row} of {table} was changed"),
            Self::Deleted { table, row, line } => {
                write!(f, "row {row} of {table} was deleted (written with line {line})")
            }
            Self::Damaged { what } => write!(f, "the file is damaged: {what}"),
        }
    }
}

/// All differences, by table and row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RegistryFindings(pub(crate) Vec<RegistryFinding>);

impl RegistryFindings {
    /// Describes the findings in words, at most `limit` of them.
    pub(crate) fn text(&self, limit: usize) -> String {
        let mut shown: Vec<_> = self.0.iter().take(limit).map(ToString::to_string).collect();
        if let Some(more) = self.0.len().checked_sub(limit).filter(|more| *more > 0) {
            shown.push(format!("and {more} more"));
        }
        shown.join("; ")
    }
}

impl fmt::Display for RegistryFindings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(4))
    }
}

/// End of what was found authentic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// The last line.
    seq: u64,
    hash: Digest,
    /// The MAC of that line; `None` before the first.
    mac: Option<Digest>,
    /// The last row of each table.
    rows: BTreeMap<&'static str, i64>,
}

/// The rows of a table that authentic lines vouch for: number and line by digest.
type ByDigest = BTreeMap<Digest, (i64, u64)>;

/// A check in progress.
struct Check<'a> {
    db: &'a Connection,
    key: &'a RegistryKey,
    found: Vec<RegistryFinding>,
}

impl Check<'_> {
    /// Checks lines after a position. Returns what they vouch for.
    fn lines(&mut self, position: &mut Position) -> rusqlite::Result<BTreeMap<String, ByDigest>> {
        let mut rows = self.rows_after(position.seq)?;
        let macs = self.macs_after(position.seq)?;
        let mut vouched: BTreeMap<String, ByDigest> = BTreeMap::new();
        let query = format!("SELECT {COLUMNS} FROM audit WHERE seq > ?1 ORDER BY seq");
        let mut statement = self.db.prepare(&query)?;
        for read in statement.query_map(params![position.seq], line)? {
            let line = read?;
            let of_line = rows.remove(&line.seq).unwrap_or_default();
            let mac = macs.get(&line.seq);
            let authentic = match (mac, position.mac) {
                // History of an earlier build, or from before the operator accepted the rows there were: the first
                // line with a MAC covers it by its hash, and `kgc audit` says whether it is whole.
                (None, None) => of_line.is_empty(),
                (None, Some(_)) => false,
                (Some(mac), before) => {
                    let rows = digest_of(&of_line);
                    let expected = self.key.mac(&before.unwrap_or_default(), &line, &rows);
                    line.follows(position.seq, &position.hash) && line.is_intact() && ct_eq(mac, &expected)
                }
            };
            if !authentic {
                self.found.push(RegistryFinding::Line { line: position.seq + 1 });
                return Ok(vouched);
            }
            for Vouched { table, row, digest } in of_line {
                vouched.entry(table).or_default().insert(digest, (row, line.seq));
            }
            (position.seq, position.hash, position.mac) =
                (line.seq, line.stored, mac.copied().or(position.mac));
        }
        // For a line that is not there yet, or for none at all.
        let planted = rows.keys().chain(macs.keys()).find(|line| **line > position.seq);
        if let Some(line) = planted.copied().or_else(|| position.mac.is_none().then_some(position.seq)) {
            self.found.push(RegistryFinding::Line { line });
        }
        Ok(vouched)
    }

    fn rows_after(&self, seq: u64) -> rusqlite::Result<BTreeMap<u64, Vec<Vouched>>> {
        let query =
            "SELECT line, name, row, digest FROM authenticated_row WHERE line > ?1 ORDER BY line, rowid";
        let mut rows: BTreeMap<u64, Vec<Vouched>> = BTreeMap::new();
        let mut statement = self.db.prepare(query)?;
        let read = |row: &Row<'_>| {
            Ok((row.get(0)?, Vouched { table: row.get(1)?, row: row.get(2)?, digest: row.get(3)? }))
        };
        for read in statement.query_map(params![seq], read)? {
            let (line, vouched) = read?;
            rows.entry(line).or_default().push(vouched);
        }
        Ok(rows)
    }

    fn macs_after(&self, seq: u64) -> rusqlite::Result<BTreeMap<u64, Digest>> {
        let mut statement = self.db.prepare("SELECT seq, mac FROM audit_mac WHERE seq > ?1")?;
        statement.query_map(params![seq], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    }

    /// Compares the rows of a table after a position with those that lines vouch for.
    fn table(
        &mut self,
        table: &'static AuthenticatedTable,
        mut vouched: ByDigest,
        last: &mut Option<i64>,
    ) -> rusqlite::Result<()> {
        let from = last.map_or(i64::MIN, |last| last.saturating_add(1));
        let mut inserted = Vec::new();
        for (row, digest) in table.digests(self.db, from, i64::MAX)? {
            if vouched.remove(&digest).is_none() {
                inserted.push(row);
            }
            *last = Some(last.map_or(row, |last| last.max(row)));
        }
        let mut changed = Vec::new();
        for (digest, (row, line)) in vouched {
            // Where numbers do not count up, a new row may stand before the last one that was seen.
            let there = table.digests(self.db, row, row)?;
            if there.iter().any(|(_, found)| *found == digest) && !inserted.contains(&row) {
                continue;
            }
            let table = table.name.to_owned();
            if there.is_empty() {
                self.found.push(RegistryFinding::Deleted { table, row, line });
            } else {
                changed.push(row);
                self.found.push(RegistryFinding::Changed { table, row });
            }
        }
        let inserted = inserted.into_iter().filter(|row| !changed.contains(row));
        self.found.extend(inserted.map(|row| RegistryFinding::Inserted { table: table.name.into(), row }));
        Ok(())
    }
}

/// Queries of the lines' MACs and of the rows that lines vouch for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MacTable<'a>(pub(super) RegistryReader<'a>);

impl MacTable<'_> {
    /// Checks what was written after a position, and moves it there; from the beginning, everything.
    ///
    /// # Errors
    /// [`Error::ForeignRows`] with all that is not what the holder of the key wrote; the position stays.
    pub(crate) fn check_rows(&self, key: &RegistryKey, position: &mut Position) -> Result<()> {
        self.0.snapshot(|| self.check_rows_within(key, position))
    }

    /// The same within [`RegistryReader::snapshot`].
    pub(crate) fn check_rows_within(&self, key: &RegistryKey, position: &mut Position) -> Result<()> {
        let everything = *position == Position::default();
        let mut reached = position.clone();
        let findings = self.0.read(|db| {
            let mut check = Check { db, key, found: Vec::new() };
            if everything {
                // An index from outside could hide rows from queries.
                let said: String = db.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
                if said != "ok" {
                    check.found.push(RegistryFinding::Damaged { what: said });
                }
            }
            let mut vouched = check.lines(&mut reached)?;
            for table in &TABLES {
                let mut last = reached.rows.get(table.name).copied();
                check.table(table, vouched.remove(table.name).unwrap_or_default(), &mut last)?;
                if let Some(last) = last {
                    reached.rows.insert(table.name, last);
                }
            }
            Ok(RegistryFindings(check.found))
        })?;
        if findings.0.is_empty() {
            *position = reached;
            return Ok(());
        }
        Err(Error::ForeignRows(Box::new(findings)))
    }

    /// Authenticates a line that the command line is about to add, if it follows the last one there is, or the one that
    /// was authenticated before it: a change of several lines is in the registry once it is whole.
    pub(crate) fn authenticate_next(
        &self,
        key: &RegistryKey,
        line: &AuditLine,
        rows: &Digest,
        before: Option<&AuthenticatedLine>,
    ) -> Result<AuthenticatedLine> {
        let (head, mac) = self.0.snapshot(|| Ok((AuditTable(self.0).head()?, self.0.read(newest_mac)?)))?;
        let (seq, hash) = head.map_or((0, [0; 32]), |head| (head.seq, head.hash));
        let last = mac.filter(|(of, _)| *of == seq).map(|(_, mac)| AuthenticatedLine { seq, hash, mac });
        let mut known = last.iter().chain(before);
        let Some(previous) = known.find(|known| line.follows(known.seq, &known.hash)) else {
            return Err(Error::Terms("the audit table ends with another line; try again".into()));
        };
        let mac = key.mac(&previous.mac, line, rows);
        Ok(AuthenticatedLine { seq: line.seq, hash: line.compute(), mac })
    }
}

fn newest_mac(db: &Connection) -> rusqlite::Result<Option<(u64, Digest)>> {
    let newest = "SELECT seq, mac FROM audit_mac ORDER BY seq DESC LIMIT 1";
    db.query_row(newest, [], |row| Ok((row.get(0)?, row.get(1)?))).optional()
}

/// MACs of lines within a change.
pub(crate) struct MacWriter<'a>(pub(super) &'a RegistryTransaction<'a>);

impl MacWriter<'_> {
    /// Stores a line's MAC, and the digests of the rows that it was written for.
    pub(super) fn authenticate(&self, line: &AuditLine, rows: &[Written]) -> Result<()> {
        let Self(change) = self;
        let mut vouched = Vec::with_capacity(rows.len());
        for Written { table: name, row } in rows {
            let digests =
                AuthenticatedTable::named(name).map(|table| table.digests(&change.transaction, *row, *row));
            let (_, digest) = change
                .sql(digests.transpose())?
                .and_then(|mut found| found.pop())
                .ok_or_else(|| Error::Terms(format!("row {row} of {name} was not written")))?;
            vouched.push(Vouched { table: (*name).into(), row: *row, digest });
        }
        self.store_mac(line, &vouched)
    }

    fn store_mac(&self, line: &AuditLine, rows: &[Vouched]) -> Result<()> {
        let Self(change) = self;
        let previous = change.sql(newest_mac(&change.transaction))?.map(|(_, mac)| mac);
        let mac = change.authenticator.mac(&previous.unwrap_or_default(), line, &digest_of(rows))?;
        let store = || {
            let insert = "INSERT INTO authenticated_row (line, name, row, digest) VALUES (?1, ?2, ?3, ?4)";
            let mut statement = change.transaction.prepare_cached(insert)?;
            for Vouched { table, row, digest } in rows {
                statement.execute(params![line.seq, table, row, digest])?;
            }
            let insert = "INSERT INTO audit_mac (seq, mac) VALUES (?1, ?2)";
            change.transaction.execute(insert, params![line.seq, mac])
        };
        change.sql(store()).map(drop)
    }

    /// Authenticates all rows as they are, in place of what was authenticated before: adds a line that vouches for
    /// them, says why, and is the first with a MAC.
    pub(crate) fn authenticate_all(&self, action: &str, subject: &str, detail: &str) -> Result<()> {
        let Self(change) = self;
        let gather = || {
            change.transaction.execute_batch("DELETE FROM authenticated_row; DELETE FROM audit_mac;")?;
            let mut rows = Vec::new();
            for table in &TABLES {
                let digests = table.digests(&change.transaction, i64::MIN, i64::MAX)?;
                let vouch = |(row, digest)| Vouched { table: table.name.into(), row, digest };
                rows.extend(digests.into_iter().map(vouch));
            }
            Ok::<_, rusqlite::Error>(rows)
        };
        let rows = change.sql(gather())?;
        let line = AuditWriter(change).add_line(action, subject, detail)?;
        self.store_mac(&line, &rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_comes_back_as_it_was_encoded_and_nothing_else_does() {
        let kept = KeptKey { key: RegistryKey::random(), settled: true };
        assert_eq!(KeptKey::decode(&kept.encode()), Some(kept.clone()));
        let pending = KeptKey { settled: false, ..kept };
        assert_eq!(KeptKey::decode(&pending.encode()), Some(pending));
        for malformed in [&[][..], &[1; 32], &[2; 33], &[1; 34]] {
            assert_eq!(KeptKey::decode(malformed), None);
        }
        let shown = format!("{:?}", KeptKey { key: RegistryKey(Secret::new([0xab; 32])), settled: true });
        assert!(!shown.contains("ab") && !shown.contains("171"), "{shown}");
    }
}
