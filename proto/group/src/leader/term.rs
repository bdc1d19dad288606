//! A term in force: all that a leader has only while it leads.
//!
//! | module | what it does |
//! |---|---|
//! | [`opening`] | opens a term, from a roster and its members' spare points (§9.1) |
//! | [`rekey`] | makes the next epoch of the term |
//! | [`pending_changes`] | joins, leaves and evictions that wait for an epoch |
//! | [`eviction`] | evicts members, by the operator's word or a revocation list |
//! | [`absent_members`] | members that are away |
//! | [`distribution`] | distributes an epoch and retransmits it |
//! | [`epoch_message`] | an epoch as it is sent |
//! | [`acknowledgements`] | where members are connected, and what they acknowledged |
//! | [`member_messages`] | handles what members send: acknowledgements, catch-up requests, spare points, leaves, messages |

pub(super) mod absent_members;
pub(super) mod acknowledgements;
pub(super) mod distribution;
pub(super) mod epoch_message;
mod eviction;
pub(super) mod member_messages;
pub(super) mod opening;
pub(super) mod pending_changes;
pub(super) mod rekey;

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{DroneKeypair, Epoch, EpochKeys, Leadership, Roster, Slot, Suite, UnixTime};
use quiver_crypto::Secret;
use quiver_machine::{Now, Peer, due, earlier};

use self::acknowledgements::Acknowledgements;
use self::distribution::Distribution;
use self::epoch_message::EpochMessage;
use self::pending_changes::PendingChanges;
use super::context::LeaderContext;
use super::failover::peer_hints::PeerHints;
use super::failover::replication_source::Replication;
use super::store::LeaderStore;
use crate::group_channel::GroupChannel;

/// A term in force.
#[derive(Debug)]
pub(super) struct Term<S: Suite> {
    pub(super) leadership: Leadership<S>,
    /// The newest epoch, as it is sent.
    pub(super) current: EpochMessage<S>,
    /// The opening of the term, for members that come back later; `None` while it is the newest epoch.
    opening: Option<EpochMessage<S>>,
    /// Members of the roster that have no key in this term.
    absent: BTreeSet<Slot>,
    channel: GroupChannel,
    /// Time on the monotonic clock to make a new key because this one grows old.
    renew: Duration,
    /// Time of the next removal of members without a message in this term, on the monotonic clock.
    sweep: Duration,
    distribution: Distribution,
    /// True if the leadership still owes work that need not be done before an epoch is on its way.
    unsettled: bool,
    /// Not later than the end of the first identity or anonymous membership on the roster that ends.
    first_end: UnixTime,
    /// Time on the monotonic clock at which the first anonymous membership ends.
    anonymous_end: Option<Duration>,
    /// The epoch whose roster the term was opened with, which may be older than the term before.
    pub(super) opened_with: Option<Epoch>,
    /// Slots that were given to a drone in this term.
    pub(super) joined: BTreeSet<Slot>,
    /// Time to renew the key because a member restarted, and the time of the last such renewal.
    restart_renewal: Option<Duration>,
    last_restart: Option<Duration>,
    pub(super) acknowledgements: Acknowledgements,
    pub(super) pending: PendingChanges<S>,
    /// The deputies that copy this term's roster.
    pub(super) replication: Replication<S>,
}

impl<S: Suite> Term<S> {
    pub(super) fn roster(&self) -> &Roster<S> {
        self.leadership.roster()
    }

    /// The epoch in force.
    pub(super) fn epoch(&self) -> Epoch {
        self.leadership.epoch()
    }

    /// Number of members with a key in this term.
    pub(super) fn keyed(&self) -> usize {
        self.roster().len().saturating_sub(self.absent.len())
    }

    /// A secret that all synced members of the epoch derive under this name.
    pub(super) fn export(&self, name: &quiver_ainq::Name) -> Secret<32> {
        self.leadership.group_key().export(name, self.leadership.digest())
    }

    /// Keys of the epoch in force for datagrams.
    pub(super) fn epoch_keys(&self, now: Now, keypair: &DroneKeypair<S>) -> Option<EpochKeys<S>> {
        // §20.2: nothing is sent under a key that a drone to be evicted holds.
        if self.pending.evicts() {
            return None;
        }
        self.channel.epoch_keys(now, Some(keypair.public()))
    }

    /// Does what the last epoch left: its outputs are out by now.
    pub(super) fn settle(&mut self) {
        if self.unsettled {
            // §7.2: the steps that follow the wraps.
            self.leadership.settle();
            self.unsettled = false;
        }
    }

    /// Makes the epochs that are due, and goes on with distributing the newest.
    pub(super) fn tick(&mut self, cx: &mut LeaderContext<'_, S>) {
        let clock = cx.now.monotonic;
        let restart = due(self.restart_renewal, clock);
        if restart {
            self.restart_renewal = None;
            self.last_restart = Some(clock);
        }
        // §7.1: a key before t_g; §11.2: for members that lost theirs; §A5.2: at the end of a period.
        if self.renew <= clock || restart || due(self.anonymous_end, clock) {
            self.rekey(cx);
        }
        if self.sweep <= clock {
            // §12.1: drones without a message in this term for `absence`.
            self.expire_silent_members(cx);
        }
        self.tick_distribution(cx);
        self.channel.tick(cx.now);
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        // Pending settlement is due at once.
        let settle = self.unsettled.then_some(Duration::ZERO);
        [
            Some(self.renew.min(self.sweep)),
            self.anonymous_end,
            self.restart_renewal,
            self.distribution.deadline(),
            settle,
            self.pending.deadline(),
            self.channel.deadline(),
        ]
        .into_iter()
        .fold(None, earlier)
    }

    pub(super) fn disconnected(&mut self, peer: Peer) {
        self.replication.disconnected(peer);
        self.acknowledgements.disconnect(peer);
    }

    /// Takes members to be connected where hints say, and sends them their entries (§10.5).
    pub(super) fn follow_hints(&mut self, hints: &PeerHints) {
        for (slot, public) in self.leadership.roster().iter() {
            if let Some(peer) = hints.get(&public.identity.serial) {
                self.acknowledgements.connect(slot, peer);
            }
        }
    }

    /// The roster goes back to the store, less whom an eviction names that made no epoch yet: as the records
    /// say. Gives where members are connected.
    pub(super) fn close(self, store: &mut LeaderStore<S>) -> Vec<(Slot, Peer)> {
        store.roster = self.roster().clone();
        // §A5.1: anonymous members are at no deputy and on no disk.
        store.roster.forget_anonymous();
        // §12.2: evictions hold, though no epoch was made for them.
        for serial in self.pending.all_evictions() {
            if let Some(slot) = store.roster.evict(*serial) {
                store.remove_spare(slot);
            }
        }
        self.acknowledgements.connections().collect()
    }
}
