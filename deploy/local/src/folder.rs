//! Folder of a deployment: its settings, its lock and the names of its files.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use quiver_service::private_file;
use serde::{Deserialize, Serialize};

use crate::cli::{MOST_DRONES, PortChoice, Up};
use crate::error::{Error, Result};
use crate::ports;
use crate::record::FolderRecord;

/// File of the settings, by which a folder is known.
pub(crate) const SETTINGS: &str = "quiver-local.toml";
/// File that the running command holds locked.
const LOCK: &str = "quiver-local.lock";
/// Tries to lock it once more, and the pause before each.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// Folder of logs.
pub(crate) const LOGS: &str = "logs";
/// Most bytes of the settings.
const SETTINGS_LIMIT: u64 = 1 << 16;
/// Version of the folder's layout.
const FORMAT: u32 = 1;
const DRONES: u16 = 3;
const PORT: u16 = 7000;
const MAVLINK_PORT: u16 = 14550;
/// Ports of the KGC and of two leaders.
const PORTS: u16 = 3;
const HEADING: &str = "\
# A deployment on this machine, made by quiver-local: `quiver-local up FOLDER` runs it again. Flags of `up` change these
# settings.
";

/// The settings of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FolderSettings {
    /// Version of the layout.
    format: u32,
    /// Number of drones that run.
    pub(crate) drones: u16,
    /// True if a second leader runs.
    pub(crate) deputy: bool,
    /// True if there are MAVLink endpoints.
    pub(crate) mavlink: bool,
    /// Port of the KGC; the leaders have the next two.
    pub(crate) port: u16,
    /// Port to which a leader sends MAVLink; drones listen on those behind it.
    pub(crate) mavlink_port: u16,
}

impl FolderSettings {
    /// Settings of a new folder; ports stay as they are by default.
    const fn new() -> Self {
        Self {
            format: FORMAT,
            drones: DRONES,
            deputy: false,
            mavlink: false,
            port: PORT,
            mavlink_port: MAVLINK_PORT,
        }
    }

    fn parse(text: &str) -> std::result::Result<Self, String> {
        let settings: Self = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        if settings.format != FORMAT {
            return Err(format!("format {} is of another version of quiver-local", settings.format));
        }
        if !(1..=MOST_DRONES).contains(&settings.drones) {
            return Err(format!("drones: from 1 to {MOST_DRONES}"));
        }
        if [settings.port, settings.mavlink_port].iter().any(|port| !(1024..=65_000).contains(port)) {
            return Err("ports: from 1024 to 65000".into());
        }
        Ok(settings)
    }

    /// The same, with what the flags of `up` change.
    fn changed_by(mut self, up: &Up) -> Result<Self> {
        self.drones = up.drones.unwrap_or(self.drones);
        self.deputy |= up.deputy;
        self.mavlink |= up.mavlink;
        match up.port {
            None => {}
            Some(PortChoice::Exactly(port)) => self.port = port,
            Some(PortChoice::Any) => self.port = ports::free(PORTS, "--port")?,
        }
        match up.mavlink_port {
            None => {}
            Some(PortChoice::Exactly(port)) => self.mavlink_port = port,
            Some(PortChoice::Any) => {
                self.mavlink_port = ports::free(1 + self.drones, "--mavlink-port")?;
            }
        }
        Ok(self)
    }
}

/// A folder whose lock this process holds.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// The settings.
    pub(crate) settings: FolderSettings,
    _lock: File,
}

impl Folder {
    /// Makes the folder, or takes one that this program made, and locks it. Files of other programs are left
    /// as they are.
    ///
    /// # Errors
    /// [`Error::Foreign`], [`Error::Damaged`], [`Error::Running`], [`Error::Service`], [`Error::Io`].
    pub(crate) fn take(up: &Up) -> Result<Self> {
        let given = &up.folder;
        private_file::create_directory(given)?;
        let path = given.canonicalize().map_err(Error::io("look into", given))?;
        let settings_file = path.join(SETTINGS);
        if !is_file(&settings_file) {
            let mut entries = path.read_dir().map_err(Error::io("look into", given))?;
            // A lock without settings is of a command that was killed as it began.
            if entries.any(|entry| entry.map_or(true, |entry| entry.file_name() != LOCK)) {
                return Err(Error::Foreign { path: given.clone() });
            }
        }
        let lock = acquire(&path, given)?;
        let known =
            if is_file(&settings_file) { read_settings(&settings_file)? } else { FolderSettings::new() };
        let settings = known.changed_by(up)?;
        let folder = Self { path, settings, _lock: lock };
        folder.keep_settings()?;
        private_file::create_directory(&folder.file(LOGS))?;
        Ok(folder)
    }

    fn keep_settings(&self) -> Result<()> {
        let file = self.file(SETTINGS);
        let text = toml::to_string(&self.settings)
            .map_err(|error| Error::Damaged { path: file.clone(), why: error.to_string() })?;
        Ok(private_file::replace_public(&file, format!("{HEADING}{text}").as_bytes())?)
    }

    /// The folder's path, without symbolic links.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A file of the folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The log of a service.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.path.join(LOGS).join(format!("{name}.log"))
    }
}

