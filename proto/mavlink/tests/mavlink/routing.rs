//! Routing: frames reach whom they are for, no frame goes in circles, nothing grows without bound.

use std::time::Duration;

use proptest::prelude::*;
use quiver_mavlink::{Dropped, EndpointId, Filters, Frame, List, Router};

use crate::vectors::{frame, frame_from};

const NOW: Duration = Duration::from_secs(1);

struct Bench {
    router: Router,
    autopilot: EndpointId,
    ground: EndpointId,
    group: EndpointId,
}

/// A vehicle's companion computer, whose autopilot (system 1) and ground station (255) were heard.
fn bench() -> Bench {
    let mut router = Router::new(Duration::ZERO, None);
    let mut add = || router.add(Filters::default(), None);
    let (autopilot, ground, group) = (add(), add(), add());
    let mut bench = Bench { router, autopilot, ground, group };
    bench.route(autopilot, &frame_from("HEARTBEAT", 1, 1)).unwrap();
    bench.route(ground, &frame_from("HEARTBEAT", 255, 190)).unwrap();
    bench
}

impl Bench {
    fn route(&mut self, from: EndpointId, bytes: &[u8]) -> Result<Vec<EndpointId>, Dropped> {
        self.router.route(NOW, from, Frame::parse(bytes).unwrap())
    }
}

#[test]
fn what_is_for_everybody_goes_to_every_other_endpoint() {
    let mut bench = bench();
    let telemetry = frame_from("ATTITUDE", 1, 1);
    assert_eq!(bench.route(bench.autopilot, &telemetry), Ok(vec![bench.ground, bench.group]));
    assert_eq!(bench.router.systems(bench.autopilot), [1]);
}

#[test]
fn a_message_of_an_unknown_dialect_is_for_everybody() {
    let mut bench = bench();
    let mut unknown = frame_from("COMMAND_LONG", 255, 190);
    unknown[9] = 0x77;
    assert_eq!(bench.route(bench.ground, &unknown), Ok(vec![bench.autopilot, bench.group]));
}

#[test]
fn a_command_goes_where_its_target_was_heard_and_nowhere_else() {
    let mut bench = bench();
    // For system 7, component 1.
    let command = frame_from("COMMAND_LONG", 255, 190);
    assert_eq!(bench.route(bench.ground, &command), Err(Dropped::NoReceiver));
    bench.route(bench.group, &frame_from("HEARTBEAT", 7, 1)).unwrap();
    assert_eq!(bench.route(bench.ground, &command), Ok(vec![bench.group]));
    // Another component of the system on another way: the target's own way is taken.
    bench.route(bench.autopilot, &frame_from("HEARTBEAT", 7, 100)).unwrap();
    assert_eq!(bench.route(bench.ground, &command), Ok(vec![bench.group]));
}

#[test]
fn a_granted_system_is_reached_before_it_was_heard() {
    let mut bench = bench();
    let command = frame_from("COMMAND_LONG", 255, 190);
    bench.router.grant(bench.group, [6, 7]);
    assert_eq!(bench.route(bench.ground, &command), Ok(vec![bench.group]));
    bench.router.grant(bench.group, [6]);
    assert_eq!(bench.route(bench.ground, &command), Err(Dropped::NoReceiver));
}

#[test]
fn what_a_vehicle_sent_does_not_come_back_to_it_by_another_way() {
    let mut bench = bench();
    let second = bench.router.add(Filters::default(), None);
    // Two lines to one autopilot.
    bench.route(second, &frame_from("HEARTBEAT", 1, 1)).unwrap();
    let telemetry = frame_from("ATTITUDE", 1, 1);
    assert_eq!(bench.route(bench.autopilot, &telemetry), Ok(vec![bench.ground, bench.group]));
}

#[test]
fn endpoints_of_one_group_share_what_they_heard_and_send_each_other_nothing() {
    let mut bench = bench();
    let ring = || Some("radios".to_owned());
    let (first, second) =
        (bench.router.add(Filters::default(), ring()), bench.router.add(Filters::default(), ring()));
    let heartbeat = frame_from("HEARTBEAT", 7, 1);
    assert_eq!(bench.route(first, &heartbeat), Ok(vec![bench.autopilot, bench.ground, bench.group]));
    // Heard by the first; both are ways to it.
    let command = frame_from("COMMAND_LONG", 255, 190);
    assert_eq!(bench.route(bench.ground, &command), Ok(vec![first, second]));
}

