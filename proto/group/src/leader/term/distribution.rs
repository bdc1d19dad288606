//! Distributes an epoch: unicast (flat) or broadcast (tree), retransmits until acknowledged, and sends path
//! messages to members that only hold the opening of the term. docs/protocol.md §7.5.
//!
//! A term opens by a broadcast over a medium that all share. A leader that has just started knows of nobody who
//! is there: it waits until a member asks, and a little longer for the others.
//!
//! Work for all members is done in slices, so that a leader of a million members stays responsive.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Anonymous, EpochOutput, Slot, Suite};
use quiver_machine::{Now, Peer, RelayedBroadcast, due, earlier};
use quiver_message::{Message, Nonce, RevocationList};

use super::acknowledgements::Acknowledgements;
use super::epoch_message::EpochDelivery;
use super::epochs::TermEpochs;
use super::rekey::Changes;
use crate::leader::LeaderEvent;
use crate::leader::context::LeaderContext;
use crate::leader::interface::LeaderTiming;
use crate::leader::joining::join_queue::UnverifiedJoin;
use crate::leader::store::Spare;

/// Maximum number of doublings of the pause before an epoch is sent again to members that do not acknowledge
/// it.
const MAX_DOUBLINGS: u32 = 5;
/// Wraps for everybody of more bytes are not sent again: a member that receives the epoch without them asks
/// for its path.
const MAX_RESENT: usize = 2048;
/// Number of members served in one slice.
const SLICE: usize = 256;
/// Pause between two slices, for other work.
const PAUSE: Duration = Duration::from_millis(2);
/// An epoch that so few members have not acknowledged delays no other: the next one costs little more than
/// they do.
const FEW: usize = 256;
/// Nor does one that all but one in so many have: some are always slow, and a few may never answer.
const STRAGGLERS: usize = 8;
/// A revocation list of so few bytes, some 680 drones, is sent to those that it names as they are dismissed.
const SHORT_LIST: usize = 16 * 1024;
/// Bytes of longer lists that those are sent who are dismissed with one epoch.
const LONG_LISTS: usize = 4 << 20;

/// Distribution of the newest epoch.
#[derive(Debug)]
pub(in crate::leader) struct Distribution {
    resend: Option<Resend>,
    /// Members that are to be sent the epoch with the wraps on their path, since all wraps are too many.
    pending_branches: VecDeque<Slot>,
    /// The wraps for members behind relays, which cut their parts.
    pending_relayed: Option<RelayedBroadcast>,
    /// Members that hold how the term was opened, and are to be sent their paths.
    pending_paths: VecDeque<Slot>,
    /// Time of the next slice of branches and paths.
    next_slice_at: Option<Duration>,
    /// Time at which the epoch began, or a member last acknowledged it.
    progressed_at: Duration,
    opening: OpeningBroadcast,
    /// Newcomers that may have followed by the broadcast and are sent no welcome yet, with n_e.
    pending_welcomes: BTreeMap<Slot, Nonce>,
}

/// The broadcast with which a term opens over a shared medium.
#[derive(Clone, Copy, Debug)]
enum OpeningBroadcast {
    /// The broadcast has not been asked for: nobody is known to be there.
    Unasked,
    /// Time to send it.
    Due(Duration),
    /// The broadcast was sent; until then it counts as the answer to those who ask for it.
    Sent(Duration),
}

/// A round of sending an epoch again.
#[derive(Clone, Copy, Debug)]
struct Resend {
    at: Duration,
    /// The members below have had their turn.
    from: Slot,
    /// Number of doublings of the pause.
    doublings: u32,
}

impl Distribution {
    pub(in crate::leader) fn new(now: Now, timing: &LeaderTiming) -> Self {
        let mut distribution = Self {
            resend: None,
            pending_branches: VecDeque::new(),
            pending_relayed: None,
            pending_paths: VecDeque::new(),
            next_slice_at: None,
            progressed_at: now.monotonic,
            opening: OpeningBroadcast::Unasked,
            pending_welcomes: BTreeMap::new(),
        };
        distribution.start_epoch(now, timing);
        distribution
    }

    pub(in crate::leader) fn start_epoch(&mut self, now: Now, timing: &LeaderTiming) {
        self.resend = Some(Resend { at: now.monotonic + timing.resend, from: 0, doublings: 0 });
        self.pending_branches.clear();
        self.pending_relayed = None;
        self.progressed_at = now.monotonic;
    }

