//! Epochs of a term: the key schedule that makes them, the newest one as it is sent, and the opening.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Epoch, EpochOutput, EpochPart, Leadership, PathNonce, Roster, Slot, Suite};
use quiver_machine::Peer;
use quiver_message::{Message, Nonce, Welcome};

use super::epoch_message::{EpochDelivery, EpochMessage};
use crate::leader::context::LeaderContext;

/// The key schedule of a term, and the epochs that members may still have to be sent.
#[derive(Debug)]
pub(in crate::leader) struct TermEpochs<S: Suite> {
    pub(in crate::leader) leadership: Leadership<S>,
    /// The newest epoch, as it is sent.
    pub(in crate::leader) current: EpochMessage<S>,
    /// The opening of the term, for members that come back later; `None` while it is the newest epoch.
    pub(super) opening: Option<EpochMessage<S>>,
    /// True if the leadership still owes work that need not be done before an epoch is on its way.
    unsettled: bool,
}

impl<S: Suite> TermEpochs<S> {
    pub(super) const fn new(leadership: Leadership<S>, current: EpochMessage<S>) -> Self {
        Self { leadership, current, opening: None, unsettled: true }
    }

    pub(in crate::leader) fn roster(&self) -> &Roster<S> {
        self.leadership.roster()
    }

    /// The epoch in force.
    pub(in crate::leader) fn epoch(&self) -> Epoch {
        self.leadership.epoch()
    }

    /// Does what the last epoch left: its outputs are out by now.
    pub(super) fn settle(&mut self) {
        if self.unsettled {
            // §7.2: the steps that follow the wraps.
            self.leadership.settle();
            self.unsettled = false;
        }
    }

    /// Time to settle: at once, if anything is left.
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.unsettled.then_some(Duration::ZERO)
    }

    /// Goes on to the epoch that was just made.
    pub(super) fn advance(
        &mut self,
        cx: &LeaderContext<'_, S>,
        output: &mut EpochOutput<S>,
        newcomers: Vec<(Slot, Nonce)>,
    ) {
        // §7.6: if any member of the epoch before is left: of a term that opened with nobody, nobody holds that.
        let newcomers_len = output.assigned.len() + output.admitted.len();
        let stays = self.leadership.roster().len() > newcomers_len;
        let before = Some(&self.current.header.core).filter(|_| stays);
        let next =
            EpochMessage::new(&cx.config.deployment, output, before, newcomers, cx.config.shared_medium);
        let mut before = core::mem::replace(&mut self.current, next);
        before.end_broadcast();
        let opening = self.opening.get_or_insert(before);
        opening.forget(&output.dropped);
        if cx.now.unix >= opening.header.core.valid_until {
            // No member can follow it any more.
            opening.forget_all();
        }
        self.unsettled = true;
    }

    /// Returns true if this is the digest of the newest epoch, or of the one before if the slot had the same
    /// member then. A member that is behind catches up and asks again.
    pub(super) fn is_of_this_membership(&self, slot: Slot, held: &[u8; 32]) -> bool {
        let core = &self.current.header.core;
        held == self.leadership.digest() || (*held == core.prev && !self.current.changes.added.contains(slot))
    }

    /// The part that a member of the newest epoch needs beside its header: its entry if there is one, else
    /// its path.
    pub(super) fn part_for(&mut self, slot: Slot, r: &PathNonce) -> Option<EpochPart> {
        // §8.2: a member that cannot use the wraps receives a path message.
        let entry = self.current.entry(slot).cloned().map(EpochPart::Entry);
        entry.or_else(|| self.path_for(slot, r))
    }

    /// The path of a member in a tree, bound to the nonce of its request.
    pub(super) fn path_for(&mut self, slot: Slot, r: &PathNonce) -> Option<EpochPart> {
        self.leadership.path_message(slot, r).ok().map(EpochPart::Path)
    }

    /// The path of a member in a tree that did not ask for it with a nonce.
    pub(super) fn unasked_path(&mut self, cx: &mut LeaderContext<'_, S>, slot: Slot) -> Option<EpochPart> {
        // §8.2: r is random, for the leader was not asked.
        let mut r = PathNonce::default();
        cx.rng.fill_bytes(&mut r);
        self.path_for(slot, &r)
    }

    /// The encoded message that brings one member alone the newest epoch.
    pub(super) fn message_for(&mut self, cx: &mut LeaderContext<'_, S>, slot: Slot) -> Vec<u8> {
        // §7.5: where a term opens by wraps for all, a path in place of them, which has the key too.
        let path = match self.current.delivery() {
            EpochDelivery::Opening => self.unasked_path(cx, slot),
            _ => None,
        };
        path.map_or_else(|| self.current.message(slot), |path| self.current.message_with(Some(&path)))
    }

    /// §6.1: Sends Welcome(n_e, header, entry or path of the newcomer).
    pub(super) fn send_welcome(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        slot: Slot,
        peer: Peer,
        nonce: &Nonce,
    ) -> bool {
        let Some(part) = self.part_for(slot, nonce) else { return false };
        let welcome = Welcome { nonce: *nonce, header: self.current.header.clone(), part };
        cx.send(peer, &Message::Welcome(welcome));
        true
    }

    /// Sends deputies and other leaders the signed header of the newest epoch, and the slots that it changes.
    pub(super) fn announce(&self, cx: &mut LeaderContext<'_, S>, deputies: impl Iterator<Item = Peer>) {
        // §12.1: the header goes to the deputies when the epoch begins.
        let peers: BTreeSet<Peer> = deputies.chain(cx.peers.leaders.iter().copied()).collect();
        if peers.is_empty() {
            return;
        }
        let announcement = self.current.announcement(&cx.config.deployment);
        for peer in peers {
            cx.out.send_encoded(peer, announcement.clone());
        }
    }

    /// Publishes the same, so that members that are not connected to us send catch-up requests.
    pub(in crate::leader) fn announce_to_group(&self, cx: &mut LeaderContext<'_, S>) {
        cx.out.send_encoded_to_group(self.current.message_with(None));
    }
}
