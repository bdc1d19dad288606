//! Tables of the registry: versions of the master key of encryption to conditions, its policies, the operator's
//! approvals, and the shares released. Public data and the operator's: nothing here is secret.

use quiver_ainq::{Name, Ristretto255, UnixTime};
use quiver_ibe::Condition;
use quiver_key_release::{Approval, Audience, Pattern, ReleaseAuthority, ReleasePolicy, ShareReleased};
use quiver_service::clock;
use rusqlite::types::Type;
use rusqlite::{OptionalExtension, Row, params};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::store::audit::KEY_SHARE_RELEASED;
use crate::store::authentication::Written;
use crate::store::{DeliveryRow, RegistryReader, RegistryTransaction, Store};

/// The newest word on a pattern, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct PolicyRow {
    /// Pattern of conditions.
    pub(crate) pattern: String,
    /// True if anybody may have their keys.
    pub(crate) allowed: bool,
    /// Groups whose members and leaders may have the keys; empty for every drone.
    pub(crate) groups: Vec<String>,
    /// Time since which the policy is in force.
    #[serde(serialize_with = "clock::serialize")]
    pub(crate) at: UnixTime,
}

/// The newest word on a mission's condition, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ApprovalRow {
    /// The condition.
    pub(crate) condition: String,
    /// True if it is approved.
    pub(crate) approved: bool,
    /// Time of the approval.
    #[serde(serialize_with = "clock::serialize")]
    pub(crate) at: UnixTime,
}

/// A share that was released, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ShareRow {
    /// The condition of the key.
    pub(crate) condition: String,
    /// The drone.
    pub(crate) drone: String,
    /// Time of the first release.
    #[serde(serialize_with = "clock::serialize")]
    pub(crate) first: UnixTime,
    /// Time of the last release.
    #[serde(serialize_with = "clock::serialize")]
    pub(crate) last: UnixTime,
    /// Number of releases.
    pub(crate) times: u64,
}

/// A text that this program does not write.
fn garbled(column: usize, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}

fn groups(text: &str) -> Vec<String> {
    text.split_whitespace().map(String::from).collect()
}

fn policy(row: &Row<'_>) -> rusqlite::Result<ReleasePolicy> {
    let (pattern, allowed, text): (String, bool, String) = (row.get(1)?, row.get(2)?, row.get(3)?);
    let names = groups(&text).into_iter().map(|group| Name::new(&group));
    let names = names.collect::<std::result::Result<Vec<_>, _>>().map_err(|error| garbled(3, error))?;
    Ok(ReleasePolicy {
        revision: row.get(0)?,
        pattern: pattern.parse::<Pattern>().map_err(|error| garbled(1, error))?,
        audience: allowed.then_some(Audience { groups: names }),
    })
}

fn approval(row: &Row<'_>) -> rusqlite::Result<Approval> {
    let condition: String = row.get(1)?;
    let condition = condition.parse::<Condition>().map_err(|error| garbled(1, error))?;
    Ok(Approval { revision: row.get(0)?, condition, approved: row.get(2)? })
}

impl DeliveryRow for ShareReleased {
    /// Counts a share; the first of a condition's key to a drone is audited as well. The same record once
    /// more counts once more and is not audited twice.
    fn write(&self, change: &RegistryTransaction<'_>) -> Result<()> {
        let ShareReleased { condition, serial, handle, name, at, .. } = self;
        let insert = "INSERT INTO ibe_share (condition, token_id, name, handle, first_at, last_at, times)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?5, 1)
                      ON CONFLICT DO UPDATE SET last_at = excluded.last_at, times = times + 1
                      RETURNING times";
        let values = params![condition.as_str(), serial, name.as_str(), handle, at];
        let times: u64 = change.sql(change.transaction.query_row(insert, values, |row| row.get(0)))?;
        if times > 1 {
            return Ok(());
        }
        let detail = format!("{condition} serial {} handle {}", hex::encode(serial), hex::encode(handle));
        let share = "SELECT rowid FROM ibe_share WHERE condition = ?1 AND token_id = ?2";
        let values = params![condition.as_str(), serial];
        let row = change.sql(change.transaction.query_row(share, values, |row| row.get(0)))?;
        change.audit(KEY_SHARE_RELEASED, name.as_str(), &detail, &[Written { table: "ibe_share", row }])
    }
}

/// Queries of policies, approvals and shares released.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReleaseTable<'a>(RegistryReader<'a>);

impl<'a> ReleaseTable<'a> {
    /// Reads this registry.
    pub(crate) fn of(store: &'a Store) -> Self {
        Self(store.reader())
    }

    /// Policies made after the one of this revision, oldest first.
    pub(crate) fn policies_after(&self, revision: u64) -> Result<Vec<ReleasePolicy>> {
        let query = "SELECT revision, pattern, allowed, groups FROM ibe_policy
                     WHERE revision > ?1 ORDER BY revision";
        self.0.read(|db| db.prepare(query)?.query_map(params![revision], policy)?.collect())
    }

    /// Approvals and withdrawals made after the one of this revision, oldest first.
    pub(crate) fn approvals_after(&self, revision: u64) -> Result<Vec<Approval>> {
        let query = "SELECT revision, condition, approved FROM ibe_approval
                     WHERE revision > ?1 ORDER BY revision";
        self.0.read(|db| db.prepare(query)?.query_map(params![revision], approval)?.collect())
    }

