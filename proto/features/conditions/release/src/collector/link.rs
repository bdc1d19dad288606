//! A connection to a KGC: its challenge, and when to retry (docs/protocol.md §4.1).

use core::time::Duration;

use quiver_ainq::KgcId;
use quiver_delivery::client::Challenge;
use quiver_machine::{Backoff, Peer};
use quiver_message::{DeliveryChallenge, DeliveryOffer, Nonce};

/// Time for which a challenge is used: less than the lifetime of a KGC's cookies.
const USED_FOR: Duration = Duration::from_secs(100);

/// Stage of a KGC.
#[derive(Clone, Copy, Debug)]
pub(super) enum CollectionStage {
    /// No challenge is held.
    Fresh,
    /// Asked for one, until the deadline.
    Greeting { nonce: Nonce, deadline: Duration },
    /// A challenge is held.
    Open(OpenChallenge),
}

/// A challenge, and what came with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenChallenge {
    pub(super) challenge: Challenge,
    pub(super) kgc: KgcId,
    pub(super) master: [u8; 32],
    pub(super) version: u32,
    until: Duration,
}

/// A connected KGC.
#[derive(Debug)]
pub(super) struct KgcLink {
    pub(super) peer: Peer,
    pub(super) stage: CollectionStage,
    /// The KGC that it last claimed to be.
    pub(super) kgc: Option<KgcId>,
    pub(super) backoff: Backoff,
    /// Not to be asked anything before.
    pub(super) rests_until: Duration,
}

impl KgcLink {
    pub(super) fn new(peer: Peer, backoff: Backoff) -> Self {
        Self { peer, stage: CollectionStage::Fresh, kgc: None, backoff, rests_until: Duration::ZERO }
    }

    /// Takes a challenge, if it answers the hello under way. Returns whether it did.
    pub(super) fn challenged(&mut self, now: Duration, message: &DeliveryChallenge) -> bool {
        let DeliveryOffer::KeyShares { kgc, master, version } = message.offer else { return false };
        let CollectionStage::Greeting { nonce, .. } = self.stage else { return false };
        // §4.1: a challenge repeats the nonce of the hello that it answers.
        if nonce != message.nonce {
            return false;
        }
        // §4.3: the challenge offers j, H(MPK) and the version of the shares; nothing of it is authenticated.
        self.kgc = Some(kgc);
        self.backoff.reset();
        let challenge = Challenge { nonce, cookie: message.cookie };
        self.stage =
            CollectionStage::Open(OpenChallenge { challenge, kgc, master, version, until: now + USED_FOR });
        true
    }

    /// The challenge, if it is young enough.
    pub(super) fn open(&mut self, now: Duration) -> Option<OpenChallenge> {
        match self.stage {
            CollectionStage::Open(open) if now < open.until => Some(open),
            // §14: the KGC's cookie ends after 120 s.
            CollectionStage::Open(_) => {
                self.stage = CollectionStage::Fresh;
                None
            }
            _ => None,
        }
    }
}
