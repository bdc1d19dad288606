//! Tests of the routes of frames: the table of system ids says who is behind the group, whatever was heard
//! where.

use quiver_mavlink::{Frame, SystemIds};

use crate::group::{ATTITUDE, COMMAND_LONG, HEARTBEAT, Program, TestGroup, eventually, flags, port, udp};

#[tokio::test]
async fn an_echo_of_the_ground_station_keeps_no_command_from_the_autopilot_and_damage_teaches_nothing() {
    let (group, ports, at) = (TestGroup::new(2), [port(), port()], [port(), port()]);
    let endpoints = at.map(|port| format!("udpin:127.0.0.1:{port}"));
    let vehicle = group.open(0, flags(&[&endpoints[0]], &[&udp(ports[0], ports[1])])).await;
    let ground = group.open(1, flags(&[&endpoints[1]], &[&udp(ports[1], ports[0])])).await;
    let (autopilot, station) = (Program::at(at[0]).await, Program::at(at[1]).await);
    // Programs are answered once they have sent something.
    station.send(&HEARTBEAT.of(2, 0)).await;
    eventually("the station is known", || ground.frames("to group: passed") == 1).await;
    autopilot.send(&HEARTBEAT.of(1, 0)).await;
    assert_eq!(station.receive().await, HEARTBEAT.of(1, 0));
    station.send(&HEARTBEAT.of(2, 1)).await;
    autopilot.receive_until(&HEARTBEAT.of(2, 1)).await;
    // A second radio at the autopilot hears the ground station; and a line flips a bit of a system id.
    autopilot.send(&HEARTBEAT.of(2, 1)).await;
    let mut damaged = HEARTBEAT.of(1, 2);
    damaged[5] = 2;
    assert!(Frame::parse(&damaged).expect("a frame").is_damaged());
    autopilot.send(&damaged).await;
    eventually("both came", || {
        (vehicle.frames("local: no receiver"), vehicle.frames("local: damaged")) == (1, 1)
    })
    .await;
    for number in 3..10 {
        station.send(&COMMAND_LONG.to(2, 1, number)).await;
        assert_eq!(autopilot.receive().await, COMMAND_LONG.to(2, 1, number));
    }
    // The vehicle's own frames still pass, and nothing of the echo did.
    autopilot.send(&ATTITUDE.of(1, 10)).await;
    assert_eq!(station.receive().await, ATTITUDE.of(1, 10));
    assert_eq!(vehicle.frames("to group: passed"), 2);
}

#[tokio::test]
async fn a_spare_that_is_granted_a_lost_vehicles_number_reaches_the_group() {
    let (group, at) = (TestGroup::new(3), [port(), port(), port()]);
    let ports = [port(), port(), port()];
    let settings = |member: usize| {
        let others: Vec<_> = (0..3).filter(|other| *other != member).collect();
        let carrier = format!("{}+127.0.0.1:{}", udp(ports[member], ports[others[0]]), ports[others[1]]);
        flags(&[&format!("udpin:127.0.0.1:{}", at[member])], &[&carrier])
    };
    let mut lost = group.open(0, settings(0)).await;
    let spare = group.open(1, settings(1)).await;
    let ground = group.open(2, settings(2)).await;
    let programs = [Program::at(at[0]).await, Program::at(at[1]).await, Program::at(at[2]).await];
    programs[1].send(&HEARTBEAT.of(2, 0)).await;
    programs[2].send(&HEARTBEAT.of(3, 0)).await;
    eventually("programs are known", || {
        (spare.frames("to group: passed"), ground.frames("to group: passed")) == (1, 1)
    })
    .await;
    programs[0].send(&ATTITUDE.of(1, 1)).await;
    programs[1].receive_until(&ATTITUDE.of(1, 1)).await;
    lost.stop().await;
    // The leader withdraws system 1 from the first, and grants it to the spare.
    let mut table = SystemIds::new();
    for (name, id, slot) in [("drone-1", 1, 1), ("drone-2", 3, 2)] {
        table.grant(name, id).expect("free");
        table.set_slot(name, Some(slot));
    }
    for node in [&spare, &ground] {
        node.epoch_keys.group_state.set_table(table.clone());
    }
    eventually("it is system 1", || spare.report.status().system_id == Some(1)).await;
    eventually("the ground has the table", || ground.report.status().system_ids == 2).await;
    programs[1].send(&ATTITUDE.of(1, 2)).await;
    programs[2].receive_until(&ATTITUDE.of(1, 2)).await;
    programs[2].send(&COMMAND_LONG.to(3, 1, 3)).await;
    programs[1].receive_until(&COMMAND_LONG.to(3, 1, 3)).await;
}
