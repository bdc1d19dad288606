//! The sealed file `master.state`: master secret, transport key, the operators whose tokens count, the last line of
//! the audit table that was noted, and the key that authenticates the registry.
//!
//! The operators stand in here and not in the registry because they are pinned for ever: no command changes them.

use std::path::{Path, PathBuf};

use quiver_ainq::{Deployment, MasterSecret, OperatorPublicKey, Ristretto255};
use quiver_service::deployment_file::owner;
use quiver_service::secrets::Protection;
use quiver_service::state_file::{Records, StateFile, tagged};
use zeroize::Zeroizing;

use crate::audit_head::{AuditHead, HeadFile};
use crate::error::{Error, Result};
use crate::store::KeptKey;

const ROLE: &str = "kgc";
const SEED: u8 = 0;
const MASTER: u8 = 1;
const OPERATOR: u8 = 2;
const AUDIT_HEAD: u8 = 3;
const REGISTRY_KEY: u8 = 4;

/// Content of the file.
pub(crate) struct KgcSecrets {
    /// x.
    pub(crate) master: MasterSecret<Ristretto255>,
    /// Seed of the transport key.
    pub(crate) seed: Zeroizing<[u8; 32]>,
    /// Operators whose tokens are accepted.
    pub(crate) operators: Vec<OperatorPublicKey<Ristretto255>>,
}

/// The open file.
#[derive(Debug)]
pub(crate) struct MasterFile {
    file: StateFile,
    head: Option<AuditHead>,
    registry_key: Option<KeptKey>,
}

/// Path of the file.
pub(crate) fn path_in(data_dir: &Path) -> PathBuf {
    data_dir.join("master.state")
}

/// Refuses the data directory of a drone, in which a KGC's secrets would lie beside the drone's.
pub(crate) fn refuse_drones_directory(data_dir: &Path) -> Result<()> {
    match data_dir.join("drone.state").exists() {
        false => Ok(()),
        true => Err(Error::Terms(format!(
            "{} is the data directory of a drone (drone.state): give a KGC's by --data-dir",
            data_dir.display()
        ))),
    }
}

/// Refuses a passphrase or key that does not open the file, also while a running KGC holds it.
pub(crate) fn refuse_wrong_key(
    data_dir: &Path,
    deployment: &Deployment<Ristretto255>,
    by: &Protection,
) -> Result<()> {
    Ok(StateFile::check_key(&path_in(data_dir), &owner(deployment, ROLE), by)?)
}

impl KgcSecrets {
    /// Creates the file, with the key of a new registry. Never overwrites one.
    pub(crate) fn create(
        &self,
        data_dir: &Path,
        deployment: &Deployment<Ristretto255>,
        by: &Protection,
        registry_key: &KeptKey,
    ) -> Result<()> {
        let mut records = vec![tagged(SEED, self.seed.as_slice()), tagged(MASTER, &self.master.encode())];
        records.extend(self.operators.iter().map(|operator| tagged(OPERATOR, operator.encode().as_ref())));
        records.push(tagged(REGISTRY_KEY, &registry_key.encode()));
        StateFile::create(&path_in(data_dir), &owner(deployment, ROLE), by, &records)?;
        Ok(())
    }

    /// Opens the file; the lock on it is held as long as the [`MasterFile`] lives.
    pub(crate) fn open(
        data_dir: &Path,
        deployment: &Deployment<Ristretto255>,
        by: &Protection,
    ) -> Result<(Self, MasterFile)> {
        let opened = StateFile::open(&path_in(data_dir), &owner(deployment, ROLE), by);
        if let Err(quiver_service::Error::NoFile { .. }) = &opened {
            refuse_drones_directory(data_dir)?;
        }
        let (file, records) = opened?;
        let head = newest(&records, AUDIT_HEAD).and_then(AuditHead::decode);
        let registry_key = newest(&records, REGISTRY_KEY).and_then(KeptKey::decode);
        Ok((Self::decode(file.path(), &records)?, MasterFile { file, head, registry_key }))
    }

    /// Reads the open file once more.
    pub(crate) fn read(open: &mut MasterFile) -> Result<Self> {
        let records = open.file.records()?;
        Self::decode(open.file.path(), &records)
    }

    fn decode(path: &Path, records: &Records) -> Result<Self> {
        let corrupt =
            || quiver_service::Error::Corrupt { path: path.into(), offset: 0, what: "a record is missing" };
        let (mut master, mut seed, mut operators) = (None, None, Vec::new());
        for record in records {
            match record.split_first() {
                Some((&SEED, bytes)) => seed = <[u8; 32]>::try_from(bytes).ok().map(Zeroizing::new),
                Some((&MASTER, bytes)) => master = Some(MasterSecret::decode(bytes)?),
                Some((&OPERATOR, bytes)) => operators.push(OperatorPublicKey::decode(bytes)?),
                Some((&AUDIT_HEAD, _)) => {}
                // Never to be taken for a file without one.
                Some((&REGISTRY_KEY, bytes)) if KeptKey::decode(bytes).is_some() => {}
                _ => return Err(corrupt().into()),
            }
        }
        let (Some(master), Some(seed)) = (master, seed) else {
            return Err(corrupt().into());
        };
        Ok(Self { master, seed, operators })
    }
}

/// Content of the newest record of a kind.
fn newest(records: &Records, kind: u8) -> Option<&[u8]> {
    records.iter().rev().find(|record| record.first() == Some(&kind))?.get(1..)
}

impl MasterFile {
    /// Name of the file.
    pub(crate) const NAME: &'static str = "master.state";

    /// Replaces the whole file: of a journal, whoever can write the disk could take the newest records away.
    fn supersede(&mut self, kind: u8, bytes: &[u8]) -> Result<()> {
        let mut records = self.file.records()?;
        records.retain(|record| record.first() != Some(&kind));
        records.push(tagged(kind, bytes));
        Ok(self.file.replace(&records)?)
    }
}

impl HeadFile for MasterFile {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn noted(&self) -> Option<AuditHead> {
        self.head
    }

    fn note(&mut self, head: AuditHead) -> Result<()> {
        self.supersede(AUDIT_HEAD, &head.encode())?;
        self.head = Some(head);
        Ok(())
    }

    fn registry_key(&self) -> Option<&KeptKey> {
        self.registry_key.as_ref()
    }

    fn keep_registry_key(&mut self, kept: KeptKey) -> Result<()> {
        self.supersede(REGISTRY_KEY, &kept.encode())?;
        self.registry_key = Some(kept);
        Ok(())
    }
}
