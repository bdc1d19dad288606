//! The registry's tables, and how a foreign or newer file is told.

use std::path::Path;

use rusqlite::{Connection, params};

use crate::error::{Error, Result};

/// In the file's header: what kind of SQLite file this is ("QVRR").
const APPLICATION_ID: i32 = 0x5156_5252;
/// In the file's header: which tables it has.
const VERSION: i32 = 1;

const TABLES: &str = "
CREATE TABLE deployment (
    fingerprint BLOB NOT NULL CHECK (length(fingerprint) = 32)
) STRICT;

-- A token is bound to one key for ever: the primary key is that promise.
CREATE TABLE issued (
    token_id BLOB PRIMARY KEY CHECK (length(token_id) = 16),
    name     TEXT NOT NULL,
    identity BLOB NOT NULL,
    handle   BLOB NOT NULL UNIQUE CHECK (length(handle) = 32),
    pin      BLOB NOT NULL CHECK (length(pin) = 32),
    request  BLOB NOT NULL CHECK (length(request) = 32),
    reply    BLOB NOT NULL,
    at       INTEGER NOT NULL
) STRICT;
CREATE INDEX issued_by_name ON issued (name);

CREATE TABLE revocation_list (
    number INTEGER PRIMARY KEY,
    list   BLOB NOT NULL,
    at     INTEGER NOT NULL
) STRICT;

-- Tokens recorded when they were issued with this registry at hand.
CREATE TABLE token (
    token_id  BLOB PRIMARY KEY CHECK (length(token_id) = 16),
    name      TEXT NOT NULL,
    statement BLOB NOT NULL,
    expiry    INTEGER NOT NULL,
    at        INTEGER NOT NULL
) STRICT;
CREATE INDEX token_by_name ON token (name);

CREATE TABLE revoked_token (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    token_id BLOB NOT NULL UNIQUE CHECK (length(token_id) = 16),
    at       INTEGER NOT NULL
) STRICT;

CREATE TABLE revoked_drone (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    token_id BLOB NOT NULL UNIQUE REFERENCES issued (token_id),
    at       INTEGER NOT NULL
) STRICT;

CREATE TABLE audit (
    seq      INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL,
    action   TEXT NOT NULL,
    subject  TEXT NOT NULL,
    detail   TEXT NOT NULL,
    previous BLOB NOT NULL CHECK (length(previous) = 32),
    hash     BLOB NOT NULL CHECK (length(hash) = 32)
) STRICT;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'the audit table is append-only'); END;
CREATE TRIGGER audit_is_not_cut BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'the audit table is append-only'); END;
";

/// Creates the tables, within a transaction.
pub(super) fn create(connection: &Connection, fingerprint: &[u8; 32]) -> Result<()> {
    let create = || {
        connection.execute_batch(TABLES)?;
        connection.execute("INSERT INTO deployment (fingerprint) VALUES (?1)", params![fingerprint])?;
        connection.pragma_update(None, "application_id", APPLICATION_ID)?;
        connection.pragma_update(None, "user_version", VERSION)
    };
    create().map_err(|error| Error::registry(Path::new("the new registry"), error))
}

/// Refuses files of other programs, of later versions and of other deployments.
pub(super) fn check(connection: &Connection, path: &Path, fingerprint: &[u8; 32]) -> Result<()> {
    let wrap = |error| Error::registry(path, error);
    let number =
        |pragma| connection.pragma_query_value::<i32, _>(None, pragma, |row| row.get(0)).map_err(wrap);
    let foreign = |found: &str| Error::ForeignRegistry { path: path.into(), found: found.into() };
    if number("application_id")? != APPLICATION_ID {
        return Err(foreign("a file of another program"));
    }
    let version = number("user_version")?;
    if version != VERSION {
        return Err(foreign(&format!(
            "a registry of version {version}, which needs another version of this program"
        )));
    }
    let found: [u8; 32] =
        connection.query_row("SELECT fingerprint FROM deployment", [], |row| row.get(0)).map_err(wrap)?;
    if found != *fingerprint {
        return Err(foreign(&format!("the registry of another deployment ({}…)", hex::encode(&found[..4]))));
    }
    Ok(())
}
