//! Tests of the filters of a file in mavlink-router's format.

use std::time::Duration;

use quiver_bridge::BridgeSettings;
use tokio::time::sleep;

use crate::group::{
    ATTITUDE, COMMAND_LONG, HEARTBEAT, Message, Node, Program, TestGroup, eventually, file, port, udp,
};

/// Members with one UDP endpoint each, the last of which is a ground station, to which all others send.
struct Flight {
    vehicles: Vec<(Node, Program)>,
    node: Node,
    ground: Program,
}

/// Lines of `[General]`, of the endpoint, and of `[QuiverEndpoint]`.
type Lines<'a> = [&'a str; 3];

impl Flight {
    async fn new(vehicles: usize, vehicle: Lines<'_>, ground: Lines<'_>) -> Self {
        let (group, carrier) = (TestGroup::new(vehicles + 1), port());
        let mut flying = Vec::new();
        for member in 0..vehicles {
            let at = port();
            let node = group.open(member, settings(vehicle, at, &udp(port(), carrier))).await;
            flying.push((node, Program::at(at).await));
        }
        let at = port();
        let node = group.open(vehicles, settings(ground, at, &udp(carrier, port()))).await;
        let program = Program::at(at).await;
        // So that it is answered.
        program.send(&HEARTBEAT.of(vehicles as u8 + 1, 0)).await;
        Self { vehicles: flying, node, ground: program }
    }

    async fn send(&self, vehicle: usize, message: &Message, numbers: impl IntoIterator<Item = u32>) {
        for number in numbers {
            self.vehicles[vehicle].1.send(&message.of(vehicle as u8 + 1, number)).await;
        }
    }
}

fn settings([general, endpoint, quiver]: Lines<'_>, at: u16, carrier: &str) -> BridgeSettings {
    file(&format!(
        "[General]\n{general}\n[UdpEndpoint program]\nMode = Server\nAddress = 127.0.0.1\nPort = {at}\n{endpoint}\n\
         [QuiverEndpoint group]\nCarrier = {carrier}\n{quiver}\n"
    ))
}

const NONE: Lines<'static> = ["", "", ""];

#[tokio::test]
async fn an_endpoint_gives_its_program_the_messages_that_are_allowed() {
    let flight = Flight::new(1, NONE, ["", "AllowMsgIdOut = 0,76", ""]).await;
    flight.send(0, &ATTITUDE, 0..5).await;
    flight.send(0, &HEARTBEAT, [1]).await;
    assert_eq!(flight.ground.receive().await, HEARTBEAT.of(1, 1));
    flight.send(0, &ATTITUDE, 5..10).await;
    flight.send(0, &COMMAND_LONG, [2]).await;
    assert_eq!(flight.ground.receive().await, COMMAND_LONG.of(1, 2));
    assert_eq!(flight.node.frames("from group: passed"), 2);
}

#[tokio::test]
async fn what_is_blocked_towards_the_group_does_not_leave() {
    let flight = Flight::new(1, ["", "", "BlockMsgIdOut = 30"], NONE).await;
    flight.send(0, &ATTITUDE, 0..5).await;
    flight.send(0, &HEARTBEAT, [1]).await;
    assert_eq!(flight.ground.receive().await, HEARTBEAT.of(1, 1));
    assert_eq!(flight.vehicles[0].0.frames("to group: passed"), 1);
    assert_eq!(flight.vehicles[0].0.frames("local: no receiver"), 5);
}

#[tokio::test]
async fn an_endpoint_gives_its_program_the_systems_that_are_allowed() {
    let flight = Flight::new(3, NONE, ["", "AllowSrcSysOut = 2", ""]).await;
    flight.send(0, &HEARTBEAT, 0..5).await;
    flight.send(2, &HEARTBEAT, 0..5).await;
    let all = || flight.node.frames("from group: no receiver") == 10;
    eventually("frames of the others have come", all).await;
    flight.send(1, &HEARTBEAT, [7]).await;
    assert_eq!(flight.ground.receive().await, HEARTBEAT.of(2, 7));
}

#[tokio::test]
async fn what_comes_twice_within_the_period_is_taken_once() {
    let flight = Flight::new(1, NONE, ["DeduplicationPeriod = 60000", "", ""]).await;
    flight.send(0, &ATTITUDE, [1, 1, 2, 1, 3, 2]).await;
    flight.send(0, &ATTITUDE, [4]).await;
    for number in 1..=4 {
        assert_eq!(flight.ground.receive().await, ATTITUDE.of(1, number));
    }
    assert_eq!(flight.node.frames("from group: duplicate"), 3);
}

#[tokio::test]
async fn what_comes_again_after_the_period_is_taken_again() {
    let period = Duration::from_millis(50);
    let flight = Flight::new(1, ["DeduplicationPeriod = 50", "", ""], NONE).await;
    for _ in 0..2 {
        flight.send(0, &ATTITUDE, [1]).await;
        assert_eq!(flight.ground.receive().await, ATTITUDE.of(1, 1));
        sleep(2 * period).await;
    }
    assert_eq!(flight.vehicles[0].0.frames("local: duplicate"), 0);
}
