//! Tests of frames that do not pass: without a key, in another's name, unsigned, or because they stay on
//! their side.

use std::sync::atomic::Ordering;

use quiver_mavlink::Frame;
use tokio::time::Instant;

use crate::captured::Captured;
use crate::group::{
    ATTITUDE, COMMAND_LONG, HEARTBEAT, Message, Node, Program, RADIO_STATUS, TestGroup, eventually, file,
    flags, port, udp,
};

/// The least time between two texts.
const BETWEEN_TEXTS: u64 = 5;

/// Two bridges that nobody has admitted yet, with a program each: a vehicle's, system 1, and a ground station's.
struct Link {
    group: TestGroup,
    nodes: [Node; 2],
    programs: [Program; 2],
}

impl Link {
    async fn new() -> Self {
        let (group, ports, at) = (TestGroup::new(2), [port(), port()], [port(), port()]);
        let endpoints = at.map(|port| format!("udpin:127.0.0.1:{port}"));
        let vehicle = flags(&[&endpoints[0]], &[&udp(ports[0], ports[1])]);
        let ground = flags(&[&endpoints[1]], &[&udp(ports[1], ports[0])]);
        let nodes = [group.start(0, vehicle).await, group.start(1, ground).await];
        Self { group, nodes, programs: [Program::at(at[0]).await, Program::at(at[1]).await] }
    }

    async fn admit(&self, member: usize) {
        self.group.admit(member, &self.nodes[member]).await;
    }

    /// Takes the key from a bridge.
    async fn close(&self, member: usize) {
        self.nodes[member].epoch_keys.set_keys(None, true);
        eventually("it is closed", || !self.nodes[member].report.status().open).await;
    }
}

fn text(frame: &[u8]) -> Option<String> {
    let frame = Frame::parse(frame).expect("a frame");
    (frame.message_id() == 253).then(|| String::from_utf8_lossy(&frame.payload()[1..]).into_owned())
}

#[tokio::test]
async fn without_a_key_nothing_passes_in_either_direction_and_programs_are_told_why() {
    let Link { nodes: [vehicle, ground], programs: [autopilot, station], .. } = &Link::new().await;
    let begun = Instant::now();
    for number in 0..50 {
        autopilot.send(&HEARTBEAT.of(1, number)).await;
        autopilot.send(&COMMAND_LONG.of(1, number)).await;
        station.send(&HEARTBEAT.of(2, number)).await;
    }
    assert_eq!(text(&autopilot.receive().await).unwrap(), "Quiver: not joined yet, nothing passes");
    assert_eq!(text(&station.receive().await).unwrap(), "Quiver: not joined yet, nothing passes");
    eventually("the leader is looked for", || vehicle.asked.leader_wanted.load(Ordering::Relaxed) > 1).await;
    eventually("all were dropped", || {
        (vehicle.frames("to group: no key"), ground.frames("to group: no key")) == (100, 50)
    })
    .await;
    let most = 1 + begun.elapsed().as_secs() / BETWEEN_TEXTS;
    assert!(vehicle.frames("local: passed") <= most && ground.frames("local: passed") <= most);
    for node in [vehicle, ground] {
        assert_eq!((node.frames("to group: passed"), node.frames("from group: passed")), (0, 0));
        assert_eq!((node.datagrams("sent"), node.datagrams("closed")), (0, 0));
        assert_eq!(node.asked.signatures.load(Ordering::Relaxed), 0);
    }
}

#[tokio::test]
async fn with_the_key_at_one_end_nothing_passes_and_with_both_it_does_until_one_is_gone() {
    let link = Link::new().await;
    let Link { nodes: [vehicle, ground], programs: [autopilot, station], .. } = &link;
    // The station is answered once it has sent something.
    station.send(&HEARTBEAT.of(2, 0)).await;
    assert!(text(&station.receive().await).is_some());
    link.admit(0).await;
    for number in 0..10 {
        autopilot.send(&ATTITUDE.of(1, number)).await;
    }
    eventually("they have come to the closed end", || ground.datagrams("closed") >= 11).await;
    link.admit(1).await;
    autopilot.send(&ATTITUDE.of(1, 100)).await;
    assert_eq!(station.receive().await, ATTITUDE.of(1, 100), "what came before is lost");
    station.send(&ATTITUDE.of(2, 100)).await;
    assert_eq!(autopilot.receive().await, ATTITUDE.of(2, 100));
    // The vehicle is evicted, or its key runs out.
    link.close(0).await;
    let sent = vehicle.datagrams("sent");
    for number in 0..10 {
        autopilot.send(&ATTITUDE.of(1, number)).await;
        station.send(&ATTITUDE.of(2, number)).await;
    }
    eventually("both directions were tried", || {
        vehicle.frames("to group: no key") == 10 && vehicle.datagrams("closed") >= 10
    })
    .await;
    assert_eq!(vehicle.datagrams("sent"), sent);
    // Its program sees a text, and nothing of the group; the station sees what comes next.
    assert!(text(&autopilot.receive().await).is_some());
    link.admit(0).await;
    autopilot.send(&ATTITUDE.of(1, 200)).await;
    assert_eq!(station.receive().await, ATTITUDE.of(1, 200));
    station.send(&ATTITUDE.of(2, 200)).await;
    let before = autopilot.receive_until(&ATTITUDE.of(2, 200)).await;
    assert!(before.iter().all(|frame| text(frame).is_some()), "{before:?}");
}

