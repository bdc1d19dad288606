//! A message on its way in.

use alloc::vec::Vec;

use crate::MAX_FRAGMENTS;
use crate::checksum::{CHECKSUM_LEN, message_checksum};
use crate::datagram::Fragment;

#[derive(Debug)]
pub(crate) struct Assembly {
    id: u16,
    total: u32,
    count: u8,
    bytes: Vec<u8>,
    have: [u8; MAX_FRAGMENTS.div_ceil(8)],
    missing: u8,
}

/// A message whose checksum is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrongChecksum;

impl Assembly {
    /// Begins with a fragment's message; `None` if there is no memory for it.
    pub(crate) fn new(fragment: &Fragment<'_>) -> Option<Self> {
        let len = usize::try_from(fragment.total).ok()?;
        let mut bytes = Vec::new();
        // Without the memory for it the fragment is refused.
        bytes.try_reserve_exact(len).ok()?;
        bytes.resize(len, 0);
        let (id, total, count) = (fragment.id, fragment.total, fragment.count);
        Some(Self { id, total, count, bytes, have: [0; MAX_FRAGMENTS.div_ceil(8)], missing: count })
    }

    pub(crate) fn id(&self) -> u16 {
        self.id
    }

    /// Takes a fragment; whether it belongs to this message.
    pub(crate) fn take(&mut self, fragment: &Fragment<'_>) -> bool {
        if (fragment.id, fragment.total, fragment.count) != (self.id, self.total, self.count) {
            return false;
        }
        let index = usize::from(fragment.index);
        let start = fragment.size().and_then(|size| size.checked_mul(index));
        let place =
            start.and_then(|start| self.bytes.get_mut(start..start.checked_add(fragment.bytes.len())?));
        let (Some(place), Some(byte)) = (place, self.have.get_mut(index / 8)) else { return false };
        let bit = 1 << (index % 8);
        // A repeated fragment changes nothing.
        if *byte & bit == 0 {
            *byte |= bit;
            place.copy_from_slice(fragment.bytes);
            self.missing = self.missing.saturating_sub(1);
        }
        true
    }

    /// Bitmap of the fragments received, lowest first.
    pub(crate) fn bitmap(&self) -> &[u8] {
        self.have.get(..usize::from(self.count).div_ceil(8)).unwrap_or_default()
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// The message and its check sum.
    ///
    /// # Errors
    /// [`WrongChecksum`].
    pub(crate) fn finish(mut self, session: u32) -> Result<(Vec<u8>, u32), WrongChecksum> {
        let (message, sum) = self.bytes.split_last_chunk::<CHECKSUM_LEN>().ok_or(WrongChecksum)?;
        let (len, sum) = (message.len(), u32::from_be_bytes(*sum));
        // CRC-32 over session, number and content: fragments of two messages make none.
        if message.is_empty() || message_checksum(session, self.id, message) != sum {
            return Err(WrongChecksum);
        }
        self.bytes.truncate(len);
        Ok((self.bytes, sum))
    }
}
