//! Making epochs: opening a term, closing a batch, expiry, eviction.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{
    Batch, Epoch, EpochOutput, Error, GroupContext, Handle, Kind, LEADER_SLOT, Leadership, Name, Roster,
    Slot, StrategyKind, Suite, Times, UnixTime,
};
use quiver_message::Reason;
use rand_core::CryptoRngCore;

use super::broadcast::Broadcast;
use super::memory::{Change, Spare, epoch_change, held_change, spare_change};
use super::spreading::Spreading;
use super::vetting::Vetted;
use super::waiting::Candidate;
use super::{Leader, LeaderEvent};
use crate::Now;
use crate::speech::{EpochFacts, Seat, Voice};

/// A round has 48 bits.
const LAST_ROUND: u64 = (1 << 48) - 1;
/// How far a leader opens its first term above the one it remembers. Members follow a leap of 2^20 rounds.
const MAX_LEAP: u64 = 256;
/// How long to wait after an epoch could not be made.
const RETRY_FAILED: Duration = Duration::from_secs(10);
/// How long the leader goes on hearing the former epoch.
const OVERLAP: Duration = Duration::from_secs(2);

/// A term in force.
#[derive(Debug)]
pub(super) struct Lead<S: Suite> {
    pub(super) leadership: Leadership<S>,
    pub(super) now: Broadcast<S>,
    /// How the term was opened, for members that come back after it went on; none while that is the newest epoch.
    pub(super) opening: Option<Broadcast<S>>,
    /// Members of the roster that have no key in this term.
    pub(super) absent: BTreeSet<Slot>,
    pub(super) voice: Voice,
    /// On the monotonic clock: when to make a new key because this one grows old.
    pub(super) renew: Duration,
    pub(super) spreading: Spreading,
    /// Whether the leadership still owes work that need not be done before an epoch is on its way.
    pub(super) unsettled: bool,
    /// Not later than the end of the first identity on the roster that ends.
    first_end: UnixTime,
}

impl<S: Suite> Lead<S> {
    /// How many members have a key in this term.
    pub(super) fn keyed(&self) -> usize {
        self.leadership.roster().len().saturating_sub(self.absent.len())
    }

    /// Whose identity has ended. Looks through the roster only if that can be anybody.
    fn ended(&mut self, now: UnixTime) -> Vec<Slot> {
        if now < self.first_end {
            return Vec::new();
        }
        let (ended, first_end) = ended(self.leadership.roster(), now);
        self.first_end = first_end;
        ended
    }
}

/// The slots of those whose identity has ended, and when the next one ends.
fn ended<S: Suite>(roster: &Roster<S>, now: UnixTime) -> (Vec<Slot>, UnixTime) {
    let (mut ended, mut first_end) = (Vec::new(), UnixTime::MAX);
    for (slot, public) in roster.iter() {
        match public.identity.not_after {
            end if end <= now => ended.push(slot),
            end => first_end = first_end.min(end),
        }
    }
    (ended, first_end)
}

/// What one epoch was made of, beside what came out of it.
struct Made<S: Suite> {
    candidates: Vec<Candidate<S>>,
    evictions: Vec<Handle>,
    leaving: BTreeMap<Slot, Name>,
    evicted: BTreeSet<Slot>,
}

impl<S: Suite> Leader<S> {
    /// Opens a term: on start, and in a lost leader's place.
    pub(super) fn open_term(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let Some(keypair) =
            self.memory.keypair.as_ref().filter(|own| !self.memory.refused.names(own.public()))
        else {
            return;
        };
        let quiver_ainq::Role::Leader { ordinal, .. } = keypair.public().identity.role else {
            return;
        };
        let (round, prev) =
            self.memory.newest.map_or((0, [0; 32]), |(epoch, digest)| (epoch.round(), digest));
        let times = self.times(now);
        if round >= LAST_ROUND {
            return self.out.event(LeaderEvent::RekeyFailed(Error::Exhausted));
        }
        if self.config.strategy == StrategyKind::Tree && S::STRICT_PAPER {
            return self.out.event(LeaderEvent::RekeyFailed(Error::UnsupportedStrategy));
        }
        if times.issued_at >= times.valid_until {
            return self.out.event(LeaderEvent::RekeyFailed(Error::Expired));
        }
        let term = Epoch::term_of(next_round(round, core::mem::take(&mut self.leaps), rng), ordinal);
        let context = GroupContext {
            deployment: self.config.deployment.clone(),
            group: self.config.group.clone(),
            leader: keypair.public().clone(),
        };
        let (mut changes, first_end) = self.unseat_the_invalid(now);
        let spares = self.memory.unspent();
        changes.extend(self.unseat_the_scattered(&spares));
        let Some(keypair) = &self.memory.keypair else { return };
        // From here on the leadership holds the roster: a copy would take as much memory again. Whatever could make this
        // fail was checked above, or when the keypair was taken.
        let roster = core::mem::take(&mut self.memory.roster);
        let strategy = self.config.strategy;
        let opened =
            Leadership::open_term(context, keypair, roster, &spares, term, prev, &times, strategy, rng);
        let (leadership, mut output) = match opened {
            Ok(opened) => opened,
            Err(error) => return self.out.event(LeaderEvent::RekeyFailed(error)),
        };
        for (slot, (q, _)) in spares {
            let spent = Spare::spent(q);
            changes.push(spare_change::<S>(slot, &spent));
            self.memory.set_spare(slot, spent);
        }
        let voice = self.secure(&leadership, &output, changes, rng);
        self.links.start_term();
        self.report(Kind::Open, &output, leadership.roster().len());
        self.lead = Some(Lead {
            now: Broadcast::new(&self.config.deployment, &mut output),
            opening: None,
            absent: output.header.core.absent.iter().collect(),
            voice,
            renew: self.renewal(now),
            spreading: Spreading::new(now, &self.config.timing),
            unsettled: true,
            first_end,
            leadership,
        });
        self.follow_hints();
        self.distribute(&BTreeSet::new());
    }

