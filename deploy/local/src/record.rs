//! Record of the processes that run in a folder: `running.json`.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use quiver_service::private_file;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Name of the file.
const FILE: &str = "running.json";
/// Most bytes of it.
const LIMIT: u64 = 1 << 20;

/// A process, known by more than its id, which another process may have later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecordedProcess {
    /// Process id.
    pub(crate) id: i32,
    /// Time at which it was started, in the kernel's ticks since boot.
    started: u64,
    /// The boot.
    boot: String,
}

impl RecordedProcess {
    /// The process with this id, if it runs.
    pub(crate) fn of(id: i32) -> Option<Self> {
        let started = started(id)?;
        Some(Self { id, started, boot: boot() })
    }

    /// Returns true if the process still runs, and is not another process with its id.
    pub(crate) fn runs(&self) -> bool {
        self.id > 1 && started(self.id) == Some(self.started) && self.boot == boot()
    }

    /// Sends it a signal, if it still runs.
    pub(crate) fn signal(&self, signal: Signal) {
        if self.runs() {
            // It may have ended in between.
            let _ = kill(Pid::from_raw(self.id), signal);
        }
    }
}

/// Time at which a process was started; `None` if it has ended, also if nobody has asked for its exit code
/// yet.
fn started(id: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name of the program, in parentheses, may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// A service that was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Started {
    /// Name of the service.
    pub(crate) name: String,
    /// Process of the service.
    pub(crate) process: RecordedProcess,
}

/// The processes of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FolderRecord {
    /// The command that runs the folder.
    pub(crate) command: RecordedProcess,
    /// The directory of its programs.
    pub(crate) programs: PathBuf,
    /// Services that were started.
    pub(crate) services: Vec<Started>,
}

impl FolderRecord {
    /// Reads the record of a folder; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Service`].
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(FILE);
        if path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            return Ok(None);
        }
        let file = private_file::read_public(&path, LIMIT, "a record of processes")?;
        let record = serde_json::from_slice(file.bytes());
        record.map(Some).map_err(|error| Error::Damaged { path, why: error.to_string() })
    }

    /// Writes the record.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Service`].
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join(FILE);
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| Error::Damaged { path: path.clone(), why: error.to_string() })?;
        Ok(private_file::replace_public(&path, &text)?)
    }

    /// Removes the record of a folder.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn remove(folder: &Path) -> Result<()> {
        let path = folder.join(FILE);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", &path)(error)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn process_is_known_by_its_start_and_its_boot() {
        let own = RecordedProcess::of(i32::try_from(std::process::id()).expect("id")).expect("runs");
        assert!(own.runs());
        assert!(!RecordedProcess { started: own.started + 1, ..own.clone() }.runs(), "another with its id");
        assert!(!RecordedProcess { boot: "another".into(), ..own }.runs(), "before the machine was started");
    }

    #[test]
    fn process_that_ended_does_not_run_though_nobody_asked_for_its_exit_code() {
        let mut child = Command::new("sleep").arg("1000").spawn().expect("sleep");
        let process = RecordedProcess::of(i32::try_from(child.id()).expect("id")).expect("runs");
        process.signal(Signal::SIGKILL);
        quiver_service_testing::eventually("it ends", || (!process.runs()).then_some(()));
        child.wait().expect("wait");
        assert!(!process.runs());
    }

    #[test]
    fn record_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().expect("tempdir");
        assert_eq!(FolderRecord::read(folder.path()).expect("none"), None);
        let process = RecordedProcess::of(i32::try_from(std::process::id()).expect("id")).expect("runs");
        let services = vec![Started { name: "kgc".into(), process: process.clone() }];
        let record = FolderRecord { command: process, programs: "/usr/bin".into(), services };
        record.write(folder.path()).expect("written");
        assert_eq!(FolderRecord::read(folder.path()).expect("read"), Some(record));
        fs::write(folder.path().join(FILE), "{").expect("write");
        assert!(matches!(FolderRecord::read(folder.path()), Err(Error::Damaged { .. })));
        FolderRecord::remove(folder.path()).expect("removed");
        FolderRecord::remove(folder.path()).expect("removed twice");
    }
}
