//! The drone's state in flash: whole, sealed, replaced at once, and unreadable as soon as it is superseded.
//!
//! Every state is sealed under a key of its own, which is used once. The region's first two pages hold these
//! keys, one in each *slot*; all other pages are a ring of sealed records. A state is replaced in this order:
//!
//! 1. The record is written behind the newest one. Pages that it reaches are erased before.
//! 2. Its slot is written behind the newest one: from here on this is the state.
//! 3. The slot before is overwritten with zeros: the former state cannot be opened any more, although its
//!    record is still there.
//!
//! Power may fail at any word. Before the slot is complete the former state counts, afterwards the new one,
//! and an interrupted write is cleared at the next start by moving the newest slot to the other page of keys
//! and erasing this one. Nothing relies on what an interrupted erasure leaves behind, and no word is written
//! more than twice between two erasures, once with zeros, as an nRF52840 allows (product specification, NVMC:
//! `nWRITE` = 2).
//!
//! A record lies anywhere in the ring, over page boundaries, so that all pages wear alike. Everything is read
//! back after it was written; a page that does not keep what it is given is passed over.
//!
//! No crate for key-value storage in flash is used: those keep what is superseded readable until its page is
//! erased, and hold no value longer than a page. With the key slots, which are needed for that reason,
//! nothing else is left to store.

mod ring;
mod slot;

use alloc::vec::Vec;

use embedded_storage_async::nor_flash::{MultiwriteNorFlash, NorFlashError};
use quiver_crypto::{Secret, Zeroizing, aead};

use self::ring::{Ring, Span};
use self::slot::{Contents, RecordSlot, SLOT_LEN, SlotPosition};
use crate::StorageError;

/// Pages that hold keys.
const KEY_PAGES: u32 = 2;
/// Pages that a region has at least.
const MIN_PAGES: u32 = KEY_PAGES + 4;

/// Counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StorageCounters {
    /// States stored.
    pub stored: u32,
    /// Pages erased.
    pub erased: u32,
    /// Writes or erasures that did not read back, or that the device refused.
    pub failures: u32,
    /// Stored states or keys that were damaged when they were read at the start.
    pub damaged: u32,
}

/// The state in flash. See the [module](self).
#[derive(Debug)]
pub struct Storage<F> {
    flash: F,
    ring: Ring,
    /// Position and content of the newest slot.
    newest: Option<(SlotPosition, RecordSlot)>,
    /// True if the flash was read.
    loaded: bool,
    /// True if there are leftovers in the pages of keys besides the newest slot.
    untidy: bool,
    counters: StorageCounters,
}

impl<F: MultiwriteNorFlash> Storage<F> {
    const PAGE: u32 = F::ERASE_SIZE as u32;

    /// Takes over a flash region, which [`load`](Self::load) then reads.
    ///
    /// # Errors
    /// [`StorageError::Region`].
    pub fn new(flash: F) -> Result<Self, StorageError> {
        let size = flash.capacity();
        let pages = u32::try_from(size / F::ERASE_SIZE).unwrap_or(0);
        let words = F::WRITE_SIZE <= 4 && F::READ_SIZE <= 4 && F::ERASE_SIZE.is_multiple_of(64);
        if pages < MIN_PAGES || !words || F::ERASE_SIZE < 2 * SLOT_LEN {
            return Err(StorageError::Region { size, page: F::ERASE_SIZE });
        }
        let ring = Ring::new(KEY_PAGES * Self::PAGE, (pages - KEY_PAGES) * Self::PAGE, Self::PAGE);
        let counters = StorageCounters::default();
        Ok(Self { flash, ring, newest: None, loaded: false, untidy: false, counters })
    }

    /// Looks at the flash, clears what an interruption left, and hands out the state if there is one.
    ///
    /// A damaged state counts as none; [`counters`](Self::counters) distinguish the two.
    ///
    /// # Errors
    /// [`StorageError::Device`] if it cannot be read, [`StorageError::Worn`] if leftovers cannot be erased.
    /// It may be tried again.
    pub async fn load(&mut self) -> Result<Option<Zeroizing<Vec<u8>>>, StorageError> {
        self.newest = None;
        let state = self.find_newest().await?;
        if self.untidy {
            self.tidy().await?;
        }
        self.loaded = true;
        Ok(state)
    }

    /// Makes `state` what will be found at the next start, and the former state unreadable. The key must be
    /// random and used nowhere else.
    ///
    /// # Errors
    /// [`StorageError`]. Either state may then be found at the next start; the caller tries again until it
    /// succeeds.
    pub async fn replace(&mut self, state: &[u8], key: Secret<32>) -> Result<(), StorageError> {
        if !self.loaded {
            return Err(StorageError::NotRead);
        }
        let limit = self.limit();
        if state.len() > limit {
            return Err(StorageError::Full { len: state.len(), limit });
        }
        let generation = self.newest.as_ref().map_or(0, |(_, slot)| slot.generation).wrapping_add(1);
        let sealed = aead::seal(&key, &[0; 12], &generation.to_be_bytes(), state);
        let span = self.write_record(&sealed).await?;
        let former = self.newest.as_ref().map(|(place, _)| *place);
        self.write_slot(RecordSlot { generation, start: span.start, len: span.len, key }).await?;
        self.ring.keep(span);
        self.counters.stored = self.counters.stored.saturating_add(1);
        if let (Some(former), false) = (former, self.untidy)
            && !self.clear(former).await
        {
            self.untidy = true;
        }
        if self.untidy { self.tidy().await } else { Ok(()) }
    }

