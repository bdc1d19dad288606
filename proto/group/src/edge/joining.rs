//! Joins a group by name: hello, challenge, signed request, welcome.

use alloc::boxed::Box;
use core::time::Duration;

use quiver_ainq::{
    DroneKeypair, Element, Epoch, EpochPart, Error, GroupContext, GroupMembership, Header, KemKey, Label,
    Name, Role, SparePair, Suite, VerifiedHeader,
};
use quiver_machine::{Backoff, Now, Offence, Peer, due};
use quiver_message::{
    JoinChallenge, JoinCiphertext, JoinHello, JoinRequest, KemOffer, Message, Nonce, Refusal, RefusalReason,
    Rekey, Welcome,
};
use rand_core::CryptoRngCore;

use super::kem_keys::{Entered, KemExchange};
use super::membership::GroupMember;
use super::{AT_SERVICES, EdgeContext, EdgeEvent};
use crate::statements;

/// Broadcasts that name a newcomer and do not lead it to the key, after which it waits for its welcome.
const MAX_MISLED: u32 = 16;

/// Attempts to join a group: the one under way with one leader, or the wait before the next.
#[derive(Debug)]
pub(super) struct JoinAttempts<S: Suite> {
    /// Attempt under way, in a box, because an edge lives mostly without one.
    attempt: Option<Box<Attempt<S>>>,
    /// Time of the next attempt.
    retry: Option<Duration>,
    backoff: Backoff,
    /// Whether the leader said that it lost κ: the next request has an encapsulation key.
    anew: bool,
}

/// A join under way with one leader.
#[derive(Debug)]
struct Attempt<S: Suite> {
    leader: Peer,
    group: Name,
    nonce: Nonce,
    /// e_now, once the request was sent. Never stored: a join does not outlive the process.
    ephemeral: Option<SparePair<S>>,
    /// The exchange for a second factor, once the request was sent.
    exchange: Option<KemExchange<S>>,
    /// The newest epoch that the leader sent meanwhile, if it is what it says.
    newest: Option<Epoch>,
    /// Number of broadcasts that named this newcomer and did not lead it to the key.
    misled: u32,
    /// True once the leader's challenge named another parameter set: it is asked again when this attempt is
    /// over.
    differs: bool,
    deadline: Duration,
}

impl<S: Suite> JoinAttempts<S> {
    pub(super) fn new(backoff: Backoff) -> Self {
        Self { attempt: None, retry: None, backoff, anew: false }
    }

    /// Drops the attempt; a next one is made at `retry`, or when there is a reason.
    pub(super) fn reset(&mut self, retry: Option<Duration>, backoff: Backoff) {
        *self = Self { retry, ..Self::new(backoff) };
    }

    /// Makes the next attempt in a long while.
    pub(super) fn postpone(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        self.retry = Some(now.monotonic + self.backoff.next(rng) * 8);
    }

    /// Returns true if the leader may be about to admit the drone.
    pub(super) fn has_requested(&self) -> bool {
        self.attempt.as_ref().is_some_and(|attempt| attempt.ephemeral.is_some())
    }

    /// Returns true if an attempt with this leader is under way.
    pub(super) fn is_with(&self, leader: Peer) -> bool {
        self.attempt.as_ref().is_some_and(|attempt| attempt.leader == leader)
    }

    /// §6.1: sends a hello to the first connected leader, unless an attempt is under way. §12.3: a drone that
    /// the revocation list names asks no more.
    pub(super) fn begin(&mut self, cx: &mut EdgeContext<'_, S>, member: &GroupMember<S>) {
        let (None, Some(keypair), Some(group), Some(leader)) =
            (&self.attempt, cx.keypair, cx.group, cx.leaders.first())
        else {
            return;
        };
        if cx.revocations.names(keypair.public()) {
            self.retry = None;
            return;
        }
        let mut nonce = [0; 16];
        cx.rng.fill_bytes(&mut nonce);
        let hello = JoinHello {
            group: group.clone(),
            drone: keypair.public().encode(),
            nonce,
            kem: member.kem.setting().set(),
        };
        cx.send(leader, &Message::JoinHello(hello));
        let deadline = cx.now.monotonic + self.backoff.next(cx.rng);
        let attempt = Attempt {
            leader,
            group: group.clone(),
            nonce,
            ephemeral: None,
            exchange: None,
            newest: None,
            misled: 0,
            differs: false,
            deadline,
        };
        (self.attempt, self.retry) = (Some(Box::new(attempt)), None);
    }

