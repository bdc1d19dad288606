//! Writes reports into folders.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::{Report, ReportError, Result, index, svg};

/// The longest part of a folder's name that says what ran, in characters.
const LONGEST: usize = 60;

/// Parts of the name of a run's folder.
#[derive(Clone, Copy, Debug)]
pub struct RunName<'a> {
    /// Time of the run's beginning.
    pub started: SystemTime,
    /// Name of what ran: other characters than letters, digits, `.`, `_` and `-` become `-`.
    pub what: &'a str,
    /// True if it passed; `None` for measurements.
    pub passed: Option<bool>,
}

impl RunName<'_> {
    /// `2001-09-09T01-46-40Z-run-live-1000-passed`: by time in any listing.
    fn folder(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
        let what: String = self.what.chars().take(LONGEST).map(plain).collect();
        let ending = match self.passed {
            Some(true) => "-passed",
            Some(false) => "-FAILED",
            None => "",
        };
        format!("{}-{what}{ending}", timestamp(self.started))
    }
}

/// Makes sure that reports can be written under `results`, before time goes into measuring.
///
/// # Errors
/// [`ReportError::File`].
pub fn make_room(results: &Path) -> Result<()> {
    let failed = |source| ReportError::File { path: results.to_path_buf(), source };
    fs::create_dir_all(results).map_err(no_folder).map_err(failed)?;
    let probe = results.join(format!(".probe-{}", std::process::id()));
    fs::write(&probe, "").and_then(|()| fs::remove_file(&probe)).map_err(failed)
}

/// Says in words that a file stands where a folder is to be.
fn no_folder(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::AlreadyExists => {
            io::Error::new(error.kind(), "a file of this name is there, and no folder")
        }
        io::ErrorKind::NotADirectory => {
            io::Error::new(error.kind(), "a part of the path is a file, and no folder")
        }
        _ => error,
    }
}

impl Report {
    /// Writes `report.html`, `report.json`, a CSV per table and an SVG per plot into a new folder under
    /// `results`, as [`write_run`] does. Gives the folder.
    ///
    /// # Errors
    /// [`ReportError::File`] or [`ReportError::Plot`].
    pub fn write_under(&self, results: &Path) -> Result<PathBuf> {
        write_run(results, self.run_name(), |folder| {
            self.contents()?.iter().try_for_each(|(name, text)| write(folder, name, text))
        })
    }

    /// Puts this report in the place of an earlier state of it, which [`write_under`](Self::write_under) has written into
    /// `folder`: every file is at any time the old one or the new one. Gives the folder, whose name says how it ended.
    ///
    /// # Errors
    /// [`ReportError::File`] or [`ReportError::Plot`].
    pub fn write_over(&self, results: &Path, folder: &Path) -> Result<PathBuf> {
        self.contents()?.iter().try_for_each(|(name, text)| replace(folder, name, text))?;
        rename_run(results, folder, self.run_name())
    }

    fn run_name(&self) -> RunName<'_> {
        RunName { started: self.date, what: &self.slug, passed: self.passed }
    }

    /// Names and texts of all files.
    fn contents(&self) -> Result<Vec<(String, String)>> {
        let mut files =
            vec![("report.html".to_owned(), self.page()?), ("report.json".to_owned(), self.json() + "\n")];
        files.extend(self.tables().map(|table| (format!("{}.csv", table.slug), table.csv())));
        for plot in self.plots() {
            files.push((format!("{}.svg", plot.slug), svg::render(plot, svg::Format::Wide)?));
        }
        Ok(files)
    }
}

/// Creates a folder under `results` for a run, lets `content` write into it, lists it in `index.html`, and lets
/// `latest` lead to it. Gives the folder. If the content cannot be written, nothing of it is left.
///
/// # Errors
/// Those of `content`, and [`ReportError::File`].
pub fn write_run<E: From<ReportError>>(
    results: &Path,
    name: RunName<'_>,
    content: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<PathBuf, E> {
    let folder = new_folder(results, &name.folder())?;
    if let Err(error) = content(&folder) {
        // The reader needs the reason why it was not written.
        let _ = fs::remove_dir_all(&folder);
        return Err(error);
    }
    index::update(results, &folder)?;
    Ok(folder)
}

/// Gives a run's folder under `results` another name, unless that is taken, and lists it in `index.html`. Gives the folder.
///
/// # Errors
/// [`ReportError::File`].
pub fn rename_run(results: &Path, folder: &Path, name: RunName<'_>) -> Result<PathBuf> {
    let named = results.join(name.folder());
    let moved = folder != named && !named.exists();
    if moved {
        fs::rename(folder, &named).map_err(|source| ReportError::File { path: named.clone(), source })?;
    }
    let folder = if moved { named } else { folder.to_path_buf() };
    index::update(results, &folder)?;
    Ok(folder)
}

/// Writes one file of a folder.
///
/// # Errors
/// [`ReportError::File`].
pub fn write(folder: &Path, name: &str, text: &str) -> Result<()> {
    let path = folder.join(name);
    fs::write(&path, text).map_err(|source| ReportError::File { path, source })
}

/// Writes one file of a folder in the place of an older one: at any time it is the old one or the new one.
///
/// # Errors
/// [`ReportError::File`].
pub fn replace(folder: &Path, name: &str, text: &str) -> Result<()> {
    let draft = format!(".{name}.draft");
    write(folder, &draft, text)?;
    let (draft, path) = (folder.join(draft), folder.join(name));
    fs::rename(draft, &path).map_err(|source| ReportError::File { path, source })
}

/// A time in UTC as in the names of folders: `2001-09-09T01-46-40Z`.
fn timestamp(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string().replace(':', "-")
}

/// Creates a folder under `results` that was not there before: of this name, or of the name with a number.
fn new_folder(results: &Path, name: &str) -> Result<PathBuf> {
    let failed = |path: &Path, source| ReportError::File { path: path.to_path_buf(), source };
    fs::create_dir_all(results).map_err(|source| failed(results, source))?;
    for attempt in 1_u32.. {
        let number = if attempt == 1 { String::new() } else { format!("-{attempt}") };
        let folder = results.join(format!("{name}{number}"));
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(&folder, error)),
        }
    }
    Err(failed(results, io::ErrorKind::AlreadyExists.into()))
}
