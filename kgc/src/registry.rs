//! Opens the registry for a subcommand: public files say whose it must be.

use quiver_ainq::{Deployment, Ristretto255};
use quiver_service::deployment_file::DeploymentFile;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::quorum::file::Pinned;
use crate::store::Store;

/// Opens the registry in the data directory.
pub(crate) fn open(config: &Config) -> Result<Store> {
    if let Some(quorum) = Pinned::kept(&config.data_dir)? {
        return Store::open(&config.data_dir, &quorum.seat());
    }
    let file = DeploymentFile::read(&config.existing_deployment()?)?;
    let fingerprint = file.pin()?.fingerprint();
    Store::open(&config.data_dir, &fingerprint)
}

/// Opens the registry in the data directory if it is of this deployment.
///
/// # Errors
/// [`Error::ForeignRegistry`] if it is not.
pub(crate) fn open_of(config: &Config, deployment: &Deployment<Ristretto255>) -> Result<Store> {
    let fingerprint = deployment.fingerprint();
    let Some(quorum) = Pinned::kept(&config.data_dir)? else {
        return Store::open(&config.data_dir, &fingerprint);
    };
    // A quorum's registry is older than its key: the deployment file beside it has the key.
    let kept = DeploymentFile::read(&config.existing_deployment()?)?;
    if kept.fingerprint != hex::encode(fingerprint) {
        let (path, found) = (Store::path_in(&config.data_dir), "the registry of another deployment".into());
        return Err(Error::ForeignRegistry { path, found });
    }
    Store::open(&config.data_dir, &quorum.seat())
}
