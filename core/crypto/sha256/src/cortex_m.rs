//! SHA-256 and erasure in assembly, for a Cortex-M4: Thumb-2 and its DSP extension.

#[expect(unsafe_code, reason = "assembly: reads and writes what it is given, keeps what a callee must keep")]
mod assembly;

use sha2::digest::typenum::U32;
use sha2::digest::{FixedOutput, HashMarker, Output, OutputSizeUser, Update};

use crate::padded::{BLOCK, HashState, Padded, START};

/// SHA-256.
#[derive(Clone)]
pub struct Sha256(Padded);

impl Default for Sha256 {
    fn default() -> Self {
        Self(Padded::behind(0, START))
    }
}

impl HashMarker for Sha256 {}

impl OutputSizeUser for Sha256 {
    type OutputSize = U32;
}

impl Update for Sha256 {
    fn update(&mut self, part: &[u8]) {
        self.0.update(part);
    }
}

impl FixedOutput for Sha256 {
    fn finalize_into(mut self, out: &mut Output<Self>) {
        *out = self.0.finish().into();
    }
}

impl core::fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Sha256")
    }
}

/// Overwrites a secret with zeros. No compiler knows what assembly does, so none leaves it out.
pub fn erase(bytes: &mut [u8]) {
    #[expect(unsafe_code, reason = "a function in assembly")]
    // SAFETY: it writes `len` bytes, and preserves the callee-saved registers.
    unsafe {
        assembly::quiver_erase(bytes.as_mut_ptr(), bytes.len());
    }
}

pub(crate) fn erase_state(state: &mut HashState) {
    #[expect(unsafe_code, reason = "a function in assembly")]
    // SAFETY: as above; the number of bytes is the one given, and any bytes are words.
    unsafe {
        assembly::quiver_erase(state.as_mut_ptr().cast(), size_of::<HashState>());
    }
}

/// The compression function, block by block.
pub(crate) fn compress(state: &mut HashState, blocks: &[[u8; BLOCK]]) {
    if !blocks.is_empty() {
        #[expect(unsafe_code, reason = "a function in assembly")]
        // SAFETY: it reads `count` blocks of 64 bytes, at least one, reads and writes the state, and
        // preserves the callee-saved registers.
        unsafe {
            assembly::quiver_sha256_compress(state, blocks.as_ptr(), blocks.len());
        }
    }
}
