//! Attribute authorities, what is granted to whom, and which keys were issued. Public data and the
//! operator's: nothing here is secret, the authorities' keys are elsewhere.

use quiver_ainq::{Ristretto255, UnixTime, VerifiedAuthority};
use quiver_delivery::attributes::{Grant, KeyIssued};
use quiver_service::clock;
use rusqlite::{OptionalExtension, Row, params};
use serde::Serialize;

use super::audit::ATTRIBUTE_KEY_ISSUED;
use super::authentication::Written;
use super::drones::DroneTable;
use super::tokens::{TokenRow, TokenState, TokenTable};
use super::{RegistryReader, RegistryTransaction};
use crate::error::{Error, Result};

/// Maximum number of a policy's characters in the audit table.
const TEXT_SHOWN: usize = 200;

/// An authority as the registry has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuthorityRow {
    /// Fingerprint of its statement.
    pub(crate) fingerprint: [u8; 32],
    /// Name of the authority.
    pub(crate) name: String,
    /// The KGC's signed statement.
    pub(crate) statement: Vec<u8>,
    /// Time of its setup.
    pub(crate) at: UnixTime,
}

/// Drone with a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grantee {
    /// The drone's serial, which is its token's id.
    pub(crate) serial: [u8; 16],
    /// Name of the drone.
    pub(crate) name: String,
}

/// The newest grant of one drone at one authority, for `kgc abe list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct GrantRow {
    /// The authority's name.
    pub(crate) authority: String,
    /// The drone's name.
    pub(crate) drone: String,
    /// Serial of the drone; hex.
    pub(crate) serial: String,
    /// Number of the grant.
    pub(crate) revision: u64,
    /// `in force`, `withdrawn` or `drone revoked`.
    pub(crate) state: &'static str,
    /// The policy or the attributes.
    pub(crate) granted: String,
    /// Time of the grant.
    #[serde(serialize_with = "clock::serialize")]
    pub(crate) at: UnixTime,
}

/// An issued key, for `kgc abe list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct KeyRow {
    /// The authority's name.
    pub(crate) authority: String,
    /// The drone's name.
    pub(crate) drone: String,
    /// The grant's number.
    pub(crate) revision: u64,
    /// Time of the first issue.
    #[serde(serialize_with = "clock::serialize")]
    pub(crate) first: UnixTime,
    /// Time of the last issue.
    #[serde(serialize_with = "clock::serialize")]
    pub(crate) last: UnixTime,
    /// Number of issues.
    pub(crate) times: u64,
}

fn grant(row: &Row<'_>) -> rusqlite::Result<Grant> {
    Ok(Grant { authority: row.get(0)?, serial: row.get(1)?, revision: row.get(2)?, granted: row.get(3)? })
}

fn grant_row(row: &Row<'_>) -> rusqlite::Result<GrantRow> {
    let serial: [u8; 16] = row.get(2)?;
    let (granted, revoked): (bool, bool) = (row.get(4)?, row.get(5)?);
    Ok(GrantRow {
        authority: row.get(0)?,
        drone: row.get(1)?,
        serial: hex::encode(serial),
        revision: row.get(3)?,
        state: match (granted, revoked) {
            (_, true) => "drone revoked",
            (true, false) => "in force",
            (false, false) => "withdrawn",
        },
        granted: row.get(6)?,
        at: row.get(7)?,
    })
}

/// A policy in one line of the audit table: cut, but then with a hash of all of it.
pub(super) fn shown(text: &str) -> String {
    if text.len() <= TEXT_SHOWN {
        return text.into();
    }
    let hash = quiver_crypto::Hasher::new("quiver/1 audit text").lp(text.as_bytes()).finish();
    let cut: String = text.chars().take(TEXT_SHOWN / 2).collect();
    format!("{cut}… ({} bytes, {})", text.len(), hex::encode(hash))
}

/// Queries of attribute authorities, grants and keys issued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttributeTable<'a>(pub(super) RegistryReader<'a>);

