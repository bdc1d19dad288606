//! Benchmarks of the tree: taking one member out of a small and of a very large group, and following. The member
//! beside it was in use an epoch ago: each epoch more that its chain has to be stepped through costs a hash.
//!
//! `tree/signature` and `tree/base_multiplication` are measured in the same run: on a machine that does other
//! things too, only ratios to them mean anything.

use std::cell::{Cell, LazyCell, RefCell};
use std::hint::black_box;

use criterion::{BatchSize, Criterion};
use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use quiver_ainq::{
    Batch, DronePublicKey, Element, EpochOutput, EpochPart, GroupMembership, Join, Label, Leadership,
    RevocationStatement, Ristretto255, Roster, Slot, StrategyKind,
};

use crate::{NOW, World};

type S = Ristretto255;

/// Newcomers per epoch while a group is formed: bounds the memory that takes.
const FORMING: usize = 50_000;

/// A group of drones that differ in their serials and share all points; that saves a bench the work of the
/// KGC and of the drones, and the leader none.
struct Group {
    world: World<S>,
    leadership: Leadership<S>,
    template: DronePublicKey<S>,
    implicit: Element<S>,
    ephemeral: Element<S>,
}

impl Group {
    fn new(count: usize) -> Self {
        let mut world = World::<S>::new();
        let leadership = world.open(StrategyKind::Tree, Roster::new(), &std::collections::BTreeMap::new()).0;
        let one = world.newcomer();
        let template = one.keypair.public().clone();
        let mut group =
            Self { world, leadership, template, implicit: one.keypair.implicit(), ephemeral: one.ephemeral };
        for start in (0..count).step_by(FORMING) {
            let batch: Vec<Join<S>> =
                (start..count.min(start + FORMING)).map(|serial| group.join(serial)).collect();
            group.rekey(Batch { joins: batch, ..Batch::default() });
        }
        group
    }

    fn join(&self, serial: usize) -> Join<S> {
        let mut public = self.template.clone();
        public.identity.serial[..8].copy_from_slice(&serial.to_be_bytes());
        Join::with_implicit(public, self.implicit, self.ephemeral).unwrap()
    }

    fn rekey(&mut self, batch: Batch<S>) -> EpochOutput<S> {
        self.world.rekey(&mut self.leadership, batch)
    }

    /// Takes the member out of a slot; the epoch is ready to be broadcast.
    fn leave(&mut self, slot: Slot) -> EpochOutput<S> {
        self.rekey(Batch { removals: vec![slot], ..Batch::default() })
    }
}

pub(crate) fn leave(c: &mut Criterion) {
    let mut bench = c.benchmark_group("tree");
    for count in [2_000, 1_000_000_usize] {
        // Made when a function of it is chosen: a million takes a while.
        let group = LazyCell::new(|| RefCell::new(Group::new(count)));
        let gone = Cell::new(None::<usize>);
        let mut turn = 0;
        let mut come_back = || {
            let mut group = group.borrow_mut();
            if let Some(serial) = gone.take() {
                let joins = vec![group.join(serial)];
                group.rekey(Batch { joins, ..Batch::default() });
            }
            turn = (turn + 7919) % count;
            gone.set(Some(turn));
            let slot = Slot::try_from(turn).unwrap();
            // A chain that was not used for many epochs is stepped through all of them (§8.4); this one was just used.
            group.leadership.path_message(slot ^ 1, &[0; 16]).unwrap();
            slot
        };
        bench.bench_function(format!("leave/{count}"), |b| {
            b.iter_batched(&mut come_back, |slot| group.borrow_mut().leave(slot), BatchSize::PerIteration);
        });
        bench.bench_function(format!("signature/{count}"), |b| {
            let group = group.borrow();
            let digest = *group.leadership.digest();
            let mut rng = group.world.rng.clone();
            let (leader, deployment) = (&group.world.leader, &group.world.deployment);
            b.iter(|| leader.sign(deployment, Label::Header, black_box(&digest), &mut rng));
        });
    }
    bench.bench_function("base_multiplication", |b| {
        let scalar = Scalar::from_bytes_mod_order_wide(&[7; 64]);
        b.iter(|| RistrettoPoint::mul_base(black_box(&scalar)).compress());
    });
    bench.finish();
}

pub(crate) fn join_and_follow(c: &mut Criterion) {
    let mut bench = c.benchmark_group("tree");
    let mut group = Group::new(1_999);
    let newcomer = group.world.newcomer();
    let public = newcomer.keypair.public().clone();
    let join = Join::with_implicit(public, newcomer.keypair.implicit(), newcomer.ephemeral).unwrap();
    let welcome = group.rekey(Batch { joins: vec![join], ..Batch::default() });
    let slot = welcome.assigned[0];
    let part = EpochPart::Path(group.leadership.path_message(slot, &[1; 16]).unwrap());
    let (context, none) = (group.world.context(), RevocationStatement::empty());
    let verify = |output: &EpochOutput<S>| {
        output.header.clone().verify(&context.deployment, &context.group, None, &none, NOW).unwrap()
    };
    let header = verify(&welcome);
    let member =
        GroupMembership::join(&context, &newcomer.keypair, &newcomer.secret, &header, &part).unwrap();
    // The neighbour leaves: the longest way from the leaf to the root.
    let output = group.leave(slot ^ 1);
    let (header, delta) = (verify(&output), EpochPart::Delta(output.wraps.as_ref().unwrap().whole()));
    bench.bench_function("edge/wraps", |b| {
        b.iter(|| member.advance(&context, &newcomer.keypair, None, &header, &delta).unwrap());
    });
    bench.bench_function("edge/signature_check", |b| b.iter(|| verify(&output)));
    bench.bench_function("path_message/2000", |b| {
        b.iter(|| group.leadership.path_message(slot, &[2; 16]).unwrap());
    });
    bench.finish();
}
