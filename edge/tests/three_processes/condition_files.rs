//! Files that open when a condition is met: nowhere before, everywhere after, through files and through
//! pipes.

use std::fs::{self, File};

use quiver_service_testing::deployment::ANY;
use quiver_service_testing::{TestDeployment, eventually};

use crate::swarm::Swarm;

const PHASE: &str = "mission/alpha/phase-2";
/// Condition of a time that nobody who runs this test lives to see.
const LATE: &str = "not-before/2999-12-31T23:59:59Z";

/// A group, and a KGC that lets drones have keys of conditions that are met.
fn swarm() -> Swarm {
    let bench = TestDeployment::new();
    bench.ok("kgc", &["ibe", "setup"]);
    for pattern in ["mission/alpha", "not-before"] {
        bench.ok("kgc", &["ibe", "policy", "allow", pattern]);
    }
    let swarm = Swarm::start(bench, ANY);
    fs::write(swarm.bench.path("order.bin"), order()).expect("write");
    swarm
}

fn order() -> Vec<u8> {
    (0..200_000_u32).map(|at| (at % 251) as u8).collect()
}

fn decrypt<'a>(out: &'a str, data: &'a str) -> [&'a str; 7] {
    ["ibe", "decrypt", "order.age", "--out", out, "-d", data]
}

fn release(swarm: &Swarm, condition: &str) {
    swarm.bench.ok("kgc", &["ibe", "release", condition]);
    // A running KGC takes note of it soon.
    eventually(&format!("the key of {condition}"), || {
        let asked = swarm.bench.run("edge", &["ibe", "key", "--condition", condition, "-d", "edge-1-data"]);
        asked.status.success().then_some(())
    });
}

fn nothing_left_behind(swarm: &Swarm, name: &str) {
    let entries = fs::read_dir(swarm.bench.path("")).expect("list");
    let names: Vec<_> =
        entries.map(|entry| entry.expect("entry").file_name().into_string().expect("text")).collect();
    assert!(!names.iter().any(|found| found == name || found.contains("unfinished")), "{names:?}");
}

#[test]
fn file_opens_everywhere_once_its_condition_is_released_and_nowhere_before() {
    let swarm = swarm();
    let encrypt = ["ibe", "encrypt", "order.bin", "--to", LATE, "--to", PHASE, "--out", "order.age"];
    let said = swarm.bench.ok("leader", &encrypt);
    assert!(said.contains("200000 bytes") && said.contains(PHASE), "{said}");
    swarm.bench.refused("leader", &encrypt, 2, &["exists already"]);
    for (program, data) in [("edge", "edge-1-data"), ("leader", "leader-data")] {
        let refused = swarm.bench.run(program, &decrypt("too-early", data));
        let complaint = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(3), "{program}: {complaint}");
        assert!(complaint.contains("opens at 2999-12-31T23:59:59Z, in 9"), "{complaint}");
        assert!(complaint.contains("no operator has approved it"), "{complaint}");
        nothing_left_behind(&swarm, "too-early");
    }
    release(&swarm, PHASE);
    // One of them with nobody running: the key comes to the state file.
    swarm.edges[1].kill();
    let kgc = swarm.kgc_at.clone();
    for (program, data) in [("edge", "edge-1-data"), ("edge", "edge-2-data"), ("leader", "leader-data")] {
        let out = format!("{data}.opened");
        let line = [&decrypt(&out, data)[..], &["--kgc", &kgc]].concat();
        let said = swarm.bench.ok(program, &line);
        assert!(said.contains("200000 bytes"), "{said}");
        assert!(fs::read(swarm.bench.path(&out)).expect("read") == order(), "{data}");
        swarm.bench.refused(program, &line, 2, &["exists already"]);
    }
}

