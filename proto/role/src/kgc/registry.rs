//! What the KGC remembers of the keys it issued.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use quiver_ainq::Serial;

use super::KgcRecord;

/// Tokens that were used, and by which key.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    by_token: BTreeMap<[u8; 16], Issue>,
    by_name: BTreeMap<String, [u8; 16]>,
    /// How many signatures for a token were contributed to, for ever.
    contributions: BTreeMap<Serial, u32>,
    /// Tokens whose drones proved that they hold a key.
    enrolled: BTreeSet<Serial>,
    revoked_tokens: BTreeSet<[u8; 16]>,
    revoked_serials: BTreeSet<[u8; 16]>,
}

/// To how many rounds for one token a KGC contributes, for ever. Every round gives another key. One is enough where every KGC does as
/// it should; the others are for KGCs that send wrong shares or none, and for drones that crash in between.
pub(super) const MAX_ROUNDS: u32 = 8;

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
            KgcRecord::Enrolled { token_id, .. } => {
                self.enrolled.insert(*token_id);
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

    /// Whether no more shares are made for this token: its drone holds a key, or it had all its rounds.
    pub(crate) fn is_spent(&self, token_id: &Serial) -> bool {
        let rounds = self.contributions.get(token_id).copied().unwrap_or_default();
        rounds >= MAX_ROUNDS || self.enrolled.contains(token_id)
    }

    /// Whether a proof that its drone holds a key would be news.
    pub(crate) fn awaits_proof(&self, token_id: &Serial) -> bool {
        self.by_token.contains_key(token_id) && !self.enrolled.contains(token_id)
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
