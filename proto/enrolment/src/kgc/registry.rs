//! Registry of a KGC: tokens, the keys bound to them, and revoked drones (docs/protocol.md §3.8).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use quiver_ainq::{Identity, Name, Revoked, Role, Serial, UnixTime};
use quiver_message::RefusalReason;

use super::KgcRecord;

/// Tokens that were used, and by which key.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    by_token: BTreeMap<[u8; 16], Issue>,
    by_name: BTreeMap<String, [u8; 16]>,
    /// Leaders by group and ordinal: the last that was not revoked.
    by_ordinal: BTreeMap<(Name, u16), [u8; 16]>,
    /// Number of signatures for a token that this KGC contributed to, for ever.
    contributions: BTreeMap<Serial, u32>,
    /// Tokens whose drones proved that they hold a key.
    enrolled: BTreeSet<Serial>,
    revoked_tokens: BTreeSet<[u8; 16]>,
    revoked_serials: BTreeSet<[u8; 16]>,
}

/// Maximum number of rounds for one token to which a KGC ever contributes. Every round gives another key. One
/// round is enough if all KGCs are honest; the others are for KGCs that send wrong shares or none, and for
/// drones that crash in between.
const MAX_ROUNDS: u32 = 8;

/// A token that is bound to a request.
#[derive(Debug)]
pub(crate) struct Issue {
    pub(crate) request: [u8; 32],
    /// The drone's entry in a revocation list, if it needs one.
    drone: Revoked,
    /// The sealed answer; `None` at a KGC of a quorum, whose answers are never the same.
    pub(crate) reply: Option<Vec<u8>>,
}

impl Registry {
    pub(crate) fn apply(&mut self, record: &KgcRecord) {
        match record {
            KgcRecord::Issued { token_id, name, identity, request, reply, .. } => {
                // §3.4: a single KGC stores the reply for a byte-identical repeat.
                self.bind(token_id, name, identity, *request, Some(reply.clone()));
            }
            KgcRecord::Pinned { token_id, name, identity, request, .. } => {
                // §3.8: a KGC of a quorum binds the token to the first request, and answers differently each
                // time.
                self.bind(token_id, name, identity, *request, None);
            }
            KgcRecord::Contributed { token_id, .. } => {
                // §3.9: rounds are counted for ever.
                *self.contributions.entry(*token_id).or_default() += 1;
            }
            KgcRecord::Enrolled { token_id, .. } => {
                self.enrolled.insert(*token_id);
            }
            KgcRecord::RevocationList { .. } => {}
            KgcRecord::TokenRevoked { token_id } => self.revoke_tokens(&[*token_id]),
        }
    }

    fn bind(
        &mut self,
        token_id: &[u8; 16],
        name: &str,
        identity: &[u8],
        request: [u8; 32],
        reply: Option<Vec<u8>>,
    ) {
        let identity = Identity::decode(identity);
        let role = identity.as_ref().ok().map(|identity| identity.role.clone());
        let drone = identity.as_ref().map_or(Revoked::unknown(*token_id), Revoked::from);
        self.by_token.insert(*token_id, Issue { request, drone, reply });
        // §3.4: a revoked drone holds no name.
        if !self.revoked_serials.contains(token_id) {
            self.by_name.insert(name.into(), *token_id);
            if let Some(Role::Leader { group, ordinal }) = role {
                self.by_ordinal.insert((group, ordinal), *token_id);
            }
        }
    }

    /// Number of tokens that are bound to a request.
    pub(crate) fn issued(&self) -> usize {
        self.by_token.len()
    }

    /// Returns true if no more shares are made for this token: its drone holds a key, or it had all its
    /// rounds.
    fn is_spent(&self, token_id: &Serial) -> bool {
        // §3.9: at most 8 rounds per token, and none once the drone has proven that it holds a key.
        let rounds = self.contributions.get(token_id).copied().unwrap_or_default();
        rounds >= MAX_ROUNDS || self.is_enrolled(token_id)
    }

    /// Returns true if its drone proved that it holds a key.
    pub(crate) fn is_enrolled(&self, token_id: &Serial) -> bool {
        self.enrolled.contains(token_id)
    }

    /// Revoked tokens get no answer; used tokens only one to the request that they are bound to.
    pub(crate) fn may_answer(&self, token_id: &Serial, digest: &[u8; 32]) -> Result<(), RefusalReason> {
        if self.token_is_revoked(token_id) {
            return Err(RefusalReason::TokenRevoked);
        }
        match self.find(token_id) {
            // §3.4: another P_i under the same token is refused for ever.
            Some(issue) if issue.request != *digest => Err(RefusalReason::TokenReused),
            _ if self.is_spent(token_id) => Err(RefusalReason::TokenSpent),
            _ => Ok(()),
        }
    }

    pub(crate) fn find(&self, token_id: &[u8; 16]) -> Option<&Issue> {
        self.by_token.get(token_id)
    }

    /// The entry in a revocation list of a drone that was enrolled here.
    pub(crate) fn drone(&self, serial: &[u8; 16]) -> Option<Revoked> {
        self.by_token.get(serial).map(|issue| issue.drone)
    }

    /// Returns true if another identity holds this name that was not revoked and has not ended. Revocation
    /// lists do not name those that have.
    pub(crate) fn name_is_taken(&self, name: &str, token_id: &[u8; 16], now: UnixTime) -> bool {
        self.by_name.get(name).is_some_and(|holder| holder != token_id && !self.has_left(holder, now))
    }

    /// Returns true if another leader of the group has this ordinal that was not revoked and has not ended.
    pub(crate) fn ordinal_is_taken(&self, role: &Role, token_id: &[u8; 16], now: UnixTime) -> bool {
        let Role::Leader { group, ordinal } = role else { return false };
        let holder = self.by_ordinal.get(&(group.clone(), *ordinal));
        holder.is_some_and(|holder| holder != token_id && !self.has_left(holder, now))
    }

    /// Returns true if a drone was revoked or has ended.
    fn has_left(&self, serial: &[u8; 16], now: UnixTime) -> bool {
        self.revoked_serials.contains(serial) || self.drone(serial).is_some_and(|drone| drone.has_ended(now))
    }

    pub(crate) fn revoke_tokens(&mut self, ids: &[[u8; 16]]) {
        self.revoked_tokens.extend(ids);
    }

    /// A revoked identity frees its name, so that a replacement can carry it.
    pub(crate) fn revoke_drones<'a>(&mut self, drones: impl IntoIterator<Item = &'a Revoked>) {
        self.revoked_serials.extend(drones.into_iter().map(|drone| drone.serial));
    }

    fn token_is_revoked(&self, id: &[u8; 16]) -> bool {
        self.revoked_tokens.contains(id) || self.revoked_serials.contains(id)
    }
}
