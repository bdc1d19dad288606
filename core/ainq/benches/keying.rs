//! Benchmarks of keying a group: costs of the leader and an edge, next to the arithmetic that they cannot
//! avoid.
//!
//! `term_open/2000` and `term_open/20000` open a term whose members' Y are known, and have beside them
//! * `dalek`: the multiplications alone, made by curve25519-dalek, a loop over ristretto points whose
//!   products are encoded with one inversion. This over `operation` is what the vector ladder wins for a
//!   leader, all hashing and signing included.
//! * `reference`: the unavoidable operations on this machine: one multiplication in lock-step, one point
//!   addition, one encoding out of a batch, and the hashing of one member (a context, HKDF-Extract, the
//!   authentication key, a wrap, a step). `operation` over this is the overhead of everything else.

#[path = "keying/enrolment.rs"]
mod enrolment;
#[path = "keying/tree.rs"]
mod tree;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use curve25519_dalek::ristretto::RistrettoPoint;
use quiver_ainq::{
    Batch, Deployment, DroneKeypair, Element, EpochOutput, EpochPart, GroupContext, GroupMembership,
    Identity, Join, Label, Leadership, MasterSecret, Name, RevocationStatement, Ristretto255, Role, Roster,
    SecretScalar, SecretValue, Signature, SignedItem, Slot, SparePair, SpareStatement, StrategyKind, Suite,
    Times, verify_batch_implicit,
};
use quiver_crypto::canonical::Writer;
use quiver_crypto::{Hasher, extract, prf};
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};

const NOW: u64 = 1_700_000_000;
const TIMES: Times = Times { issued_at: NOW, valid_until: NOW + 3600, revocation_number: 0 };

struct World<S: Suite> {
    rng: ChaCha20Rng,
    deployment: Deployment<S>,
    group: Name,
    master: MasterSecret<S>,
    leader: DroneKeypair<S>,
}

/// Messages of a newcomer: its key, E_now, the signed join and the signed spare point.
struct Newcomer<S: Suite> {
    keypair: DroneKeypair<S>,
    secret: SecretScalar<S>,
    ephemeral: Element<S>,
    join_message: Vec<u8>,
    join: Signature<S>,
    spare: SpareStatement<S>,
    spare_pair: SparePair<S>,
}

