//! Messages of a leader to its deputies, which stay undecoded until their signature is verified; here without
//! one.

use quiver_ainq::{Bls12381G1, Ristretto255, SparePair, Suite};
use quiver_message::{ReplicaChunk, Seat};

use crate::scene::{GROUP, Scene, Staged, name, rng};

/// Chunks of both suites.
pub fn replica_chunk(bytes: &[u8]) {
    chunk::<Ristretto255>(bytes);
    chunk::<Bls12381G1>(bytes);
}

fn chunk<S: Suite>(bytes: &[u8]) {
    if let Ok(chunk) = ReplicaChunk::<S>::decode(bytes) {
        assert_eq!(chunk.encode(), bytes, "two encodings of one chunk");
        assert!(chunk.seats.is_sorted_by(|a, b| a.slot < b.slot));
    }
}

/// A chunk of each suite.
pub fn replica_chunk_seeds() -> Vec<Vec<u8>> {
    vec![seed(Ristretto255::scene()), seed(Bls12381G1::scene())]
}

fn seed<S: Suite>(scene: &Scene<S>) -> Vec<u8> {
    let keypair = &scene.honest().edge.keypair;
    let mut rng = rng(9);
    let spare = SparePair::<S>::generate(3, &mut rng);
    let spare = Some(spare.statement(keypair, &scene.deployment, &name(GROUP), &mut rng));
    let holder = Some(keypair.public().clone());
    let seats = vec![
        Seat { slot: 2, holder: holder.clone(), spare, spent: 0 },
        Seat { slot: 5, holder, spare: None, spent: 4 },
        Seat { slot: 700, holder: None, spare: None, spent: 0 },
    ];
    ReplicaChunk { number: 1, first: true, last: false, seats, evicted: vec![[8; 16]] }.encode()
}
