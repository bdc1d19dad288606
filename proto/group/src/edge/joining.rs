//! Joining: hello, challenge, signed request, welcome.

use core::time::Duration;

use quiver_ainq::{
    Element, Epoch, Error, GroupContext, Label, Membership, Name, Part, Role, SparePair, Suite,
};
use quiver_message::{JoinChallenge, JoinHello, JoinRequest, Message, Nonce, Reason, Refusal, Welcome};
use rand_core::CryptoRngCore;

use super::membership::member::KeptHeader;
use super::{Edge, EdgeEvent, Member, Standing};
use crate::statements;
use quiver_machine::Backoff;
use quiver_machine::{Now, Offence, Peer};

/// A join under way with one leader.
#[derive(Debug)]
pub(super) struct Joining<S: Suite> {
    pub(super) peer: Peer,
    group: Name,
    nonce: Nonce,
    /// e_now, once the request was sent. Never stored: a join does not outlive the process.
    ephemeral: Option<SparePair<S>>,
    pub(super) deadline: Duration,
    backoff: Backoff,
}

impl<S: Suite> Joining<S> {
    /// Whether the leader may be about to let us in.
    pub(super) fn has_asked(&self) -> bool {
        self.ephemeral.is_some()
    }
}

impl<S: Suite> Edge<S> {
    /// Says hello to the first connected leader.
    pub(super) fn begin_join(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if self.is_anonymous() {
            return self.begin_run(now, rng);
        }
        let (Some(keypair), Some(group), Some(peer)) =
            (&self.keypair, &self.wanted, self.leaders.first().copied())
        else {
            return;
        };
        let Standing::Outside { backoff, .. } = &mut self.standing else {
            return;
        };
        let mut nonce = [0; 16];
        rng.fill_bytes(&mut nonce);
        let hello = JoinHello { group: group.clone(), drone: keypair.public().encode(), nonce };
        self.out.send(&self.config.deployment, peer, &Message::<S>::JoinHello(hello));
        let deadline = now.monotonic + backoff.next(rng);
        let (group, backoff) = (group.clone(), backoff.clone());
        self.standing = Standing::Joining(Joining { peer, group, nonce, ephemeral: None, deadline, backoff });
    }

    /// No answer in time: begin again, with the next leader first if there are several.
    pub(super) fn retry_join(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if self.wanted.is_none() {
            return self.left();
        }
        if let Standing::Joining(joining) = &mut self.standing {
            if joining.has_asked() {
                joining.backoff.miss();
            }
            self.standing = Standing::Outside { retry: None, backoff: joining.backoff.clone() };
            if !self.leaders.is_empty() {
                self.leaders.rotate_left(1);
            }
            self.begin_join(now, rng);
        }
    }

    #[inline(never)]
    pub(super) fn challenged(
        &mut self,
        now: Now,
        from: Peer,
        message: &JoinChallenge<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        let Standing::Joining(joining) = &self.standing else {
            return;
        };
        if joining.peer != from || joining.nonce != message.nonce || joining.ephemeral.is_some() {
            return;
        }
        let Some(group) = self.wanted.clone() else { return };
        let leads = matches!(&message.leader.identity.role, Role::Leader { group: led, .. } if *led == group);
        if !leads {
            return self.blame(from, Error::NotALeader);
        }
        if self.revocations.names(&message.leader) {
            return self.blame(from, Error::Revoked);
        }
        if self.refused.names(&message.leader) {
            return self.blame(from, Offence::RefusedLeader);
        }
        #[cfg(feature = "services")]
        if self.revocations.forbids_joins(now.unix) {
            // Tried again when the wait for this attempt is over. By then the leader may have sent a newer one.
            let query = Message::<S>::RevocationQuery(self.revocations.query());
            self.out.send(&self.config.deployment, from, &query);
            return self.out.event(EdgeEvent::RevocationsStale);
        }
        self.expect(&message.leader);
        let ephemeral = SparePair::<S>::ephemeral(rng);
        // A term that we never followed may have been opened with the pair published before.
        self.spares.current = None;
        let Some(request) = self.join_request(group, message, ephemeral.point(), rng) else { return };
        if let Standing::Joining(joining) = &mut self.standing {
            joining.ephemeral = Some(ephemeral);
            joining.deadline = now.monotonic + joining.backoff.patience(self.config.timing.admission);
        }
        // The spare point is about to be public: its secret must survive a crash.
        self.persist();
        self.out.send(&self.config.deployment, from, &Message::<S>::JoinRequest(request));
    }

    /// The signed request that answers a challenge.
    fn join_request(
        &mut self,
        group: Name,
        message: &JoinChallenge<S>,
        ephemeral: &Element<S>,
        rng: &mut dyn CryptoRngCore,
    ) -> Option<JoinRequest> {
        let keypair = self.keypair.as_ref()?;
        let spare = self.spares.current(rng).statement(keypair, &self.config.deployment, &group, rng);
        let nonces = (&message.challenge, &message.nonce);
        let statement =
            statements::join(&group, &message.leader, keypair.public(), nonces, ephemeral, &spare);
        let signature = keypair.sign(&self.config.deployment, Label::Join, &statement, rng);
        Some(JoinRequest {
            group,
            drone: keypair.public().encode(),
            nonce: message.nonce,
            challenge: message.challenge,
            ephemeral: ephemeral.as_bytes().to_vec(),
            spare_q: spare.q,
            spare_point: spare.point.as_bytes().to_vec(),
            spare_signature: spare.signature.encode(),
            signature: signature.encode(),
        })
    }

