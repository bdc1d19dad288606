//! Quiver's identity-based encryption beside the timelock encryption of the crate
//! [`commonware_cryptography`].
//!
//! Both are `FullIdent` of Boneh and Franklin on BLS12-381, computed by blst; keys of identities are
//! signatures of BLS. All encrypt 32 bytes, and hash the identity each time. A contender may keep one-time
//! work for an identity: ours, `kept`, does.
//!
//! | variant of commonware | public keys | counterpart here |
//! |---|---|---|
//! | `MinPk` | in G1, 48 bytes | all of Quiver |
//! | `MinSig` | in G2, 96 bytes | none: its ciphertexts are larger by 48 bytes |
//!
//! Combining takes shares of 128 holders, of whom 86 are needed, and checks the resulting key.

mod contender;
#[path = "../../rabe/src/cpu_time.rs"]
mod cpu_time;
mod ours;
mod theirs;
pub mod verdict;

pub use contender::{IbeContender, Operation, contenders};
pub use cpu_time::CpuTime;

/// Holders of shares.
pub const HOLDERS: u16 = 128;

/// Number of needed holders: more than two thirds.
pub const NEEDED: u16 = 86;