impl<S: Suite> World<S> {
    fn new() -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let (master, group) = (MasterSecret::generate(&mut rng), Name::new("alpha").unwrap());
        let deployment = Deployment::new(Name::new("bench").unwrap(), master.public());
        let role = Role::Leader { group: group.clone(), ordinal: 1 };
        let leader = enrol(&deployment, &master, role, &mut rng);
        Self { rng, deployment, group, master, leader }
    }

    fn newcomer(&mut self) -> Newcomer<S> {
        let keypair = enrol(&self.deployment, &self.master, Role::Edge, &mut self.rng);
        let secret = SecretScalar::<S>::generate(&mut self.rng);
        let ephemeral = secret.public();
        let mut writer = Writer::new();
        writer
            .lp(self.group.as_bytes())
            .fixed(&keypair.public().encode())
            .fixed(&[0; 32])
            .fixed(ephemeral.as_bytes());
        let join_message = writer.finish();
        let join = keypair.sign(&self.deployment, Label::Join, &join_message, &mut self.rng);
        let spare_pair = SparePair::generate(1, &mut self.rng);
        let spare = spare_pair.statement(&keypair, &self.deployment, &self.group, &mut self.rng);
        Newcomer { keypair, secret, ephemeral, join_message, join, spare, spare_pair }
    }

    fn newcomers(&mut self, count: usize) -> Vec<Newcomer<S>> {
        (0..count).map(|_| self.newcomer()).collect()
    }

    fn context(&self) -> GroupContext<S> {
        let (deployment, leader) = (self.deployment.clone(), self.leader.public().clone());
        GroupContext { deployment, group: self.group.clone(), leader }
    }

    /// Opens a term; the roster is prepared, as a leader's is.
    fn open(
        &mut self,
        strategy: StrategyKind,
        roster: Roster<S>,
        spares: &BTreeMap<Slot, (u64, Element<S>)>,
    ) -> (Leadership<S>, EpochOutput<S>) {
        let context = self.context();
        let rng = &mut self.rng;
        Leadership::open_term(
            context,
            &self.leader,
            roster,
            spares,
            1 << 16 | 1,
            [0; 32],
            &TIMES,
            strategy,
            rng,
        )
        .unwrap()
    }

    fn rekey(&mut self, leadership: &mut Leadership<S>, batch: Batch<S>) -> EpochOutput<S> {
        leadership.rekey(&self.leader, batch, &TIMES, &mut self.rng).unwrap()
    }

    /// Admits newcomers as a leader does: their Y, their signatures in one batch, one epoch.
    fn admit(&mut self, leadership: &mut Leadership<S>, newcomers: &[Newcomer<S>]) -> EpochOutput<S> {
        let mut implicit = Vec::with_capacity(2 * newcomers.len());
        let spare_messages: Vec<Vec<u8>> =
            newcomers.iter().map(|n| n.spare.message(&self.group, n.keypair.public())).collect();
        let mut items = Vec::with_capacity(2 * newcomers.len());
        for (newcomer, spare_message) in newcomers.iter().zip(&spare_messages) {
            let public = newcomer.keypair.public();
            let y = public.implicit(&self.deployment).unwrap();
            implicit.extend([y, y]);
            let (message, signature) = (newcomer.join_message.as_slice(), &newcomer.join);
            items.push(SignedItem { public, label: Label::Join, message, signature });
            let (message, signature) = (spare_message.as_slice(), &newcomer.spare.signature);
            items.push(SignedItem { public, label: Label::Spare, message, signature });
        }
        assert!(verify_batch_implicit(&self.deployment, &items, &implicit, &mut self.rng));
        let joins = newcomers.iter().zip(implicit.iter().step_by(2)).map(|(newcomer, y)| {
            Join::with_implicit(newcomer.keypair.public().clone(), *y, newcomer.ephemeral).unwrap()
        });
        let batch = Batch { joins: joins.collect(), ..Batch::default() };
        self.rekey(leadership, batch)
    }

    fn formed(&mut self, count: usize) -> (Leadership<S>, Vec<Newcomer<S>>, EpochOutput<S>) {
        let (mut leadership, _) = self.open(StrategyKind::Flat, Roster::new(), &BTreeMap::new());
        let newcomers = self.newcomers(count);
        let output = self.admit(&mut leadership, &newcomers);
        (leadership, newcomers, output)
    }
}

fn enrol<S: Suite>(
    deployment: &Deployment<S>,
    master: &MasterSecret<S>,
    role: Role,
    rng: &mut ChaCha20Rng,
) -> DroneKeypair<S> {
    let mut serial = [0; 16];
    rng.fill_bytes(&mut serial);
    let name = Name::new(&format!("drone-{:016x}", rng.next_u64())).unwrap();
    let identity = Identity {
        serial,
        name,
        role,
        groups: vec![Name::new("alpha").unwrap()],
        not_after: NOW + 1_000_000,
    };
    let secret = SecretValue::generate(rng);
    let partial = master.issue_partial_key(deployment, &identity, &secret.public(), rng);
    partial.verify(deployment, &identity, &secret).unwrap()
}

fn term_open(c: &mut Criterion) {
    for count in [2000, 20_000] {
        term_open_of(c, count);
    }
}

fn term_open_of(c: &mut Criterion, count: usize) {
    let mut group = c.benchmark_group(format!("term_open/{count}"));
    group.sample_size(10);
    let mut world = World::<Ristretto255>::new();
    let (leadership, newcomers, _) = world.formed(count);
    let spares: BTreeMap<_, _> =
        (0..).zip(newcomers.iter().map(|newcomer| (1, newcomer.spare.point))).collect();
    let roster = leadership.roster().clone();
    group.bench_function("operation", |b| {
        b.iter_batched(
            || roster.clone(),
            |roster| world.open(StrategyKind::Flat, roster, &spares),
            BatchSize::PerIteration,
        );
    });
    let points: Vec<RistrettoPoint> = newcomers.iter().map(|n| *n.keypair.implicit().point()).collect();
    let others: Vec<RistrettoPoint> = newcomers.iter().map(|n| *n.spare.point.point()).collect();
    let scalar = *SecretScalar::<Ristretto255>::generate(&mut world.rng).expose();
    group.bench_function("dalek", |b| {
        b.iter(|| {
            let products: Vec<_> = points.iter().map(|point| black_box(scalar) * point).collect();
            RistrettoPoint::double_and_compress_batch(&products)
        });
    });
    let public = newcomers[0].keypair.public().encode();
    group.bench_function("reference", |b| {
        b.iter(|| {
            let sums: Vec<_> = points.iter().zip(&others).map(|(a, b)| a + b).collect();
            let compressed = RistrettoPoint::double_and_compress_batch(&sums);
            let us: Vec<[u8; 32]> = compressed.iter().map(|point| point.to_bytes()).collect();
            let secrets = quiver_simd::x25519::multiply(black_box(&[7; 32]), &us);
            for (t, sum) in secrets.iter().zip(&compressed) {
                hash_one_member(&public, t, sum.as_bytes());
            }
        });
    });
    group.finish();
}

