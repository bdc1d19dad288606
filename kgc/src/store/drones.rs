//! Drones: identities a key was issued for.

use quiver_ainq::{Identity, Name, Revoked, Role, UnixTime};
use quiver_enrolment::KgcRecord;
use quiver_service::clock;
use rusqlite::{OptionalExtension, Row, params};
use serde::Serialize;

use super::audit::ISSUED;
use super::{RegistryReader, RegistryTransaction};
use crate::error::{Error, Result};

/// An enrolled drone, for `kgc drone list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct EnrolledDrone {
    /// Name of the drone.
    pub(crate) name: String,
    /// `edge` or `leader of GROUP (ordinal N)`.
    pub(crate) role: String,
    /// Groups it may join.
    pub(crate) groups: Vec<String>,
    /// Serial, which is its token's id; hex.
    pub(crate) serial: String,
    /// Handle of its public key; hex. At a KGC of a quorum that of the last signature it gave its share to,
    /// empty if it gave none.
    pub(crate) handle: String,
    /// Time of its enrolment.
    #[serde(serialize_with = "clock::serialize")]
    pub(crate) enrolled: UnixTime,
    /// End of its identity.
    #[serde(serialize_with = "clock::serialize")]
    pub(crate) not_after: UnixTime,
    /// True if it was revoked.
    pub(crate) revoked: bool,
    /// True if, in a quorum, this KGC's operator wants it revoked.
    pub(crate) wanted: bool,
    /// The group that it leads, and its ordinal.
    #[serde(skip)]
    pub(crate) leads: Option<(Name, u16)>,
}

impl EnrolledDrone {
    /// Names the state in one word.
    pub(crate) fn state(&self, now: UnixTime) -> &'static str {
        match self {
            Self { revoked: true, .. } => "revoked",
            Self { not_after, .. } if *not_after < now => "expired",
            Self { wanted: true, .. } => "revocation requested",
            _ => "active",
        }
    }
}

/// A role in words.
pub(crate) fn describe_role(role: &Role) -> String {
    match role {
        Role::Edge => "edge".into(),
        Role::Leader { group, ordinal } => format!("leader of {group} (ordinal {ordinal})"),
    }
}

/// The group and the ordinal of a leader.
pub(super) fn leads_of(role: &Role) -> Option<(Name, u16)> {
    match role {
        Role::Edge => None,
        Role::Leader { group, ordinal } => Some((group.clone(), *ordinal)),
    }
}

/// A revocation that the running KGC has to sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RevokedDrone {
    /// The order in which they were made.
    pub(crate) seq: u64,
    /// The drone's entry of the list.
    pub(crate) revoked: Revoked,
}

/// A drone's entry of a revocation list, by its encoded identity if that is known.
pub(super) fn revoked(serial: [u8; 16], identity: Option<Vec<u8>>) -> Revoked {
    let identity = identity.and_then(|identity| Identity::decode(&identity).ok());
    identity.as_ref().map_or(Revoked::unknown(serial), Revoked::from)
}

/// Reads the columns beside the encoded identity.
fn drone_without_identity(row: &Row<'_>) -> rusqlite::Result<EnrolledDrone> {
    Ok(EnrolledDrone {
        name: String::new(),
        role: String::new(),
        groups: Vec::new(),
        serial: String::new(),
        handle: row.get::<_, Option<[u8; 32]>>(1)?.map(hex::encode).unwrap_or_default(),
        enrolled: row.get(2)?,
        not_after: 0,
        revoked: row.get(3)?,
        wanted: row.get(4)?,
        leads: None,
    })
}

fn issued_record(row: &Row<'_>) -> rusqlite::Result<KgcRecord> {
    Ok(KgcRecord::Issued {
        token_id: row.get(0)?,
        name: row.get(1)?,
        identity: row.get(2)?,
        handle: row.get(3)?,
        pin: row.get(4)?,
        request: row.get(5)?,
        reply: row.get(6)?,
        at: row.get(7)?,
    })
}

/// Queries of enrolled drones and their revocations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DroneTable<'a>(pub(super) RegistryReader<'a>);

