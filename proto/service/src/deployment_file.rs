//! The public file that says which deployment this is: name, suite, master public key, where the KGCs are.
//!
//! `kgc init` writes it; leaders, edges and operators take it with `--deployment FILE`. It holds no secret,
//! but an attacker that can change it can name another KGC, so it travels like any trust anchor: compare the
//! fingerprint.

use std::path::Path;

use quiver_ainq::{Deployment, Element, KgcId, Name, Ristretto255, Suite as _};
pub use quiver_kem::KemSetting;
use serde::{Deserialize, Serialize};

use crate::state_file::Owner;
use crate::{Error, Result, private_file, suite};

/// The longest file, in bytes.
const LIMIT: u64 = 256 * 1024;
/// Name of the copy in a drone's data directory.
const KEPT: &str = "deployment.toml";

/// A KGC of the deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KgcEntry {
    /// FROST identifier of the KGC; 1 for a single KGC.
    pub id: KgcId,
    /// Transport identity of the KGC, in a quorum: other peers at its addresses are disconnected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Addresses that the KGC listens at, as multiaddresses: `/dns4/kgc.example/tcp/7000`.
    #[serde(default)]
    pub addresses: Vec<String>,
}

impl KgcEntry {
    /// Addresses of the KGC, each ending in its transport identity if that is known.
    pub fn pinned_addresses(&self) -> impl Iterator<Item = String> + '_ {
        self.addresses.iter().map(|address| match &self.peer {
            Some(peer) if !address.contains("/p2p/") => format!("{address}/p2p/{peer}"),
            _ => address.clone(),
        })
    }
}

/// The file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeploymentFile {
    /// The deployment's name.
    pub deployment: String,
    /// The suite's ID.
    pub suite: String,
    /// P_pub, hex.
    pub master: String,
    /// H(suite, name, P_pub), hex; for people to compare. Checked against the rest.
    pub fingerprint: String,
    /// Statement of a quorum about its public shares, hex; `None` for a single KGC. Drones get the newest
    /// from the KGCs themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<String>,
    /// Second factor of pairwise secrets, from ML-KEM: the same in the files of all drones and leaders. A
    /// file without it says that there is none. It is no part of the fingerprint.
    #[serde(default, skip_serializing_if = "KemSetting::is_none")]
    pub kem: KemSetting,
    /// The KGCs.
    #[serde(default)]
    pub kgc: Vec<KgcEntry>,
}

impl DeploymentFile {
    /// Second factor of new deployments. A file that does not say one says none, because such files were
    /// written before there was any.
    pub const NEW_KEM: KemSetting = KemSetting::MlKem768;

    /// Describes a new deployment, with the second factor that such ones have.
    pub fn new(deployment: &Deployment<Ristretto255>, kgc: Vec<KgcEntry>) -> Self {
        Self {
            deployment: deployment.name().as_str().into(),
            suite: Ristretto255::ID.into(),
            master: hex::encode(deployment.master().as_bytes()),
            fingerprint: hex::encode(deployment.fingerprint()),
            quorum: None,
            kem: Self::NEW_KEM,
            kgc,
        }
    }

    /// Adds what the KGCs of a quorum have signed about their public shares.
    #[must_use]
    pub fn with_quorum(self, statement: &[u8]) -> Self {
        Self { quorum: Some(hex::encode(statement)), ..self }
    }

    /// Reads the file, and checks the suite that it names.
    ///
    /// # Errors
    /// [`Error::Config`] naming the file, and the line if it is not of the form; [`Error::Io`].
    pub fn read(path: &Path) -> Result<Self> {
        let wrong = |what: String| Error::Config(format!("{}: {what}", path.display()));
        let content = private_file::read_public(path, LIMIT, "a deployment file")?;
        let text =
            content.text().ok_or_else(|| wrong("this is not a deployment file: it is no text".into()))?;
        let file: Self = toml::from_str(text).map_err(|error| {
            wrong(format!("this is not a deployment file: {}", content.explain_toml(&error)))
        })?;
        suite::check(&file.suite).map_err(wrong)?;
        Ok(file)
    }

