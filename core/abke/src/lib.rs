//! Attribute-based key exchange: a server and a client agree on a key if and only if the client's certified
//! attributes satisfy the server's policy. The server learns that one bit, and no two runs of a client can be
//! linked.
//!
//! Source: Kolesnikov, Krawczyk, Lindell, Malozemoff, Rabin, *Attribute-based Key Exchange with General
//! Policies*, CCS 2016, eprint 2016/518, over BLS12-381 in place of a Barreto-Naehrig curve.
//!
//! | symbol | here |
//! |---|---|
//! | m, χ | how many attributes there are, and which of them a client has |
//! | sk, pk | a scalar and a point of G2 for each of the slots g, h, u, 1 to m: [`Authority`], [`AuthorityKey`] |
//! | g, h, u | points of G1, fresh for each client, whose discrete logarithms nobody knows |
//! | e_j = r_j·(h if χ_j else g) | one for each attribute; r_j is known to the authority and the client: [`Credential`] |
//! | σ | signatures sk·P on g, h, u and on each u + e_j |
//!
//! | module | what it has |
//! |---|---|
//! | [`authority`], [`credential`] | who certifies, and what is certified |
//! | [`key`], [`verification`] | keys as they are shown; verifying one or many |
//! | [`encryption`] | two points for each attribute, of which a client can read one |
//! | [`exchange`] | the protocol: messages, states, and what is done against whom |
//! | [`error`] | why something is refused, and what the other side gets to know of it |
//!
//! ```
//! use std::sync::Arc;
//!
//! use quiver_abke::{Authority, Client, ExchangeTerms, Hello, PolicyCircuit, Verifier};
//! use quiver_garble::policy::{self, Schema};
//! # use quiver_crypto::Secret;
//! # use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
//! # let rng = &mut ChaCha20Rng::from_seed([1; 32]);
//! # let sign = |_: &[u8; 32]| vec![7; 64];
//! # let is_signed = |_: &[u8; 32], signature: &[u8]| signature == [7; 64];
//!
//! // The authority certifies what a drone is.
//! let schema = Schema::parse("battery: u7, medic: bool")?;
//! let authority = Authority::derive(&Secret::new([3; 32]), 2026, schema.bits())?;
//! let credential = authority.certify(&schema.encode(&[("battery", 80), ("medic", 0)])?, rng)?;
//!
//! // Both sides know what is asked, by whom, and over which channel.
//! let asked = policy::Policy::compile("medic or battery >= 60", &schema)?;
//! let policy = Arc::new(PolicyCircuit::new(asked.circuit())?);
//! let terms = ExchangeTerms { policy: &[9; 32], server: b"the leader", channel: b"the channel" };
//!
//! let (client, hello) = Client::start(&terms, policy.clone(), credential.unlink(rng), rng)?;
//! let verifier = Verifier::new(authority.key().clone());
//! let verified = Hello::decode(&hello, schema.bits())?.verify(&verifier, rng)?;
//! let (mut server, offer) = verified.offer(&terms, policy, rng, sign)?;
//! let mut client = client.offer(&offer, is_signed)?;
//! while let Some(tables) = server.next_tables()? {
//!     client.tables(&tables)?;
//! }
//! let (client, commitment) = client.commit(rng)?;
//! let (server, seeds) = server.finish()?.commitment(&commitment)?;
//! let (client, opening) = client.open(&seeds, rng)?;
//! let (server, confirmation) = server.opening(&opening)?;
//! let client = client.confirm(&confirmation)?;
//! assert_eq!(client.key(), server.key());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Differences from the source
//! * **Decoding.** All checks of a key are linear, so the key of identities is valid and decrypts everything,
//!   and points of small order pass a batch's check once in so many times. So each point of a key is moved
//!   into the subgroup and refused if it becomes the identity, on its own and before any pairing with it
//!   ([`UnverifiedPublicKey`]); what a server sends is checked to lie in it, point by
//!   point ([`AbkeCiphertext`]).
//! * **Verification** of many keys in two equations, of 4 and m + 1 Miller loops ([`Verifier`]): the short
//!   one first.
//! * **Both halves** of each ciphertext are checked when the server opens its seeds. A client that checks the
//!   one it could not read tells a server that spoils one half which attribute it has.
//!
//! # Time
//! What secrets are multiplied by, and encoding what comes of it, takes constant time where `quiver-pairing`
//! is built with blst; which half is decrypted is selected in constant time everywhere. Checks take time that
//! depends on what is public, or opened, or on weights that are used once.
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

pub mod authority;
pub mod credential;
pub mod encryption;
pub mod error;
pub mod exchange;
pub mod key;
mod scalars;
pub mod verification;

pub use authority::{Authority, AuthorityKey};
pub use credential::{Credential, Presentation, UnverifiedCredential};
pub use encryption::{AbkeCiphertext, Randomness};
pub use error::{Deviation, Error, ExchangeRefused, PointLabel};
pub use exchange::{
    Awaiting, Client, Committed, Evaluating, ExchangeTerms, Garbling, Hello, OpenedClient, PolicyCircuit,
    Seeded, Session, VerifiedHello,
};
pub use key::{PublicKey, UnverifiedPublicKey};
pub use verification::{Effort, Verifier};

/// Attributes at most: as many as a schema of `quiver-garble` has bits.
pub const MAX_ATTRIBUTES: usize = quiver_garble::policy::MAX_BITS;

/// Slots beside those of the attributes: g, h and u.
pub(crate) const FIXED_SLOTS: usize = 3;

/// Prefix of every hash and derivation of this crate.
pub(crate) const DOMAIN: &str = "QUIVER-ABKE-v1";