impl DroneTable<'_> {
    /// All enrolled drones, by name.
    pub(crate) fn all(&self) -> Result<Vec<EnrolledDrone>> {
        let query = "SELECT identity, handle, enrolled.at,
                            revoked_drone.seq IS NOT NULL, revocation_wish.seq IS NOT NULL
                     FROM enrolled LEFT JOIN revoked_drone USING (token_id) LEFT JOIN revocation_wish USING (token_id)
                     ORDER BY name, enrolled.at";
        let read = |row: &Row<'_>| Ok((row.get(0)?, drone_without_identity(row)?));
        let rows: Vec<(Vec<u8>, EnrolledDrone)> =
            self.0.read(|db| db.prepare(query)?.query_map([], read)?.collect())?;
        let drone = |(identity, drone): (Vec<u8>, EnrolledDrone)| {
            let identity = Identity::decode(&identity)?;
            Ok(EnrolledDrone {
                name: identity.name.to_string(),
                role: describe_role(&identity.role),
                groups: identity.groups.iter().map(ToString::to_string).collect(),
                serial: hex::encode(identity.serial),
                not_after: identity.not_after,
                leads: leads_of(&identity.role),
                ..drone
            })
        };
        rows.into_iter().map(drone).collect()
    }

    /// Records of the keys that were issued here, from which a KGC's machine is rebuilt.
    pub(super) fn issued_records(&self) -> Result<Vec<KgcRecord>> {
        let query = "SELECT token_id, name, identity, handle, pin, request, reply, at FROM issued ORDER BY at, token_id";
        self.0.read(|db| db.prepare(query)?.query_map([], issued_record)?.collect())
    }

    /// Revocations made after the one numbered `seq`.
    pub(crate) fn revoked_after(&self, seq: u64) -> Result<Vec<RevokedDrone>> {
        let query =
            "SELECT revoked_drone.seq, token_id, identity FROM revoked_drone JOIN issued USING (token_id)
                     WHERE revoked_drone.seq > ?1 ORDER BY revoked_drone.seq";
        self.0.read(|db| {
            let read = |row: &Row<'_>| {
                Ok(RevokedDrone { seq: row.get(0)?, revoked: revoked(row.get(1)?, row.get(2)?) })
            };
            db.prepare(query)?.query_map(params![seq], read)?.collect()
        })
    }
}

/// Enrolled drones within a change.
pub(crate) struct DroneWriter<'a>(pub(super) &'a RegistryTransaction<'a>);

impl DroneWriter<'_> {
    /// Records a key that was issued.
    pub(super) fn issue(&self, record: &KgcRecord) -> Result<()> {
        let Self(change) = self;
        let KgcRecord::Issued { token_id, name, identity, handle, pin, request, reply, at } = record else {
            return Ok(());
        };
        // A commit that failed halfway may have happened after all: the same once more is fine, anything else
        // is not.
        let stored = "SELECT pin FROM issued WHERE token_id = ?1";
        let stored = change.transaction.query_row(stored, params![token_id], |row| row.get::<_, [u8; 32]>(0));
        match change.sql(stored.optional())? {
            Some(stored) if stored == *pin => return Ok(()),
            Some(_) => return Err(Error::TokenBoundTwice),
            None => {}
        }
        let insert = "INSERT INTO issued (token_id, name, identity, handle, pin, request, reply, at)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let values = params![token_id, name, identity, handle, pin, request, reply, at];
        change.sql(change.transaction.execute(insert, values))?;
        let row = change.written("issued");
        let detail = format!("serial {} handle {}", hex::encode(token_id), hex::encode(handle));
        change.audit(ISSUED, name, &detail, &[row])
    }

    /// Revokes a drone named by its name or serial; returns it.
    pub(crate) fn revoke(&self, which: &str) -> Result<EnrolledDrone> {
        let Self(change) = self;
        let matching =
            |drone: &EnrolledDrone| drone.name == which || drone.serial.eq_ignore_ascii_case(which);
        let mut found: Vec<_> = DroneTable(change.reader()).all()?.into_iter().filter(matching).collect();
        let known = !found.is_empty();
        found.retain(|drone| !drone.revoked);
        let drone = match found.pop() {
            Some(drone) if found.is_empty() => drone,
            Some(_) => return Err(Error::Ambiguous { which: which.into() }),
            None if known => return Err(Error::AlreadyRevoked { which: which.into() }),
            None => return Err(Error::NoSuchDrone { which: which.into() }),
        };
        let serial = hex::decode(&drone.serial).unwrap_or_default();
        let insert = "INSERT OR IGNORE INTO revoked_drone (token_id, at) VALUES (?1, ?2)";
        if change.sql(change.transaction.execute(insert, params![serial, change.at]))? == 0 {
            return Err(Error::AlreadyRevoked { which: which.into() });
        }
        let row = change.written("revoked_drone");
        change.audit("drone revoked", &drone.name, &format!("serial {}", drone.serial), &[row])?;
        Ok(drone)
    }
}
