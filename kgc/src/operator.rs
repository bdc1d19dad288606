//! Makes operators' key pairs (`kgc operator new`): a holder of an operator's secret key decides which drones
//! may enrol. The KGC knows the public key alone.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use quiver_ainq::{OperatorPublicKey, OperatorSecretKey, Ristretto255};
use quiver_service::armour::{self, Kind};
use quiver_service::{private_file, terminal};
use rand::rngs::OsRng;

use crate::error::Result;

/// The longest public key file, in bytes.
const LIMIT: u64 = 4096;

/// `kgc operator new`.
pub(crate) fn new(prefix: &Path, keep: bool, publish: Option<&Path>) -> Result<()> {
    let with = |extension: &str| {
        let mut name = OsString::from(prefix);
        name.push(extension);
        PathBuf::from(name)
    };
    let (secret_path, public_path) = (with(".key"), with(".pub"));
    if keep && public_path.exists() && secret_path.exists() {
        return publish_copy(&public_path, publish);
    }
    if public_path.exists() {
        return Err(quiver_service::Error::Exists { path: public_path }.into());
    }
    let secret = OperatorSecretKey::<Ristretto255>::generate(&mut OsRng);
    armour::write_new(&secret_path, Kind::OperatorSecretKey, &secret.encode())?;
    armour::write_new(&public_path, Kind::OperatorPublicKey, secret.public().encode().as_ref())?;
    terminal::line(&format!(
        "{}  secret: issues tokens; keep it off the KGC\n{}  public: for `kgc init --operator`",
        secret_path.display(),
        public_path.display()
    ))?;
    publish_copy(&public_path, publish)
}

/// Copies the public key to where others find it.
fn publish_copy(public: &Path, publish: Option<&Path>) -> Result<()> {
    if let Some(publish) = publish {
        private_file::replace_public(publish, &private_file::read_public(public, LIMIT)?)?;
    }
    Ok(())
}

fn read<T>(
    path: &Path,
    kind: Kind,
    decode: impl FnOnce(&[u8]) -> std::result::Result<T, quiver_ainq::Error>,
) -> Result<T> {
    let bytes = armour::read(path, kind)?;
    decode(&bytes).map_err(|error| {
        quiver_service::Error::Garbled { path: path.into(), what: format!("it was cut or changed: {error}") }
            .into()
    })
}

/// Reads an operator's public key.
pub(crate) fn read_public(path: &Path) -> Result<OperatorPublicKey<Ristretto255>> {
    read(path, Kind::OperatorPublicKey, OperatorPublicKey::decode)
}

/// Reads an operator's secret key.
pub(crate) fn read_secret(path: &Path) -> Result<OperatorSecretKey<Ristretto255>> {
    read(path, Kind::OperatorSecretKey, OperatorSecretKey::decode)
}
