//! `kgc abe list`: authorities, grants, keys issued.

use quiver_ainq::{Deployment, Suite, UnixTime};
use quiver_role::attributes::schemes::Granting;
use quiver_service::{clock, terminal};
use serde::Serialize;

use super::{Known, all};
use crate::error::Result;
use crate::store::{GrantRow, KeyRow, Store};

/// An authority as it is shown.
#[derive(Debug, Serialize)]
struct AuthorityLine {
    name: String,
    scheme: &'static str,
    /// What its keys have: `policy` or `attributes`.
    keys_have: &'static str,
    /// Hex.
    fingerprint: String,
    schema: String,
    at: UnixTime,
}

#[derive(Debug, Serialize)]
struct Listing {
    authorities: Vec<AuthorityLine>,
    grants: Vec<GrantRow>,
    keys: Vec<KeyRow>,
}

/// Prints everything.
pub(crate) fn run<S: Suite>(deployment: &Deployment<S>, store: &Store, json: bool) -> Result<()> {
    let listing = Listing {
        authorities: all(store, deployment)?.into_iter().map(line).collect(),
        grants: store.grants()?,
        keys: store.attribute_keys()?,
    };
    if json {
        terminal::line(&serde_json::to_string_pretty(&listing).map_err(std::io::Error::from)?)?;
        return Ok(());
    }
    if listing.authorities.is_empty() {
        terminal::line("no attribute authority yet (kgc abe setup)")?;
        return Ok(());
    }
    for table in [authorities(&listing), grants(&listing), keys(&listing)] {
        terminal::line(&table)?;
    }
    Ok(())
}

fn line<S: Suite>(known: Known<S>) -> AuthorityLine {
    AuthorityLine {
        name: known.row.name,
        scheme: known.scheme.id(),
        keys_have: match known.scheme.granting() {
            Granting::Policy => "policy",
            Granting::Attributes => "attributes",
        },
        fingerprint: hex::encode(known.row.fingerprint),
        schema: known.schema.to_string(),
        at: known.row.at,
    }
}

fn authorities(listing: &Listing) -> String {
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

fn grants(listing: &Listing) -> String {
    let rows: Vec<_> = listing
        .grants
        .iter()
        .map(|grant| {
            let (revision, at) = (grant.revision.to_string(), clock::format(grant.at));
            let state = grant.state.to_string();
            [grant.authority.clone(), grant.drone.clone(), revision, state, at, grant.granted.clone()]
        })
        .collect();
    terminal::table(["AUTHORITY", "DRONE", "GRANT", "STATE", "SINCE", "GRANTED"], &rows)
}

fn keys(listing: &Listing) -> String {
    let rows: Vec<_> = listing
        .keys
        .iter()
        .map(|key| {
            let (first, last) = (clock::format(key.first), clock::format(key.last));
            [
                key.authority.clone(),
                key.drone.clone(),
                key.revision.to_string(),
                first,
                last,
                key.times.to_string(),
            ]
        })
        .collect();
    terminal::table(["AUTHORITY", "DRONE", "GRANT", "KEY ISSUED", "LAST", "TIMES"], &rows)
}
