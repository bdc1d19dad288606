//! Randomness: one seed gives everybody an independent generator of their own.

use quiver_crypto::Hasher;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

/// Who draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Player {
    /// Whoever issues tokens.
    Operator = 1,
    /// The KGC.
    Kgc = 2,
    /// The leader.
    Leader = 3,
    /// An edge drone.
    Drone = 4,
    /// Whoever decides which drones leave and which speak.
    Choices = 5,
    /// The attribute authority.
    Authority = 6,
    /// Whoever founds the master key of conditions, and seals orders.
    Archivist = 7,
    /// A drone that collects keys of conditions.
    Collector = 8,
    /// A KGC that makes its keys with the others.
    Founding = 9,
    /// A drone without a name: a node for each of its lives.
    Unnamed = 10,
    /// How long it waits between two of them.
    Pause = 11,
    /// Somebody who floods a leader.
    Attacker = 12,
}

/// What a player draws for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Purpose {
    /// The protocol.
    Protocol = 1,
    /// The transport's node key.
    NodeKey = 2,
}

/// The generator of one player. `life` counts its starts: a machine that was restarted must not draw the same
/// nonces again.
pub(crate) fn generator(seed: u64, player: Player, index: u32, life: u32) -> ChaCha20Rng {
    ChaCha20Rng::from_seed(derive(seed, player, Purpose::Protocol, index, life))
}

/// The seed of one player's node key, the same in all its lives.
pub(crate) fn node_key(seed: u64, player: Player, index: u32) -> [u8; 32] {
    derive(seed, player, Purpose::NodeKey, index, 0)
}

fn derive(seed: u64, player: Player, purpose: Purpose, index: u32, life: u32) -> [u8; 32] {
    Hasher::new("quiver/1 simulator seed")
        .u64(seed)
        .u8(player as u8)
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
            for player in [Player::Operator, Player::Kgc, Player::Leader, Player::Drone, Player::Choices] {
                for index in 0..3 {
                    for life in 0..2 {
                        assert!(seen.insert(generator(seed, player, index, life).next_u64()));
                    }
                    assert_ne!(
                        node_key(seed, player, index),
                        derive(seed, player, Purpose::Protocol, index, 0)
                    );
                }
            }
        }
    }

    #[test]
    fn the_same_player_draws_the_same_again() {
        let draw = || generator(7, Player::Drone, 3, 1).next_u64();
        assert_eq!(draw(), draw());
    }
}