/// The hashing that one member costs when a term opens.
fn hash_one_member(public: &[u8], t: &[u8; 32], point: &[u8; 32]) {
    let context = Hasher::new("quiver/1 pair").fixed(point).fixed(public).fixed(public).fixed(point).finish();
    let chain = extract(&context, t);
    let auth = prf(&chain, Ristretto255::ID, "auth", &[]);
    let pad = prf(&chain, Ristretto255::ID, "wrap", &[&context, &[0; 4]]);
    let next = prf(&chain, Ristretto255::ID, "step", &[]);
    black_box((auth, pad, next));
}

/// Measures a re-key until the broadcast is ready; the steps that are owed then are made by `settle`, and
/// measured on their own.
fn rekey_expiry(c: &mut Criterion) {
    fn expiry<S: Suite>(c: &mut Criterion, name: &str) {
        let mut world = World::<S>::new();
        let (leadership, _, _) = world.formed(2000);
        let (leadership, mut world) = (RefCell::new(leadership), world);
        let settle = || leadership.borrow_mut().settle();
        c.bench_function(&format!("{name}/2000"), |b| {
            let rekey = |()| world.rekey(&mut leadership.borrow_mut(), Batch::default());
            b.iter_batched(settle, rekey, BatchSize::PerIteration);
        });
        c.bench_function(&format!("{name}_settling/2000"), |b| {
            let rekey = || drop(world.rekey(&mut leadership.borrow_mut(), Batch::default()));
            b.iter_batched(rekey, |()| settle(), BatchSize::PerIteration);
        });
    }
    expiry::<Ristretto255>(c, "rekey_expiry");
}

fn join(c: &mut Criterion) {
    let mut world = World::<Ristretto255>::new();
    let newcomers = world.newcomers(1000);
    let world = RefCell::new(world);
    c.bench_function("join/1000_to_1000", |b| {
        b.iter_batched(
            || world.borrow_mut().formed(1000).0,
            |mut leadership| {
                let output = world.borrow_mut().admit(&mut leadership, &newcomers);
                (leadership, output)
            },
            BatchSize::PerIteration,
        );
    });
}

fn edge(c: &mut Criterion) {
    let mut world = World::<Ristretto255>::new();
    let (mut leadership, newcomers, welcome) = world.formed(16);
    let drone = &newcomers[0];
    let (context, none) = (world.context(), RevocationStatement::empty());
    let verify = |output: &EpochOutput<_>| {
        output.header.clone().verify(&context.deployment, &context.group, None, &none, NOW).unwrap()
    };
    let header = verify(&welcome);
    let part = EpochPart::Entry(welcome.entries[0].clone());
    let join = || GroupMembership::join(&context, &drone.keypair, &drone.secret, &header, &part).unwrap();
    c.bench_function("edge/key_retrieval", |b| b.iter(join));
    let member = join();
    let next = world.rekey(&mut leadership, Batch::default());
    let part = EpochPart::Entry(next.entries[0].clone());
    let advance = || {
        let header = verify(&next);
        let spare = Some(&drone.spare_pair);
        member.advance(&context, &drone.keypair, spare, &header, &part).unwrap()
    };
    c.bench_function("edge/advance", |b| b.iter(advance));
    c.bench_function("edge/advance_signature_check_alone", |b| b.iter(|| verify(&next)));
}

criterion_group! {
    name = keying;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(3));
    targets = term_open, rekey_expiry, join, edge, tree::join_and_follow, tree::leave, enrolment::enrolment
}
criterion_main!(keying);
