//! Tokens this registry knows of: recorded when issued here, used, or revoked.
//!
//! A token issued elsewhere (the operator's key need not be on the KGC's machine) is known only once it is
//! used.

use std::collections::BTreeMap;

use quiver_ainq::{Name, Suite, TokenStatement, UnixTime};
use quiver_service::clock;
use rusqlite::{OptionalExtension, Row, params};
use serde::Serialize;

use super::drones::leads;
use super::{Change, Store};
use crate::error::{Error, Result};

/// State of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TokenState {
    /// A drone may still enrol with it.
    Open,
    /// A drone has.
    Used,
    /// It expired unused.
    Expired,
    /// It was revoked.
    Revoked,
}

impl TokenState {
    /// In one word.
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
pub(crate) struct Token {
    /// Its id; hex.
    pub(crate) id: String,
    /// The drone's name, if known.
    pub(crate) name: Option<String>,
    /// End of its use, if known.
    #[serde(serialize_with = "clock::rfc3339::serialize")]
    pub(crate) expiry: Option<UnixTime>,
    /// Its state.
    pub(crate) state: TokenState,
}

/// Every id known from any of the three tables.
const TOKENS: &str = "
    SELECT ids.token_id, coalesce(enrolled.name, token.name), token.expiry,
           enrolled.token_id IS NOT NULL, revoked_token.token_id IS NOT NULL
    FROM (SELECT token_id FROM token UNION SELECT token_id FROM enrolled UNION SELECT token_id FROM revoked_token) AS ids
    LEFT JOIN token USING (token_id) LEFT JOIN enrolled USING (token_id) LEFT JOIN revoked_token USING (token_id)
    ORDER BY coalesce(token.at, enrolled.at, revoked_token.at), coalesce(enrolled.name, token.name) NULLS LAST, ids.token_id";

fn token(row: &Row<'_>, now: UnixTime) -> rusqlite::Result<Token> {
    let id: [u8; 16] = row.get(0)?;
    let expiry: Option<UnixTime> = row.get(2)?;
    let (used, revoked) = (row.get(3)?, row.get(4)?);
    let state = match (used, revoked) {
        (_, true) => TokenState::Revoked,
        (true, false) => TokenState::Used,
        _ if expiry.is_some_and(|expiry| expiry < now) => TokenState::Expired,
        _ => TokenState::Open,
    };
    Ok(Token { id: hex::encode(id), name: row.get(1)?, expiry, state })
}

impl Change<'_> {
    pub(super) fn revoke_token(&self, id: &[u8; 16], name: &str) -> Result<()> {
        let insert = "INSERT OR IGNORE INTO revoked_token (token_id, at) VALUES (?1, ?2)";
        self.sql(self.transaction.execute(insert, params![id, self.at]))?;
        self.audit("token revoked", name, &format!("id {}", hex::encode(id)))
    }
}

impl Store {
    /// All tokens known.
    pub(crate) fn tokens(&self, now: UnixTime) -> Result<Vec<Token>> {
        self.read(|db| db.prepare(TOKENS)?.query_map([], |row| token(row, now))?.collect())
    }

    /// Refuses a name that an active drone or an open token already carries.
    pub(crate) fn refuse_taken_name(&self, name: &str, now: UnixTime) -> Result<()> {
        let taken = |by: &str| Err(Error::NameTaken { name: name.into(), by: by.into() });
        if self.drones()?.iter().any(|drone| drone.name == name && !drone.revoked && !drone.wanted) {
            return taken("an enrolled drone; revoke that one first (kgc drone revoke)");
        }
        let open = |token: &Token| token.state == TokenState::Open && token.name.as_deref() == Some(name);
        if self.tokens(now)?.iter().any(open) {
            return taken("an open token; revoke that one first (kgc token revoke)");
        }
        Ok(())
    }

