//! QUIC: a swarm over it in a build that has it, and an address with it refused in one that has not.

#[cfg(feature = "quic")]
use crate::swarm::Swarm;
use quiver_service_testing::TestDeployment;

#[cfg(feature = "quic")]
#[test]
fn group_message_and_new_key_arrive() {
    let swarm = Swarm::start(TestDeployment::new(), "/ip4/127.0.0.1/udp/0/quic-v1");
    assert!(swarm.leader_at.contains("/quic-v1/"), "{}", swarm.leader_at);
    swarm.message_arrives("hello over QUIC");
    let before = swarm.in_sync((0, 0));
    swarm.bench.ok("leader", &["rekey"]);
    assert!(swarm.in_sync(before) > before);
}

/// An address with QUIC, and what its refusal says.
#[cfg(not(feature = "quic"))]
const ADDRESS: &str = "/ip4/127.0.0.1/udp/9/quic-v1";
#[cfg(not(feature = "quic"))]
const COMPLAINT: [&str; 4] =
    [ADDRESS, "this build has no QUIC", "cargo services --features quic", "write /ip4/127.0.0.1/tcp/9"];

#[cfg(not(feature = "quic"))]
#[test]
fn address_is_refused_before_anything_is_made() {
    let bench = TestDeployment::new();
    let (edge, leader) = (bench.token("edge-1", &[]), bench.token("leader-1", &["--leads", "alpha"]));
    let deployment = ["--deployment", "kgc-data/deployment.toml"];
    let refused = |program: &str, args: &[&str]| {
        bench.refused(program, &[args, &["-d", "new"]].concat(), 2, &COMPLAINT);
        assert!(!bench.path("new").exists(), "{program} {args:?}");
    };
    let (one, other) = (["--token", &edge], ["--token", &leader]);
    refused("edge", &[&["enrol", "--kgc", ADDRESS][..], &one[..], &deployment[..]].concat());
    refused("edge", &[&["run", "--leader", ADDRESS][..], &one[..], &deployment[..]].concat());
    refused("edge", &["relay", "--group", "alpha", "--leader", "/ip4/127.0.0.1/tcp/9", "--listen", ADDRESS]);
    refused("edge", &["relay", "--group", "alpha", "--leader", ADDRESS, "--listen", "/ip4/127.0.0.1/tcp/0"]);
    for flag in ["--listen", "--peer", "--kgc"] {
        refused("leader", &[&["serve", flag, ADDRESS][..], &other[..], &deployment[..]].concat());
    }
    refused("kgc", &["init", "--deployment", "alps", "--operator", "operator.pub", "--address", ADDRESS]);
    bench.refused("kgc", &["serve", "--listen", ADDRESS], 2, &COMPLAINT);
}

#[cfg(not(feature = "quic"))]
#[test]
fn address_in_a_deployment_file_is_refused_and_a_flag_stands_in_for_it() {
    let bench = TestDeployment::new();
    let token = bench.token("edge-1", &[]);
    let path = bench.path("kgc-data/deployment.toml");
    let text = std::fs::read_to_string(&path).expect("read");
    let changed = text.replace("addresses = []", &format!("addresses = [\"{ADDRESS}\"]"));
    assert_ne!(changed, text);
    std::fs::write(&path, changed).expect("write");
    let given = ["--deployment", "kgc-data/deployment.toml", "--token", &token, "-d", "new"];
    bench.refused("edge", &[&["enrol"][..], &given[..]].concat(), 2, &COMPLAINT);
    assert!(!bench.path("new").exists());
    bench.refused("kgc", &["serve", "--listen", "/ip4/127.0.0.1/tcp/0"], 2, &COMPLAINT);
    let tcp = ["enrol", "--kgc", "/ip4/127.0.0.1/tcp/9", "--enrol-timeout", "1s"];
    bench.refused("edge", &[&tcp[..], &given[..]].concat(), 8, &["not enrolled within 1s", "127.0.0.1:9"]);
}