    /// A member acknowledged the epoch.
    pub(in crate::leader) fn acknowledged(&mut self, now: Now) {
        self.progressed_at = now.monotonic;
    }

    /// A member processed the opening of the term and now needs a path.
    pub(in crate::leader) fn owe_path(&mut self, now: Now, slot: Slot) {
        self.pending_paths.push_back(slot);
        self.next_slice_at.get_or_insert(now.monotonic);
    }

    pub(in crate::leader) fn deadline(&self) -> Option<Duration> {
        let opening = match self.opening {
            OpeningBroadcast::Due(at) => Some(at),
            OpeningBroadcast::Unasked | OpeningBroadcast::Sent(_) => None,
        };
        earlier(self.resend.map(|resend| resend.at), earlier(self.next_slice_at, opening))
    }

    /// Distributes the newest epoch: one broadcast under tree, or to every connected member the wraps on its
    /// path; under flat its own entry. Newcomers are welcomed instead. `dismissed`: removed members to whom relays
    /// pass it on.
    pub(in crate::leader) fn distribute<S: Suite>(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        epochs: &TermEpochs<S>,
        links: &Acknowledgements,
        newcomers: &BTreeSet<Slot>,
        dismissed: Vec<(Peer, Slot)>,
    ) {
        match epochs.current.delivery() {
            EpochDelivery::Opening => {
                if links.connected() > 0 {
                    self.broadcast_opening(cx, epochs);
                }
            }
            EpochDelivery::Branches | EpochDelivery::RelayCut => {
                let members = links.late(0, epochs.epoch().counter);
                let mut members: Vec<_> = members.filter(|(slot, _)| !newcomers.contains(slot)).collect();
                // §21.3: relays cut the parts of those behind them.
                if let Some(message) = epochs.current.whole_message() {
                    let relayed = members.extract_if(.., |(_, peer)| peer.is_relayed());
                    let members: Vec<_> = relayed.map(|(slot, peer)| (peer, slot)).chain(dismissed).collect();
                    self.pending_relayed =
                        (!members.is_empty()).then_some(RelayedBroadcast { message, members });
                }
                self.pending_branches = members.into_iter().map(|(slot, _)| slot).collect();
                self.next_slice_at = Some(cx.now.monotonic);
            }
            // §7.5, §7.6: the wraps are broadcast, to those who hold the epoch before with a short header.
            EpochDelivery::Broadcast => {
                let messages = epochs.current.common_messages(&cx.config.deployment);
                messages.for_each(|message| cx.out.send_encoded_to_group(message));
            }
            EpochDelivery::Entries => {
                for (slot, peer) in links.late(0, epochs.epoch().counter) {
                    if !newcomers.contains(&slot) {
                        cx.out.send_encoded(peer, epochs.current.message(slot));
                    }
                }
            }
        }
    }

    /// Broadcasts the wraps with which the term opens.
    fn broadcast_opening<S: Suite>(&mut self, cx: &mut LeaderContext<'_, S>, epochs: &TermEpochs<S>) {
        let until = cx.now.monotonic + cx.config.timing.resend / 2;
        self.opening = OpeningBroadcast::Sent(until);
        let messages = epochs.current.common_messages(&cx.config.deployment);
        messages.for_each(|message| cx.out.send_encoded_to_group(message));
    }

    /// Broadcasts the opening at once if it is about to be, because the term goes on.
    pub(super) fn flush_opening<S: Suite>(&mut self, cx: &mut LeaderContext<'_, S>, epochs: &TermEpochs<S>) {
        if matches!(self.opening, OpeningBroadcast::Due(_)) {
            self.broadcast_opening(cx, epochs);
        }
    }

    /// Returns true if the broadcast of the opening, which is the newest epoch, is the answer to a member
    /// that asks for it. The first who asks makes it due.
    pub(super) fn answers_by_broadcast<S: Suite>(
        &mut self,
        cx: &LeaderContext<'_, S>,
        epochs: &TermEpochs<S>,
    ) -> bool {
        let valid = cx.now.unix < epochs.current.header.core.valid_until;
        if !valid || epochs.current.delivery() != EpochDelivery::Opening {
            return false;
        }
        match self.opening {
            OpeningBroadcast::Unasked => {
                // Others who were there before are about to ask as well.
                self.opening = OpeningBroadcast::Due(cx.now.monotonic + cx.config.timing.batching);
                true
            }
            OpeningBroadcast::Due(_) => true,
            OpeningBroadcast::Sent(until) => cx.now.monotonic < until,
        }
    }