    /// Who was revoked, or whose identity ended, is on no roster that a term opens with. Also gives when the next
    /// identity ends.
    fn unseat_the_invalid(&mut self, now: Now) -> (Vec<Change>, UnixTime) {
        let memory = &mut self.memory;
        let (ended, first_end) = ended(&memory.roster, now.unix);
        let named = memory.roster.iter().filter(|(_, public)| memory.revocations.names(public));
        let revoked: Vec<(Slot, Handle)> = named.map(|(slot, public)| (slot, public.handle())).collect();
        let mut changes = Vec::new();
        for slot in revoked.iter().map(|(slot, _)| *slot).chain(ended) {
            memory.roster.remove(slot);
            memory.remove_spare(slot);
            changes.push(Change::Vacated(slot));
        }
        for (_, handle) in revoked {
            memory.roster.evict(handle);
            changes.push(Change::Evicted(*handle.as_bytes()));
        }
        (changes, first_end)
    }

    fn times(&self, now: Now) -> Times {
        let validity = self.config.timing.validity.as_secs().max(1);
        Times {
            issued_at: now.unix,
            valid_until: now.unix.saturating_add(validity),
            revocation_number: self.memory.revocations.number(),
        }
    }

    fn renewal(&self, now: Now) -> Duration {
        now.monotonic + self.config.timing.validity.mul_f64(0.8)
    }

    /// Makes the new epoch durable, then takes up its voice.
    fn secure(
        &mut self,
        leadership: &Leadership<S>,
        output: &EpochOutput<S>,
        mut changes: Vec<Change>,
        rng: &mut dyn CryptoRngCore,
    ) -> Voice {
        let (epoch, digest) = (leadership.epoch(), output.digest);
        self.memory.newest = Some((epoch, digest));
        self.memory.held = self.memory.newest;
        changes.extend([epoch_change(epoch, digest), held_change(epoch, digest)]);
        self.persist(&changes);
        let facts = EpochFacts { epoch, digest, valid_until: output.header.core.valid_until };
        let seat = Seat { slot: LEADER_SLOT, boot_no: self.memory.boot_no };
        Voice::new(leadership.group_key(), facts, seat, rng)
    }

    /// Ends the batch: whoever waits to join or leave does so in one epoch, or in as few as it takes.
    pub(super) fn close_batch(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let joins = self.vetted(now, rng);
        let leaves = core::mem::take(&mut self.leaves);
        if !(joins.is_empty() && leaves.is_empty()) {
            self.backlog.remove(leaves);
            self.backlog.admit(joins);
            self.rekey(now, rng);
        }
    }

    /// Makes the next epoch, with as much of the backlog as it takes. The rest follows at once.
    pub(super) fn rekey(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let times = self.times(now);
        let Some(ended) = self.lead.as_mut().map(|lead| lead.ended(now.unix)) else {
            self.backlog = super::backlog::Backlog::new();
            return;
        };
        self.backlog.remove(ended);
        let Some((batch, made)) = self.portion(now) else { return };
        let (Some(mut lead), Some(keypair)) = (self.lead.take(), &self.memory.keypair) else { return };
        let output = match lead.leadership.rekey(keypair, batch, &times, rng) {
            Ok(output) => output,
            Err(error) => {
                lead.renew = lead.renew.max(now.monotonic + RETRY_FAILED);
                self.lead = Some(lead);
                return self.out.event(LeaderEvent::RekeyFailed(error));
            }
        };
        self.follow_up(now, lead, output, &made, rng);
    }

    /// What the next epoch changes.
    fn portion(&mut self, now: Now) -> Option<(Batch<S>, Made<S>)> {
        let leadership = &self.lead.as_ref()?.leadership;
        let portion = self.backlog.take(leadership.strategy(), leadership.roster());
        let (evictions, leaves) = (portion.evictions, portion.leaves);
        let joins = self.still_welcome(now, portion.joins, &evictions);
        let roster = self.roster();
        let evicted: BTreeSet<Slot> = evictions.iter().filter_map(|handle| roster.find(handle)).collect();
        let leaving = leaves.iter().chain(&evicted);
        let leaving = leaving.filter_map(|slot| Some((*slot, roster.get(*slot)?.identity.name.clone())));
        let leaving = leaving.collect();
        let (candidates, joins) = joins.into_iter().unzip();
        let batch = Batch { joins, removals: leaves, evictions: evictions.clone() };
        Some((batch, Made { candidates, evictions, leaving, evicted }))
    }

