//! What other processors than those with Thumb-2 use: the crate `sha2`.

use sha2::compress256;
use zeroize::Zeroize;

pub use sha2::Sha256;

use super::padded::{BLOCK, State};

/// The compression function, block by block.
pub(super) fn compress(state: &mut State, blocks: &[[u8; BLOCK]]) {
    for block in blocks {
        compress256(state, core::slice::from_ref(block.into()));
    }
}

/// Overwrites a secret with zeros, which no compiler leaves out.
pub fn erase(bytes: &mut [u8]) {
    bytes.zeroize();
}

pub(super) fn erase_state(state: &mut State) {
    state.zeroize();
}
