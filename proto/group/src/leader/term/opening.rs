//! Opens a term: on start, and in a lost leader's place. docs/protocol.md §9.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use quiver_ainq::{
    Element, Epoch, EpochKind, EpochOutput, Error, GroupContext, Leadership, Role, Serial, Slot, Suite,
    TermKeys, UnixTime,
};
use rand_core::CryptoRngCore;

use super::Term;
use super::absent_members::drop_excess_absent;
use super::acknowledgements::Acknowledgements;
use super::distribution::Distribution;
use super::epoch_message::EpochMessage;
use super::epochs::TermEpochs;
use super::members::{TermMembers, expired};
use super::pending_changes::PendingChanges;
use super::rekey::{activate, report, times};
use super::timers::TermTimers;
use crate::leader::LeaderEvent;
use crate::leader::context::LeaderContext;
use crate::leader::failover::replication_source::Replication;
use crate::leader::store::{Change, LeaderStore, Spare, spare_change};

/// Members believe no round above it.
const LAST_ROUND: u64 = Epoch::MAX_ROUND;
/// Maximum leap of a leader's first term above the one it remembers. A restored leader convicts itself in
/// about one of so many cases; but leaps add up, and a member that was away while its leader started again
/// and again follows 2^20 rounds at most: with this, 512 starts.
const MAX_LEAP: u64 = 1 << 12;

impl<S: Suite> Term<S> {
    /// Opens a term, if this leader may lead. `leaps` for the first one after a start; `anonymous_only` for a
    /// group without members by name.
    pub(in crate::leader) fn open(
        cx: &mut LeaderContext<'_, S>,
        leaps: &mut bool,
        anonymous_only: bool,
    ) -> Option<Self> {
        match Self::try_open(cx, leaps, anonymous_only)? {
            Ok(term) => Some(term),
            Err(error) => {
                cx.event(LeaderEvent::RekeyFailed(error));
                None
            }
        }
    }

    /// `None` for a leader that has no key, or contradicted itself.
    fn try_open(
        cx: &mut LeaderContext<'_, S>,
        leaps: &mut bool,
        anonymous_only: bool,
    ) -> Option<Result<Self, Error>> {
        let own = cx.store.keypair.as_ref()?.public();
        let Role::Leader { ordinal, .. } = own.identity.role else { return None };
        // §10.7: a leader that is proven false leads no more.
        if cx.store.refused.names(own) {
            return None;
        }
        let context = GroupContext {
            deployment: cx.config.deployment.clone(),
            group: cx.config.group.clone(),
            leader: own.clone(),
        };
        Some(Self::open_above_newest(cx, context, ordinal, leaps, anonymous_only))
    }

    fn open_above_newest(
        cx: &mut LeaderContext<'_, S>,
        context: GroupContext<S>,
        ordinal: u16,
        leaps: &mut bool,
        anonymous_only: bool,
    ) -> Result<Self, Error> {
        let (round, prev) = cx.store.newest.map_or((0, [0; 32]), |(epoch, digest)| (epoch.round(), digest));
        let times = times(cx, None);
        // §19: no term can be opened above the last round.
        if round >= LAST_ROUND {
            return Err(Error::Exhausted);
        }
        if times.issued_at >= times.valid_until {
            return Err(Error::Expired);
        }
        // §9.1: term = round · 2^16 + ordinal; §9.2: after a start a leap above the round remembered.
        let epoch = Epoch::term_of(next_round(round, core::mem::take(leaps), cx.rng), ordinal);
        let mut changes = if anonymous_only { remove_named(cx.store) } else { Vec::new() };
        // §10.4: less the drones that left since, that a list names, or whose identity has ended.
        changes.extend(cx.store.remove_departed());
        let (invalid, first_end) = remove_invalid(cx);
        changes.extend(invalid);
        // §9.1: members without an unused spare point are absent and join again.
        let mut spares = cx.store.unspent();
        // §24.3: g is counted, and every κ steps; §24.7: members without κ are absent as well.
        let kem = open_kem(cx, &context)?;
        if let Some(keys) = &kem {
            spares.retain(|slot, _| keys.key(*slot).is_some());
            changes.push(cx.store.kem.counted());
        }
        changes.extend(drop_excess_absent(cx.store, &spares));
        let keypair = cx.store.keypair.as_ref().ok_or(Error::NotALeader)?;
        // From here on the leadership holds the roster: a copy would take as much memory again. All reasons
        // to fail were checked before, or when the keypair was taken.
        let (roster, strategy) = (core::mem::take(&mut cx.store.roster), cx.config.strategy);
        let (leadership, output) = match &kem {
            None => Leadership::open_term(
                context, keypair, roster, &spares, epoch, prev, &times, strategy, cx.rng,
            )?,
            Some(keys) => {
                let place = (epoch, prev);
                Leadership::open_term_with_kem(
                    context, keypair, roster, &spares, keys, place, &times, strategy, cx.rng,
                )?
            }
        };
        // §9.1: each spare point opens one term.
        changes.extend(spend(cx.store, spares));
        Ok(Self::begin(cx, leadership, output, changes, first_end))
    }

