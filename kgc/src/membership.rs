//! Seam to the feature that has several KGCs act together: what a KGC asks of the quorum that it is one of.
//!
//! A KGC is one of a quorum by the file `quorum.toml` in its data directory. A build without the feature refuses to
//! work on such a directory, and with settings that are for such a KGC alone.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use quiver_ainq::UnixTime;
use quiver_service::private_file;
use quiver_service::secrets::{Protection, ProtectionArgs};

use crate::audit_head::HeadFile;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::features::{self, ListedFeature};

/// Name of the feature's subcommand.
const QUORUM: &str = "quorum";

/// A service that runs.
pub(crate) type Serving<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

/// Quorum that a KGC is one of.
pub(crate) trait KgcQuorum {
    /// Number of its KGCs that act together.
    fn threshold(&self) -> u16;

    /// Owner of the registry, which is older than the quorum's key.
    fn seat(&self) -> [u8; 32];

    /// Name of the file with the registry's key.
    fn key_file(&self) -> &'static str;

    /// Opens that file, and holds its lock.
    ///
    /// # Errors
    /// The errors of the file.
    fn open_key_file(&self, data_dir: &Path, by: &Protection) -> Result<Box<dyn HeadFile>>;

    /// Has the running KGC have a statement signed, as soon as enough operators approve it. Returns the signature,
    /// encoded.
    ///
    /// # Errors
    /// The running KGC's refusal, [`Error::TimedOut`], and that `by` does not open the KGC's secrets.
    fn sign(&self, config: &Config, by: &Protection, body: &[u8], wait: Duration) -> Result<Vec<u8>>;

    /// Requests the revocation of a drone, which takes as many operators as the threshold says. `told`, of a drone that
    /// this KGC does not know: the end of its identity, and whether it may lead.
    ///
    /// # Errors
    /// The errors of the registry.
    fn revoke(
        &self,
        config: &Config,
        protection: &ProtectionArgs,
        which: &str,
        told: Option<(UnixTime, bool)>,
    ) -> Result<()>;

    /// Serves until SIGTERM or SIGINT.
    fn serve<'a>(&'a self, config: &'a Config, protection: &'a ProtectionArgs) -> Serving<'a>;
}

/// Path of the file that makes a KGC one of a quorum.
pub(crate) fn path_in(data_dir: &Path) -> PathBuf {
    data_dir.join("quorum.toml")
}

/// The same, if the file is there.
///
/// # Errors
/// Failure to read the directory.
pub(crate) fn file_in(data_dir: &Path) -> Result<Option<PathBuf>> {
    let path = path_in(data_dir);
    private_file::refuse_if_no_directory(data_dir)?;
    match path.try_exists() {
        Ok(true) => Ok(Some(path)),
        Ok(false) => Ok(None),
        // Not to be taken for a directory without one.
        Err(source) => Err(quiver_service::Error::io("read", data_dir, source).into()),
    }
}

/// The quorum that the KGC of this directory is one of; `None` if it is alone.
///
/// # Errors
/// [`Error::BuiltWithoutQuorum`], those of [`file_in`], and those of a file that describes no quorum.
pub(crate) fn kept(data_dir: &Path) -> Result<Option<Box<dyn KgcQuorum>>> {
    let read = |path: PathBuf| read(features::of_kind(QUORUM), &path);
    file_in(data_dir)?.map(read).transpose()
}

/// Refuses something that is for a KGC of a quorum alone, if this build has no quorums.
///
/// # Errors
/// [`Error::BuiltWithoutQuorum`], naming it.
pub(crate) fn refuse_if_absent(found: &dyn Display) -> Result<()> {
    known(features::of_kind(QUORUM), found).map(|_| ())
}

fn read(feature: Option<&'static dyn ListedFeature>, path: &Path) -> Result<Box<dyn KgcQuorum>> {
    let absent = || Error::BuiltWithoutQuorum(path.display().to_string());
    known(feature, &path.display())?.membership(path).unwrap_or_else(|| Err(absent()))
}

fn known(
    feature: Option<&'static dyn ListedFeature>,
    found: &dyn Display,
) -> Result<&'static dyn ListedFeature> {
    feature.ok_or_else(|| Error::BuiltWithoutQuorum(found.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused<T>(result: Result<T>, place: &str) {
        let Err(error) = result else { panic!("{place} is taken") };
        let told = error.to_string();
        for part in [place, "one of several", "this kgc was built without the feature `quorum`"] {
            assert!(told.contains(part), "`{part}` is not in: {told}");
        }
        assert_eq!(error.exit(), quiver_service::Exit::Usage);
    }

    #[test]
    fn file_of_a_quorum_is_refused_by_a_build_without_the_feature() {
        let directory = tempfile::tempdir().expect("tempdir");
        assert!(file_in(directory.path()).expect("read").is_none());
        std::fs::write(path_in(directory.path()), "deployment = \"alps\"\n").expect("write");
        let path = file_in(directory.path()).expect("read").expect("there");
        refused(read(None, &path), "quorum.toml");
    }

    #[test]
    fn setting_for_a_quorum_is_refused_by_a_build_without_the_feature() {
        refused(known(None, &"alps.toml: key `quorum`").map(|_| ()), "alps.toml: key `quorum`");
    }
}
