//! Tests of the region against a flash in memory that records its operations.

use core::cell::Cell;
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::vec;
use std::vec::Vec;

use embedded_storage::nor_flash::ReadNorFlash as BlockingRead;

use super::*;

const PAGE: usize = 64;
const FLASH: usize = 16 * PAGE;
pub(crate) const START: u32 = 4 * PAGE as u32;
pub(crate) const END: u32 = 8 * PAGE as u32;

/// Bits can only be cleared until their page is erased.
pub(crate) struct Memory(Vec<u8>);

impl ErrorType for Memory {
    type Error = NorFlashErrorKind;
}

impl BlockingRead for Memory {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NorFlashErrorKind> {
        bytes.copy_from_slice(&self.0[offset as usize..][..bytes.len()]);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.0.len()
    }
}

impl Blocking for Memory {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = PAGE;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), NorFlashErrorKind> {
        self.0[from as usize..to as usize].fill(0xFF);
        Ok(())
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), NorFlashErrorKind> {
        self.0[offset as usize..].iter_mut().zip(bytes).for_each(|(old, new)| *old &= new);
        Ok(())
    }
}

/// Good for so many questions.
pub(crate) struct Battery<'a>(&'a Cell<usize>);

impl Supply for Battery<'_> {
    fn is_low(&self) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        left == 0
    }
}

pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the flash here is always ready"),
    }
}

pub(crate) fn region(charge: &Cell<usize>) -> Region<Memory, Battery<'_>> {
    Region::new(Memory(vec![0; FLASH]), Battery(charge), START, END).expect("whole pages")
}

#[test]
fn what_is_written_is_read_back_and_lies_where_it_should() {
    let charge = Cell::new(usize::MAX);
    let mut region = region(&charge);
    now(region.erase(0, END - START)).expect("erased");
    now(region.write(8, &[1, 2, 3, 4, 5, 6, 7, 8])).expect("written");
    let mut bytes = [0; 8];
    now(region.read(8, &mut bytes)).expect("read");
    assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(region.flash.0[START as usize + 8..][..8], bytes);
    assert_eq!(region.capacity(), 4 * PAGE);
}

#[test]
fn nothing_outside_is_ever_touched() {
    let charge = Cell::new(usize::MAX);
    let mut region = region(&charge);
    now(region.erase(0, END - START)).expect("erased");
    let len = END - START;
    let outside = Err(RegionError::Address(NorFlashErrorKind::OutOfBounds));
    assert_eq!(now(region.write(len, &[0; 4])), outside);
    assert_eq!(now(region.write(len - 4, &[0; 8])), outside);
    assert_eq!(now(region.write(u32::MAX - 3, &[0; 8])), outside);
    assert_eq!(now(region.read(len, &mut [0])), outside);
    assert_eq!(now(region.erase(0, len + PAGE as u32)), outside);
    assert_eq!(now(region.erase(PAGE as u32, 0)), outside);
    now(region.write(len - 4, &[0; 4])).expect("the last word");
    assert!(
        region.flash.0[..START as usize].iter().chain(&region.flash.0[END as usize..]).all(|byte| *byte == 0)
    );
}

#[test]
fn only_whole_words_and_pages_pass() {
    let charge = Cell::new(usize::MAX);
    let mut region = region(&charge);
    let unaligned = Err(RegionError::Address(NorFlashErrorKind::NotAligned));
    assert_eq!(now(region.write(2, &[0; 4])), unaligned);
    assert_eq!(now(region.write(4, &[0; 3])), unaligned);
    assert_eq!(now(region.erase(4, PAGE as u32)), unaligned);
    assert_eq!(now(region.erase(0, PAGE as u32 + 4)), unaligned);
}

#[test]
fn a_region_is_whole_pages_inside_the_flash() {
    let charge = Cell::new(usize::MAX);
    let make = |start, end| Region::new(Memory(vec![0; FLASH]), Battery(&charge), start, end).is_some();
    assert!(make(0, FLASH as u32));
    assert!(!make(0, FLASH as u32 + PAGE as u32));
    assert!(!make(4, PAGE as u32));
    assert!(!make(0, PAGE as u32 + 4));
    assert!(!make(PAGE as u32, PAGE as u32));
    assert!(!make(PAGE as u32, 0));
}

#[test]
fn once_the_supply_is_low_no_further_word_is_written() {
    for words in 0..4 {
        let charge = Cell::new(usize::MAX);
        let mut region = region(&charge);
        now(region.erase(0, END - START)).expect("erased");
        charge.set(words);
        assert_eq!(now(region.write(0, &[0; 16])), Err(RegionError::SupplyLow));
        let written = region.flash.0[START as usize..].iter().take_while(|byte| **byte == 0).count();
        assert_eq!(written, 4 * words);
        charge.set(usize::MAX);
        now(region.write(0, &[0; 16])).expect("well again");
    }
}

#[test]
fn once_the_supply_is_low_no_further_page_is_erased() {
    let charge = Cell::new(1);
    let mut region = region(&charge);
    assert_eq!(now(region.erase(0, 2 * PAGE as u32)), Err(RegionError::SupplyLow));
    let page = |n: usize| &region.flash.0[START as usize + n * PAGE..][..PAGE];
    assert!(page(0).iter().all(|byte| *byte == 0xFF) && page(1).iter().all(|byte| *byte == 0));
}
