//! Handles what members send to their leader: acknowledgements, catch-up requests, spare points, leaves,
//! messages.

use core::time::Duration;

use quiver_ainq::{
    EpochPart, Error, LEADER_SLOT, Label, Roster, Slot, StrategyKind, Suite, ack_tag, catch_up_tag,
    fresh_tag, leave_tag,
};
use quiver_crypto::ct_eq;
use quiver_machine::{Offence, Peer};
use quiver_message::{
    Ack, CatchUpReply, CatchUpRequest, GroupMessage, Leave, Message, RefusalReason, SpareAck,
    SparePublication,
};

use super::acknowledgements::Acknowledgements;
use super::distribution::Distribution;
use super::epoch_message::EpochDelivery;
use super::epochs::TermEpochs;
use super::pending_changes::PendingChanges;
use crate::group_channel::{GroupChannel, SenderPolicy};
use crate::leader::context::LeaderContext;
use crate::leader::failover::replication_source::Replication;
use crate::leader::statements::lost_key;
use crate::leader::store::{Spare, spare_change};
use crate::leader::{AnonymousLeave, LeaderEvent};
use crate::statements;

impl Acknowledgements {
    /// A member has the key of an epoch, one of so many members that have a key in this term.
    pub(super) fn receive_ack<S: Suite>(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        epochs: &mut TermEpochs<S>,
        distribution: &mut Distribution,
        from: Peer,
        ack: &Ack,
        members: usize,
    ) {
        // Late acknowledgements of the epoch before are no offence.
        if ack.epoch != epochs.epoch() {
            return self.receive_ack_of_opening(cx, epochs, from, ack);
        }
        // §6.1: PRF(A, "ack", D): the member in this slot holds A_i and knows D.
        let auth = epochs.leadership.auth_key(ack.slot);
        if !auth.is_some_and(|auth| ct_eq(&ack_tag::<S>(auth, epochs.leadership.digest()), &ack.tag)) {
            return cx.blame(from, Offence::Mac("Ack"));
        }
        self.saw(ack.slot, cx.now.unix);
        // It may be a replay from another peer: only a catch-up request moves a member from one connection to
        // another.
        if self.peer(ack.slot).is_none() {
            self.connect(ack.slot, from);
        }
        if !self.acknowledge(ack.slot, ack.epoch.counter) {
            return;
        }
        let tree = epochs.leadership.strategy() == StrategyKind::Tree;
        // §8.4: who follows by an entry has no path yet.
        let owes_path =
            tree && epochs.opening.is_none() && epochs.current.delivery() != EpochDelivery::Opening;
        distribution.note_acknowledged(cx.now, ack.slot, owes_path);
        if self.acknowledged() == members {
            cx.event(LeaderEvent::Delivered { epoch: ack.epoch, members });
        }
    }

    /// A member holds the opening of a term that went on since: it may have heard that alone.
    fn receive_ack_of_opening<S: Suite>(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        epochs: &mut TermEpochs<S>,
        from: Peer,
        ack: &Ack,
    ) {
        let opening = epochs.opening.as_ref().filter(|opening| opening.header.core.epoch == ack.epoch);
        let (Some(opening), None) = (opening, self.peer(ack.slot)) else { return };
        let digest = opening.header.digest(&cx.config.deployment);
        let auth = epochs.leadership.auth_key(ack.slot);
        if auth.is_some_and(|auth| ct_eq(&ack_tag::<S>(auth, &digest), &ack.tag)) {
            self.saw(ack.slot, cx.now.unix);
            self.reach(cx, epochs, ack.slot, from);
        }
    }

