//! Crashes at any moment: no key leaves that the registry does not know of, and every drone gets its own.

use std::time::Duration;

use quiver_delivery::kgc::DeliveryRecord;
use quiver_machine::Either;

use crate::world::{INTERVAL, Node, World};

#[test]
fn no_key_leaves_before_its_record_is_durable() {
    let mut died_between = 0;
    for doom in 0..12 {
        let (mut world, drone) = World::granted(1, b"scout");
        world.crash_after(Node::Centre, doom);
        world.dial(drone);
        world.run_for(Duration::from_secs(1));
        let (received, issued) = (usize::from(world.key(drone, "orders").is_some()), world.issued());
        assert!(received <= issued, "after {doom} outputs");
        died_between += usize::from(issued > received);
        // The KGC returns, and the drone gets a key.
        world.spare(Node::Centre);
        world.stop_centre();
        world.run_for(INTERVAL);
        world.start_centre();
        world.fetch(drone);
        assert!(world.key(drone, "orders").is_some(), "after {doom} outputs");
        let records = world.centre_records().iter().filter_map(|record| match record {
            Either::Right(DeliveryRecord::Keys(record)) => Some(record),
            _ => None,
        });
        for record in records {
            assert_eq!(record.serial, world.public(drone).identity.serial);
            assert_eq!(record.handle, *world.public(drone).handle().as_bytes());
            assert_eq!(record.revision, 1);
        }
    }
    assert!(died_between > 0, "the moment between record and answer was tried");
}

#[test]
fn drone_that_dies_while_it_fetches_gets_its_key_after_all() {
    for delay in 0..8 {
        let mut world = World::new(2, &["orders", "sensors"]);
        let drone = world.add_drone();
        world.grant("orders", drone, Some(b"scout"));
        world.grant("sensors", drone, Some(b"thermal"));
        let mut seen = 0;
        world.lose_where(move |_| {
            seen += 1;
            seen > delay
        });
        world.dial(drone);
        world.run_for(Duration::from_millis(1));
        world.tamper = None;
        world.run_for(INTERVAL);
        world.restart_drone(drone);
        world.fetch(drone);
        assert!(world.key(drone, "orders").is_some() && world.key(drone, "sensors").is_some());
    }
}

#[test]
fn centre_that_is_away_for_long_is_found_again() {
    let (mut world, drone) = World::granted(3, b"scout");
    world.dial(drone);
    world.stop_centre();
    world.run_for(Duration::from_secs(10_000));
    assert_eq!(world.key(drone, "orders"), None);
    world.start_centre();
    world.fetch(drone);
    assert!(world.key(drone, "orders").is_some());
}