impl AttributeTable<'_> {
    /// All authorities, by name.
    pub(crate) fn authorities(&self) -> Result<Vec<AuthorityRow>> {
        let query = "SELECT fingerprint, name, statement, at FROM attribute_authority ORDER BY name";
        let read = |row: &Row<'_>| {
            Ok(AuthorityRow {
                fingerprint: row.get(0)?,
                name: row.get(1)?,
                statement: row.get(2)?,
                at: row.get(3)?,
            })
        };
        self.0.read(|db| db.prepare(query)?.query_map([], read)?.collect())
    }

    /// The drone of this name that is enrolled, or else will be with the open token recorded for it.
    pub(crate) fn grantee(&self, name: &str, now: UnixTime) -> Result<Grantee> {
        let of = |hex_serial: &str| {
            let mut serial = [0; 16];
            // The registry has sixteen bytes.
            let _ = hex::decode_to_slice(hex_serial, &mut serial);
            Ok(Grantee { serial, name: name.into() })
        };
        let mut drones = DroneTable(self.0).all()?;
        drones.retain(|drone| drone.name == name);
        let known = !drones.is_empty();
        drones.retain(|drone| !drone.revoked);
        if let Some(drone) = drones.pop() {
            return match drone.state(now) {
                "expired" => Err(Error::Terms(format!("the identity of {name} has expired"))),
                _ => of(&drone.serial),
            };
        }
        let open = |token: &TokenRow| token.state == TokenState::Open && token.name.as_deref() == Some(name);
        match TokenTable(self.0).all(now)?.iter().find(|token| open(token)) {
            Some(token) => of(&token.id),
            None if known => Err(Error::GranteeRevoked { which: name.into() }),
            None => Err(Error::NoGrantee { which: name.into() }),
        }
    }

    /// The grant of a drone at an authority now, as text; `None` if there is none.
    pub(crate) fn granted(&self, authority: &AuthorityRow, serial: &[u8; 16]) -> Result<Option<String>> {
        let query = "SELECT text, granted IS NOT NULL FROM attribute_grant
                     WHERE authority = ?1 AND token_id = ?2 ORDER BY revision DESC LIMIT 1";
        let newest: Option<(String, bool)> = self.0.read(|db| {
            let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
            db.query_row(query, params![authority.fingerprint, serial], read).optional()
        })?;
        Ok(newest.filter(|(_, granted)| *granted).map(|(text, _)| text))
    }

    /// Drones of this name that something was granted to at this authority, the newest last.
    pub(crate) fn grantees(&self, authority: &AuthorityRow, name: &str) -> Result<Vec<Grantee>> {
        let query = "SELECT token_id, name FROM attribute_grant WHERE authority = ?1 AND name = ?2
                     GROUP BY token_id ORDER BY max(revision)";
        self.0.read(|db| {
            let read = |row: &Row<'_>| Ok(Grantee { serial: row.get(0)?, name: row.get(1)? });
            db.prepare(query)?.query_map(params![authority.fingerprint, name], read)?.collect()
        })
    }

    /// Grants and withdrawals made after the one of this revision, oldest first.
    pub(crate) fn grants_after(&self, revision: u64) -> Result<Vec<Grant>> {
        let query = "SELECT authority, token_id, revision, granted FROM attribute_grant
                     WHERE revision > ?1 ORDER BY revision";
        self.0.read(|db| db.prepare(query)?.query_map(params![revision], grant)?.collect())
    }

    /// The newest word on every drone at every authority, as the machine wants it, by revision: the last one
    /// has the highest there is.
    pub(crate) fn newest_grants(&self) -> Result<Vec<Grant>> {
        let query = "SELECT authority, token_id, revision, granted FROM attribute_grant AS newest
                     WHERE revision = (SELECT max(revision) FROM attribute_grant AS any
                                       WHERE any.authority = newest.authority AND any.token_id = newest.token_id)
                     ORDER BY revision";
        self.0.read(|db| db.prepare(query)?.query_map([], grant)?.collect())
    }

    /// The newest word on every drone at every authority.
    pub(crate) fn grants(&self) -> Result<Vec<GrantRow>> {
        let query = "SELECT attribute_authority.name, newest.name, newest.token_id, newest.revision,
                            newest.granted IS NOT NULL, revoked_drone.seq IS NOT NULL, newest.text, newest.at
                     FROM attribute_grant AS newest
                     JOIN attribute_authority ON attribute_authority.fingerprint = newest.authority
                     LEFT JOIN revoked_drone USING (token_id)
                     WHERE newest.revision = (SELECT max(revision) FROM attribute_grant AS any
                                              WHERE any.authority = newest.authority AND any.token_id = newest.token_id)
                     ORDER BY attribute_authority.name, newest.name, newest.revision";
        self.0.read(|db| db.prepare(query)?.query_map([], grant_row)?.collect())
    }

    /// All keys that were issued.
    pub(crate) fn keys(&self) -> Result<Vec<KeyRow>> {
        let query = "SELECT attribute_authority.name, attribute_grant.name, attribute_key.revision,
                            first_at, last_at, times
                     FROM attribute_key
                     JOIN attribute_authority ON attribute_authority.fingerprint = attribute_key.authority
                     JOIN attribute_grant USING (revision)
                     ORDER BY attribute_authority.name, attribute_grant.name, attribute_key.revision";
        let read = |row: &Row<'_>| {
            Ok(KeyRow {
                authority: row.get(0)?,
                drone: row.get(1)?,
                revision: row.get(2)?,
                first: row.get(3)?,
                last: row.get(4)?,
                times: row.get(5)?,
            })
        };
        self.0.read(|db| db.prepare(query)?.query_map([], read)?.collect())
    }
}