    /// A member asks which epoch is current.
    ///
    /// If the term is newer than the member's, no key is shared that could authenticate the request. The
    /// answer then has the content of a broadcast, without a tag, and is useless to anyone else.
    ///
    /// Returns true if the member lost keys that it must not continue with, so that the term needs another.
    #[must_use]
    pub(super) fn catch_up<S: Suite>(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        epochs: &mut TermEpochs<S>,
        distribution: &mut Distribution,
        from: Peer,
        request: &CatchUpRequest,
    ) -> bool {
        let Some(auth) = epochs.leadership.auth_key(request.slot) else {
            let about = (&request.number, Duration::ZERO);
            refuse_unauthenticated(cx, from, RefusalReason::Rejoin, about);
            return false;
        };
        let (digest, strategy) = (*epochs.leadership.digest(), epochs.leadership.strategy());
        let holds_newest = request.held == digest;
        let lacks_keys = holds_newest && statements::lacks_keys(&request.number);
        // §11.1: PRF(A, "catch-up", r ‖ D held); §11.3: of an older term there is no key for it.
        if !ct_eq(&catch_up_tag::<S>(auth, &request.number, &request.held), &request.tag) {
            if holds_newest {
                cx.blame(from, Offence::Mac("CatchUpRequest"));
            } else {
                distribution.replay_opening(cx, epochs, from, request);
            }
            return false;
        }
        // §11.1: PRF(A, "fresh", D ‖ r) over the member's own r proves that this is the current epoch.
        let tag = fresh_tag::<S>(auth, &digest, &request.number);
        if !self.note_question(request.slot, statements::count(&request.number)) {
            // §11.1: before anything is sealed: a request that is played again costs nothing.
            cx.refuse(from, RefusalReason::Rejoin, &request.number, Duration::ZERO);
            cx.blame(from, Error::Replay);
            return false;
        }
        self.saw(request.slot, cx.now.unix);
        self.connect(request.slot, from);
        let tree = strategy == StrategyKind::Tree;
        // §11.2: it lost K_g with its windows, and continues this epoch no more (§13.5).
        let lost = lacks_keys && (!tree || lost_key(&request.number));
        let part = match strategy {
            // §8.4: the path leads to the wraps of the next.
            StrategyKind::Tree if lacks_keys => epochs.path_for(request.slot, &request.number),
            _ if holds_newest => None,
            _ => epochs.part_for(request.slot, &request.number),
        };
        let header = epochs.current.header.clone();
        cx.send(from, &Message::CatchUpReply(CatchUpReply { number: request.number, header, part, tag }));
        lost
    }

    /// A member without a known connection sent a message: it is sent the newest epoch.
    fn reach<S: Suite>(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        epochs: &mut TermEpochs<S>,
        slot: Slot,
        peer: Peer,
    ) {
        if self.peer(slot).is_none() {
            self.connect(slot, peer);
            let message = epochs.message_for(cx, slot);
            cx.out.send_encoded(peer, message);
        }
    }
}

impl Distribution {
    /// Answers a member that missed how the term was opened: that first, then the newest epoch. From the
    /// first it has the key that the second is wrapped under.
    ///
    /// The request is not authenticated. It changes nothing here.
    fn replay_opening<S: Suite>(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        epochs: &mut TermEpochs<S>,
        from: Peer,
        request: &CatchUpRequest,
    ) {
        // §7.5: the broadcast of the opening answers all who ask at once.
        if self.answers_by_broadcast(cx, epochs) {
            return;
        }
        // §11.4: what nothing authenticates is answered seldom.
        if cx.peers.unauthenticated_catch_ups.take(cx.now.monotonic, from).is_err() {
            return;
        }
        let slot = request.slot;
        let newest = epochs.opening.is_none();
        let opening = epochs.opening.as_ref().unwrap_or(&epochs.current);
        let opening = Some(opening).filter(|opening| cx.now.unix < opening.header.core.valid_until);
        let Some(opening) = opening.filter(|opening| opening.entry(slot).is_some()) else {
            return cx.refuse(from, RefusalReason::Rejoin, &request.number, Duration::ZERO);
        };
        if newest {
            let message = epochs.message_for(cx, slot);
            return cx.out.send_encoded(from, message);
        }
        cx.out.send_encoded(from, opening.message(slot));
        let part = match epochs.leadership.strategy() {
            StrategyKind::Flat => epochs.current.entry(slot).cloned().map(EpochPart::Entry),
            StrategyKind::Tree => epochs.unasked_path(cx, slot),
        };
        if let Some(part) = part {
            cx.out.send_encoded(from, epochs.current.message_with(Some(&part)));
        }
    }
}

/// A member's spare point: durable before it is acknowledged (§6.6).
pub(super) fn spare_published<S: Suite>(
    cx: &mut LeaderContext<'_, S>,
    epochs: &mut TermEpochs<S>,
    links: &mut Acknowledgements,
    replication: &mut Replication<S>,
    from: Peer,
    message: &SparePublication<S>,
) {
    let Some(public) = epochs.roster().get(message.slot) else {
        return cx.blame(from, Error::WrongSlot);
    };
    let (slot, q, published) = (message.slot, message.spare.q, Spare::of(&message.spare));
    let Some(auth) = epochs.leadership.auth_key(slot) else { return };
    let tag = statements::spare_ack_tag::<S>(auth, q);
    let held = cx.store.spare(slot);
    if held.is_some_and(|held| held.q > q || (held.q == q && held.point.is_none())) {
        return cx.blame(from, Error::Stale);
    }
    let contradicts = held.is_some_and(|held| held.q == q && !held.is(&published));
    // §10.9: the point that is held costs no arithmetic, however often it is shown.
    if held.is_none_or(|held| !held.is(&published)) {
        // §10.9: nor does one that comes too often, which costs no record either; its sender sends it again.
        let Some(used) = cx.store.spare_allowance(slot, q, cx.now) else { return };
        if !cx.affords_check(from) {
            return;
        }
        let (deployment, group) = (&cx.config.deployment, &message.group);
        // §6.6: signed `spare` by the member that has the slot.
        let verified = match epochs.roster().implicit(slot) {
            Some(implicit) => message.spare.verify_implicit(deployment, group, public, &implicit),
            None => message.spare.verify(deployment, group, public),
        };
        if let Err(error) = verified {
            return cx.blame_former_holder(from, error);
        }
        if contradicts {
            // Two points under one number: its memory was rolled back. Neither is used.
            keep_spare(cx, replication, slot, Spare::spent(q).with_allowance(used));
            return cx.blame(from, Error::WrongSpare);
        }
        keep_spare(cx, replication, slot, published.with_allowance(used));
        // An older one may be played again by anybody.
        links.saw(slot, cx.now.unix);
    }
    cx.send(from, &Message::SpareAck(SpareAck { q, tag }));
    links.reach(cx, epochs, slot, from);
}

