//! Commands, events and timing of the client that fetches attribute keys.

use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::Name;
use quiver_machine::{Offence, Peer};
use quiver_message::RefusalReason;

use crate::attributes::KeyResponse;

/// State of a drone at one authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldAuthority {
    /// The KGC's signed statement about it.
    pub statement: Vec<u8>,
    /// The mark of the grant of the held key.
    pub grant: Option<u64>,
}

/// Timing of a fetcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchTiming {
    /// Time to wait for an answer before the first retry; doubles from there.
    pub retry: Duration,
    /// The longest wait between retries.
    pub retry_max: Duration,
}

impl Default for FetchTiming {
    fn default() -> Self {
        Self { retry: Duration::from_secs(2), retry_max: Duration::from_secs(30) }
    }
}

/// Commands of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchCommand {
    /// Ask all authorities again. Nothing, while a fetch is under way.
    Fetch,
}

/// Events of a fetcher.
#[derive(Clone, Debug, PartialEq, Eq, derive_more::From)]
#[non_exhaustive]
pub enum FetchEvent {
    /// An authority has answered; that it was the authority is certain.
    Answered {
        /// Name of the authority.
        authority: Name,
        /// The KGC's signed statement about it, verified.
        statement: Vec<u8>,
        /// The response: a key must be stored; if the grant is withdrawn, a held key must be erased.
        response: KeyResponse,
    },
    /// A newer revocation list than the one named to the fetcher is held; that the KGC signed it is certain.
    RevocationList {
        /// Number of the list.
        number: u64,
        /// The list, as it was signed.
        list: Vec<u8>,
    },
    /// The KGC, or an attacker in its name, refuses. `BadCookie` and `Busy` are tried again.
    Refused(RefusalReason),
    /// All authorities have been asked that the KGC, or an attacker in its name, lists, and all of held keys.
    /// The list is not authenticated: if nobody answered, nothing is confirmed.
    Done {
        /// Number of authorities that answered, which is authenticated.
        answered: usize,
        /// Number of authorities in whose name a request was refused.
        refused: usize,
    },
    /// A peer did something wrong.
    #[from]
    Blamed {
        /// The peer.
        peer: Peer,
        /// The offence.
        offence: Offence,
    },
}
