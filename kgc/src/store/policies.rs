//! Policies of admission that the KGC signed, so that the operator can see what drones answer. All of it is
//! public.

use quiver_ainq::UnixTime;
use quiver_service::clock;
use rusqlite::{Row, params};
use serde::Serialize;

use super::attributes::shown;
use super::{RegistryReader, RegistryTransaction};
use crate::error::Result;

/// A policy, for `kgc abke list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct AdmissionRow {
    /// Name of the policy.
    pub(crate) name: String,
    /// The group whose leaders may demand it.
    pub(crate) group: String,
    /// The authority whose fields it is about.
    pub(crate) authority: String,
    /// End of the policy.
    #[serde(serialize_with = "clock::serialize")]
    pub(crate) not_after: UnixTime,
    /// The text.
    pub(crate) text: String,
    /// Time of its signature.
    #[serde(serialize_with = "clock::serialize")]
    pub(crate) at: UnixTime,
}

/// A policy that was just signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SignedText<'a> {
    /// Hash that names the policy.
    pub(crate) id: &'a [u8; 32],
    /// Fingerprint of the authority whose fields it is about.
    pub(crate) authority: &'a [u8; 32],
    /// Name of the policy.
    pub(crate) name: &'a str,
    /// The group whose leaders may demand it.
    pub(crate) group: &'a str,
    /// End of the policy.
    pub(crate) not_after: UnixTime,
    /// The text.
    pub(crate) text: &'a str,
}

/// Queries of policies of admission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdmissionTable<'a>(pub(super) RegistryReader<'a>);

impl AdmissionTable<'_> {
    /// All policies, by group and name, the newest last.
    pub(crate) fn all(&self) -> Result<Vec<AdmissionRow>> {
        let query = "SELECT admission_policy.name, members, attribute_authority.name, not_after, text, admission_policy.at
                     FROM admission_policy
                     JOIN attribute_authority ON attribute_authority.fingerprint = admission_policy.authority
                     ORDER BY members, admission_policy.name, admission_policy.rowid";
        let read = |row: &Row<'_>| {
            Ok(AdmissionRow {
                name: row.get(0)?,
                group: row.get(1)?,
                authority: row.get(2)?,
                not_after: row.get(3)?,
                text: row.get(4)?,
                at: row.get(5)?,
            })
        };
        self.0.read(|db| db.prepare(query)?.query_map([], read)?.collect())
    }
}

/// Policies of admission within a change.
pub(crate) struct AdmissionWriter<'a>(pub(super) &'a RegistryTransaction<'a>);

impl AdmissionWriter<'_> {
    /// Records a policy.
    pub(crate) fn record(&self, policy: &SignedText<'_>) -> Result<()> {
        let Self(change) = self;
        let SignedText { id, authority, name, group, not_after, text } = *policy;
        let insert = "INSERT INTO admission_policy (id, authority, name, members, not_after, text, at)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let values = params![id, authority, name, group, not_after, text, change.at];
        change.sql(change.transaction.execute(insert, values))?;
        let (id, row) = (hex::encode(id), change.written("admission_policy"));
        let detail = format!("group {group} id {id}: {}", shown(text));
        change.audit("admission policy signed", name, &detail, &[row])
    }
}
