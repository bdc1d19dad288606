//! Options that several commands have: where results go, how they are printed, lengths of time.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use crate::progress::{Bars, Progress};
use crate::{ReportError, Result, make_room};

/// The longest time that a flag may ask for: a length beyond all use would overflow where it is added to a
/// time.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

/// Destination of a command's results.
#[derive(Clone, Debug, Args)]
pub struct OutputArgs {
    /// Folder for results. Each run gets a folder in it, `latest` leads to the newest, index.html lists all
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub results: PathBuf,
    /// Write no files
    #[arg(long, hide_short_help = true)]
    pub no_results: bool,
    /// Print JSON in place of tables
    #[arg(long)]
    pub json: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
}

impl OutputArgs {
    /// The folder under which files are written; `None` if none are wanted.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        (!self.no_results).then_some(self.results.as_path())
    }

    /// Progress bars, unless they would disturb.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress::new(!self.quiet && !self.json)
    }

    /// Refuses a folder to which results cannot be written, before time goes into a run.
    ///
    /// # Errors
    /// In words, with the option.
    pub fn check_folder(&self) -> Result<(), String> {
        let refused = |error| format!("--results: {error}; give another folder, or --no-results");
        self.folder().map_or(Ok(()), make_room).map_err(refused)
    }

    /// Bars for an [`Observer`](crate::Observer), once it is certain that the folder can be written.
    ///
    /// # Errors
    /// Those of [`Self::check_folder`].
    pub fn begin(&self) -> Result<Bars, String> {
        self.check_folder()?;
        Ok(Bars::new(self.progress()))
    }

    /// Prints JSON or a text, whichever is wanted, or nothing.
    ///
    /// # Errors
    /// [`ReportError::Print`](crate::ReportError::Print).
    pub fn print(&self, json: impl FnOnce() -> String, text: impl FnOnce() -> String) -> Result<()> {
        match (self.json, self.quiet) {
            (true, _) => print(&json()),
            (false, true) => Ok(()),
            (false, false) => print(&text()),
        }
    }
}

/// Opens a page in the browser of whoever is at this computer.
///
/// # Errors
/// [`ReportError::Open`](crate::ReportError::Open) if there is none.
pub fn open(page: &Path) -> Result<()> {
    open::that_detached(page).map_err(|source| ReportError::Open { page: page.to_path_buf(), source })
}

/// Prints to standard output. A reader that went away (`| head`) is no error. A full disk is one (`> run.json`), because a
/// script must not take half of the results for all of them.
///
/// # Errors
/// [`ReportError::Print`](crate::ReportError::Print).
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => printed.map_err(ReportError::Print),
    }
}

/// Prints an error to standard error.
pub fn complain(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "error: {text}");
}

/// Parses a length of time such as `90s`, of at most 30 days.
///
/// # Errors
/// A description of the mistake in the text.
pub fn length_of_time(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(length) if length > LONGEST => Err("longer than 30 days, the most".into()),
        Ok(length) => Ok(length),
        Err(_) if text.starts_with('-') => {
            Err("it is negative; expected a length of time such as 90s".into())
        }
        Err(_) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            Err(format!("it has no unit; write {text}s or {text}m"))
        }
        Err(error) => Err(format!("expected a length of time such as 90s or 1h: {error}")),
    }
}
