//! A captured vehicle that is not evicted yet: it has the group's key, and a program of its own that seals
//! whatever it likes from another's slot. What makes others act is not taken from it.

use std::time::Duration;

use quiver_ainq::{EpochKeys, Ristretto255 as S, Slot};
use quiver_datagram::{Config, Datagrams, Payload, Priority};
use quiver_mavlink::{Frame, FrameBatch};
use rand::rngs::OsRng;
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep};

use crate::group::{
    ATTITUDE, COMMAND_LONG, HEARTBEAT, Message, Program, TestGroup, eventually, file, flags, port, udp,
};

/// The captured vehicle's program on the air.
pub(crate) struct Captured {
    datagrams: Datagrams<S>,
    socket: UdpSocket,
    to: u16,
    begun: Instant,
}

impl Captured {
    /// A member that sends from a slot, over a carrier of two ports: the other end's and its own.
    pub(crate) async fn new(group: &TestGroup, member: usize, slot: Slot, ports: [u16; 2]) -> Self {
        let socket = UdpSocket::bind(("127.0.0.1", ports[1])).await.expect("bind");
        let (mut datagrams, begun) =
            (Datagrams::new(Config::default(), group.deployment.clone()), Instant::now());
        datagrams.set_epoch(begun.elapsed(), group.keys(member, slot), &mut OsRng);
        Self { datagrams, socket, to: ports[0], begun }
    }

    /// Sends a frame, unsigned: it can sign as itself alone.
    pub(crate) fn send(&mut self, frame: &[u8]) {
        let mut batch = FrameBatch::new();
        assert!(batch.push(Frame::parse(frame).expect("a frame"), 320));
        let payload = Payload { bytes: batch.take(), priority: Priority::Telemetry, sign: false };
        self.datagrams.send(self.begun.elapsed(), payload).expect("it has the key");
    }

    /// Lets everything leave, announcements as well.
    pub(crate) async fn fly(&mut self) {
        for _ in 0..40 {
            while let Some(datagram) = self.datagrams.poll_datagram(self.begun.elapsed()) {
                self.socket.send_to(&datagram, ("127.0.0.1", self.to)).await.expect("sent");
            }
            sleep(Duration::from_millis(25)).await;
            self.datagrams.handle_timeout(self.begun.elapsed());
        }
    }
}

const RC_CHANNELS_OVERRIDE: Message = Message { id: 70, crc_extra: 124, len: 18, target: Some(16) };
const RADIO_RC_CHANNELS: Message = Message { id: 420, crc_extra: 20, len: 73, target: Some(6) };
const RC_CHANNELS: Message = Message { id: 65, crc_extra: 118, len: 42, target: None };
const GPS_INPUT: Message = Message { id: 232, crc_extra: 151, len: 63, target: None };
const ODOMETRY: Message = Message { id: 331, crc_extra: 91, len: 230, target: None };
const CAN_FRAME: Message = Message { id: 386, crc_extra: 132, len: 16, target: Some(4) };
const GIMBAL: Message = Message { id: 287, crc_extra: 1, len: 23, target: Some(20) };
const ACCESS_POINT: Message = Message { id: 299, crc_extra: 19, len: 96, target: None };
const PARAM_VALUE: Message = Message { id: 22, crc_extra: 220, len: 25, target: None };
const FILE_TRANSFER: Message = Message { id: 110, crc_extra: 84, len: 10, target: None };

/// A heartbeat of a ground station.
fn ground_heartbeat(system: u8, number: u8) -> Vec<u8> {
    HEARTBEAT.with(system, &[number, 0, 0, 0, 6, 8, 0, 4, 3])
}

/// A file transfer with this opcode, for everybody.
fn file_transfer(opcode: u8) -> Vec<u8> {
    FILE_TRANSFER.with(1, &[0, 0, 0, 7, 0, 0, opcode, 0, 0, 1])
}

