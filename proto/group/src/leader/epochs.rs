//! Making the epochs of a term: closing a batch, expiry, eviction.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::traffic::MAX_SENDERS;
use quiver_ainq::{
    Anonymous, Batch, Epoch, EpochOutput, Kind, LEADER_SLOT, Leadership, Name, Roster, Serial, Slot, Suite,
    Times, UnixTime,
};
use quiver_message::{Nonce, Reason};
use rand_core::CryptoRngCore;

use super::broadcast::Broadcast;
use super::gate::Unnamed;
use super::memory::{Change, Spare, epoch_change, held_change, spare_change};
use super::spreading::Spreading;
use super::vetting::Vetted;
use super::waiting::Candidate;
use super::{Leader, LeaderEvent};
use crate::speech::{EpochFacts, Seat, Voice};
use quiver_machine::{Now, Peer};

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
    /// On the monotonic clock: when to put out who was not heard in this term.
    pub(super) sweep: Duration,
    pub(super) spreading: Spreading,
    /// Whether the leadership still owes work that need not be done before an epoch is on its way.
    pub(super) unsettled: bool,
    /// Not later than the end of the first identity or anonymous membership on the roster that ends.
    pub(super) first_end: UnixTime,
    /// On the monotonic clock: when the first anonymous membership ends.
    pub(super) parting: Option<Duration>,
    /// The epoch whose roster the term was opened with, which may be older than the term before.
    pub(super) opened_with: Option<Epoch>,
    /// Slots that somebody joined in this term.
    pub(super) joined: BTreeSet<Slot>,
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
pub(super) fn ended<S: Suite>(roster: &Roster<S>, now: UnixTime) -> (Vec<Slot>, UnixTime) {
    let (mut ended, mut first_end) = (Vec::new(), UnixTime::MAX);
    let named = roster.iter().map(|(slot, public)| (slot, public.identity.not_after));
    for (slot, end) in named.chain(roster.anonymous_members().map(|(slot, member)| (slot, member.until))) {
        match end {
            end if end <= now => ended.push(slot),
            end => first_end = first_end.min(end),
        }
    }
    (ended, first_end)
}

/// What one epoch was made of, beside what came out of it.
pub(super) struct Made<S: Suite> {
    candidates: Vec<Candidate<S>>,
    /// Who came in without a name, and where the welcome goes.
    pub(super) unnamed: Vec<(Peer, Nonce, Anonymous)>,
    /// Of those who go, the ones without a name.
    pub(super) parting: BTreeMap<Slot, Anonymous>,
    evictions: Vec<Serial>,
    pub(super) leaving: BTreeMap<Slot, Name>,
    pub(super) evicted: BTreeSet<Slot>,
    /// Of those, the ones that the KGC revoked.
    pub(super) revoked: BTreeSet<Slot>,
}

impl<S: Suite> Leader<S> {
    pub(super) fn times(&self, now: Now) -> Times {
        let validity = self.config.timing.validity.as_secs().max(1);
        // A key does not outlive the first membership that ends: who is out then holds nothing that anybody still takes.
        let ends = self.first_anonymous_end(now).unwrap_or(UnixTime::MAX);
        Times {
            issued_at: now.unix,
            valid_until: now.unix.saturating_add(validity).min(ends),
            revocation_number: self.memory.revocations.number(),
        }
    }

    pub(super) fn renewal(&self, now: Now) -> Duration {
        now.monotonic + self.config.timing.validity.mul_f64(0.8)
    }

    /// Makes the new epoch durable, then takes up its voice.
    pub(super) fn secure(
        &mut self,
        leadership: &Leadership<S>,
        output: &EpochOutput<S>,
        mut changes: Vec<Change>,
        rng: &mut dyn CryptoRngCore,
    ) -> Voice {
        let (epoch, digest) = (leadership.epoch(), output.digest);
        self.memory.newest = Some((epoch, digest));
        self.memory.hold(epoch, digest);
        changes.extend([epoch_change(epoch, digest), held_change(epoch, digest)]);
        self.persist(&changes);
        let facts = EpochFacts::new(&output.header, digest, output.header.core.leader.handle(), MAX_SENDERS);
        let seat = Seat { slot: LEADER_SLOT, boot_no: self.memory.boot_no };
        Voice::new(leadership.group_key().traffic(&facts.digest), facts, seat, rng)
    }