    /// Erases everything, the key first.
    ///
    /// # Errors
    /// [`StorageError::Worn`] if something of the pages of keys stays.
    pub async fn wipe(&mut self) -> Result<(), StorageError> {
        if let Some((place, _)) = self.newest.take() {
            self.clear(place).await;
        }
        let mut worn = false;
        for page in 0..KEY_PAGES {
            worn |= !self.erase(page * Self::PAGE).await;
        }
        for page in self.ring.pages() {
            self.erase(page).await;
        }
        self.ring.forget();
        self.untidy = worn;
        self.loaded = true;
        if worn { Err(StorageError::Worn) } else { Ok(()) }
    }

    /// The longest state in bytes, whatever lies where.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.ring.longest().saturating_sub(aead::TAG_LEN)
    }

    /// Counters since the start.
    #[must_use]
    pub const fn counters(&self) -> StorageCounters {
        self.counters
    }

    /// Finds the newest slot whose record opens.
    async fn find_newest(&mut self) -> Result<Option<Zeroizing<Vec<u8>>>, StorageError> {
        let mut found: Vec<(SlotPosition, RecordSlot)> = Vec::new();
        let mut leftovers = 0_u32;
        for place in self.places() {
            match self.read_slot(place).await? {
                Contents::Erased | Contents::Cleared => {}
                Contents::Slot(slot) => found.push((place, slot)),
                Contents::Other => leftovers += 1,
            }
        }
        self.untidy = leftovers > 0 || found.len() > 1;
        let nothing = found.is_empty();
        while let Some((place, slot)) = take_newest(&mut found) {
            if let Some(state) = self.read_record(&slot).await? {
                let end = self.ring.resume(Span { start: slot.start, len: slot.len });
                self.newest = Some((place, slot));
                if !self.is_erased(end).await? {
                    self.ring.skip_page();
                }
                return Ok(Some(state));
            }
            self.counters.damaged = self.counters.damaged.saturating_add(1);
        }
        if nothing && leftovers > 0 {
            self.counters.damaged = self.counters.damaged.saturating_add(1);
        }
        self.untidy |= !nothing;
        Ok(None)
    }

    /// Leaves the newest slot, if any, as the only thing in the pages of keys.
    async fn tidy(&mut self) -> Result<(), StorageError> {
        self.untidy = true;
        let newest = self.newest.as_ref().map(|(place, slot)| (*place, slot.copy()));
        if let Some((place, slot)) = newest
            && !self.page_is_tidy(place).await?
        {
            self.write_slot(slot).await?;
        }
        let keep = self.newest.as_ref().map(|(place, _)| place.page);
        let mut worn = false;
        for page in (0..KEY_PAGES).filter(|page| Some(*page) != keep) {
            worn |= !self.erase(page * Self::PAGE).await;
        }
        self.untidy = worn;
        if worn { Err(StorageError::Worn) } else { Ok(()) }
    }

    /// Returns true if the page of this slot holds nothing else that was not cleared.
    async fn page_is_tidy(&mut self, newest: SlotPosition) -> Result<bool, StorageError> {
        for place in self.places().filter(|place| place.page == newest.page && *place != newest) {
            if !matches!(self.read_slot(place).await?, Contents::Erased | Contents::Cleared) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes a record into the ring, passing over pages that do not keep it.
    async fn write_record(&mut self, sealed: &[u8]) -> Result<Span, StorageError> {
        for _ in self.ring.pages() {
            let Some(span) = self.ring.reserve(sealed.len()) else { break };
            if self.fill(span, sealed).await {
                return Ok(span);
            }
            self.ring.skip_page();
        }
        self.ring.rewind();
        Err(StorageError::Worn)
    }

    /// Erases the pages that the span enters, writes it, and returns whether it reads back.
    async fn fill(&mut self, span: Span, sealed: &[u8]) -> bool {
        let mut rest = sealed;
        for (at, len) in self.ring.parts(span) {
            let (part, others) = rest.split_at(len.min(rest.len()));
            rest = others;
            if at.is_multiple_of(Self::PAGE) && !self.erase(at).await {
                return false;
            }
            if !self.write(at, part).await {
                return false;
            }
        }
        true
    }

    /// Writes the newest slot: behind the one before if all is tidy there, else into the other page, which is
    /// erased.
    async fn write_slot(&mut self, slot: RecordSlot) -> Result<(), StorageError> {
        let bytes = slot.encode();
        let last = self.newest.as_ref().map(|(place, _)| *place);
        let next = last.and_then(|place| place.next(Self::PAGE)).filter(|_| !self.untidy);
        if let Some(place) = next {
            if self.write(place.address(Self::PAGE), &bytes).await {
                self.newest = Some((place, slot));
                return Ok(());
            }
            self.untidy = true;
        }
        let page = last.map_or(0, |place| (place.page + 1) % KEY_PAGES);
        let place = SlotPosition { page, index: 0 };
        if !self.erase(page * Self::PAGE).await || !self.write(place.address(Self::PAGE), &bytes).await {
            self.untidy = true;
            return Err(StorageError::Worn);
        }
        self.newest = Some((place, slot));
        Ok(())
    }

    /// Overwrites a slot with zeros, and returns whether they read back.
    async fn clear(&mut self, place: SlotPosition) -> bool {
        self.write(place.address(Self::PAGE), &[0; SLOT_LEN]).await
    }

    fn places(&self) -> impl Iterator<Item = SlotPosition> + use<F> {
        (0..KEY_PAGES).flat_map(|page| SlotPosition::all(page, Self::PAGE))
    }

    async fn read_slot(&mut self, place: SlotPosition) -> Result<Contents, StorageError> {
        let mut bytes = Zeroizing::new([0; SLOT_LEN]);
        self.read(place.address(Self::PAGE), &mut *bytes).await?;
        Ok(Contents::of(&bytes))
    }

    async fn read_record(&mut self, slot: &RecordSlot) -> Result<Option<Zeroizing<Vec<u8>>>, StorageError> {
        let span = Span { start: slot.start, len: slot.len };
        if !self.ring.holds(span) {
            return Ok(None);
        }
        let mut sealed = alloc::vec![0; span.padded()];
        let mut rest = sealed.as_mut_slice();
        for (at, len) in self.ring.parts(span) {
            let (part, others) = rest.split_at_mut(len.min(rest.len()));
            self.read(at, part).await?;
            rest = others;
        }
        sealed.truncate(span.len as usize);
        Ok(aead::open(&slot.key, &[0; 12], &slot.generation.to_be_bytes(), &sealed).ok())
    }

    /// Returns true if all of the page from `at` to its end is erased.
    async fn is_erased(&mut self, at: u32) -> Result<bool, StorageError> {
        let mut word = [0; 4];
        for at in (at..at.next_multiple_of(Self::PAGE)).step_by(word.len()) {
            self.read(at, &mut word).await?;
            if word != [0xff; 4] {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn read(&mut self, at: u32, into: &mut [u8]) -> Result<(), StorageError> {
        self.flash.read(at, into).await.map_err(|error| StorageError::Device(error.kind()))
    }

    /// Writes bytes, the last word filled up with zeros, and returns whether they read back.
    async fn write(&mut self, at: u32, bytes: &[u8]) -> bool {
        let (whole, rest) = bytes.split_at(bytes.len() - bytes.len() % 4);
        let mut last = [0; 4];
        last.iter_mut().zip(rest).for_each(|(place, byte)| *place = *byte);
        let mut good = whole.is_empty() || self.flash.write(at, whole).await.is_ok();
        let behind = at.saturating_add(u32::try_from(whole.len()).unwrap_or(u32::MAX));
        good = good && (rest.is_empty() || self.flash.write(behind, &last).await.is_ok());
        good = good && self.reads_back(at, whole).await;
        good = good && (rest.is_empty() || self.reads_back(behind, &last).await);
        self.note(good)
    }

    async fn reads_back(&mut self, at: u32, bytes: &[u8]) -> bool {
        let mut read = Zeroizing::new([0; 64]);
        for (at, expected) in (at..).step_by(read.len()).zip(bytes.chunks(read.len())) {
            let Some(into) = read.get_mut(..expected.len()) else { return false };
            if self.flash.read(at, into).await.is_err() || *into != *expected {
                return false;
            }
        }
        true
    }

    /// Erases the page at `at`, and returns whether it is erased.
    async fn erase(&mut self, at: u32) -> bool {
        self.counters.erased = self.counters.erased.saturating_add(1);
        let good = self.flash.erase(at, at + Self::PAGE).await.is_ok();
        let erased = good && (self.is_erased_page(at).await);
        self.note(erased)
    }

    async fn is_erased_page(&mut self, page: u32) -> bool {
        let mut read = [0; 64];
        for at in (page..page + Self::PAGE).step_by(read.len()) {
            if self.flash.read(at, &mut read).await.is_err() || read != [0xff; 64] {
                return false;
            }
        }
        true
    }

    fn note(&mut self, good: bool) -> bool {
        if !good {
            self.counters.failures = self.counters.failures.saturating_add(1);
        }
        good
    }
}

/// Takes out the one stored last; of equals the first.
fn take_newest(found: &mut Vec<(SlotPosition, RecordSlot)>) -> Option<(SlotPosition, RecordSlot)> {
    let (newest, _) =
        found.iter().enumerate().min_by_key(|(_, (_, slot))| core::cmp::Reverse(slot.generation))?;
    Some(found.remove(newest))
}
