//! Two drones with one token: in any order, with crashes and liars, one identity at most.
//!
//! Every KGC pins the first request that it sees, and two sets of t KGCs have 2t − n in common. So it takes
//! as many KGCs that keep two books to serve both drones.

use std::time::Duration;

use proptest::prelude::*;
use quiver_ainq::Ristretto255;
use quiver_message::Message;

use crate::world::{Node, Packet, Said, World};

type S = Ristretto255;

/// Two drones with the same token, and nothing delivered yet. Each dials the KGCs at these places.
fn race(world: &mut World<S>, dials: [Vec<usize>; 2]) {
    let token = world.token("twin");
    for dials in dials {
        world.add_drone(&token, dials);
    }
}

fn winners(world: &World<S>) -> Vec<usize> {
    (0..world.drone_count()).filter(|drone| world.is_enrolled(*drone)).collect()
}

fn is_request(world: &World<S>, packet: &Packet) -> bool {
    matches!(world.decode(&packet.bytes), Said::Other(Message::EnrolRequest(_)))
}

/// Delivers everything, but lets KGC `place` see the request of drone `first[place]` before the other's.
fn run_in_order(world: &mut World<S>, first: &[usize], time: Duration) {
    let mut seen = vec![false; first.len()];
    let end = world.time() + time;
    for _ in 0..10_000 {
        let due = world.pending().iter().position(|packet| match (packet.from, packet.to) {
            (Node::Drone(drone), Node::Kgc(place)) => {
                !is_request(world, packet) || seen[place] || drone == first[place]
            }
            _ => true,
        });
        match due {
            Some(due) => {
                let packet = world.pending()[due];
                if let (Node::Kgc(place), true) = (packet.to, is_request(world, packet)) {
                    seen[place] = true;
                }
                world.deliver(due);
            }
            None if world.wait(end) => {}
            None => return,
        }
    }
    panic!("the machines never come to rest");
}

/// Every KGC has bound the token to one key, whatever happened.
fn check(world: &World<S>) {
    for place in 0..world.kgc_ids.len() {
        assert!(world.pins(place).values().all(|pins| pins.len() == 1), "KGC at {place} pinned two keys");
    }
    assert!(winners(world).len() <= 1, "two keys for one token");
}

#[test]
fn every_order_with_every_crash_and_every_liar_gives_one_identity_at_most() {
    const N: usize = 3;
    let mut tried = 0;
    for order in 0..1 << N {
        let first: Vec<usize> = (0..N).map(|place| (order >> place) & 1).collect();
        // The KGC that dies, after so many outputs from the first message that it gets: between cookie, pin,
        // commitment, record and share.
        for crash in 0..=(N * 6) {
            for liar in 0..=N {
                let mut world = World::<S>::new(order as u64, 3, 2);
                if let Some(crash) = crash.checked_sub(1) {
                    world.crash_after(Node::Kgc(crash % N), (crash / N) as u32);
                }
                if let Some(liar) = liar.checked_sub(1) {
                    world.set_lying(liar, true);
                }
                race(&mut world, [vec![0, 1, 2], vec![0, 1, 2]]);
                run_in_order(&mut world, &first, Duration::from_secs(5));
                world.start_all_kgcs();
                world.run_for(Duration::from_secs(20));
                check(&world);
                // A drone with two honest KGCs has a key in the end.
                let favourite = usize::from(first.iter().sum::<usize>() > N / 2);
                let honest = (0..N).filter(|place| first[*place] == favourite && liar != place + 1).count();
                if crash == 0 && honest >= 2 {
                    assert_eq!(winners(&world), [favourite], "{first:?}, liar {liar}");
                }
                tried += 1;
            }
        }
    }
    assert_eq!(tried, 8 * 19 * 4);
}

