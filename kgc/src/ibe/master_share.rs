//! The sealed file `ibe.state`: this KGC's share of the master key of encryption to conditions.
//!
//! Encrypted as `master.state` is, under the same passphrase or key file. It has one record, `lp(statement) ‖
//! share`, and is replaced as a whole, so that a share that was refreshed is gone.

use std::path::{Path, PathBuf};

use quiver_ainq::{Deployment, Ristretto255};
use quiver_crypto::canonical::{Reader, Writer};
use quiver_ibe::MasterShare;
use quiver_key_release::{Holding, HoldingError, ReleaseAuthority};
use quiver_message::MAX_RELEASE_STATEMENT_LEN;
use quiver_service::deployment_file::owner;
use quiver_service::secrets::Protection;
use quiver_service::state_file::StateFile;
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::store::master_key::IbeRow;

const ROLE: &str = "kgc-ibe";

/// Path of the file.
pub(crate) fn path_in(data_dir: &Path) -> PathBuf {
    data_dir.join("ibe.state")
}

/// Puts a share into the file, in place of what was there.
pub(crate) fn write(
    data_dir: &Path,
    deployment: &Deployment<Ristretto255>,
    by: &Protection,
    authority: &ReleaseAuthority<Ristretto255>,
    share: &MasterShare,
) -> Result<()> {
    let (path, statement) = (path_in(data_dir), authority.statement().bytes());
    let mut writer = Writer::with_capacity(4 + statement.len() + MasterShare::LEN);
    writer.lp(&statement).fixed(share.encode().as_slice());
    let record = [Zeroizing::new(writer.finish())];
    if path.exists() {
        let (mut file, _) = StateFile::open(&path, &owner(deployment, ROLE), by)?;
        return Ok(file.replace(&record)?);
    }
    StateFile::create(&path, &owner(deployment, ROLE), by, &record)?;
    Ok(())
}

/// The share of the master key that the registry knows.
///
/// # Errors
/// [`Error::ShareMissing`] if it is not there, [`Error::Holding`] if it is another.
pub(crate) fn read(
    data_dir: &Path,
    deployment: &Deployment<Ristretto255>,
    by: &Protection,
    known: &IbeRow,
) -> Result<Holding<Ristretto255>> {
    let path = path_in(data_dir);
    if !path.exists() {
        return Err(Error::ShareMissing { path });
    }
    let (_, records) = StateFile::open(&path, &owner(deployment, ROLE), by)?;
    let Some(record) = records.last() else { return Err(Error::ShareMissing { path }) };
    let mut reader = Reader::new(record);
    let malformed = |_| quiver_ainq::Error::Malformed("share of the master key");
    let statement = reader.lp(MAX_RELEASE_STATEMENT_LEN).map_err(malformed)?;
    if statement != known.statement {
        return Err(Error::ShareMissing { path });
    }
    let share = reader.take(reader.remaining()).map_err(malformed)?;
    let share = MasterShare::decode(share).map_err(|_| quiver_ainq::Error::InvalidScalar)?;
    let other = |error: HoldingError| Error::Holding(error.to_string());
    Holding::new(ReleaseAuthority::decode(deployment, statement)?, share).map_err(other)
}