    /// Ends the batch: whoever waits to join or leave does so in one epoch, or in as few as it takes.
    pub(super) fn close_batch(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let joins = self.vetted(now, rng);
        let unnamed = self.unnamed_that_fit(joins.len());
        let leaves = core::mem::take(&mut self.leaves);
        if !(joins.is_empty() && unnamed.is_empty() && leaves.is_empty()) {
            self.backlog.remove(leaves);
            self.backlog.admit(joins);
            self.backlog.admit_unnamed(unnamed);
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
                self.give_back(now, &made);
                return self.out.event(LeaderEvent::RekeyFailed(error));
            }
        };
        self.follow_up(now, lead, output, &made, rng);
    }

    /// An epoch could not be made: whoever was to be out with it still is to be. Who was to be in may be why it failed, and
    /// asks again.
    fn give_back(&mut self, now: Now, made: &Made<S>) {
        for candidate in &made.candidates {
            self.refuse(candidate.peer, Reason::Busy, &candidate.nonce, RETRY_FAILED);
        }
        for (peer, nonce, _) in &made.unnamed {
            self.refuse(*peer, Reason::Busy, nonce, RETRY_FAILED);
        }
        let leaves = made.leaving.keys().filter(|slot| !made.evicted.contains(slot));
        let leaves = leaves.chain(made.parting.keys());
        self.backlog.give_back(&made.evictions, leaves.copied(), now.monotonic + RETRY_FAILED);
    }

    /// What the next epoch changes.
    fn portion(&mut self, now: Now) -> Option<(Batch<S>, Made<S>)> {
        let leadership = &self.lead.as_ref()?.leadership;
        let portion = self.backlog.take(leadership.strategy(), leadership.roster());
        let (evictions, leaves) = (portion.evictions, portion.leaves);
        let joins = self.still_welcome(now, portion.joins, &evictions);
        let unnamed = self.unnamed_still_welcome(now, portion.unnamed);
        let roster = self.roster();
        let evicted: BTreeSet<Slot> = evictions.iter().filter_map(|serial| roster.find(serial)).collect();
        let is_revoked =
            |slot: &Slot| roster.get(*slot).is_some_and(|holder| self.memory.revocations.names(holder));
        let revoked = evicted.iter().copied().filter(is_revoked).collect();
        let leaving = leaves.iter().chain(&evicted);
        let leaving = leaving.filter_map(|slot| Some((*slot, roster.get(*slot)?.identity.name.clone())));
        let leaving = leaving.collect();
        let parting = leaves.iter().filter_map(|slot| Some((*slot, *roster.anonymous(*slot)?))).collect();
        let (candidates, joins) = joins.into_iter().unzip();
        let seats = unnamed.iter().map(Unnamed::seat).collect();
        let admissions = unnamed.into_iter().map(|one| one.admission).collect();
        let batch = Batch { joins, admissions, removals: leaves, evictions: evictions.clone() };
        let made = Made { candidates, unnamed: seats, parting, evictions, leaving, evicted, revoked };
        Some((batch, made))
    }

    /// Much may have happened since their signatures were verified.
    fn still_welcome(&mut self, now: Now, joins: Vec<Vetted<S>>, evictions: &[Serial]) -> Vec<Vetted<S>> {
        let mut welcome = Vec::with_capacity(joins.len());
        for (candidate, join) in joins {
            let allowed = match self.may_join(now, &candidate.request) {
                Ok(()) if evictions.contains(&join.public().identity.serial) => Err(Reason::Evicted),
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
        let mut changes = changes(&output, made);
        // A crash between the epochs of a mass eviction lets nobody stay.
        changes.extend(self.backlog.write_down().map(|serial| Change::Evicted(*serial)));
        let voice = self.secure(&lead.leadership, &output, changes, rng);
        for slot in output.assigned.iter().chain(&output.admitted) {
            // A leave that was asked for in this slot was of the membership before.
            self.leaves.remove(slot);
        }
        self.links.start_epoch();
        self.report(Kind::Rekey, &output, lead.leadership.roster().len());
        self.lead = Some(self.lead_on(now, lead, &mut output, made, voice));
        self.dismiss(&output, made);
        self.give_notice(output.header.core.epoch, &made.evictions, rng);
        self.welcome(&output, &made.candidates);
        self.welcome_unnamed(&output.header, &output.admitted, &made.unnamed);
        let evicted = made.evicted.iter().filter_map(|slot| made.leaving.get(slot)).cloned().collect();
        self.tell_deputies(&output, &made.evictions, evicted);
        self.distribute(&output.assigned.iter().chain(&output.admitted).copied().collect());
    }

    /// The same term in its next epoch.
    fn lead_on(
        &self,
        now: Now,
        mut lead: Lead<S>,
        output: &mut EpochOutput<S>,
        made: &Made<S>,
        voice: Voice,
    ) -> Lead<S> {
        let before = core::mem::replace(&mut lead.now, Broadcast::new(&self.config.deployment, output));
        let opening = lead.opening.get_or_insert(before);
        opening.forget(&output.dropped);
        if now.unix >= opening.header.core.valid_until {
            // Nobody can follow it any more.
            opening.forget_all();
        }
        for slot in &output.dropped {
            lead.absent.remove(slot);
        }
        lead.joined.extend(&output.assigned);
        // Who is out could still speak as anyone under the former key.
        let former = output.dropped.is_empty().then_some(lead.voice);
        let ends = made.candidates.iter().map(|candidate| candidate.request.drone.identity.not_after);
        let ends = ends.chain(made.unnamed.iter().map(|(_, _, member)| member.until));
        let unnamed = lead.leadership.roster().anonymous_members();
        let parting = unnamed.map(|(_, member)| member.until.saturating_sub(now.unix)).min();
        lead.spreading.start_epoch(now, &self.config.timing);
        Lead {
            voice: voice.overlap(former, now.monotonic + OVERLAP),
            renew: self.renewal(now),
            unsettled: true,
            first_end: ends.fold(lead.first_end, UnixTime::min),
            parting: parting.map(|left| now.monotonic.saturating_add(Duration::from_secs(left))),
            ..lead
        }
    }

    pub(super) fn report(&mut self, kind: Kind, output: &EpochOutput<S>, members: usize) {
        let (added, removed) = (output.assigned.len() + output.admitted.len(), output.dropped.len());
        let epoch = output.header.core.epoch;
        self.out.event(LeaderEvent::EpochActivated { epoch, kind, members, added, removed });
    }

    /// The epoch in force.
    pub(super) fn epoch(&self) -> Option<Epoch> {
        self.lead.as_ref().map(|lead| lead.leadership.epoch())
    }
}

/// What the new epoch changes about the group, to be durable before anybody hears of it.
fn changes<S: Suite>(output: &EpochOutput<S>, made: &Made<S>) -> Vec<Change> {
    let mut changes: Vec<Change> = output.dropped.iter().map(|slot| Change::Vacated(*slot)).collect();
    changes.extend(made.evictions.iter().map(|serial| Change::Evicted(*serial)));
    for (slot, candidate) in output.assigned.iter().zip(&made.candidates) {
        let request = &candidate.request;
        let (serial, handle) = (request.drone.identity.serial, *request.drone.handle().as_bytes());
        changes.push(Change::Member { slot: *slot, public: request.drone.encode() });
        changes.push(spare_change::<S>(*slot, &Spare::of(&request.spare)));
        changes.push(Change::Pin { serial, handle });
    }
    changes
}

#[cfg(test)]
mod tests {
    use quiver_ainq::{Identity, Role, StrategyKind};

    use super::super::LeaderCommand;
    use super::super::crowd::{Crowd, issue, name};
    use super::*;
    use quiver_machine::{Input, Output};

    #[test]
    fn who_was_to_be_out_with_an_epoch_that_failed_is_out_with_the_next() {
        let mut crowd = Crowd::new(StrategyKind::Flat, 0..5);
        let (role, groups) = (Role::Leader { group: name("alpha"), ordinal: 0 }, alloc::vec![]);
        let other = Identity { serial: [7; 16], name: name("other"), role, groups, not_after: 1 << 40 };
        let other = issue(&crowd.master, &crowd.deployment, &other, &mut crowd.rng);
        // With another's key no epoch of this term can be made.
        let own = crowd.leader.memory.keypair.replace(other);
        crowd.leader.leaves.insert(3);
        crowd.leader.waiting.stir(crowd.now);
        let outputs = crowd.command(LeaderCommand::Evict(name("drone-1")));
        let failed = |output: &Output<LeaderEvent, _>| {
            matches!(output, Output::Event(LeaderEvent::RekeyFailed(quiver_ainq::Error::NotALeader)))
        };
        assert!(outputs.iter().any(failed));
        crowd.now.monotonic += Duration::from_secs(5);
        // The batch of the leave closes, and fails too; then nothing is tried for a while.
        crowd.input(Input::Timeout);
        assert!(!crowd.input(Input::Timeout).iter().any(failed));
        assert_eq!(crowd.leader.roster().len(), 5);
        crowd.leader.memory.keypair = own;
        crowd.now.monotonic += RETRY_FAILED;
        crowd.input(Input::Timeout);
        assert_eq!(crowd.leader.members().map(|(slot, _)| slot).collect::<Vec<_>>(), [0, 2, 4]);
    }
}
