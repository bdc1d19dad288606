//! `kgc ibe list`: the master key, policies, approvals, shares released.

use quiver_ainq::{Deployment, Ristretto255, UnixTime};
use quiver_service::{clock, terminal};
use serde::Serialize;

use super::authority;
use super::tables::{ApprovalRow, PolicyRow, ReleaseTable, ShareRow};
use crate::error::Result;
use crate::store::Store;

/// The master key as it is shown.
#[derive(Debug, Serialize)]
struct MasterLine {
    name: String,
    /// Hex.
    fingerprint: String,
    version: u32,
    threshold: u16,
    /// Indices of the KGCs that hold shares.
    kgcs: Vec<u16>,
    #[serde(serialize_with = "clock::rfc3339::serialize")]
    at: Option<UnixTime>,
}

#[derive(Debug, Serialize)]
struct IbeListing {
    master: Option<MasterLine>,
    policies: Vec<PolicyRow>,
    approvals: Vec<ApprovalRow>,
    shares: Vec<ShareRow>,
}

/// Prints everything.
pub(crate) fn run(deployment: &Deployment<Ristretto255>, store: &Store, json: bool) -> Result<()> {
    let at = store.master_key().newest()?.map(|row| row.at);
    let master = authority(deployment, store)?.map(|authority| MasterLine {
        name: authority.name().to_string(),
        fingerprint: hex::encode(authority.fingerprint()),
        version: authority.version(),
        threshold: authority.publics().threshold(),
        kgcs: authority.kgcs().collect(),
        at,
    });
    let released = ReleaseTable::of(store);
    let listing = IbeListing {
        master,
        policies: released.policies()?,
        approvals: released.approvals()?,
        shares: released.shares()?,
    };
    if json {
        return Ok(terminal::json(&listing)?);
    }
    let Some(master) = &listing.master else {
        terminal::line("no master key of encryption to conditions yet (kgc ibe setup)")?;
        return Ok(());
    };
    let tables = [
        of_master(master),
        policies(&listing.policies),
        approvals(&listing.approvals),
        shares(&listing.shares),
    ];
    for table in tables {
        terminal::line(&table)?;
    }
    Ok(())
}

fn of_master(master: &MasterLine) -> String {
    let short = master.fingerprint.get(..16).unwrap_or_default().to_string();
    let at = master.at.map_or_else(|| "-".into(), clock::format);
    let quorum = format!("{} of {}", master.threshold, master.kgcs.len());
    let row = [master.name.clone(), quorum, master.version.to_string(), short, at];
    terminal::table(["MASTER KEY", "KGCS", "VERSION", "FINGERPRINT", "SINCE"], &[row])
}

/// The newest word on each pattern.
pub(super) fn policies(rows: &[PolicyRow]) -> String {
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            let whom = match (row.allowed, row.groups.is_empty()) {
                (false, _) => "nobody".into(),
                (true, true) => "every drone".into(),
                (true, false) => row.groups.join(", "),
            };
            [row.pattern.clone(), whom, clock::format(row.at)]
        })
        .collect();
    terminal::table(["CONDITIONS", "KEYS FOR", "SINCE"], &rows)
}

fn approvals(rows: &[ApprovalRow]) -> String {
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            let state = if row.approved { "approved" } else { "withdrawn" };
            [row.condition.clone(), state.into(), clock::format(row.at)]
        })
        .collect();
    terminal::table(["CONDITION", "STATE", "SINCE"], &rows)
}

fn shares(rows: &[ShareRow]) -> String {
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            let (first, last) = (clock::format(row.first), clock::format(row.last));
            [row.condition.clone(), row.drone.clone(), first, last, row.times.to_string()]
        })
        .collect();
    terminal::table(["CONDITION", "DRONE", "SHARE RELEASED", "LAST", "TIMES"], &rows)
}
