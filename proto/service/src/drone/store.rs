//! The drone's state file, shared by the tasks of one process.

use std::path::Path;
use std::sync::{Arc, Mutex};

use quiver_ainq::{Deployment, Ristretto255};

use super::keys::{Keys, SharedState, locked};
use crate::Result;
use crate::deployment_file::owner;
use crate::node_state::{Missing, NodeState};
use crate::secrets::Protection;
use crate::state_file::Records;

/// Note: the group that is led or to be joined.
const GROUP: &str = "group";
/// Note: the id of the token that the machine enrols with.
const TOKEN: &str = "token";

/// The open state file. Clones are of the same file.
#[derive(Clone, Debug)]
pub struct StateStore(SharedState);

impl StateStore {
    /// Opens or creates the state file of this role; also returns the machine's records, the oldest first.
    ///
    /// # Errors
    /// Those of [`NodeState::open`].
    pub fn open(
        data_dir: &Path,
        (deployment, role): (&Deployment<Ristretto255>, &str),
        by: &Protection,
        missing: Missing,
    ) -> Result<(Self, Records)> {
        let (state, records) = NodeState::open(data_dir, &owner(deployment, role), by, missing)?;
        Ok((Self(Arc::new(Mutex::new(state))), records))
    }

    /// Reads the machine's records back, without stretching the passphrase once more.
    ///
    /// # Errors
    /// Those of [`NodeState::machine`].
    pub fn records(&self) -> Result<Records> {
        locked(&self.0).machine()
    }

    /// Seed of the transport key.
    pub fn seed(&self) -> [u8; 32] {
        *locked(&self.0).seed()
    }

    /// The group, if it is known.
    pub fn group(&self) -> Option<String> {
        locked(&self.0).note(GROUP).map(String::from)
    }

    /// Notes the group; durable with the next records that are replaced.
    pub fn set_group(&self, group: &str) {
        locked(&self.0).set_note(GROUP, group);
    }

    /// Returns true if an enrolment was begun with this very token.
    pub fn began_with(&self, token: &[u8; 16]) -> bool {
        locked(&self.0).note(TOKEN).is_some_and(|begun| begun == hex::encode(token))
    }

    /// Notes the token, and the group if it is known, and begins anew, with no records of the machine.
    ///
    /// # Errors
    /// Those of writing the file.
    pub fn begin(&self, group: Option<&str>, token: &[u8; 16]) -> Result<()> {
        group.inspect(|group| self.set_group(group));
        locked(&self.0).set_note(TOKEN, &hex::encode(token));
        self.replace::<Vec<u8>>(&[])
    }

    /// Adds records of the machine, durably.
    ///
    /// # Errors
    /// Those of writing the file.
    pub fn append<R: AsRef<[u8]>>(&self, records: &[R]) -> Result<()> {
        locked(&self.0).append(records)
    }

    /// Puts records in place of all records of the machine, durably.
    ///
    /// # Errors
    /// Those of writing the file.
    pub fn replace<R: AsRef<[u8]>>(&self, records: &[R]) -> Result<()> {
        locked(&self.0).replace(records)
    }

    /// Returns true if replacing everything pays.
    pub fn journal_outgrown(&self) -> bool {
        locked(&self.0).journal_outgrown()
    }

    /// An attachment of this name.
    pub fn attachment(&self, name: &str) -> Option<Vec<u8>> {
        locked(&self.0).attachment(name).map(<[u8]>::to_vec)
    }

    /// Sets an attachment, durably.
    ///
    /// # Errors
    /// Those of writing the file.
    pub fn attach(&self, name: &str, bytes: &[u8]) -> Result<()> {
        locked(&self.0).attach(name, bytes)
    }

    /// The drone's keys from the KGCs, in the same file.
    pub fn keys(&self, deployment: &Deployment<Ristretto255>) -> Keys {
        Keys::new(Arc::clone(&self.0), deployment.clone())
    }
}
