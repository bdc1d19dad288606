//! A file with a secret that is given where another file belongs is refused by what it is, and nothing repeats a
//! secret; the operator's key is encrypted unless that was declined.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use quiver_service::armour::{self, ArmourKind};
use quiver_service_testing::TestDeployment;
use quiver_service_testing::deployment::{ANY, PASSPHRASE};

use crate::secrets::{self, Secret};

/// Passphrase in a file of its own, which is valid as nothing else.
const WORDS: &str = "correct = horse battery staple";
/// Seed of a relay, which is no text.
const SEED: [u8; 32] = [0xfe; 32];
/// Key for age, as people keep them.
const IDENTITY: &str = "AGE-SECRET-KEY-1QQPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQ";

fn write(bench: &TestDeployment, name: &str, content: &[u8]) {
    fs::write(bench.path(name), content).expect("write");
    fs::set_permissions(bench.path(name), fs::Permissions::from_mode(0o600)).expect("chmod");
}

/// Files with secrets: the name of each, and what no output may contain.
fn secret_files(bench: &TestDeployment) -> Vec<(String, Vec<Secret>)> {
    let token = bench.token("edge-1", &["--group", "alpha"]);
    bench.ok("kgc", &["operator", "new", "--out", "plain", "--no-passphrase"]);
    write(bench, "words", WORDS.as_bytes());
    write(bench, "relay.seed", &SEED);
    write(bench, "identity.txt", IDENTITY.as_bytes());
    armour::write_new(&bench.path("drone.attributes"), ArmourKind::AttributeKey, &[0xab; 64]).expect("write");
    let digits = |file: &str| {
        let text = fs::read_to_string(bench.path(file)).expect("read");
        let word = text.split_whitespace().nth(2).expect("digits").to_string();
        vec![(format!("digits of {file}"), word.as_bytes()[word.len() - 32..].to_vec())]
    };
    let text = |secret: &str| vec![(secret.to_string(), secret.as_bytes().to_vec())];
    let key = fs::read_to_string(bench.key_file()).expect("read");
    vec![
        (token.clone(), digits(&token)),
        ("operator.key".into(), digits("operator.key")),
        ("plain.key".into(), digits("plain.key")),
        ("drone.attributes".into(), digits("drone.attributes")),
        ("words".into(), text("horse battery")),
        ("state.key".into(), text(key.trim())),
        ("relay.seed".into(), vec![("seed".into(), SEED.to_vec())]),
        ("identity.txt".into(), text("QQPQYQSZQGPQYQSZ")),
        ("kgc-data/master.state".into(), Vec::new()),
    ]
}

#[test]
fn secret_in_the_place_of_another_file_is_refused_and_never_repeated() {
    let bench = TestDeployment::new();
    let secret_files = secret_files(&bench);
    let places: [(&str, &[&str], &str); 14] = [
        ("edge", &["run", "-d", "x", "--token", "edge-1.token", "--deployment"], "deployment file"),
        ("edge", &["run", "-d", "x", "--config"], "settings"),
        ("edge", &["enrol", "-d", "x", "--deployment", "kgc-data/deployment.toml", "--token"], "token"),
        ("edge", &["run", "-d", "x", "--mavlink-config"], "mavlink-router"),
        ("leader", &["serve", "-d", "x", "--token", "edge-1.token", "--deployment"], "deployment file"),
        (
            "leader",
            &["serve", "-d", "x", "--deployment", "kgc-data/deployment.toml", "--relay-file"],
            "relays",
        ),
        ("kgc", &["init", "-d", "x", "--deployment", "alps", "--operator"], "operator"),
        ("kgc", &["serve", "-d", "x", "--config"], "settings"),
        ("kgc", &["quorum", "init", "-d", "x", "--operator", "operator.pub", "--file"], "quorum"),
        ("kgc", &["abke", "setup", "--name", "geo", "--schema"], "fields"),
        ("kgc", &["abe", "setup", "--name", "ops", "--schema"], "attributes"),
        (
            "kgc",
            &["token", "issue", "--operator", "operator.key", "--name", "e", "--deployment"],
            "deployment",
        ),
        ("kgc", &["token", "issue", "--name", "e", "--record", "never", "--operator"], "operator"),
        (
            "edge",
            &["relay", "--group", "alpha", "--leader", "127.0.0.1:9", "--listen", ANY, "--seed"],
            "seed",
        ),
    ];
    for (program, args, wanted) in places {
        for (file, contents) in &secret_files {
            let fits = (wanted == "token" && file.ends_with(".token"))
                || (args.contains(&"issue")
                    && wanted == "operator"
                    && file.ends_with(".key")
                    && file != "state.key")
                || (wanted == "seed" && file == "relay.seed");
            if fits {
                continue;
            }
            let output = bench.run(program, &[args, &[file.as_str()]].concat());
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!output.status.success(), "{program} {args:?} took {file}");
            if file == "edge-1.token" && wanted != "seed" {
                assert!(said.contains("this is a token"), "{program} {args:?}: {said}");
            }
            assert!(!said.contains("panicked"), "{program} {args:?} {file}: {said}");
            let all = [output.stdout, output.stderr].concat();
            let logs = [(bench.path("output"), all)];
            assert_eq!(
                secrets::find(contents, &logs),
                Vec::<String>::new(),
                "{program} {args:?} {file}: {said}"
            );
        }
    }
    let deployment = ["run", "-d", "x", "--token", "edge-1.token", "--deployment", "edge-1.token"];
    bench.refused("edge", &deployment, 2, &["edge-1.token: this is a token, not a deployment file"]);
}

