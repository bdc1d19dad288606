//! The audit table: one line per change, each bound to the one before it by its hash.
//!
//! hash = H("quiver/1 audit", previous, seq, at, lp(action), lp(subject), lp(detail)). The chain shows any
//! line that was changed, put in or taken out before the end. That the end was cut off, or that all of it was
//! written anew by somebody who can write the file, shows the head, which a running KGC notes in `master.state`
//! or `quorum.state` (`audit_head`); against whoever can put back those as well, note the head elsewhere and
//! give it to `kgc audit --contains`. Refused requests go to the log only: strangers must not be able to fill
//! the disk.

use quiver_ainq::UnixTime;
use quiver_crypto::Hasher;
use quiver_service::clock;
use rusqlite::{OptionalExtension, Row, params};
use serde::Serialize;

use super::{Change, Store};
use crate::audit_head::AuditHead;
use crate::error::Result;

/// One line of the audit table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Line {
    /// Its number, from 1.
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
    stored: [u8; 32],
}

impl Line {
    fn compute(&self) -> [u8; 32] {
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
        /// In the registry.
        issued: u64,
        /// In the audit table.
        audited: u64,
    },
}

pub(super) const ISSUED: &str = "key issued";
pub(super) const PINNED: &str = "token bound";
pub(super) const CONTRIBUTED: &str = "contributed to a key";
pub(super) const ENROLLED: &str = "key proven by its drone";
pub(super) const ATTRIBUTE_KEY_ISSUED: &str = "attribute key issued";
pub(super) const KEY_SHARE_RELEASED: &str = "key share released";

impl Change<'_> {
    /// Adds a line.
    pub(super) fn audit(&self, action: &str, subject: &str, detail: &str) -> Result<()> {
        let last = "SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1";
        let last = self.transaction.query_row(last, [], |row| Ok((row.get(0)?, row.get(1)?))).optional();
        let (seq, previous): (u64, [u8; 32]) = self.sql(last)?.unwrap_or_default();
        let mut line = Line {
            seq: seq + 1,
            at: self.at,
            action: action.into(),
            subject: subject.into(),
            detail: detail.into(),
            hash: String::new(),
            previous,
            stored: [0; 32],
        };
        line.stored = line.compute();
        let insert = "INSERT INTO audit (seq, at, action, subject, detail, previous, hash)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let values = params![line.seq, line.at, action, subject, detail, line.previous, line.stored];
        self.sql(self.transaction.execute(insert, values)).map(drop)
    }
}

impl Store {
    /// The last line; `None` in an empty table.
    pub(crate) fn audit_head(&self) -> Result<Option<AuditHead>> {
        let last = "SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1";
        let read = |row: &Row<'_>| Ok(AuditHead { seq: row.get(0)?, hash: row.get(1)? });
        self.read(|db| db.query_row(last, [], read).optional())
    }

    /// The hash of the line of this number, if there is one.
    pub(crate) fn audit_hash(&self, seq: u64) -> Result<Option<[u8; 32]>> {
        // SQLite's integers are signed.
        let Ok(seq) = i64::try_from(seq) else { return Ok(None) };
        let query = "SELECT hash FROM audit WHERE seq = ?1";
        self.read(|db| db.query_row(query, params![seq], |row| row.get(0)).optional())
    }

    /// All lines, oldest first.
    pub(crate) fn audit_lines(&self) -> Result<Vec<Line>> {
        let query = "SELECT seq, at, action, subject, detail, previous, hash FROM audit ORDER BY seq";
        self.read(|db| {
            let mut statement = db.prepare(query)?;
            let lines = statement.query_map([], |row| {
                let stored: [u8; 32] = row.get(6)?;
                Ok(Line {
                    seq: row.get(0)?,
                    at: row.get(1)?,
                    action: row.get(2)?,
                    subject: row.get(3)?,
                    detail: row.get(4)?,
                    previous: row.get(5)?,
                    hash: hex::encode(stored),
                    stored,
                })
            })?;
            lines.collect()
        })
    }

    /// Checks the chain and that it agrees with the registry.
    pub(crate) fn check_audit(&self, lines: &[Line]) -> Result<Checked> {
        let mut previous = [0; 32];
        for (line, seq) in lines.iter().zip(1..) {
            if line.seq != seq || line.previous != previous || line.stored != line.compute() {
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
            let issued = self.read(|db| db.query_row(query, [], |row| row.get(0)))?;
            let audited = lines.iter().filter(|line| line.action == action).count() as u64;
            if issued != audited {
                return Ok(Checked::CountDiffers { what, issued, audited });
            }
        }
        Ok(Checked::Whole)
    }
}
