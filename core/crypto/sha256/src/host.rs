//! SHA-256 by the crate `sha2`, for all processors but microcontrollers of Arm.

use sha2::compress256;
use zeroize::Zeroize;

pub use sha2::Sha256;

use crate::padded::{BLOCK, HashState};

/// The compression function, block by block.
pub(crate) fn compress(state: &mut HashState, blocks: &[[u8; BLOCK]]) {
    for block in blocks {
        compress256(state, core::slice::from_ref(block.into()));
    }
}

/// Overwrites a secret with zeros, which no compiler leaves out.
pub fn erase(bytes: &mut [u8]) {
    bytes.zeroize();
}

pub(crate) fn erase_state(state: &mut HashState) {
    state.zeroize();
}
