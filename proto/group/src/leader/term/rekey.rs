//! Makes the next epoch of a term: on expiry, for a batch of joins and leaves, for evictions.
//!
//! docs/protocol.md §7.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::traffic::MAX_SENDERS;
use quiver_ainq::{
    Anonymous, Batch, EpochKind, EpochOutput, LEADER_SLOT, Leadership, Name, Serial, Slot, Suite, Times,
    UnixTime,
};
use quiver_machine::Peer;
use quiver_message::{Nonce, RefusalReason};

use super::Term;
use super::distribution::{dismiss, welcome_anonymous};
use super::epoch_message::MAX_OPENED;
use super::timers::RETRY_FAILED;
use crate::group_channel::{ChannelEpoch, GroupChannel, SenderId};
use crate::leader::LeaderEvent;
use crate::leader::context::LeaderContext;
use crate::leader::joining::anonymous_join::AnonymousJoin;
use crate::leader::joining::batch_verify::VerifiedJoin;
use crate::leader::joining::join_queue::UnverifiedJoin;
use crate::leader::joining::join_request::authorize;
use crate::leader::store::kem_keys::kem_key_change;
use crate::leader::store::{Change, Spare, epoch_change, held_change, spare_change};

/// Number of drones that join by name over a shared medium from which on a broadcast takes the place of their
/// welcomes. With fewer, all members would listen to wraps that few use.
const SEVERAL: usize = 8;
/// Time for which the leader still opens messages of the epoch before.
const OVERLAP: Duration = Duration::from_secs(2);

/// Changes of one epoch, beside the outputs of the key schedule.
pub(super) struct Changes<S: Suite> {
    pub(super) candidates: Vec<UnverifiedJoin<S>>,
    /// Anonymous joins, and the peers to send the welcomes to.
    pub(super) anonymous_joins: Vec<(Peer, Nonce, Anonymous)>,
    /// The anonymous ones of the leaving members.
    pub(super) anonymous_leaves: BTreeMap<Slot, Anonymous>,
    pub(super) evictions: Vec<Serial>,
    pub(super) leaving: BTreeMap<Slot, Name>,
    pub(super) evicted: BTreeSet<Slot>,
    /// The revoked ones of those.
    pub(super) revoked: BTreeSet<Slot>,
}

/// Validity of the next epoch; not beyond `end`, when the first anonymous membership ends.
pub(super) fn times<S: Suite>(cx: &LeaderContext<'_, S>, end: Option<UnixTime>) -> Times {
    let validity = cx.config.timing.validity.as_secs().max(1);
    Times {
        issued_at: cx.now.unix,
        valid_until: cx.now.unix.saturating_add(validity).min(end.unwrap_or(UnixTime::MAX)),
        revocation_number: cx.store.revocations.number(),
    }
}

/// Makes a new epoch durable, then opens its channel.
pub(super) fn activate<S: Suite>(
    cx: &mut LeaderContext<'_, S>,
    leadership: &Leadership<S>,
    output: &EpochOutput<S>,
    mut changes: Vec<Change>,
) -> GroupChannel {
    let (epoch, digest) = (leadership.epoch(), output.digest);
    cx.store.newest = Some((epoch, digest));
    cx.store.hold(epoch, digest);
    changes.extend([epoch_change(epoch, digest), held_change(epoch, digest)]);
    // §6.1: durable before it is sent, or a restart could sign a second header for this epoch.
    cx.persist(&changes);
    let parameters =
        ChannelEpoch::new(&output.header, digest, output.header.core.leader.handle(), MAX_SENDERS);
    let id = SenderId { slot: LEADER_SLOT, boot_no: cx.store.boot_no };
    GroupChannel::new(leadership.group_key().traffic(&parameters.digest), parameters, id, cx.rng)
}

/// Reports a new epoch.
pub(super) fn report<S: Suite>(
    cx: &mut LeaderContext<'_, S>,
    kind: EpochKind,
    output: &EpochOutput<S>,
    members: usize,
) {
    let (added, removed) = (output.assigned.len() + output.admitted.len(), output.dropped.len());
    let epoch = output.header.core.epoch;
    cx.event(LeaderEvent::EpochActivated { epoch, kind, members, added, removed });
}

