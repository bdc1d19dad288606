//! The key exchange: five messages and a confirmation, secure against malicious clients and servers.
//!
//! | | from | bytes | what |
//! |---|---|---|---|
//! | 1 hello | client | 33 + 96·(2m + 6) | A_C, unlinked key |
//! | 2 offer | server | 85 + signature + 96·(2m + 2) + 32·m | A_S, nonce, signature on ctx, ciphertext of x_{j,b}, the label of the wire that is 1, labels masked by KDF(x_{j,b}, ctx, j, b) |
//! | tables | server | 16 for each AND | the garbled circuit, as a stream |
//! | 3 commitment | client | 33 | com = HMAC(ρ, ctx ‖ label that came out) |
//! | 4 seeds | server | 65 | seed_enc, seed_gc |
//! | 5 opening | client | 81 | label, ρ, the client's confirmation |
//! | 6 confirmation | server | 33 | the server's |
//!
//! Lengths depend on m, the circuit, and the length of the server's kind of signature alone. The first byte
//! of each message, but not of the tables, is its number.
//!
//! ctx is a hash of the suite, the policy and its circuit, the authority, who the server is, the channel, the
//! client's key, A_C, A_S and the server's nonce. The server signs it, and everything that is derived takes
//! it in: labels, masks and seeds of one run are of no use in another.
//!
//! # Attacks that each side resists
//! * **A server that garbles something else**, or encrypts something else than labels: the client commits to
//!   the result, sees the seeds, and computes all anew. Before that the server could learn com alone, which
//!   hides; afterwards it learns that it was caught.
//! * **Selective failure.** The client checks both halves for each attribute and all that was garbled, none
//!   of which depends on its attributes; so whether and when it gives up does not either. A client that
//!   cannot evaluate commits to a random label, and gives up where it would have otherwise.
//! * **A client without the attributes** has no label of 1 to commit to before the seeds, and cannot open
//!   anything else after them.
//! * **A third party** in between: hello and ctx are in the signature, and all messages in the key, which
//!   both sides confirm.
//!
//! The server learns whether the policy is satisfied, and the client does; that the client learns it is what
//! lets it leave quietly.

use crate::Error;

/// `Debug` that prints the name of the state, and nothing of it.
macro_rules! debug {
    ($($state:ident),*) => {
        $(impl core::fmt::Debug for $state {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(concat!(stringify!($state), "(..)"))
            }
        })*
    };
}

mod client;
mod context;
mod labels;
#[cfg(test)]
mod malicious_server;
mod policy;
mod server;
mod session;
mod tables;

pub use client::{Client, Committed, Evaluating, OpenedClient};
pub use context::ExchangeTerms;
pub use policy::PolicyCircuit;
pub use server::{Awaiting, Garbling, Hello, Seeded, VerifiedHello};
pub use session::Session;

/// Bytes of the server's signature on ctx, at most.
pub const MAX_SIGNATURE: usize = 256;

/// Kind of a message, in its first byte.
#[derive(Clone, Copy)]
pub(crate) enum ExchangeMessageKind {
    Hello = 1,
    Offer = 2,
    Commitment = 3,
    Seeds = 4,
    Opening = 5,
    Confirmation = 6,
}

impl ExchangeMessageKind {
    /// The bytes after the first one, if that is this kind's.
    pub(crate) fn body(self, message: &[u8]) -> Result<&[u8], Error> {
        match message.split_first() {
            Some((&kind, body)) if kind == self as u8 => Ok(body),
            _ => Err(Error::Unexpected(self.name())),
        }
    }

    /// The same for a message of a fixed length.
    pub(crate) fn fixed<const N: usize>(self, message: &[u8]) -> Result<&[u8; N], Error> {
        self.body(message)?.try_into().map_err(|_| Error::Unexpected(self.name()))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Hello => "a hello was expected",
            Self::Offer => "an offer was expected",
            Self::Commitment => "a commitment was expected",
            Self::Seeds => "seeds were expected",
            Self::Opening => "an opening was expected",
            Self::Confirmation => "a confirmation was expected",
        }
    }
}
