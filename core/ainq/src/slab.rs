//! A table of secrets by slot or index whose entries never move.
//!
//! A vector that grows leaves copies of its content behind in memory that nobody erases. This one grows by blocks.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Entries per block: small groups stay small, large ones pay a pointer for every 64 entries.
const BLOCK: usize = 64;

/// Entries by index, most of them there.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    blocks: Vec<Box<[Option<T>]>>,
    len: usize,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self { blocks: Vec::new(), len: 0 }
    }

    /// How many entries there are.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let index = index as usize;
        self.blocks.get(index / BLOCK)?.get(index % BLOCK)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        let index = index as usize;
        self.blocks.get_mut(index / BLOCK)?.get_mut(index % BLOCK)?.as_mut()
    }

    /// Puts an entry in, and drops the one that was there.
    pub(crate) fn set(&mut self, index: u32, entry: T) {
        let (block, place) = (index as usize / BLOCK, index as usize % BLOCK);
        while self.blocks.len() <= block {
            self.blocks.push((0..BLOCK).map(|_| None).collect());
        }
        if let Some(old) = self.blocks.get_mut(block).and_then(|block| block.get_mut(place)) {
            self.len += usize::from(old.is_none());
            *old = Some(entry);
        }
    }

    /// Drops an entry, if it is there.
    pub(crate) fn clear(&mut self, index: u32) {
        let (block, place) = (index as usize / BLOCK, index as usize % BLOCK);
        if let Some(old) = self.blocks.get_mut(block).and_then(|block| block.get_mut(place)) {
            self.len -= usize::from(old.is_some());
            *old = None;
        }
    }

    /// The entries by ascending index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let entries = (0..).zip(self.blocks.iter().flat_map(|block| block.iter()));
        entries.filter_map(|(index, entry)| Some((index, entry.as_ref()?)))
    }

    /// The entries by ascending index.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        let entries = (0..).zip(self.blocks.iter_mut().flat_map(|block| block.iter_mut()));
        entries.filter_map(|(index, entry)| Some((index, entry.as_mut()?)))
    }
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
    }
}
