//! A key in flash, with where its record lies: 48 bytes, all of which are cleared when the record is
//! superseded.

use alloc::vec::Vec;
use core::fmt;

use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Hasher, Secret, Zeroizing};

/// Bytes of a slot.
pub(super) const SLOT_LEN: usize = 48;
/// Bytes of a slot's check.
const CHECK_LEN: usize = 4;

/// The key of a record, and where the record lies.
pub(super) struct RecordSlot {
    /// Counts up with every state stored.
    pub(super) generation: u32,
    /// Position of the record in the ring.
    pub(super) start: u32,
    /// Bytes the record has.
    pub(super) len: u32,
    pub(super) key: Secret<32>,
}

/// Content of a place for a slot.
pub(super) enum Contents {
    /// All ones: nothing was written yet.
    Erased,
    /// All zeros: superseded.
    Cleared,
    Slot(RecordSlot),
    /// Half written, half cleared, half erased, or decayed.
    Other,
}

/// Position of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotPosition {
    pub(super) page: u32,
    pub(super) index: u32,
}

impl RecordSlot {
    /// generation ‖ start ‖ length ‖ key ‖ check.
    pub(super) fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut writer = Writer::with_capacity(SLOT_LEN);
        writer.u32(self.generation).u32(self.start).u32(self.len).fixed(self.key.expose());
        Zeroizing::new(writer.fixed(&self.check()).finish())
    }

    /// The same slot, to be written elsewhere.
    pub(super) fn copy(&self) -> Self {
        Self { generation: self.generation, start: self.start, len: self.len, key: self.key.clone() }
    }

    fn decode(bytes: &[u8; SLOT_LEN]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let (generation, start, len) = (reader.u32().ok()?, reader.u32().ok()?, reader.u32().ok()?);
        let key = Secret::try_from(reader.take(32).ok()?).ok()?;
        let slot = Self { generation, start, len, key };
        (reader.array() == Ok(slot.check())).then_some(slot)
    }

    fn check(&self) -> [u8; CHECK_LEN] {
        let hash = Hasher::new("quiver/1 flash slot").u32(self.generation).u32(self.start).u32(self.len);
        let hash = hash.fixed(self.key.expose()).finish();
        hash.first_chunk().copied().unwrap_or_default()
    }
}

impl fmt::Debug for RecordSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slot({}, {} bytes at {})", self.generation, self.len, self.start)
    }
}

impl Contents {
    pub(super) fn of(bytes: &[u8; SLOT_LEN]) -> Self {
        if bytes.iter().all(|byte| *byte == 0xff) {
            return Self::Erased;
        }
        if bytes.iter().all(|byte| *byte == 0) {
            return Self::Cleared;
        }
        RecordSlot::decode(bytes).map_or(Self::Other, Self::Slot)
    }
}

impl SlotPosition {
    /// All places of a page of `page_len` bytes.
    pub(super) fn all(page: u32, page_len: u32) -> impl Iterator<Item = Self> {
        (0..page_len / SLOT_LEN as u32).map(move |index| Self { page, index })
    }

    /// The place behind this one, if its page has one.
    pub(super) fn next(self, page_len: u32) -> Option<Self> {
        let next = Self { index: self.index + 1, ..self };
        (next.index < page_len / SLOT_LEN as u32).then_some(next)
    }

    /// Address of the place in the region.
    pub(super) const fn address(self, page_len: u32) -> u32 {
        self.page * page_len + self.index * SLOT_LEN as u32
    }
}
