//! Tests of the texts for programs: the reason why nothing passes, each in other words and once, and who is
//! gone.

use std::sync::atomic::Ordering;
use std::time::Duration;

use quiver_ainq::EpochKeys;
use quiver_bridge::MissingKeyReason;
use quiver_mavlink::{Frame, SystemIds};
use tokio::time::{Instant, sleep};

use crate::group::{
    ATTITUDE, HEARTBEAT, Message, Node, PATIENCE, Program, TestGroup, eventually, flags, port, udp,
};

/// A value of a parameter.
const PARAM_VALUE: Message = Message { id: 22, crc_extra: 220, len: 25, target: None };

/// A vehicle and a ground station, with a program each.
struct Link {
    group: TestGroup,
    vehicle: Node,
    ground: Node,
    autopilot: Program,
    station: Program,
}

impl Link {
    async fn new() -> Self {
        let (group, ports, at) = (TestGroup::new(2), [port(), port()], [port(), port()]);
        let endpoints = at.map(|port| format!("udpin:127.0.0.1:{port}"));
        let vehicle = group.open(0, flags(&[&endpoints[0]], &[&udp(ports[0], ports[1])])).await;
        let ground = group.open(1, flags(&[&endpoints[1]], &[&udp(ports[1], ports[0])])).await;
        let (autopilot, station) = (Program::at(at[0]).await, Program::at(at[1]).await);
        station.send(&HEARTBEAT.of(2, 0)).await;
        eventually("it is heard", || ground.frames("to group: passed") == 1).await;
        autopilot.send(&HEARTBEAT.of(1, 0)).await;
        assert_eq!(station.receive().await, HEARTBEAT.of(1, 0));
        Self { group, vehicle, ground, autopilot, station }
    }

    /// The vehicle's keys of an epoch, valid for so long.
    fn keys(&self, counter: u8, valid_for: Duration) -> EpochKeys<quiver_ainq::Ristretto255> {
        EpochKeys { valid_for, ..self.group.keys_of(counter, 0, 0) }
    }
}

/// A text, and the system that it is from.
fn text(bytes: &[u8]) -> Option<(u8, String)> {
    let frame = Frame::parse(bytes).expect("a frame");
    let text = || String::from_utf8_lossy(&frame.payload()[1..]).into_owned();
    (frame.message_id() == 253).then(|| (bytes[5], text()))
}

/// The next text. The program goes on to send.
async fn next_text(program: &Program, system: u8) -> (u8, String) {
    let mut number = 10_000;
    loop {
        number += 1;
        program.send(&ATTITUDE.of(system, number)).await;
        if let Some(told) = text(&program.receive().await) {
            return told;
        }
    }
}

#[tokio::test]
async fn each_reason_has_other_words_and_is_told_once() {
    let Link { vehicle, autopilot, .. } = &Link::new().await;
    vehicle.epoch_keys.group_state.set_obstacle(Some(MissingKeyReason::Removed));
    vehicle.epoch_keys.set_keys(None, true);
    let removed = (1, "Quiver: removed from the group, nothing passes".into());
    assert_eq!(next_text(autopilot, 1).await, removed, "under the system id that it had");
    assert_eq!(vehicle.report.status().system_id, Some(1));
    // Ten more frames are dropped, and nothing more is said of that.
    for number in 0..10 {
        autopilot.send(&ATTITUDE.of(1, number)).await;
    }
    vehicle.epoch_keys.group_state.set_obstacle(Some(MissingKeyReason::Evicted));
    assert_eq!(next_text(autopilot, 1).await.1, "Quiver: evicted from the group, nothing passes");
    let status = vehicle.report.status();
    assert_eq!((status.open, status.passes), (false, false));
    assert!(status.describe().starts_with("not passing (evicted from the group"), "{}", status.describe());
}