    /// Begins again if an attempt was not answered in time, or if a wait is over. Returns whether to give up,
    /// because the drone is to leave by now.
    pub(super) fn tick(&mut self, cx: &mut EdgeContext<'_, S>, member: &GroupMember<S>) -> bool {
        if due(self.retry, cx.now.monotonic) {
            self.retry = None;
            self.begin(cx, member);
        } else if due(self.deadline(), cx.now.monotonic) {
            if cx.group.is_none() {
                return true;
            }
            if self.has_requested() {
                self.backoff.miss();
            }
            self.attempt = None;
            // §10.5: another leader may lead.
            cx.leaders.rotate();
            self.begin(cx, member);
        }
        false
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.attempt.as_ref().map_or(self.retry, |attempt| Some(attempt.deadline))
    }

    /// Takes an epoch that comes while the drone waits for its welcome. Of a broadcast the wraps may lead to the key;
    /// other epochs have perhaps overtaken the welcome.
    pub(super) fn waiting(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        member: &mut GroupMember<S>,
        from: Peer,
        message: &mut Message<S>,
    ) {
        let epoch = match message {
            Message::Rekey(rekey) => {
                let followed = self.attempt.as_mut().and_then(|attempt| attempt.follow(cx, member, rekey));
                if let Some((leader, admitted)) = followed {
                    return self.admitted(cx, member, leader, admitted, &rekey.header);
                }
                rekey.header.core.epoch
            }
            // §7.6: who holds no epoch yet cannot complete its header.
            Message::ShortRekey(short) => short.header.epoch,
            _ => return,
        };
        if let Some(attempt) = self.attempt.as_mut().filter(|attempt| attempt.leader == from) {
            attempt.newest = attempt.newest.max(Some(epoch));
        }
    }

    /// Takes a leader's challenge and answers it with a signed request.
    #[inline(never)]
    pub(super) fn challenged(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        member: &mut GroupMember<S>,
        from: Peer,
        challenge: &JoinChallenge<S>,
    ) {
        let Some(attempt) = &mut self.attempt else { return };
        if attempt.leader != from || attempt.nonce != challenge.nonce || attempt.ephemeral.is_some() {
            return;
        }
        // §24.6: told already.
        if attempt.differs {
            return;
        }
        let Some(group) = cx.group else { return };
        if let Err(offence) = may_lead(cx, group, challenge) {
            return cx.blame(from, offence);
        }
        // §12.6: tried again when the wait for this attempt is over. By then the leader may have sent a newer
        // list.
        if AT_SERVICES && cx.revocations.forbids_joins(cx.now.unix) {
            let query = Message::RevocationQuery(cx.revocations.query());
            cx.send(from, &query);
            return cx.event(EdgeEvent::RevocationsStale);
        }
        // §24.6: a leader of another deployment's setting is asked for nothing.
        let age = (cx.now.unix, self.anew);
        let exchange = match member.kem.offer(&challenge.leader, challenge.kem, age, cx.rng) {
            Ok(exchange) => exchange,
            Err(error) => {
                attempt.differs = true;
                let (own, other) = (member.kem.setting(), challenge.kem.map(|term| term.set()).into());
                cx.event(EdgeEvent::KemDiffers { own, leader: other });
                return cx.blame(from, error);
            }
        };
        member.expect(cx.deployment, &challenge.leader);
        let ephemeral = SparePair::ephemeral(cx.rng);
        // A term that we never followed may have been opened with the pair published before.
        member.spare_points.discard();
        let spare = member.spare_points.current(cx.rng);
        let offer = exchange.map(|(offer, exchange)| {
            attempt.exchange = Some(exchange);
            offer
        });
        let request = join_request(cx, group, challenge, ephemeral.point(), spare, offer);
        let Some(request) = request else { return };
        attempt.ephemeral = Some(ephemeral);
        attempt.deadline = cx.now.monotonic + self.backoff.patience(cx.timing.admission);
        // §6.6: the spare point is about to be public, so its secret must survive a crash.
        cx.persist();
        cx.send(from, &Message::JoinRequest(request));
    }

    /// Takes the leader's ciphertext for the encapsulation key of the request.
    pub(super) fn ciphertext(&mut self, cx: &EdgeContext<'_, S>, from: Peer, message: &JoinCiphertext) {
        // §24.4: of the leader that was asked: others could use up the few that are tried.
        let of = |attempt: &Attempt<S>| attempt.leader == from && attempt.nonce == message.nonce;
        let attempt = self.attempt.as_mut().filter(|attempt| of(attempt));
        let (Some(attempt), Some(keypair)) = (attempt, cx.keypair) else { return };
        if let Some(exchange) = &mut attempt.exchange {
            exchange.take((cx.deployment, &attempt.group), &keypair.public().handle(), message);
        }
    }

