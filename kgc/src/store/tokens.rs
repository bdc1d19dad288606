//! Tokens this registry knows of: recorded when issued here, used, or revoked.
//!
//! A token issued elsewhere (the operator's key need not be on the KGC's machine) is known only once it is
//! used.

use std::collections::BTreeMap;

use quiver_ainq::{IssuedToken, Name, Ristretto255, Role, TokenStatement, UnixTime};
use quiver_service::clock;
use rusqlite::{OptionalExtension, Row, params};
use serde::Serialize;

use super::drones::{DroneTable, leads_of};
use super::{RegistryReader, RegistryTransaction};
use crate::error::{Error, Result};

/// State of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TokenState {
    /// A drone may still enrol with it.
    Open,
    /// A drone has.
    Used,
    /// The token expired unused.
    Expired,
    /// The token was revoked.
    Revoked,
}

impl TokenState {
    /// Names the state in one word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Used => "used",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

/// A token, for `kgc token list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TokenRow {
    /// Id of the token; hex.
    pub(crate) id: String,
    /// The drone's name, if known.
    pub(crate) name: Option<String>,
    /// End of its use, if known.
    #[serde(serialize_with = "clock::rfc3339::serialize")]
    pub(crate) expiry: Option<UnixTime>,
    /// State of the token.
    pub(crate) state: TokenState,
}

/// Every id known from any of the three tables.
const TOKENS: &str = "
    SELECT ids.token_id, coalesce(enrolled.name, token.name), token.expiry,
           enrolled.token_id IS NOT NULL, revoked_token.token_id IS NOT NULL
    FROM (SELECT token_id FROM token UNION SELECT token_id FROM enrolled UNION SELECT token_id FROM revoked_token) AS ids
    LEFT JOIN token USING (token_id) LEFT JOIN enrolled USING (token_id) LEFT JOIN revoked_token USING (token_id)
    ORDER BY coalesce(token.at, enrolled.at, revoked_token.at), coalesce(enrolled.name, token.name) NULLS LAST, ids.token_id";

fn token(row: &Row<'_>, now: UnixTime) -> rusqlite::Result<TokenRow> {
    let id: [u8; 16] = row.get(0)?;
    let expiry: Option<UnixTime> = row.get(2)?;
    let (used, revoked) = (row.get(3)?, row.get(4)?);
    let state = match (used, revoked) {
        (_, true) => TokenState::Revoked,
        (true, false) => TokenState::Used,
        _ if expiry.is_some_and(|expiry| expiry < now) => TokenState::Expired,
        _ => TokenState::Open,
    };
    Ok(TokenRow { id: hex::encode(id), name: row.get(1)?, expiry, state })
}

/// The group that a leader is to lead, and its ordinal if that is given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leads<'a> {
    pub(crate) group: &'a Name,
    pub(crate) ordinal: Option<u16>,
}

/// The ordinals of a group's leaders, each with who holds it or may still enrol under it, and the remedy. Two
/// leaders with one ordinal open the same terms, and members that follow the one do not follow the other.
#[derive(Debug)]
pub(super) struct Ordinals {
    group: Name,
    /// SQLite's `data_version`: another one once another process has changed the registry.
    version: i64,
    taken: BTreeMap<u16, String>,
}

impl Ordinals {
    /// The ordinal that was given, if it is free; otherwise the lowest that is, from 1.
    fn choose(&self, given: Option<u16>) -> Result<u16> {
        let free = (1..=u16::MAX).find(|ordinal| !self.taken.contains_key(ordinal));
        let group = &self.group;
        let Some(given) = given else {
            let full = || {
                Error::Terms(format!("the group {group} has a leader under every ordinal; revoke one first"))
            };
            return free.ok_or_else(full);
        };
        let Some(by) = self.taken.get(&given) else { return Ok(given) };
        let free = free.map(|free| format!(", or leave out --ordinal: {free} is free")).unwrap_or_default();
        Err(Error::OrdinalTaken { group: group.to_string(), ordinal: given, by: format!("{by}{free}") })
    }
}

fn by_an_open_token(statement: &TokenStatement<Ristretto255>) -> String {
    let (name, id) = (&statement.name, hex::encode(statement.id));
    format!("an open token for {name}; revoke it first (kgc token revoke {id})")
}

