//! Verifying everyone who waited, all signatures in one product.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Error, Handle, Join, Label, SignedItem, Suite, verify_batch_implicit};
use quiver_message::Reason;
use rand_core::CryptoRngCore;

use super::memory::Change;
use super::waiting::Candidate;
use super::{Leader, LeaderEvent};
use crate::Now;

/// A drone that waits to join, with what the epoch needs of it.
pub(super) type Vetted<S> = (Candidate<S>, Join<S>);

/// How much evidence against a single KGC is kept.
const MAX_EVIDENCE: usize = 64;

impl<S: Suite> Leader<S> {
    /// Everyone who waited and whose signatures verify, once each (the latest request counts), as many as fit.
    pub(super) fn vetted(&mut self, now: Now, rng: &mut dyn CryptoRngCore) -> Vec<Vetted<S>> {
        let mut joins = Vec::with_capacity(self.waiting.len());
        for candidate in self.waiting.take(now) {
            // Much may have happened while it waited.
            if let Err(reason) = self.may_join(now, &candidate.request) {
                self.refuse(candidate.peer, reason, &candidate.nonce, Duration::ZERO);
                continue;
            }
            let (drone, ephemeral) = (candidate.request.drone.clone(), candidate.request.ephemeral);
            match Join::new(&self.config.deployment, drone, ephemeral) {
                Ok(join) => joins.push((candidate, join)),
                Err(error) => self.turn_away(&candidate, error),
            }
        }
        let signed = self.signed(joins, rng);
        let mut latest = BTreeMap::new();
        let mut seen = BTreeMap::new();
        for vetted in signed {
            let (handle, serial) = (vetted.0.request.drone.handle(), vetted.0.request.drone.identity.serial);
            let before = *seen.entry(serial).or_insert(handle);
            if self.first_key(&vetted.0, handle, before) {
                latest.insert(handle, vetted);
            }
        }
        self.fitting(latest.into_values().collect())
    }

    /// Those whose signatures verify. If all do, one product shows it; if not, halving finds who is to blame.
    fn signed(&mut self, mut joins: Vec<Vetted<S>>, rng: &mut dyn CryptoRngCore) -> Vec<Vetted<S>> {
        if self.all_signed(&joins, rng) {
            return joins;
        }
        if let [(candidate, _)] = joins.as_slice() {
            self.turn_away(candidate, Error::InvalidSignature);
            return Vec::new();
        }
        let second = joins.split_off(joins.len() / 2);
        let mut signed = self.signed(joins, rng);
        signed.extend(self.signed(second, rng));
        signed
    }

    fn all_signed(&self, joins: &[Vetted<S>], rng: &mut dyn CryptoRngCore) -> bool {
        let group = &self.config.group;
        let spares: Vec<Vec<u8>> =
            joins.iter().map(|(c, _)| c.request.spare.message(group, &c.request.drone)).collect();
        let mut items = Vec::with_capacity(joins.len() * 2);
        let mut implicit = Vec::with_capacity(joins.len() * 2);
        for ((candidate, join), spare) in joins.iter().zip(&spares) {
            let (request, public) = (&candidate.request, &candidate.request.drone);
            let (message, signature) = (&candidate.statement, &request.signature);
            items.push(SignedItem { public, label: Label::Join, message, signature });
            let (message, signature) = (spare, &request.spare.signature);
            items.push(SignedItem { public, label: Label::Spare, message, signature });
            implicit.extend([*join.implicit(), *join.implicit()]);
        }
        verify_batch_implicit(&self.config.deployment, &items, &implicit, rng)
    }

    /// Whether this is the first key seen for its identity. A second one that signs validly is refused.
    ///
    /// Where one KGC issues, it issued this one too, though it binds a token to one key for ever: the request is kept as evidence
    /// against it. Of a quorum every drone can make itself a second key, which says nothing against anybody but the drone.
    fn first_key(&mut self, candidate: &Candidate<S>, handle: Handle, before: Handle) -> bool {
        let drone = &candidate.request.drone;
        let pinned = self.memory.pins.get(&drone.identity.serial).copied().unwrap_or(before);
        if pinned == handle {
            return true;
        }
        let evident = self.config.kgcs.frost().is_none();
        if evident && self.memory.evidence.len() < MAX_EVIDENCE {
            let mut evidence = candidate.statement.clone();
            evidence.extend_from_slice(&candidate.request.signature.encode());
            self.persist(&[Change::Evidence(evidence.clone())]);
            self.memory.evidence.push(evidence);
        }
        self.out.event(LeaderEvent::SecondKey { name: drone.identity.name.clone(), handle, evident });
        self.refuse(candidate.peer, Reason::NotAuthorised, &candidate.nonce, Duration::ZERO);
        false
    }

    fn fitting(&mut self, mut joins: Vec<Vetted<S>>) -> Vec<Vetted<S>> {
        let members = self.roster().len() + self.backlog.joins();
        let room = (self.config.max_members as usize).saturating_sub(members);
        for (candidate, _) in joins.split_off(room.min(joins.len())) {
            let wait = self.config.timing.batching_max;
            self.refuse(candidate.peer, Reason::Full, &candidate.nonce, wait);
        }
        joins
    }

    fn turn_away(&mut self, candidate: &Candidate<S>, error: Error) {
        self.refuse(candidate.peer, Reason::BadSignature, &candidate.nonce, Duration::ZERO);
        self.blame(candidate.peer, error);
    }
}
