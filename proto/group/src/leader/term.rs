//! A term in force: all that a leader has only while it leads.
//!
//! [`Term`] opens, makes epochs, and hands what members send to its parts. Each part has its own state, and takes
//! the epochs and the connections that it needs as arguments.
//!
//! | module | what it does |
//! |---|---|
//! | [`opening`] | opens a term, from a roster and its members' spare points (§9.1) |
//! | [`rekey`] | makes the next epoch of the term |
//! | [`epochs`] | the key schedule, the newest epoch and the opening |
//! | [`members`] | members without a key, those that joined, and the next identity that ends |
//! | [`timers`] | times of the next key |
//! | [`pending_changes`] | joins, leaves and evictions that wait for an epoch |
//! | [`eviction`] | removes members, by the operator's word, a revocation list, or because they are silent |
//! | [`absent_members`] | members that are away |
//! | [`distribution`] | distributes an epoch and retransmits it |
//! | [`epoch_message`] | an epoch as it is sent |
//! | [`acknowledgements`] | where members are connected, and what they acknowledged |
//! | [`member_messages`] | handles what members send: acknowledgements, catch-up requests, spare points, leaves, messages |

pub(super) mod absent_members;
pub(super) mod acknowledgements;
pub(super) mod distribution;
pub(super) mod epoch_message;
pub(super) mod epochs;
mod eviction;
pub(super) mod member_messages;
pub(super) mod members;
pub(super) mod opening;
pub(super) mod pending_changes;
pub(super) mod rekey;
mod timers;

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{DroneKeypair, Epoch, EpochKeys, Header, KemTerm, Name, Roster, Slot, SlotChanges, Suite};
use quiver_crypto::Secret;
use quiver_machine::{Now, Peer, RelayedBroadcast, earlier};
use quiver_message::{CatchUpRequest, Message, StandBy};

use self::acknowledgements::Acknowledgements;
use self::distribution::Distribution;
use self::epochs::TermEpochs;
use self::members::TermMembers;
use self::pending_changes::PendingChanges;
use self::timers::TermTimers;
use super::LeaderEvent;
use super::context::LeaderContext;
use super::failover::peer_hints::PeerHints;
use super::failover::replication_source::Replication;
use super::interface::{AnonymousLeave, LeaderTiming};
use super::store::LeaderStore;
use crate::group_channel::GroupChannel;

/// A term in force.
#[derive(Debug)]
pub(super) struct Term<S: Suite> {
    pub(super) epochs: TermEpochs<S>,
    pub(super) members: TermMembers,
    channel: GroupChannel,
    timers: TermTimers,
    distribution: Distribution,
    pub(super) acknowledgements: Acknowledgements,
    pub(super) pending: PendingChanges<S>,
    /// The deputies that copy this term's roster.
    pub(super) replication: Replication<S>,
}

impl<S: Suite> Term<S> {
    pub(super) fn roster(&self) -> &Roster<S> {
        self.epochs.roster()
    }

    /// The epoch in force.
    pub(super) fn epoch(&self) -> Epoch {
        self.epochs.epoch()
    }

    /// The header of the newest epoch.
    pub(super) const fn header(&self) -> &Header<S> {
        &self.epochs.current.header
    }

    /// Digest of the newest epoch.
    pub(super) fn digest(&self) -> &[u8; 32] {
        self.epochs.leadership.digest()
    }

    /// Parameter set and count of the second factor, if the term has one.
    pub(super) fn kem(&self) -> Option<KemTerm> {
        self.epochs.leadership.kem()
    }

    /// Number of members with a key in this term.
    pub(super) fn keyed(&self) -> usize {
        self.members.keyed(self.roster())
    }

    /// A secret that all synced members of the epoch derive under this name.
    pub(super) fn export(&self, name: &Name) -> Secret<32> {
        self.epochs.leadership.group_key().export(name, self.digest())
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
        self.epochs.settle();
    }