#[test]
fn fewer_double_bookkeepers_than_two_quorums_have_in_common_serve_one_identity() {
    // 2t − n = 2 KGCs would have to answer two requests; one does, each in turn.
    for order in 0_usize..1 << 3 {
        for double in 0..4 {
            let mut world = World::<S>::new(order as u64, 4, 3);
            let other = world.add_kgc(double as u16 + 1);
            let with_other = (0..4).map(|place| if place == double { other } else { place }).collect();
            race(&mut world, [(0..4).collect(), with_other]);
            let mut bits = order;
            let mut first = vec![0, 0, 0, 0, 1];
            for place in (0..4).filter(|place| *place != double) {
                first[place] = bits & 1;
                bits >>= 1;
            }
            run_in_order(&mut world, &first, Duration::from_secs(30));
            assert!(winners(&world).len() <= 1, "{first:?}, {double} keeps two books");
        }
    }
}

#[test]
fn as_many_double_bookkeepers_as_two_quorums_have_in_common_serve_two_keys_of_one_identity() {
    // The guarantee ends here: three of five have one KGC in common, and that one answers two requests.
    let mut world = World::<S>::new(1, 5, 3);
    let other = world.add_kgc(3);
    race(&mut world, [vec![0, 1, 2], vec![other, 3, 4]]);
    world.run_for(Duration::from_secs(5));
    assert_eq!(winners(&world), [0, 1]);
    let identity = |drone: usize| {
        let machine = world.drone(drone);
        machine.keypair().unwrap().public().identity.clone()
    };
    assert_eq!(identity(0), identity(1), "leaders keep the second one as evidence");
}

/// A step of a race.
#[derive(Clone, Copy, Debug)]
enum Act {
    Deliver(usize),
    Lose(usize),
    Repeat(usize),
    CrashKgc(usize),
    CrashDrone(usize),
    StartKgc(usize),
    Lie(usize),
    Wait,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        30 => (0_usize..1000).prop_map(Act::Deliver),
        2 => (0_usize..1000).prop_map(Act::Lose),
        2 => (0_usize..1000).prop_map(Act::Repeat),
        1 => (0_usize..5).prop_map(Act::CrashKgc),
        1 => (0_usize..2).prop_map(Act::CrashDrone),
        2 => (0_usize..5).prop_map(Act::StartKgc),
        1 => (0_usize..5).prop_map(Act::Lie),
        1 => Just(Act::Wait),
    ]
}

fn perform(world: &mut World<S>, act: Act) {
    let queued = world.pending().len();
    match act {
        Act::Deliver(at) if queued > 0 => world.deliver(at % queued),
        Act::Lose(at) if queued > 0 => world.lose(at % queued),
        Act::Repeat(at) if queued > 0 => {
            let again = Packet::clone(world.pending()[at % queued]);
            world.insert(again);
        }
        Act::CrashKgc(place) => world.stop(Node::Kgc(place)),
        Act::CrashDrone(drone) => {
            world.stop(Node::Drone(drone));
            world.start_drone(drone);
        }
        Act::StartKgc(place) if !world.alive(Node::Kgc(place)) => world.start_kgc(place),
        // Two of five may lie.
        Act::Lie(place) if world.liars.borrow().lying.len() < 2 => {
            world.set_lying(place, true);
        }
        Act::Wait => {
            let end = world.time() + Duration::from_secs(2);
            world.wait(end);
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_course_of_a_race_gives_one_identity_at_most(seed: u64, acts in prop::collection::vec(act(), 0..300)) {
        let mut world = World::<S>::new(seed, 5, 3);
        race(&mut world, [(0..5).collect(), (0..5).collect()]);
        for act in acts {
            perform(&mut world, act);
        }
        world.start_all_kgcs();
        world.run_for(Duration::from_secs(120));
        check(&world);
    }

    #[test]
    fn a_drone_alone_gets_its_key_through_any_course(seed: u64, acts in prop::collection::vec(act(), 0..200)) {
        let mut world = World::<S>::new(seed, 5, 3);
        let token = world.token("alone");
        world.add_drone(&token, (0..5).collect());
        world.add("company");
        for act in acts {
            perform(&mut world, act);
        }
        world.start_all_kgcs();
        world.run_for(Duration::from_secs(300));
        // Two of five lie at most, and the other three are there.
        prop_assert_eq!(winners(&world), [0, 1]);
    }
}