#[test]
fn pipes_texts_and_keys_in_files_do_the_same() {
    let swarm = swarm();
    let piped = |name: &str, args: &[&str], from: &str| {
        let mut command = swarm.bench.command(name, args);
        command.stdin(File::open(swarm.bench.path(from)).expect("open"));
        let output = swarm.bench.finish(name, command);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {complaint}");
        output.stdout
    };
    let armoured = piped("leader", &["ibe", "encrypt", "--to", PHASE, "--armor"], "order.bin");
    assert!(armoured.starts_with(b"-----BEGIN AGE ENCRYPTED FILE-----\n"));
    fs::write(swarm.bench.path("order.txt"), armoured).expect("write");
    release(&swarm, PHASE);
    let decrypted = piped("edge", &["ibe", "decrypt", "-d", "edge-1-data"], "order.txt");
    assert!(decrypted == order());
    // With the recipient as text and the key in a file nobody needs a state file, or a KGC.
    let recipient = swarm.bench.ok("edge", &["ibe", "recipient", PHASE, "-d", "edge-1-data"]);
    swarm.bench.ok("edge", &["ibe", "identity", PHASE, "--out", "phase.key", "-d", "edge-1-data"]);
    let nobody = ["-d", "nobody"];
    let encrypt = ["ibe", "encrypt", "--recipient", recipient.trim(), "-"];
    let file = piped("edge", &[&encrypt[..], &nobody].concat(), "order.bin");
    fs::write(swarm.bench.path("order.age"), file).expect("write");
    let decrypt = ["ibe", "decrypt", "order.age", "--identity", "phase.key", "--out", "-"];
    let decrypted = piped("edge", &[&decrypt[..], &nobody].concat(), "order.bin");
    assert!(decrypted == order());
    assert!(!swarm.bench.path("nobody").exists());
}

#[test]
fn damaged_files_and_files_of_others_leave_no_file_behind() {
    let swarm = swarm();
    swarm.bench.ok("leader", &["ibe", "encrypt", "order.bin", "--to", PHASE, "--out", "good.age"]);
    release(&swarm, PHASE);
    let good = fs::read(swarm.bench.path("good.age")).expect("read");
    let refuse = |bad: &[u8], code, parts: &[&str]| {
        fs::write(swarm.bench.path("bad.age"), bad).expect("write");
        let decrypt = ["ibe", "decrypt", "bad.age", "--out", "out.bin", "-d", "edge-1-data"];
        swarm.bench.refused("edge", &decrypt, code, &[&["bad.age"], parts].concat());
        nothing_left_behind(&swarm, "out.bin");
    };
    let mut flipped = good.clone();
    flipped[good.len() - 1] ^= 1;
    refuse(&flipped, 1, &["after the first 196608 bytes"]);
    refuse(&good[..good.len() - 1], 1, &["after the first 196608 bytes"]);
    flipped = good.clone();
    flipped[good.len() - 150_000] ^= 1;
    refuse(&flipped, 1, &["after the first 0 bytes"]);
    refuse(&good[..50], 1, &["header is damaged"]);
    refuse(b"hello", 2, &["no age file"]);
    refuse(b"", 2, &["no age file"]);
    let (mac, letter) = (b"\n--- ", 5);
    let place = good.windows(mac.len()).position(|window| window == mac).expect("a MAC") + letter;
    flipped = good.clone();
    flipped[place] = if good[place] == b'A' { b'B' } else { b'A' };
    refuse(&flipped, 1, &["header was altered"]);
    // Another deployment's.
    let other = TestDeployment::new();
    other.ok("kgc", &["ibe", "setup"]);
    fs::write(other.path("order.bin"), "not for you").expect("write");
    let authority = ["--authority", "kgc-data/ibe.ibe", "-d", "kgc-data"];
    let encrypt = ["ibe", "encrypt", "order.bin", "--to", PHASE, "--out", "theirs.age"];
    other.ok("edge", &[&encrypt[..], &authority].concat());
    let theirs = fs::read(other.path("theirs.age")).expect("read");
    refuse(&theirs, 3, &["under another master key"]);
    for wrong in [&["--to", "weather/rain"][..], &["--to", "not-before/tomorrow"], &[]] {
        let line = [&["ibe", "encrypt", "order.bin", "--out", "out.bin"][..], wrong].concat();
        assert_eq!(swarm.bench.run("leader", &line).status.code(), Some(2), "{wrong:?}");
    }
    nothing_left_behind(&swarm, "out.bin");
}
