//! The registry's tables, migrations of older files, and detection of foreign or newer ones.

use std::path::Path;

use rusqlite::{Connection, params};

use crate::error::{Error, Result};

/// Kind of SQLite file, in the file's header ("QVRR").
const APPLICATION_ID: i32 = 0x5156_5252;
/// Version of the tables, in the file's header.
const VERSION: i32 = 8;

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

/// Tables of version 2: attribute authorities.
const ATTRIBUTE_TABLES: &str = "
-- Public. Their secrets are in authorities.state.
CREATE TABLE attribute_authority (
    fingerprint BLOB PRIMARY KEY CHECK (length(fingerprint) = 32),
    name        TEXT NOT NULL UNIQUE,
    scheme      TEXT NOT NULL,
    statement   BLOB NOT NULL,
    at          INTEGER NOT NULL
) STRICT;

-- What the operator granted or withdrew, one row for each change; of one drone at one authority the newest counts.
CREATE TABLE attribute_grant (
    revision  INTEGER PRIMARY KEY AUTOINCREMENT,
    authority BLOB NOT NULL REFERENCES attribute_authority (fingerprint),
    token_id  BLOB NOT NULL CHECK (length(token_id) = 16),
    name      TEXT NOT NULL,
    granted   BLOB,
    text      TEXT NOT NULL,
    at        INTEGER NOT NULL
) STRICT;
CREATE INDEX attribute_grant_by_drone ON attribute_grant (authority, token_id, revision);

-- Keys issued: how often for which revision of a grant.
CREATE TABLE attribute_key (
    authority BLOB NOT NULL REFERENCES attribute_authority (fingerprint),
    token_id  BLOB NOT NULL CHECK (length(token_id) = 16),
    revision  INTEGER NOT NULL REFERENCES attribute_grant (revision),
    handle    BLOB NOT NULL CHECK (length(handle) = 32),
    first_at  INTEGER NOT NULL,
    last_at   INTEGER NOT NULL,
    times     INTEGER NOT NULL,
    PRIMARY KEY (authority, token_id, revision)
) STRICT;
";

/// Tables of version 3: this KGC as one of a quorum.
const QUORUM_TABLES: &str = "
-- A token is bound to one request for ever, in a quorum as at a single KGC.
CREATE TABLE pinned (
    token_id BLOB PRIMARY KEY CHECK (length(token_id) = 16),
    name     TEXT NOT NULL,
    identity BLOB NOT NULL,
    pin      BLOB NOT NULL CHECK (length(pin) = 32),
    request  BLOB NOT NULL CHECK (length(request) = 32),
    at       INTEGER NOT NULL
) STRICT;
CREATE INDEX pinned_by_name ON pinned (name);

-- Keys whose signature this KGC contributed to. A drone has used one of its token's.
CREATE TABLE contributed (
    handle   BLOB PRIMARY KEY CHECK (length(handle) = 32),
    token_id BLOB NOT NULL REFERENCES pinned (token_id),
    at       INTEGER NOT NULL
) STRICT;
CREATE INDEX contributed_by_token ON contributed (token_id);

-- What this KGC's operator wants the quorum to revoke, whether the drone is known here or not.
CREATE TABLE revocation_wish (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    token_id BLOB NOT NULL UNIQUE CHECK (length(token_id) = 16),
    at       INTEGER NOT NULL
) STRICT;

-- Drones, whether this KGC is one of a quorum or not.
CREATE VIEW enrolled AS
    SELECT token_id, name, identity, handle, at FROM issued
    UNION ALL
    SELECT token_id, name, identity,
           (SELECT handle FROM contributed WHERE contributed.token_id = pinned.token_id ORDER BY rowid DESC LIMIT 1),
           at FROM pinned;
";

/// Tables of version 4: release of identity keys.
const IBE_TABLES: &str = "
-- What everybody knows of the master key, one row for each version of its shares. The share itself is in ibe.state.
CREATE TABLE ibe_authority (
    version   INTEGER PRIMARY KEY,
    master    BLOB NOT NULL CHECK (length(master) = 32),
    name      TEXT NOT NULL,
    statement BLOB NOT NULL,
    at        INTEGER NOT NULL
) STRICT;

-- Who may have which keys, one row for each change; of one pattern the newest counts. No groups: everybody.
CREATE TABLE ibe_policy (
    revision INTEGER PRIMARY KEY AUTOINCREMENT,
    pattern  TEXT NOT NULL,
    allowed  INTEGER NOT NULL,
    groups   TEXT NOT NULL,
    at       INTEGER NOT NULL
) STRICT;

-- Missions' conditions that the operator approved or withdrew; of one condition the newest counts.
CREATE TABLE ibe_approval (
    revision  INTEGER PRIMARY KEY AUTOINCREMENT,
    condition TEXT NOT NULL,
    approved  INTEGER NOT NULL,
    at        INTEGER NOT NULL
) STRICT;

-- Key shares released: how often which condition's to whom.
CREATE TABLE ibe_share (
    condition TEXT NOT NULL,
    token_id  BLOB NOT NULL CHECK (length(token_id) = 16),
    name      TEXT NOT NULL,
    handle    BLOB NOT NULL CHECK (length(handle) = 32),
    first_at  INTEGER NOT NULL,
    last_at   INTEGER NOT NULL,
    times     INTEGER NOT NULL,
    PRIMARY KEY (condition, token_id)
) STRICT;
";

