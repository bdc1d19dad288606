//! The sealed file `master.state`: master secret, transport key, the operators whose tokens count, and the last
//! line of the audit table that was noted.
//!
//! The operators stand in here and not in the registry because a line added to them would let tokens be
//! forged: this file is authenticated, the registry is not.

use std::path::{Path, PathBuf};

use quiver_ainq::{Deployment, MasterSecret, OperatorPublicKey, Ristretto255};
use quiver_service::deployment_file::owner;
use quiver_service::secrets::Protection;
use quiver_service::state_file::{Records, StateFile, tagged};
use zeroize::Zeroizing;

use crate::audit_head::{AuditHead, HeadFile};
use crate::error::Result;

const ROLE: &str = "kgc";
const SEED: u8 = 0;
const MASTER: u8 = 1;
const OPERATOR: u8 = 2;
const AUDIT_HEAD: u8 = 3;

/// Content of the file.
pub(crate) struct Sealed {
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
}

/// Path of the file.
pub(crate) fn path_in(data_dir: &Path) -> PathBuf {
    data_dir.join("master.state")
}

/// Refuses a passphrase or key that does not open the file, also while a running KGC holds it.
pub(crate) fn refuse_wrong_key(
    data_dir: &Path,
    deployment: &Deployment<Ristretto255>,
    by: &Protection,
) -> Result<()> {
    Ok(StateFile::check_key(&path_in(data_dir), &owner(deployment, ROLE), by)?)
}

impl Sealed {
    /// Creates the file. Never overwrites one.
    pub(crate) fn create(
        &self,
        data_dir: &Path,
        deployment: &Deployment<Ristretto255>,
        by: &Protection,
    ) -> Result<()> {
        let mut records = vec![tagged(SEED, self.seed.as_slice()), tagged(MASTER, &self.master.encode())];
        records.extend(self.operators.iter().map(|operator| tagged(OPERATOR, operator.encode().as_ref())));
        StateFile::create(&path_in(data_dir), &owner(deployment, ROLE), by, &records)?;
        Ok(())
    }

    /// Opens the file; the lock on it is held as long as the [`MasterFile`] lives.
    pub(crate) fn open(
        data_dir: &Path,
        deployment: &Deployment<Ristretto255>,
        by: &Protection,
    ) -> Result<(Self, MasterFile)> {
        let (file, records) = StateFile::open(&path_in(data_dir), &owner(deployment, ROLE), by)?;
        let head = records.iter().rev().find_map(|record| head_of(record));
        Ok((Self::decode(file.path(), &records)?, MasterFile { file, head }))
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
                _ => return Err(corrupt().into()),
            }
        }
        let (Some(master), Some(seed)) = (master, seed) else {
            return Err(corrupt().into());
        };
        Ok(Self { master, seed, operators })
    }
}

fn head_of(record: &[u8]) -> Option<AuditHead> {
    let (kind, bytes) = record.split_first()?;
    AuditHead::decode(bytes).filter(|_| *kind == AUDIT_HEAD)
}

impl HeadFile for MasterFile {
    const NAME: &'static str = "master.state";

    fn noted(&self) -> Option<AuditHead> {
        self.head
    }

    /// Replaces the whole file: of a journal, whoever can write the disk could take the newest heads away.
    fn note(&mut self, head: AuditHead) -> Result<()> {
        let mut records = self.file.records()?;
        records.retain(|record| record.first() != Some(&AUDIT_HEAD));
        records.push(tagged(AUDIT_HEAD, &head.encode()));
        self.file.replace(&records)?;
        self.head = Some(head);
        Ok(())
    }
}
