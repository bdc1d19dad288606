//! Enrolled drones: `kgc drone list|revoke`.

use quiver_ainq::{SignedRevocationList, Suite, UnixTime};
use quiver_enrolment::{KgcRecord, RevocationUsage};
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::{clock, terminal, with_suite};

use crate::config::Config;
use crate::control::effect;
use crate::error::Result;
use crate::quorum::file::Pinned;
use crate::registry;
use crate::store::{Drone, Store};

/// Lists drones.
pub(crate) fn list(config: &Config, json: bool) -> Result<()> {
    let store = registry::open(config)?;
    let mut drones = store.drones()?;
    if let Some(quorum) = Pinned::kept(&config.data_dir)? {
        with_suite!(quorum.suite, S => mark_revoked::<S>(config, &store, &mut drones)?);
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
    for remark in remarks_on_kept(config, &store, now)? {
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
fn remarks_on_kept(config: &Config, store: &Store, now: UnixTime) -> Result<Vec<String>> {
    let Some(KgcRecord::RevocationList { list, .. }) = store.newest_revocation_list()? else {
        return Ok(Vec::new());
    };
    let suite = DeploymentFile::read(&config.existing_deployment()?)?.suite()?;
    // It was verified before it was kept.
    let usage = with_suite!(suite, S => RevocationUsage::of(&SignedRevocationList::<S>::decode(&list)?));
    Ok(remarks(&usage, now))
}

/// In a quorum a drone is revoked once it is on the list that enough KGCs signed.
fn mark_revoked<S: Suite>(config: &Config, store: &Store, drones: &mut [Drone]) -> Result<()> {
    let Some(KgcRecord::RevocationList { list, .. }) = store.newest_revocation_list()? else {
        return Ok(());
    };
    let deployment = DeploymentFile::read(&config.existing_deployment()?)?.pin::<S>()?;
    let list = SignedRevocationList::decode(&list)?.verify(&deployment)?;
    let serials: Vec<_> = list.revoked.iter().map(|drone| hex::encode(drone.serial)).collect();
    drones.iter_mut().for_each(|drone| drone.revoked |= serials.contains(&drone.serial));
    Ok(())
}

/// Has a drone revoked by the quorum, as soon as enough operators want it.
fn want_revoked(config: &Config, quorum: &Pinned, which: &str, told: Option<(UnixTime, bool)>) -> Result<()> {
    let (serial, name) = registry::open(config)?.request_revocation(which, told, clock::unix_now())?;
    let (serial, threshold) = (hex::encode(serial), quorum.parameters.threshold());
    terminal::line(&format!(
        "wanted here: that drone {name} (serial {serial}) is revoked; the quorum does it as soon as {threshold} of its \
         KGCs want it: kgc drone revoke {serial}"
    ))?;
    Ok(())
}

/// Revokes a drone for good. `told`, in a quorum, for a drone that this KGC does not know: the end of its
/// identity, and whether it may lead.
pub(crate) fn revoke(config: &Config, which: &str, told: Option<(UnixTime, bool)>) -> Result<()> {
    if let Some(quorum) = Pinned::kept(&config.data_dir)? {
        return want_revoked(config, &quorum, which, told);
    }
    let drone = registry::open(config)?.revoke_drone(which, clock::unix_now())?;
    terminal::line(&format!(
        "drone {} (serial {}) revoked by a new revocation list; {}",
        drone.name,
        drone.serial,
        effect(config)
    ))?;
    Ok(())
}
