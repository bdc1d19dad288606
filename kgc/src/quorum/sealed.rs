//! The encrypted file `quorum.state`: which quorum this KGC belongs to, whose tokens count, its shares, and the key
//! that authenticates its registry.
//!
//! The file is replaced as a whole with every change, so that a share that was refreshed is not readable any
//! more.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use quiver_ainq::{OperatorPublicKey, Ristretto255};
use quiver_machine::Snapshot;
use quiver_quorum_node::QuorumRecord;
use quiver_service::secrets::Protection;
use quiver_service::state_file::{Owner, StateFile, tagged};
use zeroize::Zeroizing;

use super::file::{Pinned, QuorumFile};
use crate::audit_head::{AuditHead, HeadFile};
use crate::error::Result;
use crate::store::KeptKey;

const FILE: u8 = 0;
const OPERATOR: u8 = 1;
const KEYS: u8 = 2;
const CEREMONY: u8 = 3;
const STATEMENTS: u8 = 4;
const REVOCATION_LIST: u8 = 5;
const QUORUM_STATEMENT: u8 = 6;
const AUDIT_HEAD: u8 = 7;
const REGISTRY_KEY: u8 = 8;

/// Name of the file.
pub(super) const NAME: &str = "quorum.state";

/// Path of the file.
pub(crate) fn path_in(data_dir: &Path) -> PathBuf {
    data_dir.join(NAME)
}

fn owner(pinned: &Pinned) -> Owner {
    Owner { role: "kgc-quorum".into(), deployment: pinned.name.as_str().into(), fingerprint: pinned.seat() }
}

/// Refuses a passphrase or key that does not open the file, also while a running KGC holds it.
pub(crate) fn refuse_wrong_key(data_dir: &Path, pinned: &Pinned, by: &Protection) -> Result<()> {
    Ok(StateFile::check_key(&path_in(data_dir), &owner(pinned), by)?)
}

/// The open file.
#[derive(Debug)]
pub(crate) struct QuorumState {
    file: StateFile,
    /// The pinned membership.
    heading: Vec<Zeroizing<Vec<u8>>>,
    /// The newest record of each kind.
    newest: BTreeMap<u8, Zeroizing<Vec<u8>>>,
    registry_key: Option<KeptKey>,
}

/// Content of the file besides the machine's records.
pub(crate) struct QuorumStateContent {
    pub(crate) pinned: Pinned,
    pub(crate) operators: Vec<OperatorPublicKey<Ristretto255>>,
}

impl QuorumState {
    /// Creates the file, with the key of a new registry. Never overwrites one.
    pub(crate) fn create(
        data_dir: &Path,
        pinned: &Pinned,
        operators: &[OperatorPublicKey<Ristretto255>],
        by: &Protection,
        registry_key: &KeptKey,
    ) -> Result<()> {
        let mut records = vec![tagged(FILE, pinned.file.text()?.as_bytes())];
        records.extend(operators.iter().map(|operator| tagged(OPERATOR, operator.encode().as_ref())));
        records.push(tagged(REGISTRY_KEY, &registry_key.encode()));
        StateFile::create(&path_in(data_dir), &owner(pinned), by, &records)?;
        Ok(())
    }

    /// Opens the file, and holds its lock. `kept` is the copy of the init file for callers without the
    /// secret; the copy in this file takes precedence.
    pub(crate) fn open(
        data_dir: &Path,
        kept: &Pinned,
        by: &Protection,
    ) -> Result<(Self, QuorumStateContent)> {
        let path = path_in(data_dir);
        let (file, records) = StateFile::open(&path, &owner(kept), by)?;
        let corrupt = |what| quiver_service::Error::Corrupt { path: path.clone(), offset: 0, what };
        let mut state = Self { file, heading: Vec::new(), newest: BTreeMap::new(), registry_key: None };
        let (mut pinned, mut operators) = (None, Vec::new());
        for record in records {
            match record.split_first() {
                Some((&FILE, text)) => {
                    let text = std::str::from_utf8(text).map_err(|_| corrupt("the init file is not text"))?;
                    pinned = Some(QuorumFile::parse(text).map_err(|_| corrupt("the init file is invalid"))?);
                    state.heading.push(record);
                }
                Some((&OPERATOR, bytes)) => {
                    operators.push(OperatorPublicKey::decode(bytes)?);
                    state.heading.push(record);
                }
                Some((&REGISTRY_KEY, bytes)) => {
                    // Never to be taken for a file without one.
                    let kept =
                        KeptKey::decode(bytes).ok_or_else(|| corrupt("the registry's key is invalid"))?;
                    state.registry_key = Some(kept);
                    drop(state.newest.insert(REGISTRY_KEY, record));
                }
                Some((&kind, _)) => drop(state.newest.insert(kind, record)),
                None => return Err(corrupt("a record is empty").into()),
            }
        }
        let pinned = pinned.ok_or_else(|| corrupt("the init file is missing"))?;
        Ok((state, QuorumStateContent { pinned, operators }))
    }

