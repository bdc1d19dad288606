//! `kgc abe list`: authorities, grants, keys issued.

use quiver_ainq::{Deployment, Ristretto255, UnixTime};
use quiver_attribute_schemes::{Granting, SchemeKind};
use quiver_service::{clock, terminal};
use serde::Serialize;

use super::{all, schema_of};
use crate::authorities::RegisteredAuthority;
use crate::error::Result;
use crate::grants::{grant_table, grants_of, key_table, keys_of};
use crate::store::{GrantRow, KeyRow, Store};

/// An authority as it is shown.
#[derive(Debug, Serialize)]
struct AbeAuthorityLine {
    name: String,
    scheme: &'static str,
    /// Content of its keys: `policy` or `attributes`.
    keys_have: &'static str,
    /// Hex.
    fingerprint: String,
    schema: String,
    #[serde(serialize_with = "clock::serialize")]
    at: UnixTime,
}

#[derive(Debug, Serialize)]
struct AbeListing {
    authorities: Vec<AbeAuthorityLine>,
    grants: Vec<GrantRow>,
    keys: Vec<KeyRow>,
}

/// Prints everything.
pub(crate) fn run(deployment: &Deployment<Ristretto255>, store: &Store, json: bool) -> Result<()> {
    let authorities = all(store, deployment)?.into_iter().map(line).collect::<Result<Vec<_>>>()?;
    let shown = |name: &str| authorities.iter().any(|line| line.name == name);
    let listing = AbeListing { grants: grants_of(store, shown)?, keys: keys_of(store, shown)?, authorities };
    if json {
        return Ok(terminal::json(&listing)?);
    }
    if listing.authorities.is_empty() {
        terminal::line("no attribute authority yet (kgc abe setup)")?;
        return Ok(());
    }
    for table in [of_authorities(&listing), grant_table(&listing.grants), key_table(&listing.keys)] {
        terminal::line(&table)?;
    }
    Ok(())
}

fn line(known: RegisteredAuthority<SchemeKind>) -> Result<AbeAuthorityLine> {
    let schema = schema_of(&known.statement)?.to_string();
    Ok(AbeAuthorityLine {
        name: known.row.name,
        scheme: known.service.id(),
        keys_have: match known.service.granting() {
            Granting::Policy => "policy",
            Granting::Attributes => "attributes",
        },
        fingerprint: hex::encode(known.row.fingerprint),
        schema,
        at: known.row.at,
    })
}

fn of_authorities(listing: &AbeListing) -> String {
    let rows: Vec<_> = listing
        .authorities
        .iter()
        .map(|line| {
            let short = line.fingerprint.get(..16).unwrap_or_default().to_string();
            let (scheme, keys_have) = (line.scheme.to_string(), line.keys_have.to_string());
            [line.name.clone(), scheme, keys_have, short, clock::format(line.at), line.schema.clone()]
        })
        .collect();
    terminal::table(["AUTHORITY", "SCHEME", "KEYS HAVE", "FINGERPRINT", "SET UP", "SCHEMA"], &rows)
}
