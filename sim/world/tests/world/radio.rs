//! The radio model against published figures, its own laws, and long-run statistics with fixed seeds.

mod airtime;
mod energy;
mod loss;
mod medium;
mod presets;
mod transmission;
pub(crate) mod world;

use quiver_world::radio::{Loss, LossState};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;

/// A generator that is the same in every run.
fn rng(seed: u64) -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(seed)
}

/// A link that loses nothing.
fn clear() -> LossState {
    Loss::None.link(&mut rng(0))
}
