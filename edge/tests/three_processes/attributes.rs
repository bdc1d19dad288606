//! Attribute keys over real connections: granted, fetched, changed, withdrawn, refused; and what they open.

use std::fs;

use quiver_ainq::Ristretto255;
use quiver_service::keyring::{ATTACHMENT, Keyring};
use quiver_service::node_state::{Missing, NodeState};
use quiver_service::state_file::StateFile;
use quiver_service_testing::deployment::ANY;
use quiver_service_testing::{TestDeployment, eventually};
use serde_json::{Value, json};

use crate::swarm::{Swarm, socket_of};
use crate::{deployment, enrol, owner, protection, secrets};

const SCHEMA: &str = "integers = { altitude = \"16 bits\" }\n";

/// A deployment with two authorities, set up before the KGC runs.
fn with_authorities() -> TestDeployment {
    let bench = TestDeployment::new();
    fs::write(bench.path("schema.toml"), SCHEMA).expect("write");
    bench.ok("kgc", &["abe", "setup", "--name", "orders", "--schema", "schema.toml"]);
    let sensors = ["abe", "setup", "--name", "sensors", "--scheme", "fabeo22-kp", "--schema", "schema.toml"];
    bench.ok("kgc", &sensors);
    bench
}

fn enrolled(bench: &TestDeployment, kgc_at: &str, name: &str) {
    let token = bench.token(name, &["--group", "alpha"]);
    bench.ok("edge", &enrol(&format!("{name}-data"), &token, kgc_at));
}

/// Fetches; what came of each authority.
fn fetch(bench: &TestDeployment, drone: &str, kgc_at: &str) -> Value {
    let data = format!("{drone}-data");
    let report = bench.ok("edge", &["abe", "fetch", "--json", "-d", &data, "--kgc", kgc_at]);
    serde_json::from_str::<Value>(&report).expect("json")["answered"].clone()
}

fn seal(bench: &TestDeployment, kind: &str, text: &str, authority: &str, out: &str) {
    fs::write(bench.path("order.txt"), "return to base").expect("write");
    let authority = format!("kgc-data/{authority}.authority");
    let deployment = ["--deployment", "kgc-data/deployment.toml"];
    // Copied as a drone keeps it: who seals needs no state.
    fs::create_dir_all(bench.path("nobody")).expect("mkdir");
    fs::copy(bench.path(deployment[1]), bench.path("nobody/deployment.toml")).expect("copy");
    let what = ["envelope", "seal", "order.txt", "-d", "nobody", kind, text, "--authority", &authority];
    bench.ok("edge", &[&what[..], &["--unsigned", "--out", out]].concat());
}

/// Returns true if the drone opens it.
fn opens(bench: &TestDeployment, drone: &str, envelope: &str) -> bool {
    let _ = fs::remove_file(bench.path("opened.txt"));
    let data = format!("{drone}-data");
    let output = bench.run("edge", &["envelope", "open", envelope, "--out", "opened.txt", "-d", &data]);
    let opened = fs::read(bench.path("opened.txt")).is_ok_and(|text| text == b"return to base");
    assert_eq!(output.status.success(), opened, "{}", String::from_utf8_lossy(&output.stderr));
    opened
}

fn issued(bench: &TestDeployment) -> Vec<(String, String, u64)> {
    let listing: Value = serde_json::from_str(&bench.ok("kgc", &["abe", "list", "--json"])).expect("json");
    let text = |value: &Value| value.as_str().expect("text").to_string();
    let key =
        |key: &Value| (text(&key["authority"]), text(&key["drone"]), key["times"].as_u64().expect("number"));
    listing["keys"].as_array().expect("list").iter().map(key).collect()
}

