//! What the KGC remembers of the keys it issued.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::KgcRecord;

/// Tokens that were used, and by which key.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    by_token: BTreeMap<[u8; 16], Issue>,
    by_name: BTreeMap<String, [u8; 16]>,
    /// How many signatures for a token were contributed to and remembered.
    contributions: BTreeMap<[u8; 16], u32>,
    revoked_tokens: BTreeSet<[u8; 16]>,
    revoked_serials: BTreeSet<[u8; 16]>,
}

/// Signatures for one token that are remembered by the key they belong to. Every round gives another key, and a drone can
/// begin as many as it likes.
const MAX_REMEMBERED: u32 = 64;

/// A token that is bound to a request.
#[derive(Debug)]
pub(crate) struct Issue {
    pub(crate) request: [u8; 32],
    /// The answer, sealed; none from a KGC of a quorum, whose answers are never the same.
    pub(crate) reply: Option<Vec<u8>>,
}

impl Registry {
    pub(crate) fn apply(&mut self, record: &KgcRecord) {
        match record {
            KgcRecord::Issued { token_id, name, request, reply, .. } => {
                self.bind(token_id, name, *request, Some(reply.clone()));
            }
            KgcRecord::Pinned { token_id, name, request, .. } => {
                self.bind(token_id, name, *request, None);
            }
            KgcRecord::Contributed { token_id, .. } => {
                *self.contributions.entry(*token_id).or_default() += 1;
            }
            KgcRecord::RevocationList { .. } => {}
            KgcRecord::TokenRevoked { token_id } => self.revoke_tokens(&[*token_id]),
        }
    }

    fn bind(&mut self, token_id: &[u8; 16], name: &str, request: [u8; 32], reply: Option<Vec<u8>>) {
        self.by_token.insert(*token_id, Issue { request, reply });
        if !self.revoked_serials.contains(token_id) {
            self.by_name.insert(name.into(), *token_id);
        }
    }

    /// How many tokens are bound to a request.
    pub(crate) fn issued(&self) -> usize {
        self.by_token.len()
    }

    /// Counts a contribution. Returns whether it is one to remember.
    pub(crate) fn contribute(&mut self, record: &KgcRecord) -> bool {
        let KgcRecord::Contributed { token_id, .. } = record else { return false };
        let room = self.contributions.get(token_id).is_none_or(|count| *count < MAX_REMEMBERED);
        if room {
            self.apply(record);
        }
        room
    }

    pub(crate) fn find(&self, token_id: &[u8; 16]) -> Option<&Issue> {
        self.by_token.get(token_id)
    }

    /// Whether another identity that was not revoked holds this name.
    pub(crate) fn name_is_taken(&self, name: &str, token_id: &[u8; 16]) -> bool {
        self.by_name
            .get(name)
            .is_some_and(|holder| holder != token_id && !self.revoked_serials.contains(holder))
    }

    pub(crate) fn revoke_tokens(&mut self, ids: &[[u8; 16]]) {
        self.revoked_tokens.extend(ids);
    }

    /// A revoked identity frees its name, so that a replacement can carry it.
    pub(crate) fn revoke_serials(&mut self, serials: &[[u8; 16]]) {
        self.revoked_serials.extend(serials);
    }

    pub(crate) fn token_is_revoked(&self, id: &[u8; 16]) -> bool {
        self.revoked_tokens.contains(id) || self.revoked_serials.contains(id)
    }
}
