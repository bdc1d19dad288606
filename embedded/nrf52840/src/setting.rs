//! A number that survives a reset: which network a gateway serves. Words are written one after the other;
//! the last good one counts.

use embedded_storage_async::nor_flash::NorFlash;

/// A number in a word of flash, beside its complement: distinct from erased flash and from a partly written
/// word.
fn word(number: u16) -> [u8; 4] {
    (u32::from(number) | u32::from(!number) << 16).to_le_bytes()
}

fn number(word: [u8; 4]) -> Option<u16> {
    let word = u32::from_le_bytes(word);
    let (low, high) = (word as u16, (word >> 16) as u16);
    (low == !high).then_some(low)
}

/// The number written last, and where the next one can be written in the first page, if anywhere.
async fn scan<F: NorFlash>(flash: &mut F) -> Result<(Option<u16>, Option<u32>), F::Error> {
    let mut last = None;
    for at in (0..F::ERASE_SIZE as u32).step_by(4) {
        let mut bytes = [0; 4];
        flash.read(at, &mut bytes).await?;
        if bytes == [0xFF; 4] {
            return Ok((last, Some(at)));
        }
        last = number(bytes).or(last);
    }
    Ok((last, None))
}

/// The number that was written last, if any was.
///
/// # Errors
/// The flash's.
pub async fn load<F: NorFlash>(flash: &mut F) -> Result<Option<u16>, F::Error> {
    Ok(scan(flash).await?.0)
}

/// Writes a number. Without power halfway, the number before it stays, but once in 1,024 times there is none
/// then.
///
/// # Errors
/// The flash's.
pub async fn store<F: NorFlash>(flash: &mut F, number: u16) -> Result<(), F::Error> {
    let at = match scan(flash).await? {
        (Some(last), _) if last == number => return Ok(()),
        (_, Some(at)) => at,
        (_, None) => {
            flash.erase(0, F::ERASE_SIZE as u32).await?;
            0
        }
    };
    flash.write(at, &word(number)).await
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;
    use crate::region::tests::{END, START, now, region};

    #[test]
    fn last_number_counts_over_many_pages_of_them() {
        let charge = Cell::new(usize::MAX);
        let mut flash = region(&charge);
        now(flash.erase(0, END - START)).expect("erased");
        assert_eq!(now(load(&mut flash)), Ok(None));
        for number in (0..100).chain([0xFFFF, 0]) {
            now(store(&mut flash, number)).expect("stored");
            assert_eq!(now(load(&mut flash)), Ok(Some(number)));
        }
    }

    #[test]
    fn word_that_was_written_in_part_is_skipped() {
        let charge = Cell::new(usize::MAX);
        let mut flash = region(&charge);
        now(flash.erase(0, END - START)).expect("erased");
        now(store(&mut flash, 0x1234)).expect("stored");
        now(flash.write(4, &[0x78, 0x56, 0xFF, 0xFF])).expect("half");
        assert_eq!(now(load(&mut flash)), Ok(Some(0x1234)));
        now(store(&mut flash, 0x5678)).expect("stored");
        assert_eq!(now(load(&mut flash)), Ok(Some(0x5678)));
    }

    #[test]
    fn same_number_again_writes_nothing() {
        let charge = Cell::new(usize::MAX);
        let mut flash = region(&charge);
        now(flash.erase(0, END - START)).expect("erased");
        now(store(&mut flash, 7)).expect("stored");
        charge.set(0);
        now(store(&mut flash, 7)).expect("nothing to do");
    }
}