    /// Takes a leader's welcome, which makes the drone a member if everything about it holds.
    #[inline(never)]
    pub(super) fn welcomed(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        member: &mut GroupMember<S>,
        from: Peer,
        welcome: &mut Welcome<S>,
    ) {
        let Some(attempt) = self.attempt.as_ref().filter(|attempt| attempt.nonce == welcome.nonce) else {
            return;
        };
        match attempt.accept(cx, member, welcome) {
            Err(offence) => {
                if offence == Offence::Protocol(Error::Stale) {
                    member.send_header_of(cx, from, &attempt.group);
                }
                cx.blame(from, offence);
            }
            Ok(admitted) => self.admitted(cx, member, from, admitted, &welcome.header),
        }
    }

    /// The drone is a member, in an epoch of this leader.
    fn admitted(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        member: &mut GroupMember<S>,
        leader: Peer,
        (membership, entered): Admitted<S>,
        header: &Header<S>,
    ) {
        if let Some(entered) = entered {
            // §24.4: stored with the membership, before anything of it is acknowledged.
            member.kem.hold(header.core.leader.handle(), entered, cx.now.unix);
        }
        self.anew = false;
        // §7.3: e_now goes once the membership is made of it.
        let attempt = self.attempt.take();
        // §6.1: an epoch that overtook the welcome does not come again soon.
        let newest = attempt.and_then(|attempt| attempt.newest);
        let overtaken = AT_SERVICES && newest > Some(membership.epoch());
        member.admit(cx, leader, membership, header);
        if overtaken {
            member.request_catch_up(cx);
        }
        if cx.group.is_none() {
            // The join was given up while the request was under way, and is now undone.
            member.leave(cx);
        }
    }

    /// Takes a refusal. It is not authenticated: it sets the pace of attempts, no more.
    #[inline(never)]
    pub(super) fn refused(&mut self, cx: &mut EdgeContext<'_, S>, from: Peer, refusal: &Refusal) {
        let attempt = self.attempt.as_ref();
        if attempt.is_none_or(|attempt| attempt.leader != from || refusal.reference != attempt.nonce) {
            return;
        }
        let (timing, told) = (cx.timing, refusal.retry_after);
        let wait = if refusal.reason == RefusalReason::NotReady {
            cx.leaders.join_pause((from, told), timing, &mut self.backoff, cx.base.rng)
        } else {
            let patience = if refusal.reason.is_transient() { 1 } else { 8 };
            (self.backoff.next(cx.rng) * patience).max(told.min(timing.retry_max * 8))
        };
        (self.attempt, self.retry) = (None, Some(cx.now.monotonic + wait));
        if refusal.reason == RefusalReason::KemLost {
            // §24.5: κ stays until a new one takes its place: nobody signed that it is lost.
            self.anew = true;
        }
        if refusal.reason == RefusalReason::Revoked {
            // §12.3: the list that says so is signed.
            let query = Message::RevocationQuery(cx.revocations.query());
            cx.send(from, &query);
        }
        cx.event(EdgeEvent::Refused(refusal.reason));
    }
}

impl<S: Suite> Attempt<S> {
    /// The membership that a welcome gives, if everything about it holds. Changes nothing, but that the
    /// leader's key in the header remembers its Y.
    fn accept(
        &self,
        cx: &EdgeContext<'_, S>,
        member: &GroupMember<S>,
        welcome: &mut Welcome<S>,
    ) -> Result<Admitted<S>, Offence> {
        // §8.2: a path message names the nonce of the join that it answers.
        let replayed = matches!(&welcome.part, EpochPart::Path(path) if path.r != self.nonce);
        self.enter(cx, member, &mut welcome.header, |context, keypair, (ephemeral, kem), header| {
            if replayed {
                return Err(Error::Replay);
            }
            GroupMembership::join_with_kem(context, keypair, ephemeral, kem, header, &welcome.part)
        })
    }

