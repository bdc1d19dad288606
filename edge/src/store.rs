//! What an edge must not forget: its machine's whole state, replaced each time.
//!
//! Never appended: the state holds ratchets and one-time points, and a superseded one must not stay readable in a journal.

use std::path::Path;
use std::sync::{Arc, Mutex};

use quiver_ainq::{Deployment, Suite};
use quiver_role::Snapshot;
use quiver_service::deployment_file::owner;
use quiver_service::drone::keys::{Keys, SharedState, locked};
use quiver_service::node_state::{Missing, NodeState};
use quiver_service::secrets::Protection;

use crate::error::Result;

const ROLE: &str = "edge";
/// Note: the group to join.
const GROUP: &str = "group";
/// Attachment: the state of an edge without a name.
const ANONYMOUS: &str = "unnamed";
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
    ) -> Result<(Self, Option<Snapshot>)> {
        let (state, mut records) = NodeState::open(data_dir, &owner(deployment, ROLE), by, missing)?;
        let newest = records.pop().map(|mut record| Snapshot::new(std::mem::take(&mut *record)));
        Ok((Self { state: Arc::new(Mutex::new(state)) }, newest))
    }

    /// The machine's state as it was last persisted.
    pub(crate) fn newest(&self) -> Result<Option<Snapshot>> {
        let newest = locked(&self.state).machine()?.pop();
        Ok(newest.map(|mut record| Snapshot::new(std::mem::take(&mut *record))))
    }

    /// Seed of the transport key.
    pub(crate) fn seed(&self) -> [u8; 32] {
        *locked(&self.state).seed()
    }

    /// The group to join, if known.
    pub(crate) fn group(&self) -> Option<String> {
        locked(&self.state).note(GROUP).map(String::from)
    }

    /// Notes the group to join; durable with the machine's next state.
    pub(crate) fn set_group(&self, group: &str) {
        locked(&self.state).set_note(GROUP, group);
    }

    /// Whether an enrolment was begun with this very token.
    pub(crate) fn began_with(&self, token: &[u8; 16]) -> bool {
        locked(&self.state).note(TOKEN).is_some_and(|begun| begun == hex::encode(token))
    }

    /// Notes the token and begins anew, with no state of the machine.
    pub(crate) fn begin(&self, token: &[u8; 16]) -> Result<()> {
        let mut state = locked(&self.state);
        state.set_note(TOKEN, &hex::encode(token));
        Ok(state.replace::<Vec<u8>>(&[])?)
    }

    /// Makes the machine's state durable.
    pub(crate) fn persist(&self, state: &Snapshot) -> Result<()> {
        Ok(locked(&self.state).replace(&[state.as_bytes()])?)
    }

    /// What an edge without a name persisted: how often which leader was answered.
    pub(crate) fn anonymous(&self) -> Option<Snapshot> {
        locked(&self.state).attachment(ANONYMOUS).map(|bytes| Snapshot::new(bytes.to_vec()))
    }

    /// Makes that durable.
    pub(crate) fn persist_anonymous(&self, state: &Snapshot) -> Result<()> {
        Ok(locked(&self.state).attach(ANONYMOUS, state.as_bytes())?)
    }

    /// The drone's attribute keys, in the same file.
    pub(crate) fn keys<S: Suite>(&self, deployment: &Deployment<S>) -> Keys<S> {
        Keys::new(Arc::clone(&self.state), deployment.clone())
    }
}
