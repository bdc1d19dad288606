//! Making epochs: opening a term, closing a batch, expiry, eviction; and bringing them to the members.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{
    Batch, Deployment, Entry, Epoch, EpochOutput, Error, GroupContext, Handle, Header, Kind, LEADER_SLOT,
    Label, Leadership, Name, Roster, Slot, StrategyKind, Suite, Times,
};
use quiver_message::{EvictionNotice, MAX_EVICTED, Message, RekeyTemplate, Welcome};
use rand_core::CryptoRngCore;

use super::memory::{Change, Spare, epoch_change, spare_change};
use super::vetting::Vetted;
use super::waiting::Candidate;
use super::{Leader, LeaderEvent};
use crate::speech::{EpochFacts, Seat, Voice};
use crate::{Now, statements};

/// How often an epoch is sent again to members that do not acknowledge it; after that they have to ask.
const RESENDS: u32 = 3;
/// A round has 48 bits.
const LAST_ROUND: u64 = (1 << 48) - 1;
/// How long to wait after an epoch could not be made.
const RETRY_FAILED: Duration = Duration::from_secs(10);

/// A term in force.
#[derive(Debug)]
pub(super) struct Lead<S: Suite> {
    pub(super) leadership: Leadership<S>,
    pub(super) now: Broadcast<S>,
    /// How the term was opened, for members that come back after it went on; none while that is the newest epoch.
    pub(super) opening: Option<Broadcast<S>>,
    pub(super) voice: Voice,
    /// On the monotonic clock: when to make a new key because this one grows old.
    pub(super) renew: Duration,
    pub(super) resend: Option<Duration>,
    resends: u32,
}

/// Why members are removed.
#[derive(Clone, Debug, Default)]
pub(super) struct Removals {
    /// Those who asked to leave.
    pub(super) leaves: Vec<Slot>,
    /// Those put out, and kept out.
    pub(super) evictions: Vec<Handle>,
}

/// An epoch as it was told to the members.
#[derive(Debug)]
pub(super) struct Broadcast<S: Suite> {
    pub(super) header: Header<S>,
    pub(super) entries: BTreeMap<Slot, Entry>,
    /// The header, encoded once for everybody it is sent to.
    template: RekeyTemplate<S>,
}

impl<S: Suite> Broadcast<S> {
    fn new(deployment: &Deployment<S>, output: &EpochOutput<S>) -> Self {
        Self {
            header: output.header.clone(),
            entries: output.entries.iter().map(|entry| (entry.slot, entry.clone())).collect(),
            template: RekeyTemplate::new(deployment, &output.header),
        }
    }

    /// The encoded message for the member in this slot.
    pub(super) fn message(&self, slot: Slot) -> Vec<u8> {
        self.template.message(self.entries.get(&slot))
    }

    /// The encoded message for those who are out.
    fn message_without_entry(&self) -> Vec<u8> {
        self.template.message(None)
    }
}

/// What an epoch hands on to the next one of its term.
struct Former<S: Suite> {
    voice: Voice,
    opening: Broadcast<S>,
}

impl<S: Suite> Former<S> {
    /// Who is out does not come back by the opening of the term.
    fn hand_on(mut self, dropped: &[Slot]) -> (Option<Voice>, Option<Broadcast<S>>) {
        for slot in dropped {
            self.opening.entries.remove(slot);
        }
        (Some(self.voice), Some(self.opening))
    }
}

impl<S: Suite> Leader<S> {
    /// Opens a term: on start, and on nothing else.
    pub(super) fn open_term(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let Some(keypair) = &self.memory.keypair else {
            return;
        };
        let quiver_ainq::Role::Leader { ordinal, .. } = keypair.public().identity.role else {
            return;
        };
        let (round, prev) =
            self.memory.newest.map_or((0, [0; 32]), |(epoch, digest)| (epoch.round(), digest));
        if round >= LAST_ROUND {
            return self.out.event(LeaderEvent::RekeyFailed(Error::Exhausted));
        }
        let term = Epoch::term_of(round + 1, ordinal);
        let context = GroupContext {
            deployment: self.config.deployment.clone(),
            group: self.config.group.clone(),
            leader: keypair.public().clone(),
        };
        let mut changes = self.unseat_the_invalid(now);
        let Some(keypair) = &self.memory.keypair else { return };
        let unspent =
            self.memory.spares.iter().filter_map(|(slot, spare)| Some((*slot, (spare.q, spare.point?))));
        let spares: BTreeMap<_, _> = unspent.collect();
        let times = self.times(now);
        let roster = self.memory.roster.clone();
        let strategy = StrategyKind::Flat;
        let opened =
            Leadership::open_term(context, keypair, roster, &spares, term, prev, &times, strategy, rng);
        let (leadership, output) = match opened {
            Ok(opened) => opened,
            Err(error) => return self.out.event(LeaderEvent::RekeyFailed(error)),
        };
        for (slot, (q, _)) in spares {
            let spent = Spare { q, point: None };
            changes.push(spare_change::<S>(slot, &spent));
            self.memory.spares.insert(slot, spent);
        }
        // From here on the leadership holds the roster.
        self.memory.roster = Roster::new();
        self.activate(now, leadership, None, &output, changes, rng);
        self.report(Kind::Open, &output);
        self.distribute(&BTreeSet::new());
    }