    /// The term is open: durable first, then in force.
    fn begin(
        cx: &mut LeaderContext<'_, S>,
        leadership: Leadership<S>,
        mut output: EpochOutput<S>,
        changes: Vec<Change>,
        first_end: UnixTime,
    ) -> Self {
        let opened_with = cx.store.held.map(|(epoch, _)| epoch);
        // §9.2: used-up points are durable with the epoch, before any message depends on either.
        let channel = activate(cx, &leadership, &output, changes);
        report(cx, EpochKind::Open, &output, leadership.roster().len());
        let current =
            EpochMessage::new(&cx.config.deployment, &mut output, None, Vec::new(), cx.config.shared_medium);
        let absent = output.header.core.absent.iter().collect();
        Self {
            epochs: TermEpochs::new(leadership, current),
            members: TermMembers::new(absent, first_end, opened_with),
            channel,
            timers: TermTimers::new(cx.now, &cx.config.timing),
            distribution: Distribution::new(cx.now, &cx.config.timing),
            acknowledgements: Acknowledgements::default(),
            pending: PendingChanges::new(),
            replication: Replication::new(),
        }
    }
}

/// κ of the members, at the count of the term that is about to be opened; `None` without a second factor.
fn open_kem<S: Suite>(
    cx: &mut LeaderContext<'_, S>,
    context: &GroupContext<S>,
) -> Result<Option<TermKeys<S>>, Error> {
    let LeaderStore { kem, roster, pins, .. } = &mut *cx.store;
    kem.open(&context.leader.handle(), roster, pins, cx.now.unix)
}

/// A group that demands a policy has no member that has not proven to satisfy it.
fn remove_named<S: Suite>(store: &mut LeaderStore<S>) -> Vec<Change> {
    let slots: Vec<Slot> = store.roster.iter().map(|(slot, _)| slot).collect();
    for slot in &slots {
        store.roster.remove(*slot);
        store.remove_spare(*slot);
    }
    slots.into_iter().map(Change::Vacated).collect()
}

/// Removes revoked drones and ended identities from the roster that a term opens with. Also returns when the
/// next identity ends.
fn remove_invalid<S: Suite>(cx: &mut LeaderContext<'_, S>) -> (Vec<Change>, UnixTime) {
    let store = &mut *cx.store;
    let (ended, first_end) = expired(&store.roster, cx.now.unix);
    let named = store.roster.iter().filter(|(_, public)| store.revocations.names(public));
    let revoked: Vec<(Slot, Serial)> = named.map(|(slot, public)| (slot, public.identity.serial)).collect();
    let mut changes = Vec::new();
    for slot in revoked.iter().map(|(slot, _)| *slot).chain(ended) {
        store.roster.remove(slot);
        store.remove_spare(slot);
        changes.push(Change::Vacated(slot));
    }
    for (_, serial) in revoked {
        store.roster.evict(serial);
        changes.push(Change::Evicted(serial));
    }
    (changes, first_end)
}

/// No spare point opens a second term.
fn spend<S: Suite>(store: &mut LeaderStore<S>, spares: BTreeMap<Slot, (u64, Element<S>)>) -> Vec<Change> {
    let mut changes = Vec::with_capacity(spares.len());
    for (slot, (q, _)) in spares {
        let spent = Spare::spent(q);
        changes.push(spare_change::<S>(slot, &spent));
        store.set_spare(slot, spent);
    }
    changes
}

/// The round after this one; for a leader that `leaps` because it started with what it remembers, one of the
/// next [`MAX_LEAP`].
///
/// A leader whose memory was put back from a backup would else sign a second header for an epoch that it
/// opened before, which proves to everybody that it contradicts itself.
fn next_round(round: u64, leaps: bool, rng: &mut dyn CryptoRngCore) -> u64 {
    // §9.2: up to 4,096 rounds above the one remembered.
    let leap = if leaps { 1 + u64::from(rng.next_u32()) % MAX_LEAP } else { 1 };
    (round + leap).min(LAST_ROUND)
}
