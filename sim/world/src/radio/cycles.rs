//! CPU cycles of a drone's operations on an Arm Cortex-M4.
//!
//! | operation | instructions | source |
//! |---|---|---|
//! | secret scalar times variable point | 1,491,680 | counted |
//! | the same, x-only with the assembly of `fe25519` | 670,000 cycles | published |
//! | secret scalar times base point | 425,800 | counted |
//! | a·P + b·B in variable time | 1,346,296 | counted |
//! | decoding a point | 126,216 | counted |
//! | encoding a point | 125,616 | counted |
//! | SHA-256, one block of 64 bytes | 2,199 | counted |
//! | SHA-512, one block of 128 bytes | 9,333 | counted |
//! | ChaCha20, one block of 64 bytes | 1,371 | counted |
//! | Poly1305, one block of 16 bytes | 143 | counted |
//!
//! **Counted**: `curve25519-dalek` 4.1.3 (ristretto255, its 32-bit serial arithmetic), `sha2` 0.10,
//! `chacha20` 0.9 and `poly1305` 0.8, compiled by rustc 1.95 for `thumbv7em-none-eabihf` with
//! `target-cpu=cortex-m4`, `opt-level = 3` and link time optimisation, run in QEMU 7.2's `mps2-an386` with
//! `-icount shift=0`, where the SysTick timer counts instructions (a loop of two million known instructions
//! reads 2,000,000); averages over five and more runs.
//!
//! **Published**: B. Haase and B. Labrique, *AuCPace: Efficient verifier-based PAKE protocol tailored for the
//! IIoT*, eprint 2018/286; its `fe25519` repository gives about 670,000 cycles for X25519 on a Cortex-M4,
//! 626,000 with pointers swapped instead of data. The `salty` crate builds on this arithmetic. E. Lenngren's
//! X25519-Cortex-M4 reaches 548,873.
//!
//! **Assumed**: 1.3 cycles per counted instruction. On a Cortex-M4 most instructions, long multiplications
//! included, take one cycle, a lone load two and a taken branch two to four (Arm Cortex-M4 Technical
//! Reference Manual, instruction set summary); wait states of the flash are assumed to be hidden by its
//! cache.

/// Curve arithmetic of a drone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// The library's portable code.
    #[default]
    Portable,
    /// Hand-written assembly for multiplications of variable points.
    Assembly,
}

/// An operation that a drone's CPU time consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CpuOperation {
    /// A secret scalar times a variable point.
    Multiplication,
    /// A secret scalar times the base point.
    BaseMultiplication,
    /// A signature check's a·P + b·B, in variable time.
    DoubleMultiplication,
    /// Decoding a point.
    Decoding,
    /// Encoding a point.
    Encoding,
    /// SHA-256 of one block of 64 bytes.
    Sha256Block,
    /// SHA-512 of one block of 128 bytes.
    Sha512Block,
    /// ChaCha20 over one block of 64 bytes.
    ChaCha20Block,
    /// Poly1305 over one block of 16 bytes.
    Poly1305Block,
}

impl CpuOperation {
    /// CPU cycles it takes.
    pub const fn cycles(self, arithmetic: Arithmetic) -> u64 {
        match (self, arithmetic) {
            (Self::Multiplication, Arithmetic::Portable) => of_instructions(1_491_680),
            (Self::Multiplication, Arithmetic::Assembly) => 670_000,
            (Self::BaseMultiplication, _) => of_instructions(425_800),
            (Self::DoubleMultiplication, _) => of_instructions(1_346_296),
            (Self::Decoding, _) => of_instructions(126_216),
            (Self::Encoding, _) => of_instructions(125_616),
            (Self::Sha256Block, _) => of_instructions(2_199),
            (Self::Sha512Block, _) => of_instructions(9_333),
            (Self::ChaCha20Block, _) => of_instructions(1_371),
            (Self::Poly1305Block, _) => of_instructions(143),
        }
    }
}

/// Cycles of instructions, at 1.3 each.
const fn of_instructions(instructions: u64) -> u64 {
    instructions * 13 / 10
}

/// Cycles of SHA-256 over so many bytes: padding takes at least nine.
pub const fn sha256(bytes: usize) -> u64 {
    (bytes as u64 + 9).div_ceil(64) * CpuOperation::Sha256Block.cycles(Arithmetic::Portable)
}

/// Cycles of HMAC-SHA-256 over so many bytes: the inner hash behind a block of padded key, and the outer over
/// two blocks.
pub const fn hmac_sha256(bytes: usize) -> u64 {
    sha256(bytes + 64) + sha256(96)
}

/// Cycles of opening or sealing so many bytes with so many bytes of associated data: ChaCha20 with one block
/// for the one-time key, Poly1305 over both, padded, and their lengths (RFC 8439, section 2.8).
pub const fn chacha20_poly1305(associated: usize, bytes: usize) -> u64 {
    let stream = 1 + bytes.div_ceil(64) as u64;
    let tag = 1 + (associated.div_ceil(16) + bytes.div_ceil(16)) as u64;
    stream * CpuOperation::ChaCha20Block.cycles(Arithmetic::Portable)
        + tag * CpuOperation::Poly1305Block.cycles(Arithmetic::Portable)
}
