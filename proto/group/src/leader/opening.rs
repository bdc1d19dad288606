//! Opening a term: on start, and in a lost leader's place.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use quiver_ainq::{
    Element, Epoch, EpochOutput, Error, GroupContext, Kind, Leadership, Role, Serial, Slot, Suite, Times,
    UnixTime,
};
use rand_core::CryptoRngCore;

use super::broadcast::Broadcast;
use super::epochs::{Lead, ended};
use super::memory::{Change, Spare, spare_change};
use super::spreading::Spreading;
use super::{Leader, LeaderEvent};
use quiver_machine::Now;

/// Members believe no round above it.
const LAST_ROUND: u64 = Epoch::MAX_ROUND;
/// How far a leader opens its first term above the one it remembers. A leader that was restored convicts itself in about one of so
/// many cases; but leaps add up, and a member that was away while its leader started again and again follows 2^20 rounds at most: with
/// this, 512 starts.
const MAX_LEAP: u64 = 1 << 12;

/// What a term opens with, beside the roster and its members' spare points.
struct Opening<S: Suite> {
    context: GroupContext<S>,
    term: u64,
    /// D of the newest epoch known.
    prev: [u8; 32],
    times: Times,
}

impl<S: Suite> Leader<S> {
    /// Opens a term, if this leader may lead.
    pub(super) fn open_term(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let opening = match self.opening(now, rng) {
            None => return,
            Some(Ok(opening)) => opening,
            Some(Err(error)) => return self.out.event(LeaderEvent::RekeyFailed(error)),
        };
        let mut changes = self.unseat_the_named();
        changes.extend(self.memory.unseat_the_departed());
        let (invalid, first_end) = self.unseat_the_invalid(now);
        changes.extend(invalid);
        let spares = self.memory.unspent();
        changes.extend(self.unseat_the_scattered(&spares));
        match self.leadership(opening, &spares, rng) {
            Err(error) => self.out.event(LeaderEvent::RekeyFailed(error)),
            Ok((leadership, output)) => {
                changes.extend(self.spend(spares));
                self.take_the_lead(now, leadership, output, changes, first_end, rng);
            }
        }
    }

    /// The next term; none for a leader that has no key, or contradicted itself.
    fn opening(&mut self, now: Now, rng: &mut dyn CryptoRngCore) -> Option<Result<Opening<S>, Error>> {
        let own = self.memory.keypair.as_ref()?.public();
        let Role::Leader { ordinal, .. } = own.identity.role else { return None };
        if self.memory.refused.names(own) {
            return None;
        }
        let (round, prev) =
            self.memory.newest.map_or((0, [0; 32]), |(epoch, digest)| (epoch.round(), digest));
        let times = self.times(now);
        if round >= LAST_ROUND {
            return Some(Err(Error::Exhausted));
        }
        if times.issued_at >= times.valid_until {
            return Some(Err(Error::Expired));
        }
        let context = GroupContext {
            deployment: self.config.deployment.clone(),
            group: self.config.group.clone(),
            leader: own.clone(),
        };
        let term = Epoch::term_of(next_round(round, core::mem::take(&mut self.leaps), rng), ordinal);
        Some(Ok(Opening { context, term, prev, times }))
    }

    /// The leadership of the new term. From here on it holds the roster: a copy would take as much memory again. Whatever
    /// could make this fail was checked before, or when the keypair was taken.
    fn leadership(
        &mut self,
        opening: Opening<S>,
        spares: &BTreeMap<Slot, (u64, Element<S>)>,
        rng: &mut dyn CryptoRngCore,
    ) -> Result<(Leadership<S>, EpochOutput<S>), Error> {
        let keypair = self.memory.keypair.as_ref().ok_or(Error::NotALeader)?;
        let Opening { context, term, prev, times } = opening;
        let (roster, strategy) = (core::mem::take(&mut self.memory.roster), self.config.strategy);
        Leadership::open_term(context, keypair, roster, spares, term, prev, &times, strategy, rng)
    }

    /// No spare point opens a second term.
    fn spend(&mut self, spares: BTreeMap<Slot, (u64, Element<S>)>) -> Vec<Change> {
        let mut changes = Vec::with_capacity(spares.len());
        for (slot, (q, _)) in spares {
            let spent = Spare::spent(q);
            changes.push(spare_change::<S>(slot, &spent));
            self.memory.set_spare(slot, spent);
        }
        changes
    }

    /// The term is open: durable first, then in force, then told.
    fn take_the_lead(
        &mut self,
        now: Now,
        leadership: Leadership<S>,
        mut output: EpochOutput<S>,
        changes: Vec<Change>,
        first_end: UnixTime,
        rng: &mut dyn CryptoRngCore,
    ) {
        let opened_with = self.memory.held.map(|(epoch, _)| epoch);
        let voice = self.secure(&leadership, &output, changes, rng);
        self.links.start_term();
        self.report(Kind::Open, &output, leadership.roster().len());
        self.lead = Some(Lead {
            now: Broadcast::new(&self.config.deployment, &mut output),
            opening: None,
            absent: output.header.core.absent.iter().collect(),
            voice,
            renew: self.renewal(now),
            sweep: now.monotonic.saturating_add(self.config.timing.absence),
            spreading: Spreading::new(now, &self.config.timing),
            unsettled: true,
            first_end,
            parting: None,
            opened_with,
            joined: BTreeSet::new(),
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
        let revoked: Vec<(Slot, Serial)> =
            named.map(|(slot, public)| (slot, public.identity.serial)).collect();
        let mut changes = Vec::new();
        for slot in revoked.iter().map(|(slot, _)| *slot).chain(ended) {
            memory.roster.remove(slot);
            memory.remove_spare(slot);
            changes.push(Change::Vacated(slot));
        }
        for (_, serial) in revoked {
            memory.roster.evict(serial);
            changes.push(Change::Evicted(serial));
        }
        (changes, first_end)
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
