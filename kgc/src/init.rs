//! `kgc init`: a new deployment.

use std::path::PathBuf;

use quiver_ainq::{Deployment, MasterSecret, Ristretto255};
use quiver_service::deployment_file::{DeploymentFile, KgcEntry};
use quiver_service::secrets::ProtectionArgs;
use quiver_service::{clock, private_file, terminal};
use rand::RngCore;
use rand::rngs::OsRng;
use serde::Serialize;
use zeroize::Zeroizing;

use crate::cli::InitArgs;
use crate::config::Config;
use crate::error::Result;
use crate::membership;
use crate::operator;
use crate::sealed::{self, KgcSecrets};
use crate::service;
use crate::store::{KeptKey, RegistryKey, Store};

/// A new deployment as it is shown.
#[derive(Debug, Serialize)]
struct Created {
    deployment: String,
    /// Hex.
    fingerprint: String,
    suite: String,
    data_dir: PathBuf,
    /// The public deployment file.
    file: PathBuf,
    /// Addresses at which drones reach this KGC.
    addresses: Vec<String>,
}

/// Creates master secret, registry and public deployment file.
pub(crate) fn run(config: &Config, protection: &ProtectionArgs, args: &InitArgs) -> Result<()> {
    let addresses = service::distinct_addresses("--address", &args.address, service::dialled_address)?;
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let operators = operator::read_all_public(&args.operator)?;
    sealed::refuse_drones_directory(&config.data_dir)?;
    private_file::create_directory(&config.data_dir)?;
    let all = [
        sealed::path_in(&config.data_dir),
        Store::path_in(&config.data_dir),
        membership::path_in(&config.data_dir),
        config.deployment_path(),
    ];
    if let Some(path) = all.into_iter().find(|path| path.exists()) {
        return Err(quiver_service::Error::Exists { path }.into());
    }
    let by = protection.obtain(true)?;
    let master = MasterSecret::<Ristretto255>::generate(&mut OsRng);
    let deployment = Deployment::new(args.deployment.clone(), master.public());
    let mut seed = Zeroizing::new([0; 32]);
    OsRng.fill_bytes(seed.as_mut_slice());
    let kept = KeptKey { key: RegistryKey::random(), settled: true };
    KgcSecrets { master, seed, operators }.create(&config.data_dir, &deployment, &by, &kept)?;
    Store::create(&config.data_dir, &deployment.fingerprint(), &kept.key, clock::unix_now())?;
    let kgcs = vec![KgcEntry { id: 1, peer: None, addresses: addresses.clone() }];
    let file = DeploymentFile { kem: args.kem, ..DeploymentFile::new(&deployment, kgcs) };
    let path = config.deployment_path();
    file.write_new(&path)?;
    if args.json {
        return Ok(terminal::json(&Created {
            deployment: file.deployment,
            fingerprint: file.fingerprint,
            suite: file.suite,
            data_dir: config.data_dir.clone(),
            file: path,
            addresses,
        })?);
    }
    let mut text = format!(
        "deployment {} created in {}\nfingerprint {}\ngive {} to leaders, edges and operators",
        file.deployment,
        config.data_dir.display(),
        file.fingerprint,
        path.display()
    );
    if args.address.is_empty() {
        text.push_str(
            "\nno --address was given, so the file does not say where this KGC is: leaders and edges need `--kgc HOST:PORT`",
        );
    }
    Ok(terminal::line(&text)?)
}
