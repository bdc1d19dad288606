//! The three services as separate processes on loopback: enrol, join, speak; `kill -9` of each role and
//! recovery; metrics and health; two processes of one identity; what bad tokens, state files, passphrases,
//! ports and clocks get; a scan of everything logged for secrets; and the commands of README and guide.

#[path = "three_processes/admission.rs"]
mod admission;
#[path = "three_processes/attributes.rs"]
mod attributes;
#[path = "three_processes/certified_fields.rs"]
mod certified_fields;
#[path = "three_processes/clocks.rs"]
mod clocks;
#[path = "three_processes/command_line.rs"]
mod command_line;
#[path = "three_processes/condition_files.rs"]
mod condition_files;
#[path = "three_processes/copies.rs"]
mod copies;
#[path = "three_processes/drone_status.rs"]
mod drone_status;
#[path = "three_processes/envelopes.rs"]
mod envelopes;
#[path = "three_processes/failover.rs"]
mod failover;
#[path = "three_processes/guide.rs"]
mod guide;
#[path = "three_processes/ibe.rs"]
mod ibe;
#[path = "three_processes/kem_exchange.rs"]
mod kem_exchange;
#[path = "three_processes/mavlink.rs"]
mod mavlink;
#[path = "three_processes/misplaced_secrets.rs"]
mod misplaced_secrets;
#[path = "three_processes/monitoring.rs"]
mod monitoring;
#[path = "three_processes/queued_messages.rs"]
mod queued_messages;
#[cfg_attr(feature = "quic", path = "three_processes/quic.rs")]
#[cfg_attr(not(feature = "quic"), path = "three_processes/quic/absent.rs")]
mod quic;
#[path = "three_processes/relays.rs"]
mod relays;
#[path = "three_processes/requests.rs"]
mod requests;
#[path = "three_processes/secrets.rs"]
mod secrets;
#[path = "three_processes/status_watch.rs"]
mod status_watch;
#[path = "three_processes/swarm.rs"]
mod swarm;
#[path = "three_processes/unwritable_output.rs"]
mod unwritable_output;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use quiver_ainq::suite::BLS12381G1_ID;
use quiver_ainq::{Deployment, Ristretto255, Suite as _};
use quiver_service::armour::{self, ArmourKind};
use quiver_service::deployment_file::{DeploymentFile, owner};
use quiver_service::node_state::{Missing, NodeState};
use quiver_service::operator_key;
use quiver_service::secrets::Protection;
use quiver_service::state_file::StateFile;
use quiver_service_testing::deployment::{ANY, KEY, PASSPHRASE};
use quiver_service_testing::{TestDeployment, eventually};

use self::secrets::Secret;
use self::swarm::{Swarm, socket_of};

#[test]
fn group_message_arrives_and_every_role_survives_kill_nine() {
    let mut swarm = Swarm::start(TestDeployment::with_passphrase(), ANY);
    let mut secrets = secrets_of_the_kgc(&swarm.bench);
    swarm.message_arrives("hello from the start");
    assert_eq!(swarm.bench.keys_issued(), 3);
    leader_is_killed(&mut swarm);
    kgc_is_killed(&mut swarm);
    edge_is_killed(&mut swarm, &mut secrets);
    assert_eq!(swarm.bench.keys_issued(), 3, "nobody enrolled anew");
    all_end_gracefully(&mut swarm, &mut secrets);
    let logs = swarm.bench.all_logs();
    assert!(logs.iter().any(|(_, log)| log.len() > 100_000), "everything was logged");
    assert!(secrets.len() > 500, "what to look for was found");
    assert_eq!(secrets::find(&secrets, &logs), Vec::<String>::new());
}

