//! The edge image with envelopes in QEMU, against a real KGC with its attribute authorities, a real leader
//! that is its gateway, and a drone that is a service: keys are granted and fetched, and each opens what the
//! other seals to it.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use quiver_emulation::board::{EmulatedBoard, Time, qemu};
use quiver_emulation::build::image;
use quiver_emulation::deployment::start_edge;
use quiver_emulation::swarm::{EmulatedSwarm, epoch_in};
use quiver_service_testing::Process;
use quiver_service_testing::TestDeployment;
use quiver_service_testing::eventually;

/// RAM that stays free of the heap, and of the stack, in the longest of lives here.
const MARGIN: u64 = 16 * 1024;

fn board(deployment: &TestDeployment, name: &str, options: &[&str]) -> EmulatedBoard {
    static IMAGE: OnceLock<PathBuf> = OnceLock::new();
    let image = IMAGE.get_or_init(|| image("quiver-mps2", "mps2-envelopes", "edge,envelopes"));
    let mut board =
        EmulatedBoard::start(&deployment.log(name), |ports| qemu(image, Time::Board, options, ports));
    assert!(board.console.line("start board").contains("mps2-an386"));
    board
}

/// Attributes besides, more than a board opens a policy of.
fn others() -> Vec<String> {
    (0..20).map(|number| format!("other-{number}")).collect()
}

/// A board, `board-1`, and a service, `medic-1`, in one group, beside authorities of these names and schemes
/// that have these attributes besides. Nothing is granted.
fn swarm(options: &[&str], authorities: &[[&str; 2]], besides: &[String]) -> (EmulatedSwarm, Process) {
    let deployment = TestDeployment::new();
    let plain = [besides, &["scout", "medic", "thermal"].map(String::from)].concat();
    fs::write(deployment.path("schema.toml"), format!("plain = {plain:?}\n")).expect("write");
    for [name, scheme] in authorities {
        let setup = ["abe", "setup", "--name", name, "--scheme", scheme, "--schema", "schema.toml"];
        deployment.ok("kgc", &setup);
    }
    let mut swarm =
        EmulatedSwarm::within(deployment, &["board-1"], |deployment, name| board(deployment, name, options));
    swarm.set_up(0, "board-1");
    let _ = swarm.leader.address();
    let medic = start_edge(&swarm.deployment, "medic-1", &swarm.kgc, &swarm.leader);
    let _ = swarm.deployment.served(2, (0, 0));
    (swarm, medic)
}

/// The same beside one authority, `orders`, of whose keys the board has one for a scout and the service one
/// for a medic.
fn scout_and_medic(options: &[&str]) -> (EmulatedSwarm, Process) {
    let (mut swarm, medic) = swarm(options, &[["orders", "fabeo22-cp"]], &others());
    // Nothing is granted yet, as the board learns by its own fetch.
    has_said(&swarm, "fetched answered 1");
    has_said(&swarm, "attributes orders fabeo22-cp -");
    swarm.deployment.grant(&swarm.kgc, "board-1", &["--attributes", "scout, thermal"]);
    swarm.deployment.grant(&swarm.kgc, "medic-1", &["--attributes", "medic"]);
    fetch(&mut swarm, "attributes orders fabeo22-cp scout, thermal");
    swarm.deployment.ok("edge", &["abe", "fetch", "-d", "medic-1-data"]);
    (swarm, medic)
}

/// Waits until the board has printed this, whatever else it printed.
fn has_said(swarm: &EmulatedSwarm, part: &str) {
    let console = &swarm.boards[0].console;
    eventually(&format!("`{part}` on the console"), || {
        console.said().iter().any(|line| line.contains(part)).then_some(())
    });
}

/// Fetches keys on the board until it has this one.
fn fetch(swarm: &mut EmulatedSwarm, what: &str) {
    let console = &mut swarm.boards[0].console;
    console.type_line("fetch");
    console.line(what);
    console.line("fetched");
}

/// Seals a text by the service and sends it to the group.
fn say(swarm: &EmulatedSwarm, to: &[&str], text: &str) {
    let send = ["envelope", "send", "-d", "medic-1-data"];
    swarm.deployment.ok("edge", &[&send[..], to, &[text]].concat());
}

/// A file that the service seals to a policy, as an operator types it.
fn file(swarm: &EmulatedSwarm, policy: &str, text: &str) -> Vec<u8> {
    fs::write(swarm.deployment.path("order.txt"), text).expect("write");
    let _ = fs::remove_file(swarm.deployment.path("order.env"));
    let seal =
        ["envelope", "seal", "order.txt", "-d", "medic-1-data", "--policy", policy, "--out", "order.env"];
    swarm.deployment.ok("edge", &seal);
    fs::read(swarm.deployment.path("order.env")).expect("read")
}

