//! The audit table: one line per change, each bound to the one before it by its hash.
//!
//! hash = H("quiver/1 audit", previous, seq, at, lp(action), lp(subject), lp(detail)). The chain shows any
//! line that was changed, put in or taken out before the end. That all of it was written anew, or lines were added,
//! by somebody who can write the file, show the lines' MACs (`authentication`); that the end was cut off shows the
//! head, which is noted in `master.state` or `quorum.state` (`audit_head`). Against whoever can put back those as
//! well, note the head elsewhere and give it to `kgc audit --contains`. Refused requests go to the log only:
//! strangers must not be able to fill the disk.

use quiver_ainq::UnixTime;
use quiver_crypto::Hasher;
use quiver_service::clock;
use rusqlite::{OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};

use super::{RegistryReader, RegistryTransaction};
use crate::audit_head::AuditHead;
use crate::error::Result;

/// A line of the audit table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct AuditLine {
    /// Number of the line, from 1.
    pub(crate) seq: u64,
    /// Time, in seconds since 1970.
    #[serde(serialize_with = "clock::serialize")]
    pub(crate) at: UnixTime,
    /// The action.
    pub(crate) action: String,
    /// Object of the action: a name, a number.
    pub(crate) subject: String,
    /// More about it.
    pub(crate) detail: String,
    /// Hash of this line and, through it, of all before it; hex.
    pub(crate) hash: String,
    #[serde(skip)]
    previous: [u8; 32],
    #[serde(skip)]
    pub(super) stored: [u8; 32],
}

/// The columns of a line, as [`line()`] reads them.
pub(super) const COLUMNS: &str = "seq, at, action, subject, detail, previous, hash";

/// Reads a line.
pub(super) fn line(row: &Row<'_>) -> rusqlite::Result<AuditLine> {
    let stored: [u8; 32] = row.get(6)?;
    Ok(AuditLine {
        seq: row.get(0)?,
        at: row.get(1)?,
        action: row.get(2)?,
        subject: row.get(3)?,
        detail: row.get(4)?,
        previous: row.get(5)?,
        hash: hex::encode(stored),
        stored,
    })
}

/// A line that is not in the table yet, as the command line has it authenticated by the running KGC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NextLine {
    seq: u64,
    at: UnixTime,
    action: String,
    subject: String,
    detail: String,
    /// Hash of the line before.
    previous: [u8; 32],
}

impl From<NextLine> for AuditLine {
    fn from(next: NextLine) -> Self {
        let NextLine { seq, at, action, subject, detail, previous } = next;
        let mut line =
            Self { seq, at, action, subject, detail, hash: String::new(), previous, stored: [0; 32] };
        line.stored = line.compute();
        line.hash = hex::encode(line.stored);
        line
    }
}

impl From<&AuditLine> for NextLine {
    fn from(line: &AuditLine) -> Self {
        let (action, subject, detail) = (line.action.clone(), line.subject.clone(), line.detail.clone());
        Self { seq: line.seq, at: line.at, action, subject, detail, previous: line.previous }
    }
}

impl AuditLine {
    /// Checks the hash that it was stored with.
    pub(super) fn is_intact(&self) -> bool {
        self.stored == self.compute()
    }

    /// Checks that it is the next one behind this line.
    pub(super) fn follows(&self, seq: u64, hash: &[u8; 32]) -> bool {
        seq.checked_add(1) == Some(self.seq) && self.previous == *hash
    }

    pub(super) fn compute(&self) -> [u8; 32] {
        Hasher::new("quiver/1 audit")
            .fixed(&self.previous)
            .u64(self.seq)
            .u64(self.at)
            .lp(self.action.as_bytes())
            .lp(self.subject.as_bytes())
            .lp(self.detail.as_bytes())
            .finish()
    }
}

/// Result of checking the whole table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    /// Every line follows from the one before it and every issued key has its line.
    Whole,
    /// The first line that does not.
    BrokenAt(u64),
    /// Keys in the registry and keys in the audit table are not the same in number.
    CountDiffers {
        /// Kind of keys.
        what: &'static str,
        /// Number in the registry.
        issued: u64,
        /// Number in the audit table.
        audited: u64,
    },
}

