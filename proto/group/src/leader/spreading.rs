//! Bringing an epoch to the members: once to each or once to all, again to those who do not answer, and paths of keys to
//! those who hold no more than how the term was opened.
//!
//! What concerns every member is done in slices, so that a leader of a million members stays responsive.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{EpochOutput, Part, PathNonce, Slot, Suite};
use quiver_message::{Message, Welcome};
use rand_core::CryptoRngCore;

use super::epochs::Made;
use super::interface::LeaderTiming;
use super::memory::Spare;
use super::waiting::Candidate;
use super::{Leader, LeaderEvent};
use quiver_machine::Now;
use quiver_machine::{due, earlier};

/// How often the pause doubles before an epoch is sent again to members that do not acknowledge it.
const MAX_DOUBLINGS: u32 = 5;
/// Wraps of more bytes are not sent again: a member that is told of the epoch without them asks for its path.
const MAX_RESENT: usize = 2048;
/// How many members a slice serves.
const SLICE: usize = 256;
/// How long other work comes first between two slices.
const PAUSE: Duration = Duration::from_millis(2);
/// An epoch that so few members have not acknowledged holds nobody up: the next one costs little more than they do.
const FEW: usize = 256;
/// Nor does one that all but one in so many have: some are always slow, and a few may never answer.
const STRAGGLERS: usize = 8;

/// How far the newest epoch has got.
#[derive(Debug)]
pub(super) struct Spreading {
    resend: Option<Resend>,
    /// Members that hold how the term was opened, and no path yet.
    pathless: VecDeque<Slot>,
    /// When to send the next of them theirs.
    paths: Option<Duration>,
    /// When the epoch began, or a member last acknowledged it.
    moved: Duration,
}

/// A round of sending an epoch again.
#[derive(Clone, Copy, Debug)]
struct Resend {
    at: Duration,
    /// The members below have had their turn.
    from: Slot,
    /// How often the pause was doubled.
    doublings: u32,
}

impl Spreading {
    pub(super) fn new(now: Now, timing: &LeaderTiming) -> Self {
        let mut spreading =
            Self { resend: None, pathless: VecDeque::new(), paths: None, moved: now.monotonic };
        spreading.start_epoch(now, timing);
        spreading
    }

    pub(super) fn start_epoch(&mut self, now: Now, timing: &LeaderTiming) {
        self.resend = Some(Resend { at: now.monotonic + timing.resend, from: 0, doublings: 0 });
        self.moved = now.monotonic;
    }

    /// A member acknowledged the epoch.
    pub(super) fn arrived(&mut self, now: Now) {
        self.moved = now.monotonic;
    }

    /// Somebody took up how the term was opened and now needs a path.
    pub(super) fn owe_path(&mut self, now: Now, slot: Slot) {
        self.pathless.push_back(slot);
        self.paths.get_or_insert(now.monotonic);
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        earlier(self.resend.map(|resend| resend.at), self.paths)
    }
}

impl<S: Suite> Leader<S> {
    /// Tells the group: everybody at once under tree; else every member that is connected its own entry. Newcomers are
    /// welcomed instead.
    pub(super) fn distribute(&mut self, newcomers: &BTreeSet<Slot>) {
        let Some(lead) = &self.lead else { return };
        if let Some(message) = lead.now.common_message() {
            return self.out.send_encoded_to_group(message);
        }
        for (slot, peer) in self.links.late(0, lead.now.header.core.epoch.counter) {
            if !newcomers.contains(&slot) {
                self.out.send_encoded(peer, lead.now.message(slot));
            }
        }
    }

    /// Until when the newest epoch is taken to be on its way still to many of those who are connected; none if most have it.
    /// Where an epoch takes longer to arrive than joins wait for company, the next would come on top of it and nobody's
    /// request would get through. Who waits then waits for it too, as long as acknowledgements keep coming.
    pub(super) fn arriving(&self) -> Option<Duration> {
        let lead = self.lead.as_ref()?;
        let connected = self.links.connected();
        let missing = connected.saturating_sub(self.links.acknowledged());
        (missing > FEW.max(connected / STRAGGLERS))
            .then(|| lead.spreading.moved + self.config.timing.batching_max)
    }