    #[inline(never)]
    pub(super) fn welcomed(
        &mut self,
        now: Now,
        from: Peer,
        welcome: &mut Welcome<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        if self.is_anonymous() {
            return self.welcomed_anonymous(now, from, welcome, rng);
        }
        let Standing::Joining(joining) = &self.standing else {
            return;
        };
        if joining.nonce != welcome.nonce {
            return;
        }
        match self.unless_refused(&welcome.header).and_then(|()| Ok(self.admit(now, welcome)?)) {
            Err(offence) => {
                self.send_last_header(from, &offence);
                self.blame(from, offence);
            }
            Ok(mut member) => {
                // E_now is fresh and the header adds it: nothing older could have been made for it.
                member.anchored = true;
                member.answered(now, self.config.timing.probe);
                self.standing = Standing::Member(member);
                self.spares.delivered();
                self.activated(now, from, &welcome.header, false, rng);
                self.prefer(from);
                self.introduce_soon(now);
                if self.wanted.is_none() {
                    // It was given up while the request was under way, and now is to be taken back.
                    self.send_leave(now, rng);
                }
            }
        }
    }

    /// A leader that lets us in with an epoch below one that we held has forgotten how far its group is: it is shown.
    fn send_last_header(&mut self, from: Peer, offence: &Offence) {
        let Standing::Joining(joining) = &self.standing else { return };
        let header = self.history.header_in(&joining.group).cloned();
        let header = header.filter(|_| *offence == Offence::Protocol(Error::Stale));
        if let Some(header) = header.filter(|_| self.leaders.contains(&from)) {
            self.send_header(from, &header);
        }
    }

    /// The membership that a welcome gives, if everything about it holds. Changes nothing, but that the leader's key in the
    /// header remembers its Y.
    fn admit(&self, now: Now, welcome: &mut Welcome<S>) -> Result<Member<S>, Error> {
        let (Standing::Joining(joining), Some(keypair)) = (&self.standing, &self.keypair) else {
            return Err(Error::WrongGroup);
        };
        let group = &joining.group;
        let ephemeral = joining.ephemeral.as_ref().ok_or(Error::MissingEntry)?;
        let deployment = self.config.deployment.clone();
        let newest = self.newest_in(group);
        let list = self.revocations.list();
        let header = welcome.header.clone().verify(&deployment, group, newest, list, now.unix)?;
        welcome.header.core.leader.clone_from(&header.core().leader);
        let context = GroupContext { deployment, group: group.clone(), leader: header.core().leader.clone() };
        if matches!(&welcome.part, Part::Path(path) if path.r != joining.nonce) {
            return Err(Error::Replay);
        }
        let membership = Membership::join_with_pair(&context, keypair, ephemeral, &header, &welcome.part)?;
        let header = KeptHeader::new(header.header(), &self.config.deployment);
        Ok(Member::new(membership, header, self.backoff()))
    }

    /// The newest epoch ever accepted in this group.
    pub(super) fn newest_in(&self, group: &Name) -> Option<Epoch> {
        self.history.newest_in(group)
    }

    /// A refusal is not authenticated: it sets the pace of retries and may make a member ask to join again, no more.
    #[inline(never)]
    pub(super) fn refused(&mut self, now: Now, from: Peer, refusal: &Refusal, rng: &mut dyn CryptoRngCore) {
        if self.refused_anonymous(now, from, refusal, rng) {
            return;
        }
        match &mut self.standing {
            Standing::Joining(joining) if joining.peer == from && refusal.reference == joining.nonce => {
                let mut backoff = joining.backoff.clone();
                let wait = if refusal.reason == Reason::NotReady {
                    self.until_ready(from, refusal.retry_after, &mut backoff, rng)
                } else {
                    let patience = if refusal.reason.is_transient() { 1 } else { 8 };
                    let told = refusal.retry_after.min(self.config.timing.retry_max * 8);
                    (backoff.next(rng) * patience).max(told)
                };
                self.standing = Standing::Outside { retry: Some(now.monotonic + wait), backoff };
                self.out.event(EdgeEvent::Refused(refusal.reason));
            }
            Standing::Member(member) => {
                let about_us =
                    member.question.as_ref().is_some_and(|question| refusal.reference == question.number);
                if !about_us {
                    return;
                }
                if member.leaving.is_some() && refusal.reason == Reason::Rejoin {
                    return self.left();
                }
                if refusal.reason == Reason::Rejoin {
                    self.rejoin(now, rng);
                } else {
                    self.out.event(EdgeEvent::Refused(refusal.reason));
                    if refusal.reason == Reason::NotReady {
                        self.not_leading(now, from, refusal.retry_after, rng);
                    }
                }
            }
            _ => {}
        }
    }

    /// Out of date beyond catching up: the old keys are erased and the edge joins anew.
    pub(super) fn rejoin(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if self.is_anonymous() {
            return self.dropped();
        }
        self.end_membership();
        self.persist();
        self.approach(now, rng);
    }
}