    /// Who was revoked, or whose identity ended, is on no roster that a term opens with.
    fn unseat_the_invalid(&mut self, now: Now) -> Vec<Change> {
        let memory = &mut self.memory;
        let invalid: Vec<(Slot, Handle, bool)> = memory
            .roster
            .iter()
            .map(|(slot, public)| (slot, public, memory.revocations.names(public)))
            .filter(|(_, public, revoked)| *revoked || now.unix >= public.identity.not_after)
            .map(|(slot, public, revoked)| (slot, public.handle(), revoked))
            .collect();
        let mut changes = Vec::new();
        for (slot, handle, revoked) in invalid {
            memory.roster.remove(slot);
            memory.spares.remove(&slot);
            changes.push(Change::Vacated(slot));
            if revoked {
                memory.roster.evict(handle);
                changes.push(Change::Evicted(*handle.as_bytes()));
            }
        }
        changes
    }

    fn times(&self, now: Now) -> Times {
        let validity = self.config.timing.validity.as_secs().max(1);
        Times {
            issued_at: now.unix,
            valid_until: now.unix.saturating_add(validity),
            revocation_number: self.memory.revocations.number(),
        }
    }

    /// Makes the new epoch durable, then uses it.
    fn activate(
        &mut self,
        now: Now,
        leadership: Leadership<S>,
        former: Option<Former<S>>,
        output: &EpochOutput<S>,
        mut changes: Vec<Change>,
        rng: &mut dyn CryptoRngCore,
    ) {
        let (epoch, digest) = (leadership.epoch(), output.digest);
        self.memory.newest = Some((epoch, digest));
        changes.push(epoch_change(epoch, digest));
        self.persist(&changes);
        let facts = EpochFacts { epoch, digest, valid_until: output.header.core.valid_until };
        let seat = Seat { slot: LEADER_SLOT, boot_no: self.memory.boot_no };
        let (former, opening) = former.map_or((None, None), |former| former.hand_on(&output.dropped));
        let former = former.filter(|_| output.dropped.is_empty());
        let voice = Voice::new(leadership.group_key(), facts, seat, rng);
        self.lead = Some(Lead {
            voice: voice.overlap(former, now.monotonic + Duration::from_secs(2)),
            now: Broadcast::new(&self.config.deployment, output),
            opening,
            renew: now.monotonic + self.config.timing.validity.mul_f64(0.8),
            resend: Some(now.monotonic + self.config.timing.resend),
            resends: 0,
            leadership,
        });
    }

    /// Sends every member that is connected its own entry; newcomers are welcomed instead.
    fn distribute(&mut self, newcomers: &BTreeSet<Slot>) {
        let Some(lead) = &self.lead else { return };
        self.links.expect(lead.now.entries.keys().copied());
        for (slot, peer) in self.links.outstanding() {
            if !newcomers.contains(&slot) {
                self.out.send_encoded(peer, lead.now.message(slot));
            }
        }
    }

    /// Ends the batch: whoever waits to join or leave does so in one epoch.
    pub(super) fn close_batch(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let joins = self.vetted(now, rng);
        let leaves: Vec<Slot> = core::mem::take(&mut self.leaves).into_iter().collect();
        if !(joins.is_empty() && leaves.is_empty()) {
            self.rekey(now, joins, &Removals { leaves, evictions: Vec::new() }, rng);
        }
    }

    /// Makes the next epoch.
    pub(super) fn rekey(
        &mut self,
        now: Now,
        joins: Vec<Vetted<S>>,
        removals: &Removals,
        rng: &mut dyn CryptoRngCore,
    ) {
        let times = self.times(now);
        let (Some(mut lead), Some(keypair)) = (self.lead.take(), &self.memory.keypair) else {
            return;
        };
        let (candidates, joins): (Vec<_>, Vec<_>) = joins.into_iter().unzip();
        let roster = lead.leadership.roster();
        let ended =
            roster.iter().filter(|(_, public)| now.unix >= public.identity.not_after).map(|(slot, _)| slot);
        let leaves = removals.leaves.iter().copied().filter(|slot| roster.get(*slot).is_some());
        let leaves = leaves.chain(ended).collect();
        let evicted =
            removals.evictions.iter().filter_map(|handle| roster.find(handle)).collect::<BTreeSet<_>>();
        let batch = Batch { joins, removals: leaves, evictions: removals.evictions.clone() };
        let leaving = batch.removals.iter().chain(&evicted);
        let leaving = leaving.filter_map(|slot| Some((*slot, roster.get(*slot)?.identity.name.clone())));
        let leaving: BTreeMap<Slot, Name> = leaving.collect();
        let output = match lead.leadership.rekey(keypair, batch, &times, rng) {
            Ok(output) => output,
            Err(error) => {
                lead.renew = lead.renew.max(now.monotonic + RETRY_FAILED);
                self.lead = Some(lead);
                return self.out.event(LeaderEvent::RekeyFailed(error));
            }
        };
        let changes = changes(&output, &candidates, &removals.evictions);
        let Lead { leadership, now: before, opening, voice, .. } = lead;
        let former = Former { voice, opening: opening.unwrap_or(before) };
        self.activate(now, leadership, Some(former), &output, changes, rng);
        self.report(Kind::Rekey, &output);
        self.dismiss(&output, &leaving, &evicted);
        self.give_notice(&output, &removals.evictions, rng);
        self.welcome(&output, &candidates);
        self.distribute(&output.assigned.iter().copied().collect());
    }