#[test]
fn files_of_the_reserved_suite_are_refused_by_every_program_with_what_to_do() {
    let bench = TestDeployment::new();
    let token = bench.token("edge-1", &[]);
    let of_reserved_suite = |file: &str| {
        let text = fs::read_to_string(bench.path(file)).expect("read");
        assert!(text.contains(Ristretto255::ID), "{text}");
        fs::write(bench.path(file), text.replace(Ristretto255::ID, BLS12381G1_ID)).expect("write");
    };
    let nobody = "/ip4/127.0.0.1/tcp/9";
    let good = fs::read_to_string(bench.path(&token)).expect("read");
    of_reserved_suite(&token);
    let told = ["edge-1.token: it is of suite bls12-381-g1", "reserved", "kgc init"];
    bench.refused("edge", &enrol("one", &token, nobody), 2, &told);
    fs::write(bench.path(&token), good).expect("write");
    of_reserved_suite("kgc-data/deployment.toml");
    let told = ["deployment.toml: it is of suite bls12-381-g1", "reserved", "kgc init"];
    bench.refused("edge", &enrol("one", &token, nobody), 2, &told);
    bench.refused("kgc", &["serve"], 2, &told);
    let serve = ["serve", "--deployment", "kgc-data/deployment.toml", "--token", token.as_str()];
    bench.refused("leader", &serve, 2, &told);
}

fn leader_is_killed(swarm: &mut Swarm) {
    let before = swarm.in_sync((0, 0));
    swarm.leader.kill();
    swarm.bench.refused("leader", &["status"], 4, &["no leader is running", "leader serve"]);
    swarm.leader = swarm.bench.leader(&swarm.kgc_at, socket_of(&swarm.leader_at), None, &[]);
    let after = swarm.in_sync(before);
    assert!(after > before, "{after:?} after {before:?}");
    swarm.message_arrives("hello after the leader died");
}

fn kgc_is_killed(swarm: &mut Swarm) {
    swarm.kgc.kill();
    swarm.message_arrives("the group needs no KGC");
    swarm.kgc = swarm.bench.kgc(socket_of(&swarm.kgc_at));
    assert_eq!(swarm.kgc.address(), swarm.kgc_at, "the same transport key");
    let names: Vec<_> = drones(&swarm.bench).iter().map(|drone| drone["name"].clone()).collect();
    assert_eq!(names, ["edge-1", "edge-2", "leader-1"]);
}

fn drones(bench: &TestDeployment) -> Vec<serde_json::Value> {
    serde_json::from_str(&bench.ok("kgc", &["drone", "list", "--json"])).expect("json")
}

fn edge_is_killed(swarm: &mut Swarm, secrets: &mut Vec<Secret>) {
    let before = swarm.in_sync((0, 0));
    swarm.edges[0].kill();
    secrets.extend(secrets_of_a_drone(&swarm.bench, "edge-1-data", "edge"));
    swarm.bench.refused("edge", &["status", "-d", "edge-1-data"], 4, &["no edge is running"]);
    swarm.edges[0] = swarm.bench.edge("edge-1", &swarm.kgc_at, &swarm.leader_at);
    let status = swarm.bench.synced("edge-1", before);
    assert_eq!(status["name"], "edge-1");
    swarm.message_arrives("hello after the edge died");
}

fn all_end_gracefully(swarm: &mut Swarm, secrets: &mut Vec<Secret>) {
    for edge in &mut swarm.edges {
        assert_eq!(edge.terminate().code(), Some(0));
    }
    assert_eq!(swarm.leader.terminate().code(), Some(0));
    assert_eq!(swarm.kgc.terminate().code(), Some(0));
    secrets.extend(secrets_of_a_drone(&swarm.bench, "edge-1-data", "edge"));
    secrets.extend(secrets_of_a_drone(&swarm.bench, "edge-2-data", "edge"));
    let state = open_master(&swarm.bench);
    secrets.extend(
        state
            .1
            .iter()
            .filter(|record| record[0] != 2)
            .map(|record| ("master.state".into(), record[1..].to_vec())),
    );
}

fn deployment(bench: &TestDeployment) -> Deployment<Ristretto255> {
    DeploymentFile::read(&bench.path("kgc-data/deployment.toml")).expect("read").pin().expect("pin")
}

fn protection(bench: &TestDeployment) -> Protection {
    let opened = if bench.has_passphrase() {
        Protection::from_passphrase_text(PASSPHRASE.as_bytes(), "test")
    } else {
        Protection::from_key_text(KEY.as_bytes(), "test")
    };
    opened.expect("good")
}