/// Tables of version 5: policies of admission.
const POLICY_TABLES: &str = "
-- Policies that the KGC signed for groups. A drone answers each until it ends.
CREATE TABLE admission_policy (
    id        BLOB PRIMARY KEY CHECK (length(id) = 32),
    authority BLOB NOT NULL REFERENCES attribute_authority (fingerprint),
    name      TEXT NOT NULL,
    members   TEXT NOT NULL,
    not_after INTEGER NOT NULL,
    text      TEXT NOT NULL,
    at        INTEGER NOT NULL
) STRICT;
";

/// Tables of version 6: keys that drones proved to hold.
const PROVEN_TABLES: &str = "
-- A drone proved that it holds this key: its token is good for no other.
CREATE TABLE proven (
    token_id BLOB PRIMARY KEY REFERENCES pinned (token_id),
    handle   BLOB NOT NULL CHECK (length(handle) = 32),
    at       INTEGER NOT NULL
) STRICT;
";

/// Table of version 7: the time until which a drone has to stay in revocation lists.
const REVOCATION_REQUEST_TABLES: &str = "
-- What the operator of a KGC of a quorum knows of a drone that is to be revoked and was enrolled with the help of others.
CREATE TABLE wished_drone (
    token_id  BLOB PRIMARY KEY CHECK (length(token_id) = 16),
    not_after INTEGER NOT NULL,
    leader    INTEGER NOT NULL
) STRICT;
";

/// Tables of version 8: which lines of the audit table vouch for which rows, and what authenticates the lines.
const AUTHENTICATION_TABLES: &str = "
CREATE TABLE authenticated_row (
    line   INTEGER NOT NULL REFERENCES audit (seq),
    name   TEXT NOT NULL,
    row    INTEGER NOT NULL,
    digest BLOB NOT NULL CHECK (length(digest) = 32)
) STRICT;
CREATE INDEX authenticated_row_by_line ON authenticated_row (line);

CREATE TABLE audit_mac (
    seq INTEGER PRIMARY KEY REFERENCES audit (seq),
    mac BLOB NOT NULL CHECK (length(mac) = 32)
) STRICT;
";

/// Migrations to each later version, from the second on.
const STEPS: [&str; 7] = [
    ATTRIBUTE_TABLES,
    QUORUM_TABLES,
    IBE_TABLES,
    POLICY_TABLES,
    PROVEN_TABLES,
    REVOCATION_REQUEST_TABLES,
    AUTHENTICATION_TABLES,
];

/// Creates the tables, within a transaction.
pub(super) fn create(connection: &Connection, fingerprint: &[u8; 32]) -> Result<()> {
    let create = || {
        connection.execute_batch(TABLES)?;
        STEPS.iter().try_for_each(|step| connection.execute_batch(step))?;
        connection.execute("INSERT INTO deployment (fingerprint) VALUES (?1)", params![fingerprint])?;
        connection.pragma_update(None, "application_id", APPLICATION_ID)?;
        connection.pragma_update(None, "user_version", VERSION)
    };
    create().map_err(|error| Error::registry(Path::new("the new registry"), error))
}

/// Version of the file's tables.
pub(super) fn version(connection: &Connection, path: &Path) -> Result<i32> {
    let number = connection.pragma_query_value(None, "user_version", |row| row.get(0));
    number.map_err(|error| Error::registry(path, error))
}

/// Returns true if tables are lacking that this program needs.
pub(super) const fn is_older(version: i32) -> bool {
    version < VERSION
}

/// Adds the tables that a file of this earlier version lacks, within a transaction.
pub(super) fn upgrade(connection: &Connection, from: i32) -> rusqlite::Result<()> {
    let had = usize::try_from(from - 1).unwrap_or(0);
    STEPS.iter().skip(had).try_for_each(|step| connection.execute_batch(step))?;
    connection.pragma_update(None, "user_version", VERSION)
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
    let version = version(connection, path)?;
    if !(1..=VERSION).contains(&version) {
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

/// A registry as an earlier version made it.
#[cfg(test)]
pub(super) fn make_version(connection: &Connection, version: i32) -> rusqlite::Result<()> {
    let tables = [
        (8, "DROP TABLE audit_mac; DROP TABLE authenticated_row;"),
        (7, "DROP TABLE wished_drone;"),
        (6, "DROP TABLE proven;"),
        (5, "DROP TABLE admission_policy;"),
        (
            4,
            "DROP TABLE ibe_share; DROP TABLE ibe_approval; DROP TABLE ibe_policy; DROP TABLE ibe_authority;",
        ),
        (3, "DROP VIEW enrolled; DROP TABLE revocation_wish; DROP TABLE contributed; DROP TABLE pinned;"),
        (2, "DROP TABLE attribute_key; DROP TABLE attribute_grant; DROP TABLE attribute_authority;"),
    ];
    let later = tables.iter().filter(|(brought, _)| *brought > version);
    later.into_iter().try_for_each(|(_, drop)| connection.execute_batch(drop))?;
    connection.pragma_update(None, "user_version", version)
}