fn keep_spare<S: Suite>(
    cx: &mut LeaderContext<'_, S>,
    replication: &mut Replication<S>,
    slot: Slot,
    spare: Spare<S>,
) {
    cx.persist(&[spare_change::<S>(slot, &spare)]);
    cx.store.set_spare(slot, spare);
    replication.changed(&[slot]);
}

impl<S: Suite> PendingChanges<S> {
    /// A member asks to leave: it does with the next batch (§12.1).
    pub(super) fn receive_leave(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        epochs: &TermEpochs<S>,
        links: &mut Acknowledgements,
        from: Peer,
        message: &Leave<S>,
    ) {
        let Some(public) = epochs.roster().get(message.slot) else { return };
        // §10.9: the leave of a member that leaves already costs no arithmetic.
        let leaves = self.leaves(message.slot) && links.peer(message.slot).is_some();
        if leaves || !epochs.is_of_this_membership(message.slot, &message.held) || !cx.affords_check(from) {
            return;
        }
        // §12.1: signed over D of the epoch held, so that it ends no later membership.
        let statement = statements::leave(&message.group, public, &message.held);
        if let Err(error) = message.signature.verify(&cx.config.deployment, public, Label::Leave, &statement)
        {
            return cx.blame_former_holder(from, error);
        }
        links.connect(message.slot, from);
        links.saw(message.slot, cx.now.unix);
        self.request_leave([message.slot]);
    }

    /// An anonymous member asks to leave: under the key that the two share, for it has none to sign with.
    pub(super) fn receive_anonymous_leave(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        epochs: &TermEpochs<S>,
        links: &mut Acknowledgements,
        from: Peer,
        leave: &AnonymousLeave,
    ) {
        let (Some(_), Some(auth)) =
            (epochs.roster().anonymous(leave.slot), epochs.leadership.auth_key(leave.slot))
        else {
            return;
        };
        if !epochs.is_of_this_membership(leave.slot, &leave.held) {
            return;
        }
        // §12.1: tagged under A in place of a signature.
        if !ct_eq(&leave_tag::<S>(auth, &leave.held), &leave.tag) {
            return cx.blame(from, Offence::Mac("AdmissionLeave"));
        }
        links.connect(leave.slot, from);
        self.request_leave([leave.slot]);
    }
}

/// Opens a group message.
pub(super) fn receive_message<S: Suite>(
    cx: &mut LeaderContext<'_, S>,
    channel: &mut GroupChannel,
    roster: &Roster<S>,
    from: Peer,
    message: &GroupMessage,
) {
    if message.frame.slot == LEADER_SLOT {
        // Our own, come back; or that of a peer that is not the leader.
        return;
    }
    // §13.4: the roster decides who may have sent it.
    let policy = SenderPolicy {
        deployment: &cx.config.deployment,
        revocations: &cx.store.revocations,
        refused: &cx.store.refused,
        expected: None,
        roster: Some(roster),
    };
    match channel.open(&policy, cx.now, message) {
        Err(error) => cx.blame(from, error),
        Ok(None) => {}
        Ok(Some((data, source))) => {
            let channel = message.channel.clone();
            cx.event(LeaderEvent::Message { channel, data, source });
        }
    }
}

/// Refuses a catch-up request that nothing authenticates, but no oftener than it would be answered (§11.4).
pub(in crate::leader) fn refuse_unauthenticated<S: Suite>(
    cx: &mut LeaderContext<'_, S>,
    from: Peer,
    reason: RefusalReason,
    (number, wait): (&[u8; 16], Duration),
) {
    if cx.peers.unauthenticated_catch_ups.take(cx.now.monotonic, from).is_ok() {
        cx.refuse(from, reason, number, wait);
    }
}
