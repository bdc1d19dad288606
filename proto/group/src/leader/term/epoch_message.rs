//! An epoch as it is sent to the members, kept for retransmission.

use alloc::vec::Vec;
use core::ops::Range;

use quiver_ainq::{
    Delta, Deployment, Entry, EpochKind, EpochOutput, EpochPart, Header, HeaderCore, PathMessage,
    ShortHeader, Slot, SlotChanges, Suite, WrapTree,
};
use quiver_message::{EpochChanges, Message, Nonce, RekeyTemplate, ShortRekey};

/// The most members for whom a term is opened by wraps over a shared medium: each has to listen to all of them,
/// a megabyte.
pub(in crate::leader) const MAX_OPENED: usize = 20_000;
/// Bytes of the wraps of an opening in one message, at most: what a radio codes as a whole, and boards take.
const OPENING_PART: usize = 12 * 1024;

/// The same of wraps by which newcomers follow: with their list of some 1.5 kB, a message that a radio codes as a whole.
const JOINING_PART: usize = 5 * 1024 + 512;

/// Way of an epoch to the members, chosen when it is made (§7.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::leader) enum EpochDelivery {
    /// Each member is sent its own entry.
    Entries,
    /// All wraps go to everybody at once.
    Broadcast,
    /// All wraps with which the term opens go to everybody at once, as soon as somebody is there to take them (§9.1).
    Opening,
    /// Each member is sent the wraps on its path, because all of them are more than links of their own should carry.
    Branches,
    /// Branches, but relays are sent all wraps and cut the parts of those behind them (§21.3).
    RelayCut,
}

/// An epoch as it is sent to the members.
#[derive(Debug)]
pub(in crate::leader) struct EpochMessage<S: Suite> {
    pub(in crate::leader) header: Header<S>,
    /// The slots of the members that it removes and adds; the header may have the digest only.
    pub(in crate::leader) changes: SlotChanges,
    /// Entries by ascending slot. One without q in an opening is void.
    entries: Vec<Entry>,
    /// The wraps, of which members are sent what they need in place of an entry.
    wraps: Option<WrapTree>,
    delivery: EpochDelivery,
    /// The same for all members at once, in as many parts as messages are needed, each with its slots.
    deltas: Vec<(Range<Slot>, Delta)>,
    /// Newcomers that follow by the wraps for all, by ascending slot, with n_e.
    newcomers: Vec<(Slot, Nonce)>,
    /// The header for everybody at once, where all to whom the wraps are of use hold the epoch before.
    short: Option<ShortHeader<S>>,
    /// The header, encoded once for everybody it is sent to.
    template: RekeyTemplate<S>,
}

impl<S: Suite> EpochMessage<S> {
    /// An epoch that was just made. `before`: the epoch that it builds on in its term, if there is one.
    pub(in crate::leader) fn new(
        deployment: &Deployment<S>,
        output: &mut EpochOutput<S>,
        before: Option<&HeaderCore<S>>,
        newcomers: Vec<(Slot, Nonce)>,
        shared_medium: bool,
    ) -> Self {
        let opens = output.header.core.kind == EpochKind::Open;
        // §7.5: over links, an entry and a path are less than a part of the wraps of an opening.
        let for_all = !opens || shared_medium && output.entries.len() <= MAX_OPENED;
        let wraps = output.wraps.take().filter(|_| for_all);
        // §8.3: parts that verify alone, if the whole is longer than a message.
        let most = if opens {
            OPENING_PART
        } else if output.newcomers_follow {
            JOINING_PART
        } else {
            Delta::MAX_LEN
        };
        let deltas = wraps.as_ref().map(|wraps| wraps.chunks(most)).unwrap_or_default();
        let wraps = wraps.filter(|_| !opens);
        let bytes: usize = deltas.iter().map(|(_, delta)| delta.as_bytes().len()).sum();
        let delivery = match deltas.as_slice() {
            [] => EpochDelivery::Entries,
            // §7.5: a member can use those on its path only: on links of their own members are sent no others, if all have
            // more than twice the bytes of a path message. §21.3: what relays cut has to be one message.
            all if !shared_medium && bytes > 2 * PathMessage::len_for(output.header.core.height) => match all
            {
                [_] => EpochDelivery::RelayCut,
                _ => EpochDelivery::Branches,
            },
            _ if opens => EpochDelivery::Opening,
            _ => EpochDelivery::Broadcast,
        };
        // §7.6: newcomers that follow by the wraps hold no epoch before.
        let short = before.filter(|_| newcomers.is_empty());
        Self {
            short: short.and_then(|before| output.header.shorten(before)),
            template: RekeyTemplate::new(deployment, &output.header),
            header: output.header.clone(),
            changes: core::mem::take(&mut output.changes),
            entries: core::mem::take(&mut output.entries),
            wraps,
            delivery,
            deltas,
            newcomers,
        }
    }