    /// Reads the file given, or else the copy that [`Self::keep`] put into the data directory.
    ///
    /// # Errors
    /// [`Error::Config`] if there is neither, and those of [`Self::read`].
    pub fn given_or_kept(given: Option<&Path>, data_dir: &Path) -> Result<Self> {
        let kept = data_dir.join(KEPT);
        match given {
            Some(path) => Self::read(path),
            None if private_file::exists(&kept)? => Self::read(&kept),
            None => Err(private_file::refuse_if_no_directory(data_dir).err().unwrap_or_else(|| {
                Error::Config("no deployment: give --deployment FILE (from `kgc init`)".into())
            })),
        }
    }

    /// Keeps a copy in the data directory, so that later starts need not be given the file. The caller has
    /// checked that the state there is of this deployment.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::DiskFull`].
    pub fn keep(&self, data_dir: &Path) -> Result<()> {
        let path = data_dir.join(KEPT);
        if Self::read(&path).is_ok_and(|kept| kept == *self) {
            return Ok(());
        }
        private_file::replace(&path, self.text()?.as_bytes())
    }

    /// Writes the file that anybody may read, in place of the one there may be.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::DiskFull`].
    pub fn replace(&self, path: &Path) -> Result<()> {
        private_file::replace_public(path, self.text()?.as_bytes())
    }

    /// Writes a new file that anybody may read. Never overwrites.
    pub fn write_new(&self, path: &Path) -> Result<()> {
        private_file::write_new_public(path, self.text()?.as_bytes())
    }

    /// The text of the file.
    ///
    /// # Errors
    /// None for a file that was read or made here.
    pub fn text(&self) -> Result<String> {
        let body = toml::to_string(self).map_err(|error| Error::Config(error.to_string()))?;
        Ok(format!(
            "# Public. Leaders, edges and operators take this file with --deployment; compare the fingerprint.\n{body}"
        ))
    }

    /// Checks everything and pins it.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub fn pin(&self) -> Result<Deployment<Ristretto255>> {
        let wrong = |what: &str| Error::Config(format!("deployment file: {what}"));
        suite::check(&self.suite).map_err(|what| wrong(&what))?;
        let name = Name::new(&self.deployment).map_err(|error| wrong(&error.to_string()))?;
        let bytes = hex::decode(&self.master).map_err(|_| wrong("`master` is not hex"))?;
        let master = Element::decode(&bytes).map_err(|error| wrong(&format!("`master`: {error}")))?;
        let deployment = Deployment::new(name, master);
        if hex::encode(deployment.fingerprint()) != self.fingerprint.to_ascii_lowercase() {
            return Err(wrong("`fingerprint` does not fit suite, name and master key: the file was changed"));
        }
        Ok(deployment)
    }

    /// The ids of the KGCs; 1 if the file lists none.
    pub fn kgc_ids(&self) -> Vec<KgcId> {
        if self.kgc.is_empty() { vec![1] } else { self.kgc.iter().map(|kgc| kgc.id).collect() }
    }

    /// All addresses of KGCs, with the transport identity that each must have, if it is known.
    pub fn kgc_addresses(&self) -> Vec<String> {
        self.kgc.iter().flat_map(KgcEntry::pinned_addresses).collect()
    }
}

