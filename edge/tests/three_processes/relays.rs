//! Drones behind `edge relay`: they join, follow, speak and are put out over one connection of the leader; a relay that
//! is killed, and one that comes back.

use quiver_service_testing::deployment::ANY;
use quiver_service_testing::{Process, TestDeployment, eventually};

const NAMES: [&str; 3] = ["edge-1", "edge-2", "edge-3"];

fn relay(bench: &TestDeployment, number: usize, leader: &str, listen: &str) -> Process {
    let data = format!("relay-{number}-data");
    bench.start("edge", &["relay", "-d", &data, "--group", "alpha", "--leader", leader, "--listen", listen])
}

/// The identity that it prints.
fn identity(relay: &Process) -> String {
    let line = relay.line("leader serve --relay");
    let identity = line.split(['"', ' ', ':']).find(|word| word.starts_with("12D3KooW"));
    identity.unwrap_or_else(|| panic!("an identity in {line}")).to_owned()
}

#[test]
fn drones_behind_relays_follow_one_connection_each_and_go_elsewhere_when_theirs_is_killed() {
    let bench = TestDeployment::new();
    let token = bench.token("leader-1", &["--leads", "alpha"]);
    NAMES.iter().for_each(|name| drop(bench.token(name, &["--group", "alpha"])));
    let kgc = bench.kgc(ANY);
    // Their identities are known before there is a leader.
    let identities: Vec<_> = (0..2)
        .map(|number| {
            let early = relay(&bench, number, "/ip4/127.0.0.1/tcp/1", ANY);
            let identity = identity(&early);
            assert!(early.terminate().success());
            identity
        })
        .collect();
    let known = ["--relay", &identities[0], "--relay", &identities[1]];
    let leader = bench.leader(&kgc.address(), ANY, Some(&token), &known);
    let relays: Vec<_> = (0..2).map(|number| relay(&bench, number, &leader.address(), ANY)).collect();
    assert_eq!(identity(&relays[0]), identities[0], "the same at every start");
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
}