    /// Takes the broadcast that relays are to be sent.
    pub(in crate::leader) fn take_relayed(&mut self) -> Option<RelayedBroadcast> {
        self.pending_relayed.take()
    }

    /// Deadline before which the next batch is held back, because more than max(256, connected/8) members
    /// have not acknowledged the current epoch; `None` otherwise. Without this, a slow network is saturated
    /// by one epoch after another, and no request gets through.
    pub(super) fn arriving(&self, links: &Acknowledgements, timing: &LeaderTiming) -> Option<Duration> {
        // §6.3: an epoch that most do not have yet holds the next batch back.
        let connected = links.connected();
        let missing = connected.saturating_sub(links.acknowledged());
        (missing > FEW.max(connected / STRAGGLERS)).then(|| self.progressed_at + timing.batching_max)
    }

    /// Sends welcomes to drones that joined by name.
    pub(super) fn welcome<S: Suite>(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        epochs: &mut TermEpochs<S>,
        links: &mut Acknowledgements,
        output: &EpochOutput<S>,
        candidates: &[UnverifiedJoin<S>],
    ) {
        for (slot, candidate) in output.assigned.iter().zip(candidates) {
            let request = &candidate.request;
            links.connect(*slot, candidate.peer);
            // §6.1, §13.7: before the broadcast, which reaches nobody but those who have proven who they are.
            cx.relay(candidate.peer);
            cx.store.set_spare(*slot, Spare::of(&request.spare));
            cx.store.pin(request.drone.identity.serial, request.drone.handle());
            if let Some(kem) = candidate.kem.as_ref().filter(|kem| kem.renewed) {
                cx.store.kem.hold(request.drone.handle(), kem.key.clone(), cx.now.unix);
            }
            cx.store.away.remove(&request.drone.identity.name);
            if output.newcomers_follow {
                // §6.1: the broadcast is its welcome, unless it does not acknowledge that.
                self.pending_welcomes.insert(*slot, candidate.nonce);
            } else if !epochs.send_welcome(cx, *slot, candidate.peer, &candidate.nonce) {
                continue;
            }
            let name = request.drone.identity.name.clone();
            cx.event(LeaderEvent::Joined { name, slot: *slot });
        }
    }

    /// Sends welcomes to newcomers that may not have followed by the broadcast, because the epoch is about to be over.
    pub(super) fn flush_welcomes<S: Suite>(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        epochs: &mut TermEpochs<S>,
        links: &Acknowledgements,
    ) {
        let pending_welcomes = core::mem::take(&mut self.pending_welcomes);
        if pending_welcomes.is_empty() {
            return;
        }
        for (slot, peer) in links.late(0, epochs.epoch().counter) {
            if let Some(nonce) = pending_welcomes.get(&slot) {
                epochs.send_welcome(cx, slot, peer, nonce);
            }
        }
    }

    /// A member acknowledged the newest epoch for the first time.
    pub(super) fn note_acknowledged(&mut self, now: Now, slot: Slot, owes_path: bool) {
        self.acknowledged(now);
        if owes_path {
            self.owe_path(now, slot);
        }
    }

    /// Sends the next slice of paths and retransmissions.
    pub(super) fn tick<S: Suite>(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        epochs: &mut TermEpochs<S>,
        links: &Acknowledgements,
    ) {
        if matches!(self.opening, OpeningBroadcast::Due(at) if at <= cx.now.monotonic) {
            self.broadcast_opening(cx, epochs);
        }
        let resend = self.resend.filter(|resend| due(Some(resend.at), cx.now.monotonic));
        if due(self.next_slice_at, cx.now.monotonic) {
            self.send_paths(cx, epochs, links);
        }
        if let Some(resend) = resend {
            self.retransmit(cx, epochs, links, resend);
        }
    }

    /// Sends the next members that wait for it the newest epoch with the wraps on their path, or with the keys
    /// above their leaf.
    fn send_paths<S: Suite>(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        epochs: &mut TermEpochs<S>,
        links: &Acknowledgements,
    ) {
        let Self { pending_branches, pending_paths, .. } = self;
        let slice = SLICE.min(pending_branches.len());
        for slot in pending_branches.drain(..slice) {
            if let Some(peer) = links.peer(slot) {
                cx.out.send_encoded(peer, epochs.current.message(slot));
            }
        }
        let slice = (SLICE - slice).min(pending_paths.len());
        for slot in pending_paths.drain(..slice) {
            if let Some(peer) = links.peer(slot)
                && let Some(path) = epochs.unasked_path(cx, slot)
            {
                cx.out.send_encoded(peer, epochs.current.message_with(Some(&path)));
            }
        }
        let more = !(self.pending_branches.is_empty() && self.pending_paths.is_empty());
        self.next_slice_at = more.then(|| cx.now.monotonic + PAUSE);
    }