/// Attribute authorities, grants and keys issued within a change.
pub(crate) struct AttributeWriter<'a>(pub(super) &'a RegistryTransaction<'a>);

impl AttributeWriter<'_> {
    /// Records an authority. One name, one authority, for ever.
    ///
    /// # Errors
    /// [`Error::NameTaken`] if another was set up meanwhile.
    pub(crate) fn record_authority(&self, authority: &VerifiedAuthority<Ristretto255>) -> Result<()> {
        let Self(change) = self;
        let (name, scheme) = (authority.name.as_str(), authority.scheme.as_str());
        let taken = "SELECT EXISTS (SELECT 1 FROM attribute_authority WHERE name = ?1)";
        if change.sql(change.transaction.query_row(taken, params![name], |row| row.get(0)))? {
            let by = "an attribute authority that was set up meanwhile; give another --name".into();
            return Err(Error::NameTaken { name: name.into(), by });
        }
        let insert = "INSERT INTO attribute_authority (fingerprint, name, scheme, statement, at)
                      VALUES (?1, ?2, ?3, ?4, ?5)";
        let values = params![authority.fingerprint(), name, scheme, authority.bytes(), change.at];
        change.sql(change.transaction.execute(insert, values))?;
        let row = change.written("attribute_authority");
        let detail = format!("scheme {scheme} fingerprint {}", hex::encode(authority.fingerprint()));
        change.audit("attribute authority set up", name, &detail, &[row])
    }

    /// Grants a policy or attributes, `granted` in the scheme's encoding and `text` for people; `None` to
    /// withdraw. Returns the revision.
    pub(crate) fn grant(
        &self,
        authority: &AuthorityRow,
        to: &Grantee,
        granted: Option<&[u8]>,
        text: &str,
    ) -> Result<u64> {
        let Self(change) = self;
        let insert = "INSERT INTO attribute_grant (authority, token_id, name, granted, text, at)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING revision";
        let values = params![authority.fingerprint, to.serial, to.name, granted, text, change.at];
        let revision: u64 = change.sql(change.transaction.query_row(insert, values, |row| row.get(0)))?;
        let row = change.written("attribute_grant");
        let action = if granted.is_some() { "attributes granted" } else { "attribute grant withdrawn" };
        let detail = format!("authority {} grant {revision}: {}", authority.name, shown(text));
        change.audit(action, &to.name, &detail, &[row])?;
        Ok(revision)
    }

    /// Counts a key; the first of a grant's revision is audited as well. A commit that failed halfway may
    /// have happened after all: the same record once more counts once more and is not audited twice.
    pub(super) fn count_key(&self, record: &KeyIssued) -> Result<()> {
        let Self(change) = self;
        let KeyIssued { authority, serial, handle, name, revision, at } = record;
        let insert =
            "INSERT INTO attribute_key (authority, token_id, revision, handle, first_at, last_at, times)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?5, 1)
                      ON CONFLICT DO UPDATE SET last_at = excluded.last_at, times = times + 1
                      RETURNING times";
        let values = params![authority, serial, revision, handle, at];
        let times: u64 = change.sql(change.transaction.query_row(insert, values, |row| row.get(0)))?;
        if times > 1 {
            return Ok(());
        }
        let query = "SELECT name FROM attribute_authority WHERE fingerprint = ?1";
        let authority: String =
            change.sql(change.transaction.query_row(query, params![authority], |row| row.get(0)))?;
        let detail = format!(
            "authority {authority} grant {revision} serial {} handle {}",
            hex::encode(serial),
            hex::encode(handle)
        );
        let key = "SELECT rowid FROM attribute_key WHERE authority = ?1 AND token_id = ?2 AND revision = ?3";
        let values = params![record.authority, serial, revision];
        let row = change.sql(change.transaction.query_row(key, values, |row| row.get(0)))?;
        change.audit(ATTRIBUTE_KEY_ISSUED, name.as_str(), &detail, &[Written { table: "attribute_key", row }])
    }

    /// Audits a key that is about to be written to a file: a holder of the file has the key.
    pub(crate) fn record_key_file(&self, authority: &str, whom: &str, text: &str) -> Result<()> {
        let detail = format!("authority {authority}: {}", shown(text));
        self.0.audit("attribute key written to a file", whom, &detail, &[])
    }
}