pub(super) const ISSUED: &str = "key issued";
pub(super) const PINNED: &str = "token bound";
pub(super) const CONTRIBUTED: &str = "contributed to a key";
pub(super) const ENROLLED: &str = "key proven by its drone";
pub(super) const ATTRIBUTE_KEY_ISSUED: &str = "attribute key issued";
pub(crate) const KEY_SHARE_RELEASED: &str = "key share released";

/// Queries of the audit table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuditTable<'a>(pub(super) RegistryReader<'a>);

impl AuditTable<'_> {
    /// The last line; `None` in an empty table.
    pub(crate) fn head(&self) -> Result<Option<AuditHead>> {
        let last = "SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1";
        let read = |row: &Row<'_>| Ok(AuditHead { seq: row.get(0)?, hash: row.get(1)? });
        self.0.read(|db| db.query_row(last, [], read).optional())
    }

    /// The hash of the line of this number, if there is one.
    pub(crate) fn hash(&self, seq: u64) -> Result<Option<[u8; 32]>> {
        // SQLite's integers are signed.
        let Ok(seq) = i64::try_from(seq) else { return Ok(None) };
        let query = "SELECT hash FROM audit WHERE seq = ?1";
        self.0.read(|db| db.query_row(query, params![seq], |row| row.get(0)).optional())
    }

    /// All lines, oldest first.
    pub(crate) fn lines(&self) -> Result<Vec<AuditLine>> {
        let query = format!("SELECT {COLUMNS} FROM audit ORDER BY seq");
        self.0.read(|db| db.prepare(&query)?.query_map([], line)?.collect())
    }

    /// Checks the chain and that it agrees with the registry.
    pub(crate) fn check(&self, lines: &[AuditLine]) -> Result<Checked> {
        let mut previous = [0; 32];
        for (line, seq) in lines.iter().zip(1..) {
            if line.seq != seq || line.previous != previous || !line.is_intact() {
                return Ok(Checked::BrokenAt(seq));
            }
            previous = line.stored;
        }
        if lines.is_empty() {
            return Ok(Checked::BrokenAt(1));
        }
        let counts = [
            ("keys", "SELECT count(*) FROM issued", ISSUED),
            ("tokens", "SELECT count(*) FROM pinned", PINNED),
            ("contributions", "SELECT count(*) FROM contributed", CONTRIBUTED),
            ("keys proven", "SELECT count(*) FROM proven", ENROLLED),
            ("attribute keys", "SELECT count(*) FROM attribute_key", ATTRIBUTE_KEY_ISSUED),
            ("key shares", "SELECT count(*) FROM ibe_share", KEY_SHARE_RELEASED),
        ];
        for (what, query, action) in counts {
            let issued = self.0.read(|db| db.query_row(query, [], |row| row.get(0)))?;
            let audited = lines.iter().filter(|line| line.action == action).count() as u64;
            if issued != audited {
                return Ok(Checked::CountDiffers { what, issued, audited });
            }
        }
        Ok(Checked::Whole)
    }
}

/// Audit table within a change.
pub(super) struct AuditWriter<'a>(pub(super) &'a RegistryTransaction<'a>);

impl AuditWriter<'_> {
    /// Adds a line, and nothing that authenticates it.
    pub(super) fn add_line(&self, action: &str, subject: &str, detail: &str) -> Result<AuditLine> {
        let Self(change) = self;
        let last = "SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1";
        let last = change.transaction.query_row(last, [], |row| Ok((row.get(0)?, row.get(1)?))).optional();
        let (seq, previous): (u64, [u8; 32]) = change.sql(last)?.unwrap_or_default();
        let (action, subject, detail) = (action.into(), subject.into(), detail.into());
        let line =
            AuditLine::from(NextLine { seq: seq + 1, at: change.at, action, subject, detail, previous });
        let insert = "INSERT INTO audit (seq, at, action, subject, detail, previous, hash)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let AuditLine { seq, at, action, subject, detail, previous, stored, .. } = &line;
        let values = params![seq, at, action, subject, detail, previous, stored];
        change.sql(change.transaction.execute(insert, values))?;
        Ok(line)
    }
}