#[tokio::test]
async fn in_the_ground_stations_name_it_moves_nothing_feeds_no_sensor_and_holds_up_no_failsafe() {
    let (group, at, ports) = (TestGroup::new(3), port(), [port(), port()]);
    let vehicle =
        group.open(1, flags(&[&format!("udpin:127.0.0.1:{at}")], &[&udp(ports[0], ports[1])])).await;
    let autopilot = Program::at(at).await;
    autopilot.send(&HEARTBEAT.of(2, 0)).await;
    // Slot 0 is the ground station's here, and its system 1.
    let mut captured = Captured::new(&group, 2, 0, ports).await;
    let mut other_dialect = COMMAND_LONG.of(1, 0);
    other_dialect[9] = 0x77;
    let dropped = [
        RC_CHANNELS_OVERRIDE.to(1, 2, 0),
        RADIO_RC_CHANNELS.to(1, 2, 0),
        // Of the component whose channels PX4 takes for sticks.
        RC_CHANNELS.of_component((1, 140), &[1; 42]),
        GPS_INPUT.of(1, 0),
        ODOMETRY.of(1, 0),
        CAN_FRAME.to(1, 2, 0),
        GIMBAL.to(1, 2, 0),
        ACCESS_POINT.of(1, 0),
        other_dialect,
        // Opens a file.
        file_transfer(4),
        ground_heartbeat(1, 0),
    ];
    let passed = [RC_CHANNELS.of(1, 1), PARAM_VALUE.of(1, 2), file_transfer(128), file_transfer(129)];
    let last = ATTITUDE.of(1, 3);
    for frame in dropped.iter().chain(&passed).chain([&last]) {
        captured.send(frame);
    }
    captured.fly().await;
    assert_eq!(autopilot.receive_until(&last).await, passed);
    let unsigned = || vehicle.frames("from group: unsigned command") == dropped.len() as u64;
    eventually("the others were dropped", unsigned).await;
}

#[tokio::test]
async fn once_a_ground_station_has_signed_a_heartbeat_nothing_else_beats_under_its_number() {
    let (group, ports, at) = (TestGroup::new(2), [port(), port()], [port(), port()]);
    let endpoints = at.map(|port| format!("udpin:127.0.0.1:{port}"));
    let vehicle = group.open(0, flags(&[&endpoints[0]], &[&udp(ports[0], ports[1])])).await;
    let mut ground = group.open(1, flags(&[&endpoints[1]], &[&udp(ports[1], ports[0])])).await;
    let (autopilot, station) = (Program::at(at[0]).await, Program::at(at[1]).await);
    autopilot.send(&HEARTBEAT.of(1, 0)).await;
    eventually("the autopilot is known", || vehicle.frames("to group: passed") == 1).await;
    // Before, and after: then its end signs whatever beats under its number.
    for beat in [HEARTBEAT.of(2, 1), ground_heartbeat(2, 2), HEARTBEAT.of(2, 3)] {
        station.send(&beat).await;
        assert_eq!(autopilot.receive().await, beat);
    }
    assert_eq!(vehicle.frames("from group: unsigned command"), 0);

    // Somebody who signs nothing is in its place. To receivers it is the same member.
    ground.stop().await;
    let unsigned = format!(
        "[UdpEndpoint program]\nMode = Server\nAddress = 127.0.0.1\nPort = {}\n\
         [QuiverEndpoint group]\nCarrier = {}\nSignMsgId =\n",
        at[1],
        udp(ports[1], ports[0])
    );
    let ground = group.start(1, file(&unsigned)).await;
    ground.epoch_keys.group_state.set_table(group.table(2));
    ground.epoch_keys.set_keys(Some(EpochKeys { boot_no: 2, ..group.keys_of(2, 1, 1) }), true);
    vehicle.epoch_keys.set_keys(Some(group.keys_of(2, 0, 0)), true);
    eventually("it has its key", || ground.report.status().system_id == Some(2)).await;
    for beat in [HEARTBEAT.of(2, 4), ground_heartbeat(2, 5), ATTITUDE.of(2, 6)] {
        station.send(&beat).await;
    }
    assert_eq!(autopilot.receive().await, ATTITUDE.of(2, 6));
    assert_eq!(vehicle.frames("from group: unsigned command"), 2);
    // The number is another's: what is behind it is not known yet.
    let mut table = quiver_mavlink::SystemIds::new();
    for (name, id, slot) in [("drone-0", 2, 0), ("drone-1", 3, 1)] {
        table.grant(name, id).expect("free");
        table.set_slot(name, Some(slot));
    }
    for node in [&vehicle, &ground] {
        node.epoch_keys.group_state.set_table(table.clone());
    }
    eventually("it has another number", || ground.report.status().system_id == Some(3)).await;
    station.repeats(&HEARTBEAT.of(3, 7), || vehicle.frames("from group: passed") > 4).await;
}