fn open_master(bench: &TestDeployment) -> (StateFile, quiver_service::state_file::Records) {
    let owner = owner(&deployment(bench), "kgc");
    StateFile::open(&bench.path("kgc-data/master.state"), &owner, &protection(bench)).expect("open")
}

/// The passphrase, the operator's key, the tokens' secrets.
fn secrets_of_the_kgc(bench: &TestDeployment) -> Vec<Secret> {
    let mut secrets = vec![("passphrase".to_string(), PASSPHRASE.as_bytes().to_vec())];
    let operator = operator_key::read(&bench.path("operator.key"), || Ok(protection(bench))).expect("read");
    assert!(operator.encrypted);
    secrets.push(("operator's key".into(), operator.key.to_vec()));
    for name in ["edge-1", "edge-2", "leader-1"] {
        let token = armour::read(&bench.path(&format!("{name}.token")), ArmourKind::Token).expect("read");
        secrets.push((format!("{name}'s token"), token[token.len() - 32..].to_vec()));
    }
    secrets
}

/// Every stretch of 32 bytes of a drone's state, but for the public things in it that people are shown: the
/// deployment's fingerprint and the handles of keys.
fn secrets_of_a_drone(bench: &TestDeployment, data: &str, role: &str) -> Vec<Secret> {
    let deployment = deployment(bench);
    let owner = owner(&deployment, role);
    let (state, records) =
        NodeState::open(&bench.path(data), &owner, &protection(bench), Missing::Refuse).expect("open");
    let mut public = vec![hex::encode(deployment.fingerprint())];
    public.extend(drones(bench).iter().map(|drone| drone["handle"].as_str().expect("handle").to_string()));
    let mut secrets = vec![(format!("{data}: transport key"), state.seed().to_vec())];
    for record in &records {
        let windows = record.windows(32).enumerate();
        let kept = windows.filter(|(_, window)| !public.contains(&hex::encode(window)));
        secrets.extend(kept.map(|(at, window)| (format!("{data}: state at {at}"), window.to_vec())));
    }
    secrets
}

#[test]
fn evicted_and_revoked_drones_are_put_out_and_stay_out() {
    let mut swarm = Swarm::new();
    let bench = &swarm.bench;
    bench.refused(
        "leader",
        &["evict", "edge-9"],
        3,
        &["edge-9 is not a member of the group; see `leader status`"],
    );
    bench.ok("leader", &["evict", "edge-2"]);
    swarm.edges[1].line("\"evicted\"");
    bench.served(1, (0, 0));
    bench.refused("edge", &["send", "-d", "edge-2-data", "hello?"], 3, &["not a member (evicted"]);
    bench.ok("kgc", &["drone", "revoke", "edge-1"]);
    bench.refused("kgc", &["drone", "revoke", "edge-1"], 3, &["revoked already"]);
    bench.served(0, (0, 0));
    let status = bench.leader_status().expect("status");
    assert_eq!(status["members"], 0, "{status}");
    // At least the time when it was signed.
    assert!(status["revocation_list"].as_u64() > Some(1_700_000_000), "{status}");
    let (kgc_at, leader_at) = (swarm.kgc_at.clone(), swarm.leader_at.clone());
    swarm.edges[0].kill();
    swarm.edges[0] = bench.edge("edge-1", &kgc_at, &leader_at);
    // The leader does not even talk to it.
    swarm.edges[0].logged("no connection");
    assert_eq!(bench.edge_status("edge-1").expect("status")["synced"], false);
    assert_eq!(bench.leader_status().expect("status")["members"], 0);
    bench.ok("kgc", &["audit"]);
}

