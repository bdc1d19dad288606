//! Enrolled drones: `kgc drone list|revoke`.

use quiver_ainq::{Ristretto255, SignedRevocationList, UnixTime};
use quiver_enrolment::{KgcRecord, RevocationUsage};
use quiver_service::secrets::ProtectionArgs;
use quiver_service::{clock, terminal};

use crate::config::Config;
use crate::control::{KgcRequest, RevocationProgress, ask_if_running, effect};
use crate::error::Result;
use crate::membership;
use crate::registry;
use crate::store::{EnrolledDrone, Store};

/// Lists drones.
pub(crate) fn list(config: &Config, json: bool) -> Result<()> {
    let store = registry::open(config)?;
    let mut drones = store.drones().all()?;
    if membership::kept(&config.data_dir)?.is_some() {
        mark_revoked(config, &store, &mut drones)?;
    }
    if json {
        return Ok(terminal::json(&drones)?);
    }
    let now = clock::unix_now();
    let rows: Vec<_> = drones
        .into_iter()
        .map(|drone| {
            let state = drone.state(now).into();
            [
                drone.name,
                drone.role,
                drone.groups.join(","),
                state,
                clock::format(drone.not_after),
                drone.serial,
            ]
        })
        .collect();
    terminal::line(&terminal::table(["NAME", "ROLE", "GROUPS", "STATE", "NOT AFTER", "SERIAL"], &rows))?;
    for remark in remarks_on_kept(&store, now)? {
        terminal::line(&remark)?;
    }
    Ok(())
}

/// Remarks about the newest revocation list for operators, with the action to take.
pub(crate) fn remarks(usage: &RevocationUsage, now: UnixTime) -> Vec<String> {
    let mut remarks: Vec<_> = usage
        .fills()
        .map(|(what, len, limit)| {
            format!(
                "the {what} has {len} of {limit} bytes: entries leave it as identities end, so issue tokens for shorter \
                 lifetimes"
            )
        })
        .collect();
    if usage.next_update > 0 && usage.next_update < now {
        remarks.push(format!(
            "the revocation list has been stale since {}: is `kgc serve` running, at as many KGCs as it takes?",
            clock::format(usage.next_update)
        ));
    }
    remarks
}

/// The same of the list in the registry.
fn remarks_on_kept(store: &Store, now: UnixTime) -> Result<Vec<String>> {
    let Some(KgcRecord::RevocationList { list, .. }) = store.revocation_lists().newest()? else {
        return Ok(Vec::new());
    };
    // It was verified before it was kept.
    let usage = RevocationUsage::of(&SignedRevocationList::<Ristretto255>::decode(&list)?);
    Ok(remarks(&usage, now))
}

/// Marks drones as revoked that are on the list which enough KGCs signed, because in a quorum no other list
/// counts.
fn mark_revoked(config: &Config, store: &Store, drones: &mut [EnrolledDrone]) -> Result<()> {
    let Some(KgcRecord::RevocationList { list, .. }) = store.revocation_lists().newest()? else {
        return Ok(());
    };
    let deployment = config.deployment()?;
    let list = SignedRevocationList::decode(&list)?.verify(&deployment)?;
    let serials: Vec<_> = list.revoked.iter().map(|drone| hex::encode(drone.serial)).collect();
    drones.iter_mut().for_each(|drone| drone.revoked |= serials.contains(&drone.serial));
    Ok(())
}

/// Revokes a drone for good. `told`, in a quorum, for a drone that this KGC does not know: the end of its
/// identity, and whether it may lead.
pub(crate) fn revoke(
    config: &Config,
    protection: &ProtectionArgs,
    which: &str,
    told: Option<(UnixTime, bool)>,
) -> Result<()> {
    if let Some(quorum) = membership::kept(&config.data_dir)? {
        return quorum.revoke(config, protection, which, told);
    }
    let drone = registry::write(config, protection, |writer| {
        writer.change(clock::unix_now(), |change| change.drones().revoke(which))
    })?;
    let (name, serial, effect) = (&drone.name, &drone.serial, effect(config));
    let request = KgcRequest::Revocation { serial: serial.clone() };
    let told = match ask_if_running::<RevocationProgress>(config, &request) {
        Ok(Some(RevocationProgress { revoked: false, .. })) => format!(
            "drone {name} (serial {serial}) revoked at this KGC. No revocation list tells others yet: either a peer claims to \
             hold a newer list, for which the KGC waits up to a minute, or the list is full; `kgc serve` logs which"
        ),
        _ => format!("drone {name} (serial {serial}) revoked by a new revocation list; {effect}"),
    };
    Ok(terminal::line(&told)?)
}
