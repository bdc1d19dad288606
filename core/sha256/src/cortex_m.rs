//! SHA-256 with the compression function in assembly, and erasing, for processors with Thumb-2. Padding and buffering are those of the crate `digest`.

#[expect(unsafe_code, reason = "assembly: reads and writes what it is given, keeps what a callee must keep")]
mod assembly;

use sha2::digest::block_buffer::Eager;
use sha2::digest::core_api::{
    Block, BlockSizeUser, Buffer, BufferKindUser, CoreWrapper, FixedOutputCore, OutputSizeUser, UpdateCore,
};
use sha2::digest::typenum::{U32, U64};
use sha2::digest::{HashMarker, Output, Reset};

/// SHA-256.
pub type Sha256 = CoreWrapper<Sha256Core>;

/// H(0), FIPS 180-4, 5.3.3.
const START: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// The state between two blocks.
#[derive(Clone)]
pub struct Sha256Core {
    state: [u32; 8],
    blocks: u64,
}

impl Default for Sha256Core {
    fn default() -> Self {
        Self { state: START, blocks: 0 }
    }
}

impl Reset for Sha256Core {
    fn reset(&mut self) {
        *self = Self::default();
    }
}

impl HashMarker for Sha256Core {}

impl BlockSizeUser for Sha256Core {
    type BlockSize = U64;
}

impl BufferKindUser for Sha256Core {
    type BufferKind = Eager;
}

impl OutputSizeUser for Sha256Core {
    type OutputSize = U32;
}

impl UpdateCore for Sha256Core {
    fn update_blocks(&mut self, blocks: &[Block<Self>]) {
        self.blocks += blocks.len() as u64;
        compress(&mut self.state, blocks);
    }
}

impl FixedOutputCore for Sha256Core {
    fn finalize_fixed_core(&mut self, buffer: &mut Buffer<Self>, out: &mut Output<Self>) {
        // 5.1.1: the message's length in bits behind a one and zeros.
        let bits = 8 * (64 * self.blocks + buffer.get_pos() as u64);
        buffer.len64_padding_be(bits, |block| compress(&mut self.state, core::slice::from_ref(block)));
        for (bytes, word) in out.chunks_exact_mut(4).zip(self.state) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
    }
}

impl core::fmt::Debug for Sha256Core {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Sha256Core")
    }
}

/// Overwrites a secret with zeros. No compiler knows what assembly does, so none leaves it out.
pub fn erase(bytes: &mut [u8]) {
    #[expect(unsafe_code, reason = "a function in assembly")]
    // SAFETY: it writes `len` bytes, and keeps what a callee must keep.
    unsafe {
        assembly::quiver_erase(bytes.as_mut_ptr(), bytes.len());
    }
}

fn compress(state: &mut [u32; 8], blocks: &[Block<Sha256Core>]) {
    if !blocks.is_empty() {
        #[expect(unsafe_code, reason = "a function in assembly")]
        // SAFETY: it reads `count` blocks of 64 bytes, at least one, reads and writes the state, and keeps what a callee must keep.
        unsafe {
            assembly::quiver_sha256_compress(state, blocks.as_ptr(), blocks.len());
        }
    }
}
