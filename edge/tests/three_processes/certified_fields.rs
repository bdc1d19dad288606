//! Certified fields over real connections: fetched, renewed period by period, changed, withdrawn; kept across
//! `kill -9`.

use quiver_service_testing::deployment::ANY;
use quiver_service_testing::{Process, TestDeployment, eventually};
use serde_json::Value;

use crate::enrol;
use crate::swarm::socket_of;

/// A deployment with an authority whose periods are short, set up before the KGC runs.
fn with_authority(period: &str) -> TestDeployment {
    let bench = TestDeployment::new();
    let setup = ["abke", "setup", "--schema", "x: i16, medic: bool", "--period", period];
    bench.ok("kgc", &setup);
    bench
}

fn certify(bench: &TestDeployment, kgc: &Process, x: &str, revision: u32) {
    bench.ok("kgc", &["abke", "certify", "edge-1", x, "medic=true"]);
    kgc.logged(&format!("attribute grant {revision} in the registry"));
}

/// The drone's status of its credential.
fn status(bench: &TestDeployment) -> Value {
    let lines = bench.ok("edge", &["abke", "status", "--json", "-d", "edge-1-data"]);
    serde_json::from_str::<Value>(&lines).expect("json")[0].clone()
}

#[test]
fn fields_are_certified_fetched_changed_and_withdrawn() {
    let bench = with_authority("300d");
    let kgc = bench.kgc(ANY);
    let at = kgc.address();
    let token = bench.token("edge-1", &["--group", "alpha"]);
    bench.ok("edge", &enrol("edge-1-data", &token, &at));
    let fetch = ["abke", "fetch", "-d", "edge-1-data", "--kgc", &at];
    assert!(bench.ok("edge", &fetch).contains("abke: nothing granted"));
    assert_eq!(status(&bench)["standing"], "nothing");
    certify(&bench, &kgc, "x=-7", 1);
    assert!(bench.ok("edge", &fetch).contains("abke: new key"));
    let shown = status(&bench);
    assert_eq!((&shown["fields"], &shown["standing"]), (&"x = -7, medic = true".into(), &"valid".into()));
    // The period is the same after a crash of the KGC, and so is the credential.
    kgc.kill();
    let kgc = bench.kgc(socket_of(&at));
    assert!(bench.ok("edge", &fetch).contains("abke: key held already"));
    certify(&bench, &kgc, "x=300", 2);
    assert!(bench.ok("edge", &fetch).contains("abke: new key"));
    assert_eq!(status(&bench)["fields"], "x = 300, medic = true");
    bench.ok("kgc", &["abke", "revoke", "edge-1"]);
    kgc.logged("withdrawn in the registry");
    assert!(bench.ok("edge", &fetch).contains("abke: grant withdrawn; key erased"));
    assert_eq!(status(&bench)["standing"], "nothing");
    bench.ok("kgc", &["audit"]);
}

#[test]
fn running_edge_renews_its_credential_by_itself_and_loses_it_when_revoked() {
    let bench = with_authority("10s");
    let kgc = bench.kgc(ANY);
    let at = kgc.address();
    let token = bench.token("edge-1", &["--group", "alpha"]);
    bench.ok("edge", &enrol("edge-1-data", &token, &at));
    certify(&bench, &kgc, "x=1", 1);
    // Nobody leads: what is certified does not depend on it.
    let run = [
        "run",
        "--json",
        "-d",
        "edge-1-data",
        "--kgc",
        &at,
        "--leader",
        "/ip4/127.0.0.1/tcp/9",
        "--attributes",
    ];
    let edge = bench.start("edge", &run);
    edge.logged("attribute keys are up to date");
    let until = |bench: &TestDeployment| status(bench)["valid_until"].as_str().map(String::from);
    let first = eventually("a credential", || until(&bench));
    eventually("the credential of a later period", || until(&bench).filter(|until| *until > first));
    bench.ok("kgc", &["abke", "revoke", "edge-1"]);
    kgc.logged("withdrawn in the registry");
    eventually("the credential is erased", || (status(&bench)["standing"] == "nothing").then_some(()));
}