    /// Makes the epochs that are due, and goes on with distributing the newest.
    pub(super) fn tick(&mut self, cx: &mut LeaderContext<'_, S>) {
        if self.timers.renewal_is_due(cx.now) {
            self.rekey(cx);
        }
        if self.timers.sweep_is_due(cx.now, &cx.config.timing) {
            // §12.1: drones without a message in this term for `absence`.
            self.expire_silent_members(cx);
        }
        self.distribution.tick(cx, &mut self.epochs, &self.acknowledgements);
        self.channel.tick(cx.now);
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        [
            self.timers.deadline(),
            self.distribution.deadline(),
            self.epochs.deadline(),
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

    /// Hands a member's message to the part that it is for.
    pub(super) fn member_message(&mut self, cx: &mut LeaderContext<'_, S>, from: Peer, message: &Message<S>) {
        let members = self.keyed();
        let Self { epochs, acknowledgements: links, distribution, replication, .. } = self;
        match message {
            Message::Ack(ack) => links.receive_ack(cx, epochs, distribution, from, ack, members),
            Message::SparePublication(spare) => {
                member_messages::spare_published(cx, epochs, links, replication, from, spare);
            }
            Message::Leave(leave) => self.pending.receive_leave(cx, epochs, links, from, leave),
            Message::GroupMessage(message) => {
                member_messages::receive_message(cx, &mut self.channel, epochs.roster(), from, message);
            }
            _ => {}
        }
    }

    /// An anonymous member asks to leave.
    pub(super) fn anonymous_leave(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        from: Peer,
        leave: &AnonymousLeave,
    ) {
        self.pending.receive_anonymous_leave(cx, &self.epochs, &mut self.acknowledgements, from, leave);
    }

    /// A member asks which epoch is current.
    pub(super) fn catch_up(&mut self, cx: &mut LeaderContext<'_, S>, from: Peer, request: &CatchUpRequest) {
        if self.acknowledgements.catch_up(cx, &mut self.epochs, &mut self.distribution, from, request) {
            self.timers.renew_after_restart(cx.now);
        }
    }

    /// Answers a deputy's question.
    pub(super) fn stand_by(&mut self, cx: &mut LeaderContext<'_, S>, from: Peer, question: &StandBy) {
        self.replication.stand_by(cx, &self.epochs, from, question);
    }

    /// Members that are out by another leader's verified header leave with the next batch.
    pub(super) fn note_departures(&mut self, header: &Header<S>, changes: Option<&SlotChanges>) {
        // §12.1: they leave with the next batch.
        self.pending.request_leave(self.members.departures(self.epochs.roster(), header, changes));
    }

    /// Deadline before which the next batch is held back, because too many members lack the epoch in force.
    pub(super) fn arriving(&self, timing: &LeaderTiming) -> Option<Duration> {
        self.distribution.arriving(&self.acknowledgements, timing)
    }

    /// Takes the broadcast that relays are to be sent.
    pub(super) fn take_relayed(&mut self) -> Option<RelayedBroadcast> {
        self.distribution.take_relayed()
    }

    /// Distributes the epoch that the term was just opened with.
    pub(super) fn distribute_opening(&mut self, cx: &mut LeaderContext<'_, S>) {
        self.distribution.distribute(cx, &self.epochs, &self.acknowledgements, &BTreeSet::new(), Vec::new());
    }

    /// Announces the newest epoch to deputies and other leaders.
    pub(super) fn announce(&self, cx: &mut LeaderContext<'_, S>) {
        self.epochs.announce(cx, self.replication.peers());
    }

    /// Seals a message to the group, signed, under a key that no drone to be evicted holds.
    pub(super) fn send_message(&mut self, cx: &mut LeaderContext<'_, S>, channel: Name, data: &[u8]) {
        if !self.flush_evictions(cx) {
            return cx.event(LeaderEvent::SendFailed("a member that is to be evicted holds the key"));
        }
        let Some(keypair) = &cx.store.keypair else { return };
        // §13.3: the leader signs everything.
        let signing = Some((&cx.config.deployment, keypair));
        match self.channel.seal(cx.now, (&cx.config.group, channel), data, signing, cx.rng) {
            Err(reason) => cx.event(LeaderEvent::SendFailed(reason)),
            Ok(message) => cx.publish(&Message::GroupMessage(message)),
        }
    }

    /// Takes members to be connected where hints say, and sends them their entries (§10.5).
    pub(super) fn follow_hints(&mut self, hints: &PeerHints) {
        for (slot, public) in self.epochs.roster().iter() {
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