    /// The membership that a broadcast gives whose wraps lead this newcomer to the key, and the leader that was asked.
    /// Any peer may publish one, so the sender is not penalised.
    fn follow(
        &mut self,
        cx: &EdgeContext<'_, S>,
        member: &GroupMember<S>,
        rekey: &mut Rekey<S>,
    ) -> Option<(Peer, Admitted<S>)> {
        // §6.1: the broadcast names the drone's slot by its n_e.
        let slot = rekey.newcomers.slot_of(&self.nonce)?;
        let Some(EpochPart::Delta(delta)) = &rekey.part else { return None };
        // §6.1: nobody signed that it is for this drone; the welcome comes in any case.
        if self.misled >= MAX_MISLED {
            return None;
        }
        let joined = self.enter(cx, member, &mut rekey.header, |context, keypair, secrets, header| {
            GroupMembership::join_by_wraps_with_kem(context, keypair, secrets, header, slot, delta)
        });
        if joined.is_err() {
            self.misled += 1;
        }
        Some((self.leader, joined.ok()?))
    }

    /// Verifies a header that may add the drone to the group, and then enters it by what came beside. The leader's key
    /// in the header remembers its Y.
    fn enter(
        &self,
        cx: &EdgeContext<'_, S>,
        member: &GroupMember<S>,
        header: &mut Header<S>,
        enter: impl Fn(
            &GroupContext<S>,
            &DroneKeypair<S>,
            (&SparePair<S>, Option<&KemKey<S>>),
            &VerifiedHeader<S>,
        ) -> Result<GroupMembership<S>, Error>,
    ) -> Result<Admitted<S>, Offence> {
        cx.leaders.check(header)?;
        // §24.6: before anything is computed.
        member.kem.check(&header.core)?;
        let (group, keypair) = (&self.group, cx.keypair.ok_or(Error::WrongGroup)?);
        let ephemeral = self.ephemeral.as_ref().ok_or(Error::MissingEntry)?;
        let (deployment, list) = (cx.deployment.clone(), cx.revocations.list());
        // §7.3: shape, newer than ever accepted, signature, validity.
        let newest = member.history.newest_in(group);
        let verified = header.clone().verify(&deployment, group, newest, list, cx.now.unix)?;
        header.core.leader.clone_from(&verified.core().leader);
        let leader = verified.core().leader.clone();
        let context = GroupContext { deployment, group: group.clone(), leader };
        let mut outcome = Err(Error::MissingKem);
        // §24.4: a forged ciphertext may have come before the leader's.
        for entered in self.exchange.iter().flat_map(|exchange| exchange.candidates(verified.core())) {
            match enter(&context, keypair, (ephemeral, Some(entered.key())), &verified) {
                Ok(membership) => return Ok((membership, Some(entered))),
                Err(error) => outcome = Err(error),
            }
        }
        if verified.core().kem.is_none() {
            outcome = enter(&context, keypair, (ephemeral, None), &verified);
        }
        Ok((outcome?, None))
    }
}

/// A membership, and κ with which it began if there is a second factor.
type Admitted<S> = (GroupMembership<S>, Option<Entered<S>>);

/// Checks that the leader that answers may lead this group.
///
/// # Errors
/// Reason against it.
pub(super) fn may_lead<S: Suite>(
    cx: &EdgeContext<'_, S>,
    group: &Name,
    challenge: &JoinChallenge<S>,
) -> Result<(), Offence> {
    let leader = &challenge.leader;
    // §6.1: it leads this group, and is neither revoked nor refused.
    if !matches!(&leader.identity.role, Role::Leader { group: led, .. } if led == group) {
        Err(Error::NotALeader.into())
    } else if cx.revocations.names(leader) {
        Err(Error::Revoked.into())
    } else if cx.leaders.refuses(leader) {
        Err(Offence::RefusedLeader)
    } else {
        Ok(())
    }
}

/// The signed request that answers a challenge.
pub(super) fn join_request<S: Suite>(
    cx: &mut EdgeContext<'_, S>,
    group: &Name,
    challenge: &JoinChallenge<S>,
    ephemeral: &Element<S>,
    spare: &SparePair<S>,
    kem: Option<KemOffer>,
) -> Option<JoinRequest> {
    let keypair = cx.keypair?;
    let spare = spare.statement(keypair, cx.deployment, group, cx.rng);
    let nonces = (&challenge.challenge, &challenge.nonce);
    let statement =
        statements::join(group, &challenge.leader, keypair.public(), nonces, ephemeral, &spare, kem.as_ref());
    let signature = keypair.sign(cx.deployment, Label::Join, &statement, cx.rng);
    Some(JoinRequest {
        group: group.clone(),
        drone: keypair.public().encode(),
        nonce: challenge.nonce,
        challenge: challenge.challenge,
        ephemeral: ephemeral.as_bytes().to_vec(),
        spare_q: spare.q,
        spare_point: spare.point.as_bytes().to_vec(),
        spare_signature: spare.signature.encode(),
        signature: signature.encode(),
        kem,
    })
}
