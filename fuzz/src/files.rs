//! Files that the services read: the deployment file, token files, state files.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use quiver_ainq::suite::BLS12381G1_ID;
use quiver_ainq::{Ristretto255, Role, Suite as _};
use quiver_crypto::Secret;
use quiver_service::armour::{self, ArmourKind};
use quiver_service::deployment_file::{DeploymentFile, KgcEntry, owner};
use quiver_service::secrets::Protection;
use quiver_service::state_file::{Owner, StateFile};
use quiver_service::token_file::{self, TokenRole};
use tempfile::TempDir;

use crate::scene::{Staged, name};

thread_local! {
    static FOLDER: TempDir = TempDir::new().expect("a temporary folder");
}

fn path(file: &str) -> PathBuf {
    FOLDER.with(|folder| folder.path().join(file))
}

/// Puts bytes into a file that is its owner's alone.
fn put(path: &Path, bytes: &[u8]) {
    use std::io::Write as _;
    let mut options = fs::File::options();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path).expect("a file");
    file.write_all(bytes).expect("written");
}

/// The deployment file: read, and its parts used.
pub fn deployment_file(bytes: &[u8]) {
    let path = path("deployment.toml");
    put(&path, bytes);
    let Ok(file) = DeploymentFile::read(&path) else { return };
    let _ = (file.kgc_ids(), file.kgc_addresses());
    if let Ok(deployment) = file.pin() {
        assert_eq!(deployment.name().as_str(), file.deployment);
    }
}

/// Deployment files: one that is read, and one of the reserved suite.
pub fn deployment_file_seeds() -> Vec<Vec<u8>> {
    let kgc = vec![KgcEntry { id: 1, peer: None, addresses: vec!["/dns4/kgc.example/tcp/7000".into()] }];
    let file = DeploymentFile::new(&Ristretto255::scene().deployment, kgc);
    let reserved = DeploymentFile { suite: BLS12381G1_ID.into(), ..file.clone() };
    let files = [file, reserved];
    files.iter().map(|file| toml::to_string(file).expect("a table").into_bytes()).collect()
}

/// Files with a token, an operator's secret key or an operator's public key, each read as each.
pub fn token_file(bytes: &[u8]) {
    let path = path("token");
    put(&path, bytes);
    for kind in [ArmourKind::Token, ArmourKind::OperatorSecretKey, ArmourKind::OperatorPublicKey] {
        if let Ok(content) = armour::read(&path, kind) {
            let copy = self::path("copy");
            let _ = fs::remove_file(&copy);
            armour::write_new(&copy, kind, &content).expect("what was read can be written");
            let same = armour::read(&copy, kind).expect("what was written can be read");
            assert!(same == content);
        }
    }
    for wanted in [TokenRole::Edge, TokenRole::Leader] {
        let _ = token_file::read(&path, &Ristretto255::scene().deployment, wanted);
    }
}

/// A file of each kind.
pub fn token_file_seeds() -> Vec<Vec<u8>> {
    let scene = Ristretto255::scene();
    let token = scene.token("edge-0", Role::Edge).encode();
    let parts: [(ArmourKind, &[u8]); 3] = [
        (ArmourKind::Token, &token),
        (ArmourKind::OperatorSecretKey, &scene.operator.encode()),
        (ArmourKind::OperatorPublicKey, &scene.operator.public().encode()),
    ];
    let path = path("seed");
    let written = parts.iter().map(|(kind, bytes)| {
        let _ = fs::remove_file(&path);
        armour::write_new(&path, *kind, bytes).expect("written");
        fs::read(&path).expect("read")
    });
    let mut seeds: Vec<Vec<u8>> = written.collect();
    let reserved = String::from_utf8_lossy(&seeds[0]).replace(Ristretto255::ID, BLS12381G1_ID);
    seeds.push(reserved.into_bytes());
    seeds
}

/// A state file: altered bytes are refused, or give records that its owner wrote, in order from the first.
/// (The last ones may be missing: a file system that loses the end of a journal looks like a crash.)
pub fn state_file(bytes: &[u8]) {
    let path = path("state");
    put(&path, bytes);
    if let Ok((mut file, records)) = StateFile::open(&path, &the_owner(), &protection()) {
        let written = written();
        assert!(records.len() >= 2, "a snapshot is whole or nothing");
        assert!(records.iter().zip(&written).all(|(read, written)| **read == *written), "a forged record");
        assert!(records.len() <= written.len(), "more records than were written");
        file.append(&[b"more"]).expect("an opened file takes records");
    }
}

/// A state file with a snapshot and two appends.
pub fn state_file_seeds() -> Vec<Vec<u8>> {
    let path = path("seed-state");
    let _ = fs::remove_file(&path);
    let written = written();
    let mut file =
        StateFile::create(&path, &the_owner(), &protection(), &written[..2]).expect("a new state file");
    let snapshot = fs::read(&path).expect("read");
    file.append(&written[2..3]).expect("appended");
    file.append(&written[3..]).expect("appended");
    vec![fs::read(&path).expect("read"), snapshot]
}

fn written() -> Vec<Vec<u8>> {
    vec![b"snapshot".to_vec(), vec![7; 300], b"first change".to_vec(), vec![9; 40], Vec::new()]
}

fn the_owner() -> Owner {
    let deployment = &Ristretto255::scene().deployment;
    assert_eq!(deployment.name(), &name("fuzz"));
    owner(deployment, "edge")
}

fn protection() -> Protection {
    Protection::Key(Secret::new([3; 32]))
}
