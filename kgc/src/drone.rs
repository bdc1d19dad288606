//! Enrolled drones: `kgc drone list|revoke`.

use std::time::Duration;

use quiver_ainq::{Ristretto255, SignedRevocationList, UnixTime};
use quiver_enrolment::{KgcRecord, RevocationUsage};
use quiver_service::secrets::ProtectionArgs;
use quiver_service::{clock, terminal};

use crate::config::Config;
use crate::control::{KgcRequest, RevocationProgress, ask_if_running, effect};
use crate::error::Result;
use crate::quorum::file::Pinned;
use crate::registry::{self, RegistryWriter};
use crate::store::{EnrolledDrone, Store};

/// Time between two looks whether the quorum has signed a list, and their number.
const LOOK: Duration = Duration::from_millis(200);
const LOOKS: u32 = 50;

/// Lists drones.
pub(crate) fn list(config: &Config, json: bool) -> Result<()> {
    let store = registry::open(config)?;
    let mut drones = store.drones()?;
    if Pinned::kept(&config.data_dir)?.is_some() {
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
    let Some(KgcRecord::RevocationList { list, .. }) = store.newest_revocation_list()? else {
        return Ok(Vec::new());
    };
    // It was verified before it was kept.
    let usage = RevocationUsage::of(&SignedRevocationList::<Ristretto255>::decode(&list)?);
    Ok(remarks(&usage, now))
}

/// Marks drones as revoked that are on the list which enough KGCs signed, because in a quorum no other list
/// counts.
fn mark_revoked(config: &Config, store: &Store, drones: &mut [EnrolledDrone]) -> Result<()> {
    let Some(KgcRecord::RevocationList { list, .. }) = store.newest_revocation_list()? else {
        return Ok(());
    };
    let deployment = config.deployment()?;
    let list = SignedRevocationList::decode(&list)?.verify(&deployment)?;
    let serials: Vec<_> = list.revoked.iter().map(|drone| hex::encode(drone.serial)).collect();
    drones.iter_mut().for_each(|drone| drone.revoked |= serials.contains(&drone.serial));
    Ok(())
}

/// Has a drone revoked by the quorum, as soon as enough operators want it.
fn want_revoked(
    config: &Config,
    protection: &ProtectionArgs,
    quorum: &Pinned,
    which: &str,
    told: Option<(UnixTime, bool)>,
) -> Result<()> {
    let request = |writer: &mut RegistryWriter| writer.request_revocation(which, told, clock::unix_now());
    let (serial, name) = registry::write(config, protection, request)?;
    let (serial, threshold) = (hex::encode(serial), quorum.parameters.threshold());
    let effect = effect(config);
    let progress = progress(config, &serial, threshold.into())?;
    terminal::line(&match progress {
        Some(RevocationProgress { revoked: true, .. }) => {
            format!(
                "drone {name} (serial {serial}) is revoked: {threshold} KGCs have requested it, and the quorum signed a new revocation list"
            )
        }
        Some(RevocationProgress { wanting, .. }) if wanting >= threshold.into() => {
            format!(
                "revocation of {name} requested ({wanting} of {threshold} KGCs), and the list not signed yet; see `kgc quorum status`"
            )
        }
        Some(RevocationProgress { wanting, .. }) => {
            let missing = usize::from(threshold).saturating_sub(wanting);
            format!(
                "revocation of {name} requested ({wanting} of {threshold} KGCs). Run at {missing} more: kgc drone revoke {serial}"
            )
        }
        None => format!(
            "revocation of {name} requested here, {effect}. {threshold} KGCs must request it: kgc drone revoke {serial}"
        ),
    })?;
    Ok(())
}

/// Asks the running KGC for the progress of a revocation; once enough KGCs want it, waits until the list is
/// signed or some seconds are over.
fn progress(config: &Config, serial: &str, threshold: usize) -> Result<Option<RevocationProgress>> {
    let ask =
        || ask_if_running::<RevocationProgress>(config, &KgcRequest::Revocation { serial: serial.into() });
    for _ in 0..LOOKS {
        match ask()? {
            Some(RevocationProgress { wanting, revoked: false }) if wanting >= threshold => {
                std::thread::sleep(LOOK);
            }
            progress => return Ok(progress),
        }
    }
    ask()
}

/// Revokes a drone for good. `told`, in a quorum, for a drone that this KGC does not know: the end of its
/// identity, and whether it may lead.
pub(crate) fn revoke(
    config: &Config,
    protection: &ProtectionArgs,
    which: &str,
    told: Option<(UnixTime, bool)>,
) -> Result<()> {
    if let Some(quorum) = Pinned::kept(&config.data_dir)? {
        return want_revoked(config, protection, &quorum, which, told);
    }
    let drone = registry::write(config, protection, |writer| writer.revoke_drone(which, clock::unix_now()))?;
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