impl<S: Suite> Term<S> {
    /// Time at which the first anonymous membership ends, of those in the group and those about to be.
    fn first_anonymous_end(&self, now: UnixTime) -> Option<UnixTime> {
        let members = self.roster().anonymous_members().map(|(_, member)| member.until);
        members.chain(self.pending.anonymous_ends()).filter(|until| *until > now).min()
    }

    /// Makes the next epoch, with as many of the pending changes as it takes. The rest follows at once.
    pub(in crate::leader) fn rekey(&mut self, cx: &mut LeaderContext<'_, S>) {
        self.distribution.flush_welcomes(cx, &mut self.epochs, &self.acknowledgements);
        // A key does not outlive the first membership that ends: a former member then holds no key that is
        // still accepted.
        let times = times(cx, self.first_anonymous_end(cx.now.unix));
        // §2.1: an identity that ended is a member no longer.
        let expired = self.members.expired(self.epochs.roster(), cx.now.unix);
        self.pending.remove(expired);
        let (batch, changes) = self.next_batch(cx);
        let Some(keypair) = &cx.store.keypair else { return };
        match self.epochs.leadership.rekey(keypair, batch, &times, cx.rng) {
            Ok(output) => self.begin_epoch(cx, output, &changes),
            Err(error) => {
                self.timers.postpone(cx.now);
                self.requeue(cx, &changes);
                cx.event(LeaderEvent::RekeyFailed(error));
            }
        }
    }

    /// Makes the remaining epochs of a mass eviction, so that no drone to be evicted opens the next messages.
    /// Returns whether they were made.
    pub(in crate::leader) fn flush_evictions(&mut self, cx: &mut LeaderContext<'_, S>) -> bool {
        while self.pending.evicts() {
            let before = self.epoch();
            self.rekey(cx);
            if self.epoch() == before {
                return false;
            }
        }
        true
    }

    /// Re-key failed. Requeues the removals; refuses the joins with `Busy`, because one of them may be the
    /// cause.
    fn requeue(&mut self, cx: &mut LeaderContext<'_, S>, changes: &Changes<S>) {
        for candidate in &changes.candidates {
            cx.refuse(candidate.peer, RefusalReason::Busy, &candidate.nonce, RETRY_FAILED);
        }
        for (peer, nonce, _) in &changes.anonymous_joins {
            cx.refuse(*peer, RefusalReason::Busy, nonce, RETRY_FAILED);
        }
        let leaves = changes.leaving.keys().filter(|slot| !changes.evicted.contains(slot));
        let leaves = leaves.chain(changes.anonymous_leaves.keys());
        self.pending.requeue(&changes.evictions, leaves.copied(), cx.now.monotonic + RETRY_FAILED);
    }

    /// Collects the changes of the next epoch.
    fn next_batch(&mut self, cx: &mut LeaderContext<'_, S>) -> (Batch<S>, Changes<S>) {
        let portion = self.pending.take(self.epochs.roster());
        let (evictions, leaves) = (portion.evictions, portion.leaves);
        // §6.2 once more: much may have happened while they waited.
        let joins = self.still_authorized(cx, portion.joins, &evictions);
        let anonymous = still_valid(cx, portion.anonymous);
        let roster = self.epochs.roster();
        let evicted: BTreeSet<Slot> = evictions.iter().filter_map(|serial| roster.find(serial)).collect();
        let is_revoked =
            |slot: &Slot| roster.get(*slot).is_some_and(|holder| cx.store.revocations.names(holder));
        let revoked = evicted.iter().copied().filter(is_revoked).collect();
        let leaving = leaves.iter().chain(&evicted);
        let leaving =
            leaving.filter_map(|slot| Some((*slot, roster.get(*slot)?.identity.name.clone()))).collect();
        let anonymous_leaves =
            leaves.iter().filter_map(|slot| Some((*slot, *roster.anonymous(*slot)?))).collect();
        let (candidates, joins): (_, Vec<_>) =
            joins.into_iter().map(|join| (join.candidate, join.join)).unzip();
        let anonymous_joins: Vec<_> =
            anonymous.iter().map(|one| (one.peer, one.nonce, one.admission.member)).collect();
        let admissions = anonymous.into_iter().map(|one| one.admission).collect();
        // §7.1: removals free slots before joins take them.
        // §6.1: over a shared medium several newcomers follow by the wraps for all.
        let members = roster.len() + joins.len() + anonymous_joins.len();
        let by_wraps = cx.config.shared_medium && joins.len() >= SEVERAL && members <= MAX_OPENED;
        let batch = Batch { joins, admissions, removals: leaves, evictions: evictions.clone(), by_wraps };
        let changes =
            Changes { candidates, anonymous_joins, anonymous_leaves, evictions, leaving, evicted, revoked };
        (batch, changes)
    }

