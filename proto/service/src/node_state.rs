//! The state file of a drone, whatever its role: the seed of its transport key, a few notes, its machine's
//! records, and attachments: what else the drone holds that must not be lost or seen, such as its attribute
//! keys.

use std::collections::BTreeMap;
use std::path::Path;

use quiver_crypto::canonical::{Reader, Writer};
use rand::RngCore;
use rand::rngs::OsRng;
use zeroize::Zeroizing;

use crate::secrets::Protection;
use crate::state_file::{Owner, Records, StateFile, tagged};
use crate::{Error, Result};

const SEED: u8 = 0;
const NOTES: u8 = 1;
const MACHINE: u8 = 2;
const ATTACHMENT: u8 = 3;
/// Name of the state file in the data directory.
const FILE: &str = "drone.state";

/// An open state file of a drone.
#[derive(Debug)]
pub struct NodeState {
    file: StateFile,
    seed: Zeroizing<[u8; 32]>,
    notes: BTreeMap<String, String>,
    attachments: Attachments,
}

/// Attachments by name.
type Attachments = BTreeMap<String, Zeroizing<Vec<u8>>>;

/// Behaviour if there is no state file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The file is created: the first start.
    Create,
    /// A missing file is an error.
    Refuse,
}

impl NodeState {
    /// Returns true if the data directory holds a state file.
    pub fn exists(data_dir: &Path) -> bool {
        data_dir.join(FILE).symlink_metadata().is_ok()
    }

    /// Refuses a KGC's data directory: a drone has one of its own.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub fn refuse_kgc(data_dir: &Path) -> Result<()> {
        let found = ["master.state", "quorum.state", "transport.state"]
            .iter()
            .find(|name| data_dir.join(name).exists());
        match found.filter(|_| !Self::exists(data_dir)) {
            Some(name) => Err(Error::Config(format!(
                "{} is the data directory of a KGC ({name}): give this service one of its own by --data-dir",
                data_dir.display()
            ))),
            None => Ok(()),
        }
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
            let (notes, attachments) = (BTreeMap::new(), Attachments::new());
            let file = StateFile::create(&path, owner, by, &heading(&seed, &notes, &attachments))?;
            return Ok((Self { file, seed, notes, attachments }, Records::new()));
        }
        let (file, records) = StateFile::open(&path, owner, by)?;
        let corrupt = |what| Error::Corrupt { path: path.clone(), offset: 0, what };
        let (mut seed, mut notes, mut machine) = (None, BTreeMap::new(), Records::new());
        let mut attachments = Attachments::new();
        for record in records {
            let Some((&tag, bytes)) = record.split_first() else {
                return Err(corrupt("a record is empty"));
            };
            match tag {
                SEED => seed = <[u8; 32]>::try_from(bytes).ok().map(Zeroizing::new),
                NOTES => {
                    let undecodable = |_| corrupt("the notes do not decode");
                    notes = serde_json::from_slice(bytes).map_err(undecodable)?;
                }
                MACHINE => machine.push(untagged(record)),
                // A later one of the same name takes the place of those before.
                ATTACHMENT => {
                    let (name, bytes) =
                        read_attachment(bytes).ok_or_else(|| corrupt("an attachment does not decode"))?;
                    attachments.insert(name, bytes);
                }
                _ => return Err(corrupt("a record of an unknown kind")),
            }
        }
        let seed = seed.ok_or_else(|| corrupt("the transport key is missing"))?;
        Ok((Self { file, seed, notes, attachments }, machine))
    }

    /// Seed of the transport key.
    pub fn seed(&self) -> &[u8; 32] {
        &self.seed
    }

    /// A note of this name.
    pub fn note(&self, name: &str) -> Option<&str> {
        self.notes.get(name).map(String::as_str)
    }

    /// Sets a note; durable with the next [`Self::replace`] or [`Self::attach`].
    pub fn set_note(&mut self, name: &str, value: &str) {
        self.notes.insert(name.into(), value.into());
    }

    /// An attachment of this name. Secret.
    pub fn attachment(&self, name: &str) -> Option<&[u8]> {
        self.attachments.get(name).map(|bytes| bytes.as_slice())
    }

    /// Sets an attachment, durably. The whole file is replaced: what it takes the place of is not readable
    /// any more.
    ///
    /// # Errors
    /// Those of [`StateFile::records`] and [`StateFile::replace`]; the attachment is then as it was.
    pub fn attach(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let mut attachments = self.attachments.clone();
        attachments.insert(name.into(), Zeroizing::new(bytes.to_vec()));
        let mut records = heading(&self.seed, &self.notes, &attachments);
        let of_the_machine = |record: &Zeroizing<Vec<u8>>| record.first() == Some(&MACHINE);
        records.extend(self.file.records()?.into_iter().filter(of_the_machine));
        self.file.replace(&records)?;
        self.attachments = attachments;
        Ok(())
    }

    /// Replaces all records of the machine. Notes and attachments stay.
    ///
    /// # Errors
    /// Those of [`StateFile::replace`].
    pub fn replace<R: AsRef<[u8]>>(&mut self, machine: &[R]) -> Result<()> {
        let mut records = heading(&self.seed, &self.notes, &self.attachments);
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

    /// Reads back the machine's records, oldest first, without deriving the file's key once more.
    ///
    /// # Errors
    /// Those of [`StateFile::records`].
    pub fn machine(&mut self) -> Result<Records> {
        let tagged = self.file.records()?.into_iter().filter(|record| record.first() == Some(&MACHINE));
        Ok(tagged.map(untagged).collect())
    }

    /// Returns true if replacing everything pays ([`StateFile::journal_outgrown`]).
    pub fn journal_outgrown(&self) -> bool {
        self.file.journal_outgrown()
    }
}

