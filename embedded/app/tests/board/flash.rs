//! Flash of an nRF52840 that can lose power at any word.

use std::cell::RefCell;
use std::rc::Rc;

use embedded_storage_async::nor_flash::{
    ErrorType, MultiwriteNorFlash, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash,
};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

pub(crate) const PAGE: usize = 4096;

/// The flash survives the board: clones are handles to the same chip.
#[derive(Clone)]
pub(crate) struct Flash(Rc<RefCell<Chip>>);

pub(crate) struct Chip {
    pub(crate) bytes: Vec<u8>,
    /// Writes of each word since its page was erased.
    writes: Vec<u8>,
    /// Erasures of each page.
    pub(crate) erasures: Vec<u32>,
    /// Words written and pages erased so far.
    pub(crate) steps: u64,
    /// Power fails in the middle of this step.
    pub(crate) fails_at: Option<u64>,
    pub(crate) powered: bool,
    /// Pages whose bits do not all take a write.
    pub(crate) worn: Vec<usize>,
    chance: ChaCha20Rng,
}

#[derive(Debug)]
pub(crate) struct Refused;

impl NorFlashError for Refused {
    fn kind(&self) -> NorFlashErrorKind {
        NorFlashErrorKind::Other
    }
}

impl Flash {
    /// Fresh from the factory.
    pub(crate) fn new(pages: usize, seed: u64) -> Self {
        Self(Rc::new(RefCell::new(Chip {
            bytes: vec![0xff; pages * PAGE],
            writes: vec![0; pages * PAGE / 4],
            erasures: vec![0; pages],
            steps: 0,
            fails_at: None,
            powered: true,
            worn: Vec::new(),
            chance: ChaCha20Rng::seed_from_u64(seed),
        })))
    }

    pub(crate) fn chip(&self) -> std::cell::RefMut<'_, Chip> {
        self.0.borrow_mut()
    }

    /// The same contents in another chip.
    pub(crate) fn duplicate(&self, seed: u64) -> Self {
        let chip = self.chip();
        let copy = Self::new(chip.erasures.len(), seed);
        {
            let mut other = copy.chip();
            other.bytes.clone_from(&chip.bytes);
            other.writes.clone_from(&chip.writes);
            other.worn.clone_from(&chip.worn);
        }
        copy
    }

    pub(crate) fn power_on(&self) {
        let mut chip = self.chip();
        chip.powered = true;
        chip.fails_at = None;
    }

    /// Returns true if these bytes are anywhere.
    pub(crate) fn contains(&self, needle: &[u8]) -> bool {
        self.chip().bytes.windows(needle.len()).any(|window| window == needle)
    }
}

impl Chip {
    /// Takes the next step; false if power fails in the middle of it.
    fn step(&mut self) -> bool {
        let fails = self.fails_at == Some(self.steps);
        self.steps += 1;
        self.powered &= !fails;
        !fails
    }

    /// Programming clears bits. What is cut short has cleared some of them.
    fn program(&mut self, at: usize, word: [u8; 4]) -> bool {
        let whole = self.step();
        let writes = &mut self.writes[at / 4];
        *writes += 1;
        assert!(*writes <= 2, "word {at:#x} is written for the third time since its page was erased");
        if *writes == 2 {
            assert_eq!(word, [0; 4], "word {at:#x} is written a second time with something else than zeros");
        }
        let worn = self.worn.contains(&(at / PAGE));
        for (place, byte) in self.bytes[at..at + 4].iter_mut().zip(word) {
            let spared = if whole { 0 } else { self.chance.next_u32() as u8 };
            *place &= byte | spared | u8::from(worn);
        }
        whole
    }

    /// Erasing sets bits. What is cut short has set some of them.
    fn clear(&mut self, page: usize) -> bool {
        let whole = self.step();
        self.erasures[page] += 1;
        let range = page * PAGE..(page + 1) * PAGE;
        // Its progress: from hardly begun to nearly done.
        let progress = self.chance.next_u32() % 8;
        for byte in &mut self.bytes[range.clone()] {
            let mut set = (0..progress).fold(0, |set, _| set | self.chance.next_u32() as u8);
            if self.chance.next_u32().is_multiple_of(2) && progress == 0 {
                set = 0;
            }
            *byte |= if whole { 0xff } else { set };
        }
        // An interrupted erasure allows nothing new.
        if whole {
            self.writes[range.start / 4..range.end / 4].fill(0);
        }
        whole
    }
}

impl ErrorType for Flash {
    type Error = Refused;
}

impl ReadNorFlash for Flash {
    const READ_SIZE: usize = 1;

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Refused> {
        let chip = self.chip();
        let from = chip.bytes.get(offset as usize..offset as usize + bytes.len());
        bytes.copy_from_slice(from.filter(|_| chip.powered).ok_or(Refused)?);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.chip().bytes.len()
    }
}

impl NorFlash for Flash {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = PAGE;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), Refused> {
        let mut chip = self.chip();
        assert!((from as usize).is_multiple_of(PAGE) && (to as usize).is_multiple_of(PAGE), "whole pages");
        (from as usize / PAGE..to as usize / PAGE)
            .all(|page| chip.powered && chip.clear(page))
            .then_some(())
            .ok_or(Refused)
    }

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Refused> {
        let mut chip = self.chip();
        assert!((offset as usize).is_multiple_of(4) && bytes.len().is_multiple_of(4), "whole words");
        let words = bytes.as_chunks::<4>().0;
        (offset as usize..)
            .step_by(4)
            .zip(words)
            .all(|(at, word)| chip.powered && chip.program(at, *word))
            .then_some(())
            .ok_or(Refused)
    }
}

impl MultiwriteNorFlash for Flash {}