#[test]
fn group_of_no_leader_does_not_stick_and_one_outside_the_identity_is_refused() {
    let swarm = Swarm::new();
    let bench = &swarm.bench;
    let token = bench.token("edge-3", &["--group", "alpha", "--group", "beta"]);
    bench.ok("edge", &enrol("edge-3-data", &token, &swarm.kgc_at));
    let run = ["run", "-d", "edge-3-data", "--json", "--leader", &swarm.leader_at];
    let of = |group| bench.start("edge", &[&run[..], &["--group", group]].concat());
    bench.refused("edge", &run, 2, &["which group", "one of alpha, beta"]);
    let mistyped = [&run[..], &["--group", "alhpa"]].concat();
    bench.refused("edge", &mistyped, 2, &["does not allow alhpa", "it allows alpha, beta"]);

    let edge = of("alpha");
    bench.synced("edge-3", bench.served(3, (0, 0)));
    assert_eq!(edge.terminate().code(), Some(0));
    let edge = of("beta");
    edge.line("another group");
    let status = bench.edge_status("edge-3").expect("status");
    assert_eq!(
        (&status["group"], &status["synced"], &status["slot"]),
        (&"beta".into(), &false.into(), &().into()),
        "the old group is forgotten"
    );
    assert_eq!(edge.terminate().code(), Some(0));
    let _edge = bench.start("edge", &run);
    bench.synced("edge-3", bench.served(3, (0, 0)));
    assert_eq!(bench.edge_status("edge-3").expect("status")["group"], "alpha", "it was a member of that one");
}

/// The arguments of `edge enrol` with its own data directory and a token.
fn enrol<'a>(data: &'a str, token: &'a str, kgc: &'a str) -> [&'a str; 9] {
    ["enrol", "-d", data, "--kgc", kgc, "--deployment", "kgc-data/deployment.toml", "--token", token]
}

#[test]
fn bad_tokens_are_refused_with_the_reason_and_a_good_one_helps() {
    let bench = TestDeployment::new();
    let kgc = bench.kgc(ANY);
    let at = kgc.address();
    let refused = |data: &str, token: &str, code, part: &str| {
        bench.refused("edge", &enrol(data, token, &at), code, &[part]);
    };
    let expired = bench.token("edge-1", &["--expires", "1s"]);
    sleep(Duration::from_millis(2100));
    refused("one", &expired, 3, "expired");
    let good = bench.token("edge-1", &[]);
    assert!(bench.ok("edge", &enrol("one", &good, &at)).contains("enrolled as edge-1"));
    refused("two", &good, 3, "already used");
    bench.refused(
        "kgc",
        &["token", "issue", "--operator", "operator.key", "--name", "edge-1"],
        3,
        &["taken"],
    );
    let double = bench.token("edge-1", &["--record", "never"]);
    refused("three", &double, 3, "another drone holds this name");
    let revoked = bench.token("edge-4", &[]);
    bench.ok("kgc", &["token", "revoke", "edge-4"]);
    kgc.logged("tokens revoked in the registry: 1");
    refused("four", &revoked, 3, "revoked");
    bench.ok("kgc", &["operator", "new", "--out", "mallory"]);
    let theirs = ["--record", "never", "--operator", "mallory.key"];
    refused("five", &bench.token_by("edge-5", &theirs), 3, "not signed by an operator");
    let lead = bench.token("leader-6", &["--leads", "alpha"]);
    refused("six", &lead, 2, "use it with `leader`");
}

#[test]
fn garbled_foreign_and_readable_tokens_are_told_without_asking_the_kgc() {
    let (bench, other) = (TestDeployment::new(), TestDeployment::new());
    let nobody = "/ip4/127.0.0.1/tcp/9";
    let token = bench.token("edge-1", &[]);
    let path = bench.path(&token);
    let good = fs::read_to_string(&path).expect("read");
    let put = |text: &str| fs::write(&path, text).expect("write");
    for bad in [&good[..good.len() / 2], &good.replace("0", "1"), "", "hello"] {
        put(bad);
        bench.refused("edge", &enrol("one", &token, nobody), 2, &["edge-1.token"]);
    }
    put(&fs::read_to_string(other.path(&other.token("edge-1", &[]))).expect("read"));
    bench.refused("edge", &enrol("one", &token, nobody), 2, &["another deployment"]);
    put(&good);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("chmod");
    bench.refused("edge", &enrol("one", &token, nobody), 6, &["chmod 600"]);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("chmod");
    let unreached = "no connection to the KGC at 127.0.0.1:9: connection refused";
    let unanswered = enrol("one", &token, nobody);
    bench.gives_up(&unanswered, &[unreached]);
    let theirs = other.kgc(ANY);
    let at = theirs.address();
    bench.refused(
        "edge",
        &enrol("one", &token, "/ip4/127.0.0.1/tcp/9/ws"),
        2,
        &["`kgc`: /ip4/127.0.0.1/tcp/9/ws", "write HOST:PORT"],
    );
    let reasons = ["no connection to the KGC at", "a KGC of another deployment answers there"];
    bench.gives_up(&enrol("one", &token, &at), &reasons);
    theirs.logged("an edge of another deployment dials this one");
    // A log that cannot be written changes nothing.
    let full = fs::File::options().write(true).open("/dev/full").expect("open");
    let short = [&unanswered[..], &["--enrol-timeout", "1s"]].concat();
    let unheard = bench.command("edge", &short).stderr(full).status().expect("run");
    assert_eq!(unheard.code(), Some(8));
    let nothing = ["run", "-d", "two", "--deployment", "kgc-data/deployment.toml"];
    bench.refused("edge", &nothing, 2, &["--leader"]);
    bench.refused("edge", &[&nothing[..], &["--leader", nobody]].concat(), 2, &["--token"]);
    bench.refused("edge", &["run", "-d", "two"], 2, &["--deployment"]);
}