    /// The ordinals of a group's leaders, each with who holds it or may still enrol under it, and the remedy.
    pub(crate) fn taken_ordinals<S: Suite>(
        &self,
        group: &Name,
        now: UnixTime,
    ) -> Result<BTreeMap<u16, String>> {
        let mut taken = BTreeMap::new();
        for statement in self.open_statements(now)? {
            let statement = TokenStatement::<S>::decode(&statement)?;
            let Some((of, ordinal)) = leads(statement.role) else { continue };
            if of == *group {
                let (name, id) = (statement.name, hex::encode(statement.id));
                taken.insert(
                    ordinal,
                    format!("an open token for {name}; revoke it first (kgc token revoke {id})"),
                );
            }
        }
        for drone in self.drones()? {
            let active = !drone.revoked && !drone.wanted && drone.not_after > now;
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

    /// Refuses an ordinal that another leader of the group holds or may still enrol under: two leaders with
    /// one ordinal open the same terms, and members that follow the one do not follow the other.
    pub(crate) fn refuse_taken_ordinal<S: Suite>(
        &self,
        group: &Name,
        ordinal: u16,
        now: UnixTime,
    ) -> Result<()> {
        let mut taken = self.taken_ordinals::<S>(group, now)?;
        let Some(by) = taken.remove(&ordinal) else { return Ok(()) };
        let free = (1..=u16::MAX).find(|free| *free != ordinal && !taken.contains_key(free));
        let free = free.map(|free| format!(", or leave out --ordinal: {free} is free")).unwrap_or_default();
        Err(Error::OrdinalTaken { group: group.to_string(), ordinal, by: format!("{by}{free}") })
    }

    /// The lowest ordinal, from 1, that no leader of the group holds or may still enrol under.
    pub(crate) fn next_ordinal<S: Suite>(&self, group: &Name, now: UnixTime) -> Result<u16> {
        let taken = self.taken_ordinals::<S>(group, now)?;
        let free = (1..=u16::MAX).find(|ordinal| !taken.contains_key(ordinal));
        let full =
            || Error::Terms(format!("the group {group} has a leader under every ordinal; revoke one first"));
        free.ok_or_else(full)
    }

    /// Statements of the tokens recorded here that a drone may still enrol with, encoded.
    fn open_statements(&self, now: UnixTime) -> Result<Vec<Vec<u8>>> {
        let query = "SELECT statement FROM token LEFT JOIN enrolled USING (token_id) LEFT JOIN revoked_token USING (token_id)
                     WHERE enrolled.token_id IS NULL AND revoked_token.token_id IS NULL AND expiry >= ?1";
        // SQLite's integers are signed.
        let until = now.min(i64::MAX as u64);
        self.read(|db| {
            let read = |row: &Row<'_>| row.get::<_, Vec<u8>>(0);
            db.prepare(query)?.query_map(params![until], read)?.collect()
        })
    }

    /// Records a token that was just issued. Public data only.
    pub(crate) fn record_token<S: Suite>(
        &mut self,
        statement: &TokenStatement<S>,
        at: UnixTime,
    ) -> Result<()> {
        self.change(at, |change| {
            let insert =
                "INSERT INTO token (token_id, name, statement, expiry, at) VALUES (?1, ?2, ?3, ?4, ?5)";
            let name = statement.name.as_str();
            // SQLite's integers are signed; both mean "never".
            let expiry = statement.expiry.min(i64::MAX as u64);
            let values = params![statement.id, name, statement.encode(), expiry, at];
            change.sql(change.transaction.execute(insert, values))?;
            change.audit("token issued", name, &format!("id {}", hex::encode(statement.id)))
        })
    }

    /// Revokes a token named by its id (any token) or by its drone's name (a recorded one). Returns the id.
    pub(crate) fn revoke_tokens_named(&mut self, which: &str, at: UnixTime) -> Result<String> {
        let mut id = [0; 16];
        if hex::decode_to_slice(which, &mut id).is_err() {
            let named =
                |token: &Token| token.name.as_deref() == Some(which) && token.state == TokenState::Open;
            let mut found: Vec<_> = self.tokens(at)?.into_iter().filter(named).collect();
            match found.pop() {
                Some(token) if found.is_empty() => {
                    let _ = hex::decode_to_slice(token.id, &mut id);
                }
                Some(_) => return Err(Error::Ambiguous { which: which.into() }),
                None => return Err(Error::NoSuchToken { which: which.into() }),
            }
        }
        let used = "SELECT name FROM enrolled WHERE token_id = ?1";
        let used =
            self.read(|db| db.query_row(used, params![id], |row| row.get::<_, String>(0)).optional())?;
        if let Some(drone) = used {
            return Err(Error::TokenUsed { drone });
        }
        if self.revoked_tokens()?.contains(&id) {
            return Err(Error::AlreadyRevoked { which: which.into() });
        }
        self.change(at, |change| change.revoke_token(&id, which))?;
        Ok(hex::encode(id))
    }

    /// Ids of all revoked tokens, in the order of revocation.
    pub(crate) fn revoked_tokens(&self) -> Result<Vec<[u8; 16]>> {
        let query = "SELECT token_id FROM revoked_token ORDER BY seq";
        self.read(|db| db.prepare(query)?.query_map([], |row| row.get(0))?.collect())
    }
}
