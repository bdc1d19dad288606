//! Routing: frames reach whom they are for, no frame goes in circles, nothing grows without bound.

use std::time::Duration;

use proptest::prelude::*;
use quiver_mavlink::{Dropped, EndpointId, Filters, Frame, List, Router};

use crate::vectors::{frame, frame_from, seal};

const NOW: Duration = Duration::from_secs(1);
/// Time after which a source is sent its own frames again.
const ECHO_TIME: Duration = Duration::from_secs(10);
const DAY: Duration = Duration::from_secs(86_400);

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
        self.route_at(NOW, from, bytes)
    }

    fn route_at(
        &mut self,
        now: Duration,
        from: EndpointId,
        bytes: &[u8],
    ) -> Result<Vec<EndpointId>, Dropped> {
        self.router.route(now, from, Frame::parse(bytes).unwrap())
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
    // Nothing proves it, so it does not say where its system is.
    (unknown[5], unknown[6]) = (9, 1);
    bench.route(bench.autopilot, &unknown).unwrap();
    assert_eq!(bench.router.systems(bench.autopilot), [1]);
}

#[test]
fn a_damaged_frame_goes_nowhere_and_teaches_nothing() {
    let mut bench = bench();
    let heartbeat = frame_from("HEARTBEAT", 255, 190);
    let mut damaged = frame_from("HEARTBEAT", 1, 1);
    (damaged[5], damaged[6]) = (255, 190);
    assert!(Frame::parse(&damaged).unwrap().is_damaged() && !Frame::parse(&heartbeat).unwrap().is_damaged());
    assert_eq!(bench.route(bench.autopilot, &damaged), Err(Dropped::Damaged));
    let mut sum = heartbeat.clone();
    *sum.last_mut().unwrap() ^= 0x55;
    assert_eq!(bench.route(bench.autopilot, &sum), Err(Dropped::Damaged));
    assert_eq!(bench.route(bench.ground, &heartbeat), Ok(vec![bench.autopilot, bench.group]));
    assert_eq!(bench.router.systems(bench.autopilot), [1]);
}

#[test]
fn a_system_that_was_heard_once_by_an_echo_is_sent_there_again_after_a_while() {
    let mut bench = bench();
    let heartbeat = frame_from("HEARTBEAT", 255, 190);
    // A radio at the autopilot heard the ground station.
    assert_eq!(bench.route(bench.autopilot, &heartbeat), Ok(vec![bench.group]));
    assert_eq!(bench.route(bench.ground, &heartbeat), Ok(vec![bench.group]));
    assert_eq!(bench.route_at(NOW + ECHO_TIME, bench.ground, &heartbeat), Ok(vec![bench.group]));
    let later = NOW + ECHO_TIME + Duration::from_millis(1);
    assert_eq!(bench.route_at(later, bench.ground, &heartbeat), Ok(vec![bench.autopilot, bench.group]));
}

#[test]
fn the_way_to_a_silent_system_is_remembered_until_it_is_heard_elsewhere() {
    let mut bench = bench();
    // For system 7, component 1: a vehicle behind a satellite, which says something once in a while.
    let command = frame_from("COMMAND_LONG", 255, 190);
    bench.route(bench.autopilot, &frame_from("HEARTBEAT", 7, 1)).unwrap();
    assert_eq!(bench.route_at(NOW + DAY, bench.ground, &command), Ok(vec![bench.autopilot]));
    bench.route_at(NOW + DAY, bench.group, &frame_from("HEARTBEAT", 7, 1)).unwrap();
    assert_eq!(bench.route_at(NOW + DAY, bench.ground, &command), Ok(vec![bench.group]));
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
fn a_granted_system_is_behind_the_group_whatever_was_heard() {
    let mut bench = bench();
    bench.router.grant(bench.group, [7, 254]);
    let heartbeat = frame_from("HEARTBEAT", 7, 1);
    // Two lines to an autopilot that forwards what it hears: what comes back does not go round.
    let second = bench.router.add(Filters::default(), None);
    assert_eq!(bench.route(bench.group, &heartbeat), Ok(vec![bench.autopilot, bench.ground, second]));
    assert_eq!(bench.route(bench.autopilot, &heartbeat), Ok(vec![bench.ground, second]));
    assert_eq!(bench.route(second, &heartbeat), Ok(vec![bench.ground]));
    assert_eq!(bench.route(bench.autopilot, &heartbeat), Ok(vec![bench.ground]));
    // Frames from the group still reach all, and a command for the system goes to the group as well.
    assert_eq!(bench.route(bench.group, &heartbeat), Ok(vec![bench.autopilot, bench.ground, second]));
    let command = frame_from("COMMAND_LONG", 255, 190);
    assert!(bench.route(bench.ground, &command).unwrap().contains(&bench.group));
}

#[test]
fn a_system_id_that_changes_hands_is_found_at_its_new_place() {
    let mut bench = bench();
    let heartbeat = frame_from("HEARTBEAT", 7, 1);
    bench.router.grant(bench.group, [7, 255]);
    bench.route(bench.group, &heartbeat).unwrap();
    // The vehicle that was system 7 is lost; a spare here is granted its number.
    assert_eq!(bench.route(bench.autopilot, &heartbeat), Ok(vec![bench.ground]));
    bench.router.grant(bench.group, [255]);
    assert_eq!(bench.route(bench.autopilot, &heartbeat), Ok(vec![bench.ground, bench.group]));
    assert!(bench.router.systems(bench.group).is_empty());
    // And back: what was heard here does not keep what comes from there.
    bench.router.grant(bench.group, [7, 255]);
    assert_eq!(bench.router.systems(bench.autopilot), [1]);
    assert!(bench.route(bench.group, &heartbeat).unwrap().contains(&bench.autopilot));
    let command = frame_from("COMMAND_LONG", 254, 190);
    assert_eq!(bench.route(bench.ground, &command), Ok(vec![bench.group]));
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
        seal(&mut flood, 50);
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
