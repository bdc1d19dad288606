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
    revoked_tokens: BTreeSet<[u8; 16]>,
    revoked_serials: BTreeSet<[u8; 16]>,
}

/// One key issued.
#[derive(Debug)]
pub(crate) struct Issue {
    pub(crate) request: [u8; 32],
    pub(crate) reply: Vec<u8>,
}

impl Registry {
    pub(crate) fn apply(&mut self, record: &KgcRecord) {
        match record {
            KgcRecord::Issued { token_id, name, request, reply, .. } => {
                let issue = Issue { request: *request, reply: reply.clone() };
                self.by_token.insert(*token_id, issue);
                if !self.revoked_serials.contains(token_id) {
                    self.by_name.insert(name.clone(), *token_id);
                }
            }
            KgcRecord::RevocationList { .. } => {}
            KgcRecord::TokenRevoked { token_id } => self.revoke_tokens(&[*token_id]),
        }
    }

    pub(crate) fn issued(&self) -> usize {
        self.by_token.len()
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
