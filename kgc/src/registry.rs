//! Opening the registry from the command line: the public deployment file says whose it must be.

use quiver_service::deployment_file::DeploymentFile;
use quiver_service::with_suite;

use crate::config::Config;
use crate::error::Result;
use crate::store::Store;

/// Opens the registry in the data directory.
pub(crate) fn open(config: &Config) -> Result<Store> {
    let file = DeploymentFile::read(&config.existing_deployment()?)?;
    let fingerprint = with_suite!(file.suite()?, S => file.pin::<S>()?.fingerprint());
    Store::open(&config.data_dir, &fingerprint)
}
