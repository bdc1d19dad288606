//! Makes operators' key pairs (`kgc operator new`): a holder of an operator's secret key decides which drones
//! may enrol. The KGC knows the public key alone.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use quiver_ainq::{OperatorPublicKey, OperatorSecretKey, Suite, SuiteKind};
use quiver_service::armour::{self, Kind};
use quiver_service::{private_file, terminal, with_suite};
use rand::rngs::OsRng;

use crate::error::{Error, Result};

/// The longest public key file, in bytes.
const LIMIT: u64 = 4096;

/// `kgc operator new`.
pub(crate) fn new(prefix: &Path, suite: SuiteKind, keep: bool, publish: Option<&Path>) -> Result<()> {
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
    with_suite!(suite, S => {
        let secret = OperatorSecretKey::<S>::generate(&mut OsRng);
        armour::write_new(&secret_path, Kind::OperatorSecretKey, suite, &secret.encode())?;
        armour::write_new(&public_path, Kind::OperatorPublicKey, suite, secret.public().encode().as_ref())?;
    });
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
    suite: SuiteKind,
    decode: impl FnOnce(&[u8]) -> std::result::Result<T, quiver_ainq::Error>,
) -> Result<T> {
    let (found, bytes) = armour::read(path, kind)?;
    if found != suite {
        return Err(Error::WrongSuite { path: path.into(), found: found.id(), expected: suite.id() });
    }
    decode(&bytes).map_err(|error| {
        quiver_service::Error::Garbled { path: path.into(), what: format!("it was cut or changed: {error}") }
            .into()
    })
}

/// Reads an operator's public key of the given suite.
pub(crate) fn read_public<S: Suite>(path: &Path, suite: SuiteKind) -> Result<OperatorPublicKey<S>> {
    read(path, Kind::OperatorPublicKey, suite, |bytes| OperatorPublicKey::decode(bytes))
}

/// Reads an operator's secret key of the given suite.
pub(crate) fn read_secret<S: Suite>(path: &Path, suite: SuiteKind) -> Result<OperatorSecretKey<S>> {
    read(path, Kind::OperatorSecretKey, suite, |bytes| OperatorSecretKey::decode(bytes))
}