    /// Tells those who are out, and forgets them. Who was revoked has no connection to us any more.
    pub(super) fn dismiss(&mut self, output: &EpochOutput<S>, made: &Made<S>) {
        let Some(lead) = &self.lead else { return };
        let mut revoked = BTreeSet::new();
        for slot in &output.dropped {
            self.memory.remove_spare(*slot);
            let peer = self.links.remove(*slot);
            // A member that joined again is not told: it waits for its welcome.
            let (name, unnamed) = (made.leaving.get(slot), made.parting.get(slot));
            if let Some(peer) = peer.filter(|_| name.is_some() || unnamed.is_some()) {
                self.out.send_encoded(peer, lead.now.message_with(None));
            }
            if let Some(member) = unnamed {
                self.out.event(LeaderEvent::Parted { pseudonym: member.pseudonym, slot: *slot });
            }
            let Some(name) = name else { continue };
            revoked.extend(peer.filter(|_| made.revoked.contains(slot)));
            let evicted = made.evicted.contains(slot);
            self.out.event(LeaderEvent::Removed { name: name.clone(), slot: *slot, evicted });
        }
        for peer in revoked {
            // A gateway that still carries others is not cut off for one of its drones.
            if !self.links.carries(peer) {
                self.out.block(peer);
            }
        }
    }

    pub(super) fn welcome(&mut self, output: &EpochOutput<S>, candidates: &[Candidate<S>]) {
        for (slot, candidate) in output.assigned.iter().zip(candidates) {
            let request = &candidate.request;
            self.links.connect(*slot, candidate.peer);
            self.memory.set_spare(*slot, Spare::of(&request.spare));
            self.memory.pin(request.drone.identity.serial, request.drone.handle());
            self.memory.away.remove(&request.drone.identity.name);
            let Some(part) = self.part_for(*slot, &candidate.nonce) else { continue };
            let welcome = Welcome { nonce: candidate.nonce, header: output.header.clone(), part };
            self.out.send(&self.config.deployment, candidate.peer, &Message::Welcome(welcome));
            let name = request.drone.identity.name.clone();
            self.out.event(LeaderEvent::Joined { name, slot: *slot });
        }
    }

    /// What a member of the newest epoch needs beside its header: its entry where there is one, else its path.
    pub(super) fn part_for(&mut self, slot: Slot, r: &PathNonce) -> Option<Part> {
        let entry = self.lead.as_ref()?.now.entry(slot).cloned().map(Part::Entry);
        entry.or_else(|| self.path_for(slot, r))
    }

    /// The path of a member in a tree, bound to what it asked with.
    pub(super) fn path_for(&mut self, slot: Slot, r: &PathNonce) -> Option<Part> {
        self.lead.as_mut()?.leadership.path_message(slot, r).ok().map(Part::Path)
    }

    /// Goes on with what is not done yet.
    pub(super) fn tick_spreading(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let Some(spreading) = self.lead.as_ref().map(|lead| &lead.spreading) else { return };
        let resend = spreading.resend.filter(|resend| due(Some(resend.at), now.monotonic));
        if due(spreading.paths, now.monotonic) {
            self.push_paths(now, rng);
        }
        if let Some(resend) = resend {
            self.send_again(now, resend);
        }
    }

    /// Sends the next members that hold how the term was opened the keys above their leaf.
    fn push_paths(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let Some(lead) = &mut self.lead else { return };
        for slot in lead.spreading.pathless.drain(..SLICE.min(lead.spreading.pathless.len())) {
            let mut r = PathNonce::default();
            rng.fill_bytes(&mut r);
            if let Some(peer) = self.links.peer(slot)
                && let Ok(path) = lead.leadership.path_message(slot, &r)
            {
                self.out.send_encoded(peer, lead.now.message_with(Some(&Part::Path(path))));
            }
        }
        let more = !lead.spreading.pathless.is_empty();
        lead.spreading.paths = more.then(|| now.monotonic + PAUSE);
    }

