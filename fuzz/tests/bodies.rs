//! Every target's body on its valid inputs, on changed ones and on noise: a few seconds on any compiler.

use arbitrary::Unstructured;
use quiver_fuzz::mutation::mutate;
use quiver_fuzz::scene::rng;
use quiver_fuzz::targets::{FuzzTarget, TARGETS};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::RngCore;

/// Inputs per target; fewer for those that replay a machine's whole run.
fn rounds(target: &FuzzTarget) -> usize {
    match target.name {
        "kgc_input" | "leader_input" | "deputy_input" | "edge_input" => 600,
        "quorum_input" => 200,
        "edge_snapshot" | "leader_records" | "state_file" => 500,
        name if ["abe_", "age_", "ibe_", "kem_"].iter().any(|kind| name.starts_with(kind)) => 300,
        // A run for each, with pairings.
        name if name.starts_with("abke_") => 100,
        // Curve arithmetic at many steps.
        "member_input" | "member_records" => 500,
        "authority_statement"
        | "delivery_request"
        | "sealed_delivery"
        | "keyring"
        | "attribute_delivery_input" => 300,
        "release_payload" | "release_input" => 150,
        _ => 1000,
    }
}

fn noise(rng: &mut ChaCha20Rng, longest: usize) -> Vec<u8> {
    let mut bytes = vec![0; rng.next_u32() as usize % longest];
    rng.fill_bytes(&mut bytes);
    bytes
}

fn feed(target: &FuzzTarget) {
    let mut rng = rng(target.name.len() as u64 + 1000);
    let seeds = (target.seeds)();
    assert!(!seeds.is_empty(), "{} has nothing to start from", target.name);
    seeds.iter().for_each(|seed| (target.body)(seed));
    let scripted = target.name.ends_with("_input");
    for round in 0..rounds(target) {
        let bytes = if scripted || round % 4 == 0 {
            noise(&mut rng, 600)
        } else {
            let one = seeds[rng.next_u32() as usize % seeds.len()].clone();
            let other = &seeds[rng.next_u32() as usize % seeds.len()];
            mutate(&mut Unstructured::new(&noise(&mut rng, 40)), one, other).unwrap_or_default()
        };
        (target.body)(&bytes);
    }
}

fn feed_all(chosen: impl Fn(&str) -> bool) {
    TARGETS.iter().filter(|target| chosen(target.name)).for_each(feed);
}

#[test]
fn decoders_of_either_suite_take_anything() {
    feed_all(|name| !name.ends_with("_input") && !name.ends_with("_file"));
}

#[test]
fn files_take_anything() {
    feed_all(|name| name.ends_with("_file"));
}

#[test]
fn machines_take_anything() {
    feed_all(|name| name.ends_with("_input"));
}

#[test]
fn every_target_is_documented_once() {
    let table = include_str!("../README.md").lines().filter(|line| line.starts_with("| "));
    let mut documented: Vec<&str> = table.flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
    let mut names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    documented.sort_unstable();
    names.sort_unstable();
    assert_eq!(documented, names);
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "two targets of one name");
}