    /// Authorizes the joins again: much may have changed since the signatures were verified.
    fn still_authorized(
        &self,
        cx: &mut LeaderContext<'_, S>,
        joins: Vec<VerifiedJoin<S>>,
        evictions: &[Serial],
    ) -> Vec<VerifiedJoin<S>> {
        let mut authorized = Vec::with_capacity(joins.len());
        for join in joins {
            let candidate = &join.candidate;
            let allowed = match authorize(cx, self.roster(), &self.pending, &candidate.request) {
                Ok(()) if evictions.contains(&join.join.public().identity.serial) => {
                    Err(RefusalReason::Evicted)
                }
                allowed => allowed,
            };
            match allowed {
                Ok(()) => authorized.push(join),
                Err(reason) => cx.refuse(candidate.peer, reason, &candidate.nonce, Duration::ZERO),
            }
        }
        authorized
    }

    /// Begins an epoch: durable first, then in force, then sent.
    fn begin_epoch(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        mut output: EpochOutput<S>,
        changes: &Changes<S>,
    ) {
        let mut records = records(&output, changes, cx.now.unix);
        // §19: a crash between the epochs of a mass eviction leaves no evicted drone in.
        records.extend(self.pending.take_unrecorded().map(|serial| Change::Evicted(*serial)));
        let channel = activate(cx, &self.epochs.leadership, &output, records);
        for slot in output.assigned.iter().chain(&output.admitted) {
            // A leave that was asked for in this slot was of the membership before.
            self.pending.forget_leave(*slot);
        }
        self.distribution.flush_opening(cx, &self.epochs);
        self.acknowledgements.start_epoch();
        report(cx, EpochKind::Rekey, &output, self.roster().len());
        self.go_on(cx, &mut output, changes, channel);
        let dismissed = dismiss(cx, &self.epochs, &mut self.acknowledgements, &output, changes);
        // §12.2: a signed notice of the evictions goes to the group.
        cx.sign_eviction_notice(output.header.core.epoch, &changes.evictions);
        let Self { epochs, acknowledgements: links, distribution, .. } = self;
        distribution.welcome(cx, epochs, links, &output, &changes.candidates);
        welcome_anonymous(cx, epochs, links, &output, &changes.anonymous_joins);
        let evicted = changes.evicted.iter().filter_map(|slot| changes.leaving.get(slot)).cloned().collect();
        // §10.2: deputies replicate the changes, once they are notified.
        self.replication.note_epoch(&output, &changes.evictions, evicted);
        self.announce(cx);
        let newcomers = output.assigned.iter().chain(&output.admitted).copied().collect();
        self.distribution.distribute(cx, &self.epochs, &self.acknowledgements, &newcomers, dismissed);
    }

    /// The same term in its next epoch.
    fn go_on(
        &mut self,
        cx: &LeaderContext<'_, S>,
        output: &mut EpochOutput<S>,
        changes: &Changes<S>,
        channel: GroupChannel,
    ) {
        let newcomers = if output.newcomers_follow { &output.assigned[..] } else { &[] };
        let newcomers = newcomers.iter().zip(&changes.candidates);
        let mut newcomers: Vec<_> = newcomers.map(|(slot, candidate)| (*slot, candidate.nonce)).collect();
        newcomers.sort_unstable();
        self.epochs.advance(cx, output, newcomers);
        let ends = changes.candidates.iter().map(|candidate| candidate.request.drone.identity.not_after);
        let ends = ends.chain(changes.anonymous_joins.iter().map(|(_, _, member)| member.until));
        self.members.advance(&output.dropped, &output.assigned, ends);
        let anonymous = self.roster().anonymous_members();
        let left = anonymous.map(|(_, member)| member.until.saturating_sub(cx.now.unix)).min();
        let anonymous_end = left.map(|left| cx.now.monotonic.saturating_add(Duration::from_secs(left)));
        self.timers.start_epoch(cx.now, &cx.config.timing, anonymous_end);
        // §13.10: a removed member could still send as anyone under the former key.
        let former = core::mem::replace(&mut self.channel, channel);
        self.channel.overlap(output.dropped.is_empty().then_some(former), cx.now.monotonic + OVERLAP);
        self.distribution.start_epoch(cx.now, &cx.config.timing);
    }
}

