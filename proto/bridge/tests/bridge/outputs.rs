//! Tests of an end's other outputs: the security state as messages, and logs of flights.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use quiver_bridge::FlightLogSettings;
use quiver_mavlink::{Frame, SystemIds};

use crate::group::{ATTITUDE, COMMAND_LONG, HEARTBEAT, Program, TestGroup, eventually, flags, port, udp};

const NAMED_VALUE_INT: u32 = 252;

/// Name and value of a `NAMED_VALUE_INT`.
fn value(bytes: &[u8]) -> Option<(String, i32)> {
    let frame = Frame::parse(bytes).expect("a frame");
    if frame.message_id() != NAMED_VALUE_INT {
        return None;
    }
    assert!(frame.is_proven());
    let mut payload = frame.payload().to_vec();
    payload.resize(18, 0);
    let name = String::from_utf8_lossy(&payload[8..]).trim_end_matches('\0').to_owned();
    Some((name, i32::from_le_bytes(payload[4..8].try_into().expect("4 bytes"))))
}

/// Values that a program is told, until this holds.
async fn told(program: &Program, holds: impl Fn(&BTreeMap<String, i32>) -> bool) -> BTreeMap<String, i32> {
    let mut values = BTreeMap::new();
    while !holds(&values) {
        values.extend(value(&program.receive().await));
    }
    values
}

#[tokio::test]
async fn ground_is_told_the_epoch_who_is_gone_and_what_is_dropped() {
    let group = TestGroup::new(2);
    let (ports, at) = ([port(), port()], [port(), port()]);
    let endpoints = at.map(|port| format!("udpin:127.0.0.1:{port}"));
    let _vehicle = group.open(0, flags(&[&endpoints[0]], &[&udp(ports[0], ports[1])])).await;
    let settings =
        flags(&[&endpoints[1]], &[&udp(ports[1], ports[0])]).with_state_every(Duration::from_secs(1));
    let ground = group.open(1, settings).await;
    let station = Program::at(at[1]).await;
    station.send(&HEARTBEAT.of(2, 0)).await;
    let values = told(&station, |values| values.contains_key("QV_D_ALL")).await;
    assert_eq!((values["QV_OPEN"], values["QV_EPOCH"], values["QV_MEMBERS"]), (1, 1, 2));
    assert!((3_000..=3_600).contains(&values["QV_LEFT"]) && values["QV_GONE"] == 0, "{values:?}");
    // It says that it is another system: that frame is dropped.
    station.send(&ATTITUDE.of(9, 1)).await;
    told(&station, |values| values.get("QV_D_ID").is_some_and(|number| *number > 0)).await;
    // Member 1 is no member any more, but its system id stays granted.
    let mut table: SystemIds = group.table(2);
    table.set_slot("drone-0", None);
    table.set_evicted("drone-0");
    ground.epoch_keys.group_state.set_table(table);
    let values =
        told(&station, |values| values.get("QV_EVICT") == Some(&1) && values["QV_MEMBERS"] == 1).await;
    assert_eq!(values["QV_GONE"], 1);
    assert!(values["QV_OPEN"] == 1, "{values:?}");
    ground.epoch_keys.set_keys(None, true);
    told(&station, |values| values.get("QV_OPEN") == Some(&0) && values.get("QV_AGE") == Some(&-1)).await;
}

/// Joins the contents of logs with this ending, in the order of their numbers.
fn logged(directory: &Path, ending: &str) -> Vec<u8> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("entry").path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(ending));
    paths.sort();
    paths.iter().flat_map(|path| fs::read(path).expect("a log")).collect()
}

/// The frames of a tlog.
fn frames(mut tlog: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while let Some((_, rest)) = tlog.split_first_chunk::<8>() {
        let Ok((frame, rest)) = Frame::split(rest) else { break };
        frames.push(frame.bytes().to_vec());
        tlog = rest;
    }
    frames
}

#[tokio::test]
async fn logs_have_what_passed_both_ways_and_why_the_rest_did_not() {
    let (group, directory) = (TestGroup::new(2), tempfile::tempdir().expect("a directory"));
    let (ports, at) = ([port(), port()], [port(), port()]);
    let endpoints = at.map(|port| format!("udpin:127.0.0.1:{port}"));
    let log = FlightLogSettings::new(directory.path().join("logs"), 0);
    let settings = flags(&[&endpoints[0]], &[&udp(ports[0], ports[1])]).with_flight_log(log);
    let mut vehicle = group.open(0, settings).await;
    let ground = group.open(1, flags(&[&endpoints[1]], &[&udp(ports[1], ports[0])])).await;
    let (autopilot, station) = (Program::at(at[0]).await, Program::at(at[1]).await);
    station.send(&HEARTBEAT.of(2, 0)).await;
    autopilot.send(&ATTITUDE.of(1, 1)).await;
    assert_eq!(station.receive().await, ATTITUDE.of(1, 1));
    // Under a number that is not this vehicle's.
    autopilot.send(&ATTITUDE.of(9, 2)).await;
    let command = COMMAND_LONG.to(2, 1, 3);
    station.repeats(&command, || vehicle.frames("from group: passed") > 1).await;
    eventually("the log is written", || {
        vehicle.report.status().flight_log.is_some_and(|log| log.written >= 3 && log.lost == 0)
    })
    .await;
    vehicle.stop().await;
    let place = directory.path().join("logs");
    let passed = frames(&logged(&place, ".tlog"));
    assert!(passed.contains(&ATTITUDE.of(1, 1)) && passed.contains(&command), "{passed:?}");
    assert!(!passed.contains(&ATTITUDE.of(9, 2)));
    let dropped = String::from_utf8(logged(&place, ".dropped.jsonl")).expect("text");
    let line = dropped.lines().find(|line| line.contains("other system") || line.contains("no receiver"));
    assert!(
        line.is_some_and(|line| line.contains("\"system\":9") && line.contains("\"message\":30")),
        "{dropped}"
    );
    drop(ground);
}

#[tokio::test]
async fn link_goes_on_where_no_log_can_be_written() {
    let (group, directory) = (TestGroup::new(2), tempfile::tempdir().expect("a directory"));
    let taken = directory.path().join("taken");
    fs::write(&taken, "no directory").expect("written");
    let (ports, at) = ([port(), port()], [port(), port()]);
    let endpoints = at.map(|port| format!("udpin:127.0.0.1:{port}"));
    let settings = flags(&[&endpoints[0]], &[&udp(ports[0], ports[1])]);
    let vehicle = group.open(0, settings.with_flight_log(FlightLogSettings::new(taken, 0))).await;
    let _ground = group.open(1, flags(&[&endpoints[1]], &[&udp(ports[1], ports[0])])).await;
    let (autopilot, station) = (Program::at(at[0]).await, Program::at(at[1]).await);
    station.send(&HEARTBEAT.of(2, 0)).await;
    for number in 0..20 {
        autopilot.send(&ATTITUDE.of(1, number)).await;
        assert_eq!(station.receive().await, ATTITUDE.of(1, number));
    }
    eventually("it is counted and said", || {
        let log = vehicle.report.status().flight_log.expect("a log");
        log.lost >= 20 && log.written == 0 && log.trouble.is_some_and(|trouble| trouble.contains("taken"))
    })
    .await;
    let said = vehicle.report.status().describe();
    assert!(said.contains("not logged") && said.contains("taken"), "{said}");
}
