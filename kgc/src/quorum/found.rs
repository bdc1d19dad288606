//! `kgc quorum found`: key, init file and `init` in one, through a directory that all KGCs have in common.
//!
//! For containers, where no person can put a file together between two steps. Every step is done once: a part
//! that is in the directory already is left as it is, and a pinned quorum is not gathered again.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use humantime::format_duration;
use quiver_ainq::{KgcId, Ristretto255, Suite as _};
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::secrets::ProtectionArgs;
use quiver_service::{private_file, terminal};

use super::arguments::FoundArgs;
use super::file::{ListedKgc, QuorumFile};
use super::init::{self, SeatTable};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::{membership, service};

/// Time between two looks for a missing file.
const LOOK: Duration = Duration::from_millis(200);
/// The longest part, in bytes.
const LIMIT: u64 = 16 * 1024;

/// Founds the quorum, and serves if that is wanted.
pub(super) fn run(config: &Config, protection: &ProtectionArgs, args: &FoundArgs) -> Result<()> {
    if !private_file::exists(&membership::path_in(&config.data_dir))? {
        found(config, protection, args)?;
    }
    if !args.serve {
        return Ok(());
    }
    let config = Config { publish: Some(args.dir.clone()), ..config.clone() };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(service::run(config, protection.clone()))
}

fn found(config: &Config, protection: &ProtectionArgs, args: &FoundArgs) -> Result<()> {
    let part = init::part(config, protection, &args.key)?;
    contribute(&part_path(&args.dir, args.key.id), &part)?;
    let operator = args.dir.join("operator.pub");
    let seats = gather(args, &operator)?;
    let file = QuorumFile {
        deployment: args.deployment.to_string(),
        suite: Ristretto255::ID.into(),
        threshold: args.threshold,
        kgc: seats,
    };
    let wrong = |what| Error::Quorum(format!("{}: {what}", args.dir.display()));
    let pinned = QuorumFile::parse(&file.text()?).map_err(wrong)?;
    init::pin_new(config, protection, &pinned, &[operator])
}

fn part_path(directory: &Path, id: u16) -> PathBuf {
    directory.join(format!("kgc-{id}.toml"))
}

/// Puts this KGC's part into the directory, unless it is there. Another KGC's is not overwritten. Where only
/// people can write, it is printed for them.
fn contribute(path: &Path, part: &str) -> Result<()> {
    if path.exists() {
        let there = private_file::read_public(path, LIMIT, "a KGC's part of a quorum's file")?;
        return if there.bytes() == part.as_bytes() {
            Ok(())
        } else {
            Err(Error::Quorum(format!(
                "{} belongs to another KGC: two have the same --id, or this one lost its transport key",
                path.display()
            )))
        };
    }
    match private_file::replace_public(path, part.as_bytes()) {
        Err(quiver_service::Error::Io { source, .. }) if source.kind() == ErrorKind::ReadOnlyFilesystem => {
            terminal::line(part.trim_end())?;
            tracing::warn!(path = %path.display(), "cannot write there: put the part printed above there; waiting for it");
            Ok(())
        }
        written => Ok(written?),
    }
}

/// Waits until all parts and the operator's key are there.
fn gather(args: &FoundArgs, operator: &Path) -> Result<Vec<ListedKgc>> {
    let mut left = args.wait;
    loop {
        let missing: Vec<_> = (1..=args.members)
            .map(|id| part_path(&args.dir, id))
            .chain([operator.to_path_buf()])
            .filter(|path| !path.exists())
            .collect();
        if missing.is_empty() {
            return (1..=args.members).map(|id| seat(&part_path(&args.dir, id), id)).collect();
        }
        if left.is_zero() {
            let missing: Vec<_> = missing.iter().map(|path| path.display().to_string()).collect();
            return Err(Error::TimedOut(format!(
                "waited {} for {}",
                format_duration(args.wait),
                missing.join(", ")
            )));
        }
        let nap = left.min(LOOK);
        std::thread::sleep(nap);
        left = left.saturating_sub(nap);
    }
}

fn seat(path: &Path, id: u16) -> Result<ListedKgc> {
    let wrong = |what: String| Error::Quorum(format!("{}: {what}", path.display()));
    let content = private_file::read_public(path, LIMIT, "a KGC's part of a quorum's file")?;
    let text = content.text().ok_or_else(|| wrong("it is no text".into()))?;
    let SeatTable { kgc: [seat] } =
        toml::from_str(text).map_err(|error| wrong(content.explain_toml(&error)))?;
    if seat.id == id { Ok(seat) } else { Err(wrong(format!("it is the part of KGC {}", seat.id))) }
}

/// Puts the deployment file where drones and operators find it. One KGC does, because all would write the
/// same. A second factor that an operator has set in the file there stays.
pub(super) fn publish(id: KgcId, directory: Option<&Path>, file: &DeploymentFile) -> Result<()> {
    let Some(directory) = directory.filter(|_| id == 1) else { return Ok(()) };
    let path = directory.join("deployment.toml");
    // One that cannot be read may say a second factor: it is not replaced by one that says none.
    let Some(known) = path.exists().then(|| DeploymentFile::read(&path)).transpose()? else {
        return Ok(file.replace(&path)?);
    };
    let file = DeploymentFile { kem: known.kem, ..file.clone() };
    if known != file {
        file.replace(&path)?;
    }
    Ok(())
}
