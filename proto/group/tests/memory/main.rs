//! Memory of a leader for each member, and of a board for each sender. Tests of their own, for nothing else
//! may allocate beside them.

use std::alloc::System;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cap::Cap;
use quiver_ainq::{
    Deployment, Epoch, GroupContext, Identity, Leadership, MasterSecret, Name, Receiver, Ristretto255, Role,
    Roster, Sender, StrategyKind, Times,
};
use quiver_group::Leader;
use quiver_testbed::issue_keypair;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use self::roles::world;
use self::world::{Node, S, World};

#[path = "../roles/beside.rs"]
mod beside;
#[path = "../roles"]
#[allow(dead_code, reason = "most of it is for the tests of what the roles do")]
mod roles {
    pub(crate) mod world;
}

/// The strategy that keeps more.
const STRATEGY: StrategyKind = StrategyKind::Tree;
/// Every member has a link of its own.
const SHARED_MEDIUM: bool = false;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// One measurement at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Bytes that the leader of a group of `n` has allocated.
fn held(n: usize, restarted: bool) -> usize {
    let mut world = World::grouped(1, n);
    if restarted {
        world.restart_leader();
    }
    // Long enough for what is kept a minute to be forgotten.
    world.run_for(Duration::from_secs(90));
    assert!(world.agree(0..n));
    let leader = world.node_mut::<Leader<S>>(Node::Leader).take_machine();
    let before = ALLOCATOR.allocated();
    drop(leader);
    before - ALLOCATOR.allocated()
}

#[test]
#[expect(clippy::print_stdout, reason = "a measurement prints what it measured")]
fn a_leader_holds_less_than_a_kilobyte_per_member() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for restarted in [false, true] {
        // Tables grow by doubling: just below a power of two they are as full as those of a million members.
        let (few, many) = (held(250, restarted), held(1000, restarted));
        let each = (many - few) / 750;
        println!("{each} bytes per member, restarted: {restarted}");
        assert!(each < 1000, "{each} bytes per member, restarted: {restarted}");
    }
}

/// Bytes that a receiver with windows of 32 senders has allocated after frames from so many invented slots.
fn held_for(invented: u32) -> usize {
    type S = Ristretto255;
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let master = MasterSecret::<S>::generate(&mut rng);
    let deployment = Deployment::new(Name::new("test").unwrap(), master.public());
    let group = Name::new("alpha").unwrap();
    let role = Role::Leader { group: group.clone(), ordinal: 0 };
    let name = Name::new("leader").unwrap();
    let identity = Identity { serial: [1; 16], name, role, groups: vec![], not_after: 1 << 40 };
    let keypair = issue_keypair(&master, &deployment, &identity, &mut rng);
    let context = GroupContext { deployment, group, leader: keypair.public().clone() };
    let times = Times { issued_at: 1, valid_until: 2, revocation_number: 0 };
    let (term, spares) = (Epoch::term_of(1, 0), BTreeMap::new());
    let (leadership, output) = Leadership::open_term(
        context,
        &keypair,
        Roster::new(),
        &spares,
        term,
        [0; 32],
        &times,
        StrategyKind::Flat,
        &mut rng,
    )
    .unwrap();
    let traffic = leadership.group_key().traffic(&output.digest);
    let channel = Name::new("chat").unwrap();
    let before = ALLOCATOR.allocated();
    let leader = keypair.public().handle();
    let mut receiver = Receiver::new(traffic.clone(), output.digest, leader).with_senders(32);
    for slot in 0..invented {
        let frame =
            Sender::new(&traffic, output.digest, slot, 1, [7; 8]).seal(&channel, None, b"words").unwrap();
        if let Ok(opened) = receiver.open(&frame, &channel, None) {
            receiver.accept(opened).unwrap();
        }
    }
    ALLOCATOR.allocated().saturating_sub(before)
}

#[test]
#[expect(clippy::print_stdout, reason = "a measurement prints what it measured")]
fn invented_slots_do_not_grow_a_boards_receiver_beyond_its_bound() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // The harness allocates and frees beside the test that runs: what is measured twice in a row is the
    // receiver's.
    let held = |invented| {
        let measured: Vec<usize> = (0..10).map(|_| held_for(invented)).collect();
        measured.array_windows().find(|[one, next]| one == next).expect("two measurements that agree")[0]
    };
    let (few, full, flooded) = (held(2), held(32 * 9), held(20_000));
    println!("{few} bytes for 2 senders, {full} for 288, {flooded} after 20,000");
    // 32 windows of some 200 bytes, 256 floors of 16.
    assert!(full < 16_000 && flooded <= full, "{few}, {full}, {flooded}");
}
