//! Identity-based encryption to conditions: a quorum of KGCs releases the key of a condition when the
//! condition is met.
//!
//! Source: Boneh, Franklin, *Identity-Based Encryption from the Weil Pairing*, CRYPTO 2001, section 4.2
//! (`FullIdent`), on BLS12-381, its master key shared as in section 6 there. Hashes and encodings are those
//! of the Go library DistributedIBE, so that either reads what the other wrote. Mathematics only: no I/O, no
//! clock, randomness is an argument.
//!
//! | symbol | here |
//! |---|---|
//! | P1 | the generator of G1 |
//! | s, MPK = s·P1 | nobody's; [`MasterPublicKey`], 48 bytes |
//! | t, n | how many shares make a key, of how many |
//! | s_j, S_j = s_j·P1 | [`MasterShare`], 34 bytes with j; in [`PublicShares`] |
//! | Q = HashToG2(identity) | [`IdentityPoint`], 96 bytes |
//! | K_j = s_j·Q, K = s·Q | [`KeyShare`], 98 bytes with j; [`IdentityKey`], 96 bytes |
//! | U = r·P1, V = σ ⊕ H2(e(MPK, Q)^r), W = m ⊕ H4(σ), with r = H3(σ, m) | [`IbeCiphertext`], 80 bytes more than m |
//!
//! | module | what it has |
//! |---|---|
//! | [`condition`] | what identities say, in their one spelling |
//! | [`identity_point`], [`master`] | public keys: of a condition, of the quorum |
//! | [`encryption`] | encrypting to a condition |
//! | [`identity_key`] | decrypting |
//! | [`master_share`], [`public_shares`], [`key_share`] | the quorum's parts |
//! | [`combination`] | identity keys out of shares, and who sent wrong ones |
//! | [`dealing`] | a dealer in place of distributed generation, and checking him (Feldman) |
//! | [`error`] | why something is refused |
//!
//! ```
//! use quiver_ibe::{Condition, Dealing, IdentityPoint, UnverifiedKeyShare, combine};
//! # use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
//! # let mut rng = ChaCha20Rng::seed_from_u64(1);
//!
//! // Three of five KGCs, their key made by a dealer.
//! let dealing = Dealing::deal(3, 5, &mut rng)?;
//! let quorum = dealing.public_shares()?;
//!
//! let condition: Condition = "mission/alpha/phase-2".parse()?;
//! let point = IdentityPoint::of(&condition);
//! let orders = quorum.master().encrypt(&point, b"release the supplies", &mut rng)?;
//!
//! // The phase begins: KGCs 5, 2 and 1 release their shares of its key.
//! let shares = [4, 1, 0].map(|place| UnverifiedKeyShare::from(dealing.shares()[place].extract(&point)));
//! let key = combine(&quorum, &point, &shares, &mut rng)?;
//! assert_eq!(*key.decrypt(&orders)?, b"release the supplies");
//! # Ok::<(), quiver_ibe::Error>(())
//! ```
//!
//! # Time
//! Multiplication by r, s or s_j in G1 and G2 takes constant time where `quiver-pairing` is built with blst;
//! powers in the target group, which an [`Encryptor`] takes, do not, and over arkworks nothing does. The
//! comparison that ends decryption is constant-time everywhere.
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

pub mod combination;
pub mod condition;
pub mod dealing;
pub mod encryption;
pub mod error;
mod hashes;
pub mod identity_key;
pub mod identity_point;
pub mod key_share;
pub mod master;
pub mod master_share;
pub mod public_shares;

pub use combination::{combine, verify_batch};
pub use condition::{Condition, ConditionKind, UnixTime};
pub use dealing::{Dealing, MasterCommitment, UnverifiedMasterShare};
pub use encryption::{Encryptor, IbeCiphertext};
pub use error::{Culprit, Error, ShareFault};
pub use identity_key::{IdentityKey, UnverifiedIdentityKey};
pub use identity_point::IdentityPoint;
pub use key_share::{KeyShare, UnverifiedKeyShare};
pub use master::MasterPublicKey;
pub use master_share::MasterShare;
pub use public_shares::PublicShares;

/// The name of this scheme in signed statements about master keys.
pub const SCHEME: &str = "bf-fullident-bls12381";

/// KGCs of a quorum, and shares that are combined, at most.
pub const MAX_SHARES: usize = quiver_sharing::MAX_SHARES;

/// Bytes of a message at most: |σ|. A longer text goes under a key that is the message.
pub const MAX_MESSAGE_LEN: usize = 32;
