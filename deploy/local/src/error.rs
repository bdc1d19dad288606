//! Errors.

use std::io;
use std::path::{Path, PathBuf};

use quiver_arguments::quoted;
use quiver_service::Exit;

/// Result of an operation that may fail with an [`Error`].
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Error of this command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
    /// The folder holds files of something else.
    #[error(
        "{} holds files and no {}: it belongs to something else; name a folder that is empty or not there yet",
        path.display(), crate::folder::SETTINGS
    )]
    Foreign {
        /// The folder.
        path: PathBuf,
    },
    /// There is no such folder.
    #[error("{} is no folder of quiver-local; {}", path.display(), remedy(path))]
    NoFolder {
        /// The folder.
        path: PathBuf,
    },
    /// A file of the folder is not as it was written.
    #[error("{} is damaged: {why}; put it right, or take a new folder", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// Another process runs the folder.
    #[error("{} runs already{}; `quiver-local status {}` says what, and `quiver-local down {}` ends it",
        path.display(), of(*process), quoted(path), quoted(path))]
    Running {
        /// The folder.
        path: PathBuf,
        /// The process that runs it, if it is known.
        process: Option<i32>,
    },
    /// Ports that other programs have.
    #[error("busy: {}; end what listens there (`ss -lntup` names it), or give {flag}", ports.join(", "))]
    PortsBusy {
        /// The ports, with who needs them.
        ports: Vec<String>,
        /// The flag that chooses others.
        flag: &'static str,
    },
    /// No ports are free.
    #[error("no {count} ports in a row are free; name the first with {flag}")]
    NoPorts {
        /// How many are needed.
        count: u16,
        /// The flag.
        flag: &'static str,
    },
    /// A program is missing.
    #[error(
        "there is no program `{name}` {place}; `cargo services` builds it, --programs names its directory"
    )]
    NoProgram {
        /// Name of the program.
        name: &'static str,
        /// Place where it was looked for.
        place: String,
    },
    /// A command of the set-up failed.
    #[error("`{command}` failed ({how}): {said}; its output is in {}", log.display())]
    Command {
        /// The command.
        command: String,
        /// How it ended.
        how: String,
        /// The last line.
        said: String,
        /// The log.
        log: PathBuf,
        /// The exit code.
        exit: Exit,
    },
    /// A service without which there is nothing to run has ended.
    #[error("{name} ended ({how}): {said}; its log is {}", log.display())]
    Ended {
        /// The name.
        name: String,
        /// How it ended.
        how: String,
        /// The last line of its log.
        said: String,
        /// The log.
        log: PathBuf,
        /// The exit code.
        exit: Exit,
    },
    /// A service does not get ready.
    #[error("{name} is not ready after {waited}: {said}; its log is {}; --wait waits longer", log.display())]
    NotReady {
        /// The name.
        name: String,
        /// How long was waited.
        waited: humantime::FormattedDuration,
        /// The reason that it gives.
        said: String,
        /// The log.
        log: PathBuf,
    },
    /// Nothing runs in the folder.
    #[error("nothing runs in {}; `quiver-local up {}` starts it", path.display(), quoted(path))]
    NothingRuns {
        /// The folder.
        path: PathBuf,
    },
    /// The deployment that runs in the folder does not end.
    #[error(
        "process {process}, which runs {}, does not end; `kill -9 {process}` ends it and its services",
        path.display()
    )]
    DoesNotEnd {
        /// The folder.
        path: PathBuf,
        /// The process.
        process: i32,
    },
    /// A signal came before everything ran.
    #[error("interrupted by {0} before everything ran; the same command goes on where it stopped")]
    Interrupted(&'static str),
    /// The system refused something.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The action.
        action: &'static str,
        /// The file or program.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file of a service.
    #[error(transparent)]
    Service(#[from] quiver_service::Error),
    /// Standard output is gone.
    #[error(transparent)]
    Output(io::Error),
}

/// Advice about a folder that `up` has not made: `up` takes one that is empty or not there.
fn remedy(path: &Path) -> String {
    let is_used = path.read_dir().is_ok_and(|mut files| files.next().is_some());
    if is_used || path.is_file() {
        return "give the one that `quiver-local up` was given".into();
    }
    format!("`quiver-local up {}` makes it one", quoted(path))
}

fn of(process: Option<i32>) -> String {
    process.map(|process| format!(" (process {process})")).unwrap_or_default()
}

impl Error {
    /// Makes an error of the system's, for `map_err`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }

    /// The exit code.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Foreign { .. } | Self::NoFolder { .. } | Self::NoProgram { .. } => Exit::Usage,
            Self::Damaged { .. } => Exit::BadState,
            Self::Running { .. } | Self::PortsBusy { .. } | Self::NoPorts { .. } => Exit::Busy,
            Self::Command { exit, .. } | Self::Ended { exit, .. } => *exit,
            Self::NotReady { .. } | Self::DoesNotEnd { .. } => Exit::TimedOut,
            Self::NothingRuns { .. } => Exit::NotRunning,
            Self::Interrupted(signal) => Exit::after(signal),
            Self::Io { .. } | Self::Output(_) => Exit::Failed,
            Self::Service(error) => error.exit(),
        }
    }
}
