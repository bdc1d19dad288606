//! Writes files atomically: whole, or not there.

use std::path::{Path, PathBuf};

use crate::Error as ServiceError;
use tempfile::NamedTempFile;

use crate::drone::Result;

/// A file that gets its name when it is finished, and is gone if it is not. For its owner alone.
#[derive(Debug)]
pub struct AtomicFile {
    /// The temporary file, to be written.
    pub file: NamedTempFile,
    path: PathBuf,
}

impl AtomicFile {
    /// A file that shall have this name, which nothing has yet.
    pub fn new(path: &Path) -> Result<Self> {
        if path.symlink_metadata().is_ok() {
            return Err(ServiceError::Exists { path: path.into() }.into());
        }
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        let file = tempfile::Builder::new().prefix(".unfinished-").tempfile_in(directory);
        let file = file.map_err(|source| ServiceError::io("write a file in", directory, source))?;
        Ok(Self { file, path: path.into() })
    }

    /// Gives it its name. Never overwrites.
    pub fn finish(self) -> Result<()> {
        let failed = |source| ServiceError::io("write", &self.path, source);
        self.file.as_file().sync_all().map_err(failed)?;
        self.file.persist_noclobber(&self.path).map_err(|error| failed(error.error))?;
        Ok(())
    }
}
