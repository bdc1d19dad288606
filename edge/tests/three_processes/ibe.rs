//! Encryption to conditions over real connections: sealed today, opened when an operator, the clock or being
//! the right drone allows it; refused, withdrawn, and from what is kept.

use std::fs;
use std::process::Command;

use quiver_ibe::IdentityKey;
use quiver_service::node_state::{Missing, NodeState};
use quiver_service::state_file::StateFile;
use quiver_service_testing::deployment::ANY;
use quiver_service_testing::{Process, TestDeployment, text};
use serde_json::Value;

use crate::swarm::{Swarm, socket_of};
use crate::{deployment, drones, enrol, owner, protection, secrets};

const PHASE: &str = "mission/alpha/phase-2";
const FAR: &str = "not-before/2099-01-01T00:00:00Z";
const LONG_AGO: &str = "not-before/2020-01-01T00:00:00Z";
const PLAN: &str = "cross the river at dawn";

/// A deployment with a master key, set up before the KGC runs.
fn with_master_key() -> TestDeployment {
    let bench = TestDeployment::new();
    let said = bench.ok("kgc", &["ibe", "setup"]);
    assert!(said.contains("mission, drone, not-before"), "{said}");
    bench.refused("kgc", &["ibe", "setup", "--name", "other"], 3, &["ibe", "set up before"]);
    bench
}

fn enrolled(bench: &TestDeployment, kgc_at: &str, name: &str) {
    let token = bench.token(name, &["--group", "alpha"]);
    bench.ok("edge", &enrol(&format!("{name}-data"), &token, kgc_at));
}

/// Encrypts as somebody does who has two public files and nothing else.
fn encrypt(bench: &TestDeployment, condition: &str, out: &str) {
    fs::write(bench.path("plan.txt"), PLAN).expect("write");
    fs::create_dir_all(bench.path("nobody")).expect("mkdir");
    fs::copy(bench.path("kgc-data/deployment.toml"), bench.path("nobody/deployment.toml")).expect("copy");
    let authority = ["--authority", "kgc-data/ibe.ibe"];
    let what = ["ibe", "encrypt", "plan.txt", "-d", "nobody", "--to", condition, "--out", out];
    bench.ok("edge", &[&what[..], &authority].concat());
}

fn decrypting<'a>(data: &'a str, file: &'a str, kgc_at: &'a str) -> [&'a str; 9] {
    ["ibe", "decrypt", file, "--out", "opened.txt", "-d", data, "--kgc", kgc_at]
}

fn opens(bench: &TestDeployment, drone: &str, file: &str, kgc_at: &str) {
    let _ = fs::remove_file(bench.path("opened.txt"));
    bench.ok("edge", &decrypting(&format!("{drone}-data"), file, kgc_at));
    assert_eq!(fs::read_to_string(bench.path("opened.txt")).expect("read"), PLAN);
}

fn refused(bench: &TestDeployment, drone: &str, file: &str, kgc_at: &str, parts: &[&str]) {
    let _ = fs::remove_file(bench.path("opened.txt"));
    bench.refused("edge", &decrypting(&format!("{drone}-data"), file, kgc_at), 3, parts);
    assert!(!bench.path("opened.txt").exists(), "nothing was written");
}

fn approve(bench: &TestDeployment, kgc: &Process) {
    bench.ok("kgc", &["ibe", "release", PHASE]);
    kgc.logged(&format!("release of {PHASE} approved"));
}

fn released(bench: &TestDeployment) -> Vec<(String, String)> {
    let listing: Value = serde_json::from_str(&bench.ok("kgc", &["ibe", "list", "--json"])).expect("json");
    let text = |value: &Value| value.as_str().expect("text").to_string();
    let shares = listing["shares"].as_array().expect("list").iter();
    shares.map(|share| (text(&share["condition"]), text(&share["drone"]))).collect()
}

