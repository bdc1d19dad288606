//! Writes reports into folders.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::{Report, ReportError, Result, svg};

/// Makes sure that reports can be written under `results`, before time goes into measuring.
///
/// # Errors
/// [`ReportError::File`].
pub fn make_room(results: &Path) -> Result<()> {
    let failed = |source| ReportError::File { path: results.to_path_buf(), source };
    fs::create_dir_all(results).map_err(failed)?;
    let probe = results.join(format!(".probe-{}", std::process::id()));
    fs::write(&probe, "").and_then(|()| fs::remove_file(&probe)).map_err(failed)
}

impl Report {
    /// Writes `report.html`, `report.json`, a CSV per table and an SVG per plot into a new folder under
    /// `results`, named by the report and its date. Gives the folder.
    ///
    /// # Errors
    /// [`ReportError::File`] or [`ReportError::Plot`].
    pub fn write_under(&self, results: &Path) -> Result<PathBuf> {
        let folder = new_folder(results, &format!("{}-{}", self.slug, timestamp(self.date)))?;
        write(&folder, "report.html", &self.page()?)?;
        write(&folder, "report.json", &(self.json() + "\n"))?;
        for table in self.tables() {
            write(&folder, &format!("{}.csv", table.slug), &table.csv())?;
        }
        for plot in self.plots() {
            write(&folder, &format!("{}.svg", plot.slug), &svg::render(plot)?)?;
        }
        Ok(folder)
    }
}

/// Writes one file of a folder.
///
/// # Errors
/// [`ReportError::File`].
pub fn write(folder: &Path, name: &str, text: &str) -> Result<()> {
    let path = folder.join(name);
    fs::write(&path, text).map_err(|source| ReportError::File { path, source })
}

/// A time in UTC as in the names of folders: `2001-09-09T01-46-40Z`.
#[must_use]
pub fn timestamp(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string().replace(':', "-")
}

/// Creates a folder under `results` that was not there before: of this name, or of the name with a number.
///
/// # Errors
/// [`ReportError::File`].
pub fn new_folder(results: &Path, name: &str) -> Result<PathBuf> {
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
