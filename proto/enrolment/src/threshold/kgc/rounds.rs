//! Signing rounds that a KGC of a quorum has open: in memory alone, each good for one signature share.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{KgcId, Suite, VerifiedRequest};
use quiver_machine::Peer;

use super::master::SignOnce;
use crate::threshold::message::EnrolShare;

/// Time that a drone may take between commitment and signature.
pub(super) const LIFETIME: Duration = Duration::from_secs(60);
/// Rounds open for one token: a drone that lost the thread, a gateway that repeats what passes through it.
pub(super) const MAX_PER_TOKEN: usize = 4;
/// Rounds open in all, about a kilobyte each. A drone that found enough other KGCs leaves one behind.
pub(super) const MAX_OPEN: usize = 8192;

/// A commitment that was given, and the one share that may be made with it.
pub(super) struct CommittedRound<S: Suite> {
    /// The peer of the round: no other can use it up.
    pub(super) peer: Peer,
    pub(super) request: VerifiedRequest<S>,
    pub(super) sign: SignOnce<S>,
}

/// A round that was opened, until its time is over.
struct OpenRound<S: Suite> {
    number: u64,
    /// The round, until it is taken.
    round: Option<CommittedRound<S>>,
    /// Once it was signed for: the package, and the share that was given.
    answer: Option<(PackageCommitments, EnrolShare)>,
}

/// Commitments of a package by KGC.
pub(super) type PackageCommitments = Vec<(KgcId, Vec<u8>)>;

/// A round is one peer's about one request. A token is bound to one request, so the latter names the token as
/// well.
type RoundKey = (Peer, [u8; 32]);

/// The open rounds.
pub(super) struct OpenRounds<S: Suite> {
    open: BTreeMap<RoundKey, OpenRound<S>>,
    /// Peers with an open round about a request, the oldest first.
    holders: BTreeMap<[u8; 32], VecDeque<Peer>>,
    /// End of each, in the order in which they began; also of rounds that are over.
    ends: VecDeque<(Duration, u64, RoundKey)>,
    next: u64,
}

impl<S: Suite> OpenRounds<S> {
    pub(super) fn new() -> Self {
        Self { open: BTreeMap::new(), holders: BTreeMap::new(), ends: VecDeque::new(), next: 0 }
    }

    /// Opens a round. An earlier one of the same peer for the same request is over; if there are too many,
    /// the oldest is.
    pub(super) fn open(&mut self, now: Duration, request: [u8; 32], round: CommittedRound<S>) {
        let key = (round.peer, request);
        self.remove(&key);
        // §3.7: at most 4 open commitments for one token, where the oldest goes.
        let holders = self.holders.entry(request).or_default();
        let oldest = (holders.len() >= MAX_PER_TOKEN).then(|| holders.front().copied()).flatten();
        if let Some(oldest) = oldest {
            self.remove(&(oldest, request));
        }
        self.holders.entry(request).or_default().push_back(round.peer);
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.open.insert(key, OpenRound { number, round: Some(round), answer: None });
        self.ends.push_back((now.saturating_add(LIFETIME), number, key));
        // §3.7: and 8,192 in all, where the oldest goes.
        while self.open.len() > MAX_OPEN || self.ends.len() > 2 * MAX_OPEN {
            let Some((_, number, key)) = self.ends.pop_front() else { break };
            self.end(number, &key);
        }
    }

    /// Takes the round that was opened for this peer and request: it is over, whatever its result.
    pub(super) fn take(&mut self, peer: Peer, request: &[u8; 32]) -> Option<CommittedRound<S>> {
        // §3.7: a commitment is good for one share.
        self.open.get_mut(&(peer, *request))?.round.take()
    }

    /// Remembers the share that was given for this package, as long as the round would have been open: the
    /// message may get lost, and another round would give another key.
    pub(super) fn answered(
        &mut self,
        peer: Peer,
        request: [u8; 32],
        parts: &PackageCommitments,
        share: EnrolShare,
    ) {
        if let Some(open) = self.open.get_mut(&(peer, request)) {
            open.answer = Some((parts.clone(), share));
        }
    }

    /// The share that was given to this peer for this very package.
    pub(super) fn answer(
        &self,
        peer: Peer,
        request: &[u8; 32],
        parts: &PackageCommitments,
    ) -> Option<&EnrolShare> {
        // §3.7: the same package gets the same share again, byte for byte.
        let (package, share) = self.open.get(&(peer, *request))?.answer.as_ref()?;
        (package == parts).then_some(share)
    }

    /// Ends what has been open for too long.
    pub(super) fn expire(&mut self, now: Duration) {
        while let Some((end, number, key)) = self.ends.front().copied() {
            if end > now {
                break;
            }
            self.ends.pop_front();
            self.end(number, &key);
        }
    }

