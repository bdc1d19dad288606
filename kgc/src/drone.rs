//! Enrolled drones: `kgc drone list|revoke`.

use quiver_service::{clock, terminal};

use crate::config::Config;
use crate::error::Result;
use crate::registry;

/// Lists drones.
pub(crate) fn list(config: &Config, json: bool) -> Result<()> {
    let drones = registry::open(config)?.drones()?;
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

/// Revokes a drone for good.
pub(crate) fn revoke(config: &Config, which: &str) -> Result<()> {
    let drone = registry::open(config)?.revoke_drone(which, clock::unix_now())?;
    terminal::line(&format!(
        "drone {} (serial {}) revoked; a running `kgc serve` signs a new revocation list within {:?}",
        drone.name, drone.serial, config.poll
    ))?;
    Ok(())
}
