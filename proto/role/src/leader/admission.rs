//! Letting drones in: challenge, cheap checks at once, signatures in batches, one epoch for all who came together.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Handle, Join, Label, Role, SignedItem, Suite, verify_batch_implicit};
use quiver_message::{
    DecodedJoinRequest, JoinChallenge, JoinHello, JoinRequest, Message, Nonce, Reason, Refusal,
};
use rand_core::CryptoRngCore;

use super::{Leader, LeaderEvent};
use crate::cookie::LIFETIME;
use crate::{Now, Offence, Peer, statements};

/// How many joins wait at most for the next epoch.
const MAX_WAITING: usize = 16_384;

/// Joins that wait for the next epoch, one per drone. Their signatures are verified together when it is made.
#[derive(Debug)]
pub(super) struct Waiting<S: Suite> {
    joins: BTreeMap<Handle, Candidate<S>>,
    /// Nonces of requests that were taken, for as long as their challenge would admit them again: a request that is
    /// replayed would end its sender's membership.
    taken: BTreeMap<Nonce, Duration>,
    first: Option<Duration>,
    last: Duration,
}

/// One drone that wants to join.
#[derive(Debug)]
pub(super) struct Candidate<S: Suite> {
    pub(super) peer: Peer,
    pub(super) nonce: Nonce,
    pub(super) request: DecodedJoinRequest<S>,
    statement: Vec<u8>,
}

impl<S: Suite> Candidate<S> {
    pub(super) fn boot_no(&self) -> u32 {
        self.nonce
            .first_chunk()
            .map_or(0, |bytes| u32::from_be_bytes(*bytes))
    }
}

impl<S: Suite> Waiting<S> {
    pub(super) fn new() -> Self {
        Self {
            joins: BTreeMap::new(),
            taken: BTreeMap::new(),
            first: None,
            last: Duration::ZERO,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.joins.len()
    }

    /// Somebody came or leaves: the batch closes when nobody follows for a while, or when the first has waited long enough.
    pub(super) fn stir(&mut self, now: Now) {
        self.first.get_or_insert(now.monotonic);
        self.last = now.monotonic;
    }

    pub(super) fn deadline(&self, batching: Duration, longest: Duration) -> Option<Duration> {
        self.first
            .map(|first| (self.last + batching).min(first + longest))
    }

    /// Forgets requests whose challenge no longer admits them.
    pub(super) fn forget(&mut self, now: Now) {
        let lifetime = Duration::from_secs(LIFETIME + 1);
        self.taken.retain(|_, taken| *taken + lifetime > now.monotonic);
    }

    /// Ends the batch and gives up to `room` joins; the rest waits for the next one.
    pub(super) fn take(&mut self, room: usize) -> (Vec<Candidate<S>>, Vec<Candidate<S>>) {
        self.first = None;
        let mut all: Vec<_> = core::mem::take(&mut self.joins).into_values().collect();
        let rest = all.split_off(room.min(all.len()));
        (all, rest)
    }
}

impl<S: Suite> Leader<S> {
    pub(super) fn join_hello(&mut self, now: Now, from: Peer, hello: &JoinHello) {
        if let Err((reason, wait)) = self.serves(&hello.group) {
            return self.refuse(from, reason, &hello.nonce, wait);
        }
        let Some(keypair) = &self.memory.keypair else {
            return;
        };
        let challenge = JoinChallenge {
            nonce: hello.nonce,
            challenge: self
                .cookies
                .bake(now.monotonic, from, &[&hello.nonce, &hello.drone]),
            leader: keypair.public().clone(),
            revocation_number: self.memory.revocations.number(),
        };
        self.out
            .send(&self.config.deployment, from, &Message::JoinChallenge(challenge));
    }

    fn serves(&self, group: &quiver_ainq::Name) -> Result<(), (Reason, Duration)> {
        if *group != self.config.group {
            Err((Reason::WrongGroup, Duration::ZERO))
        } else if self.lead.is_none() {
            Err((Reason::NotReady, Duration::from_secs(1)))
        } else if self.waiting.len() >= MAX_WAITING {
            Err((Reason::Busy, self.config.timing.batching_max))
        } else {
            Ok(())
        }
    }

