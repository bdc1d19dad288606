//! The newest revocation list, which every role carries and passes on.

use alloc::boxed::Box;

use quiver_ainq::{
    Deployment, DronePublicKey, Error, RevocationList, SignedRevocationList, Suite, VerifiedRevocationList,
};
#[cfg(feature = "services")]
use quiver_message::{Message, RevocationQuery};

/// What is held before any list was seen.
static NONE: RevocationList = RevocationList::empty();

/// How often a peer is sent the list: it is up to 1 MiB for a question of a few bytes.
#[cfg(feature = "services")]
pub(crate) const ANSWERS: crate::token_bucket::Rate =
    crate::token_bucket::Rate { burst: 4, refill: core::time::Duration::from_secs(15) };

/// The newest verified list seen, if any. Its number never goes back.
#[derive(Debug)]
pub(crate) struct Revocations<S: Suite> {
    /// In a box, because most of the time there is none.
    newest: Option<Box<VerifiedRevocationList<S>>>,
}

impl<S: Suite> Revocations<S> {
    pub(crate) fn new() -> Self {
        Self { newest: None }
    }

    /// The number of the list held, 0 for none.
    pub(crate) fn number(&self) -> u64 {
        self.list().number
    }

    /// The list held; an empty one if none.
    pub(crate) fn list(&self) -> &RevocationList {
        self.newest.as_deref().map_or(&NONE, |list| list)
    }

    /// The signed bytes to pass on.
    pub(crate) fn signed_bytes(&self) -> Option<&[u8]> {
        self.newest.as_deref().map(VerifiedRevocationList::bytes)
    }

    #[cfg(feature = "services")]
    /// What to answer to somebody who holds the list of this number: ours, if it is newer.
    pub(crate) fn answer(&self, query: &RevocationQuery) -> Option<Message<S>> {
        let newer = self.newest.as_ref().filter(|list| list.number > query.number)?;
        Some(Message::RevocationList(quiver_message::RevocationList { list: newer.bytes().to_vec() }))
    }

    /// Whether the list names this key.
    pub(crate) fn names(&self, public: &DronePublicKey<S>) -> bool {
        self.list().names(public)
    }

    /// Takes a list from anywhere: kept if it verifies and is newer. Returns whether it was.
    pub(crate) fn offer(&mut self, deployment: &Deployment<S>, bytes: &[u8]) -> Result<bool, Error> {
        let list = SignedRevocationList::<S>::decode(bytes)?;
        // What is not newer, or does not claim to be, costs no curve arithmetic.
        if list.claimed_number() <= self.number() {
            return Ok(false);
        }
        let list = list.verify(deployment)?;
        let newer = list.number > self.number();
        if newer {
            self.newest = Some(Box::new(list));
        }
        Ok(newer)
    }
}
