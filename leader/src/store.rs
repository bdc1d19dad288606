//! Persists a leader: its machine's records are appended to the state file, and its checkpoint replaces them
//! now and then.

use quiver_ainq::Ristretto255;
use quiver_group::{Leader, LeaderRecord};
use quiver_service::drone::StateStore;
use quiver_service::state_file::Records;
use quiver_service::{Error, Result};

/// The machine's records as they were stored.
pub(crate) fn decode(records: Records) -> Vec<LeaderRecord> {
    records.into_iter().map(|mut record| LeaderRecord::new(std::mem::take(&mut *record))).collect()
}

fn encoded(records: &[LeaderRecord]) -> Vec<&[u8]> {
    records.iter().map(LeaderRecord::as_bytes).collect()
}

/// Persists records that this machine has made, and puts its checkpoint in place of all records if they have
/// grown well beyond it: whether it leads or stands by, the file is bounded by what there is to remember.
///
/// `void`: the file has a secret that is void, because it was not compacted when it should have been. It is
/// tried again with the next records.
pub(crate) fn persist(
    store: &StateStore,
    void: &mut bool,
    machine: &Leader<Ristretto255>,
    records: &[LeaderRecord],
) -> Result<()> {
    let compact = || store.replace(&encoded(&machine.checkpoint()));
    // A key that stepped is to leave the disk: what it was before opens what was recorded before.
    if *void || records.iter().any(LeaderRecord::erases) {
        match compact() {
            Ok(()) => {
                *void = false;
                return Ok(());
            }
            // The records themselves matter more than what they make void.
            Err(error) => {
                *void = true;
                tracing::warn!(%error, "a key that is void stays in the state file until it is compacted");
            }
        }
    }
    match store.append(&encoded(records)) {
        // The checkpoint has these records already, so it takes their place as well.
        Err(Error::JournalFull { .. }) => compact(),
        Ok(()) if store.journal_outgrown() => {
            if let Err(error) = compact() {
                // The records are durable all the same: the journal only grows for longer.
                tracing::warn!(
                    %error,
                    "the state file was not compacted; it is tried again with the next records"
                );
            }
            Ok(())
        }
        stored => stored,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use quiver_ainq::{Deployment, MasterSecret, Name, Ristretto255};
    use quiver_group::LeaderConfig;
    use quiver_service::node_state::Missing;
    use quiver_service::secrets::Protection;
    use rand::rngs::OsRng;
    use tempfile::TempDir;

    /// A data directory, and what opens its state file.
    struct Bench {
        directory: TempDir,
        deployment: Deployment<Ristretto255>,
        by: Protection,
    }

    impl Bench {
        fn new() -> Self {
            let name = Name::new("alps").expect("name");
            Self {
                directory: tempfile::tempdir().expect("tempdir"),
                deployment: Deployment::new(name, MasterSecret::generate(&mut OsRng).public()),
                by: Protection::from_key_text("ab".repeat(32).as_bytes(), "test").expect("key"),
            }
        }

        fn open(&self) -> (StateStore, Records) {
            let owner = (&self.deployment, "leader");
            StateStore::open(self.directory.path(), owner, &self.by, Missing::Create).expect("open")
        }

        fn size(&self) -> u64 {
            std::fs::metadata(self.directory.path().join("drone.state")).expect("metadata").len()
        }
    }

    fn leader(deployment: &Deployment<Ristretto255>, records: Records) -> Leader<Ristretto255> {
        let config = LeaderConfig {
            max_members: 10,
            ..LeaderConfig::new(deployment.clone(), Name::new("alpha").expect("name"), None)
        };
        Leader::new(config, decode(records)).expect("good records")
    }

    #[test]
    fn outgrown_journal_is_replaced_by_a_checkpoint_that_says_the_same() {
        let bench = Bench::new();
        let (store, records) = bench.open();
        let machine = leader(&bench.deployment, records);
        store.begin(Some("alpha"), &[1; 16]).expect("begin");
        store.append(&encoded(&machine.checkpoint())).expect("persist");
        assert!(!store.journal_outgrown(), "too small to pay");
        let small = bench.size();
        // Changes may be applied twice, so the same ones over and over make a long journal.
        let many: Vec<_> = std::iter::repeat_with(|| machine.checkpoint()).take(5000).flatten().collect();
        while !store.journal_outgrown() {
            store.append(&encoded(&many)).expect("persist");
        }
        persist(&store, &mut false, &machine, &machine.checkpoint()).expect("persist and compact");
        drop(store);
        let size = bench.size();
        assert!(size <= small, "{size} bytes");
        let (store, records) = bench.open();
        assert_eq!(store.group().as_deref(), Some("alpha"));
        assert!(!store.began_with(&[2; 16]) && store.began_with(&[1; 16]));
        assert_eq!(leader(&bench.deployment, records).status(), machine.status());
    }

    #[test]
    fn void_key_leaves_the_file_with_the_next_records_if_it_could_not_before() {
        let bench = Bench::new();
        let (store, records) = bench.open();
        let machine = leader(&bench.deployment, records);
        store.begin(Some("alpha"), &[1; 16]).expect("begin");
        let marker: &[u8] = b"a key that is void";
        store.append(&[marker]).expect("persist");
        let mut void = false;
        persist(&store, &mut void, &machine, &machine.checkpoint()).expect("persist");
        drop(store);
        let (store, records) = bench.open();
        assert!(records.iter().any(|record| record.as_slice() == marker), "nothing made it void");
        // As after a checkpoint that failed.
        void = true;
        persist(&store, &mut void, &machine, &machine.checkpoint()).expect("persist");
        assert!(!void);
        drop(store);
        let (_, records) = bench.open();
        assert!(!records.is_empty() && records.iter().all(|record| record.as_slice() != marker));
    }

    #[test]
    fn file_of_a_leader_that_never_leads_stays_within_a_bound() {
        let bench = Bench::new();
        let (store, records) = bench.open();
        let machine = leader(&bench.deployment, records);
        store.begin(Some("alpha"), &[1; 16]).expect("begin");
        let session: Vec<_> = std::iter::repeat_with(|| machine.checkpoint()).take(1000).flatten().collect();
        let (mut written, mut largest) = (0, 0);
        let of_a_session: u64 = session.iter().map(|record| record.as_bytes().len() as u64).sum();
        // No epoch of its own is ever activated.
        while written < 8 << 20 {
            persist(&store, &mut false, &machine, &session).expect("persist");
            written += of_a_session;
            let size = bench.size();
            largest = largest.max(size);
        }
        assert!(largest < 3 << 19, "{largest} bytes");
        drop(store);
        let (_, records) = bench.open();
        assert_eq!(leader(&bench.deployment, records).status(), machine.status());
    }
}