#[test]
fn orders_open_when_the_phase_begins_and_not_before() {
    let bench = with_master_key();
    let kgc = bench.kgc(ANY);
    let at = kgc.address();
    enrolled(&bench, &at, "edge-1");
    enrolled(&bench, &at, "edge-2");
    encrypt(&bench, PHASE, "plan.age");
    encrypt(&bench, FAR, "far.age");
    refused(&bench, "edge-1", "plan.age", &at, &["KGC 1", "no operator has approved it"]);
    refused(&bench, "edge-1", "far.age", &at, &[FAR, "opens at 2099-01-01T00:00:00Z, in ", "by its clock"]);
    bench.refused("kgc", &["ibe", "release", FAR], 2, &["by the clock"]);
    approve(&bench, &kgc);
    opens(&bench, "edge-1", "plan.age", &at);
    let listed = bench.ok("edge", &["ibe", "list", "-d", "edge-1-data"]);
    assert_eq!(listed.trim(), PHASE);
    // Killed, it remembers what was approved; who has the key needs no KGC.
    kgc.kill();
    opens(&bench, "edge-1", "plan.age", &at);
    let mut nowhere = bench.command("edge", &decrypting("edge-2-data", "plan.age", &at));
    nowhere.env("QUIVER_EDGE_ENROL_TIMEOUT", "1s");
    bench.expect_refusal("edge", nowhere, 8, &["no KGC said what shares there are", "running and reachable"]);
    let kgc = bench.kgc(socket_of(&at));
    opens(&bench, "edge-2", "plan.age", &at);
    assert_eq!(released(&bench), [(PHASE.into(), "edge-1".into()), (PHASE.into(), "edge-2".into())]);
    bench.ok("kgc", &["audit"]);
    assert!(text(&kgc.err).contains("key share released"));
    assert_eq!(secrets::find(&key_secrets(&bench), &bench.all_logs()), Vec::<String>::new());
}

#[test]
fn keys_go_only_to_whom_policies_and_the_revocation_list_let_have_them() {
    let bench = with_master_key();
    let kgc = bench.kgc(ANY);
    let at = kgc.address();
    for name in ["edge-1", "edge-2", "edge-3"] {
        enrolled(&bench, &at, name);
    }
    let serial = drones(&bench)[0]["serial"].as_str().expect("serial").to_string();
    encrypt(&bench, &format!("drone/{serial}"), "own.age");
    opens(&bench, "edge-1", "own.age", &at);
    refused(&bench, "edge-2", "own.age", &at, &["names another drone"]);
    encrypt(&bench, PHASE, "plan.age");
    approve(&bench, &kgc);
    bench.ok("kgc", &["ibe", "policy", "allow", "mission/alpha", "--group", "bravo"]);
    kgc.logged("identity keys of mission/alpha allowed");
    refused(&bench, "edge-2", "plan.age", &at, &["no policy allows it"]);
    bench.ok("kgc", &["ibe", "policy", "allow", "mission/alpha", "--group", "alpha"]);
    let shown = bench.ok("kgc", &["ibe", "policy"]);
    assert!(shown.contains("mission/alpha") && shown.contains("not-before"), "{shown}");
    bench.ok("kgc", &["drone", "revoke", "edge-3"]);
    kgc.logged("revocation list signed");
    // The policy came before the revocation, so that it is in force by now.
    opens(&bench, "edge-2", "plan.age", &at);
    refused(&bench, "edge-3", "plan.age", &at, &["revoked"]);
    bench.ok("kgc", &["ibe", "release", PHASE, "--withdraw"]);
    kgc.logged(&format!("release of {PHASE} withdrawn"));
    refused(&bench, "edge-1", "plan.age", &at, &["no operator has approved it"]);
    opens(&bench, "edge-2", "plan.age", &at);
    bench.ok("kgc", &["audit"]);
}

#[test]
fn running_edges_and_leaders_collect_when_told_and_wait_if_they_shall() {
    let swarm = Swarm::start(with_master_key(), ANY);
    let bench = &swarm.bench;
    // The leader has what is needed to encrypt from the KGC.
    fs::write(bench.path("plan.txt"), PLAN).expect("write");
    bench.ok("leader", &["ibe", "encrypt", "plan.txt", "--to", PHASE, "--to", FAR, "--out", "plan.age"]);
    let published = ["ibe", "authority", "-d", "edge-1-data", "--out", "fetched.ibe"];
    bench.ok("edge", &published);
    assert_eq!(text(&bench.path("fetched.ibe")), text(&bench.path("kgc-data/ibe.ibe")));
    let held = bench.ok("edge", &["ibe", "key", "--condition", LONG_AGO, "-d", "edge-1-data", "--json"]);
    assert!(held.contains(LONG_AGO), "{held}");
    let waiting = ["ibe", "key", "--condition", PHASE, "--wait", "40s", "-d", "edge-1-data"];
    let waits = bench.start("edge", &waiting);
    swarm.kgc.logged("no operator has approved it");
    approve(bench, &swarm.kgc);
    assert_eq!(waits.wait().code(), Some(0), "{}", text(&waits.err));
    assert!(waits.line("key held").contains(PHASE));
    let decrypt = ["ibe", "decrypt", "plan.age", "--out", "opened.txt", "-d", "edge-1-data"];
    bench.ok("edge", &decrypt);
    assert_eq!(text(&bench.path("opened.txt")), PLAN);
    // The other one from standard input to standard output.
    let mut command: Command = bench.command("edge", &["ibe", "decrypt", "-d", "edge-2-data"]);
    command.stdin(fs::File::open(bench.path("plan.age")).expect("open"));
    assert_eq!(bench.finish("edge", command).stdout, PLAN.as_bytes());
}

