//! Reports as files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{Report, svg};
use crate::{ExperimentError, Result};

/// Makes sure that reports can be written under `results`, before time goes into measuring.
///
/// # Errors
/// [`ExperimentError::File`].
pub fn make_room(results: &Path) -> Result<()> {
    let failed = |source| ExperimentError::File { path: results.to_path_buf(), source };
    fs::create_dir_all(results).map_err(failed)?;
    let probe = results.join(format!(".probe-{}", std::process::id()));
    fs::write(&probe, "").and_then(|()| fs::remove_file(&probe)).map_err(failed)
}

impl Report {
    /// Writes `report.html`, `report.json`, a CSV per table and an SVG per plot into a new folder under `results`, named
    /// by the report and its date. Gives the folder.
    ///
    /// # Errors
    /// [`ExperimentError::File`] or [`ExperimentError::Plot`].
    pub fn write_under(&self, results: &Path) -> Result<PathBuf> {
        let folder = new_folder(results, &self.slug, self.date)?;
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

fn write(folder: &Path, name: &str, text: &str) -> Result<()> {
    let path = folder.join(name);
    fs::write(&path, text).map_err(|source| ExperimentError::File { path, source })
}

/// A folder that was not there before.
fn new_folder(results: &Path, slug: &str, date: SystemTime) -> Result<PathBuf> {
    let failed = |path: &Path, source| ExperimentError::File { path: path.to_path_buf(), source };
    fs::create_dir_all(results).map_err(|source| failed(results, source))?;
    let time = humantime::format_rfc3339_seconds(date).to_string().replace(':', "-");
    for attempt in 1_u32.. {
        let number = if attempt == 1 { String::new() } else { format!("-{attempt}") };
        let folder = results.join(format!("{slug}-{time}{number}"));
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(&folder, error)),
        }
    }
    Err(failed(results, io::ErrorKind::AlreadyExists.into()))
}
