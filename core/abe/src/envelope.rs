//! Envelopes: attribute-based encryption of messages and files of any length.
//!
//! A scheme of this crate encapsulates a key, the transform of Fujisaki and Okamoto makes that withstand
//! tampering, a chain turns it into one key per message, and each message is a stream of chunks, signed by
//! its sender inside the encryption.
//!
//! | module | what it has |
//! |---|---|
//! | `any_scheme` | all schemes as one, chosen by name: [`AnyParameters`], [`AnyKey`], [`EnvelopeTarget`] |
//! | `header` | the bytes before the chunks: [`Opening`], [`Following`], [`Lifetime`] |
//! | `transform` | K_0 from the KEM, checked by encapsulating again |
//! | `chain` | K_msg and K_{n+1} from K_n; the receiver's window |
//! | `sending_session`, `receiving_session`, `sessions` | [`SendingSession`], [`ReceivingSession`], a bounded set of them |
//! | `stream`, `splitter` | [`Sealer`] and [`Opener`] of chunks, and finding chunks in bytes |
//! | `sender` | who signs and who verifies: [`Signer`], [`Verifier`] |
//! | `oneshot` | the same for what fits into memory |
//! | `io` | the same over `std::io::Read` and `Write` (feature `std`) |
//!
//! An envelope's header takes some 150 bytes beside sender and KEM ciphertext (49 in messages after the
//! first), its chunks 16 bytes per 64 KiB, its end 16 bytes and the signature.

mod any_scheme;
mod chain;
mod error;
mod header;
#[cfg(feature = "std")]
pub mod io;
mod kem;
mod oneshot;
mod receiving_session;
mod sender;
mod sending_session;
mod sessions;
mod splitter;
mod stream;
mod transform;

pub use any_scheme::{AnyCiphertext, AnyKey, AnyParameters, AnyScheme, EnvelopeTarget, named_authority};
pub use chain::{MAX_AHEAD, MAX_SKIPPED};
pub use error::EnvelopeError;
pub use header::{
    EnvelopeHeader, Following, Lifetime, MAX_CIPHERTEXT_LEN, MAX_GROUP_LEN, MAX_HEADER_LEN, MAX_SENDER_LEN,
    MAX_SIGNATURE_LEN, Opening, SessionId,
};
pub use kem::Kem;
pub use oneshot::{OpenedBytes, open_bytes, seal_bytes};
pub use receiving_session::ReceivingSession;
pub use sender::{Signer, Verifier};
pub use sending_session::{EnvelopeStart, SendingSession};
pub use sessions::{MAX_SESSIONS, MAX_SESSIONS_PER_SENDER, SessionLimits, Sessions};
pub use splitter::Splitter;
pub use stream::{CHUNK_LEN, Opener, SEALED_CHUNK_LEN, Sealer};

/// The name of this construction in every key it derives.
const SUITE: &str = "quiver/1 envelope";