    /// Sends the epoch again to the next connected members that have not acknowledged it.
    fn send_again(&mut self, now: Now, resend: Resend) {
        let Some(lead) = &mut self.lead else { return };
        let late = self.links.late(resend.from, lead.now.header.core.epoch.counter);
        let late: Vec<_> = late.take(SLICE).collect();
        for (slot, peer) in &late {
            self.out.send_encoded(*peer, lead.now.message_again(*slot, MAX_RESENT));
        }
        lead.spreading.resend = match late.last() {
            Some((last, _)) if late.len() == SLICE => {
                Some(Resend { at: now.monotonic + PAUSE, from: last.saturating_add(1), ..resend })
            }
            // Without end: who lost every copy does not know that there is anything to ask for.
            _ => {
                let doublings = (resend.doublings + 1).min(MAX_DOUBLINGS);
                let at = now.monotonic + self.config.timing.resend * (1 << doublings);
                Some(Resend { at, from: 0, doublings })
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use quiver_ainq::StrategyKind;

    use super::super::crowd::{Crowd, name};
    use super::super::{LeaderCommand, LeaderTiming};
    use super::*;
    use quiver_machine::{Input, Peer};

    const MEMBERS: Slot = 4000;

    /// A leader whose members are all connected and have just been sent an epoch, and somebody who wants to leave.
    fn busy(members: Slot) -> (Crowd, u64) {
        let mut crowd = Crowd::new(StrategyKind::Flat, 0..members);
        for slot in 0..members {
            crowd.leader.links.connect(slot, Peer(slot.into()));
        }
        crowd.command(LeaderCommand::Rekey);
        crowd.leader.leaves.insert(7);
        crowd.leader.waiting.stir(crowd.now);
        let counter = crowd.leader.epoch().unwrap().counter;
        (crowd, counter)
    }

    /// As an acknowledgement does that holds.
    fn acknowledge(crowd: &mut Crowd, slots: impl IntoIterator<Item = Slot>) {
        let counter = crowd.leader.epoch().unwrap().counter;
        for slot in slots {
            crowd.leader.links.acknowledge(slot, counter);
        }
        crowd.leader.lead.as_mut().unwrap().spreading.arrived(crowd.now);
    }

    /// Whether the leader has made another epoch after this time.
    fn goes_on_after(crowd: &mut Crowd, time: Duration, counter: u64) -> bool {
        crowd.now.monotonic += time;
        crowd.input(Input::Timeout);
        crowd.leader.epoch().unwrap().counter > counter
    }

    #[test]
    fn next_epoch_waits_until_most_have_the_newest() {
        let timing = LeaderTiming::default();
        let (mut crowd, counter) = busy(MEMBERS);
        acknowledge(&mut crowd, 0..MEMBERS / 2);
        assert!(!goes_on_after(&mut crowd, timing.batching * 2, counter));
        acknowledge(&mut crowd, MEMBERS / 2..MEMBERS - MEMBERS / 8);
        assert!(goes_on_after(&mut crowd, Duration::ZERO, counter));
    }

    #[test]
    fn epoch_that_nobody_acknowledges_holds_up_the_next_no_longer_than_company_does() {
        let timing = LeaderTiming::default();
        let (mut crowd, counter) = busy(MEMBERS);
        assert!(!goes_on_after(&mut crowd, timing.batching_max - timing.batching, counter));
        assert!(goes_on_after(&mut crowd, timing.batching, counter));
    }

    #[test]
    fn acknowledgements_that_trickle_hold_up_the_next_epoch_for_a_bounded_time() {
        let timing = LeaderTiming::default();
        let (mut crowd, counter) = busy(MEMBERS);
        let mut waited = Duration::ZERO;
        for slot in 0.. {
            acknowledge(&mut crowd, [slot]);
            if goes_on_after(&mut crowd, timing.batching_max / 2, counter) {
                break;
            }
            waited += timing.batching_max / 2;
        }
        assert_eq!(waited, timing.batching_max * LeaderTiming::ARRIVING - timing.batching_max / 2);
    }

    #[test]
    fn few_who_are_late_hold_up_nobody() {
        let timing = LeaderTiming::default();
        let (mut crowd, counter) = busy(MEMBERS);
        acknowledge(&mut crowd, 0..MEMBERS - 500);
        assert!(goes_on_after(&mut crowd, timing.batching, counter));
        // In a group of hundreds even half.
        let (mut crowd, counter) = busy(400);
        acknowledge(&mut crowd, 0..200);
        assert!(goes_on_after(&mut crowd, timing.batching, counter));
    }

    #[test]
    fn who_is_to_be_put_out_is_not_waited_for() {
        let (mut crowd, counter) = busy(MEMBERS);
        crowd.command(LeaderCommand::Evict(name("drone-9")));
        assert!(crowd.leader.epoch().unwrap().counter > counter);
    }
}
