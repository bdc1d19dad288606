//! Receives messages one after the other.

use alloc::vec::Vec;

use super::assembly::Assembly;
use crate::checksum::CHECKSUM_LEN;
use crate::datagram::{Datagram, Fragment};
use crate::limits::PipeCounters;

#[derive(Debug)]
pub(crate) struct PipeReceiver {
    session: u32,
    max_message: usize,
    current: Option<Assembly>,
    /// The last message that came whole, and its check sum.
    last: Option<(u16, u32)>,
    /// True to say which fragments of the current message are there.
    send_have: bool,
    /// True to say that the last message is there.
    send_done: bool,
}

impl PipeReceiver {
    pub(crate) fn new(session: u32, max_message: usize) -> Self {
        Self { session, max_message, current: None, last: None, send_have: false, send_done: false }
    }

    /// Takes a fragment; the message if it was the last one missing.
    pub(crate) fn handle(&mut self, fragment: &Fragment<'_>, counters: &mut PipeCounters) -> Option<Vec<u8>> {
        if let Some((last, _)) = self.last {
            // At most once: acknowledged again, not delivered again.
            if last == fragment.id {
                self.send_done |= fragment.asks;
                return None;
            }
            // In order: what is older was given up.
            if !is_later(fragment.id, last) {
                return None;
            }
        }
        let allowed = self.max_message.saturating_add(CHECKSUM_LEN);
        // Before any memory is taken.
        if usize::try_from(fragment.total).is_ok_and(|total| total > allowed) {
            counters.too_long += u64::from(fragment.index == 0);
            return None;
        }
        self.make_room(fragment, counters)?;
        let current = self.current.as_mut()?;
        if !current.take(fragment) {
            counters.malformed += u64::from(current.id() == fragment.id);
            return None;
        }
        // Sent only if the sender asks.
        if !current.is_complete() {
            self.send_have |= fragment.asks;
            return None;
        }
        self.finish(counters)
    }

    /// Begins the fragment's message, if it is another than the current one. Its sender has one under way,
    /// the one of the latest fragment: should it have been the other after all, it is repeated.
    fn make_room(&mut self, fragment: &Fragment<'_>, counters: &mut PipeCounters) -> Option<()> {
        if self.current.as_ref().is_some_and(|current| current.id() == fragment.id) {
            return Some(());
        }
        // One message at a time: first its memory back, then the new one's.
        self.current = None;
        self.send_have = false;
        self.current = Assembly::new(fragment);
        counters.refused += u64::from(self.current.is_none());
        Some(())
    }

    fn finish(&mut self, counters: &mut PipeCounters) -> Option<Vec<u8>> {
        let current = self.current.take()?;
        self.send_have = false;
        let id = current.id();
        let Ok((message, checksum)) = current.finish(self.session) else {
            // Its sender gets no acknowledgement, and begins again.
            counters.bad_checksum += 1;
            return None;
        };
        self.last = Some((id, checksum));
        self.send_done = true;
        counters.received += 1;
        Some(message)
    }

    pub(crate) fn poll(&mut self) -> Option<Vec<u8>> {
        let session = self.session;
        if core::mem::take(&mut self.send_done)
            && let Some((id, checksum)) = self.last
        {
            // Done goes first: it also says that all fragments of its message are there.
            return Some(Datagram::Done { session, id, checksum }.encode());
        }
        if core::mem::take(&mut self.send_have)
            && let Some(current) = &self.current
        {
            let (id, bitmap) = (current.id(), current.bitmap());
            return Some(Datagram::Have { session, id, bitmap }.encode());
        }
        None
    }
}

/// Returns true if one number comes after another, modulo 2^16.
fn is_later(number: u16, than: u16) -> bool {
    // Serial number arithmetic as in RFC 1982: half of all numbers are ahead.
    (1..=0x8000).contains(&number.wrapping_sub(than))
}