    /// Sends the epoch again to the next connected members that have not acknowledged it.
    fn retransmit<S: Suite>(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        epochs: &mut TermEpochs<S>,
        links: &Acknowledgements,
        resend: Resend,
    ) {
        let late = links.late(resend.from, epochs.epoch().counter);
        let late: Vec<_> = late.take(SLICE).collect();
        for (slot, peer) in &late {
            // §6.1: a newcomer that did not follow by the broadcast is no member yet, and understands a welcome only.
            if let Some(nonce) = self.pending_welcomes.remove(slot) {
                epochs.send_welcome(cx, *slot, *peer, &nonce);
                continue;
            }
            // §7.5: without wraps of more than 2,048 bytes: a member that lacks them asks for its path.
            let message = epochs.current.message_again(*slot, MAX_RESENT);
            let message = message.unwrap_or_else(|| epochs.message_for(cx, *slot));
            cx.out.send_encoded(*peer, message);
        }
        self.resend = match late.last() {
            Some((last, _)) if late.len() == SLICE => {
                Some(Resend { at: cx.now.monotonic + PAUSE, from: last.saturating_add(1), ..resend })
            }
            // §7.5: without end: a member that lost every copy does not know that there is anything to ask
            // for.
            _ => {
                let doublings = (resend.doublings + 1).min(MAX_DOUBLINGS);
                let at = cx.now.monotonic + cx.config.timing.resend * (1 << doublings);
                Some(Resend { at, from: 0, doublings })
            }
        };
    }
}

/// Sends the removed members the header, or with it the proof that they are out, and forgets them.
/// Revoked ones are also sent the list that says so, unless it is long and they are many, and
/// disconnected for good. Returns those for whom relays cut it from what they are sent anyway.
pub(super) fn dismiss<S: Suite>(
    cx: &mut LeaderContext<'_, S>,
    epochs: &TermEpochs<S>,
    links: &mut Acknowledgements,
    output: &EpochOutput<S>,
    changes: &Changes<S>,
) -> Vec<(Peer, Slot)> {
    let relays_cut = epochs.current.delivery() == EpochDelivery::RelayCut;
    let mut behind_relays = Vec::new();
    let mut to_block = BTreeSet::new();
    for slot in &output.dropped {
        cx.store.remove_spare(*slot);
        let peer = links.remove(*slot);
        // A member that joined again is sent no header: it waits for its welcome.
        let (name, anonymous) = (changes.leaving.get(slot), changes.anonymous_leaves.get(slot));
        if let Some(peer) = peer.filter(|_| name.is_some() || anonymous.is_some()) {
            // §21.3: relays cut the parts of those behind them.
            if relays_cut && peer.is_relayed() {
                behind_relays.push((peer, *slot));
            } else {
                cx.out.send_encoded(peer, epochs.current.dismissal(*slot));
            }
        }
        if let Some(member) = anonymous {
            cx.event(LeaderEvent::Parted { pseudonym: member.pseudonym, slot: *slot });
        }
        let Some(name) = name else { continue };
        to_block.extend(peer.filter(|_| changes.revoked.contains(slot)));
        let (evicted, revoked) = (changes.evicted.contains(slot), changes.revoked.contains(slot));
        cx.event(LeaderEvent::Removed { name: name.clone(), slot: *slot, evicted, revoked });
    }
    let mut room = LONG_LISTS;
    for peer in to_block {
        // A gateway that still carries others is not cut off for one of its drones.
        if !links.carries(peer) {
            // §12.3: a drone that knows asks no more, and does not take itself for evicted.
            let list = cx.store.revocations.signed_bytes();
            if let Some(list) = list.filter(|list| list.len() <= SHORT_LIST.max(room)) {
                if list.len() > SHORT_LIST {
                    room -= list.len();
                }
                let list = RevocationList { list: list.to_vec() };
                cx.send(peer, &Message::RevocationList(list));
            }
            cx.out.block(peer);
        }
    }
    behind_relays
}