/// SQLite's integers are signed: both ends mean "never".
fn signed(time: UnixTime) -> u64 {
    time.min(i64::MAX as u64)
}

/// Queries of tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenTable<'a>(pub(super) RegistryReader<'a>);

impl TokenTable<'_> {
    /// All tokens known.
    pub(crate) fn all(&self, now: UnixTime) -> Result<Vec<TokenRow>> {
        self.0.read(|db| db.prepare(TOKENS)?.query_map([], |row| token(row, now))?.collect())
    }

    /// Ids of all revoked tokens, in the order of revocation.
    pub(crate) fn revoked(&self) -> Result<Vec<[u8; 16]>> {
        let query = "SELECT token_id FROM revoked_token ORDER BY seq";
        self.0.read(|db| db.prepare(query)?.query_map([], |row| row.get(0))?.collect())
    }
}

/// Tokens within a change.
pub(crate) struct TokenWriter<'a>(pub(super) &'a RegistryTransaction<'a>);

impl TokenWriter<'_> {
    /// Issues a token and records it: in one transaction with the checks of its name and ordinal, so that of
    /// two at once one is refused. `sign` makes it for the role that is found.
    pub(crate) fn issue(
        &self,
        name: &Name,
        leads: Option<Leads<'_>>,
        sign: impl FnOnce(Role) -> Result<IssuedToken<Ristretto255>>,
    ) -> Result<IssuedToken<Ristretto255>> {
        let Self(change) = self;
        self.refuse_taken_name(name.as_str())?;
        let mut known = change.ordinals.take();
        let role = match leads {
            None => Role::Edge,
            Some(Leads { group, ordinal }) => {
                let taken = self.ordinals(known.take(), group)?;
                let ordinal = taken.choose(ordinal)?;
                known = Some(taken);
                Role::Leader { group: group.clone(), ordinal }
            }
        };
        let issued = sign(role)?;
        self.record(&issued.token.statement)?;
        if let (Some(known), Some((_, ordinal))) = (&mut known, leads_of(&issued.token.statement.role)) {
            known.taken.insert(ordinal, by_an_open_token(&issued.token.statement));
        }
        change.ordinals.set(known);
        Ok(issued)
    }

    /// Revokes a token named by its id (any token) or by its drone's name (a recorded one). Returns the id.
    pub(crate) fn revoke_named(&self, which: &str) -> Result<String> {
        let Self(change) = self;
        let mut id = [0; 16];
        if hex::decode_to_slice(which, &mut id).is_err() {
            let named =
                |token: &TokenRow| token.name.as_deref() == Some(which) && token.state == TokenState::Open;
            let tokens = TokenTable(change.reader()).all(change.at)?;
            let mut found: Vec<_> = tokens.into_iter().filter(named).collect();
            match found.pop() {
                Some(token) if found.is_empty() => {
                    let _ = hex::decode_to_slice(token.id, &mut id);
                }
                Some(_) => return Err(Error::Ambiguous { which: which.into() }),
                None => return Err(Error::NoSuchToken { which: which.into() }),
            }
        }
        // Its ordinal is free again.
        change.ordinals.set(None);
        let used = "SELECT name FROM enrolled WHERE token_id = ?1";
        let used = change.transaction.query_row(used, params![id], |row| row.get::<_, String>(0));
        if let Some(drone) = change.sql(used.optional())? {
            return Err(Error::TokenUsed { drone });
        }
        let revoked = "SELECT EXISTS (SELECT 1 FROM revoked_token WHERE token_id = ?1)";
        if change.sql(change.transaction.query_row(revoked, params![id], |row| row.get(0)))? {
            return Err(Error::AlreadyRevoked { which: which.into() });
        }
        self.revoke(&id, which)?;
        Ok(hex::encode(id))
    }

    /// Refuses a name that an active drone or an open token already carries.
    pub(super) fn refuse_taken_name(&self, name: &str) -> Result<()> {
        let taken = |by: &str| Err(Error::NameTaken { name: name.into(), by: by.into() });
        let drone = "SELECT EXISTS (SELECT 1 FROM enrolled WHERE name = ?1
                        AND NOT EXISTS (SELECT 1 FROM revoked_drone WHERE revoked_drone.token_id = enrolled.token_id)
                        AND NOT EXISTS (SELECT 1 FROM revocation_wish WHERE revocation_wish.token_id = enrolled.token_id))";
        if self.0.sql(self.0.transaction.query_row(drone, params![name], |row| row.get(0)))? {
            return taken("an enrolled drone; revoke that one first (kgc drone revoke)");
        }
        let token = "SELECT EXISTS (SELECT 1 FROM token WHERE name = ?1 AND expiry >= ?2
                        AND NOT EXISTS (SELECT 1 FROM enrolled WHERE enrolled.token_id = token.token_id)
                        AND NOT EXISTS (SELECT 1 FROM revoked_token WHERE revoked_token.token_id = token.token_id))";
        if self
            .0
            .sql(self.0.transaction.query_row(token, params![name, signed(self.0.at)], |row| row.get(0)))?
        {
            return taken("an open token; revoke that one first (kgc token revoke)");
        }
        Ok(())
    }

    /// The ordinals of a group's leaders; those that are known if nobody has changed the registry since.
    fn ordinals(&self, known: Option<Ordinals>, group: &Name) -> Result<Ordinals> {
        let version =
            self.0.sql(self.0.transaction.pragma_query_value(None, "data_version", |row| row.get(0)))?;
        match known {
            Some(known) if known.version == version && known.group == *group => Ok(known),
            _ => Ok(Ordinals { group: group.clone(), version, taken: self.taken_ordinals(group)? }),
        }
    }

    fn taken_ordinals(&self, group: &Name) -> Result<BTreeMap<u16, String>> {
        let mut taken = BTreeMap::new();
        for statement in self.open_statements()? {
            let statement = TokenStatement::<Ristretto255>::decode(&statement)?;
            if let Some((_, ordinal)) = leads_of(&statement.role).filter(|(of, _)| of == group) {
                taken.insert(ordinal, by_an_open_token(&statement));
            }
        }
        for drone in DroneTable(self.0.reader()).all()? {
            let active = !drone.revoked && !drone.wanted && drone.not_after > self.0.at;
            if let Some((_, ordinal)) = drone.leads.filter(|(of, _)| active && of == group) {
                let (name, serial) = (drone.name, drone.serial);
                taken.insert(
                    ordinal,
                    format!("the leader {name}; revoke it first (kgc drone revoke {serial})"),
                );
            }
        }
        Ok(taken)
    }

    /// Statements of the tokens recorded here that a drone may still enrol with, encoded.
    fn open_statements(&self) -> Result<Vec<Vec<u8>>> {
        let query = "SELECT statement FROM token LEFT JOIN enrolled USING (token_id) LEFT JOIN revoked_token USING (token_id)
                     WHERE enrolled.token_id IS NULL AND revoked_token.token_id IS NULL AND expiry >= ?1";
        let read = || {
            let read = |row: &Row<'_>| row.get::<_, Vec<u8>>(0);
            self.0.transaction.prepare(query)?.query_map(params![signed(self.0.at)], read)?.collect()
        };
        self.0.sql(read())
    }

    /// Records a token that was just issued. Public data only.
    fn record(&self, statement: &TokenStatement<Ristretto255>) -> Result<()> {
        let insert = "INSERT INTO token (token_id, name, statement, expiry, at) VALUES (?1, ?2, ?3, ?4, ?5)";
        let name = statement.name.as_str();
        let values = params![statement.id, name, statement.encode(), signed(statement.expiry), self.0.at];
        self.0.sql(self.0.transaction.execute(insert, values))?;
        let row = self.0.written("token");
        self.0.audit("token issued", name, &format!("id {}", hex::encode(statement.id)), &[row])
    }

    /// Revokes a token by its id; `name` is its drone's, for the audit table.
    pub(super) fn revoke(&self, id: &[u8; 16], name: &str) -> Result<()> {
        let insert = "INSERT OR IGNORE INTO revoked_token (token_id, at) VALUES (?1, ?2)";
        let new = self.0.sql(self.0.transaction.execute(insert, params![id, self.0.at]))? > 0;
        let row = new.then(|| self.0.written("revoked_token"));
        self.0.audit("token revoked", name, &format!("id {}", hex::encode(id)), row.as_slice())
    }
}
