//! Makes, withdraws and shows grants of drones at an authority, and the keys that were issued for them.

use quiver_ainq::Name;
use quiver_delivery::attributes::Granted;
use quiver_service::{clock, terminal};

use crate::config::Config;
use crate::control::effect;
use crate::error::{Error, Result};
use crate::store::{AuthorityRow, GrantRow, KeyRow, Store};

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
    let grantee = store.attributes().grantee(drone.as_str(), now)?;
    let before = store.attributes().granted(authority, &grantee.serial)?;
    if before.as_deref() == Some(granted.text.as_str()) {
        terminal::line(&format!("{}: granted already by {}", grantee.name, authority.name))?;
        return Ok(());
    }
    let revision = store.change(now, |change| {
        change.attributes().grant(authority, &grantee, Some(&granted.encoded), &granted.text)
    })?;
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
    for grantee in store.attributes().grantees(authority, drone.as_str())? {
        if let Some(text) = store.attributes().granted(authority, &grantee.serial)? {
            granted.push((grantee, text));
        }
    }
    if granted.is_empty() {
        let (drone, authority) = (drone.to_string(), authority.name.clone());
        return Err(Error::NothingGranted { drone, authority });
    }
    for (grantee, text) in granted {
        store.change(clock::unix_now(), |change| {
            change.attributes().grant(authority, &grantee, None, &text)
        })?;
    }
    terminal::line(&format!("grant of {drone} at {} withdrawn; {}\n{held}", authority.name, effect(config)))?;
    Ok(())
}

/// The newest word on every drone at the authorities that are shown.
pub(crate) fn grants_of(store: &Store, shown: impl Fn(&str) -> bool) -> Result<Vec<GrantRow>> {
    let mut grants = store.attributes().grants()?;
    grants.retain(|grant| shown(&grant.authority));
    Ok(grants)
}

/// Keys issued by the authorities that are shown.
pub(crate) fn keys_of(store: &Store, shown: impl Fn(&str) -> bool) -> Result<Vec<KeyRow>> {
    let mut keys = store.attributes().keys()?;
    keys.retain(|key| shown(&key.authority));
    Ok(keys)
}

/// Grants as a table.
pub(crate) fn grant_table(grants: &[GrantRow]) -> String {
    let rows: Vec<_> = grants
        .iter()
        .map(|grant| {
            let (revision, at) = (grant.revision.to_string(), clock::format(grant.at));
            let state = grant.state.to_string();
            [grant.authority.clone(), grant.drone.clone(), revision, state, at, grant.granted.clone()]
        })
        .collect();
    terminal::table(["AUTHORITY", "DRONE", "GRANT", "STATE", "SINCE", "GRANTED"], &rows)
}

/// Keys as a table.
pub(crate) fn key_table(keys: &[KeyRow]) -> String {
    let rows: Vec<_> = keys
        .iter()
        .map(|key| {
            let (first, last) = (clock::format(key.first), clock::format(key.last));
            [
                key.authority.clone(),
                key.drone.clone(),
                key.revision.to_string(),
                first,
                last,
                key.times.to_string(),
            ]
        })
        .collect();
    terminal::table(["AUTHORITY", "DRONE", "GRANT", "KEY ISSUED", "LAST", "TIMES"], &rows)
}
