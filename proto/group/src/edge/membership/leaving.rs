//! Leaving, and being put out.

use quiver_ainq::{Label, Role, Suite};
use quiver_message::{EvictionNotice, Leave, Message};
use rand_core::CryptoRngCore;

use crate::edge::{Edge, EdgeEvent, Standing};
use crate::statements;
use quiver_machine::{Now, Peer};

impl<S: Suite> Edge<S> {
    /// Asks to be removed; the keys are erased once a header shows that it happened.
    pub(in crate::edge) fn leave(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        self.wanted = None;
        match &self.standing {
            Standing::Member(_) => {
                self.persist();
                self.send_leave(now, rng);
            }
            // Who asked to be let in may be in already: it leaves as soon as it knows.
            Standing::Joining(joining) if joining.has_asked() => self.persist(),
            _ => self.left(),
        }
    }

    pub(in crate::edge) fn send_leave(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        if self.is_anonymous() {
            return self.send_leave_anonymous(now, rng);
        }
        let (Standing::Member(member), Some(keypair)) = (&mut self.standing, &self.keypair) else {
            return;
        };
        member.leaving = Some(now.monotonic + member.backoff.next(rng));
        let Some(leader) = self.leaders.first().copied() else {
            return;
        };
        let (group, held) = (member.membership.group().clone(), *member.membership.digest());
        let statement = statements::leave(&group, keypair.public(), &held);
        let signature = keypair.sign(&self.config.deployment, Label::Leave, &statement, rng);
        let leave = Leave { group, slot: member.membership.slot(), held, signature };
        self.out.send(&self.config.deployment, leader, &Message::Leave(leave));
    }

    pub(in crate::edge) fn left(&mut self) {
        self.end_membership();
        self.persist();
        self.out.event(EdgeEvent::Left);
        self.run_is_left();
    }

    /// A signed header removed us: as we asked, or not.
    pub(in crate::edge) fn removed(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let Standing::Member(member) = &self.standing else {
            return;
        };
        if member.leaving.is_some() {
            return self.left();
        }
        self.out.event(EdgeEvent::Evicted);
        let mut backoff = self.backoff();
        // Perhaps only this membership ended (the leader took a second join for ours): ask once more, slowly.
        let retry = self.wanted.is_some().then(|| now.monotonic + backoff.next(rng) * 8);
        self.end_membership_until(retry, backoff);
        self.persist();
        self.run_is_evicted(now);
    }

    /// A leader's signed notice that names us.
    #[inline(never)]
    pub(in crate::edge) fn eviction_notice(&mut self, now: Now, from: Peer, notice: &EvictionNotice<S>) {
        let (Standing::Member(member), Some(keypair)) = (&self.standing, &self.keypair) else {
            return;
        };
        let group = member.membership.group();
        if notice.group != *group || !notice.serials.contains(&keypair.public().identity.serial) {
            return;
        }
        let leads = match &notice.leader.identity.role {
            Role::Leader { group: led, ordinal } => led == group && *ordinal == notice.epoch.ordinal(),
            Role::Edge => false,
        };
        let ended = now.unix >= notice.leader.identity.not_after;
        let out = self.revocations.names(&notice.leader) || self.refused.names(&notice.leader);
        if !leads || ended || out {
            return self.blame(from, quiver_ainq::Error::NotALeader);
        }
        if notice.epoch <= member.membership.epoch() {
            return self.blame(from, quiver_ainq::Error::Stale);
        }
        let statement = statements::evict(group, notice.epoch, &notice.serials);
        match notice.signature.verify(&self.config.deployment, &notice.leader, Label::Evict, &statement) {
            Err(error) => self.blame(from, error),
            Ok(()) => {
                self.wanted = None;
                self.end_membership();
                self.persist();
                self.out.event(EdgeEvent::Evicted);
            }
        }
    }
}