#[tokio::test]
async fn key_that_ends_is_told_at_both_ends_and_when_it_has_run_out() {
    let link = Link::new().await;
    let Link { group, vehicle, ground, autopilot, station } = &link;
    // A tenth of it is left when it is told.
    ground.epoch_keys.set_keys(Some(group.keys_of(2, 1, 1)), true);
    vehicle.epoch_keys.set_keys(Some(link.keys(2, Duration::from_secs(50))), true);
    let soon = "Quiver: the group key ends soon, no newer one came";
    let (begun, mut here, mut there) = (Instant::now(), false, false);
    while !(here && there) {
        autopilot.send(&ATTITUDE.of(1, 1)).await;
        station.send(&ATTITUDE.of(2, 1)).await;
        sleep(Duration::from_millis(200)).await;
        for (program, told) in [(autopilot, &mut here), (station, &mut there)] {
            // Of the vehicle's end, at both.
            *told |= program.drain().iter().any(|frame| text(frame) == Some((1, soon.into())));
        }
        assert!(begun.elapsed() < PATIENCE, "{here} {there}");
    }
    eventually("the leader is looked for", || vehicle.asked.leader_wanted.load(Ordering::Relaxed) > 0).await;
    assert_eq!(next_text(autopilot, 1).await.1, "Quiver: the group key ran out, nothing passes");
}

#[tokio::test]
async fn end_that_hears_only_another_epoch_says_so_and_looks_for_the_leader() {
    let Link { group, vehicle, ground, autopilot, station } = &Link::new().await;
    ground.epoch_keys.set_keys(Some(group.keys_of(2, 1, 1)), true);
    let wanted = || vehicle.asked.leader_wanted.load(Ordering::Relaxed) > 0;
    station.repeats(&HEARTBEAT.of(2, 1), wanted).await;
    let behind = "Quiver: others have a newer key, no leader heard";
    eventually("its status says so", || {
        let status = vehicle.report.status();
        let says = status.describe().starts_with("passing, but (others have");
        status.open && status.passes && says && status.trouble.as_deref() == Some(behind)
    })
    .await;
    assert_eq!(next_text(autopilot, 1).await.1, behind);
    // Once it has the key, nothing is wrong.
    vehicle.epoch_keys.set_keys(Some(group.keys_of(2, 0, 0)), true);
    eventually("it is over", || vehicle.report.status().trouble.is_none()).await;
}

#[tokio::test]
async fn ground_station_is_told_which_system_is_gone() {
    let Link { group, ground, station, .. } = &Link::new().await;
    let mut table: SystemIds = group.table(2);
    table.set_slot("drone-0", None);
    ground.epoch_keys.group_state.set_table(table);
    assert_eq!(next_text(station, 2).await, (2, "Quiver: system 1 left or was away long".into()));
}

#[tokio::test]
async fn ground_station_is_told_which_system_was_evicted() {
    let Link { group, ground, station, .. } = &Link::new().await;
    let mut table: SystemIds = group.table(2);
    table.set_slot("drone-0", None);
    table.set_evicted("drone-0");
    ground.epoch_keys.group_state.set_table(table);
    assert_eq!(next_text(station, 2).await, (2, "Quiver: system 1 was evicted".into()));
}

#[tokio::test]
async fn ground_station_that_the_autopilot_does_not_listen_to_is_told() {
    let Link { autopilot, station, .. } = &Link::new().await;
    let mut value = [0; 25];
    value[..4].copy_from_slice(&255_f32.to_le_bytes());
    value[8..19].copy_from_slice(b"SYSID_MYGCS");
    autopilot.send(&PARAM_VALUE.with(1, &value)).await;
    let mut heartbeat = [0; 9];
    heartbeat[4] = 6;
    station.send(&HEARTBEAT.with(2, &heartbeat)).await;
    let told = loop {
        if let Some(told) = text(&station.receive().await) {
            break told;
        }
    };
    assert_eq!(told, (1, "Quiver: autopilot obeys ground 255, not 2".into()));
}
