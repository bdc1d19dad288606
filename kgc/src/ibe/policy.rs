//! `kgc ibe policy`: which drones may have which keys.

use quiver_key_release::Audience;
use quiver_service::{clock, terminal};

use super::arguments::PolicyCommand;
use super::list;
use super::tables::{ReleaseTable, ReleaseWriter};
use crate::config::Config;
use crate::control::effect;
use crate::error::Result;
use crate::store::Store;

/// Lists the newest setting of each pattern.
pub(crate) fn list(store: &Store, json: bool) -> Result<()> {
    let rows = ReleaseTable::of(store).policies()?;
    if json {
        return Ok(terminal::json(&rows)?);
    }
    if rows.is_empty() {
        return Ok(terminal::line(
            "no policy yet: no drone may have keys (kgc ibe setup, kgc ibe policy allow)",
        )?);
    }
    Ok(terminal::line(&list::policies(&rows))?)
}

/// Changes the setting of a pattern.
pub(crate) fn change(config: &Config, store: &mut Store, change: &PolicyCommand) -> Result<()> {
    let (pattern, audience) = match change {
        PolicyCommand::Allow { pattern, group } => (pattern, Some(Audience { groups: group.clone() })),
        PolicyCommand::Deny { pattern } => (pattern, None),
    };
    let revision = store.change(clock::unix_now(), |change| {
        ReleaseWriter::of(change).set_policy(pattern, audience.as_ref())
    })?;
    let word = match &audience {
        None => "denied to everybody".into(),
        Some(audience) if audience.groups.is_empty() => "allowed to every drone".into(),
        Some(audience) => {
            let groups: Vec<_> = audience.groups.iter().map(ToString::to_string).collect();
            format!("allowed to {}", groups.join(", "))
        }
    };
    terminal::line(&format!("keys of {pattern}: {word}, revision {revision}; {}", effect(config)))?;
    Ok(())
}
