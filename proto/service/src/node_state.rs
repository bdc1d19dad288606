//! The state file of a drone, whatever its role: the seed of its transport key, a few notes, and its machine's records.

use std::collections::BTreeMap;
use std::path::Path;

use rand::RngCore;
use rand::rngs::OsRng;
use zeroize::Zeroizing;

use crate::secrets::Protection;
use crate::state_file::{Owner, Records, StateFile};
use crate::{Error, Result};

const SEED: u8 = 0;
const NOTES: u8 = 1;
const MACHINE: u8 = 2;
/// Name of the state file in the data directory.
const FILE: &str = "drone.state";

/// An open state file of a drone.
#[derive(Debug)]
pub struct NodeState {
    file: StateFile,
    seed: Zeroizing<[u8; 32]>,
    notes: BTreeMap<String, String>,
}

/// What happens if there is no state file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// It is created: the first start.
    Create,
    /// It is an error.
    Refuse,
}

impl NodeState {
    /// Whether the data directory holds a state file.
    pub fn exists(data_dir: &Path) -> bool {
        data_dir.join(FILE).symlink_metadata().is_ok()
    }

    /// Opens or creates the state file; also returns the machine's records, oldest first.
    ///
    /// # Errors
    /// Those of [`StateFile::open`] and [`StateFile::create`].
    pub fn open(
        data_dir: &Path,
        owner: &Owner,
        by: &Protection,
        missing: Missing,
    ) -> Result<(Self, Records)> {
        let path = data_dir.join(FILE);
        if missing == Missing::Create && !Self::exists(data_dir) {
            let mut seed = Zeroizing::new([0; 32]);
            OsRng.fill_bytes(seed.as_mut_slice());
            let notes = BTreeMap::new();
            let file = StateFile::create(&path, owner, by, &heading(&seed, &notes))?;
            return Ok((Self { file, seed, notes }, Records::new()));
        }
        let (file, records) = StateFile::open(&path, owner, by)?;
        let corrupt = |what| Error::Corrupt { path: path.clone(), offset: 0, what };
        let (mut seed, mut notes, mut machine) = (None, BTreeMap::new(), Records::new());
        for mut record in records {
            let Some((&tag, bytes)) = record.split_first() else {
                return Err(corrupt("a record is empty"));
            };
            match tag {
                SEED => seed = <[u8; 32]>::try_from(bytes).ok().map(Zeroizing::new),
                NOTES => {
                    let undecodable = |_| corrupt("the notes do not decode");
                    notes = serde_json::from_slice(bytes).map_err(undecodable)?;
                }
                MACHINE => {
                    record.copy_within(1.., 0);
                    let length = record.len() - 1;
                    record.truncate(length);
                    machine.push(record);
                }
                _ => return Err(corrupt("a record of an unknown kind")),
            }
        }
        let seed = seed.ok_or_else(|| corrupt("the transport key is missing"))?;
        Ok((Self { file, seed, notes }, machine))
    }

    /// Seed of the transport key.
    pub fn seed(&self) -> &[u8; 32] {
        &self.seed
    }

    /// A note of this name.
    pub fn note(&self, name: &str) -> Option<&str> {
        self.notes.get(name).map(String::as_str)
    }

    /// Sets a note; durable with the next [`Self::replace`].
    pub fn set_note(&mut self, name: &str, value: &str) {
        self.notes.insert(name.into(), value.into());
    }

    /// Replaces all records of the machine.
    ///
    /// # Errors
    /// Those of [`StateFile::replace`].
    pub fn replace<R: AsRef<[u8]>>(&mut self, machine: &[R]) -> Result<()> {
        let mut records = heading(&self.seed, &self.notes);
        records.extend(machine.iter().map(|record| tagged(MACHINE, record.as_ref())));
        self.file.replace(&records)
    }

    /// Adds records of the machine.
    ///
    /// # Errors
    /// Those of [`StateFile::append`].
    pub fn append<R: AsRef<[u8]>>(&mut self, machine: &[R]) -> Result<()> {
        let records: Records = machine.iter().map(|record| tagged(MACHINE, record.as_ref())).collect();
        self.file.append(&records)
    }

    /// Whether replacing everything pays ([`StateFile::journal_outgrown`]).
    pub fn journal_outgrown(&self) -> bool {
        self.file.journal_outgrown()
    }
}

fn heading(seed: &[u8; 32], notes: &BTreeMap<String, String>) -> Records {
    // A map of texts always serialises.
    let notes = serde_json::to_vec(notes).unwrap_or_default();
    vec![tagged(SEED, seed), tagged(NOTES, &notes)]
}

fn tagged(tag: u8, bytes: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut record = Zeroizing::new(Vec::with_capacity(1 + bytes.len()));
    record.push(tag);
    record.extend_from_slice(bytes);
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use quiver_crypto::Secret;

    #[test]
    fn seed_notes_and_records_come_back() {
        let directory = tempfile::tempdir().expect("tempdir");
        let owner = Owner { role: "edge".into(), deployment: "alps".into(), fingerprint: [1; 32] };
        let by = Protection::Key(Secret::new([2; 32]));
        let open = |missing| NodeState::open(directory.path(), &owner, &by, missing);
        assert!(open(Missing::Refuse).is_err());
        let (mut state, records) = open(Missing::Create).expect("create");
        assert!(records.is_empty());
        state.set_note("group", "alpha");
        state.replace(&["one"]).expect("replace");
        state.append(&["two", ""]).expect("append");
        let seed = *state.seed();
        drop(state);
        let (state, records) = open(Missing::Create).expect("open");
        assert_eq!((state.seed(), state.note("group")), (&seed, Some("alpha")));
        let records: Vec<_> = records.iter().map(|record| record.as_slice()).collect();
        assert_eq!(records, [&b"one"[..], b"two", b""]);
    }
}
