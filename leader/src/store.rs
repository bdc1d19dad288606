//! What a leader must not forget: its machine's records, appended; the machine's checkpoint replaces them now and then.

use std::path::Path;
use std::sync::{Arc, Mutex};

use quiver_ainq::{Deployment, Suite};
use quiver_role::{Leader, LeaderRecord};
use quiver_service::deployment_file::owner;
use quiver_service::drone::keys::{Keys, SharedState, locked};
use quiver_service::node_state::{Missing, NodeState};
use quiver_service::secrets::Protection;

use crate::error::{Error, Result};

const ROLE: &str = "leader";
/// Note: the group led.
const GROUP: &str = "group";
/// Note: the id of the token that the machine enrols with.
const TOKEN: &str = "token";

/// The open state file. Clones are of the same file, for the tasks of this process.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    state: SharedState,
}

impl Store {
    /// Opens or creates the state file.
    pub(crate) fn open<S: Suite>(
        data_dir: &Path,
        deployment: &Deployment<S>,
        by: &Protection,
        missing: Missing,
    ) -> Result<(Self, Vec<LeaderRecord>)> {
        let (state, records) = NodeState::open(data_dir, &owner(deployment, ROLE), by, missing)?;
        let records = records.into_iter().map(|mut record| LeaderRecord::new(std::mem::take(&mut *record)));
        Ok((Self { state: Arc::new(Mutex::new(state)) }, records.collect()))
    }

    /// Seed of the transport key.
    pub(crate) fn seed(&self) -> [u8; 32] {
        *locked(&self.state).seed()
    }

    /// The group led, if known yet.
    pub(crate) fn group(&self) -> Option<String> {
        locked(&self.state).note(GROUP).map(String::from)
    }

    /// Whether an enrolment was begun with another token than this one.
    pub(crate) fn began_with_another(&self, token: &[u8; 16]) -> bool {
        locked(&self.state).note(TOKEN).is_some_and(|begun| begun != hex::encode(token))
    }

    /// Notes whom to be and begins anew, with no records.
    pub(crate) fn begin(&self, group: &str, token: &[u8; 16]) -> Result<()> {
        let mut state = locked(&self.state);
        state.set_note(GROUP, group);
        state.set_note(TOKEN, &hex::encode(token));
        Ok(state.replace::<Vec<u8>>(&[])?)
    }

    /// Makes records durable.
    pub(crate) fn persist(&self, records: &[LeaderRecord]) -> Result<()> {
        let records: Vec<_> = records.iter().map(LeaderRecord::as_bytes).collect();
        Ok(locked(&self.state).append(&records)?)
    }

    /// Puts records in place of everything in the file but notes and attribute keys.
    pub(crate) fn replace(&self, records: &[LeaderRecord]) -> Result<()> {
        let records: Vec<_> = records.iter().map(LeaderRecord::as_bytes).collect();
        Ok(locked(&self.state).replace(&records)?)
    }

    /// The leader's attribute keys, in the same file.
    pub(crate) fn keys<S: Suite>(&self, deployment: &Deployment<S>) -> Keys<S> {
        Keys::new(Arc::clone(&self.state), deployment.clone())
    }

    /// Makes records durable that this machine has made, and puts its checkpoint in place of all records if they have grown
    /// well beyond it: whether it leads or stands by, the file is bounded by what there is to remember.
    pub(crate) fn persist_of<S: Suite>(&self, machine: &Leader<S>, records: &[LeaderRecord]) -> Result<()> {
        match self.persist(records) {
            // The checkpoint has these records already, so it takes their place as well.
            Err(Error::Service(quiver_service::Error::JournalFull { .. })) => {
                self.replace(&machine.checkpoint())
            }
            Ok(()) if self.journal_outgrown() => {
                if let Err(error) = self.replace(&machine.checkpoint()) {
                    // What was to be durable is: the journal only grows for longer.
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

    fn journal_outgrown(&self) -> bool {
        locked(&self.state).journal_outgrown()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use quiver_ainq::{MasterSecret, Name, Ristretto255};
    use quiver_role::leader::LeaderTiming;
    use quiver_role::{Kgcs, LeaderConfig};
    use rand::rngs::OsRng;

    fn leader(deployment: &Deployment<Ristretto255>, records: Vec<LeaderRecord>) -> Leader<Ristretto255> {
        let config = LeaderConfig {
            deployment: deployment.clone(),
            group: Name::new("alpha").expect("name"),
            token: None,
            kgcs: Kgcs::single(),
            allow: BTreeSet::new(),
            max_members: 10,
            strategy: quiver_ainq::StrategyKind::Flat,
            timing: LeaderTiming::default(),
        };
        Leader::new(config, records).expect("good records")
    }

    #[test]
    fn outgrown_journal_is_replaced_by_a_checkpoint_that_says_the_same() {
        let directory = tempfile::tempdir().expect("tempdir");
        let name = Name::new("alps").expect("name");
        let deployment = Deployment::new(name, MasterSecret::generate(&mut OsRng).public());
        let by = Protection::from_key_text("ab".repeat(32).as_bytes(), "test").expect("key");
        let open = || Store::open(directory.path(), &deployment, &by, Missing::Create).expect("open");
        let (store, records) = open();
        let machine = leader(&deployment, records);
        store.begin("alpha", &[1; 16]).expect("begin");
        store.persist(&machine.checkpoint()).expect("persist");
        assert!(!store.journal_outgrown(), "too small to pay");
        let small = std::fs::metadata(directory.path().join("drone.state")).expect("metadata").len();
        // Changes may be applied twice, so the same ones over and over make a long journal.
        let many: Vec<_> = std::iter::repeat_with(|| machine.checkpoint()).take(5000).flatten().collect();
        while !store.journal_outgrown() {
            store.persist(&many).expect("persist");
        }
        store.persist_of(&machine, &machine.checkpoint()).expect("persist and compact");
        drop(store);
        let size = std::fs::metadata(directory.path().join("drone.state")).expect("metadata").len();
        assert!(size <= small, "{size} bytes");
        let (store, records) = open();
        assert_eq!(store.group().as_deref(), Some("alpha"));
        assert!(store.began_with_another(&[2; 16]) && !store.began_with_another(&[1; 16]));
        assert_eq!(leader(&deployment, records).status(), machine.status());
    }

    #[test]
    fn file_of_a_leader_that_never_leads_stays_within_a_bound() {
        let directory = tempfile::tempdir().expect("tempdir");
        let name = Name::new("alps").expect("name");
        let deployment = Deployment::new(name, MasterSecret::generate(&mut OsRng).public());
        let by = Protection::from_key_text("ab".repeat(32).as_bytes(), "test").expect("key");
        let open = || Store::open(directory.path(), &deployment, &by, Missing::Create).expect("open");
        let (store, records) = open();
        let machine = leader(&deployment, records);
        store.begin("alpha", &[1; 16]).expect("begin");
        let session: Vec<_> = std::iter::repeat_with(|| machine.checkpoint()).take(1000).flatten().collect();
        let (mut written, mut largest) = (0, 0);
        let of_a_session: u64 = session.iter().map(|record| record.as_bytes().len() as u64).sum();
        // No epoch of its own is ever activated.
        while written < 8 << 20 {
            store.persist_of(&machine, &session).expect("persist");
            written += of_a_session;
            let size = std::fs::metadata(directory.path().join("drone.state")).expect("metadata").len();
            largest = largest.max(size);
        }
        assert!(largest < 3 << 19, "{largest} bytes");
        drop(store);
        let (_, records) = open();
        assert_eq!(leader(&deployment, records).status(), machine.status());
    }
}
