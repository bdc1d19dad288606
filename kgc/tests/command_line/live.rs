//! Changes beside a running KGC: in effect when the command returns, with the same checks and audit lines.

use std::fs;

use quiver_service_testing::deployment::{ANY, PASSPHRASE};
use quiver_service_testing::{Process, TestDeployment, eventually, text};

/// A running KGC that looks into the registry by itself no more than once an hour.
fn running() -> (TestDeployment, Process, String) {
    let bench = TestDeployment::with_passphrase().logging("info");
    let mut serve = bench.command("kgc", &["serve", "--listen", ANY]);
    serve.env("QUIVER_KGC_POLL", "1h");
    let kgc = bench.begin("kgc", serve);
    let address = kgc.address();
    (bench, kgc, address)
}

/// The data directory of a drone that has enrolled.
fn enrolled(bench: &TestDeployment, name: &str, kgc: &str) -> String {
    bench.token(name, &["--group", "alpha"]);
    let edge = bench.edge(name, kgc, "/ip4/127.0.0.1/tcp/1");
    edge.line("\"enrolled\"");
    drop(edge);
    format!("{name}-data")
}

#[test]
fn kgc_that_drones_find_by_a_name_serves_and_warns_if_they_are_told_another_port() {
    let bench = TestDeployment::new().logging("info");
    let address = ["--operator", "operator.pub", "--address", "localhost:9"];
    bench.ok("kgc", &[&["init", "-d", "named", "--deployment", "named"][..], &address].concat());
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
    let at = socket.local_addr().expect("address").to_string();
    drop(socket);
    let kgc = bench.start("kgc", &["serve", "-d", "named", "--listen", &at]);
    kgc.address();
    kgc.logged(&format!("drones look for this KGC at localhost:9, and it listens on {at}"));
    assert!(kgc.terminate().success());
    // A port that they are told, and one that the system chooses, are nothing to warn of.
    for listen in ["127.0.0.1:0", "127.0.0.1:9"] {
        let kgc = bench.start("kgc", &["serve", "-d", "named", "--listen", &at, "--listen", listen]);
        eventually("it listens, or may not", || {
            (!kgc.is_running() || text(&kgc.out).contains("listening on")).then_some(())
        });
        assert!(!text(&kgc.err).contains("drones look for"), "{}", kgc.story());
    }
}

const IN_EFFECT: &str = "in effect at the running `kgc serve`";

#[test]
fn authorities_and_grants_are_in_effect_at_the_running_kgc_when_the_command_returns() {
    let (bench, kgc, address) = running();
    let edge = enrolled(&bench, "edge-1", &address);
    let setup = bench.ok("kgc", &["abe", "setup", "--name", "orders"]);
    assert!(setup.contains(IN_EFFECT), "{setup}");
    let fetch = || bench.ok("edge", &["abe", "fetch", "-d", &edge, "--kgc", &address]);
    assert!(fetch().contains("orders"), "the authority is offered");
    let granted = bench.ok("kgc", &["abe", "grant", "--drone", "edge-1", "--attributes", "scout"]);
    assert!(granted.contains(IN_EFFECT), "{granted}");
    assert!(fetch().contains("key"), "the key is issued");
    let withdrawn = bench.ok("kgc", &["abe", "revoke", "--drone", "edge-1"]);
    assert!(withdrawn.contains(IN_EFFECT), "{withdrawn}");
    let said = fetch();
    assert!(said.contains("grant withdrawn; key erased"), "{said}");
    kgc.logged("attribute authority orders taken up");
    let audit = bench.ok("kgc", &["audit"]);
    for action in ["attribute authority set up", "attributes granted", "attribute grant withdrawn"] {
        assert!(audit.contains(action), "{action}: {audit}");
    }
    // A drone that is revoked has enrolled, and that is not denied.
    bench.ok("kgc", &["drone", "revoke", "edge-1"]);
    let again = ["abe", "grant", "--drone", "edge-1", "--attributes", "scout"];
    bench.refused("kgc", &again, 3, &["drone `edge-1` is revoked"]);
    bench.token("edge-1", &["--group", "alpha"]);
    // A second authority beside it, and both after a start.
    bench.ok("kgc", &["abke", "setup", "--schema", "x: i32", "--name", "positions"]);
    kgc.logged("attribute authority positions taken up");
    fs::write(bench.path("fence.txt"), "x < 5").expect("write");
    let policy = bench.ok("kgc", &["abke", "policy", "fence.txt", "--group", "alpha"]);
    assert!(policy.contains("fence.policy"), "{policy}");
    let certified = bench.ok("kgc", &["abke", "certify", "edge-1", "x=1"]);
    assert!(certified.contains(IN_EFFECT), "{certified}");
    assert!(kgc.terminate().success());
    let said = bench.ok("kgc", &["abke", "revoke", "edge-1"]);
    assert!(said.contains("in effect as soon as `kgc serve` runs"), "{said}");
    let again = bench.kgc(ANY);
    again.logged("serving attribute authorities authorities=\"orders positions\"");
}

