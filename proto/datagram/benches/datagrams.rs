//! Benchmarks of datagrams: what a frame of telemetry costs to seal and to open, on one core.
//!
//! `telemetry` is a MAVLink frame of the size of ATTITUDE (40 bytes) from a caller to the bytes on the air and
//! from there to the receiver's event. `seal and open, of 200` takes as many senders in turn. `command` is
//! signed and verified. `forgery` is what a datagram costs whose tag does not hold.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use quiver_ainq::{
    Deployment, DroneKeypair, Epoch, EpochKeys, GroupContext, Identity, Label, Leadership, MasterSecret,
    Ristretto255 as S, Role, Roster, Slot, StrategyKind, Times, TrafficKey,
};
use quiver_datagram::{Config, Datagrams, Event, Payload, Priority};
use quiver_testbed::{issue_keypair, name};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

const NOW: Duration = Duration::from_secs(1);
const PAYLOAD: [u8; 40] = [7; 40];
const EPOCH: Epoch = Epoch { term: 1 << 16, counter: 1 };

struct Group {
    deployment: Deployment<S>,
    traffic: TrafficKey,
    keypair: DroneKeypair<S>,
    rng: ChaCha20Rng,
}

impl Group {
    fn new() -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(name("bench"), master.public());
        let mut drone = |serial, role| {
            let (named, groups) = (name("drone"), vec![name("alpha")]);
            let identity = Identity { serial: [serial; 16], name: named, role, groups, not_after: 1 << 40 };
            issue_keypair(&master, &deployment, &identity, &mut rng)
        };
        let leader = drone(1, Role::Leader { group: name("alpha"), ordinal: 0 });
        let keypair = drone(2, Role::Edge);
        let context = GroupContext {
            deployment: deployment.clone(),
            group: name("alpha"),
            leader: leader.public().clone(),
        };
        let times = Times { issued_at: 1, valid_until: 1_000, revocation_number: 0 };
        let (leadership, output) = Leadership::open_term(
            context,
            &leader,
            Roster::new(),
            &BTreeMap::new(),
            EPOCH.term,
            [0; 32],
            &times,
            StrategyKind::Flat,
            &mut rng,
        )
        .expect("a term");
        let traffic = leadership.group_key().traffic(&output.digest);
        Self { deployment, traffic, keypair, rng }
    }

    fn member(&mut self, slot: Slot) -> Datagrams<S> {
        let config = Config { announce_every: Duration::from_secs(1_000_000), ..Config::default() };
        let mut datagrams = Datagrams::new(config, self.deployment.clone());
        let keys = EpochKeys {
            epoch: EPOCH,
            digest: [1; 32],
            traffic: self.traffic.clone(),
            slot,
            boot_no: 1,
            leader: self.keypair.public().handle(),
            slots: 1_024,
            signer: Some(self.keypair.public().clone()),
            continues: None,
            valid_for: Duration::from_secs(1_000_000),
        };
        datagrams.set_epoch(NOW, keys, &mut self.rng);
        datagrams
    }

    fn answer(&mut self, datagrams: &mut Datagrams<S>) -> usize {
        let mut received = 0;
        while let Some(event) = datagrams.poll_event() {
            match event {
                Event::SignatureWanted(request) => {
                    let signature = self.keypair.sign(
                        &self.deployment,
                        Label::Datagram,
                        &request.statement,
                        &mut self.rng,
                    );
                    datagrams.provide_signature(NOW, request.id, &signature);
                }
                Event::SignerAnnounced { slot, drone } => {
                    datagrams.allow_signer(NOW, slot, &drone.handle());
                }
                Event::Received { .. } => received += 1,
                _ => {}
            }
        }
        received
    }
}

fn payload(priority: Priority, sign: bool) -> Payload {
    Payload { bytes: PAYLOAD.to_vec(), priority, sign }
}

fn seal(datagrams: &mut Datagrams<S>) -> Vec<u8> {
    datagrams.send(NOW, payload(Priority::Telemetry, false)).expect("open");
    datagrams.poll_datagram(NOW).expect("nothing holds it up")
}

/// Announces a sender to a receiver.
fn introduce(group: &mut Group, from: &mut Datagrams<S>, to: &mut Datagrams<S>) {
    from.send(NOW, payload(Priority::Command, true)).expect("open");
    group.answer(from);
    while let Some(datagram) = from.poll_datagram(NOW) {
        to.handle_datagram(NOW, &datagram);
        group.answer(from);
        group.answer(to);
    }
}

fn datagrams(criterion: &mut Criterion) {
    let mut group = Group::new();
    let mut receiver = group.member(0);
    let mut senders: Vec<_> = (1..=250).map(|slot| group.member(slot)).collect();
    for sender in &mut senders {
        introduce(&mut group, sender, &mut receiver);
    }
    let mut telemetry = criterion.benchmark_group("telemetry");
    telemetry.throughput(Throughput::Elements(1));
    telemetry.bench_function("seal", |bencher| bencher.iter(|| black_box(seal(&mut senders[0]))));
    telemetry.bench_function("seal and open", |bencher| {
        bencher.iter(|| {
            let datagram = seal(&mut senders[1]);
            receiver.handle_datagram(NOW, &datagram);
            black_box(receiver.poll_event().expect("received"))
        });
    });
    let mut turn = 0;
    telemetry.bench_function("seal and open, of 200", |bencher| {
        bencher.iter(|| {
            turn = (turn + 1) % 200;
            let datagram = seal(&mut senders[1 + turn]);
            receiver.handle_datagram(NOW, &datagram);
            black_box(receiver.poll_event().expect("received"))
        });
    });
    telemetry.bench_function("forgery", |bencher| {
        let mut datagram = seal(&mut senders[240]);
        datagram[10] ^= 1;
        bencher.iter(|| receiver.handle_datagram(NOW, black_box(&datagram)));
    });
    telemetry.bench_function("replay", |bencher| {
        let datagram = seal(&mut senders[241]);
        receiver.handle_datagram(NOW, &datagram);
        while receiver.poll_event().is_some() {}
        bencher.iter(|| receiver.handle_datagram(NOW, black_box(&datagram)));
    });
    telemetry.finish();
    let mut command = criterion.benchmark_group("command");
    command.bench_function("seal, sign, open and verify", |bencher| {
        bencher.iter(|| {
            let sender = &mut senders[242];
            sender.send(NOW, payload(Priority::Command, true)).expect("open");
            group.answer(sender);
            let datagram = sender.poll_datagram(NOW).expect("signed");
            receiver.handle_datagram(NOW, &datagram);
            assert_eq!(group.answer(&mut receiver), 1);
        });
    });
    command.finish();
}

criterion_group!(benches, datagrams);
criterion_main!(benches);