#[test]
fn granted_keys_are_fetched_and_open_what_they_should() {
    let bench = with_authorities();
    let kgc = bench.kgc(ANY);
    let at = kgc.address();
    enrolled(&bench, &at, "edge-1");
    enrolled(&bench, &at, "edge-2");
    bench.grant(&kgc, "edge-1", &["--attributes", "scout, sector:7, altitude = 150"]);
    bench.grant(&kgc, "edge-1", &["--policy", "thermal or lidar"]);
    bench.grant(&kgc, "edge-2", &["--attributes", "tanker"]);
    let both = json!([["orders", "new-key"], ["sensors", "new-key"]]);
    assert_eq!(sorted(&fetch(&bench, "edge-1", &at)), both);
    let second = json!([["orders", "new-key"], ["sensors", "nothing-granted"]]);
    assert_eq!(sorted(&fetch(&bench, "edge-2", &at)), second);
    seal(&bench, "--policy", "scout and altitude >= 120", "orders", "high.env");
    seal(&bench, "--policy", "scout and altitude >= 151", "orders", "higher.env");
    seal(&bench, "--attributes", "lidar", "sensors", "cloud.env");
    let opened =
        |drone| ["high.env", "higher.env", "cloud.env"].map(|envelope| opens(&bench, drone, envelope));
    assert_eq!(opened("edge-1"), [true, false, true]);
    assert_eq!(opened("edge-2"), [false, false, false]);
    // The same once more costs no key: a KGC that was killed remembers, and knows before it listens who was
    // revoked while it was down.
    kgc.kill();
    bench.ok("kgc", &["drone", "revoke", "edge-2"]);
    let _kgc = bench.kgc(socket_of(&at));
    let asks = ["abe", "fetch", "-d", "edge-2-data", "--kgc", &at];
    bench.refused("edge", &asks, 3, &["no attribute keys", "revoked"]);
    let held = json!([["orders", "held"], ["sensors", "held"]]);
    assert_eq!(sorted(&fetch(&bench, "edge-1", &at)), held);
    let once = |authority: &str, drone: &str| (authority.to_string(), drone.to_string(), 1);
    assert_eq!(
        issued(&bench),
        [once("orders", "edge-1"), once("orders", "edge-2"), once("sensors", "edge-1")]
    );
    bench.ok("kgc", &["audit"]);
    assert_eq!(secrets::find(&attribute_secrets(&bench), &bench.all_logs()), Vec::<String>::new());
}

/// Sorts answers by the authority's name: they come in the order of their fingerprints.
fn sorted(answered: &Value) -> Value {
    let mut answered = answered.as_array().expect("list").clone();
    answered.sort_by_key(|pair| pair[0].to_string());
    Value::from(answered)
}

/// Secret parts of attribute keys and of the authorities: every stretch of 32 bytes towards the end of each,
/// where the elements are.
fn attribute_secrets(bench: &TestDeployment) -> Vec<secrets::Secret> {
    let deployment = deployment(bench);
    let mut found = Vec::new();
    let mut take = |what: &str, bytes: &[u8]| {
        let tail = &bytes[bytes.len() - bytes.len().min(64)..];
        found.extend(tail.windows(32).map(|window| (what.to_string(), window.to_vec())));
    };
    for drone in ["edge-1", "edge-2"] {
        let data = bench.path(&format!("{drone}-data"));
        let owner = owner(&deployment, "edge");
        let (state, _) = NodeState::open(&data, &owner, &protection(bench), Missing::Refuse).expect("open");
        let bytes = state.attachment(ATTACHMENT).expect("a keyring");
        let keyring = Keyring::<Ristretto255>::decode(bytes, &deployment).expect("decode");
        for entry in keyring.entries() {
            if let Some(held) = &entry.key {
                take("attribute key", &held.key);
            }
        }
    }
    let (path, owner) = (bench.path("kgc-data/authorities.state"), owner(&deployment, "kgc-attributes"));
    let (_, records) = StateFile::open(&path, &owner, &protection(bench)).expect("open");
    records.iter().for_each(|record| take("master key", record));
    assert!(found.len() > 100, "what to look for was found");
    found
}

