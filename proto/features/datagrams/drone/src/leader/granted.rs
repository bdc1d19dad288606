//! System ids that are granted: those of the settings, and those granted while the leader runs, which it
//! stores.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quiver_ainq::{LEADER_SLOT, Name, Ristretto255};
use quiver_bridge::EpochKeySender;
use quiver_group::{Leader, LeaderEvent};
use quiver_mavlink::SystemIds;
use quiver_service::drone::feature::{RoleMachine, RunningNode};
use quiver_service::drone::request::{Answered, json};
use quiver_service::drone::running::ENDING;
use quiver_service::drone::{Error, Result, StateStore};
use quiver_service::terminal::table;
use serde::{Deserialize, Serialize};

/// Attachment in the state file: an encoded table without slots.
const ATTACHMENT: &str = "system-ids";

/// Request about system ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SystemIdRequest {
    /// Grant one.
    Grant {
        /// The member's name.
        name: String,
        /// The system id.
        id: u32,
    },
    /// Withdraw this name's.
    Withdraw(String),
    /// All that are granted.
    List,
}

/// A system id that is granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GrantRow {
    /// The system id.
    pub(crate) system_id: u32,
    /// The name that has it.
    pub(crate) name: String,
    /// Slot of the drone, if it is a member; `None` for the leader as well.
    pub(crate) slot: Option<u32>,
    /// True if it is a member, or the leader.
    pub(crate) member: bool,
    /// Whether it is none because this leader evicted it since it started.
    #[serde(default)]
    pub(crate) evicted: bool,
}

impl GrantRow {
    /// Writes the table for people.
    pub(crate) fn table(rows: &[Self]) -> String {
        let standing = |row: &Self| match (row.member, row.slot) {
            (false, _) if row.evicted => "evicted".into(),
            (false, _) => "not a member".into(),
            (true, Some(slot)) => format!("member in slot {slot}"),
            (true, None) => "leader".into(),
        };
        let cells: Vec<_> =
            rows.iter().map(|row| [row.system_id.to_string(), row.name.clone(), standing(row)]).collect();
        table(["SYSTEM", "NAME", "STANDING"], &cells)
    }
}

/// The table of system ids of a leader. Clones are of the same.
#[derive(Debug)]
pub(crate) struct Granted {
    tables: Arc<Mutex<Tables>>,
    store: StateStore,
    /// Takes the table to the bridge, and to whoever spreads it.
    epoch_keys: Arc<EpochKeySender<Ristretto255>>,
}

#[derive(Debug)]
struct Tables {
    /// Grants of the settings.
    given: SystemIds,
    /// Granted while the leader ran.
    stored: SystemIds,
    /// Grants of both kinds, with slots.
    all: SystemIds,
    /// Names of those that were evicted since the leader started.
    evicted: BTreeSet<String>,
}

impl Tables {
    /// Joins both tables; slots stay.
    fn merge(&mut self) -> std::result::Result<(), quiver_mavlink::MavlinkError> {
        let mut all = self.given.clone();
        for (name, grant) in self.stored.iter().filter(|(name, _)| self.given.of_name(name).is_none()) {
            all.grant(name, grant.system_id)?;
        }
        for (name, grant) in self.all.iter() {
            all.set_slot(name, grant.slot);
        }
        self.all = all;
        self.evicted.retain(|name| self.all.of_name(name).is_some());
        self.mark_evicted();
        Ok(())
    }

    /// Marks whoever was evicted and has no slot.
    fn mark_evicted(&mut self) {
        for name in &self.evicted {
            self.all.set_evicted(name);
        }
    }
}

impl Clone for Granted {
    fn clone(&self) -> Self {
        Self {
            tables: Arc::clone(&self.tables),
            store: self.store.clone(),
            epoch_keys: Arc::clone(&self.epoch_keys),
        }
    }
}

