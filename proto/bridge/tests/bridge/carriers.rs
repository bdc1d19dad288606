//! Carriers: frames cross in both directions, each once and in order.

use quiver_bridge::memory;

use crate::group::{
    ATTITUDE, COMMAND_LONG, HEARTBEAT, Node, Program, TestGroup, eventually, flags, port, udp,
};

/// A vehicle's program is system 1, the ground's system 2.
async fn exchange(vehicle: &Program, ground: &Program) {
    // Programs are answered once they have sent something; and commands find whom they are for once it was heard.
    vehicle.send(&HEARTBEAT.of(1, 0)).await;
    ground.send(&HEARTBEAT.of(2, 0)).await;
    assert_eq!(ground.receive().await, HEARTBEAT.of(1, 0));
    assert_eq!(vehicle.receive().await, HEARTBEAT.of(2, 0));
    for number in 0..50 {
        vehicle.send(&ATTITUDE.of(1, number)).await;
        assert_eq!(ground.receive().await, ATTITUDE.of(1, number));
        ground.send(&COMMAND_LONG.to(2, 1, number)).await;
        assert_eq!(vehicle.receive().await, COMMAND_LONG.to(2, 1, number));
    }
}

/// The counters of both, when they have sent and received what [`exchange`] sends.
fn check(nodes: [&Node; 2]) {
    for node in nodes {
        let other = |what: &&String| !matches!(what.as_str(), "to group: passed" | "from group: passed");
        assert_eq!((node.frames("to group: passed"), node.frames("from group: passed")), (51, 51));
        assert_eq!(node.report.status().frames.keys().find(other), None, "nothing else became of any");
    }
}

/// Two bridges with these carriers, and programs at UDP endpoints.
async fn cross(carriers: [&str; 2]) -> [Node; 2] {
    let (group, ports) = (TestGroup::new(2), [port(), port()]);
    let endpoints = ports.map(|port| format!("udpin:127.0.0.1:{port}"));
    let one = group.open(0, flags(&[&endpoints[0]], &[carriers[0]])).await;
    let other = group.open(1, flags(&[&endpoints[1]], &[carriers[1]])).await;
    exchange(&Program::at(ports[0]).await, &Program::at(ports[1]).await).await;
    check([&one, &other]);
    [one, other]
}

#[tokio::test]
async fn frames_cross_by_udp() {
    let ports = [port(), port()];
    cross([&udp(ports[0], ports[1]), &udp(ports[1], ports[0])]).await;
}

#[tokio::test]
async fn frames_cross_by_multicast() {
    let carrier = format!("multicast:239.255.14.81:{}@127.0.0.1", port());
    let nodes = cross([&carrier, &carrier]).await;
    // A sender to a group that it is in hears itself, and takes nothing of it.
    eventually("own datagrams come back", || nodes.iter().all(|node| node.datagrams("own") > 0)).await;
}

#[tokio::test]
async fn frames_cross_by_broadcast() {
    let carrier = format!("broadcast:127.255.255.255:{}", port());
    cross([&carrier, &carrier]).await;
}

#[tokio::test]
async fn frames_cross_by_the_leaders_relay_from_member_to_member() {
    let (group, ports, relay) = (TestGroup::new(3), [port(), port()], port());
    let star = format!("star:127.0.0.1:{relay}");
    let leader = group.open(2, flags(&[], &[&format!("relay:127.0.0.1:{relay}")])).await;
    let endpoints = ports.map(|port| format!("udpin:127.0.0.1:{port}"));
    let one = group.open(0, flags(&[&endpoints[0]], &[&star])).await;
    let other = group.open(1, flags(&[&endpoints[1]], &[&star])).await;
    // The relay forwards to those that have shown themselves.
    eventually("the relay heard both", || leader.datagrams("received") >= 2).await;
    exchange(&Program::at(ports[0]).await, &Program::at(ports[1]).await).await;
    check([&one, &other]);
    for node in [one, other] {
        let carrier = || node.report.status().carriers[0].clone();
        eventually("the carrier's numbers are published", || carrier().sent.0 > 51).await;
        // Not even the first one, by which the relay gets to know a member.
        assert_eq!(carrier().dropped, 0);
    }
}

#[tokio::test]
async fn frames_cross_in_memory_and_what_comes_twice_is_taken_once() {
    let (group, ports) = (TestGroup::new(2), [port(), port()]);
    let [one, other] = memory(2, |_, _, _| 2).try_into().expect("two carriers");
    // The settings' carriers are not opened.
    let settings = |port| flags(&[&format!("udpin:127.0.0.1:{port}")], &["star:127.0.0.1:1"]);
    let one = group.open_in_memory(0, settings(ports[0]), one).await;
    let other = group.open_in_memory(1, settings(ports[1]), other).await;
    exchange(&Program::at(ports[0]).await, &Program::at(ports[1]).await).await;
    check([&one, &other]);
    for node in [one, other] {
        eventually("doubles were counted", || node.datagrams("replayed") >= 51).await;
    }
}

#[tokio::test]
async fn frames_that_come_over_two_carriers_are_taken_once() {
    let ports = [port(), port(), port(), port()];
    let (group, at) = (TestGroup::new(2), [port(), port()]);
    let endpoints = at.map(|port| format!("udpin:127.0.0.1:{port}"));
    let carriers = [udp(ports[0], ports[1]), udp(ports[2], ports[3])];
    let one = group.open(0, flags(&[&endpoints[0]], &[&carriers[0], &carriers[1]])).await;
    let carriers = [udp(ports[1], ports[0]), udp(ports[3], ports[2])];
    let other = group.open(1, flags(&[&endpoints[1]], &[&carriers[0], &carriers[1]])).await;
    exchange(&Program::at(at[0]).await, &Program::at(at[1]).await).await;
    check([&one, &other]);
}