    /// Time at which to call [`expire`](Self::expire) next.
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.ends.front().filter(|_| !self.open.is_empty()).map(|(end, ..)| *end)
    }

    /// Ends the rounds of a disconnected peer.
    pub(super) fn disconnected(&mut self, peer: Peer) {
        // §3.7: a commitment ends with the connection that it was given to.
        let keys: Vec<RoundKey> =
            self.open.range((peer, [0; 32])..=(peer, [255; 32])).map(|(key, _)| *key).collect();
        for key in keys {
            self.remove(&key);
        }
    }

    /// Ends all: the share that they are for is replaced.
    pub(super) fn clear(&mut self) {
        *self = Self { next: self.next, ..Self::new() };
    }

    /// Number of rounds that wait for their package.
    pub(super) fn len(&self) -> usize {
        self.open.values().filter(|open| open.round.is_some()).count()
    }

    fn end(&mut self, number: u64, key: &RoundKey) {
        if self.open.get(key).is_some_and(|open| open.number == number) {
            self.remove(key);
        }
    }

    fn remove(&mut self, key: &RoundKey) {
        if self.open.remove(key).is_none() {
            return;
        }
        let (peer, request) = key;
        if let Some(holders) = self.holders.get_mut(request) {
            holders.retain(|holder| holder != peer);
            if holders.is_empty() {
                self.holders.remove(request);
            }
        }
    }
}

impl<S: Suite> core::fmt::Debug for OpenRounds<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Rounds").field("open", &self.open.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;

    use quiver_ainq::{
        Deployment, EnrolmentRequest, MasterSecret, Name, OperatorSecretKey, Ristretto255, Role, TokenGrant,
    };
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    type S = Ristretto255;

    const NOW: Duration = Duration::from_secs(1000);
    const PEER: Peer = Peer(1);

    fn request() -> VerifiedRequest<S> {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let name = |text| Name::new(text).unwrap();
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(name("test"), master.public());
        let operator = OperatorSecretKey::generate(&mut rng);
        let (role, groups) = (Role::Edge, alloc::vec![name("alpha")]);
        let grant = TokenGrant { name: name("wren"), role, groups, not_after: 2000, expiry: 2000 };
        let token = operator.issue(&deployment, grant, &mut rng).unwrap();
        let (request, _) = EnrolmentRequest::create(&deployment, &token, &[1], [7; 16], &mut rng).unwrap();
        request.verify(&deployment, &[operator.public()], 1, 1000).unwrap()
    }

    fn digest(number: usize) -> [u8; 32] {
        let mut digest = [0; 32];
        digest[24..].copy_from_slice(&number.to_be_bytes());
        digest
    }

    /// Opens rounds of one drone's request, under whatever digest.
    struct Bench {
        rounds: OpenRounds<S>,
        request: VerifiedRequest<S>,
    }

    impl Bench {
        fn new() -> Self {
            Self { rounds: OpenRounds::new(), request: request() }
        }

        fn open(&mut self, peer: Peer, number: usize) {
            let sign: SignOnce<S> = Box::new(|_, _| Err(quiver_quorum::Error::WrongQuorum));
            let round = CommittedRound { peer, request: self.request.clone(), sign };
            self.rounds.open(NOW, digest(number), round);
        }

        fn takes(&mut self, peer: Peer, number: usize) -> bool {
            self.rounds.take(peer, &digest(number)).is_some()
        }
    }

    #[test]
    fn as_many_rounds_as_the_bound_says_are_open_and_with_one_more_the_oldest_is_over() {
        let mut bench = Bench::new();
        (0..MAX_OPEN).for_each(|number| bench.open(PEER, number));
        assert_eq!(bench.rounds.len(), MAX_OPEN);
        bench.open(PEER, MAX_OPEN);
        assert_eq!(bench.rounds.len(), MAX_OPEN);
        assert!(!bench.takes(PEER, 0) && bench.takes(PEER, 1) && bench.takes(PEER, MAX_OPEN));
    }

    #[test]
    fn rounds_that_are_begun_anew_end_no_other_before_they_are_twice_as_many_as_may_be_open() {
        let mut bench = Bench::new();
        bench.open(PEER, 0);
        (1..2 * MAX_OPEN).for_each(|_| bench.open(PEER, 1));
        assert_eq!(bench.rounds.len(), 2);
        bench.open(PEER, 1);
        assert_eq!((bench.rounds.len(), bench.rounds.ends.len()), (1, 2 * MAX_OPEN));
        assert!(!bench.takes(PEER, 0) && bench.takes(PEER, 1));
    }

    #[test]
    fn four_peers_have_a_round_about_a_request_and_a_fifth_takes_the_place_of_the_first() {
        let mut bench = Bench::new();
        (1..=4).for_each(|peer| bench.open(Peer(peer), 7));
        assert_eq!(bench.rounds.len(), 4);
        bench.open(Peer(5), 7);
        assert_eq!(bench.rounds.len(), 4);
        assert!(!bench.takes(Peer(1), 7) && (2..=5).all(|peer| bench.takes(Peer(peer), 7)));
    }

    #[test]
    fn a_round_is_over_a_minute_after_it_was_opened() {
        let mut bench = Bench::new();
        bench.open(PEER, 0);
        assert_eq!(bench.rounds.deadline(), Some(NOW + LIFETIME));
        bench.rounds.expire(NOW + LIFETIME - Duration::from_nanos(1));
        assert_eq!(bench.rounds.len(), 1);
        bench.rounds.expire(NOW + LIFETIME);
        assert_eq!((bench.rounds.len(), bench.rounds.deadline()), (0, None));
    }
}