fn open(swarm: &mut EmulatedSwarm, envelope: &[u8]) {
    swarm.boards[0].console.type_line(&format!("open {}", hex(envelope)));
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The figure of this name in the board's status.
fn figure(swarm: &mut EmulatedSwarm, name: &str) -> u64 {
    let console = &mut swarm.boards[0].console;
    console.type_line("status");
    let line = console.line(&format!("memory {name} "));
    line.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

/// Stack and heap have never been close to their ends.
fn assert_room(swarm: &mut EmulatedSwarm) {
    for what in ["heap", "stack"] {
        let (peak, size) = (figure(swarm, &format!("{what}-peak")), figure(swarm, &format!("{what}-size")));
        assert!(peak + MARGIN <= size, "{what}: {peak} of {size} bytes");
    }
}

#[test]
fn board_fetches_its_key_and_opens_and_seals_as_a_service_does() {
    let (mut swarm, medic) = scout_and_medic(&["seed=21"]);
    say(&swarm, &["--policy", "scout and thermal"], "two wounded at the bridge");
    let heard = swarm.boards[0].console.line("two wounded");
    assert_eq!(heard, "envelope medic-1 two wounded at the bridge");
    // The next one of the session carries no key.
    say(&swarm, &["--policy", "scout and thermal"], "bring a stretcher");
    assert_eq!(swarm.boards[0].console.line("stretcher"), "envelope medic-1 bring a stretcher");
    say(&swarm, &["--policy", "scout and thermal", "--unsigned"], "who am I");
    let heard = swarm.boards[0].console.line("who am I");
    assert!(heard.starts_with("envelope unsigned:"), "{heard}");
    for text in ["help is near", "at the second tree"] {
        swarm.boards[0].console.type_line(&format!("seal orders 'medic or scout' {text}"));
        swarm.boards[0].console.line("sealed ");
        let line = medic.line(text);
        assert!(line.contains("\"from\":\"board-1\"") && line.contains("\"signed\":true"), "{line}");
    }
    assert_room(&mut swarm);
}

#[test]
fn what_a_board_holds_is_kept_over_resets_and_gone_with_its_keys() {
    let (mut swarm, _medic) = scout_and_medic(&["seed=22"]);
    let held = "attributes orders fabeo22-cp scout, thermal";
    let console = &mut swarm.boards[0].console;
    console.type_line("reset");
    console.line("reset software");
    assert_eq!(console.line("attributes "), held);
    console.line_that("a key", epoch_in);
    let epoch = swarm.rekey(2);
    swarm.boards[0].console.line_that("the new key", |line| epoch_in(line).filter(|at| *at >= epoch));
    // Another state was stored since.
    swarm.boards[0].console.type_line("reset");
    assert_eq!(swarm.boards[0].console.line("attributes "), held);
    swarm.boards[0].console.line_that("a key", epoch_in);
    let sealed = file(&swarm, "scout", "go north");
    open(&mut swarm, &sealed);
    assert_eq!(swarm.boards[0].console.line("go north"), "opened medic-1 go north");
    let listing = swarm.deployment.ok("kgc", &["abe", "list"]);
    assert!(listing.contains("board-1"), "{listing}");
    swarm.boards[0].console.type_line("wipe");
    swarm.boards[0].console.line("wiped");
    swarm.boards[0].console.type_line("attributes");
    swarm.boards[0].console.line_that("the end", |line| {
        assert!(!line.contains("orders"), "{line}");
        (line == "end").then_some(())
    });
    open(&mut swarm, &sealed);
    swarm.boards[0].console.line("error not provisioned");
}

#[test]
fn what_does_not_fit_or_hold_is_told_and_counted() {
    let (mut swarm, _medic) = scout_and_medic(&["seed=23"]);
    say(&swarm, &["--policy", "medic"], "not for scouts");
    swarm.boards[0].console.line("unfit ");
    say(&swarm, &["--policy", &format!("scout or {}", others().join(" or "))], "too much for a board");
    swarm.boards[0].console.line("toolarge ");
    let sealed = file(&swarm, "medic", "not for scouts");
    open(&mut swarm, &sealed);
    swarm.boards[0].console.line("error no key of this board fits");
    let sealed = file(&swarm, "scout", "go north");
    let mut bad = 0;
    // Alter the policy, the ciphertext, the sealed text and the signature; and cut.
    for at in [sealed.len() / 2, sealed.len() - 100, sealed.len() - 1] {
        let mut changed = sealed.clone();
        changed[at] ^= 1;
        open(&mut swarm, &changed);
        swarm.boards[0].console.line("error envelope: ");
        bad += 1;
    }
    open(&mut swarm, &sealed[..sealed.len() - 1]);
    swarm.boards[0].console.line("error envelope: ");
    bad += 1;
    for wrong in ["open 00zz", "seal none 'scout' x", "seal orders 'scout and (' x", "seal orders 'pilot' x"]
    {
        swarm.boards[0].console.type_line(wrong);
        swarm.boards[0].console.line("error ");
    }
    swarm.boards[0].console.type_line("status");
    let counters = swarm.boards[0].console.line("counters ");
    assert!(counters.contains(&format!("bad_envelopes={bad}")), "{counters}");
    open(&mut swarm, &sealed);
    assert_eq!(swarm.boards[0].console.line("go north"), "opened medic-1 go north");
    // Revoked keys are erased.
    swarm.deployment.ok("kgc", &["abe", "revoke", "--drone", "board-1"]);
    swarm.kgc.logged("withdrawn in the registry");
    fetch(&mut swarm, "attributes orders fabeo22-cp -");
    open(&mut swarm, &sealed);
    swarm.boards[0].console.line("error no key of this board fits");
    assert_room(&mut swarm);
}

#[test]
fn keys_with_policies_open_what_is_sealed_to_attributes() {
    let authorities = [["sensors", "fabeo22-kp"], ["reference", "gpsw06"]];
    let (mut swarm, medic) = swarm(&["seed=24"], &authorities, &[]);
    has_said(&swarm, "fetched answered 2");
    for drone in ["board-1", "medic-1"] {
        for [name, _] in authorities {
            let grant = ["--authority", name, "--policy", "scout and (thermal or medic)"];
            swarm.deployment.grant(&swarm.kgc, drone, &grant);
        }
    }
    fetch(&mut swarm, "attributes sensors fabeo22-kp scout and (thermal or medic)");
    swarm.deployment.ok("edge", &["abe", "fetch", "-d", "medic-1-data"]);
    for [name, _] in authorities {
        let text = format!("warm, by {name}");
        say(&swarm, &["--authority", name, "--attributes", "scout, thermal"], &text);
        assert_eq!(swarm.boards[0].console.line(&text), format!("envelope medic-1 {text}"));
        say(&swarm, &["--authority", name, "--attributes", "medic"], "nothing");
        swarm.boards[0].console.line("unfit ");
        swarm.boards[0].console.type_line(&format!("seal {name} 'scout, medic' seen under {name}"));
        swarm.boards[0].console.line("sealed ");
        let line = medic.line(&format!("seen under {name}"));
        assert!(line.contains("\"from\":\"board-1\""), "{line}");
    }
    assert_room(&mut swarm);
}

#[test]
fn no_attribute_key_reaches_console_line_or_log() {
    let (mut swarm, _medic) = scout_and_medic(&["seed=25"]);
    let sealed = file(&swarm, "scout", "go north");
    open(&mut swarm, &sealed);
    swarm.boards[0].console.line("opened ");
    // Header of every key of the authority: version, scheme, kind and authority.
    let keygen = ["abe", "keygen", "--authority", "orders", "--attributes", "scout", "--out", "any.key"];
    swarm.deployment.ok("kgc", &keygen);
    let line = fs::read_to_string(swarm.deployment.path("any.key")).expect("read");
    let armoured = line.split(' ').nth(2).expect("hexadecimal");
    let statement = usize::from_str_radix(&armoured[..8], 16).expect("a length");
    let start = &armoured[2 * (4 + statement + 1 + 8 + 4)..][..2 * 35];
    let bytes: Vec<u8> =
        (0..35).map(|at| u8::from_str_radix(&start[2 * at..][..2], 16).expect("hexadecimal")).collect();
    assert!(hex(&sealed).contains(&start[6..]), "the authority's name is in what it sealed");
    let listed = format!("{bytes:?}");
    let listed = listed.trim_matches(['[', ']']);
    for (path, log) in swarm.deployment.all_logs() {
        let text = String::from_utf8_lossy(&log).to_lowercase();
        let found = log.windows(bytes.len()).any(|window| window == bytes);
        assert!(!found && !text.contains(start) && !text.contains(listed), "a key is in {}", path.display());
    }
}
