//! MAVLink's own signatures: on the cable between an endpoint and its autopilot, and nowhere else.

use quiver_mavlink::{Frame, Signing, SigningKey};

use crate::group::{
    COMMAND_LONG, HEARTBEAT, NOW, Program, SIGNING_KEY, TestGroup, eventually, file, flags, port, signed, udp,
};

/// The system in the frames that pymavlink signed.
const SYSTEM: u8 = 42;

#[tokio::test]
async fn signatures_are_verified_and_stripped_and_made_towards_the_autopilot() {
    let (group, ports, at) = (TestGroup::new(SYSTEM.into()), [port(), port()], [port(), port()]);
    let settings = format!(
        "[UdpEndpoint autopilot]\nMode = Server\nAddress = 127.0.0.1\nPort = {}\nSigningKeyFile = m.key\n\
         [QuiverEndpoint group]\nCarrier = {}\n",
        at[0],
        udp(ports[0], ports[1])
    );
    let vehicle = group.open(usize::from(SYSTEM) - 1, file(&settings)).await;
    let ground =
        group.open(0, flags(&[&format!("udpin:127.0.0.1:{}", at[1])], &[&udp(ports[1], ports[0])])).await;
    let (autopilot, station) = (Program::at(at[0]).await, Program::at(at[1]).await);
    station.send(&HEARTBEAT.of(1, 0)).await;
    let bad = || vehicle.frames("local: bad local signature");

    // From the autopilot: what is not signed, what was altered, and what comes again is not taken.
    let (plain, by_pymavlink) = signed("HEARTBEAT");
    let mut altered = by_pymavlink.clone();
    *altered.last_mut().expect("a signature") ^= 1;
    autopilot.send(&plain).await;
    autopilot.send(&altered).await;
    eventually("both were dropped", || bad() == 2).await;
    autopilot.send(&by_pymavlink).await;
    assert_eq!(station.receive().await, plain, "not bit for bit what was signed");
    autopilot.send(&by_pymavlink).await;
    eventually("the replay was dropped", || bad() == 3).await;
    assert_eq!((vehicle.frames("to group: passed"), ground.frames("from group: passed")), (1, 1));

    // To the autopilot: signed with the local key, and nobody else's.
    let mut theirs = Signing::new(SigningKey::from_hex(SIGNING_KEY).expect("a key"), 1);
    let mut strangers = Signing::new(SigningKey::from_hex(&"ab".repeat(32)).expect("a key"), 1);
    for number in 0..3 {
        let command = COMMAND_LONG.to(1, SYSTEM, number);
        station.send(&command).await;
        let received = loop {
            let received = autopilot.receive().await;
            if Frame::parse(&received).expect("a frame").message_id() == 76 {
                break received;
            }
        };
        let frame = Frame::parse(&received).expect("a frame");
        assert!(strangers.verify(Some(NOW), frame).is_err());
        assert_eq!(theirs.verify(Some(NOW), frame).expect("signed, and newer than the last"), command);
    }
}

#[tokio::test]
async fn while_the_clock_is_not_set_nothing_passes_at_an_endpoint_that_signs() {
    let (group, ports, at) = (TestGroup::new(SYSTEM.into()), [port(), port()], [port(), port()]);
    let settings = format!(
        "[UdpEndpoint autopilot]\nMode = Server\nAddress = 127.0.0.1\nPort = {}\nSigningKeyFile = m.key\n\
         [QuiverEndpoint group]\nCarrier = {}\n",
        at[0],
        udp(ports[0], ports[1])
    );
    let member = usize::from(SYSTEM) - 1;
    let vehicle = group.start_with_clock(member, file(&settings), || None).await;
    group.admit(member, &vehicle).await;
    let _ground =
        group.open(0, flags(&[&format!("udpin:127.0.0.1:{}", at[1])], &[&udp(ports[1], ports[0])])).await;
    let (autopilot, station) = (Program::at(at[0]).await, Program::at(at[1]).await);
    // Recorded on the cable at some time before.
    let (_, recorded) = signed("COMMAND_LONG");
    for _ in 0..5 {
        autopilot.send(&recorded).await;
    }
    eventually("they are not taken", || vehicle.frames("local: clock not set") == 5).await;
    station.repeats(&HEARTBEAT.of(1, 0), || vehicle.frames("from group: clock not set") > 0).await;
    assert_eq!((vehicle.frames("to group: passed"), vehicle.frames("from group: passed")), (0, 0));
}
