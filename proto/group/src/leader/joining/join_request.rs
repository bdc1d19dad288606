//! Handles join requests: challenge, then the checks that cost nothing. The signatures of a connection's
//! first request are verified at once, those of the ones behind it when the batch closes. docs/protocol.md
//! §6.1, §6.2.

use core::time::Duration;

use quiver_ainq::{Error, KemTerm, Name, Role, Suite};
use quiver_machine::{Offence, Peer};
use quiver_message::{
    DecodedJoinRequest, JoinChallenge, JoinHello, JoinRequest, KemOffer, Message, RefusalReason,
};

use super::LeaderJoins;
use super::join_queue::UnverifiedJoin;
use super::kem_exchange::{compare_kem, exchange, exchange_ahead, same_kem};
use crate::leader::context::LeaderContext;
use crate::leader::term::Term;
use crate::leader::term::pending_changes::PendingChanges;
use crate::statements;

/// Pause before a drone asks again at a leader that waits for a newer revocation list.
const STALE_WAIT: Duration = Duration::from_secs(60);

/// A term in force, or how long it takes, as far as is known, until there is one.
pub(in crate::leader) type Leading<'a, S> = Result<&'a Term<S>, Duration>;

impl<S: Suite> LeaderJoins<S> {
    /// Answers a hello with a challenge that holds for this connection, nonce and drone.
    pub(in crate::leader) fn hello(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        term: Leading<'_, S>,
        from: Peer,
        hello: &JoinHello,
    ) {
        let kem = match self.serves(cx, term, from, &hello.group) {
            Ok(term) => {
                // §24.6: the challenge names our set, so a drone of another stops there. A deputy goes on: it is to
                // see that this leader is there.
                compare_kem(cx, from, hello.kem);
                term.kem()
            }
            Err((reason, wait)) => {
                cx.refuse(from, reason, &hello.nonce, wait);
                // §24.7: a drone that wants to join goes on to another leader; a member makes κ with this one.
                let kem = cx.store.kem.standing_by();
                let asked = hello.kem.is_some() && hello.kem == kem.map(|kem| kem.set());
                if term.is_ok() || hello.group != cx.config.group || !asked {
                    return;
                }
                kem
            }
        };
        let Some(keypair) = &cx.store.keypair else { return };
        // §6.1: n_L is a stateless cookie over n_e and the key: no state, no curve arithmetic.
        let challenge = JoinChallenge {
            nonce: hello.nonce,
            challenge: cx.cookies.bake(cx.now.monotonic, from, &[&hello.nonce, &hello.drone]),
            leader: keypair.public().clone(),
            revocation_number: cx.store.revocations.number(),
            kem,
        };
        cx.send(from, &Message::JoinChallenge(challenge));
    }

