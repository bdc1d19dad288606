//! Processes that end with the one that started them.
//!
//! The program starts itself anew (`quiver-local launch`), asks the kernel for SIGTERM when its parent dies, and
//! becomes the service. So nothing is left when this command is killed.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::getppid;

use crate::cli::Launch;
use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::programs::{Program, Programs};

/// Bytes of the end of a log that are looked at.
const TAIL: u64 = 8192;

/// Starts a program in the folder, with standard output and standard error in a log. Must be called by the main thread,
/// because the kernel takes the end of the thread for that of the process.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn start(
    folder: &Folder,
    programs: &Programs,
    (program, args): (Program, &[String]),
    log: &Path,
) -> Result<Child> {
    let path = programs.path(program);
    let own = env::current_exe().map_err(Error::io("find", Path::new(crate::NAME)))?;
    let mut output = OpenOptions::new();
    output.append(true).create(true).mode(0o600);
    let output: File = output.open(log).map_err(Error::io("open", log))?;
    let same = output.try_clone().map_err(Error::io("open", log))?;
    let mut command = Command::new(own);
    command.args(["launch", "--with", &std::process::id().to_string(), "--"]).arg(&path).args(args);
    // A group of its own, so that Ctrl-C reaches this process alone, which ends services in their order.
    command.current_dir(folder.path()).stdin(Stdio::null()).stdout(output).stderr(same).process_group(0);
    without_settings(&mut command);
    command.spawn().map_err(Error::io("start", &path))
}

/// Takes the services' settings out of a command's environment: those of a folder are in its command lines.
pub(crate) fn without_settings(command: &mut Command) {
    let settings = env::vars_os().map(|(name, _)| name);
    for name in settings.filter(|name| name.to_string_lossy().starts_with("QUIVER_")) {
        command.env_remove(name);
    }
}

/// Becomes the service, which the kernel sends SIGTERM when the process dies that started it.
///
/// # Errors
/// [`Error::Io`]: only if the service cannot be started.
pub(crate) fn become_service(what: &Launch) -> Result<()> {
    let Some((program, args)) = what.words.split_first() else { return Ok(()) };
    let path = Path::new(program);
    let failed = |error: nix::Error| Error::io("start", path)(error.into());
    set_pdeathsig(Signal::SIGTERM).map_err(failed)?;
    if getppid().as_raw() != what.with {
        // It died before the kernel was asked.
        return Ok(());
    }
    // The signals that the parent receives by a thread are blocked until here.
    SigSet::all().thread_unblock().map_err(failed)?;
    Err(Error::io("start", path)(Command::new(program).args(args).exec()))
}

/// The last line of a log, of bounded length.
pub(crate) fn last_line(log: &Path) -> String {
    let bytes = tail(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it printed nothing");
    line.chars().filter(|character| !character.is_control()).take(400).collect()
}

fn tail(log: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Puts the log of the last run aside, so that there are at most two.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn set_aside(log: &Path) -> Result<()> {
    match fs::rename(log, log.with_extension("log.old")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("rename", log)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_line_is_short_and_cannot_drive_the_terminal() {
        let folder = tempfile::tempdir().expect("tempdir");
        let log = folder.path().join("a.log");
        assert_eq!(last_line(&log), "it printed nothing");
        fs::write(&log, "first\nkgc: \u{1b}[2Jbusy\n\n").expect("write");
        assert_eq!(last_line(&log), "kgc: [2Jbusy");
        fs::write(&log, "x".repeat(100_000)).expect("write");
        assert_eq!(last_line(&log).len(), 400);
    }

    #[test]
    fn log_of_the_last_run_is_kept_beside() {
        let folder = tempfile::tempdir().expect("tempdir");
        let log = folder.path().join("a.log");
        set_aside(&log).expect("none");
        fs::write(&log, "first").expect("write");
        set_aside(&log).expect("one");
        fs::write(&log, "second").expect("write");
        set_aside(&log).expect("two");
        assert_eq!(fs::read_to_string(folder.path().join("a.log.old")).expect("read"), "second");
        assert!(!log.exists());
    }
}