#[test]
fn master_key_and_approvals_are_in_effect_at_the_running_kgc_when_the_command_returns() {
    let (bench, kgc, address) = running();
    kgc.logged("no master key of conditions is set up");
    let edge = enrolled(&bench, "edge-1", &address);
    let setup = bench.ok("kgc", &["ibe", "setup"]);
    assert!(setup.contains(IN_EFFECT), "{setup}");
    kgc.logged("master key ibe taken up");
    fs::write(bench.path("order.txt"), "turn north").expect("write");
    let condition = "mission/alpha/phase-2";
    let to = ["--to", condition, "--authority", "kgc-data/ibe.ibe", "--out", "order.enc"];
    bench.ok("edge", &[&["ibe", "encrypt", "-d", &edge, "order.txt"][..], &to].concat());
    let decrypt = ["ibe", "decrypt", "-d", &edge, "--kgc", &address, "order.enc", "--out", "order.dec"];
    assert!(!bench.run("edge", &decrypt).status.success(), "not approved yet");
    let released = bench.ok("kgc", &["ibe", "release", condition]);
    assert!(released.contains(IN_EFFECT), "{released}");
    bench.ok("edge", &decrypt);
    assert_eq!(fs::read_to_string(bench.path("order.dec")).expect("read"), "turn north");
    let denied = bench.ok("kgc", &["ibe", "policy", "deny", "mission/bravo"]);
    assert!(denied.contains(IN_EFFECT), "{denied}");
}

#[test]
fn of_master_keys_set_up_at_once_one_is_left_with_its_share() {
    let (bench, kgc, _) = running();
    let names = ["one", "two", "three", "four"];
    let setups: Vec<_> =
        names.iter().map(|name| bench.start("kgc", &["ibe", "setup", "--name", name])).collect();
    let codes: Vec<_> = setups.iter().map(|setup| setup.wait().code()).collect();
    let (made, refused): (Vec<_>, Vec<Option<i32>>) =
        codes.iter().copied().partition(|code| *code == Some(0));
    assert_eq!(made.len(), 1, "{codes:?}");
    // Refused, or told that another holds the file, on a machine that keeps it waiting.
    assert!(refused.iter().all(|code| matches!(code, Some(3 | 5))), "{codes:?}");
    assert!(kgc.terminate().success());
    // It would not start without the share of the key that the registry knows.
    bench.kgc(ANY).logged("releasing keys of conditions");
}

#[test]
fn fetch_says_what_it_waits_for_while_the_kgc_is_down() {
    let (bench, kgc, address) = running();
    let edge = enrolled(&bench, "edge-1", &address);
    drop(kgc);
    let alone = bench.start("edge", &["abe", "fetch", "-d", &edge, "--kgc", &address]);
    alone.logged("still waiting for an answer of the KGC");
    // It holds the state file.
    drop(alone);
    let leader = "/ip4/127.0.0.1/tcp/1";
    let _service = bench.start("edge", &["run", "-d", &edge, "--kgc", &address, "--leader", leader]);
    eventually("the service answers", || {
        bench.run("edge", &["status", "-d", &edge]).status.success().then_some(())
    });
    let asking = bench.start("edge", &["abke", "fetch", "-d", &edge]);
    asking.logged("still waiting for an answer of the KGC");
}

#[test]
fn another_passphrase_than_the_running_kgcs_sets_nothing_up() {
    let (bench, kgc, _) = running();
    for setup in [&["abe", "setup", "--name", "orders"][..], &["ibe", "setup"]] {
        let mut wrong = bench.command("kgc", setup);
        wrong.env("QUIVER_PASSPHRASE", format!("not {PASSPHRASE}"));
        bench.expect_refusal("kgc", wrong, 6, &["master.state"]);
    }
    for file in ["authorities.state", "ibe.state", "orders.authority", "ibe.ibe"] {
        assert!(!bench.path("kgc-data").join(file).exists(), "{file}");
    }
    assert!(!text(&kgc.err).contains("statement signed"));
    assert!(!bench.ok("kgc", &["audit"]).contains("set up"));
}

#[test]
fn second_leader_of_an_ordinal_is_refused_by_the_kgc_and_both_ends_say_why() {
    let (bench, kgc, address) = running();
    // As an operator far from the registry issues them.
    let issue = |name| bench.token(name, &["--leads", "alpha", "--ordinal", "1", "--record", "never"]);
    let (first, second) = (issue("leader-1"), issue("leader-2"));
    let leader = bench.leader(&address, ANY, Some(&first), &["-d", "one"]);
    kgc.logged("key issued name=leader-1");
    drop(leader);
    let other = bench.leader(&address, ANY, Some(&second), &["-d", "two"]);
    let reason = "another leader of the group has this ordinal";
    let line = kgc.logged(reason);
    assert!(line.contains("refused to enrol 127.0.0.1:") && line.matches(reason).count() == 1, "{line}");
    other.logged(reason);
    drop(other);
    bench.ok("kgc", &["drone", "revoke", "leader-1"]);
    let _other = bench.leader(&address, ANY, Some(&second), &["-d", "two"]);
    kgc.logged("key issued name=leader-2");
}

#[test]
fn kgc_starts_while_commands_change_its_registry() {
    let bench = TestDeployment::with_passphrase();
    let issue = |name: &str| {
        bench.start(
            "kgc",
            &["token", "issue", "--operator", "operator.key", "--name", name, "--group", "alpha"],
        )
    };
    let issuing = ["edge-1", "edge-2", "edge-3", "edge-4"].map(issue);
    let kgc = bench.kgc(ANY);
    kgc.address();
    for command in issuing {
        assert!(command.wait().success(), "{}", text(&command.err));
    }
}