#[test]
fn wrong_passphrases_and_damaged_foreign_or_readable_state_are_refused() {
    let (bench, other) = (TestDeployment::with_passphrase(), TestDeployment::with_passphrase());
    let (kgc, other_kgc) = (bench.kgc(ANY), other.kgc(ANY));
    for (bench, kgc) in [(&bench, &kgc), (&other, &other_kgc)] {
        let token = bench.token("edge-1", &[]);
        bench.ok("edge", &enrol("one", &token, &kgc.address()));
    }
    let again = ["enrol", "-d", "one"];
    let state = bench.path("one/drone.state");
    let good = fs::read(&state).expect("read");
    bad_passphrases(&bench, &again);
    for position in [good.len() / 2, good.len() - 1, 60] {
        let mut bad = good.clone();
        bad[position] ^= 1;
        fs::write(&state, bad).expect("write");
        bench.refused("edge", &again, 7, &["drone.state", "damaged"]);
    }
    fs::write(&state, "hello").expect("write");
    bench.refused("edge", &again, 7, &["not a Quiver state file"]);
    put_in_place(&bench.path("kgc-data/master.state"), &state);
    bench.refused("edge", &again, 7, &["the kgc of deployment alps", "the edge of deployment alps"]);
    put_in_place(&other.path("one/drone.state"), &state);
    bench.refused("edge", &again, 7, &["holds the state of the edge of deployment alps"]);
    fs::write(&state, &good).expect("write");
    fs::set_permissions(&state, fs::Permissions::from_mode(0o640)).expect("chmod");
    bench.refused("edge", &again, 6, &["mode 0640", "chmod 600"]);
    fs::set_permissions(&state, fs::Permissions::from_mode(0o600)).expect("chmod");
    assert!(bench.ok("edge", &again).contains("already enrolled"), "nothing was lost");
}

fn bad_passphrases(bench: &TestDeployment, args: &[&str]) {
    let with = |passphrase: Option<&str>, more: &[&str]| {
        let mut command = bench.command("edge", &[args, more].concat());
        match passphrase {
            Some(passphrase) => command.env("QUIVER_PASSPHRASE", passphrase),
            None => command.env_remove("QUIVER_PASSPHRASE"),
        };
        command
    };
    bench.expect_refusal("edge", with(Some("wrong"), &[]), 6, &["wrong passphrase"]);
    bench.expect_refusal("edge", with(None, &[]), 6, &["no passphrase", "--passphrase-file"]);
    bench.expect_refusal("edge", with(Some(""), &[]), 6, &["empty"]);
    fs::write(bench.path("key"), "ab".repeat(32)).expect("write");
    fs::set_permissions(bench.path("key"), fs::Permissions::from_mode(0o644)).expect("chmod");
    bench.expect_refusal("edge", with(None, &["--key-file", "key"]), 6, &["chmod 600"]);
    fs::set_permissions(bench.path("key"), fs::Permissions::from_mode(0o600)).expect("chmod");
    bench.expect_refusal("edge", with(None, &["--key-file", "key"]), 6, &["use --passphrase-file"]);
    let mut kgc = bench.command("kgc", &["serve", "-d", "kgc-copy"]);
    fs::create_dir(bench.path("kgc-copy")).expect("mkdir");
    for name in ["master.state", "registry.sqlite", "deployment.toml"] {
        fs::copy(bench.path("kgc-data").join(name), bench.path("kgc-copy").join(name)).expect("copy");
    }
    kgc.env("QUIVER_PASSPHRASE", "wrong");
    bench.expect_refusal("kgc", kgc, 6, &["wrong passphrase", "master.state"]);
}

