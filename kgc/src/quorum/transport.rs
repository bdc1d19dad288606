//! The encrypted file `transport.state`: the seed of a KGC's transport key.
//!
//! The other KGCs pin this key before there is any other, so it has a file of its own. It never changes: keep
//! a copy elsewhere, and a KGC that loses its data directory keeps its identity.

use std::path::{Path, PathBuf};

use quiver_net::NodeKey;
use quiver_service::secrets::Protection;
use quiver_service::state_file::{Owner, StateFile};
use rand::RngCore;
use rand::rngs::OsRng;
use zeroize::Zeroizing;

use crate::error::{Error, Result};

/// Path of the file.
pub(crate) fn path_in(data_dir: &Path) -> PathBuf {
    data_dir.join("transport.state")
}

/// Owner of the transport key, which belongs to no deployment yet.
fn owner() -> Owner {
    Owner { role: "kgc-transport".into(), deployment: "any".into(), fingerprint: [0; 32] }
}

/// Makes the key. Never overwrites one.
pub(crate) fn create(data_dir: &Path, by: &Protection) -> Result<NodeKey> {
    let mut seed = Zeroizing::new([0; 32]);
    OsRng.fill_bytes(seed.as_mut_slice());
    StateFile::create(&path_in(data_dir), &owner(), by, &[seed.as_slice()])?;
    Ok(NodeKey::from_seed(*seed)?)
}

/// Reads the key.
///
/// # Errors
/// [`Error::NoTransportKey`] if there is none yet.
pub(crate) fn read(data_dir: &Path, by: &Protection) -> Result<NodeKey> {
    let path = path_in(data_dir);
    if !path.exists() {
        return Err(Error::NoTransportKey(data_dir.into()));
    }
    let (_, records) = StateFile::open(&path, &owner(), by)?;
    let seed =
        records.first().and_then(|seed| <[u8; 32]>::try_from(seed.as_slice()).ok()).map(Zeroizing::new);
    let corrupt = || quiver_service::Error::Corrupt { path, offset: 0, what: "the transport key is missing" };
    Ok(NodeKey::from_seed(*seed.ok_or_else(corrupt)?)?)
}
