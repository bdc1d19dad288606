//! Random histories of an issuer and two drones: in any order of events no drone holds a key that was never
//! granted to it, and once everything works again every drone holds the key of its present grant.

use std::time::Duration;

use proptest::prelude::*;
use quiver_delivery::kgc::DeliveryRecord;
use quiver_machine::Either;

use crate::world::{INTERVAL, Node, World, name};

const DRONES: usize = 2;

/// A step of a random history.
#[derive(Clone, Debug)]
enum Happening {
    Grant(usize, u8),
    Withdraw(usize),
    Fetch(usize),
    RestartCentre,
    RestartDrone(usize),
    /// The centre dies after so many outputs.
    Doom(u32),
    /// Delivers this number of messages; the rest is lost until the next of these.
    Lose(usize),
    Wait(u64),
}

fn happening() -> impl Strategy<Value = Happening> {
    let drone = 0..DRONES;
    prop_oneof![
        3 => (drone.clone(), 0_u8..4).prop_map(|(drone, what)| Happening::Grant(drone, what)),
        1 => drone.clone().prop_map(Happening::Withdraw),
        4 => drone.clone().prop_map(Happening::Fetch),
        1 => Just(Happening::RestartCentre),
        1 => drone.prop_map(Happening::RestartDrone),
        1 => (0_u32..12).prop_map(Happening::Doom),
        1 => (0_usize..12).prop_map(Happening::Lose),
        2 => (0_u64..20).prop_map(Happening::Wait),
    ]
}

fn happen(world: &mut World, happening: &Happening) {
    match *happening {
        Happening::Grant(drone, what) => world.grant("orders", drone, Some(&[b'a' + what])),
        Happening::Withdraw(drone) => world.grant("orders", drone, None),
        Happening::Fetch(drone) => world.try_fetch(drone),
        Happening::RestartCentre => {
            world.restart_centre();
        }
        Happening::RestartDrone(drone) => world.restart_drone(drone),
        Happening::Doom(outputs) => world.crash_after(Node::Centre, outputs),
        Happening::Lose(spared) => {
            let mut seen = 0;
            world.lose_where(move |_| {
                seen += 1;
                seen > spared
            });
        }
        Happening::Wait(seconds) => {
            world.tamper = None;
            world.run_for(Duration::from_secs(seconds));
        }
    }
}

/// Every key that is held was issued to this very drone, for a grant that was made, and the registry knew
/// before.
fn check(world: &World) {
    for drone in 0..DRONES {
        let Some((_, Some((_, key)))) = world.ring(drone).get(&name("orders")) else { continue };
        let public = world.public(drone);
        let own = world.grants.iter().filter(|grant| grant.serial == public.identity.serial);
        let fits = |granted: &Vec<u8>| key.starts_with(&[b"key for ", granted.as_slice()].concat());
        let fitting: Vec<_> = own.filter(|grant| grant.granted.as_ref().is_some_and(fits)).collect();
        assert!(!fitting.is_empty(), "never granted to this drone");
        let known = world.centre_records().iter().any(|record| match record {
            Either::Right(DeliveryRecord::Keys(issued)) => {
                issued.handle == *public.handle().as_bytes()
                    && fitting.iter().any(|grant| grant.revision == issued.revision)
            }
            _ => false,
        });
        assert!(known, "a key is out that the registry does not know of");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_happens_each_drone_ends_up_with_what_is_granted_to_it(
        seed: u64,
        happenings in prop::collection::vec(happening(), 1..40),
    ) {
        let mut world = World::new(seed, &["orders"]);
        for _ in 0..DRONES {
            world.add_drone();
        }
        for happening in &happenings {
            happen(&mut world, happening);
            check(&world);
        }
        world.tamper = None;
        world.spare(Node::Centre);
        world.stop_centre();
        world.run_for(INTERVAL);
        world.start_centre();
        for drone in 0..DRONES {
            world.restart_drone(drone);
            world.fetch(drone);
            let serial = world.public(drone).identity.serial;
            let newest = world.grants.iter().rev().find(|grant| grant.serial == serial);
            let granted = newest.and_then(|grant| grant.granted.clone());
            let expected = granted.map(|granted| [b"key for ", granted.as_slice()].concat());
            let held = world.key(drone, "orders").map(|key| key[..9].to_vec());
            prop_assert_eq!(held, expected);
        }
        check(&world);
    }
}
