//! Envelopes over real connections and as files: who opens them, who signed, and what becomes of damaged
//! ones.

use std::fs;

use quiver_service_testing::TestDeployment;
use quiver_service_testing::deployment::ANY;
use serde_json::Value;

use crate::swarm::Swarm;

/// A group with an authority for orders; the first edge is a scout, the second has nothing.
fn swarm() -> Swarm {
    let bench = TestDeployment::new();
    bench.ok("kgc", &["abe", "setup", "--name", "orders"]);
    let swarm = Swarm::start(bench, ANY);
    let said =
        swarm.bench.ok("kgc", &["abe", "grant", "--drone", "edge-1", "--attributes", "scout, sector:7"]);
    let revision = said.split("revision ").nth(1).and_then(|rest| rest.split(':').next()).expect("revision");
    swarm.kgc.logged(&format!("attribute grant {revision} in the registry"));
    for (program, data) in [("edge", "edge-1-data"), ("edge", "edge-2-data"), ("leader", "leader-data")] {
        swarm.bench.ok(program, &["abe", "fetch", "-d", data]);
    }
    swarm
}

fn line(process: &quiver_service_testing::Process, part: &str) -> Value {
    serde_json::from_str(&process.line(part)).expect("json")
}

#[test]
fn sealed_orders_reach_those_they_are_for_and_tell_others_nothing() {
    let swarm = swarm();
    let send = ["envelope", "send", "--policy", "scout and sector:7"];
    assert_eq!(
        swarm.bench.ok("leader", &[&send[..], &["go north"]].concat()).trim(),
        "sent to 2 connections"
    );
    let opened = line(&swarm.edges[0], "go north");
    assert_eq!((&opened["from"], &opened["signed"]), (&"leader-1".into(), &true.into()), "{opened}");
    assert_eq!((&opened["event"], &opened["number"]), (&"envelope".into(), &0.into()), "{opened}");
    let other = line(&swarm.edges[1], "\"envelope\"");
    assert_eq!(other["opened"], false);
    assert_eq!(other.as_object().expect("object").len(), 3, "{other}");
    // The second in a session, and one that nobody signed.
    swarm.bench.ok("leader", &[&send[..], &["go on"]].concat());
    let opened = line(&swarm.edges[0], "go on");
    assert_eq!(
        (&opened["number"], &opened["session"]),
        (&1.into(), &line(&swarm.edges[0], "go north")["session"])
    );
    let unsigned = ["-d", "edge-2-data", "--unsigned", "who am I"];
    swarm.bench.ok("edge", &[&send[..], &unsigned[..]].concat());
    let opened = line(&swarm.edges[0], "who am I");
    assert_eq!((&opened["from"], &opened["signed"]), (&Value::Null, &false.into()), "{opened}");
    let refused = ["envelope", "send", "--policy", "scout and (", "x"];
    swarm.bench.refused("leader", &refused, 3, &["column 11", "never closed"]);
}

#[test]
fn files_open_where_attributes_fit_and_show_who_signed() {
    let swarm = swarm();
    let order: Vec<u8> = (0..200_000_u32).map(|at| (at % 251) as u8).collect();
    fs::write(swarm.bench.path("order.bin"), &order).expect("write");
    let seal = ["envelope", "seal", "order.bin", "--policy", "scout", "--out"];
    let said = swarm.bench.ok("leader", &[&seal[..], &["by-leader.env"]].concat());
    assert!(said.contains("200000 bytes") && said.contains("fabeo22-cp"), "{said}");
    // The same from a state file, with nobody running.
    swarm.edges[1].kill();
    let by_edge = [&seal[..], &["by-edge.env", "-d", "edge-2-data"]].concat();
    swarm.bench.ok("edge", &by_edge);
    for (envelope, signer) in [("by-leader.env", "signed by leader-1"), ("by-edge.env", "signed by edge-2")] {
        let out = format!("{envelope}.opened");
        let open = ["envelope", "open", envelope, "--out", &out, "-d", "edge-1-data"];
        let said = swarm.bench.ok("edge", &open);
        assert!(said.contains(signer), "{said}");
        assert_eq!(fs::read(swarm.bench.path(&out)).expect("read"), order);
        swarm.bench.refused("edge", &open, 2, &["exists already"]);
        swarm.bench.refused(
            "leader",
            &["envelope", "open", envelope, "--out", "not-for-us"],
            3,
            &["policy not satisfied"],
        );
        assert!(!swarm.bench.path("not-for-us").exists());
    }
    let unsigned = [&seal[..], &["unsigned.env", "--unsigned"]].concat();
    assert!(swarm.bench.ok("leader", &unsigned).contains("NOT SIGNED"));
    let open = ["envelope", "open", "unsigned.env", "--out", "unsigned.bin", "-d", "edge-1-data"];
    assert!(swarm.bench.ok("edge", &open).contains("UNAUTHENTICATED"));
}