    /// The newest word on each pattern.
    pub(crate) fn policies(&self) -> Result<Vec<PolicyRow>> {
        let query = "SELECT pattern, allowed, groups, at FROM ibe_policy AS newest
                     WHERE revision = (SELECT max(revision) FROM ibe_policy AS any
                                       WHERE any.pattern = newest.pattern)
                     ORDER BY pattern";
        let read = |row: &Row<'_>| {
            let text: String = row.get(2)?;
            Ok(PolicyRow {
                pattern: row.get(0)?,
                allowed: row.get(1)?,
                groups: groups(&text),
                at: row.get(3)?,
            })
        };
        self.0.read(|db| db.prepare(query)?.query_map([], read)?.collect())
    }

    /// The newest word on each condition.
    pub(crate) fn approvals(&self) -> Result<Vec<ApprovalRow>> {
        let query = "SELECT condition, approved, at FROM ibe_approval AS newest
                     WHERE revision = (SELECT max(revision) FROM ibe_approval AS any
                                       WHERE any.condition = newest.condition)
                     ORDER BY condition";
        let read = |row: &Row<'_>| {
            Ok(ApprovalRow { condition: row.get(0)?, approved: row.get(1)?, at: row.get(2)? })
        };
        self.0.read(|db| db.prepare(query)?.query_map([], read)?.collect())
    }

    /// All shares that were released.
    pub(crate) fn shares(&self) -> Result<Vec<ShareRow>> {
        let query =
            "SELECT condition, name, first_at, last_at, times FROM ibe_share ORDER BY condition, name";
        let read = |row: &Row<'_>| {
            Ok(ShareRow {
                condition: row.get(0)?,
                drone: row.get(1)?,
                first: row.get(2)?,
                last: row.get(3)?,
                times: row.get(4)?,
            })
        };
        self.0.read(|db| db.prepare(query)?.query_map([], read)?.collect())
    }
}

/// Master key, policies and approvals within a change.
pub(crate) struct ReleaseWriter<'a>(&'a RegistryTransaction<'a>);

impl<'a> ReleaseWriter<'a> {
    /// Writes with this change.
    pub(crate) const fn of(change: &'a RegistryTransaction<'a>) -> Self {
        Self(change)
    }

    /// Records a master key, or its next version of shares, and with it policies that it begins with.
    /// `store_share` makes the share durable: of a master key in the registry there is always the share, and of
    /// two that are set up at once the second takes no share away.
    ///
    /// # Errors
    /// [`Error::MasterKeyExists`], and those of `store_share`.
    pub(crate) fn record_authority(
        &self,
        authority: &ReleaseAuthority<Ristretto255>,
        policies: &[Pattern],
        store_share: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let Self(change) = self;
        let (name, version) = (authority.name().as_str(), authority.version());
        let (master, publics) = (authority.fingerprint(), authority.publics());
        let known = "SELECT name FROM ibe_authority WHERE version >= ?1";
        let known = change.transaction.query_row(known, params![version], |row| row.get(0));
        if let Some(name) = change.sql(known.optional())? {
            return Err(Error::MasterKeyExists(name));
        }
        let insert = "INSERT INTO ibe_authority (version, master, name, statement, at)
                      VALUES (?1, ?2, ?3, ?4, ?5)";
        let values = params![version, master, name, authority.statement().bytes(), change.at];
        change.sql(change.transaction.execute(insert, values))?;
        let row = change.written("ibe_authority");
        let (threshold, count) = (publics.threshold(), publics.shares().len());
        let detail = format!("{threshold} of {count} version {version} fingerprint {}", hex::encode(master));
        change.audit("master key of encryption to conditions", name, &detail, &[row])?;
        let everybody = Audience::default();
        policies.iter().try_for_each(|pattern| self.set_policy(pattern, Some(&everybody)).map(drop))?;
        store_share()
    }

    /// Sets which drones may have the keys of a pattern's conditions; `None` to deny them. Returns the
    /// revision.
    pub(crate) fn set_policy(&self, pattern: &Pattern, audience: Option<&Audience>) -> Result<u64> {
        let Self(change) = self;
        let names = audience.map_or(&[][..], |audience| &audience.groups).iter().map(Name::as_str);
        let groups = names.collect::<Vec<_>>().join(" ");
        let insert = "INSERT INTO ibe_policy (pattern, allowed, groups, at)
                      VALUES (?1, ?2, ?3, ?4) RETURNING revision";
        let values = params![pattern.as_str(), audience.is_some(), groups, change.at];
        let revision = change.sql(change.transaction.query_row(insert, values, |row| row.get(0)))?;
        let row = change.written("ibe_policy");
        let action = if audience.is_some() { "identity keys allowed" } else { "identity keys denied" };
        let whom = if groups.is_empty() { String::new() } else { format!("groups {groups}") };
        change.audit(action, pattern.as_str(), &whom, &[row])?;
        Ok(revision)
    }

    /// Approves a condition, or withdraws the approval. Returns the revision; `None` if nothing changed.
    pub(crate) fn set_approval(&self, condition: &Condition, approved: bool) -> Result<Option<u64>> {
        let Self(change) = self;
        let query = "SELECT approved FROM ibe_approval WHERE condition = ?1 ORDER BY revision DESC LIMIT 1";
        let values = params![condition.as_str()];
        let before = change.transaction.query_row(query, values, |row| row.get(0)).optional();
        if change.sql(before)?.unwrap_or(false) == approved {
            return Ok(None);
        }
        let insert =
            "INSERT INTO ibe_approval (condition, approved, at) VALUES (?1, ?2, ?3) RETURNING revision";
        let values = params![condition.as_str(), approved, change.at];
        let revision = change.sql(change.transaction.query_row(insert, values, |row| row.get(0)))?;
        let row = change.written("ibe_approval");
        let action = if approved { "release approved" } else { "release withdrawn" };
        change.audit(action, condition.as_str(), "", &[row])?;
        Ok(Some(revision))
    }
}
