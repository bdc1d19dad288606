//! `kgc abke list`: authorities, what is certified, credentials issued, policies.

use quiver_admission::certifying::CertificationTerms;
use quiver_ainq::{Deployment, Ristretto255, UnixTime};
use quiver_service::{clock, terminal};
use serde::Serialize;

use super::{all, schema};
use crate::authorities::RegisteredAuthority;
use crate::error::Result;
use crate::grants::{grant_table, grants_of, key_table, keys_of};
use crate::store::policies::AdmissionRow;
use crate::store::{GrantRow, KeyRow, Store};

/// An authority as it is shown.
#[derive(Debug, Serialize)]
struct AbkeAuthorityLine {
    name: String,
    /// Number of bits that it certifies.
    bits: usize,
    /// Seconds.
    period: u64,
    /// End of its period.
    #[serde(serialize_with = "clock::serialize")]
    period_ends: UnixTime,
    /// Hex.
    fingerprint: String,
    schema: String,
    #[serde(serialize_with = "clock::serialize")]
    at: UnixTime,
}

#[derive(Debug, Serialize)]
struct AbkeListing {
    authorities: Vec<AbkeAuthorityLine>,
    certified: Vec<GrantRow>,
    credentials: Vec<KeyRow>,
    policies: Vec<AdmissionRow>,
}

/// Prints everything.
pub(crate) fn run(deployment: &Deployment<Ristretto255>, store: &Store, json: bool) -> Result<()> {
    let now = clock::unix_now();
    let known = all(store, deployment)?;
    let authorities: Vec<_> = known.iter().map(|known| line(known, now)).collect();
    let shown = |name: &str| authorities.iter().any(|line| line.name == name);
    let (certified, credentials) = (grants_of(store, shown)?, keys_of(store, shown)?);
    let listing = AbkeListing { certified, credentials, policies: store.admission().all()?, authorities };
    if json {
        return Ok(terminal::json(&listing)?);
    }
    if listing.authorities.is_empty() {
        terminal::line("no authority certifies fields yet (kgc abke setup)")?;
        return Ok(());
    }
    let tables = [
        of_authorities(&listing.authorities),
        grant_table(&listing.certified),
        key_table(&listing.credentials),
        policies(&listing.policies),
    ];
    for table in tables {
        terminal::line(&table)?;
    }
    Ok(())
}

fn line(known: &RegisteredAuthority<CertificationTerms>, now: UnixTime) -> AbkeAuthorityLine {
    let terms = &known.service;
    AbkeAuthorityLine {
        name: known.row.name.clone(),
        bits: terms.schema().bits(),
        period: terms.period().as_secs(),
        period_ends: terms.end_of(terms.period_at(now)),
        fingerprint: hex::encode(known.row.fingerprint),
        schema: schema(known),
        at: known.row.at,
    }
}

fn of_authorities(lines: &[AbkeAuthorityLine]) -> String {
    let rows: Vec<_> = lines
        .iter()
        .map(|line| {
            let short = line.fingerprint.get(..16).unwrap_or_default().to_string();
            let (bits, ends) = (line.bits.to_string(), clock::format(line.period_ends));
            [line.name.clone(), bits, ends, short, clock::format(line.at), line.schema.clone()]
        })
        .collect();
    terminal::table(["AUTHORITY", "BITS", "PERIOD ENDS", "FINGERPRINT", "SET UP", "FIELDS"], &rows)
}

fn policies(rows: &[AdmissionRow]) -> String {
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            let text = row.text.split_whitespace().collect::<Vec<_>>().join(" ");
            let ends = clock::format(row.not_after);
            [row.name.clone(), row.group.clone(), row.authority.clone(), ends, text]
        })
        .collect();
    terminal::table(["POLICY", "GROUP", "AUTHORITY", "NOT AFTER", "TEXT"], &rows)
}