    /// Much may have happened since their signatures were verified.
    fn still_welcome(&mut self, now: Now, joins: Vec<Vetted<S>>, evictions: &[Handle]) -> Vec<Vetted<S>> {
        let mut welcome = Vec::with_capacity(joins.len());
        for (candidate, join) in joins {
            let allowed = match self.may_join(now, &candidate.request) {
                Ok(()) if evictions.contains(&join.public().handle()) => Err(Reason::Evicted),
                allowed => allowed,
            };
            match allowed {
                Ok(()) => welcome.push((candidate, join)),
                Err(reason) => self.refuse(candidate.peer, reason, &candidate.nonce, Duration::ZERO),
            }
        }
        welcome
    }

    /// The epoch is made: durable first, then in force, then told.
    fn follow_up(
        &mut self,
        now: Now,
        lead: Lead<S>,
        mut output: EpochOutput<S>,
        made: &Made<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        let changes = changes(&output, made);
        let Lead { leadership, now: before, opening, mut absent, voice: former, mut spreading, .. } = lead;
        let voice = self.secure(&leadership, &output, changes, rng);
        // Who is out could still speak as anyone under the former key.
        let former = Some(former).filter(|_| output.dropped.is_empty());
        let mut opening = opening.unwrap_or(before);
        opening.forget(&output.dropped);
        if now.unix >= opening.header.core.valid_until {
            // Nobody can follow it any more.
            opening.forget_all();
        }
        for slot in &output.dropped {
            absent.remove(slot);
        }
        for slot in &output.assigned {
            // A leave that was asked for in this slot was of the membership before.
            self.leaves.remove(slot);
        }
        spreading.start_epoch(now, &self.config.timing);
        self.links.start_epoch();
        let ends = made.candidates.iter().map(|candidate| candidate.request.drone.identity.not_after);
        let first_end = ends.fold(lead.first_end, UnixTime::min);
        self.report(Kind::Rekey, &output, leadership.roster().len());
        self.lead = Some(Lead {
            now: Broadcast::new(&self.config.deployment, &mut output),
            opening: Some(opening),
            absent,
            voice: voice.overlap(former, now.monotonic + OVERLAP),
            renew: self.renewal(now),
            spreading,
            unsettled: true,
            first_end,
            leadership,
        });
        self.dismiss(&output, &made.leaving, &made.evicted);
        self.give_notice(output.header.core.epoch, &made.evictions, rng);
        self.welcome(&output, &made.candidates);
        let evicted = made.evicted.iter().filter_map(|slot| made.leaving.get(slot)).cloned().collect();
        self.tell_deputies(&output, &made.evictions, evicted);
        self.distribute(&output.assigned.iter().copied().collect());
    }

    fn report(&mut self, kind: Kind, output: &EpochOutput<S>, members: usize) {
        let (added, removed) = (output.assigned.len(), output.dropped.len());
        let epoch = output.header.core.epoch;
        self.out.event(LeaderEvent::EpochActivated { epoch, kind, members, added, removed });
    }

    /// The epoch in force.
    pub(super) fn epoch(&self) -> Option<Epoch> {
        self.lead.as_ref().map(|lead| lead.leadership.epoch())
    }
}

/// The round after this one; for a leader that `leaps` because it started with what it remembers, one of the next
/// [`MAX_LEAP`].
///
/// A leader whose memory was put back from a backup would else sign a second header for an epoch that it opened before,
/// which proves to everybody that it contradicts itself.
fn next_round(round: u64, leaps: bool, rng: &mut dyn CryptoRngCore) -> u64 {
    let leap = if leaps { 1 + u64::from(rng.next_u32()) % MAX_LEAP } else { 1 };
    (round + leap).min(LAST_ROUND)
}

/// What the new epoch changes about the group, to be durable before anybody hears of it.
fn changes<S: Suite>(output: &EpochOutput<S>, made: &Made<S>) -> Vec<Change> {
    let mut changes: Vec<Change> = output.dropped.iter().map(|slot| Change::Vacated(*slot)).collect();
    changes.extend(made.evictions.iter().map(|handle| Change::Evicted(*handle.as_bytes())));
    for (slot, candidate) in output.assigned.iter().zip(&made.candidates) {
        let request = &candidate.request;
        let (serial, handle) = (request.drone.identity.serial, *request.drone.handle().as_bytes());
        changes.push(Change::Member { slot: *slot, public: request.drone.encode() });
        changes.push(spare_change::<S>(*slot, &Spare::of(&request.spare)));
        changes.push(Change::Pin { serial, handle });
    }
    changes
}