    pub(super) fn join_request(&mut self, now: Now, from: Peer, request: &JoinRequest) {
        let parts: [&[u8]; 2] = [&request.nonce, &request.drone];
        if !self
            .cookies
            .recognises(now.monotonic, from, &parts, &request.challenge)
        {
            self.refuse(from, Reason::BadCookie, &request.nonce, Duration::ZERO);
            return self.blame(from, Offence::Cookie);
        }
        if self.waiting.taken.contains_key(&request.nonce) {
            return self.blame(from, quiver_ainq::Error::Replay);
        }
        if let Err((reason, wait)) = self.serves(&request.group) {
            return self.refuse(from, reason, &request.nonce, wait);
        }
        let decoded = match request.decode::<S>() {
            Ok(decoded) => decoded,
            Err(error) => {
                self.refuse(from, Reason::Malformed, &request.nonce, Duration::ZERO);
                return self.blame(from, error);
            }
        };
        if let Err(reason) = self.may_join(now, &decoded) {
            return self.refuse(from, reason, &request.nonce, Duration::ZERO);
        }
        let handle = decoded.drone.handle();
        if self
            .memory
            .pins
            .get(&decoded.drone.identity.serial)
            .is_some_and(|pinned| *pinned != handle)
        {
            self.refuse(from, Reason::NotAuthorised, &request.nonce, Duration::ZERO);
            return self.blame(from, Offence::SecondKey);
        }
        let Some(keypair) = &self.memory.keypair else {
            return;
        };
        let statement = statements::join(
            &request.group,
            keypair.public(),
            &decoded.drone,
            (&request.challenge, &request.nonce),
            &decoded.ephemeral,
            &decoded.spare,
        );
        let candidate = Candidate {
            peer: from,
            nonce: request.nonce,
            request: decoded,
            statement,
        };
        self.waiting.taken.insert(request.nonce, now.monotonic);
        self.waiting.joins.insert(handle, candidate);
        self.waiting.stir(now);
    }

    /// Role, lifetime, authorisation (default deny), revocation, eviction.
    fn may_join(&self, now: Now, request: &DecodedJoinRequest<S>) -> Result<(), Reason> {
        let identity = &request.drone.identity;
        let allowed =
            identity.groups.contains(&self.config.group) || self.config.allow.contains(&identity.name);
        if identity.role != Role::Edge || !allowed {
            Err(Reason::NotAuthorised)
        } else if now.unix >= identity.not_after {
            Err(Reason::Expired)
        } else if self.memory.revocations.names(&request.drone) {
            Err(Reason::Revoked)
        } else if self.roster().is_evicted(&request.drone.handle()) {
            Err(Reason::Evicted)
        } else if request.spare.q == 0 {
            Err(Reason::Malformed)
        } else {
            Ok(())
        }
    }

    /// Ends the batch: computes Y of everyone who waited and verifies all signatures in one product; if that fails, one
    /// by one, so that whoever sent a bad one is named.
    pub(super) fn candidates(&mut self, rng: &mut dyn CryptoRngCore) -> Vec<(Candidate<S>, Join<S>)> {
        let room = (self.config.max_members as usize).saturating_sub(self.roster().len());
        let (candidates, rest) = self.waiting.take(room);
        for candidate in rest {
            self.refuse(
                candidate.peer,
                Reason::Full,
                &candidate.nonce,
                self.config.timing.batching_max,
            );
        }
        let mut joins = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            let (drone, ephemeral) = (candidate.request.drone.clone(), candidate.request.ephemeral);
            match Join::new(&self.config.deployment, drone, ephemeral) {
                Ok(join) => joins.push((candidate, join)),
                Err(error) => self.turn_away(&candidate, error),
            }
        }
        if !self.all_signed(&joins, rng) {
            joins = self.those_signed(joins, rng);
        }
        joins
    }

    fn all_signed(&self, joins: &[(Candidate<S>, Join<S>)], rng: &mut dyn CryptoRngCore) -> bool {
        let group = &self.config.group;
        let spares: Vec<Vec<u8>> = joins
            .iter()
            .map(|(c, _)| c.request.spare.message(group, &c.request.drone))
            .collect();
        let mut items = Vec::with_capacity(joins.len() * 2);
        let mut implicit = Vec::with_capacity(joins.len() * 2);
        for ((candidate, join), spare) in joins.iter().zip(&spares) {
            let (request, public) = (&candidate.request, &candidate.request.drone);
            let (message, signature) = (&candidate.statement, &request.signature);
            items.push(SignedItem {
                public,
                label: Label::Join,
                message,
                signature,
            });
            items.push(SignedItem {
                public,
                label: Label::Spare,
                message: spare,
                signature: &request.spare.signature,
            });
            implicit.extend([*join.implicit(), *join.implicit()]);
        }
        verify_batch_implicit(&self.config.deployment, &items, &implicit, rng)
    }

    fn those_signed(
        &mut self,
        joins: Vec<(Candidate<S>, Join<S>)>,
        rng: &mut dyn CryptoRngCore,
    ) -> Vec<(Candidate<S>, Join<S>)> {
        let mut signed = Vec::with_capacity(joins.len());
        for join in joins {
            let one = core::slice::from_ref(&join);
            if self.all_signed(one, rng) {
                signed.push(join);
            } else {
                self.turn_away(&join.0, quiver_ainq::Error::InvalidSignature);
            }
        }
        signed
    }

    fn turn_away(&mut self, candidate: &Candidate<S>, error: quiver_ainq::Error) {
        self.refuse(
            candidate.peer,
            Reason::BadSignature,
            &candidate.nonce,
            Duration::ZERO,
        );
        self.blame(candidate.peer, error);
    }

    pub(super) fn refuse(&mut self, peer: Peer, reason: Reason, reference: &[u8], retry_after: Duration) {
        let refusal = Refusal {
            reason,
            reference: reference.to_vec(),
            retry_after,
        };
        self.out
            .send(&self.config.deployment, peer, &Message::Refusal(refusal));
        self.out.event(LeaderEvent::Refused { peer, reason });
    }
}
