//! Drones behind `edge relay`: they join, follow, speak and are put out over one connection of the leader; a relay that
//! is killed, and one that comes back.

use quiver_service_testing::deployment::ANY;
use quiver_service_testing::{Process, TestDeployment, eventually};

use crate::monitoring::{MONITORED, becomes_ready, becomes_unready, counted};

const NAMES: [&str; 3] = ["edge-1", "edge-2", "edge-3"];

/// One whose key was made beforehand, by the file's name or because it is in the data directory.
fn relay(bench: &TestDeployment, number: usize, leader: &str, listen: &str) -> Process {
    let data = format!("relay-{number}-data");
    let run = ["relay", "-d", &data, "--group", "alpha", "--leader", leader, "--listen", listen];
    let seed: &[&str] = if number == 0 { &["--seed", "relays/relay-0.seed"] } else { &[] };
    bench.start("edge", &[&run[..], seed, &MONITORED].concat())
}

#[test]
fn drones_behind_relays_follow_one_connection_each_and_go_elsewhere_when_theirs_is_killed() {
    let bench = TestDeployment::new();
    let token = bench.token("leader-1", &["--leads", "alpha"]);
    NAMES.iter().for_each(|name| drop(bench.token(name, &["--group", "alpha"])));
    let kgc = bench.kgc(ANY);
    // Their identities are known before there is a leader, or a relay.
    let keys = ["relay-keys", "--out", "relays", "--publish", "relays.txt", "relay-0"];
    let first = bench.ok("edge", &keys);
    assert_eq!(bench.ok("edge", &keys), first, "a key that is there is kept");
    let made = bench.ok("edge", &["relay-keys", "--out", "relay-1-data", "--json", "relay"]);
    let made: serde_json::Value = serde_json::from_str(&made).expect("json");
    let second = made[0]["identity"].as_str().expect("an identity");
    let known = [&["--relay", second, "--relay-file", "relays.txt"][..], &MONITORED].concat();
    let leader = bench.leader(&kgc.address(), ANY, Some(&token), &known);
    let lost = relay(&bench, 0, "/ip4/127.0.0.1/tcp/1", ANY);
    becomes_unready(&bench, "edge", &lost, &["no leader of the group serves this relay", "127.0.0.1:1"]);
    assert!(lost.terminate().success());
    let relays: Vec<_> = (0..2).map(|number| relay(&bench, number, &leader.address(), ANY)).collect();
    relays.iter().for_each(|relay| becomes_ready(&bench, "edge", relay));
    let again = ["relay", "-d", "relay-1-data", "--group", "alpha", "--leader", "/ip4/127.0.0.1/tcp/1"];
    bench.refused("edge", &again, 5, &["in use by another process"]);
    let ways: Vec<_> = relays.iter().map(Process::address).collect();
    let edges: Vec<_> = NAMES
        .iter()
        .map(|name| {
            let (data, own) = (format!("{name}-data"), format!("{name}.token"));
            let first = usize::from(*name == "edge-3");
            let places = ["--kgc", &kgc.address(), "--leader", &ways[first], "--leader", &ways[1 - first]];
            let means = ["--deployment", "kgc-data/deployment.toml", "--token", &own];
            bench.start("edge", &[&["run", "--json", "-d", &data][..], &places, &means].concat())
        })
        .collect();
    let epoch = bench.served(3, (0, 0));
    NAMES.iter().for_each(|name| drop(bench.synced(name, epoch)));
    bench.ok("leader", &["send", "--channel", "orders", "over the relays"]);
    edges.iter().for_each(|edge| drop(edge.line("over the relays")));
    bench.ok("edge", &["send", "-d", "edge-1-data", "up and down again"]);
    leader.line("up and down again");
    edges[2].line("up and down again");
    // Every drone is connected to both.
    relays.iter().for_each(|relay| counted(relay, "quiver_relay_drones", |drones| drones == 3.0));
    counted(&leader, "quiver_leader_relays", |relays| relays == 2.0);
    counted(&leader, "quiver_leader_relayed_connections", |connections| connections == 6.0);
    let told = bench.ok("leader", &["status"]);
    assert!(told.contains("2, with 6 connections of drones"), "{told}");

    relays[0].kill();
    bench.ok("leader", &["rekey"]);
    let epoch = bench.served(3, epoch);
    NAMES.iter().for_each(|name| drop(bench.synced(name, epoch)));

    let _back = relay(&bench, 0, &leader.address(), ways[0].split("/p2p/").next().expect("an address"));
    relays[1].kill();
    bench.ok("leader", &["evict", "edge-2"]);
    let epoch = bench.served(2, epoch);
    ["edge-1", "edge-3"].iter().for_each(|name| drop(bench.synced(name, epoch)));
    eventually("edge-2 knows that it is out", || {
        let status = bench.edge_status("edge-2")?;
        (status["synced"] == false).then_some(())
    });
}

#[test]
fn leader_refuses_what_is_no_identity_of_a_relay() {
    let bench = TestDeployment::new();
    let serve = ["serve", "--kgc", ANY, "--relay", "relay-1"];
    bench.refused("leader", &serve, 2, &["`relay`", "relay-1"]);
    let serve = ["serve", "--kgc", ANY, "--relay-file", "relays.txt"];
    bench.refused("leader", &serve, 2, &["there is no file relays.txt"]);
    std::fs::write(bench.path("relays.txt"), "\nrelay-1\n").expect("write");
    bench.refused("leader", &serve, 2, &["relays.txt: relay-1 is no relay's identity"]);
}
