//! The newest revocation list, which every role carries and passes on.

use alloc::boxed::Box;
use core::time::Duration;

use quiver_ainq::{
    Deployment, DronePublicKey, Error, RevocationStatement, SignedRevocationList, Suite, UnixTime,
    VerifiedRevocationList,
};
use quiver_message::{Message, RevocationQuery};

use crate::Rate;

/// The list held before any other was received.
static NONE: RevocationStatement = RevocationStatement::empty();

/// Rate at which a peer is sent the list: it has up to 1 MiB, for a query of a few bytes.
pub const REVOCATION_LIST_RATE: Rate = Rate { burst: 4, refill: Duration::from_secs(15) };

/// The newest verified list seen, if any. Its number never goes back.
#[derive(Default, Debug)]
pub struct Revocations<S: Suite> {
    /// Newest list, in a box, because most of the time there is none.
    newest: Option<Box<VerifiedRevocationList<S>>>,
    /// The most bytes of a list that are asked for; 0 where lists are taken whole or not at all.
    max_len: u32,
    /// True if joins are refused under a list that is past its next update.
    pub refuse_stale: bool,
}

impl<S: Suite> Revocations<S> {
    /// Makes the state without a list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for lists of so many bytes at most, without their edges if need be, and takes such.
    pub fn limit(&mut self, max_len: u32) {
        self.max_len = max_len;
    }

    /// The number of the list held, 0 for none.
    pub fn number(&self) -> u64 {
        self.list().number
    }

    /// The list held; an empty one if none.
    pub fn list(&self) -> &RevocationStatement {
        self.newest.as_deref().map_or(&NONE, |list| list)
    }

    /// The list held with its signature.
    pub fn newest(&self) -> Option<&VerifiedRevocationList<S>> {
        self.newest.as_deref()
    }

    /// The signed bytes to pass on.
    pub fn signed_bytes(&self) -> Option<&[u8]> {
        self.newest.as_deref().map(VerifiedRevocationList::bytes)
    }

    /// The signed bytes of the list without its edges.
    pub fn leaders_only(&self) -> Option<&[u8]> {
        self.newest.as_deref().map(VerifiedRevocationList::leaders_only)
    }

    /// Query for a list newer than the one held.
    pub fn query(&self) -> RevocationQuery {
        RevocationQuery { number: self.number(), max_len: self.max_len }
    }

    /// Answer to a query: the list held, if it is newer than the asker's, in the longest form that the asker
    /// takes.
    pub fn answer(&self, query: &RevocationQuery) -> Option<Message<S>> {
        let newer = self.newest.as_ref().filter(|list| list.number > query.number)?;
        let takes = |list: &&[u8]| u32::try_from(list.len()).is_ok_and(|len| len <= query.max_len);
        // §12.4: 0 for whole lists alone, or the longest form that the asker takes.
        let list = if query.max_len == 0 {
            Some(newer.bytes()).filter(|_| newer.is_whole())
        } else {
            Some(newer.bytes()).filter(takes).or_else(|| Some(newer.leaders_only()).filter(takes))
        };
        Some(Message::RevocationList(quiver_message::RevocationList { list: list?.to_vec() }))
    }

    /// Time at which the list held becomes stale; `None` without a list.
    pub fn next_update(&self) -> Option<UnixTime> {
        let list = self.list();
        (list.number > 0).then_some(list.next_update)
    }

    /// Returns true if a join must wait for a newer list.
    pub fn forbids_joins(&self, now: UnixTime) -> bool {
        self.refuse_stale && self.list().is_stale(now)
    }

    /// Returns true if the list names this key's drone.
    pub fn names(&self, public: &DronePublicKey<S>) -> bool {
        self.list().names(public)
    }

    /// Takes a list from anywhere: kept if it is newer and verifies. Returns whether it was kept. A list
    /// without its edges is kept only if such lists are asked for; elsewhere it would replace one that
    /// contains more.
    ///
    /// # Errors
    /// If the bytes are no list, or no signature of this deployment.
    pub fn offer(&mut self, deployment: &Deployment<S>, bytes: &[u8]) -> Result<bool, Error> {
        self.take(deployment, bytes, self.max_len > 0)
    }

    /// Restores a stored list, in either form.
    ///
    /// # Errors
    /// As [`offer`](Self::offer).
    pub fn restore(&mut self, deployment: &Deployment<S>, bytes: &[u8]) -> Result<(), Error> {
        self.take(deployment, bytes, true).map(drop)
    }

    fn take(&mut self, deployment: &Deployment<S>, bytes: &[u8], short: bool) -> Result<bool, Error> {
        // §12.7: anybody can send the same list, or an older one, again and again: those cost no curve
        // arithmetic.
        if RevocationStatement::claimed_number(bytes)? <= self.number() {
            return Ok(false);
        }
        let list = SignedRevocationList::<S>::decode(bytes)?;
        // §12.4: where whole lists are asked for, a shorter one never replaces a whole one.
        if !(short || list.is_whole()) {
            return Ok(false);
        }
        self.newest = Some(Box::new(list.verify(deployment)?));
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use quiver_ainq::{MasterSecret, Name, Ristretto255};
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    type S = Ristretto255;

    #[test]
    fn the_time_of_the_next_update_is_the_newest_lists_and_there_is_none_without_a_list() {
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(Name::new("test").unwrap(), master.public());
        let mut revocations = Revocations::<S>::new();
        assert_eq!(revocations.next_update(), None);
        for (number, next_update, newest) in [(1, 500, 500), (3, 900, 900), (2, 700, 900)] {
            let list = RevocationStatement { number, issued: 100, next_update, revoked: Vec::new() };
            let list = master.sign_revocations(&deployment, list, &mut rng).unwrap();
            revocations.offer(&deployment, &list.encode()).unwrap();
            assert_eq!(revocations.next_update(), Some(newest), "after list {number}");
        }
    }
}
