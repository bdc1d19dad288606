//! Costs of revocation lists at an edge and a leader that are sent them again and again.

use std::time::Duration;

use quiver_ainq::instrumented::{Counting, decodings, multiplications, reset};
use quiver_ainq::{Deployment, MasterSecret, Name, RevocationStatement, Ristretto255};
use quiver_group::{Edge, EdgeConfig, EdgeEvent, Leader, LeaderConfig, LeaderEvent};
use quiver_machine::{Input, Machine, Now, Output, Peer, Via};
use quiver_message::Message;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

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
        let list = RevocationStatement {
            number,
            issued: NOW.unix,
            next_update: NOW.unix + 60,
            revoked: vec![quiver_ainq::Revoked::unknown([3; 16])],
        };
        let list = self.master.sign_revocations(deployment, list, &mut self.rng).unwrap().encode();
        Message::<S>::RevocationList(quiver_message::RevocationList { list }).encode(deployment)
    }
}

type Outputs<M> = Vec<Output<<M as Machine>::Event, <M as Machine>::Record>>;

/// Costs of receiving this list at a machine: multiplications and decoded points; and its outputs.
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

/// The machine takes the genuine list 7 of the deployment, and lists cost it nothing then unless they would
/// be news.
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
    let config = EdgeConfig::new(kgc.deployment.clone(), None, None);
    let mut edge = Edge::<S>::new(config, None).unwrap();
    let news = |event: &EdgeEvent| matches!(event, EdgeEvent::RevocationList { number: 7 });
    lists_that_are_no_news_cost_nothing(&mut edge, &mut kgc, news);
}

#[test]
fn a_list_that_is_no_news_costs_a_leader_no_curve_operation() {
    let mut kgc = Kgc::new(1);
    let config = LeaderConfig {
        max_members: 10,
        ..LeaderConfig::new(kgc.deployment.clone(), Name::new("alpha").unwrap(), None)
    };
    let mut leader = Leader::<S>::new(config, []).unwrap();
    let news = |event: &LeaderEvent| matches!(event, LeaderEvent::RevocationList { number: 7 });
    lists_that_are_no_news_cost_nothing(&mut leader, &mut kgc, news);
}
