//! The stored state survives power failures at any word and any erasure, and superseded states are gone.

#[path = "../board/flash.rs"]
mod flash;

use embassy_futures::block_on;
use proptest::prelude::*;
use quiver_crypto::Secret;
use quiver_firmware::StorageError;
use quiver_firmware::storage::Storage;

use self::flash::{Flash, PAGE};

const PAGES: usize = 16;

/// The key of the `n`th state, distinct and recognisable.
fn key(n: u32) -> Secret<32> {
    let mut bytes = [0; 32];
    for (place, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(1_u32..) {
        *place = (n ^ word.wrapping_mul(0x9e37_79b9_u32)).wrapping_mul(0x85eb_ca6b).to_le_bytes();
    }
    Secret::new(bytes)
}

fn state(n: u32, len: usize) -> Vec<u8> {
    n.to_le_bytes().into_iter().cycle().take(len).collect()
}

fn mount(flash: &Flash) -> (Storage<Flash>, Option<Vec<u8>>) {
    let mut storage = Storage::new(flash.clone()).expect("a region that can be used");
    let state = block_on(storage.load()).expect("readable");
    (storage, state.map(|state| state.to_vec()))
}

fn replace(storage: &mut Storage<Flash>, n: u32, len: usize) -> Result<(), StorageError> {
    block_on(storage.replace(&state(n, len), key(n)))
}

/// Returns true if any word of the key remains where keys are stored.
fn remains_of(flash: &Flash, n: u32) -> bool {
    let key = key(n);
    let chip = flash.chip();
    let (words, _) = chip.bytes[..2 * PAGE].as_chunks::<4>();
    key.expose().as_chunks::<4>().0.iter().any(|part| words.contains(part))
}

#[test]
fn fresh_flash_holds_nothing_and_what_is_stored_comes_back() {
    let flash = Flash::new(PAGES, 1);
    let (mut storage, nothing) = mount(&flash);
    assert_eq!(nothing, None);
    assert_eq!(flash.chip().steps, 0, "looking writes nothing");
    for (n, len) in (1..).zip([1, 3, 4, 1_200, 4_096, 24_560, 0, 24_560, 24_560, 5]) {
        replace(&mut storage, n, len).expect("stored");
        assert_eq!(mount(&flash).1, Some(state(n, len)), "{len} bytes");
    }
    assert_eq!(storage.counters().failures, 0);
}

#[test]
fn state_longer_than_the_region_allows_is_refused_and_changes_nothing() {
    let flash = Flash::new(PAGES, 1);
    let (mut storage, _) = mount(&flash);
    assert_eq!(storage.limit(), 6 * PAGE - 16);
    replace(&mut storage, 1, 100).expect("stored");
    let limit = storage.limit();
    let refused = replace(&mut storage, 2, limit + 1);
    assert_eq!(refused, Err(StorageError::Full { len: 24_561, limit: 24_560 }));
    assert_eq!(mount(&flash).1, Some(state(1, 100)));
}

#[test]
fn superseded_key_is_gone_at_once() {
    let flash = Flash::new(PAGES, 1);
    let (mut storage, _) = mount(&flash);
    for n in 1..200 {
        replace(&mut storage, n, 700).expect("stored");
        assert!(flash.contains(key(n).expose()), "the test looks in the right place");
        assert!(!(1..n).any(|former| remains_of(&flash, former)), "after state {n}");
        assert!(!flash.contains(&state(n, 700)[..16]), "states are sealed");
    }
}

#[test]
fn wiped_flash_holds_no_key_and_nothing_else() {
    let flash = Flash::new(PAGES, 1);
    let (mut storage, _) = mount(&flash);
    (1..100).for_each(|n| replace(&mut storage, n, 1_000).expect("stored"));
    block_on(storage.wipe()).expect("wiped");
    assert!(flash.chip().bytes.iter().all(|byte| *byte == 0xff));
    assert_eq!(mount(&flash).1, None);
    replace(&mut storage, 100, 1_000).expect("stored");
    assert_eq!(mount(&flash).1, Some(state(100, 1_000)));
}

#[test]
fn interrupted_wipe_leaves_no_part_of_the_key_once_the_board_has_started_again() {
    for cut in 0..20 {
        let flash = Flash::new(PAGES, cut);
        let (mut storage, _) = mount(&flash);
        (1..90).for_each(|n| replace(&mut storage, n, 1_000).expect("stored"));
        let begun = flash.chip().steps;
        flash.chip().fails_at = Some(begun + cut);
        let _ = block_on(storage.wipe());
        flash.power_on();
        let (_, found) = mount(&flash);
        assert!(cut == 0 || found.is_none(), "cut {cut}");
        assert!(found.is_some() || !remains_of(&flash, 89), "cut {cut}");
    }
}

/// Every page wears alike: the pages of records within one erasure, those of keys far less.
#[test]
fn wear_is_level_and_as_documented() {
    let flash = Flash::new(PAGES, 1);
    let (mut storage, _) = mount(&flash);
    let (states, len) = (10_000_u32, 1_300_usize);
    (1..=states).for_each(|n| replace(&mut storage, n, len).expect("stored"));
    let chip = flash.chip();
    let (keys, records) = chip.erasures.split_at(2);
    let (least, most) = (records.iter().min().unwrap(), records.iter().max().unwrap());
    assert!(most - least <= 1, "{records:?}");
    let bytes = f64::from(states) * (len + 16) as f64;
    assert!((f64::from(*most) - bytes / (14.0 * PAGE as f64)).abs() <= 1.0, "{most} erasures");
    // 85 slots in a page, two pages.
    assert!(keys.iter().all(|count| count.abs_diff(states / 170) <= 1), "{keys:?}");
}

#[test]
fn pages_that_do_not_keep_what_is_written_are_passed_over() {
    let flash = Flash::new(PAGES, 1);
    flash.chip().worn = vec![3, 7, 8];
    let (mut storage, _) = mount(&flash);
    for n in 1..200 {
        replace(&mut storage, n, 1_500).expect("stored");
        assert_eq!(mount(&flash).1, Some(state(n, 1_500)));
    }
    assert!(storage.counters().failures > 10);
}

#[test]
fn worn_page_of_keys_is_avoided_and_two_are_an_error() {
    let flash = Flash::new(PAGES, 1);
    let (mut storage, _) = mount(&flash);
    replace(&mut storage, 1, 100).expect("stored");
    flash.chip().worn = vec![0];
    for n in 2..300 {
        match replace(&mut storage, n, 100) {
            Ok(()) => assert_eq!(mount(&flash).1, Some(state(n, 100))),
            Err(error) => assert_eq!(error, StorageError::Worn),
        }
    }
    flash.chip().worn = vec![0, 1];
    assert_eq!(replace(&mut storage, 300, 100), Err(StorageError::Worn));
    assert!(mount(&flash).1.is_some(), "the last good state");
}

#[test]
fn damaged_state_counts_as_none_and_is_reported() {
    let flash = Flash::new(PAGES, 1);
    let (mut storage, _) = mount(&flash);
    replace(&mut storage, 1, 100).expect("stored");
    flash.chip().bytes[2 * PAGE + 50] ^= 4;
    let (mut storage, found) = mount(&flash);
    assert_eq!((found, storage.counters().damaged), (None, 1));
    replace(&mut storage, 2, 100).expect("stored");
    assert_eq!(mount(&flash).1, Some(state(2, 100)));
    flash.chip().bytes[70] ^= 4;
    flash.chip().bytes[20] ^= 4;
    let (storage, found) = mount(&flash);
    assert_eq!((found, storage.counters().damaged), (None, 1));
}

#[test]
fn foreign_contents_are_cleared() {
    let flash = Flash::new(PAGES, 1);
    flash
        .chip()
        .bytes
        .iter_mut()
        .zip(0_u32..)
        .for_each(|(byte, n)| *byte = n.wrapping_mul(2_654_435_761).to_be_bytes()[0]);
    let (mut storage, found) = mount(&flash);
    assert_eq!(found, None);
    (1..100).for_each(|n| replace(&mut storage, n, 900).expect("stored"));
    assert_eq!(mount(&flash).1, Some(state(99, 900)));
}

#[test]
fn region_that_cannot_be_used_is_refused() {
    let refused = Storage::new(Flash::new(5, 1)).map(|_| ());
    assert_eq!(refused, Err(StorageError::Region { size: 5 * PAGE, page: PAGE }));
}

/// Stores states until power fails, at every step in turn; then starts again, with power failing in the
/// middle of that as well, and continues.
fn survives(lens: &[usize], before: u32, seed: u64) {
    let template = Flash::new(PAGES, seed);
    let (mut storage, _) = mount(&template);
    (1..=before).for_each(|n| replace(&mut storage, n, 40 + n as usize % 900).expect("stored"));
    let steps = {
        let rehearsal = template.duplicate(seed);
        let (mut storage, _) = mount(&rehearsal);
        let begun = rehearsal.chip().steps;
        lens.iter().zip(before + 1..).for_each(|(len, n)| replace(&mut storage, n, *len).expect("stored"));
        rehearsal.chip().steps - begun
    };
    for cut in 0..steps {
        let flash = template.duplicate(seed.wrapping_mul(1_000).wrapping_add(cut));
        let (mut storage, first) = mount(&flash);
        let begun = flash.chip().steps;
        flash.chip().fails_at = Some(begun + cut);
        let mut allowed = (first.clone(), first);
        let mut newest = before;
        for (len, n) in lens.iter().zip(before + 1..) {
            newest = n;
            allowed = (allowed.1, Some(state(n, *len)));
            if replace(&mut storage, n, *len).is_err() {
                break;
            }
            allowed.0.clone_from(&allowed.1);
        }
        let found = restart(&flash, cut);
        assert!(found == allowed.0 || found == allowed.1, "cut {cut}: neither the old nor the new state");
        let kept = if found == allowed.1 { newest } else { newest - 1 };
        assert!(
            !(newest.saturating_sub(3)..=newest).any(|n| n != kept && remains_of(&flash, n)),
            "cut {cut}: a key that is not in use is still there"
        );
        let (mut storage, _) = mount(&flash);
        for n in newest + 1..newest + 4 {
            replace(&mut storage, n, 1_111).expect("stored after recovery");
            assert_eq!(mount(&flash).1, Some(state(n, 1_111)), "cut {cut}");
        }
    }
}

/// Starts again; the first times, power fails while it recovers.
fn restart(flash: &Flash, cut: u64) -> Option<Vec<u8>> {
    for attempt in 0..cut % 4 {
        flash.power_on();
        let begun = flash.chip().steps;
        flash.chip().fails_at = Some(begun + (cut / 4 + attempt) % 14);
        let _ = block_on(Storage::new(flash.clone()).expect("a region").load());
    }
    flash.power_on();
    mount(flash).1
}

#[test]
fn power_may_fail_at_any_step_of_the_first_states() {
    survives(&[300, 1_200, 50], 0, 5);
}

#[test]
fn power_may_fail_at_any_step_when_the_page_of_keys_is_full() {
    survives(&[64, 700], 84, 6);
    survives(&[64], 85, 7);
    survives(&[5_000], 169, 8);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn power_may_fail_at_any_step(
        lens in prop::collection::vec(0..2_000_usize, 1..3), before in 0..200_u32, seed in any::<u64>(),
    ) {
        survives(&lens, before, seed);
    }
}
