//! Makes and withdraws grants of drones at an authority.

use quiver_ainq::Name;
use quiver_delivery::attributes::Granted;
use quiver_service::{clock, terminal};

use crate::config::Config;
use crate::control::effect;
use crate::error::{Error, Result};
use crate::store::{AuthorityRow, Store};

/// Grants something, and prints it; `fetch` is the way in which the drone gets it.
pub(crate) fn make(
    config: &Config,
    store: &mut Store,
    authority: &AuthorityRow,
    drone: &Name,
    granted: &Granted,
    fetch: &str,
) -> Result<()> {
    let now = clock::unix_now();
    let grantee = store.grantee(drone.as_str(), now)?;
    let before = store.granted(authority, &grantee.serial)?;
    if before.as_deref() == Some(granted.text.as_str()) {
        terminal::line(&format!("{}: granted already by {}", grantee.name, authority.name))?;
        return Ok(());
    }
    let revision = store.grant(authority, &grantee, Some(&granted.encoded), &granted.text, now)?;
    let instead = before.map(|text| format!(", in place of: {text}")).unwrap_or_default();
    terminal::line(&format!(
        "{} is granted, by {}, revision {revision}: {}{instead}\n{}; the drone fetches its key ({fetch})",
        grantee.name,
        authority.name,
        granted.text,
        effect(config)
    ))?;
    Ok(())
}

/// Withdraws the grants of the drones of this name, and prints it; `held` describes the fate of keys held.
pub(crate) fn withdraw(
    config: &Config,
    store: &mut Store,
    authority: &AuthorityRow,
    drone: &Name,
    held: &str,
) -> Result<()> {
    let mut granted = Vec::new();
    for grantee in store.grantees(authority, drone.as_str())? {
        if let Some(text) = store.granted(authority, &grantee.serial)? {
            granted.push((grantee, text));
        }
    }
    if granted.is_empty() {
        let (drone, authority) = (drone.to_string(), authority.name.clone());
        return Err(Error::NothingGranted { drone, authority });
    }
    for (grantee, text) in granted {
        store.grant(authority, &grantee, None, &text, clock::unix_now())?;
    }
    terminal::line(&format!("grant of {drone} at {} withdrawn; {}\n{held}", authority.name, effect(config)))?;
    Ok(())
}
