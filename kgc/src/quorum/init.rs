//! `kgc quorum key`, `kgc quorum init`: a KGC's transport key, and which quorum it belongs to.

use std::path::PathBuf;

use quiver_net::NodeKey;
use quiver_service::secrets::{Protection, ProtectionArgs};
use quiver_service::{clock, private_file, terminal};
use serde::{Deserialize, Serialize};

use super::arguments::{QuorumInitArgs, QuorumKeyArgs};
use super::file::{ListedKgc, Pinned, QuorumFile};
use super::sealed::{self, QuorumState};
use super::{service, transport};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::membership;
use crate::operator;
use crate::sealed as single;
use crate::service::{dialled_address, distinct_addresses};
use crate::store::{KeptKey, RegistryKey, Store};

/// A seat, as text to be pasted.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SeatTable {
    pub(super) kgc: [ListedKgc; 1],
}

/// Makes the transport key, or reads the one there is, and prints this KGC's part of the init file.
pub(crate) fn key(config: &Config, protection: &ProtectionArgs, args: &QuorumKeyArgs) -> Result<()> {
    terminal::line(part(config, protection, args)?.trim_end())?;
    Ok(())
}

/// Makes this KGC's part of the init file. Makes its transport key if there is none.
pub(super) fn part(config: &Config, protection: &ProtectionArgs, args: &QuorumKeyArgs) -> Result<String> {
    if single::path_in(&config.data_dir).exists() {
        return Err(Error::Quorum(format!(
            "{} holds a single KGC (master.state), which cannot join a quorum; give this one its own --data-dir",
            config.data_dir.display()
        )));
    }
    single::refuse_drones_directory(&config.data_dir)?;
    private_file::create_directory(&config.data_dir)?;
    let there = transport::path_in(&config.data_dir).exists();
    let by = protection.obtain(!there)?;
    let key = if there {
        transport::read(&config.data_dir, &by)?
    } else {
        transport::create(&config.data_dir, &by)?
    };
    let addresses = distinct_addresses("--address", &args.address, dialled_address)?;
    let addresses = addresses.iter().map(ToString::to_string).collect();
    let seat = ListedKgc { id: args.id, peer: key.peer_id().to_string(), addresses };
    toml::to_string(&SeatTable { kgc: [seat] }).map_err(|error| Error::Quorum(error.to_string()))
}

/// Pins the init file.
pub(crate) fn run(config: &Config, protection: &ProtectionArgs, args: &QuorumInitArgs) -> Result<()> {
    pin_new(config, protection, &QuorumFile::read(&args.file)?, &args.operator)
}

/// Pins a file that was checked, unless another is.
pub(super) fn pin_new(
    config: &Config,
    protection: &ProtectionArgs,
    pinned: &Pinned,
    operators: &[PathBuf],
) -> Result<()> {
    let data_dir = &config.data_dir;
    single::refuse_drones_directory(data_dir)?;
    let all = [
        single::path_in(data_dir),
        sealed::path_in(data_dir),
        membership::path_in(data_dir),
        Store::path_in(data_dir),
    ];
    if let Some(path) = all.into_iter().find(|path| path.exists()) {
        return Err(quiver_service::Error::Exists { path }.into());
    }
    check_deployment(config, pinned)?;
    service::check_addresses(config, pinned)?;
    let by = protection.obtain(false)?;
    let key = transport::read(data_dir, &by)?;
    pin(config, pinned, operators, &key, &by)
}

/// Checks the public file of a KGC that lost everything else: its shares are to be of that key alone. There is none
/// before the key is made.
fn check_deployment(config: &Config, pinned: &Pinned) -> Result<()> {
    let path = config.deployment_path();
    let Some(deployment) = service::deployment(config)? else { return Ok(()) };
    if *deployment.name() == pinned.name {
        return Ok(());
    }
    Err(Error::Quorum(format!(
        "{} is of the deployment {}, and the init file of {}: put the file of this quorum there, or move it away",
        path.display(),
        deployment.name(),
        pinned.name
    )))
}

fn pin(
    config: &Config,
    pinned: &Pinned,
    operators: &[PathBuf],
    key: &NodeKey,
    by: &Protection,
) -> Result<()> {
    let own = pinned.own(&key.peer_id())?;
    let membership = pinned.membership()?;
    let operators = operator::read_all_public(operators)?;
    let kept = KeptKey { key: RegistryKey::random(), settled: true };
    QuorumState::create(&config.data_dir, pinned, &operators, by, &kept)?;
    let mut store = Store::create(&config.data_dir, &pinned.seat(), &kept.key, clock::unix_now())?;
    let fingerprint = hex::encode(membership.fingerprint());
    store.note(
        clock::unix_now(),
        "quorum pinned",
        pinned.name.as_str(),
        &format!("as KGC {own}, {fingerprint}"),
    )?;
    private_file::write_new_public(&membership::path_in(&config.data_dir), pinned.file.text()?.as_bytes())?;
    // The quorum's key is known: this one is to repair its shares.
    let next = match service::deployment(config)? {
        Some(_) => {
            "compare it with the other KGCs', then start `kgc serve`, and have its shares repaired: `kgc quorum repair`. It \
             takes shares of the key in its deployment.toml alone"
        }
        None => {
            "compare it with the other KGCs', then start `kgc serve` on all of them: they make the key together"
        }
    };
    terminal::line(&format!(
        "KGC {own} of {n} in quorum {name}, of which any {t} act\nquorum fingerprint {fingerprint}\n{next}",
        n = pinned.parameters.members(),
        t = pinned.parameters.threshold(),
        name = pinned.name,
    ))?;
    Ok(())
}
