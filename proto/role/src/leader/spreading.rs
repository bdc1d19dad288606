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
use crate::Now;
use crate::backoff::{due, earlier};

/// How often the pause doubles before an epoch is sent again to members that do not acknowledge it.
const MAX_DOUBLINGS: u32 = 5;
/// Wraps of more bytes are not sent again: a member that is told of the epoch without them asks for its path.
const MAX_RESENT: usize = 2048;
/// How many members a slice serves.
const SLICE: usize = 256;
/// How long other work comes first between two slices.
const PAUSE: Duration = Duration::from_millis(2);

/// How far the newest epoch has got.
#[derive(Debug)]
pub(super) struct Spreading {
    resend: Option<Resend>,
    /// Members that hold how the term was opened, and no path yet.
    pathless: VecDeque<Slot>,
    /// When to send the next of them theirs.
    paths: Option<Duration>,
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
        let mut spreading = Self { resend: None, pathless: VecDeque::new(), paths: None };
        spreading.start_epoch(now, timing);
        spreading
    }

    pub(super) fn start_epoch(&mut self, now: Now, timing: &LeaderTiming) {
        self.resend = Some(Resend { at: now.monotonic + timing.resend, from: 0, doublings: 0 });
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
            self.memory.pins.insert(request.drone.identity.serial, request.drone.handle());
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
