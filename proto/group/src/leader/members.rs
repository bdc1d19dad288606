//! What members say to their leader: acknowledgements, questions, spare points, leaves.

use core::time::Duration;

use quiver_ainq::{
    LEADER_SLOT, Label, Part, PathNonce, Slot, StrategyKind, Suite, ack_tag, catch_up_tag, fresh_tag,
};
use quiver_crypto::ct_eq;
use quiver_message::{
    Ack, CatchUpReply, CatchUpRequest, GroupMessage, Leave, Message, Reason, SpareAck, SparePublication,
};
use rand_core::CryptoRngCore;

use super::memory::{Spare, spare_change};
use super::{Leader, LeaderEvent};
use crate::speech::Audience;
use crate::statements;
use quiver_machine::Rate;
use quiver_machine::{Now, Offence, Peer};

/// How often a connection's questions are answered: a gateway may carry many members.
pub(super) const CATCH_UPS: Rate = Rate { burst: 256, refill: Duration::from_millis(50) };
/// Those that nothing authenticates: a stranger asks them too.
pub(super) const BARE_CATCH_UPS: Rate = Rate { burst: 4, refill: Duration::from_secs(1) };
/// How often at most a member's restart makes the leader renew the key.
const RESTART_PAUSE: Duration = Duration::from_secs(10);

impl<S: Suite> Leader<S> {
    pub(super) fn acknowledged(&mut self, now: Now, from: Peer, ack: &Ack) {
        let Some(lead) = &mut self.lead else { return };
        let leadership = &lead.leadership;
        // Late acknowledgements of the epoch before are no offence.
        if ack.epoch != leadership.epoch() {
            return;
        }
        let holds = leadership
            .auth_key(ack.slot)
            .is_some_and(|auth| ct_eq(&ack_tag::<S>(auth, leadership.digest()), &ack.tag));
        if !holds {
            return self.blame(from, Offence::Mac("Ack"));
        }
        let epoch = ack.epoch;
        self.links.heard(ack.slot, now.unix);
        // It may be replayed from elsewhere: only a question moves a link that stands.
        if self.links.peer(ack.slot).is_none() {
            self.links.connect(ack.slot, from);
        }
        if !self.links.acknowledge(ack.slot, epoch.counter) {
            return;
        }
        lead.spreading.arrived(now);
        let members = lead.keyed();
        if lead.opening.is_none() && leadership.strategy() == StrategyKind::Tree {
            lead.spreading.owe_path(now, ack.slot);
        }
        if self.links.acknowledged() == members {
            self.out.event(LeaderEvent::Delivered { epoch, members });
        }
    }

    /// A member asks which epoch is current.
    ///
    /// If the term is newer than what the member holds, no key is shared that could authenticate the question. The
    /// answer then is what a broadcast would have said, without a tag, and useless to anyone else.
    pub(super) fn catch_up(
        &mut self,
        now: Now,
        from: Peer,
        request: &CatchUpRequest,
        rng: &mut dyn CryptoRngCore,
    ) {
        if !self.catch_ups.take(now.monotonic, from) {
            return;
        }
        if let Err((reason, wait)) = self.serves_slot(now, request) {
            return self.refuse_bare(now, from, reason, (&request.number, wait));
        }
        let Some(lead) = &self.lead else { return };
        let leadership = &lead.leadership;
        let Some(auth) = leadership.auth_key(request.slot) else { return };
        let (digest, strategy) = (*leadership.digest(), leadership.strategy());
        let holds_newest = request.held == digest;
        let lacks_keys = holds_newest && statements::lacks_keys(&request.number);
        if !ct_eq(&catch_up_tag::<S>(auth, &request.number, &request.held), &request.tag) {
            if holds_newest {
                return self.blame(from, Offence::Mac("CatchUpRequest"));
            }
            return self.replay_term(now, from, request, rng);
        }
        let tag = fresh_tag::<S>(auth, &digest, &request.number);
        if !self.note_question(now, from, request) {
            // Before anything is sealed: a question that is played again costs nothing.
            self.refuse(from, Reason::Rejoin, &request.number, Duration::ZERO);
            return self.blame(from, quiver_ainq::Error::Replay);
        }
        let part = match strategy {
            StrategyKind::Tree if lacks_keys => self.path_for(request.slot, &request.number),
            StrategyKind::Flat if lacks_keys => {
                self.renew_after_restart(now);
                None
            }
            _ if holds_newest => None,
            _ => self.part_for(request.slot, &request.number),
        };
        let Some(header) = self.lead.as_ref().map(|lead| lead.now.header.clone()) else { return };
        let reply = CatchUpReply { number: request.number, header, part, tag };
        self.out.send(&self.config.deployment, from, &Message::CatchUpReply(reply));
    }

