//! Revocations requested by the operator of a quorum's KGC. The quorum revokes once t operators request it.

use quiver_ainq::{Revoked, UnixTime};
use rusqlite::{Row, params};

use super::drones::{DroneTable, EnrolledDrone, revoked};
use super::{RegistryReader, RegistryTransaction};
use crate::error::{Error, Result};

/// Queries of requested revocations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RevocationRequestTable<'a>(pub(super) RegistryReader<'a>);

impl RevocationRequestTable<'_> {
    /// Drones wanted revoked after the wish numbered `seq`, each with its number.
    pub(crate) fn after(&self, seq: u64) -> Result<Vec<(u64, Revoked)>> {
        let query = "SELECT seq, token_id, identity, not_after, leader
                     FROM revocation_wish LEFT JOIN enrolled USING (token_id) LEFT JOIN wished_drone USING (token_id)
                     WHERE seq > ?1 ORDER BY seq";
        self.0.read(|db| {
            let read = |row: &Row<'_>| {
                let (serial, identity, not_after) =
                    (row.get(1)?, row.get::<_, Option<Vec<u8>>>(2)?, row.get(3)?);
                let told: Option<UnixTime> = not_after;
                let drone = match (identity, told) {
                    (None, Some(not_after)) => Revoked { serial, not_after, leader: row.get(4)? },
                    (identity, _) => revoked(serial, identity),
                };
                Ok((row.get(0)?, drone))
            };
            db.prepare(query)?.query_map(params![seq], read)?.collect()
        })
    }
}

/// Requested revocations within a change.
pub(crate) struct RevocationRequestWriter<'a>(pub(super) &'a RegistryTransaction<'a>);

impl RevocationRequestWriter<'_> {
    /// Records that this KGC's operator requests a drone's revocation, by its name, or by its serial even if
    /// it is not known here. Returns serial and name, which is the serial if the drone is not known. `told`
    /// is the operator's data on an unknown drone: the end of its identity, and whether it may lead.
    pub(crate) fn request(&self, which: &str, told: Option<(UnixTime, bool)>) -> Result<([u8; 16], String)> {
        let Self(change) = self;
        let (serial, name) = self.serial_of(which)?;
        let mut rows = Vec::new();
        if let Some((not_after, leader)) = told {
            let insert =
                "INSERT OR IGNORE INTO wished_drone (token_id, not_after, leader) VALUES (?1, ?2, ?3)";
            if change.sql(change.transaction.execute(insert, params![serial, not_after, leader]))? > 0 {
                rows.push(change.written("wished_drone"));
            }
        }
        let insert = "INSERT OR IGNORE INTO revocation_wish (token_id, at) VALUES (?1, ?2)";
        if change.sql(change.transaction.execute(insert, params![serial, change.at]))? == 0 {
            return Err(Error::AlreadyRequested { which: which.into() });
        }
        rows.push(change.written("revocation_wish"));
        change.audit("revocation requested", &name, &format!("serial {}", hex::encode(serial)), &rows)?;
        Ok((serial, name))
    }

    fn serial_of(&self, which: &str) -> Result<([u8; 16], String)> {
        let mut serial = [0; 16];
        let is_serial = hex::decode_to_slice(which, &mut serial).is_ok();
        let fits = |drone: &EnrolledDrone| drone.name == which || drone.serial.eq_ignore_ascii_case(which);
        let mut found: Vec<_> = DroneTable(self.0.reader()).all()?.into_iter().filter(fits).collect();
        if found.iter().any(|drone| !drone.wanted) {
            found.retain(|drone| !drone.wanted);
        }
        match found.pop() {
            Some(drone) if found.is_empty() => {
                hex::decode_to_slice(&drone.serial, &mut serial)
                    .map_err(|_| Error::NoSuchDrone { which: which.into() })?;
                Ok((serial, drone.name))
            }
            Some(_) => Err(Error::Ambiguous { which: which.into() }),
            None if is_serial => Ok((serial, which.to_ascii_lowercase())),
            None => Err(Error::UnknownToThisKgc { which: which.into() }),
        }
    }
}