#[tokio::test]
async fn a_frame_of_another_system_is_dropped_and_counted() {
    let link = Link::new().await;
    let Link { nodes: [vehicle, ground], programs: [autopilot, station], .. } = &link;
    link.admit(0).await;
    link.admit(1).await;
    station.send(&HEARTBEAT.of(2, 0)).await;
    eventually("the station is known", || vehicle.frames("from group: passed") == 1).await;
    // One that nobody has, and the ground station's, which is known to be in the group.
    for system in [9, 2] {
        autopilot.send(&ATTITUDE.of(system, 1)).await;
    }
    eventually("both were dropped", || vehicle.frames("to group: other system") == 2).await;
    // Its own; and from then on the station's is an echo, which is nobody's mistake.
    for system in [1, 2, 1] {
        autopilot.send(&ATTITUDE.of(system, 1)).await;
        if system == 1 {
            assert_eq!(station.receive().await, ATTITUDE.of(1, 1));
        }
    }
    assert_eq!((vehicle.frames("to group: other system"), vehicle.frames("to group: passed")), (2, 2));
    assert_eq!((vehicle.frames("local: no receiver"), ground.frames("from group: passed")), (1, 2));
    let told = loop {
        if let Some(told) = text(&autopilot.receive().await) {
            break told;
        }
    };
    assert_eq!(told, "Quiver: not the system id that was granted");
}

#[tokio::test]
async fn an_unsigned_command_of_a_member_is_dropped_where_commands_are_to_be_signed() {
    let (group, ports, at) = (TestGroup::new(2), [port(), port()], [port(), port()]);
    // This member signs nothing.
    let unsigned = format!(
        "[UdpEndpoint program]\nMode = Server\nAddress = 127.0.0.1\nPort = {}\n\
         [QuiverEndpoint group]\nCarrier = {}\nSignMsgId =\n",
        at[0],
        udp(ports[0], ports[1])
    );
    let sender = group.open(0, file(&unsigned)).await;
    let endpoint = format!("udpin:127.0.0.1:{}", at[1]);
    let receiver = group.open(1, flags(&[&endpoint], &[&udp(ports[1], ports[0])])).await;
    let programs = [Program::at(at[0]).await, Program::at(at[1]).await];
    programs[1].send(&HEARTBEAT.of(2, 0)).await;
    for number in 0..5 {
        programs[0].send(&COMMAND_LONG.to(1, 2, number)).await;
        programs[0].send(&COMMAND_LONG.of(1, number)).await;
    }
    eventually("commands were dropped", || receiver.frames("from group: unsigned command") == 10).await;
    programs[0].send(&HEARTBEAT.of(1, 5)).await;
    assert_eq!(programs[1].receive().await, HEARTBEAT.of(1, 5));
    assert_eq!((sender.frames("to group: passed"), receiver.frames("from group: passed")), (11, 1));
}

#[tokio::test]
async fn a_revoked_member_commands_nobody_although_it_has_the_key() {
    let link = Link::new().await;
    let Link { nodes: [vehicle, _], programs: [autopilot, station], .. } = &link;
    link.admit(0).await;
    link.admit(1).await;
    autopilot.send(&HEARTBEAT.of(1, 0)).await;
    station.send(&COMMAND_LONG.to(2, 1, 0)).await;
    assert_eq!(autopilot.receive().await, COMMAND_LONG.to(2, 1, 0));
    // The list that names it is here before the leader's new key.
    vehicle.asked.others_are_revoked.store(true, Ordering::Relaxed);
    vehicle.epoch_keys.group_state.set_revocation_list(2);
    station.repeats(&COMMAND_LONG.to(2, 1, 1), || vehicle.datagrams("refused_signer") > 0).await;
    // And the next list does not name it.
    vehicle.asked.others_are_revoked.store(false, Ordering::Relaxed);
    vehicle.epoch_keys.group_state.set_revocation_list(3);
    let passed = vehicle.frames("from group: passed");
    station.repeats(&COMMAND_LONG.to(2, 1, 2), || vehicle.frames("from group: passed") > passed).await;
    autopilot.receive_until(&COMMAND_LONG.to(2, 1, 2)).await;
}

