//! System ids of 32 bits between two ends: frames pass as they are, and who may not see them is told.

use quiver_mavlink::{Frame, SystemIds};

use crate::group::{
    ATTITUDE, COMMAND_LONG, HEARTBEAT, Node, Program, RADIO_STATUS, TestGroup, eventually, file, flags, port,
    udp,
};

/// The vehicle's system; its low byte is 112.
const VEHICLE: u32 = 70_000;
/// The ground station's, which is a wide one as well.
const STATION: u32 = u32::MAX;

/// Two ends with these ids, and a program at each.
struct Flight {
    vehicle: Node,
    ground: Node,
    autopilot: Program,
    station: Program,
}

/// Gives both ends a table in which the first members have these ids.
async fn grant(nodes: [&Node; 2], ids: [u32; 2]) {
    let mut table = SystemIds::new();
    for (slot, id) in (0..).zip(ids) {
        let name = format!("drone-{slot}");
        table.grant(&name, id).expect("free");
        table.set_slot(&name, Some(slot));
    }
    for (node, id) in nodes.into_iter().zip(ids) {
        node.epoch_keys.group_state.set_table(table.clone());
        eventually("it has its system id", || node.report.status().system_id == Some(id)).await;
    }
}

impl Flight {
    async fn new(ids: [u32; 2], more: &str) -> Self {
        let (group, ports, at) = (TestGroup::new(2), [port(), port()], [port(), port()]);
        let carrier = udp(ports[0], ports[1]);
        let vehicle = group.open(0, flags(&[&format!("udpin:127.0.0.1:{}", at[0])], &[&carrier])).await;
        let settings = format!(
            "[UdpEndpoint station]\nMode = Server\nAddress = 127.0.0.1\nPort = {}\n{more}\
             [QuiverEndpoint group]\nCarrier = {}\n",
            at[1],
            udp(ports[1], ports[0])
        );
        let ground = group.open(1, file(&settings)).await;
        grant([&vehicle, &ground], ids).await;
        let (autopilot, station) = (Program::at(at[0]).await, Program::at(at[1]).await);
        Self { vehicle, ground, autopilot, station }
    }
}

#[tokio::test]
async fn telemetry_and_commands_of_wide_systems_pass_bit_for_bit() {
    let flight = Flight::new([VEHICLE, STATION], "").await;
    let Flight { vehicle, ground, autopilot, station } = &flight;
    let heard = |node: &Node, system| node.report.status().endpoints[0].systems.contains(&system);
    // Both show wide ids in what goes no further, before either is sent something of the other.
    autopilot.send(&RADIO_STATUS.wide(VEHICLE, None, 0)).await;
    station.send(&RADIO_STATUS.wide(STATION, None, 0)).await;
    eventually("both are heard", || heard(vehicle, VEHICLE) && heard(ground, STATION)).await;
    station.send(&HEARTBEAT.wide(STATION, None, 0)).await;
    eventually("the station is known", || ground.frames("to group: passed") == 1).await;
    for number in 1..20 {
        let telemetry = ATTITUDE.wide(VEHICLE, None, number);
        autopilot.send(&telemetry).await;
        assert_eq!(station.receive().await, telemetry);
    }
    for number in 20..40 {
        let command = COMMAND_LONG.wide(STATION, Some(VEHICLE), number);
        station.send(&command).await;
        autopilot.receive_until(&command).await;
    }
    // Its low byte is the vehicle's; it is another system, and nobody's.
    station.send(&COMMAND_LONG.wide(STATION, Some(VEHICLE & 0xff), 40)).await;
    eventually("it goes nowhere", || ground.frames("local: no receiver") == 1).await;
    // The vehicle's program speaks as the low byte of its id alone, or as another with the same.
    for other in [ATTITUDE.of(112, 41), ATTITUDE.wide(VEHICLE + 0x0100_0000, None, 42)] {
        autopilot.send(&other).await;
    }
    eventually("both are dropped", || vehicle.frames("to group: other system") == 2).await;
    let last = ATTITUDE.wide(VEHICLE, None, 43);
    autopilot.send(&last).await;
    assert_eq!(station.receive_until(&last).await.len(), 0);
    // A new status is published.
    eventually("both are heard", || heard(vehicle, VEHICLE) && heard(ground, STATION)).await;
    // Both programs have shown that they know wide ids: nobody is told anything.
    for node in [vehicle, ground] {
        let status = node.report.status();
        let is_quiet = status.endpoints.iter().all(|one| one.narrow.is_none() && one.wide_frames == (0, 0));
        assert!(is_quiet, "{status:?}");
    }
}

/// The text of a `STATUSTEXT` frame.
fn text(frame: &[u8]) -> String {
    let frame = Frame::parse(frame).expect("a frame");
    assert_eq!((frame.message_id(), frame.is_wide()), (253, false), "{frame:?}");
    String::from_utf8_lossy(&frame.payload()[1..]).trim_end_matches('\0').into()
}

#[tokio::test]
async fn a_station_that_shows_no_wide_id_is_told_once_and_given_the_frames() {
    let flight = Flight::new([VEHICLE, 255], "").await;
    let Flight { ground, autopilot, station, .. } = &flight;
    station.send(&HEARTBEAT.of(255, 0)).await;
    eventually("the station is known", || ground.frames("to group: passed") == 1).await;
    let frames: Vec<_> = (1..10).map(|number| ATTITUDE.wide(VEHICLE, None, number)).collect();
    autopilot.send(&frames[0]).await;
    assert_eq!(station.receive().await, frames[0]);
    assert_eq!(text(&station.receive().await), "Quiver: system 70000 needs 32-bit ids");
    for frame in &frames[1..] {
        autopilot.send(frame).await;
        assert_eq!(station.receive().await, *frame);
    }
    eventually("they are counted", || ground.report.status().endpoints[0].wide_frames == (9, 0)).await;
    let told = ground.report.status().endpoints[0].narrow.clone().expect("told");
    assert!(told.starts_with("udpin:127.0.0.1:") && told.contains("system 70000"), "{told}");
    // A command for it says so in its header, and so the station has shown what it knows.
    station.send(&COMMAND_LONG.wide(255, Some(VEHICLE), 11)).await;
    autopilot.receive_until(&COMMAND_LONG.wide(255, Some(VEHICLE), 11)).await;
    autopilot.send(&ATTITUDE.wide(VEHICLE, None, 12)).await;
    assert_eq!(station.receive().await, ATTITUDE.wide(VEHICLE, None, 12));
    eventually("a second passes", || ground.frames("from group: passed") >= 10).await;
    assert_eq!(ground.report.status().endpoints[0].wide_frames, (9, 0));
}

#[tokio::test]
async fn a_station_of_8_bits_by_configuration_is_given_no_wide_frame_and_told_once() {
    let flight = Flight::new([VEHICLE, 255], "WideSystemIds = false\n").await;
    let Flight { vehicle, ground, autopilot, station } = &flight;
    station.send(&HEARTBEAT.of(255, 0)).await;
    eventually("the station is known", || ground.frames("to group: passed") == 1).await;
    for number in 1..4 {
        autopilot.send(&ATTITUDE.wide(VEHICLE, None, number)).await;
    }
    eventually("they are kept", || ground.frames("from group: 8-bit program") == 3).await;
    assert_eq!(text(&station.receive().await), "Quiver: system 70000 hidden: 8-bit program");
    // The vehicle is given a number that the station knows, and goes on.
    grant([vehicle, ground], [7, 255]).await;
    autopilot.send(&ATTITUDE.of(7, 5)).await;
    assert_eq!(station.receive().await, ATTITUDE.of(7, 5));
}