#[test]
fn filters_hold_in_the_direction_they_are_for() {
    let mut router = Router::new(Duration::ZERO, None);
    let list = |ids: &[u32]| List { allow: Some(ids.iter().copied().collect()), block: [].into() };
    let mut filters = Filters::default();
    filters.outgoing.messages = list(&[0]);
    filters.incoming.systems.block = [9].into();
    let narrow = router.add(filters, None);
    let open = router.add(Filters::default(), None);
    let mut route = |from, bytes: &[u8]| router.route(NOW, from, Frame::parse(bytes).unwrap());
    assert_eq!(route(open, &frame_from("HEARTBEAT", 1, 1)), Ok(vec![narrow]));
    assert_eq!(route(open, &frame_from("ATTITUDE", 1, 1)), Err(Dropped::NoReceiver));
    assert_eq!(route(narrow, &frame_from("ATTITUDE", 2, 1)), Ok(vec![open]));
    assert_eq!(route(narrow, &frame_from("ATTITUDE", 9, 1)), Err(Dropped::FilteredIn));
}

#[test]
fn the_same_bytes_pass_once_within_the_period() {
    let mut router = Router::new(Duration::from_millis(500), None);
    let (a, b) = (router.add(Filters::default(), None), router.add(Filters::default(), None));
    let bytes = frame("ATTITUDE");
    let attitude = Frame::parse(&bytes).unwrap();
    assert_eq!(router.route(NOW, a, attitude), Ok(vec![b]));
    assert_eq!(router.route(NOW + Duration::from_millis(500), a, attitude), Err(Dropped::Duplicate));
    let other = frame("HEARTBEAT");
    assert!(router.route(NOW, a, Frame::parse(&other).unwrap()).is_ok());
    assert_eq!(router.route(NOW + Duration::from_millis(501), a, attitude), Ok(vec![b]));
}

#[test]
fn a_sniffer_receives_what_is_for_others() {
    let mut router = Router::new(Duration::ZERO, Some(254));
    let mut add = || router.add(Filters::default(), None);
    let (ground, vehicle, sniffer) = (add(), add(), add());
    let mut route = |from, bytes: &[u8]| router.route(NOW, from, Frame::parse(bytes).unwrap());
    route(vehicle, &frame_from("HEARTBEAT", 7, 1)).unwrap();
    route(sniffer, &frame_from("HEARTBEAT", 254, 1)).unwrap();
    assert_eq!(route(ground, &frame_from("COMMAND_LONG", 255, 190)), Ok(vec![vehicle, sniffer]));
}

#[test]
fn an_endpoint_that_is_gone_receives_nothing_and_sends_nothing() {
    let mut bench = bench();
    bench.router.remove(bench.ground);
    let telemetry = frame_from("ATTITUDE", 1, 1);
    assert_eq!(bench.route(bench.autopilot, &telemetry), Ok(vec![bench.group]));
    assert_eq!(bench.route(bench.ground, &telemetry), Err(Dropped::UnknownEndpoint));
    // Its number is not given to another.
    assert!(bench.router.add(Filters::default(), None) > bench.group);
}

#[test]
fn a_flood_of_invented_systems_does_not_displace_the_one_heard_just_now() {
    let mut bench = bench();
    let mut flood = frame("HEARTBEAT");
    let seven = frame_from("HEARTBEAT", 7, 1);
    for n in 0..20_000_u32 {
        (flood[5], flood[6]) = ((n % 250 + 2) as u8, (n / 250) as u8);
        let now = NOW + Duration::from_millis(n.into());
        let _ = bench.router.route(now, bench.group, Frame::parse(&flood).unwrap());
        if n % 1_000 == 0 {
            bench.router.route(now, bench.group, Frame::parse(&seven).unwrap()).unwrap();
        }
    }
    assert_eq!(bench.route(bench.ground, &frame_from("COMMAND_LONG", 255, 190)), Ok(vec![bench.group]));
}

proptest! {
    #[test]
    fn a_frame_never_returns_to_where_it_came_from(frames in prop::collection::vec((0..4_usize, crate::vectors::any_frame()), 0..40)) {
        let mut router = Router::new(Duration::from_millis(10), None);
        let endpoints: Vec<_> = (0..4).map(|_| router.add(Filters::default(), None)).collect();
        for (at, bytes) in &frames {
            let routed = router.route(NOW, endpoints[*at], Frame::parse(bytes).unwrap());
            prop_assert!(!routed.unwrap_or_default().contains(&endpoints[*at]));
        }
    }
}