    /// The machine's records.
    pub(crate) fn records(&self) -> Result<Vec<QuorumRecord>> {
        let corrupt = || quiver_service::Error::Corrupt {
            path: self.file.path().into(),
            offset: 0,
            what: "a record of an unknown kind",
        };
        let read = |record: &Zeroizing<Vec<u8>>| decode(record).ok_or_else(|| corrupt().into());
        let of_the_machine = |kind: &u8| ![AUDIT_HEAD, REGISTRY_KEY].contains(kind);
        self.newest.iter().filter(|(kind, _)| of_the_machine(kind)).map(|(_, record)| read(record)).collect()
    }

    /// Makes a batch of the machine's records durable, in place of what they supersede.
    pub(crate) fn persist(&mut self, records: &[&QuorumRecord]) -> Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        self.supersede(records.iter().map(|record| encode(record)))
    }

    fn supersede(&mut self, by: impl IntoIterator<Item = (u8, Zeroizing<Vec<u8>>)>) -> Result<()> {
        let mut newest = self.newest.clone();
        newest.extend(by);
        let all: Vec<_> = self.heading.iter().chain(newest.values()).collect();
        self.file.replace(&all)?;
        self.newest = newest;
        Ok(())
    }
}

impl HeadFile for QuorumState {
    fn name(&self) -> &'static str {
        NAME
    }

    fn noted(&self) -> Option<AuditHead> {
        AuditHead::decode(self.newest.get(&AUDIT_HEAD)?.get(1..)?)
    }

    fn note(&mut self, head: AuditHead) -> Result<()> {
        self.supersede([(AUDIT_HEAD, tagged(AUDIT_HEAD, &head.encode()))])
    }

    fn registry_key(&self) -> Option<&KeptKey> {
        self.registry_key.as_ref()
    }

    fn keep_registry_key(&mut self, kept: KeptKey) -> Result<()> {
        self.supersede([(REGISTRY_KEY, tagged(REGISTRY_KEY, &kept.encode()))])?;
        self.registry_key = Some(kept);
        Ok(())
    }
}

fn encode(record: &QuorumRecord) -> (u8, Zeroizing<Vec<u8>>) {
    let (kind, bytes) = match record {
        QuorumRecord::Keys(snapshot) => (KEYS, snapshot.as_bytes()),
        QuorumRecord::Ceremony(snapshot) => (CEREMONY, snapshot.as_bytes()),
        QuorumRecord::Statements(bytes) => (STATEMENTS, bytes.as_slice()),
        QuorumRecord::QuorumStatement(bytes) => (QUORUM_STATEMENT, bytes.as_slice()),
        QuorumRecord::RevocationList { number, list } => {
            let numbered = [number.to_be_bytes().as_slice(), list].concat();
            return (REVOCATION_LIST, tagged(REVOCATION_LIST, &numbered));
        }
    };
    (kind, tagged(kind, bytes))
}

fn decode(record: &[u8]) -> Option<QuorumRecord> {
    let (&kind, bytes) = record.split_first()?;
    Some(match kind {
        KEYS => QuorumRecord::Keys(Snapshot::new(bytes.to_vec())),
        CEREMONY => QuorumRecord::Ceremony(Snapshot::new(bytes.to_vec())),
        STATEMENTS => QuorumRecord::Statements(bytes.to_vec()),
        QUORUM_STATEMENT => QuorumRecord::QuorumStatement(bytes.to_vec()),
        REVOCATION_LIST => {
            let (number, list) = bytes.split_first_chunk()?;
            QuorumRecord::RevocationList { number: u64::from_be_bytes(*number), list: list.to_vec() }
        }
        _ => return None,
    })
}