    /// Whether there is a member in the slot that a question is about, so that it can be authenticated.
    fn serves_slot(&self, now: Now, request: &CatchUpRequest) -> Result<(), (Reason, Duration)> {
        if request.group != self.config.group {
            return Err((Reason::WrongGroup, Duration::ZERO));
        }
        let lead = self.lead.as_ref().ok_or_else(|| (Reason::NotReady, self.ready_in(now)))?;
        let auth = lead.leadership.auth_key(request.slot);
        auth.map(|_| ()).ok_or((Reason::Rejoin, Duration::ZERO))
    }

    /// Refuses what nothing authenticates, but no oftener than it would be answered.
    fn refuse_bare(&mut self, now: Now, from: Peer, reason: Reason, (number, wait): (&[u8; 16], Duration)) {
        if self.bare_catch_ups.take(now.monotonic, from) {
            self.refuse(from, reason, number, wait);
        }
    }

    /// For a member that missed how the term was opened: that first, then the newest epoch. From the first it has the key
    /// that the second is wrapped under.
    ///
    /// Nothing shows that the question is authentic. It changes nothing here.
    fn replay_term(&mut self, now: Now, from: Peer, request: &CatchUpRequest, rng: &mut dyn CryptoRngCore) {
        if !self.bare_catch_ups.take(now.monotonic, from) {
            return;
        }
        let Some(lead) = &self.lead else { return };
        let slot = request.slot;
        let newest = lead.opening.is_none();
        let opening = lead.opening.as_ref().unwrap_or(&lead.now);
        let opening = Some(opening).filter(|opening| now.unix < opening.header.core.valid_until);
        let Some(opening) = opening.filter(|opening| opening.entry(slot).is_some()) else {
            return self.refuse(from, Reason::Rejoin, &request.number, Duration::ZERO);
        };
        self.out.send_encoded(from, opening.message(slot));
        if newest {
            return;
        }
        let part = match lead.leadership.strategy() {
            StrategyKind::Flat => lead.now.entry(slot).cloned().map(Part::Entry),
            StrategyKind::Tree => {
                let mut r = PathNonce::default();
                rng.fill_bytes(&mut r);
                self.path_for(slot, &r)
            }
        };
        if let (Some(part), Some(lead)) = (part, &self.lead) {
            self.out.send_encoded(from, lead.now.message_with(Some(&part)));
        }
    }

    /// Notes where an authentic question came from. Returns false if it was asked before.
    fn note_question(&mut self, now: Now, from: Peer, request: &CatchUpRequest) -> bool {
        let asked = self.links.note_question(request.slot, statements::count(&request.number));
        if asked {
            self.links.heard(request.slot, now.unix);
            self.links.connect(request.slot, from);
        }
        asked
    }

    /// A member restarted and lost the key of an epoch whose wrap it can no longer open.
    fn renew_after_restart(&mut self, now: Now) {
        let earliest = self.last_restart.map_or(now.monotonic, |last| last + RESTART_PAUSE);
        self.restart_renewal.get_or_insert(earliest.max(now.monotonic));
    }

    /// A member's spare point: durable before it is acknowledged.
    pub(super) fn spare_published(&mut self, now: Now, from: Peer, message: &SparePublication<S>) {
        let Some(lead) = self.lead.as_ref().filter(|_| message.group == self.config.group) else {
            return;
        };
        let Some(public) = lead.leadership.roster().get(message.slot) else {
            return self.blame(from, quiver_ainq::Error::WrongSlot);
        };
        let q = message.spare.q;
        // News that comes too often costs neither curve arithmetic nor a record; whoever gets no answer shows it again.
        let Some(used) = self.memory.spare_allowance(message.slot, q, now) else { return };
        let (deployment, group) = (&self.config.deployment, &message.group);
        let verified = match lead.leadership.roster().implicit(message.slot) {
            Some(implicit) => message.spare.verify_implicit(deployment, group, public, &implicit),
            None => message.spare.verify(deployment, group, public),
        };
        if let Err(error) = verified {
            // The slot may be another's by now.
            return self.report_offence(from, error);
        }
        let Some(auth) = lead.leadership.auth_key(message.slot) else {
            return;
        };
        let tag = statements::spare_ack_tag::<S>(auth, q);
        let held = self.memory.spare(message.slot);
        if held.is_some_and(|held| held.q > q || (held.q == q && held.point.is_none())) {
            return self.blame(from, quiver_ainq::Error::Stale);
        }
        let published = Spare::of(&message.spare);
        if held.is_some_and(|held| held.q == q && !held.is(&published)) {
            // Two points under one number: its memory was rolled back. Neither is used.
            self.keep_spare(message.slot, Spare::spent(q).with_allowance(used));
            return self.blame(from, quiver_ainq::Error::WrongSpare);
        }
        if held.is_none_or(|held| held.q < q) {
            self.keep_spare(message.slot, published.with_allowance(used));
            // An older one may be played again by anybody.
            self.links.heard(message.slot, now.unix);
        }
        self.out.send(&self.config.deployment, from, &Message::<S>::SpareAck(SpareAck { q, tag }));
        self.reach(message.slot, from);
    }