fn heading(seed: &[u8; 32], notes: &BTreeMap<String, String>, attachments: &Attachments) -> Records {
    // A map of texts always serialises.
    let notes = serde_json::to_vec(notes).unwrap_or_default();
    let mut records = vec![tagged(SEED, seed), tagged(NOTES, &notes)];
    records.extend(attachments.iter().map(|(name, bytes)| attachment(name, bytes)));
    records
}

/// Tag ‖ lp(name) ‖ bytes.
fn attachment(name: &str, bytes: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut record = Writer::with_capacity(1 + 4 + name.len() + bytes.len());
    record.u8(ATTACHMENT).lp(name.as_bytes()).fixed(bytes);
    Zeroizing::new(record.finish())
}

fn read_attachment(bytes: &[u8]) -> Option<(String, Zeroizing<Vec<u8>>)> {
    let mut reader = Reader::new(bytes);
    let name = String::from_utf8(reader.lp(bytes.len()).ok()?.to_vec()).ok()?;
    let rest = reader.take(reader.remaining()).ok()?;
    Some((name, Zeroizing::new(rest.to_vec())))
}

/// Removes the tag in place, so that no second copy of a secret is left behind.
fn untagged(mut record: Zeroizing<Vec<u8>>) -> Zeroizing<Vec<u8>> {
    let rest = 1..record.len();
    let length = rest.len();
    record.copy_within(rest, 0);
    record.truncate(length);
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use quiver_crypto::Secret;

    #[test]
    fn attachments_outlive_the_machines_records_and_replace_each_other() {
        let directory = tempfile::tempdir().expect("tempdir");
        let owner = Owner { role: "edge".into(), deployment: "alps".into(), fingerprint: [1; 32] };
        let by = Protection::Key(Secret::new([2; 32]));
        let open = || NodeState::open(directory.path(), &owner, &by, Missing::Create).expect("open");
        let (mut state, _) = open();
        assert_eq!(state.attachment("keys"), None);
        state.replace(&["one"]).expect("replace");
        state.attach("keys", b"old").expect("attach");
        state.attach("other", b"").expect("attach");
        state.append(&["two"]).expect("append");
        state.attach("keys", b"new").expect("attach");
        let read_back = state.machine().expect("read back");
        drop(state);
        let (mut state, records) = open();
        assert_eq!(records.iter().map(|record| &record[..]).collect::<Vec<_>>(), [b"one", b"two"]);
        assert_eq!(records, read_back);
        assert_eq!(
            (state.attachment("keys"), state.attachment("other")),
            (Some(&b"new"[..]), Some(&b""[..]))
        );
        state.replace(&["three"]).expect("replace");
        drop(state);
        let (state, records) = open();
        assert_eq!((records.len(), state.attachment("keys")), (1, Some(&b"new"[..])));
    }

    #[test]
    fn what_an_attachment_takes_the_place_of_is_gone_from_the_file() {
        let directory = tempfile::tempdir().expect("tempdir");
        let owner = Owner { role: "leader".into(), deployment: "alps".into(), fingerprint: [1; 32] };
        let by = Protection::Key(Secret::new([2; 32]));
        let path = directory.path().join(FILE);
        let (mut state, _) = NodeState::open(directory.path(), &owner, &by, Missing::Create).expect("create");
        state.replace(&["one"]).expect("replace");
        state.append(&["two", "three"]).expect("append");
        state.attach("keys", b"the former key").expect("attach");
        state.append(&["four"]).expect("append");
        // No replacement of the machine's records follows: the service goes on.
        state.attach("keys", b"").expect("attach");
        state.append(&["five"]).expect("append");
        drop(state);
        let (file, records) = StateFile::open(&path, &owner, &by).expect("open");
        let holds = |what: &[u8]| {
            records.iter().filter(|record| record.windows(what.len()).any(|part| part == what)).count()
        };
        assert_eq!((holds(b"the former key"), holds(b"keys")), (0, 1));
        drop(file);
        let (_, machine) = NodeState::open(directory.path(), &owner, &by, Missing::Refuse).expect("open");
        let machine: Vec<_> = machine.iter().map(|record| record.as_slice()).collect();
        assert_eq!(machine, [&b"one"[..], b"two", b"three", b"four", b"five"]);
    }

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
