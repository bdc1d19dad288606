//! `kgc abe grant` and `kgc abe revoke`: what a drone may fetch a key for.

use quiver_ainq::{Deployment, Suite};
use quiver_service::{clock, terminal};

use super::{choose, chosen};
use crate::cli::{GrantArgs, RevokeArgs};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::store::{Grantee, Store};

/// Grants a policy or attributes.
pub(crate) fn grant<S: Suite>(
    config: &Config,
    deployment: &Deployment<S>,
    mut store: Store,
    args: &GrantArgs,
) -> Result<()> {
    let now = clock::unix_now();
    let (known, granted) = chosen(&store, deployment, &args.what)?;
    let grantee = store.grantee(args.drone.as_str(), now)?;
    let before = store.granted(&known.row, &grantee.serial)?;
    if before.as_deref() == Some(granted.text.as_str()) {
        terminal::line(&format!("{}: granted already by {}", grantee.name, known.row.name))?;
        return Ok(());
    }
    let revision = store.grant(&known.row, &grantee, Some(&granted.encoded), &granted.text, now)?;
    let instead = before.map(|text| format!(", in place of: {text}")).unwrap_or_default();
    terminal::line(&format!(
        "{} is granted, by {}, revision {revision}: {}{instead}\na running `kgc serve` hands out its key within {:?}; \
         the drone fetches it (edge abe fetch)",
        grantee.name, known.row.name, granted.text, config.poll
    ))?;
    Ok(())
}

/// Withdraws a grant.
pub(crate) fn revoke<S: Suite>(
    config: &Config,
    deployment: &Deployment<S>,
    mut store: Store,
    args: &RevokeArgs,
) -> Result<()> {
    let known = choose(&store, deployment, args.authority.as_deref(), None)?;
    let mut held = Vec::new();
    for grantee in store.grantees(&known.row, args.drone.as_str())? {
        if let Some(text) = store.granted(&known.row, &grantee.serial)? {
            held.push((grantee, text));
        }
    }
    if held.is_empty() {
        let (drone, authority) = (args.drone.to_string(), known.row.name.clone());
        return Err(Error::NothingGranted { drone, authority });
    }
    for (Grantee { serial, name }, text) in held {
        store.grant(&known.row, &Grantee { serial, name }, None, &text, clock::unix_now())?;
    }
    terminal::line(&format!(
        "grant of {} at {} withdrawn; a running `kgc serve` hands out no key for it any more within {:?}\na key that the \
         drone holds opens until it is erased: the drone erases it at its next fetch, a stolen one does not",
        args.drone, known.row.name, config.poll
    ))?;
    Ok(())
}