    /// A member that was not to be reached was heard: it is told of the newest epoch.
    fn reach(&mut self, slot: Slot, peer: Peer) {
        let Some(lead) = self.lead.as_ref().filter(|_| self.links.peer(slot).is_none()) else {
            return;
        };
        self.links.connect(slot, peer);
        self.out.send_encoded(peer, lead.now.message(slot));
    }

    pub(super) fn keep_spare(&mut self, slot: Slot, spare: Spare<S>) {
        self.persist(&[spare_change::<S>(slot, &spare)]);
        self.memory.set_spare(slot, spare);
        self.deputies.changed(&[slot]);
    }

    /// A member wants out.
    pub(super) fn leave(&mut self, now: Now, from: Peer, message: &Leave<S>) {
        let Some(lead) = self.lead.as_ref().filter(|_| message.group == self.config.group) else {
            return;
        };
        let Some(public) = lead.leadership.roster().get(message.slot) else {
            return;
        };
        let core = &lead.now.header.core;
        if message.held != *lead.leadership.digest() && message.held != core.prev {
            // Of an older epoch: the member catches up, then says it again.
            return;
        }
        if message.held == core.prev && core.added.contains(message.slot) {
            // Of the membership before this one.
            return;
        }
        let statement = statements::leave(&message.group, public, &message.held);
        let deployment = &self.config.deployment;
        if let Err(error) = message.signature.verify(deployment, public, Label::Leave, &statement) {
            return self.report_offence(from, error);
        }
        self.links.connect(message.slot, from);
        self.links.heard(message.slot, now.unix);
        self.leaves.insert(message.slot);
        self.waiting.stir(now);
    }

    pub(super) fn hear(&mut self, now: Now, from: Peer, message: &GroupMessage) {
        let Some(lead) = self.lead.as_mut().filter(|_| message.group == self.config.group) else {
            return;
        };
        if message.frame.slot == LEADER_SLOT {
            // Our own, come back; or somebody else's, who is not the leader.
            return;
        }
        let audience = Audience {
            deployment: &self.config.deployment,
            revocations: &self.memory.revocations,
            refused: &self.memory.refused,
            expected: None,
            roster: Some(lead.leadership.roster()),
        };
        match lead.voice.hear(&audience, now, message) {
            Err(error) => self.blame(from, error),
            Ok(None) => {}
            Ok(Some((data, source))) => {
                let channel = message.channel.clone();
                self.out.event(LeaderEvent::Message { channel, data, source });
            }
        }
    }

    pub(super) fn speak(
        &mut self,
        now: Now,
        channel: quiver_ainq::Name,
        data: &[u8],
        rng: &mut dyn CryptoRngCore,
    ) {
        if !self.put_out_the_rest(now, rng) {
            return self.out.event(LeaderEvent::SendFailed("who is to be put out holds the key"));
        }
        let (Some(lead), Some(keypair)) = (&mut self.lead, &self.memory.keypair) else {
            return self.out.event(LeaderEvent::SendFailed("no term is open yet"));
        };
        let deployment = &self.config.deployment;
        let signing = Some((deployment, keypair));
        match lead.voice.speak(now, (&self.config.group, channel), data, signing, rng) {
            Err(reason) => self.out.event(LeaderEvent::SendFailed(reason)),
            Ok(message) => self.out.send_to_group(deployment, &Message::<S>::GroupMessage(message)),
        }
    }

    /// The slot that a member of this name sits in.
    pub(super) fn slot_of(&self, name: &quiver_ainq::Name) -> Option<Slot> {
        self.roster().iter().find(|(_, public)| public.identity.name == *name).map(|(slot, _)| slot)
    }
}
