//! Random number streams: one seed gives every node an independent generator, and another one in every life.

use quiver_ainq::KgcId;
use quiver_crypto::Hasher;
use rand_chacha::ChaCha8Rng;
use rand_core::{CryptoRng, Error, RngCore, SeedableRng};

use crate::NodeId;
use crate::admission::Fields;

/// Who draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RngStream {
    /// A node, in one of its lives: a machine that was restarted must not draw the same nonces again.
    NodeId(NodeId, u32),
    /// Whoever issues the token of this node.
    Token(NodeId),
    /// Whoever sets up the KGC.
    Founder,
    /// The network's bad luck.
    Network,
    /// Whoever thinks up a plan.
    Planner,
    /// The adversary.
    Adversary,
    /// The radio's bad luck.
    Air,
    /// The attribute authority.
    AbeAuthority,
    /// Whoever founds the master key of conditions.
    IbeAuthority,
    /// Whoever seals orders that wait for one.
    Orders,
    /// A KGC that lies.
    ByzantineKgc(KgcId),
    /// Whoever sets up a checkpoint.
    Checkpoint,
    /// The fields of a drone.
    Fields(u32),
    /// Whoever certifies these for a period.
    Certifier(u32, u64, Fields),
    /// How long a drone without a name waits before it comes back, in one of its lives.
    Return(u32, u32),
}

/// The key of one player's generator.
pub(crate) fn key(seed: u64, player: RngStream) -> [u8; 32] {
    let hasher = Hasher::new("quiver/1 world seed").u64(seed);
    let node = |hasher: Hasher, kind: u8, node: NodeId, life: u32| {
        let (role, number) = match node {
            // The first one as if it were the only one.
            NodeId::Kgc(id) => (0, u32::from(id).saturating_sub(1)),
            NodeId::Leader(ordinal) => (1, u32::from(ordinal)),
            NodeId::Edge(number) => (2, number),
        };
        hasher.u8(kind).u8(role).u32(number).u32(life)
    };
    let hasher = match player {
        RngStream::NodeId(name, life) => node(hasher, 1, name, life),
        RngStream::Token(name) => node(hasher, 2, name, 0),
        RngStream::Founder => hasher.u8(3),
        RngStream::Network => hasher.u8(4),
        RngStream::Planner => hasher.u8(5),
        RngStream::Adversary => hasher.u8(6),
        RngStream::Air => hasher.u8(7),
        RngStream::AbeAuthority => hasher.u8(8),
        RngStream::IbeAuthority => hasher.u8(9),
        RngStream::Orders => hasher.u8(10),
        RngStream::ByzantineKgc(id) => hasher.u8(11).u16(id),
        RngStream::Checkpoint => hasher.u8(12),
        RngStream::Fields(drone) => hasher.u8(13).u32(drone),
        RngStream::Certifier(drone, period, Fields { x, y, battery }) => {
            let place = [x.to_be_bytes(), y.to_be_bytes()].concat();
            hasher.u8(14).u32(drone).u64(period).fixed(&place).u8(battery)
        }
        RngStream::Return(drone, life) => hasher.u8(15).u32(drone).u32(life),
    };
    hasher.finish()
}

/// The generator of one player.
pub(crate) fn generator(seed: u64, player: RngStream) -> ChaCha8Rng {
    ChaCha8Rng::from_seed(key(seed, player))
}

/// A ChaCha8 generator that takes 40 bytes while nobody draws: a million nodes have one each.
#[derive(Clone, Debug)]
pub(crate) struct CompactRng {
    key: [u8; 32],
    position: u64,
}

impl CompactRng {
    pub(crate) fn new(seed: u64, player: RngStream) -> Self {
        Self { key: key(seed, player), position: 0 }
    }

    /// A generator that goes on where the last one stopped.
    pub(crate) fn wake(&mut self) -> ActiveRng<'_> {
        ActiveRng { compact: self, rng: None }
    }
}

/// A [`CompactRng`] generator in use.
pub(crate) struct ActiveRng<'a> {
    compact: &'a mut CompactRng,
    rng: Option<ChaCha8Rng>,
}

impl ActiveRng<'_> {
    fn rng(&mut self) -> &mut ChaCha8Rng {
        let compact = &*self.compact;
        self.rng.get_or_insert_with(|| {
            let mut rng = ChaCha8Rng::from_seed(compact.key);
            rng.set_word_pos(u128::from(compact.position));
            rng
        })
    }
}

impl Drop for ActiveRng<'_> {
    fn drop(&mut self) {
        if let Some(rng) = &self.rng {
            // 2^64 words are never drawn.
            self.compact.position = u64::try_from(rng.get_word_pos()).unwrap_or(u64::MAX);
        }
    }
}

impl RngCore for ActiveRng<'_> {
    fn next_u32(&mut self) -> u32 {
        self.rng().next_u32()
    }

    fn next_u64(&mut self) -> u64 {
        self.rng().next_u64()
    }

    fn fill_bytes(&mut self, dest: &mut [u8]) {
        self.rng().fill_bytes(dest);
    }

    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), Error> {
        self.rng().try_fill_bytes(dest)
    }
}

impl CryptoRng for ActiveRng<'_> {}

/// A number from 0 up to and not including 1.
pub(crate) fn unit(rng: &mut impl RngCore) -> f64 {
    f64::from(rng.next_u32()) / (f64::from(u32::MAX) + 1.0)
}

/// A number below `bound`; 0 for 0.
pub(crate) fn below(rng: &mut impl RngCore, bound: u64) -> u64 {
    // The bias of this product is below bound / 2^64.
    ((u128::from(rng.next_u64()) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_player_and_life_draws_differently() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..2 {
            for node in [
                NodeId::Kgc(1),
                NodeId::Kgc(2),
                NodeId::Leader(0),
                NodeId::Leader(1),
                NodeId::Edge(0),
                NodeId::Edge(1),
            ] {
                for life in 0..2 {
                    assert!(seen.insert(key(seed, RngStream::NodeId(node, life))));
                }
                assert!(seen.insert(key(seed, RngStream::Token(node))));
            }
            for player in [RngStream::Founder, RngStream::Network, RngStream::Planner, RngStream::Adversary] {
                assert!(seen.insert(key(seed, player)));
            }
        }
    }

    #[test]
    fn a_dormant_generator_goes_on_where_it_stopped() {
        let mut whole = generator(7, RngStream::Network);
        let mut compact = CompactRng::new(7, RngStream::Network);
        for length in [1, 4, 32, 300, 7] {
            let (mut expected, mut drawn) = (vec![0; length], vec![0; length]);
            // CompactRng positions are whole words: what is left of one is skipped, as `fill_bytes` does itself.
            whole.fill_bytes(&mut expected);
            compact.wake().fill_bytes(&mut drawn);
            assert_eq!(drawn, expected);
            drop(compact.wake());
        }
    }

    #[test]
    fn numbers_stay_below_their_bound() {
        let mut rng = generator(1, RngStream::Planner);
        assert!((0..1000).all(|_| below(&mut rng, 10) < 10));
        assert!((0..1000).all(|_| (0.0..1.0).contains(&unit(&mut rng))));
        assert_eq!(below(&mut rng, 0), 0);
    }
}
