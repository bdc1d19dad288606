//! The newest revocation list, which every role carries and passes on.

use alloc::boxed::Box;

use quiver_ainq::{
    Deployment, DronePublicKey, Error, RevocationList, SignedRevocationList, Suite, UnixTime,
    VerifiedRevocationList,
};
#[cfg(feature = "services")]
use quiver_message::Message;
use quiver_message::RevocationQuery;

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
    /// The most bytes of a list that are asked for; 0 where lists are taken whole or not at all.
    max_len: u32,
    /// Whether nobody is to join under a list that is past its next update.
    #[cfg(feature = "services")]
    pub(crate) refuse_stale: bool,
}

impl<S: Suite> Revocations<S> {
    pub(crate) fn new() -> Self {
        Self {
            newest: None,
            max_len: 0,
            #[cfg(feature = "services")]
            refuse_stale: false,
        }
    }

    /// Asks for lists of so many bytes at most, without their edges if need be, and takes such.
    pub(crate) fn limit(&mut self, max_len: u32) {
        self.max_len = max_len;
    }

    /// The number of the list held, 0 for none.
    pub(crate) fn number(&self) -> u64 {
        self.list().number
    }

    /// The list held; an empty one if none.
    pub(crate) fn list(&self) -> &RevocationList {
        self.newest.as_deref().map_or(&NONE, |list| list)
    }

    /// The list held with its signature.
    #[cfg(feature = "quorum")]
    pub(crate) fn newest(&self) -> Option<&VerifiedRevocationList<S>> {
        self.newest.as_deref()
    }

    /// The signed bytes to pass on.
    pub(crate) fn signed_bytes(&self) -> Option<&[u8]> {
        self.newest.as_deref().map(VerifiedRevocationList::bytes)
    }

    /// The signed bytes of the list without its edges.
    #[cfg(feature = "services")]
    pub(crate) fn leaders_only(&self) -> Option<&[u8]> {
        self.newest.as_deref().map(VerifiedRevocationList::leaders_only)
    }

    /// What to ask for.
    pub(crate) fn query(&self) -> RevocationQuery {
        RevocationQuery { number: self.number(), max_len: self.max_len }
    }

    #[cfg(feature = "services")]
    /// What to answer to somebody who holds the list of this number: ours, if it is newer, in the longest form that the asker
    /// takes.
    pub(crate) fn answer(&self, query: &RevocationQuery) -> Option<Message<S>> {
        let newer = self.newest.as_ref().filter(|list| list.number > query.number)?;
        let takes = |list: &&[u8]| u32::try_from(list.len()).is_ok_and(|len| len <= query.max_len);
        let list = if query.max_len == 0 {
            Some(newer.bytes()).filter(|_| newer.is_whole())
        } else {
            Some(newer.bytes()).filter(takes).or_else(|| Some(newer.leaders_only()).filter(takes))
        };
        Some(Message::RevocationList(quiver_message::RevocationList { list: list?.to_vec() }))
    }

    /// When the list held is stale; none without a list.
    pub(crate) fn next_update(&self) -> Option<UnixTime> {
        let list = self.list();
        (list.number > 0).then_some(list.next_update)
    }

    /// Whether a join must wait for a newer list.
    #[cfg(feature = "services")]
    pub(crate) fn forbids_joins(&self, now: UnixTime) -> bool {
        self.refuse_stale && self.list().is_stale(now)
    }

    /// Whether the list names this key's drone.
    pub(crate) fn names(&self, public: &DronePublicKey<S>) -> bool {
        self.list().names(public)
    }

    /// Takes a list from anywhere: kept if it is newer and verifies. Returns whether it was. One without its edges is kept
    /// where such are asked for; elsewhere it would take the place of what says more.
    pub(crate) fn offer(&mut self, deployment: &Deployment<S>, bytes: &[u8]) -> Result<bool, Error> {
        self.take(deployment, bytes, self.max_len > 0)
    }

    /// Takes back what was stored, in either form.
    pub(crate) fn restore(&mut self, deployment: &Deployment<S>, bytes: &[u8]) -> Result<(), Error> {
        self.take(deployment, bytes, true).map(drop)
    }

    fn take(&mut self, deployment: &Deployment<S>, bytes: &[u8], short: bool) -> Result<bool, Error> {
        // Anybody can send the same list, or an older one, again and again: those cost no curve arithmetic.
        if RevocationList::claimed_number(bytes)? <= self.number() {
            return Ok(false);
        }
        let list = SignedRevocationList::<S>::decode(bytes)?;
        if !(short || list.is_whole()) {
            return Ok(false);
        }
        self.newest = Some(Box::new(list.verify(deployment)?));
        Ok(true)
    }
}

