//! age files that open when a condition is met: Boneh-Franklin encryption to a condition ([`quiver_ibe`]) as
//! a recipient type of the [age v1 format](https://c2sp.org/age).
//!
//! A file is encrypted under a random key of 16 bytes, in chunks of 64 KiB, by the `age` crate; a *stanza* in
//! its header carries that key encrypted to one condition. A file for several conditions has several stanzas,
//! and the key of any one opens it. Nothing here knows who hands out keys, or when.
//!
//! ```text
//! age-encryption.org/v1
//! -> quiver-ibe FINGERPRINT CONDITION
//! base64(U ‖ V ‖ W)
//! --- MAC
//! ```
//!
//! | in the header | length | what |
//! |---|---|---|
//! | FINGERPRINT | 43 characters | of the master public key; 32 bytes, base64 without padding |
//! | CONDITION | 1 to 255 characters | its one canonical spelling, `mission/alpha/phase-2` |
//! | U | 48 bytes | r·P1 in G1, compressed |
//! | V | 32 bytes | σ ⊕ H2(e(MPK, Q)^r) |
//! | W | 16 bytes | file key ⊕ H4(σ) |
//!
//! | module or type | what it has |
//! |---|---|
//! | [`Recipient`] | a master public key and a condition; `age1quiver1…` as text |
//! | [`Identity`] | a master public key and the keys of conditions; `AGE-PLUGIN-QUIVER-1…` as text; secret |
//! | [`identity_file`] | identities as the lines of a file |
//! | [`WrappedKey`] | the stanza |
//! | [`encrypt`], [`EncryptingWriter`] | making files, as a stream |
//! | [`SealedFile`], [`Plaintext`] | opening files, as a stream: no byte comes out that is not authentic |
//!
//! ```
//! use quiver_age::{Format, Identity, Recipient, SealedFile, encrypt};
//! # use quiver_ibe::{Condition, Dealing, IdentityPoint, UnverifiedKeyShare, combine};
//! # let mut rng = rand::rngs::OsRng;
//! # let dealing = Dealing::deal(2, 3, &mut rng)?;
//! # let quorum = dealing.public_shares()?;
//! let condition: Condition = "mission/alpha/phase-2".parse()?;
//! let recipient = Recipient::new(*quorum.master(), condition.clone());
//! let mut file = Vec::new();
//! encrypt(&[recipient], Format::Binary, &b"cross the river"[..], &mut file)?;
//!
//! // Later, the phase has begun and the KGCs have released the key.
//! # let point = IdentityPoint::of(&condition);
//! # let shares = [0, 2].map(|place| UnverifiedKeyShare::from(dealing.shares()[place].extract(&point)));
//! # let key = combine(&quorum, &point, &shares, &mut rng)?;
//! let mut identity = Identity::new(*quorum.master());
//! identity.insert(condition, key)?;
//! let mut orders = Vec::new();
//! SealedFile::read(&file[..])?.open(&identity)?.copy_to(&mut orders)?;
//! assert_eq!(orders, b"cross the river");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A header is public: it names the conditions under which the file opens. The key of a condition opens every
//! file that was and will be encrypted to it, and cannot be withdrawn; nor does age authenticate the sender
//! of a file.
//!
//! Memory does not grow with a file: both directions hold one chunk. A header is read up to 64 KiB and no
//! further. Randomness comes from the operating system, because the `age` crate takes it from there itself.
//!
//! The program `age-plugin-quiver` makes the same recipients and identities known to the commands `age` and
//! `rage`.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod bech;
mod encrypt;
mod error;
mod header;
mod identity;
pub mod identity_file;
mod open;
mod recipient;
mod stanza;

pub use encrypt::{EncryptingWriter, Format, encrypt};
pub use error::{Error, Result};
pub use identity::{Identity, KEYS_LIMIT};
pub use open::{Plaintext, SealedFile};
pub use recipient::{RECIPIENTS_LIMIT, Recipient};
pub use stanza::{TAG, WrappedKey};

/// The name of the plugin in recipients, identities and the program's name.
pub const PLUGIN_NAME: &str = "quiver";
