//! Benchmarks of an enrolment for all participants, without a network: a single KGC, and quorums.
//!
//! One thread plays the drone and every KGC, so the time is the sum of what all of them compute. KGCs are
//! asked all at once: those beyond the threshold check the request and commit themselves as well.

#[path = "enrolment/threshold.rs"]
mod threshold;

use std::collections::{BTreeMap, VecDeque};
use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion, criterion_group, criterion_main};
use quiver_ainq::{
    Deployment, IssuedToken, MasterSecret, Name, OperatorSecretKey, Ristretto255, Role, TokenGrant,
};
use quiver_crypto::Secret;
use quiver_enrolment::{Kgc, KgcConfig, KgcSigningKey, Kgcs};
use quiver_group::{Edge, EdgeConfig};
use quiver_machine::{Destination, Input, Machine, Now, Output, Peer, Route, Via};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

type S = Ristretto255;

const NOW: Now = Now { monotonic: Duration::from_secs(10), unix: 1_798_761_600 };

/// Makes the keys of all KGCs, by their numbers, of a master secret.
type MakeKeys = dyn Fn(MasterSecret<S>, &Deployment<S>, &mut ChaCha20Rng) -> Vec<KgcSigningKey<S>>;

/// KGCs, and tokens for drones that enrol with them.
struct Site {
    rng: ChaCha20Rng,
    deployment: Deployment<S>,
    operator: OperatorSecretKey<S>,
    kgcs: Vec<Kgc<S>>,
    drones: u64,
}

impl Site {
    fn new(make_keys: &MakeKeys) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(Name::new("bench").unwrap(), master.public());
        let operator = OperatorSecretKey::generate(&mut rng);
        let masters = make_keys(master, &deployment, &mut rng);
        let config = |(id, master)| KgcConfig {
            deployment: deployment.clone(),
            master,
            id,
            operators: vec![operator.public()],
            cookie_key: Secret::new([7; 32]),
            revocation_validity: 86_400,
        };
        let kgcs = (1..).zip(masters).map(|each| Kgc::new(config(each), []).unwrap()).collect();
        Self { rng, deployment, operator, kgcs, drones: 0 }
    }

    fn token(&mut self) -> IssuedToken<S> {
        self.drones += 1;
        let grant = TokenGrant {
            name: Name::new(&format!("drone-{}", self.drones)).unwrap(),
            role: Role::Edge,
            groups: vec![Name::new("alpha").unwrap()],
            not_after: NOW.unix + 10_000_000,
            expiry: NOW.unix + 1_000_000,
        };
        self.operator.issue(&self.deployment, grant, &mut self.rng).unwrap()
    }

    /// Enrols an edge with the token.
    fn enrol(&mut self, token: IssuedToken<S>) -> Edge<S> {
        let ids = (1..=self.kgcs.len() as u16).collect();
        let config = EdgeConfig {
            kgcs: Kgcs::quorum(ids),
            ..EdgeConfig::new(self.deployment.clone(), None, Some(token))
        };
        let mut drone = Edge::new(config, None).unwrap();
        // The drone's handle of a KGC is its place; the KGC's of the drone is the drone's number.
        let here = Peer(self.drones);
        let mut queue = VecDeque::new();
        for place in 0..self.kgcs.len() {
            let connected = Input::Connected { peer: Peer(place as u64), route: Route::Kgc };
            drone.handle_input(NOW, connected, &mut self.rng);
        }
        loop {
            let mut sent: BTreeMap<usize, Vec<Vec<u8>>> = BTreeMap::new();
            drain(&mut drone, |to, bytes| sent.entry(to.0 as usize).or_default().push(bytes));
            for (place, messages) in sent {
                for bytes in messages {
                    let received = Input::Received { from: here, via: Via::Peer, bytes: &bytes };
                    self.kgcs[place].handle_input(NOW, received, &mut self.rng);
                    drain(&mut self.kgcs[place], |_, bytes| queue.push_back((place, bytes)));
                }
            }
            let Some((place, bytes)) = queue.pop_front() else { break };
            let received = Input::Received { from: Peer(place as u64), via: Via::Peer, bytes: &bytes };
            drone.handle_input(NOW, received, &mut self.rng);
        }
        for kgc in &mut self.kgcs {
            kgc.handle_input(NOW, Input::Disconnected { peer: here }, &mut self.rng);
        }
        assert!(drone.keypair().is_some());
        drone
    }
}

fn drain<M: Machine>(machine: &mut M, mut send: impl FnMut(Peer, Vec<u8>)) {
    loop {
        match machine.poll_output() {
            Output::Timeout(_) => return,
            Output::Transmit { to: Destination::Peer(to), payload } => send(to, payload),
            _ => {}
        }
    }
}

/// Measures an enrolment with KGCs that have these keys.
fn measure(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, make_keys: &MakeKeys) {
    let site = std::cell::RefCell::new(Site::new(make_keys));
    group.bench_function(name, |bencher| {
        bencher.iter_batched(
            || site.borrow_mut().token(),
            |token| black_box(site.borrow_mut().enrol(token)),
            BatchSize::PerIteration,
        );
    });
}

fn enrolments(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("enrolment");
    group.sample_size(20);
    measure(&mut group, "single", &|master, _, _| vec![master.into()]);
    threshold::measure_quorums(&mut group);
}

criterion_group!(benches, enrolments);
criterion_main!(benches);
