//! An epoch as it is sent to the members, kept for retransmission.

use alloc::vec::Vec;

use quiver_ainq::{Deployment, Entry, EpochOutput, Header, Kind, Part, PathMessage, Slot, Suite};
use quiver_message::RekeyTemplate;

/// An epoch as it is sent to the members.
#[derive(Debug)]
pub(in crate::leader) struct EpochMessage<S: Suite> {
    pub(in crate::leader) header: Header<S>,
    /// By ascending slot. One without q in an opening is void.
    entries: Vec<Entry>,
    /// The part that all members are sent in place of an entry.
    delta: Option<Part>,
    /// The header, encoded once for everybody it is sent to.
    template: RekeyTemplate<S>,
}

impl<S: Suite> EpochMessage<S> {
    pub(in crate::leader) fn new(deployment: &Deployment<S>, output: &mut EpochOutput<S>) -> Self {
        Self {
            template: RekeyTemplate::new(deployment, &output.header),
            header: output.header.clone(),
            entries: core::mem::take(&mut output.entries),
            delta: output.delta.take().map(Part::Delta),
        }
    }

    /// The entry for the member in this slot.
    pub(in crate::leader) fn entry(&self, slot: Slot) -> Option<&Entry> {
        let found = self.entries.binary_search_by_key(&slot, |entry| entry.slot).ok()?;
        // §9.1: an entry of an opening names the q that it used.
        self.entries.get(found).filter(|entry| entry.q.is_some() || self.header.core.kind == Kind::Rekey)
    }

    /// Whether a member is sent its path in place of the wraps: on a link of its own, of which more than twice
    /// what a path has are not worth it. Each member can use some of them only.
    pub(in crate::leader) fn is_by_path(&self, shared_medium: bool) -> bool {
        let Some(Part::Delta(delta)) = &self.delta else { return false };
        // §7.5: a path of its own where that is less than half.
        !shared_medium && delta.as_bytes().len() > 2 * PathMessage::len_for(self.header.core.height)
    }

    /// The encoded message for everybody, if there is one.
    pub(in crate::leader) fn common_message(&self) -> Option<Vec<u8>> {
        self.delta.as_ref().map(|delta| self.template.message(Some(delta)))
    }

    /// The encoded message for the member in this slot.
    pub(in crate::leader) fn message(&self, slot: Slot) -> Vec<u8> {
        self.common_message()
            .unwrap_or_else(|| self.template.message(self.entry(slot).cloned().map(Part::Entry).as_ref()))
    }

    /// The same for a member that did not acknowledge it; without the common part if that has more bytes than
    /// `most`.
    pub(in crate::leader) fn message_again(&self, slot: Slot, most: usize) -> Vec<u8> {
        match &self.delta {
            // §7.5: wraps of more than 2,048 bytes are not retransmitted.
            Some(Part::Delta(delta)) if delta.as_bytes().len() > most => self.message_with(None),
            _ => self.message(slot),
        }
    }

    /// The encoded message that carries this part; without a part for removed members.
    pub(in crate::leader) fn message_with(&self, part: Option<&Part>) -> Vec<u8> {
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

    /// No member comes back by it.
    pub(in crate::leader) fn forget_all(&mut self) {
        self.entries = Vec::new();
    }
}