#[test]
fn publishing_takes_the_place_of_no_secret_and_of_nothing_but_its_like() {
    let bench = TestDeployment::new();
    let secret_files = secret_files(&bench);
    for (file, _) in &secret_files {
        let before = fs::read(bench.path(file)).expect("read");
        let told = [file.as_str(), "exists already and will not be overwritten"];
        bench.refused("edge", &["relay-keys", "--out", "relays", "--publish", file, "relay-1"], 2, &told);
        bench.refused("kgc", &["operator", "new", "--out", "more", "--publish", file], 2, &told);
        assert_eq!(fs::read(bench.path(file)).expect("read"), before, "{file}");
    }
    assert!(!bench.path("more.key").exists(), "nothing is begun that cannot be finished");
    for relay in ["relay-1", "relay-2"] {
        bench.ok("edge", &["relay-keys", "--out", "relays", "--publish", "relays.txt", relay]);
    }
    for operator in ["more", "another"] {
        bench.ok("kgc", &["operator", "new", "--out", operator, "--publish", "published.pub"]);
    }
    let published = fs::read(bench.path("published.pub")).expect("read");
    assert_eq!(published, fs::read(bench.path("another.pub")).expect("read"), "the newer one");
}

#[test]
fn what_opens_state_files_is_told_apart_from_other_secrets() {
    let bench = TestDeployment::new();
    let files = secret_files(&bench);
    let new = |flag: &str, file: &str| {
        let args = ["operator", "new", "--out", "new", flag, file];
        // Without what the bench gives to open state files.
        let mut command = Command::new(bench.command("kgc", &[]).get_program());
        command.args(args).current_dir(bench.path("")).env_remove("QUIVER_PASSPHRASE");
        let output = bench.finish("kgc", command);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (file, _) in &files {
        if !matches!(file.as_str(), "words" | "state.key" | "relay.seed") {
            let (code, said) = new("--passphrase-file", file);
            assert!(code == Some(6) && said.contains(file), "{file}: {said}");
        }
        if file != "state.key" {
            let (code, said) = new("--key-file", file);
            assert!(code == Some(6) && said.contains("not a key of 64 hex digits"), "{file}: {said}");
        }
    }
    let (_, said) = new("--passphrase-file", "edge-1.token");
    assert!(said.contains("edge-1.token: this is a token, not a file with a passphrase"), "{said}");
    let (_, said) = new("--key-file", "relay.seed");
    assert!(said.contains("relay.seed: this is a relay's seed, not a key"), "{said}");
    let relay =
        ["relay", "-d", "r", "--group", "alpha", "--leader", "127.0.0.1:9", "--listen", ANY, "--seed"];
    for (file, told) in [("edge-1.token", "this is a token"), ("words", "not a relay's seed")] {
        bench.refused("edge", &[&relay[..], &[file]].concat(), 2, &[file, told]);
    }
    bench.refused(
        "edge",
        &["enrol", "-d", "x", "--deployment", "kgc-data/deployment.toml", "--token", "relay.seed"],
        2,
        &["relay.seed: this is a relay's seed; give a token"],
    );
}

#[test]
fn operators_key_is_encrypted_under_the_passphrase_unless_that_is_declined() {
    let bench = TestDeployment::with_passphrase();
    let text = fs::read_to_string(bench.path("operator.key")).expect("read");
    assert!(text.starts_with("QUIVER-OPERATOR-ENCRYPTED-KEY "), "{text}");
    let issue = |operator: &str, name: &str, passphrase: Option<&str>| {
        let mut command = bench
            .command("kgc", &["token", "issue", "--operator", operator, "--name", name, "--group", "alpha"]);
        match passphrase {
            Some(passphrase) => command.env("QUIVER_PASSPHRASE", passphrase),
            None => command.env_remove("QUIVER_PASSPHRASE"),
        };
        command
    };
    let refused = |command: Command, parts: &[&str]| bench.expect_refusal("kgc", command, 6, parts);
    refused(issue("operator.key", "edge-1", Some("wrong")), &["wrong passphrase", "operator.key"]);
    refused(issue("operator.key", "edge-1", None), &["no passphrase"]);
    assert!(!bench.path("edge-1.token").exists());
    let good = bench.finish("kgc", issue("operator.key", "edge-1", Some(PASSPHRASE)));
    assert!(good.status.success() && !String::from_utf8_lossy(&good.stderr).contains("not encrypted"));

    // One without, which is said, and goes on to work without any passphrase.
    let mut new = bench.command("kgc", &["operator", "new", "--out", "other"]);
    new.env_remove("QUIVER_PASSPHRASE");
    refused(new, &["other.key", "--no-passphrase"]);
    assert!(!bench.path("other.key").exists() && !bench.path("other.pub").exists());
    let said = bench.ok("kgc", &["operator", "new", "--out", "other", "--no-passphrase"]);
    assert!(said.contains("NOT ENCRYPTED"), "{said}");
    let text = fs::read_to_string(bench.path("other.key")).expect("read");
    assert!(text.starts_with("QUIVER-OPERATOR-SECRET-KEY "), "as keys of earlier builds are");
    // The registry beside it would want the passphrase.
    let mut plain = issue("other.key", "edge-2", None);
    plain.arg("--record=never");
    let plain = bench.finish("kgc", plain);
    let warned = String::from_utf8_lossy(&plain.stderr).into_owned();
    assert!(plain.status.success() && warned.contains("other.key is not encrypted"), "{warned}");
}