#[tokio::test]
async fn a_member_that_sends_from_anothers_slot_commands_nobody() {
    let (group, at) = (TestGroup::new(3), [port(), port(), port()]);
    let ports = [port(), port(), port()];
    let settings = |member: usize| {
        let others: Vec<_> = (0..3).filter(|other| *other != member).collect();
        let carrier = format!("{}+127.0.0.1:{}", udp(ports[member], ports[others[0]]), ports[others[1]]);
        flags(&[&format!("udpin:127.0.0.1:{}", at[member])], &[&carrier])
    };
    let genuine = group.open(0, settings(0)).await;
    let victim = group.open(1, settings(1)).await;
    let hostile = group.start(2, settings(2)).await;
    // It has the group's key, takes the slot of member 0, and signs with its own key.
    hostile.epoch_keys.group_state.set_table(group.table(3));
    hostile.epoch_keys.set_keys(Some(group.keys(2, 0)), true);
    eventually("it has system 1", || hostile.report.status().system_id == Some(1)).await;
    let programs = [Program::at(at[0]).await, Program::at(at[1]).await, Program::at(at[2]).await];
    programs[1].send(&HEARTBEAT.of(2, 0)).await;
    for number in 0..5 {
        programs[2].send(&COMMAND_LONG.to(1, 2, number)).await;
    }
    eventually("its signature is refused", || victim.datagrams("refused_signer") > 0).await;
    // Its datagrams open under its own start, and under none as soon as the genuine one has announced itself.
    let given_up = || victim.datagrams("unknown") + victim.datagrams("forged") > 0;
    eventually("what it signed is not taken", given_up).await;
    programs[0].send(&COMMAND_LONG.to(1, 2, 100)).await;
    assert_eq!(programs[1].receive().await, COMMAND_LONG.to(1, 2, 100));
    assert_eq!((victim.frames("from group: passed"), genuine.frames("to group: passed")), (1, 1));
    assert_eq!(hostile.frames("to group: passed"), 5);
}

#[tokio::test]
async fn radio_status_of_the_local_modem_stays_on_its_side() {
    let (group, ports) = (TestGroup::new(2), [port(), port()]);
    let [autopilot, modem, at] = [port(), port(), port()];
    let endpoints = [autopilot, modem, at].map(|port| format!("udpin:127.0.0.1:{port}"));
    let vehicle = group.open(0, flags(&[&endpoints[0], &endpoints[1]], &[&udp(ports[0], ports[1])])).await;
    let ground = group.open(1, flags(&[&endpoints[2]], &[&udp(ports[1], ports[0])])).await;
    let [autopilot, modem, station] =
        [Program::at(autopilot).await, Program::at(modem).await, Program::at(at).await];
    station.send(&HEARTBEAT.of(2, 0)).await;
    autopilot.send(&HEARTBEAT.of(1, 0)).await;
    assert_eq!(station.receive().await, HEARTBEAT.of(1, 0));
    assert_eq!(autopilot.receive().await, HEARTBEAT.of(2, 0));
    // SiK radios say that they are system 51.
    modem.send(&RADIO_STATUS.of(51, 0)).await;
    assert_eq!(autopilot.receive().await, RADIO_STATUS.of(51, 0));
    autopilot.send(&HEARTBEAT.of(1, 1)).await;
    assert_eq!(station.receive().await, HEARTBEAT.of(1, 1));
    assert_eq!((vehicle.frames("to group: passed"), ground.frames("from group: passed")), (2, 2));
    assert_eq!(vehicle.frames("to group: other system"), 0);
}

#[tokio::test]
async fn radio_status_never_comes_from_the_group_whoever_sends_it() {
    // The predecessor's name and content are the same, but for its number.
    let radio = Message { id: 166, crc_extra: 21, len: 9, target: None };
    let flow_control = Message { id: 60_047, crc_extra: 55, len: 7, target: None };
    let (group, at, ports) = (TestGroup::new(3), port(), [port(), port()]);
    let vehicle =
        group.open(1, flags(&[&format!("udpin:127.0.0.1:{at}")], &[&udp(ports[0], ports[1])])).await;
    let autopilot = Program::at(at).await;
    autopilot.send(&HEARTBEAT.of(2, 0)).await;
    let mut captured = Captured::new(&group, 2, 0, ports).await;
    let mut wrong_sum = RADIO_STATUS.of(1, 1);
    *wrong_sum.last_mut().unwrap() ^= 1;
    let flow = flow_control.of(1, 3);
    let last = ATTITUDE.of(1, 2);
    for frame in [&RADIO_STATUS.of(1, 0), &radio.of(1, 0), &wrong_sum, &flow, &last] {
        captured.send(frame);
    }
    captured.fly().await;
    assert_eq!(autopilot.receive_until(&last).await, [[0; 0]; 0]);
    eventually("they were dropped", || vehicle.frames("from group: radio status") == 4).await;
}