/// Owner of a state file: `role` in this deployment.
pub fn owner(deployment: &Deployment<Ristretto255>, role: &str) -> Owner {
    Owner {
        role: role.into(),
        deployment: deployment.name().as_str().into(),
        fingerprint: deployment.fingerprint(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quiver_ainq::MasterSecret;
    use quiver_ainq::suite::BLS12381G1_ID;
    use rand::rngs::OsRng;

    fn sample() -> (Deployment<Ristretto255>, DeploymentFile) {
        let name = Name::new("alps").expect("name");
        let deployment = Deployment::new(name, MasterSecret::generate(&mut OsRng).public());
        let kgc = KgcEntry { id: 1, peer: None, addresses: vec!["/dns4/kgc/tcp/7000".into()] };
        let file = DeploymentFile::new(&deployment, vec![kgc]);
        (deployment, file)
    }

    #[test]
    fn file_comes_back_and_pins_the_same_deployment() {
        let directory = tempfile::tempdir().expect("tempdir");
        let (deployment, file) = sample();
        let path = directory.path().join("d.toml");
        file.write_new(&path).expect("write");
        let read = DeploymentFile::given_or_kept(Some(&path), directory.path()).expect("read");
        assert_eq!(read, file);
        assert_eq!(read.pin().expect("pin"), deployment);
        assert_eq!((read.suite.as_str(), read.kgc_ids()), (Ristretto255::ID, vec![1]));
    }

    #[test]
    fn addresses_of_a_quorum_end_in_the_peer_that_must_answer() {
        let (deployment, _) = sample();
        let entry = |id, peer: Option<&str>, address: &str| KgcEntry {
            id,
            peer: peer.map(String::from),
            addresses: vec![address.into()],
        };
        let kgcs = vec![
            entry(1, Some("A"), "/dns4/kgc-1/tcp/7000"),
            entry(2, Some("B"), "/dns4/kgc-2/tcp/7000/p2p/B"),
            entry(3, None, "/dns4/kgc-3/tcp/7000"),
        ];
        let file = DeploymentFile::new(&deployment, kgcs);
        let addresses = ["/dns4/kgc-1/tcp/7000/p2p/A", "/dns4/kgc-2/tcp/7000/p2p/B", "/dns4/kgc-3/tcp/7000"];
        assert_eq!(file.kgc_addresses(), addresses);
        assert_eq!(file.kgc_ids(), [1, 2, 3]);
    }

    #[test]
    fn copy_is_kept_for_later_starts() {
        let directory = tempfile::tempdir().expect("tempdir");
        let missing = DeploymentFile::given_or_kept(None, directory.path()).expect_err("nothing yet");
        assert!(missing.to_string().contains("--deployment"), "{missing}");
        let (_, file) = sample();
        file.keep(directory.path()).expect("keep");
        assert_eq!(DeploymentFile::given_or_kept(None, directory.path()).expect("kept"), file);
    }

    #[test]
    fn file_without_a_second_factor_has_none_and_says_so_only_if_there_is_one() {
        let directory = tempfile::tempdir().expect("tempdir");
        let (_, file) = sample();
        assert!(file.text().expect("text").contains("kem = \"ml-kem-768\""), "a new deployment has one");
        let text = DeploymentFile { kem: KemSetting::None, ..file }.text().expect("text");
        assert!(!text.contains("kem"), "{text}");
        let path = directory.path().join("d.toml");
        let read = |text: &str| {
            std::fs::write(&path, text).expect("write");
            DeploymentFile::read(&path)
        };
        assert_eq!(read(&text).expect("read").kem, KemSetting::None);
        for setting in KemSetting::ALL {
            let named = text.replace("[[kgc]]", &format!("kem = \"{setting}\"\n[[kgc]]"));
            let file = read(&named).expect("read");
            assert_eq!(file.kem, setting);
            // It comes back, and is no part of what people compare.
            let again = read(&file.text().expect("text")).expect("read");
            assert_eq!((again.kem, again.pin().is_ok()), (setting, true));
        }
        let error = read(&text.replace("[[kgc]]", "kem = \"kyber\"\n[[kgc]]")).expect_err("refused");
        assert!(error.to_string().contains("ml-kem-768"), "{error}");
    }

    #[test]
    fn changed_file_does_not_fit_its_fingerprint() {
        let (_, file) = sample();
        let (_, other) = sample();
        let changed = [
            DeploymentFile { master: other.master, ..file.clone() },
            DeploymentFile { deployment: "alpz".into(), ..file.clone() },
            DeploymentFile { fingerprint: other.fingerprint, ..file.clone() },
        ];
        for file in changed {
            let error = file.pin().expect_err("refused").to_string();
            assert!(error.contains("fingerprint"), "{error}");
        }
        let garbled = DeploymentFile { master: "ff".repeat(32), ..file };
        assert!(garbled.pin().is_err());
    }

    #[test]
    fn file_of_the_reserved_suite_is_refused_with_its_path_and_what_to_do() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("old.toml");
        let (_, file) = sample();
        let old = DeploymentFile { suite: BLS12381G1_ID.into(), ..file };
        old.write_new(&path).expect("write");
        let refused = DeploymentFile::read(&path).expect_err("refused").to_string();
        for part in ["old.toml: it is of suite bls12-381-g1", BLS12381G1_ID, "reserved", "kgc init"] {
            assert!(refused.contains(part), "`{part}` is not in: {refused}");
        }
        assert!(old.pin().expect_err("refused").to_string().contains("bls12-381-g1"));
    }

    #[test]
    fn misspelt_key_is_named() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("d.toml");
        std::fs::write(&path, "deploiment = \"alps\"").expect("write");
        assert!(DeploymentFile::read(&path).expect_err("refused").to_string().contains("deploiment"));
    }
}