    /// Tells those who are out, and forgets them.
    fn dismiss(&mut self, output: &EpochOutput<S>, leaving: &BTreeMap<Slot, Name>, evicted: &BTreeSet<Slot>) {
        let Some(lead) = &self.lead else { return };
        for slot in &output.dropped {
            self.memory.spares.remove(slot);
            let peer = self.links.remove(*slot);
            // A member that joined again is not told: it waits for its welcome.
            let Some(name) = leaving.get(slot) else { continue };
            if let Some(peer) = peer {
                self.out.send_encoded(peer, lead.now.message_without_entry());
            }
            let evicted = evicted.contains(slot);
            self.out.event(LeaderEvent::Removed { name: name.clone(), slot: *slot, evicted });
        }
    }

    /// Signs and spreads who was put out, for deputies and for the evicted themselves.
    fn give_notice(&mut self, output: &EpochOutput<S>, handles: &[Handle], rng: &mut dyn CryptoRngCore) {
        let Some(keypair) = &self.memory.keypair else { return };
        for handles in handles.chunks(MAX_EVICTED) {
            let (group, epoch) = (self.config.group.clone(), output.header.core.epoch);
            let statement = statements::evict(&group, epoch, handles);
            let signature = keypair.sign(&self.config.deployment, Label::Evict, &statement, rng);
            let leader = keypair.public().clone();
            let notice = EvictionNotice { group, leader, epoch, handles: handles.to_vec(), signature };
            self.out.send_to_group(&self.config.deployment, &Message::EvictionNotice(notice));
        }
    }

    fn welcome(&mut self, output: &EpochOutput<S>, candidates: &[Candidate<S>]) {
        for (slot, candidate) in output.assigned.iter().zip(candidates) {
            let request = &candidate.request;
            self.links.connect(*slot, candidate.peer);
            self.memory.spares.insert(*slot, Spare { q: request.spare.q, point: Some(request.spare.point) });
            self.memory.pins.insert(request.drone.identity.serial, request.drone.handle());
            let entry = self.lead.as_ref().and_then(|lead| lead.now.entries.get(slot)).cloned();
            let Some(entry) = entry else { continue };
            let welcome = Welcome { nonce: candidate.nonce, header: output.header.clone(), entry };
            self.out.send(&self.config.deployment, candidate.peer, &Message::Welcome(welcome));
            let name = request.drone.identity.name.clone();
            self.out.event(LeaderEvent::Joined { name, slot: *slot });
        }
    }

    fn report(&mut self, kind: Kind, output: &EpochOutput<S>) {
        let members = self.roster().len();
        let (added, removed) = (output.assigned.len(), output.dropped.len());
        let epoch = output.header.core.epoch;
        self.out.event(LeaderEvent::EpochActivated { epoch, kind, members, added, removed });
    }

    /// Sends the epoch again to connected members that have not acknowledged it.
    pub(super) fn send_again(&mut self, now: Now) {
        let Some(lead) = &mut self.lead else { return };
        lead.resends += 1;
        lead.resend =
            (lead.resends < RESENDS).then(|| now.monotonic + self.config.timing.resend * (1 << lead.resends));
        for (slot, peer) in self.links.outstanding() {
            self.out.send_encoded(peer, lead.now.message(slot));
        }
    }

    /// The epoch in force.
    pub(super) fn epoch(&self) -> Option<Epoch> {
        self.lead.as_ref().map(|lead| lead.leadership.epoch())
    }
}

/// What the new epoch changes about the group, to be durable before anybody hears of it.
fn changes<S: Suite>(
    output: &EpochOutput<S>,
    candidates: &[Candidate<S>],
    evictions: &[Handle],
) -> Vec<Change> {
    let mut changes: Vec<Change> = output.dropped.iter().map(|slot| Change::Vacated(*slot)).collect();
    changes.extend(evictions.iter().map(|handle| Change::Evicted(*handle.as_bytes())));
    for (slot, candidate) in output.assigned.iter().zip(candidates) {
        let request = &candidate.request;
        let (serial, handle) = (request.drone.identity.serial, *request.drone.handle().as_bytes());
        changes.push(Change::Member { slot: *slot, public: request.drone.encode() });
        changes
            .push(spare_change::<S>(*slot, &Spare { q: request.spare.q, point: Some(request.spare.point) }));
        changes.push(Change::Pin { serial, handle });
    }
    changes
}