/// Three KGCs of which two act, and the operators of two of them.
#[test]
fn any_two_of_three_kgcs_begin_the_phase_together() {
    let bench = TestDeployment::new();
    let free = || std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let ports: Vec<_> =
        [free(), free(), free()].iter().map(|port| port.local_addr().expect("bound").port()).collect();
    let (ids, dirs) = (["1", "2", "3"], ["kgc-1", "kgc-2", "kgc-3"]);
    let addresses: Vec<_> = ports.iter().map(|port| format!("/ip4/127.0.0.1/tcp/{port}")).collect();
    let mut file = "deployment = 'alps'\nthreshold = 2\n".to_string();
    for place in 0..3 {
        let key = ["quorum", "key", "--id", ids[place], "--address", &addresses[place], "-d", dirs[place]];
        file += &bench.ok("kgc", &key);
    }
    fs::write(bench.path("quorum.toml"), file).expect("write");
    for dir in dirs {
        let init = ["quorum", "init", "--file", "quorum.toml", "--operator", "operator.pub", "-d", dir];
        bench.ok("kgc", &init);
    }
    let serve =
        |place: usize| bench.start("kgc", &["serve", "--listen", &addresses[place], "-d", dirs[place]]);
    let kgcs = [serve(0), serve(1), serve(2)];
    for kgc in &kgcs {
        kgc.logged("key shares are released");
    }
    bench.refused("kgc", &["ibe", "setup", "-d", "kgc-1"], 2, &["nothing to set up"]);
    let deployment = ["--deployment", "kgc-1/deployment.toml"];
    let issue = ["token", "issue", "--operator", "operator.key", "--name", "edge-1", "--group", "alpha"];
    bench.ok("kgc", &[&issue[..], &deployment, &["-d", "kgc-1"]].concat());
    bench.ok("edge", &[&["enrol", "-d", "edge-1-data", "--token", "edge-1.token"][..], &deployment].concat());
    fs::write(bench.path("plan.txt"), PLAN).expect("write");
    bench
        .ok("edge", &["ibe", "encrypt", "plan.txt", "-d", "edge-1-data", "--to", PHASE, "--out", "plan.age"]);
    let decrypt = ["ibe", "decrypt", "plan.age", "--out", "opened.txt", "-d", "edge-1-data"];
    bench.ok("kgc", &["ibe", "release", PHASE, "-d", "kgc-1"]);
    kgcs[0].logged(&format!("release of {PHASE} approved"));
    bench.refused("edge", &decrypt, 3, &[" of 2 required key shares", "no operator has approved it"]);
    bench.ok("kgc", &["ibe", "release", PHASE, "-d", "kgc-3"]);
    kgcs[2].logged(&format!("release of {PHASE} approved"));
    kgcs[1].kill();
    bench.ok("edge", &decrypt);
    assert_eq!(text(&bench.path("opened.txt")), PLAN);
    bench.ok("kgc", &["audit", "-d", "kgc-1"]);
}

/// The keys that drones keep, and the master key.
fn key_secrets(bench: &TestDeployment) -> Vec<secrets::Secret> {
    let deployment = deployment(bench);
    let mut found = Vec::new();
    for drone in ["edge-1", "edge-2"] {
        let data = bench.path(&format!("{drone}-data"));
        let owner = owner(&deployment, "edge");
        let (state, _) = NodeState::open(&data, &owner, &protection(bench), Missing::Refuse).expect("open");
        let bytes = state.attachment(quiver_conditions::release::identity_keys::ATTACHMENT).expect("keys");
        let tail = &bytes[bytes.len() - IdentityKey::LEN..];
        found.extend(tail.windows(32).map(|window| ("identity key".to_string(), window.to_vec())));
    }
    let (path, owner) = (bench.path("kgc-data/ibe.state"), owner(&deployment, "kgc-ibe"));
    let (_, records) = StateFile::open(&path, &owner, &protection(bench)).expect("open");
    let [record] = &records[..] else { panic!("{} records", records.len()) };
    found.push(("master key".into(), record[record.len() - 32..].to_vec()));
    assert!(found.len() > 100, "what to look for was found");
    found
}
