//! Makes operators' key pairs (`kgc operator new`): a holder of an operator's secret key decides which drones
//! may enrol. The KGC knows the public key alone.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use quiver_ainq::{OperatorPublicKey, OperatorSecretKey, Ristretto255};
use quiver_service::armour::{self, ArmourKind};
use quiver_service::secrets::{Protection, ProtectionArgs};
use quiver_service::{operator_key, private_file, terminal};
use rand::rngs::OsRng;

use crate::cli::OperatorArgs;
use crate::error::{Error, Result};

/// The longest public key file, in bytes.
const LIMIT: u64 = 4096;

/// `kgc operator new`.
pub(crate) fn new(protection: &ProtectionArgs, args: &OperatorArgs) -> Result<()> {
    let (prefix, publish) = (args.out.as_path(), args.publish.as_deref());
    // The files would be hidden: `.key` and `.pub`.
    if prefix.as_os_str().is_empty() || prefix.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(Error::Terms(format!(
            "--out: `{0}` names no file: give a prefix of two file names, such as {0}operator",
            prefix.display()
        )));
    }
    let with = |extension: &str| {
        let mut name = OsString::from(prefix);
        name.push(extension);
        PathBuf::from(name)
    };
    let (secret_path, public_path) = (with(".key"), with(".pub"));
    if args.keep && public_path.exists() && secret_path.exists() {
        return publish_copy(&public_path, publish);
    }
    if public_path.exists() {
        return Err(quiver_service::Error::Exists { path: public_path }.into());
    }
    if secret_path.exists() {
        return Err(quiver_service::Error::Exists { path: secret_path }.into());
    }
    // Nothing is begun that cannot be finished.
    publish.map(|path| private_file::earlier(path, is_public_key)).transpose()?;
    let by = if args.no_passphrase { None } else { Some(obtain(protection, &secret_path)?) };
    let secret = OperatorSecretKey::<Ristretto255>::generate(&mut OsRng);
    operator_key::write_new(&secret_path, &secret.encode(), by.as_ref())?;
    armour::write_new(&public_path, ArmourKind::OperatorPublicKey, secret.public().encode().as_ref())?;
    let encrypted = match &by {
        Some(by) => format!("encrypted under the {}", by.describe()),
        None => "NOT ENCRYPTED: whoever reads it can issue tokens".into(),
    };
    terminal::line(&format!(
        "{}  secret: issues tokens; {encrypted}; keep it off the KGC\n{}  public: for `kgc init --operator`",
        secret_path.display(),
        public_path.display()
    ))?;
    publish_copy(&public_path, publish)
}

/// Asks for the protection that encrypts the key.
fn obtain(protection: &ProtectionArgs, path: &Path) -> Result<Protection> {
    Ok(protection.obtain(true).map_err(|error| match error {
        quiver_service::Error::NoProtection => quiver_service::Error::BadProtection {
            origin: path.display().to_string(),
            reason: "no passphrase to encrypt it under: give --passphrase-file FILE, --key-file FILE or the variable \
                     QUIVER_PASSPHRASE, or --no-passphrase to leave it unencrypted"
                .into(),
        },
        error => error,
    })?)
}

/// Copies the public key to where others find it.
fn publish_copy(public: &Path, publish: Option<&Path>) -> Result<()> {
    if let Some(publish) = publish {
        let key = private_file::read_public(public, LIMIT, "the operator's public key")?;
        private_file::publish(publish, key.bytes(), is_public_key)?;
    }
    Ok(())
}

/// Returns true if a file is an operator's public key.
fn is_public_key(text: &[u8]) -> bool {
    armour::kind(text) == Some(ArmourKind::OperatorPublicKey)
}

fn decoded<T>(path: &Path, decoded: std::result::Result<T, quiver_ainq::Error>) -> Result<T> {
    decoded.map_err(|error| {
        quiver_service::Error::Garbled { path: path.into(), what: format!("it was cut or changed: {error}") }
            .into()
    })
}

/// Reads the public keys of several operators. Two files with the same key are refused: one operator's is missing then.
pub(crate) fn read_all_public(paths: &[PathBuf]) -> Result<Vec<OperatorPublicKey<Ristretto255>>> {
    let mut keys = Vec::new();
    for path in paths {
        let key = read_public(path)?;
        if let Some((earlier, _)) = paths.iter().zip(&keys).find(|(_, earlier)| **earlier == key) {
            return Err(Error::Terms(format!(
                "--operator: {} has the same key as {}: give each operator's once",
                path.display(),
                earlier.display()
            )));
        }
        keys.push(key);
    }
    Ok(keys)
}

/// Reads an operator's public key.
fn read_public(path: &Path) -> Result<OperatorPublicKey<Ristretto255>> {
    decoded(path, OperatorPublicKey::decode(&armour::read(path, ArmourKind::OperatorPublicKey)?))
}

/// Reads an operator's secret key.
pub(crate) fn read_secret(
    path: &Path,
    protection: &ProtectionArgs,
) -> Result<OperatorSecretKey<Ristretto255>> {
    let file = operator_key::read(path, || protection.obtain(false))?;
    if !file.encrypted {
        tracing::warn!(
            "{} is not encrypted: whoever reads it can issue tokens (`kgc operator new` encrypts new ones)",
            path.display()
        );
    }
    decoded(path, OperatorSecretKey::decode(&file.key))
}
