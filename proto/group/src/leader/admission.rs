//! Letting drones in: challenge, then the checks that cost nothing. The signatures of a connection's first request are verified
//! at once, those of the ones behind it when the batch closes.

use core::time::Duration;

use quiver_ainq::{Name, Role, Suite};
use quiver_message::{DecodedJoinRequest, JoinChallenge, JoinHello, JoinRequest, Message, Reason, Refusal};

use super::waiting::Candidate;
use super::{Leader, LeaderEvent};
use crate::statements;
use quiver_machine::{Now, Offence, Peer};

/// When to come again to a leader that waits for a newer revocation list.
const STALE_WAIT: Duration = Duration::from_secs(60);

impl<S: Suite> Leader<S> {
    pub(super) fn join_hello(&mut self, now: Now, from: Peer, hello: &JoinHello) {
        if let Err((reason, wait)) = self.serves(now, from, &hello.group) {
            return self.refuse(from, reason, &hello.nonce, wait);
        }
        let Some(keypair) = &self.memory.keypair else {
            return;
        };
        let challenge = JoinChallenge {
            nonce: hello.nonce,
            challenge: self.cookies.bake(now.monotonic, from, &[&hello.nonce, &hello.drone]),
            leader: keypair.public().clone(),
            revocation_number: self.memory.revocations.number(),
        };
        self.out.send(&self.config.deployment, from, &Message::JoinChallenge(challenge));
    }

    fn serves(&mut self, now: Now, from: Peer, group: &Name) -> Result<(), (Reason, Duration)> {
        if *group != self.config.group {
            Err((Reason::WrongGroup, Duration::ZERO))
        } else if self.memory.revocations.forbids_joins(now.unix) {
            Err((Reason::NotReady, STALE_WAIT))
        } else if self.lead.is_none() {
            Err((Reason::NotReady, self.ready_in(now)))
        } else if self.waiting.is_full(now) || self.waiting.is_full_for(from) {
            Err((Reason::Busy, self.config.timing.batching_max))
        } else {
            Ok(())
        }
    }

    pub(super) fn join_request(&mut self, now: Now, from: Peer, request: &JoinRequest) {
        let parts: [&[u8]; 2] = [&request.nonce, &request.drone];
        if !self.cookies.recognises(now.monotonic, from, &parts, &request.challenge) {
            self.refuse(from, Reason::BadCookie, &request.nonce, Duration::ZERO);
            return self.blame(from, Offence::Cookie);
        }
        if self.waiting.knows(from, &request.challenge) {
            return self.blame(from, quiver_ainq::Error::Replay);
        }
        if let Err((reason, wait)) = self.serves(now, from, &request.group) {
            return self.refuse(from, reason, &request.nonce, wait);
        }
        if self.demands_policy() {
            return self.refuse(from, Reason::AdmissionOnly, &request.nonce, Duration::ZERO);
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
        let mut candidate = Candidate {
            peer: from,
            nonce: request.nonce,
            challenge: request.challenge,
            request: decoded,
            statement,
            implicit: None,
        };
        // A stranger's request neither waits nor takes room before it has shown that it is one.
        if !self.waiting.trusts(from) {
            match self.verify_join(&candidate) {
                Err(error) => return self.turn_away(&candidate, error),
                Ok(implicit) => candidate.implicit = Some(implicit),
            }
        }
        self.waiting.push(now, candidate);
    }

    /// Role, lifetime, authorisation (default deny), revocation, eviction.
    pub(super) fn may_join(&self, now: Now, request: &DecodedJoinRequest<S>) -> Result<(), Reason> {
        let identity = &request.drone.identity;
        let allowed =
            identity.groups.contains(&self.config.group) || self.config.allow.contains(&identity.serial);
        if identity.role != Role::Edge || !allowed {
            Err(Reason::NotAuthorised)
        } else if now.unix >= identity.not_after {
            Err(Reason::Expired)
        } else if self.memory.revocations.names(&request.drone) {
            Err(Reason::Revoked)
        } else if self.roster().is_evicted(&identity.serial) || self.backlog.is_barred(&identity.serial) {
            Err(Reason::Evicted)
        } else if request.spare.q == 0 {
            Err(Reason::Malformed)
        } else {
            Ok(())
        }
    }

    pub(super) fn refuse(&mut self, peer: Peer, reason: Reason, reference: &[u8], retry_after: Duration) {
        let refusal = Refusal { reason, reference: reference.to_vec(), retry_after };
        self.out.send(&self.config.deployment, peer, &Message::Refusal(refusal));
        self.out.event(LeaderEvent::Refused { peer, reason });
    }
}