fn put_in_place(from: &Path, to: &Path) {
    fs::write(to, fs::read(from).expect("read")).expect("write");
}

#[test]
fn busy_ports_and_data_directories_are_named() {
    let (bench, other) = (TestDeployment::new(), TestDeployment::new());
    let kgc = bench.kgc(ANY);
    let address = kgc.address();
    let socket = socket_of(&address);
    other.refused("kgc", &["serve", "--listen", "/ip4/127.0.0.1/upd/1"], 2, &["/upd/1"]);
    other.refused("kgc", &["serve", "--listen", socket], 5, &[socket, "in use"]);
    bench.refused("kgc", &["serve", "--listen", ANY], 5, &["master.state", "in use by another process"]);
    let token = other.token("leader-1", &["--leads", "alpha"]);
    let file = "kgc-data/deployment.toml";
    let serve = ["serve", "--deployment", file, "--token", &token, "--kgc", socket, "--listen", socket];
    other.refused("leader", &serve, 5, &[socket, "in use"]);
    eventually("the running one is unharmed", || bench.run("kgc", &["audit"]).status.success().then_some(()));
}

/// A name and groups that make a drone's state larger than files may be in [`without_room`].
fn long_names() -> (String, [String; 5]) {
    ("n".repeat(64), ["a", "b", "c", "d", "e"].map(|letter| letter.repeat(64)))
}

/// A command of `edge` whose files may have 512 or 1,024 bytes, depending on the shell, as on a full disk.
fn without_room(bench: &TestDeployment, args: &[&str]) -> Command {
    let edge = bench.command("edge", args);
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\""]);
    limited.arg(edge.get_program()).args(edge.get_args()).current_dir(bench.path(""));
    limited
}

#[test]
fn full_disk_silences_an_edge_until_there_is_room() {
    let bench = TestDeployment::new();
    let kgc = bench.kgc(ANY);
    let at = kgc.address();
    let (name, groups) = long_names();
    let groups: Vec<_> = groups.iter().flat_map(|group| ["--group", group]).collect();
    let token = bench.token(&name, &groups);
    let mut limited = without_room(&bench, &enrol("one", &token, &at));
    limited.args(["--enrol-timeout", "3s"]);
    bench.expect_refusal("edge", limited, 8, &["not enrolled within 3s"]);
    let issued = |bench: &TestDeployment| bench.ok("kgc", &["audit"]).contains("key issued");
    let logged =
        bench.all_logs().iter().any(|(_, log)| String::from_utf8_lossy(log).contains("no space left"));
    assert!(logged && !issued(&bench), "it must not ask before it can remember having asked");
    assert!(bench.ok("edge", &enrol("one", &token, &at)).contains(&format!("enrolled as {name}")));
    assert!(issued(&bench));
}