#[cfg(all(test, feature = "services"))]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;
    use core::time::Duration;

    use quiver_ainq::instrumented::{Counting, decodings, multiplications, reset};
    use quiver_ainq::{MasterSecret, Name, Ristretto255, StrategyKind};
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::edge::EdgeTiming;
    use crate::leader::LeaderTiming;
    use crate::{
        Edge, EdgeConfig, EdgeEvent, Input, Kgcs, Leader, LeaderConfig, LeaderEvent, Machine, Now, Output,
        Peer, Via,
    };

    type S = Counting<Ristretto255>;

    const NOW: Now = Now { monotonic: Duration::from_secs(100), unix: 1_000_000 };

    /// A KGC, and the list of a number.
    struct Kgc {
        master: MasterSecret<S>,
        deployment: Deployment<S>,
        rng: ChaCha20Rng,
    }

    impl Kgc {
        fn new(seed: u64) -> Self {
            let mut rng = ChaCha20Rng::seed_from_u64(seed);
            let master = MasterSecret::<S>::generate(&mut rng);
            let deployment = Deployment::new(Name::new("test").unwrap(), master.public());
            Self { master, deployment, rng }
        }

        /// Signed by this KGC, as a message of that deployment.
        fn list(&mut self, deployment: &Deployment<S>, number: u64) -> Vec<u8> {
            let list = RevocationList {
                number,
                issued: NOW.unix,
                next_update: NOW.unix + 60,
                revoked: alloc::vec![quiver_ainq::Revoked::unknown([3; 16])],
            };
            let list = self.master.sign_revocations(deployment, list, &mut self.rng).unwrap().encode();
            Message::<S>::RevocationList(quiver_message::RevocationList { list }).encode(deployment)
        }
    }

    type Outputs<M> = Vec<Output<<M as Machine>::Event, <M as Machine>::Record>>;

    /// What it costs a machine to hear this list: multiplications and decoded points; and what it does then.
    fn heard<M: Machine>(machine: &mut M, via: Via, list: &[u8]) -> ((u64, u64), Outputs<M>) {
        reset();
        let mut rng = ChaCha20Rng::seed_from_u64(5);
        machine.handle_input(NOW, Input::Received { from: Peer(1), via, bytes: list }, &mut rng);
        let mut outputs = Vec::new();
        loop {
            match machine.poll_output() {
                Output::Timeout(_) => return ((multiplications(), decodings()), outputs),
                output => outputs.push(output),
            }
        }
    }

    /// The machine takes the genuine list 7 of the deployment, and lists cost it nothing then unless they would be news.
    fn lists_that_are_no_news_cost_nothing<M: Machine>(
        machine: &mut M,
        kgc: &mut Kgc,
        is_news: impl Fn(&M::Event) -> bool,
    ) {
        let deployment = kgc.deployment.clone();
        let brings_news = |outputs: &Outputs<M>| {
            outputs.iter().any(|output| matches!(output, Output::Event(event) if is_news(event)))
        };
        let ((multiplied, decoded), outputs) = heard(machine, Via::Peer, &kgc.list(&deployment, 7));
        assert!(multiplied > 0 && decoded > 0, "a newer one is verified");
        assert!(brings_news(&outputs));
        let mut stranger = Kgc::new(2);
        for via in [Via::Peer, Via::Group] {
            for number in [7, 6, 1, 0] {
                for list in [stranger.list(&deployment, number), kgc.list(&deployment, number)] {
                    let (cost, outputs) = heard(machine, via, &list);
                    assert_eq!((cost, outputs.len()), ((0, 0), 0), "{via:?}, number {number}");
                }
            }
        }
        let ((multiplied, _), outputs) = heard(machine, Via::Peer, &stranger.list(&deployment, 8));
        assert!(multiplied > 0 && !brings_news(&outputs));
    }

    #[test]
    fn a_list_that_is_no_news_costs_an_edge_no_curve_operation() {
        let mut kgc = Kgc::new(1);
        let config = EdgeConfig {
            deployment: kgc.deployment.clone(),
            group: None,
            token: None,
            kgcs: Kgcs::single(),
            timing: EdgeTiming::default(),
        };
        let mut edge = Edge::<S>::new(config, None).unwrap();
        let news = |event: &EdgeEvent| matches!(event, EdgeEvent::RevocationList { number: 7 });
        lists_that_are_no_news_cost_nothing(&mut edge, &mut kgc, news);
    }

    #[test]
    fn a_list_that_is_no_news_costs_a_leader_no_curve_operation() {
        let mut kgc = Kgc::new(1);
        let config = LeaderConfig {
            deployment: kgc.deployment.clone(),
            group: Name::new("alpha").unwrap(),
            token: None,
            kgcs: Kgcs::single(),
            allow: BTreeSet::new(),
            max_members: 10,
            strategy: StrategyKind::Flat,
            timing: LeaderTiming::default(),
        };
        let mut leader = Leader::<S>::new(config, []).unwrap();
        let news = |event: &LeaderEvent| matches!(event, LeaderEvent::RevocationList { number: 7 });
        lists_that_are_no_news_cost_nothing(&mut leader, &mut kgc, news);
    }
}
