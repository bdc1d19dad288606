//! Tests of the health tests, with noise made by hand, and of the generator.

use core::cell::Cell;
use std::vec::Vec;

use super::*;

/// Bytes that look random: SHA-256 of a counter.
fn noise(len: usize) -> Vec<u8> {
    (0u32..).flat_map(|n| Sha256::digest(n.to_le_bytes())).take(len).collect()
}

fn first_failure(samples: impl IntoIterator<Item = u8>) -> Option<(usize, Unhealthy)> {
    let mut health = HealthTest::default();
    samples.into_iter().enumerate().find_map(|(at, sample)| health.take(sample).err().map(|why| (at, why)))
}

#[test]
fn good_noise_passes_for_a_mebibyte() {
    assert_eq!(first_failure(noise(1 << 20)), None);
}

#[test]
fn a_stuck_generator_fails_at_the_cutoff() {
    assert_eq!(first_failure([0xFF; 100]), Some((5, Unhealthy::Repetition)));
}

#[test]
fn five_equal_bytes_may_happen() {
    let mut samples = noise(100);
    samples[50..55].fill(7);
    samples[49] = 1;
    samples[55] = 2;
    assert_eq!(first_failure(samples), None);
}

#[test]
fn a_byte_that_comes_every_eighth_time_fails_within_a_window() {
    let mut samples = noise(512);
    samples.iter_mut().step_by(8).for_each(|byte| *byte = 0x55);
    // 512 / 8 = 64 occurrences; the 62nd is at 61 * 8, unless chance brought some earlier.
    let (at, why) = first_failure(samples).expect("must be noticed");
    assert_eq!(why, Unhealthy::Proportion);
    assert!((400..=61 * 8).contains(&at), "{at}");
}

#[test]
fn an_alternating_generator_fails() {
    assert_eq!(first_failure([0xAA, 0x55].repeat(400)), Some((2 * 61, Unhealthy::Proportion)));
}

#[test]
fn an_alarm_stays_raised() {
    let mut health = HealthTest::default();
    let _ = [0; 6].map(|sample| health.take(sample));
    assert!(noise(1024).into_iter().all(|sample| health.take(sample) == Err(Unhealthy::Repetition)));
}

#[test]
fn a_seed_depends_on_every_sample_and_on_the_device() {
    let seed = |device: &[u8], samples: &[u8]| {
        let mut health = HealthTest::default();
        let mut collector = Collector::new(&mut health, device);
        collector.take(samples).expect("good noise");
        collector.finish()
    };
    let samples = noise(START_UP_SAMPLES);
    let mut changed = samples.clone();
    changed[777] ^= 1;
    assert_eq!(seed(b"one", &samples), seed(b"one", &samples));
    assert_ne!(seed(b"one", &samples), seed(b"one", &changed));
    assert_ne!(seed(b"one", &samples), seed(b"two", &samples));
}

#[test]
fn a_collector_gives_no_seed_of_bad_noise() {
    let mut health = HealthTest::default();
    let mut collector = Collector::new(&mut health, b"one");
    assert_eq!(collector.take(&[3; 1024]), Err(Unhealthy::Repetition));
}

struct Offer(Cell<Option<[u8; SEED_LEN]>>);

impl Reseed for &Offer {
    fn take(&self) -> Option<[u8; SEED_LEN]> {
        self.0.take()
    }
}

#[test]
fn without_fresh_seeds_the_generator_is_chacha20() {
    let offer = Offer(Cell::new(None));
    let mut random = Random::new(&[7; SEED_LEN], &offer);
    let mut plain = ChaCha20Rng::from_seed([7; SEED_LEN]);
    let (mut ours, mut theirs) = ([0; 100], [0; 100]);
    random.fill_bytes(&mut ours);
    plain.fill_bytes(&mut theirs);
    assert_eq!(ours, theirs);
    assert_eq!(random.next_u64(), plain.next_u64());
}

#[test]
fn a_fresh_seed_changes_what_comes_and_depends_on_what_was() {
    let draw = |first: u8, fresh: Option<u8>| {
        let offer = Offer(Cell::new(None));
        let mut random = Random::new(&[first; SEED_LEN], &offer);
        let _ = random.next_u32();
        offer.0.set(fresh.map(|byte| [byte; SEED_LEN]));
        let mut bytes = [0; 32];
        random.fill_bytes(&mut bytes);
        assert!(offer.0.take().is_none(), "the seed is used once");
        bytes
    };
    let all = [draw(1, None), draw(1, Some(9)), draw(2, Some(9)), draw(1, Some(8))];
    for (at, one) in all.iter().enumerate() {
        assert!(all[at + 1..].iter().all(|other| one != other));
    }
}