#[test]
fn edge_with_a_full_disk_says_so_in_its_status_and_its_health_with_what_to_do() {
    let bench = TestDeployment::new();
    let kgc = bench.kgc(ANY);
    let at = kgc.address();
    let (name, groups) = long_names();
    let lists: Vec<_> = groups.iter().flat_map(|group| ["--group", group]).collect();
    let token = bench.token(&name, &lists);
    bench.ok("edge", &enrol("full", &token, &at));
    let run = ["run", "-d", "full", "--group", &groups[0], "--leader", "127.0.0.1:9"];
    let mut limited = without_room(&bench, &run);
    limited.env("RUST_LOG", "error");
    let edge = bench.begin("edge", limited);
    let cure = "nothing is sent or received: make room on the disk";
    let status = |args: &[&str]| {
        let output = bench.run("edge", args);
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr),
        )
    };
    eventually("the status says that the disk is full", || {
        let (code, said) = status(&["status", "-d", "full"]);
        (code == Some(0) && said.contains("stalled ") && said.contains(cure)).then_some(())
    });
    let (code, said) = status(&["health", "-d", "full"]);
    assert!(code == Some(1) && said.contains(cure), "{said}");
    // With room again it goes on by itself, which a limit that stays shows of a new process alone.
    edge.kill();
    let _edge = bench.start("edge", &run);
    eventually("it runs", || status(&["status", "-d", "full"]).1.contains("drone ").then_some(()));
    let (_, said) = status(&["status", "-d", "full"]);
    assert!(!said.contains("stalled"), "{said}");
}

#[test]
fn what_can_never_work_is_told_before_the_token_is_used() {
    let bench = TestDeployment::new();
    let kgc = bench.kgc(ANY);
    let at = kgc.address();
    let token = bench.token("edge-1", &["--group", "alpha"]);
    let run = |leader: &str, rest: &[&str]| {
        let first = enrol("one", &token, &at);
        let args: Vec<String> = ["run"]
            .iter()
            .chain(&first[1..])
            .chain(&["--leader", leader])
            .chain(rest)
            .map(|arg| (*arg).to_string())
            .collect();
        args
    };
    let refused = |args: Vec<String>, code, parts: &[&str]| {
        bench.refused("edge", &args.iter().map(String::as_str).collect::<Vec<_>>(), code, parts);
    };
    for (leader, why) in [
        ("/ip4/127.0.0.1/tcp/9/ws", "not supported"),
        ("/dnsaddr/leader.example", "does not begin with"),
        ("/ip4/0.0.0.0/tcp/9", "no address of one machine"),
        ("0.0.0.0:9", "no address of one machine"),
        ("/ip4/127.0.0.1/tcp/0", "port 0"),
        ("[::1]:0", "port 0"),
        ("leader.example", "write HOST:PORT"),
    ] {
        refused(run(leader, &[]), 2, &[leader, why]);
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
    let busy = taken.local_addr().expect("address").to_string();
    let plain = format!("the address {busy} for --metrics is in use");
    refused(run("127.0.0.1:9", &["--metrics", &busy]), 5, &[&plain, "choose another port"]);
    assert_eq!(bench.keys_issued(), 0, "the token is as good as new");
    let file = enrol("one", &token, &at);
    assert!(bench.ok("edge", &file).contains("enrolled as edge-1"));
    bench.refused("edge", &["run", "-d", "/etc/passwd"], 2, &["/etc/passwd is a file, not a directory"]);
}

#[test]
fn configuration_mistakes_name_key_and_place() {
    let bench = TestDeployment::new();
    fs::write(bench.path("c.toml"), "lisen = \"/ip4/127.0.0.1/tcp/0\"").expect("write");
    bench.refused("kgc", &["serve", "--config", "c.toml"], 2, &["c.toml", "lisen"]);
    let mut command = bench.command("kgc", &["serve"]);
    command.env("QUIVER_KGC_LISEN", "x");
    bench.expect_refusal("kgc", command, 2, &["QUIVER_KGC_LISEN"]);
    fs::write(bench.path("l.toml"), "validity = \"soon\"").expect("write");
    bench.refused("leader", &["serve", "--config", "l.toml"], 2, &["l.toml", "validity"]);
    fs::write(bench.path("l.toml"), "batching_max = \"500000000000y\"").expect("write");
    bench.refused("leader", &["serve", "--config", "l.toml"], 2, &["l.toml", "batching_max", "ten years"]);
    bench.refused("edge", &["run", "--config", "none.toml"], 2, &["none.toml"]);
    let token = bench.token("leader-1", &["--leads", "alpha"]);
    let serve = ["serve", "--deployment", "kgc-data/deployment.toml", "--token", &token];
    bench.refused("leader", &serve, 2, &["--kgc"]);
    bench.refused("leader", &["serve", "--kgc", "127.0.0.1:9"], 2, &["--token"]);
}