    /// The entry for the member in this slot.
    pub(in crate::leader) fn entry(&self, slot: Slot) -> Option<&Entry> {
        let found = self.entries.binary_search_by_key(&slot, |entry| entry.slot).ok()?;
        // §9.1: an entry of an opening names the q that it used.
        self.entries.get(found).filter(|entry| entry.q.is_some() || self.header.core.kind == EpochKind::Rekey)
    }

    /// Way of the epoch to the members.
    pub(in crate::leader) const fn delivery(&self) -> EpochDelivery {
        self.delivery
    }

    /// The encoded messages for everybody, if wraps go to everybody.
    pub(in crate::leader) fn common_messages(
        &self,
        deployment: &Deployment<S>,
    ) -> impl Iterator<Item = Vec<u8>> {
        self.deltas.iter().map(|(slots, delta)| {
            if let Some(header) = &self.short {
                let short = ShortRekey { header: header.clone(), wraps: delta.clone() };
                return Message::ShortRekey(short).encode(deployment);
            }
            // §6.1: each part names the newcomers that follow by it.
            let from = self.newcomers.partition_point(|(slot, _)| *slot < slots.start);
            let to = self.newcomers.partition_point(|(slot, _)| *slot < slots.end);
            let newcomers = self.newcomers.get(from..to).unwrap_or_default();
            let newcomers = newcomers.iter().map(|(slot, nonce)| (*slot, nonce)).collect();
            self.template.broadcast(delta.clone(), &newcomers)
        })
    }

    /// The encoded message with all wraps, of which relays cut each member's part.
    pub(in crate::leader) fn whole_message(&self) -> Option<Vec<u8>> {
        let (_, delta) = self.deltas.first().filter(|_| self.delivery == EpochDelivery::RelayCut)?;
        Some(self.template.message(Some(&EpochPart::Delta(delta.clone()))))
    }

    /// The encoded message for the member in this slot alone: its entry, or the wraps on its path.
    pub(in crate::leader) fn message(&self, slot: Slot) -> Vec<u8> {
        let branch = self.wraps.as_ref().map(|wraps| EpochPart::Delta(wraps.branch(slot)));
        self.template.message(branch.or_else(|| self.entry(slot).cloned().map(EpochPart::Entry)).as_ref())
    }

    /// The encoded message for a member that did not acknowledge it. Wraps for everybody are left out if they
    /// have more bytes than `most`; `None` if they open a term, and the member needs its path.
    pub(in crate::leader) fn message_again(&self, slot: Slot, most: usize) -> Option<Vec<u8>> {
        match self.delivery {
            EpochDelivery::Entries | EpochDelivery::Branches | EpochDelivery::RelayCut => {
                Some(self.message(slot))
            }
            EpochDelivery::Broadcast | EpochDelivery::Opening => match self.deltas.as_slice() {
                // §7.5: wraps of more than 2,048 bytes are not retransmitted.
                [(_, delta)] if delta.as_bytes().len() <= most => {
                    Some(self.message_with(Some(&EpochPart::Delta(delta.clone()))))
                }
                _ if self.delivery == EpochDelivery::Opening => None,
                _ => Some(self.message_with(None)),
            },
        }
    }

    /// The encoded message for a member that the epoch removes: the header if it lists the slot, or the wraps on
    /// its path, which show that none is for it.
    pub(in crate::leader) fn dismissal(&self, slot: Slot) -> Vec<u8> {
        // §12.1: either is the leader's word for it.
        let wraps = self.wraps.as_ref().filter(|_| self.header.core.changes.is_some());
        self.message_with(wraps.map(|wraps| EpochPart::Delta(wraps.branch(slot))).as_ref())
    }

    /// The encoded message for other leaders: the header, and the slots that it changes if it does not list them.
    pub(in crate::leader) fn announcement(&self, deployment: &Deployment<S>) -> Vec<u8> {
        if self.header.core.changes.is_none() {
            return self.message_with(None);
        }
        let (header, changes) = (self.header.clone(), self.changes.clone());
        Message::EpochChanges(EpochChanges { header, changes }).encode(deployment)
    }

    /// The encoded message that carries this part, or none.
    pub(in crate::leader) fn message_with(&self, part: Option<&EpochPart>) -> Vec<u8> {
        self.template.message(part)
    }

    /// Removed members do not come back by the opening of the term.
    pub(in crate::leader) fn forget(&mut self, slots: &[Slot]) {
        for slot in slots {
            if let Ok(found) = self.entries.binary_search_by_key(slot, |entry| entry.slot)
                && let Some(entry) = self.entries.get_mut(found)
            {
                entry.q = None;
            }
        }
    }

    /// Ends the broadcast of its wraps, because it is not the newest epoch any more.
    pub(in crate::leader) fn end_broadcast(&mut self) {
        self.deltas = Vec::new();
        self.delivery = EpochDelivery::Entries;
    }

    /// No member comes back by it.
    pub(in crate::leader) fn forget_all(&mut self) {
        self.entries = Vec::new();
    }
}