/// The anonymous joins whose membership has not ended while they waited.
fn still_valid<S: Suite>(
    cx: &mut LeaderContext<'_, S>,
    joins: Vec<AnonymousJoin<S>>,
) -> Vec<AnonymousJoin<S>> {
    let (valid, late): (Vec<_>, Vec<_>) =
        joins.into_iter().partition(|one| one.admission.member.until > cx.now.unix);
    for one in late {
        cx.refuse(one.peer, RefusalReason::Expired, &one.nonce, Duration::ZERO);
    }
    valid
}

/// Records of the new epoch, which must be durable before the epoch is sent.
fn records<S: Suite>(output: &EpochOutput<S>, changes: &Changes<S>, now: UnixTime) -> Vec<Change> {
    let mut records: Vec<Change> = output.dropped.iter().map(|slot| Change::Vacated(*slot)).collect();
    records.extend(changes.evictions.iter().map(|serial| Change::Evicted(*serial)));
    for (slot, candidate) in output.assigned.iter().zip(&changes.candidates) {
        let request = &candidate.request;
        let (serial, handle) = (request.drone.identity.serial, *request.drone.handle().as_bytes());
        records.push(Change::Member { slot: *slot, public: request.drone.encode() });
        records.push(spare_change::<S>(*slot, &Spare::of(&request.spare)));
        records.push(Change::Pin { serial, handle });
        // §24.4: durable with the epoch that the drone enters by.
        let renewed = candidate.kem.as_ref().filter(|kem| kem.renewed);
        records.extend(renewed.map(|kem| kem_key_change(&request.drone.handle(), &kem.key, now)));
    }
    records
}

#[cfg(test)]
mod tests {
    use quiver_ainq::{Identity, Role, StrategyKind};

    use super::super::super::LeaderCommand;
    use super::super::super::test_support::{LeaderFixture, issue_keypair, name};
    use super::*;
    use quiver_machine::{Input, Output};

    #[test]
    fn who_was_to_be_out_with_an_epoch_that_failed_is_out_with_the_next() {
        let mut fixture = LeaderFixture::new(StrategyKind::Flat, 0..5);
        let (role, groups) = (Role::Leader { group: name("alpha"), ordinal: 0 }, alloc::vec![]);
        let other = Identity { serial: [7; 16], name: name("other"), role, groups, not_after: 1 << 40 };
        let other = issue_keypair(&fixture.master, &fixture.deployment, &other, &mut fixture.rng);
        // With another's key no epoch of this term can be made.
        let own = fixture.leader.base.store.keypair.replace(other);
        fixture.leave(3);
        let outputs = fixture.command(LeaderCommand::Evict(name("drone-1")));
        let failed = |output: &Output<LeaderEvent, _>| {
            matches!(output, Output::Event(LeaderEvent::RekeyFailed(quiver_ainq::Error::NotALeader)))
        };
        assert!(outputs.iter().any(failed));
        fixture.now.monotonic += Duration::from_secs(5);
        // The batch of the leave closes, and fails too; then nothing is tried for a while.
        fixture.input(Input::Timeout);
        assert!(!fixture.input(Input::Timeout).iter().any(failed));
        assert_eq!(fixture.leader.roster().len(), 5);
        fixture.leader.base.store.keypair = own;
        fixture.now.monotonic += RETRY_FAILED;
        fixture.input(Input::Timeout);
        assert_eq!(fixture.leader.members().map(|(slot, _)| slot).collect::<Vec<_>>(), [0, 2, 4]);
    }
}