impl Granted {
    /// Opens the grants of the settings, and those in the state file.
    ///
    /// # Errors
    /// If both grant one id to different names, or the state file's are not what was stored.
    pub(crate) fn open(
        given: SystemIds,
        store: &StateStore,
        epoch_keys: Arc<EpochKeySender<Ristretto255>>,
    ) -> Result<Self> {
        let wrong = |error: &dyn std::fmt::Display| Error::config(format!("`system_id`: {error}"));
        let stored = store.attachment(ATTACHMENT).map(|bytes| SystemIds::decode(&bytes)).transpose();
        let stored = stored.map_err(|error| wrong(&error))?.unwrap_or_default();
        let mut tables = Tables { given, stored, all: SystemIds::new(), evicted: BTreeSet::new() };
        tables.merge().map_err(|error| wrong(&error))?;
        Ok(Self { tables: Arc::new(Mutex::new(tables)), store: store.clone(), epoch_keys })
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        // Each table is replaced as a whole.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes in which slots those are to whom system ids are granted, and tells the bridge.
    pub(crate) fn place(&self, leader: &Leader<Ristretto255>) {
        let mut tables = self.tables();
        if !tables.all.is_empty() {
            let has_id = |name: &Name| tables.all.of_name(name.as_str()).is_some();
            let members = leader.members().filter(|(_, name)| has_id(name));
            let mut slots: BTreeMap<_, _> =
                members.map(|(slot, name)| (name.as_str().to_owned(), slot)).collect();
            slots.extend(leader.status().name.map(|own| (own.to_string(), LEADER_SLOT)));
            let granted: Vec<_> = tables.all.iter().map(|(name, _)| name.to_owned()).collect();
            for name in granted {
                tables.all.set_slot(&name, slots.get(&name).copied());
            }
            tables.evicted.retain(|name| !slots.contains_key(name));
            tables.mark_evicted();
        }
        self.epoch_keys.group_state.set_table(tables.all.clone());
    }

    /// Notes who is evicted, so that ends can tell it from a leave.
    pub(crate) fn note_eviction(&self, event: &LeaderEvent) {
        let (LeaderEvent::Removed { name, evicted: true, .. } | LeaderEvent::Barred(name)) = event else {
            return;
        };
        let mut tables = self.tables();
        if tables.all.of_name(name.as_str()).is_some() {
            tables.evicted.insert(name.to_string());
            // A drone that still has a slot is marked when the table is told without it.
            if tables.all.set_evicted(name.as_str()) {
                self.epoch_keys.group_state.set_table(tables.all.clone());
            }
        }
    }

    /// Answers a subcommand.
    pub(crate) async fn answer(&self, node: &dyn RunningNode, request: SystemIdRequest) -> Answered {
        let (said, name) = match request {
            SystemIdRequest::List => return json(&self.rows()),
            SystemIdRequest::Grant { name, id } => (self.grant(&name, id)?, Some(name)),
            SystemIdRequest::Withdraw(name) => (self.withdraw(&name)?, None),
        };
        let granted = self.clone();
        let place = move |machine: RoleMachine<'_>| {
            if let RoleMachine::Leader(leader) = machine {
                granted.place(leader);
            }
            name.is_some_and(|name| !granted.has_place(&name))
        };
        let is_nobodys = node.inspect(place).await.ok_or(ENDING)?;
        let until = if is_nobodys { ", once it is a member: no member has that name" } else { "" };
        Ok(format!("{said}{until}").into())
    }

    /// Returns true if a name that a system id is granted to is a member's, or the leader's.
    fn has_place(&self, name: &str) -> bool {
        self.tables().all.of_name(name).is_some_and(|grant| grant.slot.is_some())
    }

    /// The name that a system id is granted to.
    pub(crate) fn holder(&self, id: u32) -> Option<String> {
        let tables = self.tables();
        tables.all.iter().find(|(_, grant)| grant.system_id == id).map(|(name, _)| name.to_owned())
    }

    fn rows(&self) -> Vec<GrantRow> {
        let tables = self.tables();
        let mut rows: Vec<_> = tables
            .all
            .iter()
            .map(|(name, grant)| GrantRow {
                system_id: grant.system_id,
                name: name.into(),
                slot: grant.slot.filter(|slot| *slot != LEADER_SLOT),
                member: grant.slot.is_some(),
                evicted: grant.evicted,
            })
            .collect();
        rows.sort_by_key(|row| row.system_id);
        rows
    }

    fn grant(&self, name: &str, id: u32) -> std::result::Result<String, String> {
        let mut tables = self.tables();
        let mut stored = tables.stored.clone();
        if tables.given.of_name(name).is_some_and(|given| given.system_id != id) {
            return Err(format!("the settings grant {name} another one: change `system_id` there"));
        }
        let mut all = tables.all.clone();
        all.grant(name, id).map_err(|error| error.to_string())?;
        stored.grant(name, id).map_err(|error| error.to_string())?;
        self.keep(&mut tables, stored)?;
        Ok(format!("{name} speaks as system {id}"))
    }

    fn withdraw(&self, name: &str) -> std::result::Result<String, String> {
        let mut tables = self.tables();
        if tables.given.of_name(name).is_some() {
            return Err(format!("the settings grant {name} its system id: change `system_id` there"));
        }
        let mut stored = tables.stored.clone();
        if !stored.withdraw(name) {
            return Err(format!("{name} has no system id; see `leader system-id list`"));
        }
        self.keep(&mut tables, stored)?;
        Ok(format!("{name} has no system id any more"))
    }

    /// Durable before it holds.
    fn keep(&self, tables: &mut Tables, stored: SystemIds) -> std::result::Result<(), String> {
        let attach = || self.store.attach(ATTACHMENT, &stored.encode());
        tokio::task::block_in_place(attach).map_err(|error| error.to_string())?;
        tables.stored = stored;
        tables.merge().map_err(|error| error.to_string())
    }
}
