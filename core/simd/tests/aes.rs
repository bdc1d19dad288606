//! The hash of garbled circuits is what the crate `aes` makes of its definition, by every implementation.
#![cfg(target_arch = "x86_64")]

mod environment;

use std::io::Write as _;

use aes::Aes128Enc;
use aes::cipher::{BlockCipherEncrypt as _, KeyInit as _};
use proptest::prelude::*;
use quiver_simd::aes::{Backend, Block, Permutation, backend};
use zeroize::Zeroize as _;

fn library(key: [u8; 16], x: u128) -> u128 {
    let mut block = x.to_le_bytes().into();
    Aes128Enc::new(&key.into()).encrypt_block(&mut block);
    u128::from_le_bytes(block.into())
}

/// π(π(x) ⊕ i) ⊕ π(x)
fn defined(key: [u8; 16], x: u128, tweak: u64) -> u128 {
    let once = library(key, x);
    library(key, once ^ u128::from(tweak)) ^ once
}

fn permutations(key: [u8; 16]) -> Vec<(Backend, Permutation)> {
    Backend::ALL.into_iter().filter_map(|backend| Some((backend, Permutation::new(backend, &key)?))).collect()
}

#[test]
fn the_vector_of_fips_197_holds() {
    let key: [u8; 16] = core::array::from_fn(|at| at as u8);
    let x: [u8; 16] = core::array::from_fn(|at| at as u8 * 0x11);
    // FIPS 197, appendix C.1.
    let wanted: [u8; 16] = hex::decode("69c4e0d86a7b0430d8cdb78070b4c55a").unwrap().try_into().unwrap();
    for (backend, permutation) in permutations(key) {
        let found = permutation.encrypt(u128::from_le_bytes(x));
        assert_eq!(found.to_le_bytes(), wanted, "{backend:?}");
        let rekeyed = permutations([9; 16])[0].1.with_key(&key);
        assert_eq!(rekeyed.encrypt(u128::from_le_bytes(x)).to_le_bytes(), wanted, "{backend:?}");
    }
}

proptest! {
    #[test]
    fn every_implementation_hashes_as_defined(
        key: [u8; 16],
        xs in prop::collection::vec(any::<u128>(), 0..150),
        first in 0_u64..1 << 62,
        pairs: bool,
    ) {
        let tweak = |at: usize| first + (at >> u32::from(pairs)) as u64;
        let wanted: Vec<u128> = xs.iter().enumerate().map(|(at, &x)| defined(key, x, tweak(at))).collect();
        for (backend, permutation) in permutations(key) {
            let mut found = xs.clone();
            permutation.hash(&mut found, first, pairs);
            prop_assert_eq!(&found, &wanted, "{:?}", backend);
        }
    }
}

proptest! {
    #[test]
    fn whole_registers_hash_the_first_blocks_alike(
        xs in prop::collection::vec(any::<u128>(), 0..150),
        first in 0_u64..1 << 62,
        pairs: bool,
    ) {
        for (backend, permutation) in permutations([5; 16]) {
            let whole = permutation.whole(xs.len());
            // Never more than twice, or eight.
            prop_assert!((xs.len()..=(2 * xs.len()).max(8)).contains(&whole), "{backend:?}");
            prop_assert!(whole.is_multiple_of(8), "{backend:?}");
            prop_assert_eq!(permutation.whole(whole), whole, "{:?}", backend);
            let (mut alone, mut filled) = (xs.clone(), xs.clone());
            filled.resize(whole, 9);
            permutation.hash(&mut alone, first, pairs);
            permutation.hash(&mut filled, first, pairs);
            prop_assert_eq!(&alone[..], &filled[..alone.len()], "{:?}", backend);
        }
    }

    #[test]
    fn blocks_in_registers_hash_and_compute_as_numbers_do(
        xs in prop::collection::vec(any::<u128>(), 0..70),
        a: u128,
        b: u128,
        first in 0_u64..1 << 62,
        pairs: bool,
    ) {
        for (backend, permutation) in permutations([6; 16]) {
            let (mut numbers, mut blocks) = (xs.clone(), xs.iter().map(|&x| Block::from(x)).collect::<Vec<_>>());
            permutation.hash(&mut numbers, first, pairs);
            permutation.hash(&mut blocks, first, pairs);
            let blocks: Vec<u128> = blocks.into_iter().map(u128::from).collect();
            prop_assert_eq!(blocks, numbers, "{:?}", backend);
        }
        let (of_a, of_b) = (Block::from(a), Block::from(b));
        prop_assert_eq!(u128::from(of_a), a);
        prop_assert_eq!(u128::from(of_a ^ of_b), a ^ b);
        prop_assert_eq!(u128::from(of_a & of_b), a & b);
        prop_assert_eq!(u128::from(of_a.lowest()), 0_u128.wrapping_sub(a & 1));
        let mut erased = of_a;
        erased.zeroize();
        prop_assert_eq!(u128::from(erased), 0);
    }
}

#[test]
fn the_fastest_of_those_allowed_is_chosen() {
    let has = Backend::ALL.map(Backend::is_there);
    for (backend, has) in Backend::ALL.into_iter().zip(has) {
        if !has {
            // Not through `eprintln!`, which the harness would keep to itself.
            let message = format!("\nNOT TESTED: this machine has nothing for {backend:?}\n");
            std::io::stderr().write_all(message.as_bytes()).unwrap();
        }
    }
    let from = match std::env::var("QUIVER_SIMD").as_deref() {
        Ok("vaes") => 1,
        Ok("avx2") => 2,
        Ok("serial") => 3,
        _ => 0,
    };
    assert_eq!(backend(), (from..3).find(|place| has[*place]).map(|place| Backend::ALL[place]));
}

#[test]
fn the_environment_forbids_what_is_faster_than_it_names() {
    environment::passes_with_every_value("the_fastest_of_those_allowed_is_chosen");
}
