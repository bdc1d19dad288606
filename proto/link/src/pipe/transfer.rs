//! A message on its way out.

use alloc::vec;
use alloc::vec::Vec;

use crate::checksum::message_checksum;
use crate::datagram::Fragment;

/// State of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FragmentState {
    /// The fragment is to be sent.
    Here,
    /// Sent as the n-th of this transfer.
    UnderWay(u32),
    /// The other side has it.
    There,
}

#[derive(Debug)]
pub(crate) struct Transfer {
    id: u16,
    /// The message and its check sum.
    bytes: Vec<u8>,
    checksum: u32,
    /// Bytes of each fragment but the last.
    size: usize,
    places: Vec<FragmentState>,
    /// Fragments sent so far, repeats included.
    sent: u32,
    /// Fragments that were sent at least once are those before this one.
    fresh: usize,
}

impl Transfer {
    /// Cuts a message into fragments of at most `part_len` bytes. It must not need more than 255.
    pub(crate) fn new(session: u32, id: u16, mut bytes: Vec<u8>, part_len: usize) -> Self {
        // CRC-32 over session, number and content.
        let checksum = message_checksum(session, id, &bytes);
        bytes.extend_from_slice(&checksum.to_be_bytes());
        let count = bytes.len().div_ceil(part_len).max(1);
        let size = bytes.len().div_ceil(count);
        Self { id, bytes, checksum, size, places: vec![FragmentState::Here; count], sent: 0, fresh: 0 }
    }

    pub(crate) fn id(&self) -> u16 {
        self.id
    }

    pub(crate) fn is(&self, id: u16, checksum: u32) -> bool {
        self.id == id && self.checksum == checksum
    }

    /// Number of fragments sent, repeats included.
    pub(crate) fn sent(&self) -> u32 {
        self.sent
    }

    /// The next fragment to send, and whether it was sent before; `None` while all are sent or `window` are
    /// under way.
    pub(crate) fn next(&mut self, window: u8) -> Option<(Fragment<'_>, bool)> {
        let under_way =
            self.places.iter().filter(|place| matches!(place, FragmentState::UnderWay(_))).count();
        let window = usize::from(window);
        // The other side said how many fragments it can buffer; more would be lost.
        if under_way >= window {
            return None;
        }
        let index = self.places.iter().position(|place| *place == FragmentState::Here)?;
        *self.places.get_mut(index)? = FragmentState::UnderWay(self.sent);
        self.sent = self.sent.wrapping_add(1);
        // In the middle of a window too, so that its second half is under way while the answer to the first
        // is.
        let full = under_way + 1;
        let asks =
            full == window || full == window.div_ceil(2) || !self.places.contains(&FragmentState::Here);
        let again = index < self.fresh;
        self.fresh = self.fresh.max(index + 1);
        let start = index.checked_mul(self.size)?;
        let end = start.saturating_add(self.size).min(self.bytes.len());
        let fragment = Fragment {
            asks,
            id: self.id,
            total: u32::try_from(self.bytes.len()).ok()?,
            index: u8::try_from(index).ok()?,
            count: u8::try_from(self.places.len()).ok()?,
            bytes: self.bytes.get(start..end)?,
        };
        Some((fragment, again))
    }

    /// Marks the fragments that the other side acknowledges. If some are new, returns how many fragments had
    /// been sent up to the newest of them: an earlier one that is not acknowledged was lost.
    ///
    /// # Errors
    /// If it claims fragments that were not sent.
    pub(crate) fn mark(&mut self, bitmap: &[u8]) -> Result<Option<u32>, ()> {
        let has = |index: usize| bitmap.get(index / 8).is_some_and(|byte| byte & (1 << (index % 8)) != 0);
        let claimed: u32 = bitmap.iter().map(|byte| byte.count_ones()).sum();
        let sent = (0..self.fresh).filter(|index| has(*index)).count();
        // An answer to something else, or made up.
        if usize::try_from(claimed) != Ok(sent) {
            return Err(());
        }
        let mut newest = None;
        for (index, place) in self.places.iter_mut().enumerate() {
            if let FragmentState::UnderWay(number) = *place
                && has(index)
            {
                newest = newest.max(Some(number));
                *place = FragmentState::There;
            }
        }
        for place in &mut self.places {
            // A medium seldom changes the order: what is passed over is taken for lost, and repeated without
            // a wait.
            if matches!(*place, FragmentState::UnderWay(number) if Some(number) < newest) {
                *place = FragmentState::Here;
            }
        }
        Ok(newest.map(|number| number.wrapping_add(1)))
    }

    /// Marks the fragments for repetition that are not acknowledged; all, if all are there and the message
    /// was not taken, in which case it returns true.
    pub(crate) fn repeat(&mut self) -> bool {
        let all = self.places.iter().all(|place| *place == FragmentState::There);
        for place in &mut self.places {
            if all || *place != FragmentState::There {
                *place = FragmentState::Here;
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indices(transfer: &mut Transfer, window: u8) -> Vec<(u8, bool)> {
        let mut sent = Vec::new();
        while let Some((fragment, _)) = transfer.next(window) {
            sent.push((fragment.index, fragment.asks));
        }
        sent
    }

    #[test]
    fn window_bounds_what_is_under_way() {
        let mut transfer = Transfer::new(0, 0, vec![7; 96], 10);
        assert_eq!(indices(&mut transfer, 4), [(0, false), (1, true), (2, false), (3, true)]);
        assert_eq!(transfer.mark(&[0b11]), Ok(Some(2)));
        assert_eq!(indices(&mut transfer, 4), [(4, false), (5, true)]);
    }

    #[test]
    fn gap_is_sent_again_at_once() {
        let mut transfer = Transfer::new(0, 0, vec![7; 96], 10);
        indices(&mut transfer, 4);
        assert_eq!(transfer.mark(&[0b1010]), Ok(Some(4)));
        assert_eq!(indices(&mut transfer, 4), [(0, false), (2, true), (4, false), (5, true)]);
        assert_eq!(transfer.mark(&[0b1010]), Ok(None), "no news");
        assert_eq!(indices(&mut transfer, 4), []);
    }

    #[test]
    fn claim_to_have_what_was_never_sent_is_refused() {
        let mut transfer = Transfer::new(0, 0, vec![7; 96], 10);
        indices(&mut transfer, 2);
        for bitmap in [&[0b111][..], &[0, 1], &[0; 32], &[0, 0, 0, 0, 0, 0, 0, 0, 0x80]] {
            let refused = bitmap.iter().any(|byte| *byte != 0);
            assert_eq!(transfer.mark(bitmap).is_err(), refused, "{bitmap:?}");
        }
    }
}