    fn serves<'a>(
        &mut self,
        cx: &LeaderContext<'_, S>,
        term: Leading<'a, S>,
        from: Peer,
        group: &Name,
    ) -> Result<&'a Term<S>, (RefusalReason, Duration)> {
        if *group != cx.config.group {
            return Err((RefusalReason::WrongGroup, Duration::ZERO));
        }
        // §12.6: no joins by name under a stale list, if set so.
        if cx.store.revocations.forbids_joins(cx.now.unix) {
            return Err((RefusalReason::NotReady, STALE_WAIT));
        }
        let term = term.map_err(|wait| (RefusalReason::NotReady, wait))?;
        // §6.4: bounded in all, and for each connection.
        if self.queue.is_full(cx.now) || self.queue.is_full_for(from, cx.peers.is_verified(from)) {
            return Err((RefusalReason::Busy, cx.config.timing.batching_max));
        }
        Ok(term)
    }

    /// A request that answers a challenge.
    pub(in crate::leader) fn request(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        term: Leading<'_, S>,
        from: Peer,
        request: &JoinRequest,
    ) {
        // §6.1: the challenge is ours, for this connection, nonce and drone, and was not answered before.
        let parts: [&[u8]; 2] = [&request.nonce, &request.drone];
        if !cx.cookies.recognises(cx.now.monotonic, from, &parts, &request.challenge) {
            cx.refuse(from, RefusalReason::BadCookie, &request.nonce, Duration::ZERO);
            return cx.blame(from, Offence::Cookie);
        }
        // §6.4: an answered challenge is not accepted again.
        if self.queue.knows(from, &request.challenge) {
            return cx.blame(from, Error::Replay);
        }
        if let Some(KemOffer::Ahead { key, .. }) = &request.kem {
            if let Err(reason) = self.request_ahead(cx, term, from, (request, key)) {
                cx.refuse(from, reason, &request.nonce, Duration::ZERO);
            }
            return;
        }
        let term = match self.serves(cx, term, from, &request.group) {
            Ok(term) => term,
            Err((reason, wait)) => return cx.refuse(from, reason, &request.nonce, wait),
        };
        // §6.5: a group that demands a policy admits no drone by name.
        if self.anonymous_only {
            return cx.refuse(from, RefusalReason::AdmissionOnly, &request.nonce, Duration::ZERO);
        }
        // §24.6: the signature covers what the request says of it.
        if let Err(reason) = same_kem(cx, from, request.kem.as_ref().map(KemOffer::set)) {
            return cx.refuse(from, reason, &request.nonce, Duration::ZERO);
        }
        let decoded = match request.decode::<S>() {
            Ok(decoded) => decoded,
            Err(error) => {
                cx.refuse(from, RefusalReason::Malformed, &request.nonce, Duration::ZERO);
                return cx.blame(from, error);
            }
        };
        // §6.2: before a signature is verified.
        if let Err(reason) = authorize(cx, term.roster(), &term.pending, &decoded) {
            return cx.refuse(from, reason, &request.nonce, Duration::ZERO);
        }
        if let Some(candidate) = candidate(cx, from, request, decoded) {
            self.enqueue(cx, candidate, (term.kem(), request.kem.as_ref()));
        }
    }

    /// A member asks for κ with a leader that it may follow one day (§24.7), and for no membership.
    fn request_ahead(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        term: Leading<'_, S>,
        from: Peer,
        (request, key): (&JoinRequest, &[u8]),
    ) -> Result<(), RefusalReason> {
        // Who leads has κ with its members since they joined.
        let kem = cx.store.kem.standing_by().filter(|_| term.is_err() && !self.anonymous_only);
        let kem = kem.ok_or(RefusalReason::NotReady)?;
        if request.group != cx.config.group {
            return Err(RefusalReason::WrongGroup);
        }
        same_kem(cx, from, request.kem.as_ref().map(KemOffer::set))?;
        // §6.4: challenges that were answered, of all and of this connection.
        if self.queue.is_full(cx.now) || self.queue.is_full_for(from, false) {
            return Err(RefusalReason::Busy);
        }
        let decoded = request.decode::<S>().map_err(|error| {
            cx.blame(from, error);
            RefusalReason::Malformed
        })?;
        // §24.7: members alone, as the copy of the roster has them: as many as a group has at most.
        let slot = cx.store.roster.find(&decoded.drone.identity.serial);
        if slot.and_then(|slot| cx.store.roster.get(slot)) != Some(&decoded.drone) {
            return Err(RefusalReason::NotReady);
        }
        authorize(cx, &cx.store.roster, &PendingChanges::new(), &decoded)?;
        // §10.9: a failure is spent, too.
        if !cx.peers.affords_check(cx.now.monotonic, from) {
            return Err(RefusalReason::Busy);
        }
        let candidate = candidate(cx, from, request, decoded).ok_or(RefusalReason::NotReady)?;
        if let Err(error) = self.verify_join(cx, &candidate) {
            cx.blame(from, error);
            return Err(RefusalReason::BadSignature);
        }
        // §24.4: once for every challenge that was answered.
        self.queue.note_answered(cx.now, from, request.challenge);
        exchange_ahead(cx, &candidate, kem, key)
    }

    /// A stranger's request neither waits nor takes room before it has shown that it is one (§6.4).
    fn enqueue(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        mut candidate: UnverifiedJoin<S>,
        (kem, offer): (Option<KemTerm>, Option<&KemOffer>),
    ) {
        if !cx.peers.is_verified(candidate.peer) {
            // §6.4: the first request of a connection is verified before it is queued.
            match self.verify_join(cx, &candidate) {
                Err(error) => return super::batch_verify::turn_away(cx, &candidate, error),
                Ok(implicit) => candidate.implicit = Some(implicit),
            }
            cx.peers.note_verified(candidate.peer);
        }
        // §24.4: at most one encapsulation for each challenge that was answered.
        match exchange(cx, &candidate, kem, offer) {
            Ok(kem) => candidate.kem = kem,
            Err(reason) => return cx.refuse(candidate.peer, reason, &candidate.nonce, Duration::ZERO),
        }
        self.queue.push(cx.now, &cx.config.timing, candidate);
    }
}

fn candidate<S: Suite>(
    cx: &LeaderContext<'_, S>,
    peer: Peer,
    request: &JoinRequest,
    decoded: DecodedJoinRequest<S>,
) -> Option<UnverifiedJoin<S>> {
    let statement = statements::join(
        &request.group,
        cx.store.keypair.as_ref()?.public(),
        &decoded.drone,
        (&request.challenge, &request.nonce),
        &decoded.ephemeral,
        &decoded.spare,
        request.kem.as_ref(),
    );
    let (nonce, challenge) = (request.nonce, request.challenge);
    Some(UnverifiedJoin { peer, nonce, challenge, request: decoded, statement, implicit: None, kem: None })
}

/// §6.2: role, authorisation (default deny), lifetime, revocation, eviction.
pub(in crate::leader) fn authorize<S: Suite>(
    cx: &LeaderContext<'_, S>,
    roster: &quiver_ainq::Roster<S>,
    pending: &PendingChanges<S>,
    request: &DecodedJoinRequest<S>,
) -> Result<(), RefusalReason> {
    let identity = &request.drone.identity;
    let allowed = identity.groups.contains(&cx.config.group) || cx.config.allow.contains(&identity.serial);
    if identity.role != Role::Edge || !allowed {
        Err(RefusalReason::NotAuthorised)
    } else if cx.now.unix >= identity.not_after {
        Err(RefusalReason::Expired)
    } else if cx.store.revocations.names(&request.drone) {
        Err(RefusalReason::Revoked)
    } else if roster.is_evicted(&identity.serial) || pending.is_barred(&identity.serial) {
        Err(RefusalReason::Evicted)
    } else if request.spare.q == 0 {
        // §6.6: each request brings a spare point; they count from 1.
        Err(RefusalReason::Malformed)
    } else {
        Ok(())
    }
}
