//! QUIC: an address with it is refused by a build that has none.

use quiver_service_testing::TestDeployment;

/// An address with QUIC, and what its refusal says.
const ADDRESS: &str = "/ip4/127.0.0.1/udp/9/quic-v1";
const COMPLAINT: [&str; 4] =
    [ADDRESS, "this build has no QUIC", "cargo services --features quic", "write /ip4/127.0.0.1/tcp/9"];

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
    let tcp = ["enrol", "--kgc", "/ip4/127.0.0.1/tcp/9"];
    bench.gives_up(&[&tcp[..], &given[..]].concat(), &["127.0.0.1:9"]);
}