#[test]
fn changed_withdrawn_and_refused_grants_reach_the_drone() {
    let bench = with_authorities();
    let kgc = bench.kgc(ANY);
    let at = kgc.address();
    enrolled(&bench, &at, "edge-1");
    bench.grant(&kgc, "edge-1", &["--attributes", "scout"]);
    fetch(&bench, "edge-1", &at);
    seal(&bench, "--policy", "night", "orders", "night.env");
    seal(&bench, "--policy", "scout", "orders", "scout.env");
    assert_eq!(["night.env", "scout.env"].map(|envelope| opens(&bench, "edge-1", envelope)), [false, true]);
    bench.grant(&kgc, "edge-1", &["--attributes", "night"]);
    // Perhaps too soon after the first: then the drone waits and asks again.
    fetch(&bench, "edge-1", &at);
    assert_eq!(["night.env", "scout.env"].map(|envelope| opens(&bench, "edge-1", envelope)), [true, false]);
    bench.ok("kgc", &["abe", "revoke", "--drone", "edge-1", "--authority", "orders"]);
    kgc.logged("withdrawn in the registry");
    let withdrawn = json!([["orders", "withdrawn"], ["sensors", "nothing-granted"]]);
    assert_eq!(sorted(&fetch(&bench, "edge-1", &at)), withdrawn);
    assert!(!opens(&bench, "edge-1", "night.env"));
    bench.ok("kgc", &["drone", "revoke", "edge-1"]);
    kgc.logged("revocation list signed");
    let fetch = ["abe", "fetch", "-d", "edge-1-data", "--kgc", &at];
    bench.refused("edge", &fetch, 3, &["no attribute keys", "revoked"]);
    let mut nowhere =
        bench.command("edge", &["abe", "fetch", "-d", "edge-1-data", "--kgc", "/ip4/127.0.0.1/tcp/9"]);
    nowhere.env("QUIVER_EDGE_ENROL_TIMEOUT", "1s");
    bench.expect_refusal("edge", nowhere, 8, &["not done within 1s"]);
    bench.refused("edge", &["abe", "list", "-d", "nobody-here"], 2, &["--deployment"]);
    bench.ok("kgc", &["audit"]);
}

#[test]
fn running_edges_and_leaders_fetch_when_told_and_at_their_start() {
    let bench = with_authorities();
    let mut swarm = Swarm::start(bench, ANY);
    let (kgc_at, leader_at) = (swarm.kgc_at.clone(), swarm.leader_at.clone());
    let bench = &swarm.bench;
    bench.grant(&swarm.kgc, "edge-1", &["--attributes", "scout"]);
    bench.grant(&swarm.kgc, "leader-1", &["--attributes", "command"]);
    let said = bench.ok("edge", &["abe", "fetch", "-d", "edge-1-data"]);
    assert!(said.contains("orders: new key") && said.contains("sensors: nothing granted"), "{said}");
    let said = bench.ok("leader", &["abe", "fetch"]);
    assert!(said.contains("orders: new key"), "{said}");
    let listed = bench.ok("leader", &["abe", "list"]);
    assert!(listed.contains("fabeo22-cp") && listed.contains(" bytes"), "{listed}");
    seal(bench, "--policy", "scout or command", "orders", "either.env");
    assert!(opens(bench, "edge-1", "either.env"), "through the running edge");
    assert!(!opens(bench, "edge-2", "either.env"));
    // Both survive kill -9, and the second edge fetches at its next start, without being told.
    bench.grant(&swarm.kgc, "edge-2", &["--attributes", "scout"]);
    for edge in &mut swarm.edges {
        edge.kill();
    }
    let run =
        ["run", "--json", "-d", "edge-2-data", "--kgc", &kgc_at, "--leader", &leader_at, "--attributes"];
    swarm.edges[1] = bench.start("edge", &run);
    // Not asked before it runs: that would open the state file in its place.
    swarm.edges[1].logged("attribute keys are up to date");
    let held = eventually("edge-2 holds its key", || {
        let listed = bench.run("edge", &["abe", "list", "--json", "-d", "edge-2-data"]);
        let lines: Value = serde_json::from_slice(&listed.stdout).ok()?;
        lines.as_array()?.iter().find(|line| line["key_length"].is_u64()).cloned()
    });
    assert_eq!(held["authority"], "orders");
    assert!(opens(bench, "edge-2", "either.env"));
    assert!(opens(bench, "edge-1", "either.env"), "from its state file, with nobody running");
}