/// Sends welcomes to drones that joined anonymously.
pub(super) fn welcome_anonymous<S: Suite>(
    cx: &mut LeaderContext<'_, S>,
    epochs: &mut TermEpochs<S>,
    links: &mut Acknowledgements,
    output: &EpochOutput<S>,
    joins: &[(Peer, Nonce, Anonymous)],
) {
    for (slot, (peer, nonce, member)) in output.admitted.iter().zip(joins) {
        links.connect(*slot, *peer);
        if !epochs.send_welcome(cx, *slot, *peer, nonce) {
            continue;
        }
        let Anonymous { pseudonym, until } = *member;
        cx.event(LeaderEvent::Admitted { pseudonym, slot: *slot, until });
    }
}

#[cfg(test)]
mod tests {
    use quiver_ainq::StrategyKind;

    use super::super::super::test_support::{LeaderFixture, name};
    use super::super::super::{LeaderCommand, LeaderTiming};
    use super::*;
    use quiver_machine::{Input, Peer};

    const MEMBERS: Slot = 4000;

    /// A leader whose members are all connected and have just been sent an epoch, and a member that wants to
    /// leave.
    fn busy(members: Slot) -> (LeaderFixture, u64) {
        let mut fixture = LeaderFixture::new(StrategyKind::Flat, 0..members);
        for slot in 0..members {
            fixture.term().acknowledgements.connect(slot, Peer(slot.into()));
        }
        fixture.command(LeaderCommand::Rekey);
        fixture.leave(7);
        let counter = fixture.epoch().counter;
        (fixture, counter)
    }

    /// Acknowledges the epoch for these slots, as valid acknowledgements do.
    fn acknowledge(fixture: &mut LeaderFixture, slots: impl IntoIterator<Item = Slot>) {
        let counter = fixture.epoch().counter;
        for slot in slots {
            fixture.term().acknowledgements.acknowledge(slot, counter);
        }
        let now = fixture.now;
        fixture.term().distribution.acknowledged(now);
    }

    /// Returns true if the leader has made another epoch after this time.
    fn goes_on_after(fixture: &mut LeaderFixture, time: Duration, counter: u64) -> bool {
        fixture.now.monotonic += time;
        fixture.input(Input::Timeout);
        fixture.epoch().counter > counter
    }

    #[test]
    fn next_epoch_waits_until_most_have_the_newest() {
        let timing = LeaderTiming::default();
        let (mut fixture, counter) = busy(MEMBERS);
        acknowledge(&mut fixture, 0..MEMBERS / 2);
        assert!(!goes_on_after(&mut fixture, timing.batching * 2, counter));
        acknowledge(&mut fixture, MEMBERS / 2..MEMBERS - MEMBERS / 8);
        assert!(goes_on_after(&mut fixture, Duration::ZERO, counter));
    }

    #[test]
    fn epoch_that_nobody_acknowledges_holds_up_the_next_no_longer_than_company_does() {
        let timing = LeaderTiming::default();
        let (mut fixture, counter) = busy(MEMBERS);
        assert!(!goes_on_after(&mut fixture, timing.batching_max - timing.batching, counter));
        assert!(goes_on_after(&mut fixture, timing.batching, counter));
    }

    #[test]
    fn acknowledgements_that_trickle_hold_up_the_next_epoch_for_a_bounded_time() {
        let timing = LeaderTiming::default();
        let (mut fixture, counter) = busy(MEMBERS);
        let mut waited = Duration::ZERO;
        for slot in 0.. {
            acknowledge(&mut fixture, [slot]);
            if goes_on_after(&mut fixture, timing.batching_max / 2, counter) {
                break;
            }
            waited += timing.batching_max / 2;
        }
        assert_eq!(waited, timing.batching_max * LeaderTiming::ARRIVING - timing.batching_max / 2);
    }

    #[test]
    fn few_who_are_late_hold_up_nobody() {
        let timing = LeaderTiming::default();
        let (mut fixture, counter) = busy(MEMBERS);
        acknowledge(&mut fixture, 0..MEMBERS - 500);
        assert!(goes_on_after(&mut fixture, timing.batching, counter));
        // In a group of hundreds even half.
        let (mut fixture, counter) = busy(400);
        acknowledge(&mut fixture, 0..200);
        assert!(goes_on_after(&mut fixture, timing.batching, counter));
    }

    #[test]
    fn who_is_to_be_put_out_is_not_waited_for() {
        let (mut fixture, counter) = busy(MEMBERS);
        fixture.command(LeaderCommand::Evict(name("drone-9")));
        assert!(fixture.epoch().counter > counter);
    }
}
