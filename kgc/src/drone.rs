//! Enrolled drones: `kgc drone list|revoke`.

use quiver_ainq::{SignedRevocationList, Suite};
use quiver_role::KgcRecord;
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::{clock, terminal, with_suite};

use crate::config::Config;
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
        terminal::line(&serde_json::to_string_pretty(&drones).map_err(std::io::Error::from)?)?;
        return Ok(());
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
    Ok(())
}

/// In a quorum a drone is revoked once it is on the list that enough KGCs signed.
fn mark_revoked<S: Suite>(config: &Config, store: &Store, drones: &mut [Drone]) -> Result<()> {
    let Some(KgcRecord::RevocationList { list, .. }) = store.newest_revocation_list()? else {
        return Ok(());
    };
    let deployment = DeploymentFile::read(&config.existing_deployment()?)?.pin::<S>()?;
    let list = SignedRevocationList::decode(&list)?.verify(&deployment)?;
    let serials: Vec<_> = list.serials.iter().map(hex::encode).collect();
    drones.iter_mut().for_each(|drone| drone.revoked |= serials.contains(&drone.serial));
    Ok(())
}

/// Has a drone revoked by the quorum, as soon as enough operators want it.
fn want_revoked(config: &Config, quorum: &Pinned, which: &str) -> Result<()> {
    let (serial, name) = registry::open(config)?.wish_revoked(which, clock::unix_now())?;
    let (serial, threshold) = (hex::encode(serial), quorum.parameters.threshold());
    terminal::line(&format!(
        "wanted here: that drone {name} (serial {serial}) is revoked; the quorum does it as soon as {threshold} of its \
         KGCs want it: kgc drone revoke {serial}"
    ))?;
    Ok(())
}

/// Revokes a drone for good.
pub(crate) fn revoke(config: &Config, which: &str) -> Result<()> {
    if let Some(quorum) = Pinned::kept(&config.data_dir)? {
        return want_revoked(config, &quorum, which);
    }
    let drone = registry::open(config)?.revoke_drone(which, clock::unix_now())?;
    terminal::line(&format!(
        "drone {} (serial {}) revoked; a running `kgc serve` signs a new revocation list within {:?}",
        drone.name, drone.serial, config.poll
    ))?;
    Ok(())
}