#[test]
fn damaged_and_truncated_envelopes_leave_no_file_behind() {
    let swarm = swarm();
    fs::write(swarm.bench.path("order.bin"), vec![7; 150_000]).expect("write");
    let seal = ["envelope", "seal", "order.bin", "--policy", "scout", "--out", "good.env"];
    swarm.bench.ok("leader", &seal);
    let good = fs::read(swarm.bench.path("good.env")).expect("read");
    let open = ["envelope", "open", "bad.env", "--out", "out.bin", "-d", "edge-1-data"];
    let refuse_with = |code, bad: &[u8], part: &str| {
        fs::write(swarm.bench.path("bad.env"), bad).expect("write");
        swarm.bench.refused("edge", &open, code, &["bad.env", part]);
        let left =
            fs::read_dir(swarm.bench.path("")).expect("list").map(|entry| entry.expect("entry").file_name());
        let left: Vec<_> = left.filter(|name| name.to_string_lossy().contains("unfinished")).collect();
        assert!(!swarm.bench.path("out.bin").exists() && left.is_empty(), "{left:?}");
    };
    let refuse = |bad: &[u8], part: &str| refuse_with(1, bad, part);
    let mut flipped = good.clone();
    flipped[good.len() - 100_000] ^= 1;
    refuse(&flipped, "chunk 0");
    flipped = good.clone();
    flipped[good.len() - 1] ^= 1;
    refuse(&flipped, "chunk 3");
    refuse(&good[..good.len() - 1], "chunk");
    refuse(&good[..100_000], "chunk");
    refuse(&good[..20], "truncated");
    refuse_with(2, b"hello", "not a Quiver envelope");
    let refused = |args: &[&str], part: &str| swarm.bench.refused("leader", args, 2, &[part]);
    refused(&["envelope", "seal", "order.bin", "--attributes", "scout", "--out", "x"], "--policy");
    refused(
        &["envelope", "seal", "order.bin", "--policy", "scout", "--out", "x", "--authority", "none"],
        "known are orders",
    );
    let garbled = ["envelope", "seal", "order.bin", "--policy", "scout or or", "--out", "x"];
    refused(&garbled, "column 10");
    let complaint = swarm.bench.run("leader", &garbled).stderr;
    assert!(String::from_utf8_lossy(&complaint).contains("\nscout or or\n         ^\n"));
    swarm.bench.refused(
        "leader",
        &["envelope", "seal", "none.bin", "--policy", "a", "--out", "x"],
        2,
        &["none.bin"],
    );
}

#[test]
fn keys_and_authorities_as_files_need_no_drone() {
    let bench = TestDeployment::new();
    bench.ok("kgc", &["abe", "setup", "--name", "orders"]);
    bench.ok(
        "kgc",
        &["abe", "keygen", "--authority", "orders", "--attributes", "scout", "--out", "scout.key"],
    );
    fs::create_dir(bench.path("nobody")).expect("mkdir");
    fs::copy(bench.path("kgc-data/deployment.toml"), bench.path("nobody/deployment.toml")).expect("copy");
    fs::write(bench.path("order.txt"), "go north").expect("write");
    let seal = ["envelope", "seal", "order.txt", "-d", "nobody", "--authority", "kgc-data/orders.authority"];
    let to_scouts = ["--policy", "scout", "--unsigned", "--out", "order.env"];
    bench.ok("edge", &[&seal[..], &to_scouts[..]].concat());
    let open = ["envelope", "open", "order.env", "-d", "nobody", "--key", "scout.key", "--out", "opened.txt"];
    assert!(bench.ok("edge", &open).contains("opened 8 bytes"));
    assert_eq!(fs::read(bench.path("opened.txt")).expect("read"), b"go north");
    // A signer needs a key of its own.
    bench.refused(
        "edge",
        &[&seal[..], &["--policy", "scout", "--out", "x.env"]].concat(),
        2,
        &["not enrolled", "--unsigned"],
    );
    // A drone without an authority cannot seal, and a drone without a key opens nothing.
    let unknown = ["envelope", "seal", "order.txt", "-d", "nobody"];
    bench.refused("edge", &[&unknown[..], &to_scouts[..]].concat(), 2, &["abe fetch"]);
    let keyless = ["envelope", "open", "order.env", "-d", "nobody", "--out", "x.txt"];
    bench.refused("edge", &keyless, 3, &["policy not satisfied"]);
}
