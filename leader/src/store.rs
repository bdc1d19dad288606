//! What a leader must not forget: its machine's records, appended; the machine's checkpoint replaces them now and then.

use std::path::Path;

use quiver_ainq::{Deployment, Suite};
use quiver_role::{Leader, LeaderRecord};
use quiver_service::deployment_file::owner;
use quiver_service::node_state::{Missing, NodeState};
use quiver_service::secrets::Protection;

use crate::error::{Error, Result};

const ROLE: &str = "leader";
/// Note: the group led.
const GROUP: &str = "group";
/// Note: the id of the token that the machine enrols with.
const TOKEN: &str = "token";

/// The open state file.
#[derive(Debug)]
pub(crate) struct Store {
    state: NodeState,
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
        Ok((Self { state }, records.collect()))
    }

    /// Seed of the transport key.
    pub(crate) fn seed(&self) -> [u8; 32] {
        *self.state.seed()
    }

    /// The group led, if known yet.
    pub(crate) fn group(&self) -> Option<&str> {
        self.state.note(GROUP)
    }

    /// Whether an enrolment was begun with another token than this one.
    pub(crate) fn began_with_another(&self, token: &[u8; 16]) -> bool {
        self.state.note(TOKEN).is_some_and(|begun| begun != hex::encode(token))
    }

    /// Notes whom to be and begins anew, with no records.
    pub(crate) fn begin(&mut self, group: &str, token: &[u8; 16]) -> Result<()> {
        self.state.set_note(GROUP, group);
        self.state.set_note(TOKEN, &hex::encode(token));
        Ok(self.state.replace::<Vec<u8>>(&[])?)
    }

    /// Makes records durable.
    pub(crate) fn persist(&mut self, records: &[LeaderRecord]) -> Result<()> {
        let records: Vec<_> = records.iter().map(LeaderRecord::as_bytes).collect();
        Ok(self.state.append(&records)?)
    }

    /// Puts the machine's checkpoint in place of all records, if they have grown well beyond it.
    pub(crate) fn compact<S: Suite>(&mut self, machine: &Leader<S>) -> Result<()> {
        if !self.state.journal_outgrown() {
            return Ok(());
        }
        let checkpoint = machine.checkpoint();
        let records: Vec<_> = checkpoint.iter().map(LeaderRecord::as_bytes).collect();
        self.state.replace(&records).map_err(Error::from)
    }
}
