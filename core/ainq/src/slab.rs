//! A table by slot or index whose entries never move.
//!
//! A vector that grows leaves copies of its content in memory that is never erased, which secrets must not
//! have. This one grows by blocks, so it needs no more memory than what is in it, either.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Entries per block: small groups stay small, large ones pay a pointer for every 64 entries.
const BLOCK: usize = 64;

/// Entries by index, most of them there. A block in which there are none is not allocated.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    blocks: Vec<Option<Box<[Option<T>]>>>,
    len: usize,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self { blocks: Vec::new(), len: 0 }
    }

    /// Number of entries.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let (block, place) = place_of(index);
        self.blocks.get(block)?.as_ref()?.get(place)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        let (block, place) = place_of(index);
        self.blocks.get_mut(block)?.as_mut()?.get_mut(place)?.as_mut()
    }

    /// Puts an entry in, and drops the one that was there.
    pub(crate) fn set(&mut self, index: u32, entry: T) {
        let (block, place) = place_of(index);
        if self.blocks.len() <= block {
            self.blocks.resize_with(block + 1, || None);
        }
        let Some(block) = self.blocks.get_mut(block) else { return };
        let block = block.get_or_insert_with(|| (0..BLOCK).map(|_| None).collect());
        if let Some(old) = block.get_mut(place) {
            self.len += usize::from(old.is_none());
            *old = Some(entry);
        }
    }

    /// Takes an entry out, if it is there.
    pub(crate) fn take(&mut self, index: u32) -> Option<T> {
        let (block, place) = place_of(index);
        let entry = self.blocks.get_mut(block)?.as_mut()?.get_mut(place)?.take()?;
        self.len -= 1;
        Some(entry)
    }

    /// Drops an entry in its place, if it is there.
    pub(crate) fn clear(&mut self, index: u32) {
        let (block, place) = place_of(index);
        let block = self.blocks.get_mut(block).and_then(Option::as_mut);
        if let Some(old) = block.and_then(|block| block.get_mut(place)) {
            self.len -= usize::from(old.is_some());
            *old = None;
        }
    }

    /// The entries by ascending index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.iter_from(0)
    }

    /// The entries from an index on, by ascending index.
    pub(crate) fn iter_from(&self, first: u32) -> impl Iterator<Item = (u32, &T)> {
        let blocks = (0..).step_by(BLOCK).zip(&self.blocks).skip(place_of(first).0);
        let blocks = blocks.filter_map(|(start, block)| Some((start, block.as_ref()?)));
        let entries = blocks.flat_map(|(start, block)| (start..).zip(block));
        entries.filter_map(move |(index, entry)| Some((index, entry.as_ref()?)).filter(|_| index >= first))
    }

    /// The entries by ascending index.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        let blocks = (0..).step_by(BLOCK).zip(&mut self.blocks);
        let blocks = blocks.filter_map(|(start, block)| Some((start, block.as_mut()?)));
        let entries = blocks.flat_map(|(start, block)| (start..).zip(block));
        entries.filter_map(|(index, entry)| Some((index, entry.as_mut()?)))
    }
}

const fn place_of(index: u32) -> (usize, usize) {
    (index as usize / BLOCK, index as usize % BLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stay_where_they_are_put() {
        let mut slab = Slab::new();
        for index in [0, 63, 64, 1000] {
            slab.set(index, index);
        }
        let place: *const u32 = slab.get(63).unwrap();
        slab.set(100_000, 7);
        assert_eq!(place, core::ptr::from_ref(slab.get(63).unwrap()));
        slab.clear(64);
        slab.clear(64);
        slab.clear(1 << 20);
        assert_eq!(
            slab.iter_mut().map(|(index, entry)| (index, *entry)).collect::<Vec<_>>(),
            [(0, 0), (63, 63), (1000, 1000), (100_000, 7)]
        );
        assert_eq!((slab.len(), slab.get(64), slab.get(1 << 20)), (4, None, None));
        assert_eq!((slab.take(1000), slab.take(1000), slab.len()), (Some(1000), None, 3));
        assert!(slab.iter().eq([(0, &0), (63, &63), (100_000, &7)]));
        assert!(slab.iter_from(1).eq([(63, &63), (100_000, &7)]));
        assert!(slab.iter_from(64).eq([(100_000, &7)]) && slab.iter_from(100_001).next().is_none());
    }
}