/// A folder that is looked at: by `down` and `status`.
#[derive(Debug)]
pub(crate) struct Found {
    /// The folder's path.
    pub(crate) path: PathBuf,
    /// Settings of the folder.
    pub(crate) settings: FolderSettings,
}

impl Found {
    /// Finds a folder that `up` made.
    ///
    /// # Errors
    /// [`Error::NoFolder`], [`Error::Damaged`], [`Error::Service`], [`Error::Io`].
    pub(crate) fn at(given: &Path) -> Result<Self> {
        match given.join(SETTINGS).symlink_metadata() {
            Ok(found) if found.is_file() => {}
            // A folder of another user may be one of this program.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return Err(Error::io("look into", given)(error));
            }
            _ => return Err(Error::NoFolder { path: given.into() }),
        }
        let path = given.canonicalize().map_err(Error::io("look into", given))?;
        let settings = read_settings(&path.join(SETTINGS))?;
        Ok(Self { path, settings })
    }

    /// Locks the folder; `None` if a command runs it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn lock(&self) -> Result<Option<File>> {
        match acquire(&self.path, &self.path) {
            Ok(lock) => Ok(Some(lock)),
            Err(Error::Running { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn acquire(path: &Path, given: &Path) -> Result<File> {
    let file = path.join(LOCK);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let lock = options.open(&file).map_err(Error::io("open", &file))?;
    // A process that was started while the folder was held has the lock, too, until its own program runs.
    let mut tries = 0;
    let locked = loop {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) if tries < LOCK_TRIES => sleep(LOCK_PAUSE),
            locked => break locked,
        }
        tries += 1;
    };
    match locked {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => {
            let process = FolderRecord::read(path).ok().flatten().map(|record| record.command.id);
            Err(Error::Running { path: given.into(), process })
        }
        Err(TryLockError::Error(source)) => Err(Error::io("lock", &file)(source)),
    }
}

fn read_settings(file: &Path) -> Result<FolderSettings> {
    let damaged = |why: String| Error::Damaged { path: file.into(), why };
    let read = private_file::read_public(file, SETTINGS_LIMIT, "settings of quiver-local")?;
    let text = read.text().ok_or_else(|| damaged("it is no text".into()))?;
    FolderSettings::parse(text).map_err(damaged)
}

fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn up(folder: &Path, flags: &[&str]) -> Up {
        let words = ["quiver-local", "up", folder.to_str().expect("utf-8")];
        let Command::Up(up) = Cli::parse_from(words.iter().chain(flags)).command else { panic!("up") };
        up
    }

    #[test]
    fn settings_are_kept_until_flags_change_them() {
        let place = tempfile::tempdir().expect("tempdir");
        let path = place.path().join("demo");
        let first =
            Folder::take(&up(&path, &["--drones", "5", "--deputy", "--port", "27000"])).expect("made");
        let settings = first.settings.clone();
        assert_eq!(
            (settings.drones, settings.deputy, settings.mavlink, settings.port),
            (5, true, false, 27000)
        );
        drop(first);
        let again = Folder::take(&up(&path, &[])).expect("again");
        assert_eq!(again.settings, settings);
        drop(again);
        let more = Folder::take(&up(&path, &["--drones", "6", "--mavlink"])).expect("more");
        assert_eq!((more.settings.drones, more.settings.deputy, more.settings.mavlink), (6, true, true));
    }

    #[test]
    fn folder_with_files_of_others_is_left_as_it_is() {
        let place = tempfile::tempdir().expect("tempdir");
        fs::write(place.path().join("thesis.tex"), "x").expect("write");
        let error = Folder::take(&up(place.path(), &[])).expect_err("foreign");
        assert!(matches!(error, Error::Foreign { .. }), "{error}");
        assert_eq!(fs::read_dir(place.path()).expect("read").count(), 1, "nothing was added");
    }

    #[test]
    fn folder_is_taken_once_at_a_time() {
        let place = tempfile::tempdir().expect("tempdir");
        let path = place.path().join("demo");
        let held = Folder::take(&up(&path, &[])).expect("taken");
        let error = Folder::take(&up(&path, &["--drones", "9"])).expect_err("held");
        assert!(matches!(error, Error::Running { .. }), "{error}");
        drop(held);
        let settings = Folder::take(&up(&path, &[])).expect("free again").settings;
        assert_eq!(settings.drones, DRONES, "who was refused changed nothing");
    }

    #[test]
    fn damaged_settings_are_refused_with_the_file_and_the_reason() {
        let good = toml::to_string(&FolderSettings::new()).expect("toml");
        for (from, to, why) in [
            ("format = 1", "format = 2", "another version"),
            ("drones = 3", "drones = 0", "drones"),
            ("drones = 3", "drones = 201", "drones"),
            ("port = 7000", "port = 80", "ports"),
            ("deputy = false", "deputy = 7", "invalid type"),
            ("deputy = false", "deputies = false", "unknown field"),
        ] {
            let place = tempfile::tempdir().expect("tempdir");
            assert!(good.contains(from), "{good}");
            fs::write(place.path().join(SETTINGS), good.replace(from, to)).expect("write");
            let error = Folder::take(&up(place.path(), &[])).expect_err("damaged").to_string();
            assert!(error.contains(SETTINGS) && error.contains(why), "{error}");
        }
    }
}
