//! `kgc ibe`: the master key of encryption to conditions, and when whose keys are released.
//!
//! `arguments` is its command line; `setup` makes a master key, whose share `master_share` keeps in a file,
//! `quorum_share` has a quorum's; `policy` and `list` are subcommands; `release` is what a running KGC does;
//! `tables` are those of the registry.

mod arguments;
mod list;
mod master_share;
mod policy;
#[cfg(feature = "quorum")]
mod quorum_share;
mod release;
mod setup;
pub(crate) mod tables;

use std::path::{Path, PathBuf};

use quiver_ainq::{Deployment, Ristretto255};
use quiver_ibe::{Condition, ConditionKind};
use quiver_key_release::{KIND, Pattern, ReleaseAuthority, ShareServer};
use quiver_service::armour::{self, ArmourKind as Armour};
use quiver_service::secrets::ProtectionArgs;
use quiver_service::{clock, terminal};

use self::arguments::{IbeCommand, PROGRAM_EXAMPLES};
use self::tables::{PolicyRow, ReleaseTable, ReleaseWriter};
use crate::config::Config;
use crate::control::effect;
use crate::error::{Error, Result};
use crate::features::{FeatureCommand, KgcFeature};
use crate::membership;
use crate::registry;
use crate::store::Store;

/// Release of condition keys at a KGC.
pub(crate) type ConditionRelease = ShareServer<Ristretto255>;

/// Encryption to conditions, as a feature of the KGC.
pub(crate) struct ConditionFeature;

impl KgcFeature for ConditionFeature {
    type Command = IbeCommand;

    const KIND: &'static str = KIND;
    const ABOUT: &'static str = "Encryption to conditions: the master key, and when whose keys are released";
    const PROGRAM_EXAMPLES: &'static str = PROGRAM_EXAMPLES;
}

impl FeatureCommand for IbeCommand {
    fn run(&self, config: &Config, protection: &ProtectionArgs) -> Result<()> {
        let deployment = config.deployment()?;
        let read = || registry::open(config);
        match self {
            Self::Setup { .. } if membership::kept(&config.data_dir)?.is_some() => Err(Error::Terms(
                "the KGCs of a quorum make the master key together with their own: nothing to set up".into(),
            )),
            Self::Setup { name } => registry::write(config, protection, |writer| {
                setup::run(config, protection, &deployment, writer, name)
            }),
            Self::Policy { change: None, json } => policy::list(&read()?, *json),
            Self::Policy { change: Some(change), .. } => {
                registry::write(config, protection, |writer| policy::change(config, writer, change))
            }
            Self::Release { condition, withdraw } => {
                refuse_all_but_missions(condition)?;
                registry::write(config, protection, |writer| release(config, writer, condition, !withdraw))
            }
            Self::List { json } => list::run(&deployment, &read()?, *json),
            Self::Publish { out } => publish(&deployment, &read()?, out.clone()),
        }
    }
}

/// The master key, if there is one.
fn authority(
    deployment: &Deployment<Ristretto255>,
    store: &Store,
) -> Result<Option<ReleaseAuthority<Ristretto255>>> {
    let row = store.master_key().newest()?;
    Ok(row.map(|row| ReleaseAuthority::decode(deployment, &row.statement)).transpose()?)
}

/// Writes the public file.
fn publish(deployment: &Deployment<Ristretto255>, store: &Store, out: Option<PathBuf>) -> Result<()> {
    let authority = authority(deployment, store)?.ok_or(Error::NoMasterKey)?;
    let out = out.unwrap_or_else(|| PathBuf::from(format!("{}.ibe", authority.name())));
    write_public(&out, &authority)?;
    terminal::line(&format!("{}  public: encrypt with it anywhere; drones also fetch it", out.display()))?;
    Ok(())
}

fn write_public(path: &Path, authority: &ReleaseAuthority<Ristretto255>) -> Result<()> {
    Ok(armour::write_new(path, Armour::IbeAuthority, &authority.statement().bytes())?)
}

fn refuse_all_but_missions(condition: &Condition) -> Result<()> {
    match condition.kind() {
        ConditionKind::Mission(_) => Ok(()),
        ConditionKind::NotBefore(_) => {
            Err(Error::Terms(format!("{condition} is released by the clock, and by nothing else")))
        }
        ConditionKind::Drone(_) => {
            Err(Error::Terms(format!("{condition} is released to that drone, and to no other")))
        }
    }
}

/// Approves a mission's condition, or withdraws that.
fn release(config: &Config, store: &mut Store, condition: &Condition, approved: bool) -> Result<()> {
    let Some(revision) = store
        .change(clock::unix_now(), |change| ReleaseWriter::of(change).set_approval(condition, approved))?
    else {
        let word = match (approved, membership::kept(&config.data_dir)?) {
            (false, _) => "not approved".into(),
            (true, None) => "approved already".into(),
            (true, Some(quorum)) => format!(
                "approved already at this KGC; it opens once {} of the quorum's KGCs have approved it",
                quorum.threshold()
            ),
        };
        terminal::line(&format!("{condition}: {word}"))?;
        return Ok(());
    };
    let effect = effect(config);
    let others = match membership::kept(&config.data_dir)? {
        Some(quorum) if approved => format!(
            "\napproved at this KGC; it opens once {} of the quorum's KGCs have approved it: run the same at the others",
            quorum.threshold()
        ),
        _ => String::new(),
    };
    let mut lines = vec![match approved {
        true => format!("{condition} approved, revision {revision}; {effect}{others}"),
        false => format!("{condition} withdrawn, revision {revision}; {effect}\nwho has the key keeps it"),
    }];
    if approved && store.master_key().newest()?.is_none() {
        lines.push("there is no master key yet: run `kgc ibe setup`".into());
    }
    if approved && !covered(&ReleaseTable::of(store).policies()?, condition) {
        lines.push("no policy allows its key to any drone; see `kgc ibe policy`".into());
    }
    Ok(terminal::line(&lines.join("\n"))?)
}

/// Returns true if the longest matching pattern allows the condition to any drone.
fn covered(policies: &[PolicyRow], condition: &Condition) -> bool {
    let covers =
        |row: &&PolicyRow| row.pattern.parse::<Pattern>().is_ok_and(|pattern| pattern.covers(condition));
    let longest = policies.iter().filter(covers).max_by_key(|row| row.pattern.len());
    longest.is_some_and(|row| row.allowed)
}
