//! Derives an independent random generator for every node and purpose from one seed.

use quiver_crypto::Hasher;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

/// The node or purpose that draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum RngStream {
    /// The operator who issues tokens.
    Operator = 1,
    /// The KGC.
    Kgc = 2,
    /// The leader.
    Leader = 3,
    /// An edge drone.
    Drone = 4,
    /// The choice of drones that leave and that send messages.
    Choices = 5,
    /// The attribute authority.
    Authority = 6,
    /// The authority of condition keys, which seals orders.
    IbeAuthority = 7,
    /// A drone that collects condition keys.
    KeyCollector = 8,
    /// A KGC that generates its keys with the others.
    KeyGeneration = 9,
    /// An anonymous drone: a node for each of its memberships.
    Anonymous = 10,
    /// Pauses of an anonymous drone between two of them.
    Pause = 11,
    /// An attacker of a flood.
    Attacker = 12,
    /// A relay.
    Relay = 13,
}

/// Purpose of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum StreamPurpose {
    /// The protocol.
    Protocol = 1,
    /// The transport's node key.
    NodeKey = 2,
}

/// The generator of one node. `life` counts its starts: a machine that was restarted must not draw the same
/// nonces again.
pub(crate) fn generator(seed: u64, stream: RngStream, index: u32, life: u32) -> ChaCha20Rng {
    ChaCha20Rng::from_seed(derive(seed, stream, StreamPurpose::Protocol, index, life))
}

/// The seed of a node's transport key, the same in all its lives.
pub(crate) fn node_key(seed: u64, stream: RngStream, index: u32) -> [u8; 32] {
    derive(seed, stream, StreamPurpose::NodeKey, index, 0)
}

fn derive(seed: u64, stream: RngStream, purpose: StreamPurpose, index: u32, life: u32) -> [u8; 32] {
    Hasher::new("quiver/1 simulator seed")
        .u64(seed)
        .u8(stream as u8)
        .u8(purpose as u8)
        .u32(index)
        .u32(life)
        .finish()
}

#[cfg(test)]
mod tests {
    use rand_chacha::rand_core::RngCore;

    use super::*;

    #[test]
    fn every_player_index_and_life_draws_differently() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..2 {
            for stream in
                [RngStream::Operator, RngStream::Kgc, RngStream::Leader, RngStream::Drone, RngStream::Choices]
            {
                for index in 0..3 {
                    for life in 0..2 {
                        assert!(seen.insert(generator(seed, stream, index, life).next_u64()));
                    }
                    assert_ne!(
                        node_key(seed, stream, index),
                        derive(seed, stream, StreamPurpose::Protocol, index, 0)
                    );
                }
            }
        }
    }

    #[test]
    fn the_same_player_draws_the_same_again() {
        let draw = || generator(7, RngStream::Drone, 3, 1).next_u64();
        assert_eq!(draw(), draw());
    }
}
