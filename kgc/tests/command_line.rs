//! The `kgc` program's offline commands, as a user runs them.

#[path = "command_line/abke_authorities.rs"]
mod abke_authorities;
#[path = "command_line/attributes.rs"]
mod attributes;
#[path = "command_line/audit_head.rs"]
mod audit_head;
#[path = "command_line/containers.rs"]
mod containers;
#[path = "command_line/foreign_rows.rs"]
mod foreign_rows;
#[path = "command_line/live.rs"]
mod live;
#[path = "command_line/senseless_arguments.rs"]
mod senseless_arguments;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::thread;

use quiver_ainq::suite::BLS12381G1_ID;
use quiver_ainq::{Ristretto255, Suite as _};
use quiver_service_testing::deployment::KEY;
use serde_json::Value;
use tempfile::TempDir;

struct Bench {
    directory: TempDir,
}

impl Bench {
    fn new() -> Self {
        let bench = Self { directory: tempfile::tempdir().expect("tempdir") };
        // A key, which needs no stretching: dozens of commands with a passphrase take minutes.
        fs::write(bench.path("state.key"), KEY).expect("write");
        fs::set_permissions(bench.path("state.key"), fs::Permissions::from_mode(0o600)).expect("chmod");
        bench.ok(&["operator", "new"]);
        bench
    }

    fn initialised() -> Self {
        let bench = Self::new();
        bench.ok(&["init", "--deployment", "alps", "--operator", "operator.pub"]);
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.path(name)).expect("metadata").permissions().mode() & 0o777
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kgc"));
        command.args(["--key-file", "state.key"]).args(args).current_dir(self.directory.path()).env_clear();
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("run")
    }

    fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("utf-8")
    }

    fn refused(&self, args: &[&str], code: i32, part: &str) {
        let output = self.run(args);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {complaint}");
        assert!(complaint.contains(part), "{args:?}: `{part}` is not in: {complaint}");
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(args)).expect("json")
    }
}

#[test]
fn init_writes_secrets_for_their_owner_alone_and_never_twice() {
    let bench = Bench::initialised();
    for secret in ["operator.key", "kgc-data/master.state", "kgc-data/registry.sqlite"] {
        assert_eq!(bench.mode(secret), 0o600, "{secret}");
    }
    assert_eq!(bench.mode("kgc-data"), 0o700);
    let state = fs::read(bench.path("kgc-data/master.state")).expect("read");
    let again = ["init", "--deployment", "alps", "--operator", "operator.pub"];
    bench.refused(&again, 2, "will not be overwritten");
    bench.refused(&["operator", "new"], 2, "will not be overwritten");
    assert_eq!(fs::read(bench.path("kgc-data/master.state")).expect("read"), state);
}

#[test]
fn result_that_cannot_be_printed_is_told_as_that() {
    let bench = Bench::new();
    // A full disk of whoever reads the results is none of the KGC's.
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("open");
    let words = ["init", "--deployment", "alps", "--operator", "operator.pub"];
    let output = bench.command(&words).stdout(full).output().expect("run");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{complaint}");
    assert!(complaint.contains("cannot print the result: No space left"), "{complaint}");
    assert!(bench.path("kgc-data/master.state").exists(), "it was done");
}

#[test]
fn new_deployment_has_a_second_factor_unless_the_operator_says_another() {
    let settings =
        [(None, Some("ml-kem-768")), (Some("ml-kem-1024"), Some("ml-kem-1024")), (Some("none"), None)];
    for (given, written) in settings {
        let bench = Bench::new();
        let mut args = vec!["init", "--deployment", "alps", "--operator", "operator.pub"];
        args.extend(given.iter().flat_map(|setting| ["--kem", setting]));
        bench.ok(&args);
        let file = fs::read_to_string(bench.path("kgc-data/deployment.toml")).expect("read");
        let line = file.lines().find(|line| line.starts_with("kem"));
        assert_eq!(line, written.map(|setting| format!("kem = \"{setting}\"")).as_deref(), "{file}");
    }
    let bench = Bench::new();
    let wrong = ["init", "--deployment", "alps", "--operator", "operator.pub", "--kem", "kyber"];
    bench.refused(&wrong, 2, "ml-kem-1024");
}

#[test]
fn init_refuses_bad_names_operators_and_addresses() {
    let bench = Bench::new();
    bench.refused(&["init", "--deployment", "the alps", "--operator", "operator.pub"], 2, "--deployment");
    bench.refused(
        &["init", "--deployment", "alps", "--operator", "operator.key"],
        2,
        "operator.key: this is the operator's secret key, encrypted; give the operator's public key (operator.pub)",
    );
    bench.refused(
        &["init", "--deployment", "alps", "--operator", "none.pub"],
        2,
        "there is no file none.pub",
    );
    let address =
        ["init", "--deployment", "alps", "--operator", "operator.pub", "--address", "kgc.example:0"];
    bench.refused(&address, 2, "kgc.example:0: nothing can be reached there: port 0");
    let at = [
        "init",
        "-d",
        "elsewhere",
        "--deployment",
        "alps",
        "--operator",
        "operator.pub",
        "--address",
        "kgc.example:7000",
    ];
    bench.ok(&at);
    let file = fs::read_to_string(bench.path("elsewhere/deployment.toml")).expect("read");
    assert!(file.contains("\"/dns/kgc.example/tcp/7000\""), "{file}");
    let key = fs::read_to_string(bench.path("operator.pub")).expect("read");
    fs::write(bench.path("old.pub"), key.replace(Ristretto255::ID, BLS12381G1_ID)).expect("write");
    let reserved_suite = ["init", "--deployment", "alps", "--operator", "old.pub"];
    bench.refused(&reserved_suite, 2, "old.pub: it is of suite bls12-381-g1");
    assert!(!bench.path("kgc-data/master.state").exists());
}

#[test]
fn token_is_issued_far_from_the_kgc() {
    let bench = Bench::initialised();
    fs::create_dir(bench.path("office")).expect("mkdir");
    for name in ["operator.key", "kgc-data/deployment.toml"] {
        let to = bench.path("office").join(name.rsplit('/').next().expect("name"));
        fs::rename(bench.path(name), to).expect("rename");
    }
    fs::remove_dir_all(bench.path("kgc-data")).expect("remove");
    let issue =
        ["token", "issue", "--operator", "office/operator.key", "--deployment", "office/deployment.toml"];
    let said = bench.ok(&[&issue[..], &["--name", "edge-1", "--group", "alpha"]].concat());
    assert!(said.contains("not recorded"), "{said}");
    assert_eq!(bench.mode("edge-1.token"), 0o600);
    bench.refused(&[&issue[..], &["--name", "edge-1"]].concat(), 2, "will not be overwritten");
    bench.refused(&[&issue[..], &["--name", "edge 2"]].concat(), 2, "--name");
    bench.refused(
        &[&issue[..], &["--name", "edge-2", "--expires", "2020-01-01T00:00:00Z"]].concat(),
        2,
        "past",
    );
}

#[test]
fn recorded_tokens_are_listed_and_revoked_and_audited() {
    let bench = Bench::initialised();
    let issue = |name| {
        bench.run(&["token", "issue", "--operator", "operator.key", "--name", name, "--group", "alpha"])
    };
    assert!(issue("edge-1").status.success() && issue("edge-2").status.success());
    fs::remove_file(bench.path("edge-1.token")).expect("remove");
    assert_eq!(issue("edge-1").status.code(), Some(3), "the name is taken");
    assert!(!bench.path("edge-1.token").exists());
    bench.ok(&["token", "revoke", "edge-1"]);
    bench.refused(&["token", "revoke", "edge-1"], 3, "edge-1");
    let tokens = bench.json(&["token", "list", "--json"]);
    let states: Vec<_> =
        tokens.as_array().expect("list").iter().map(|token| token["state"].clone()).collect();
    assert_eq!(states, ["revoked", "open"]);
    assert!(issue("edge-1").status.success(), "free again");
    assert_eq!(bench.json(&["drone", "list", "--json"]), Value::Array(Vec::new()));
    bench.refused(&["drone", "revoke", "edge-1"], 3, "kgc token revoke");
    let head = bench.ok(&["audit"]).rsplit(' ').next().expect("head").trim().to_string();
    assert!(bench.ok(&["audit", "--contains", &head]).contains("5 lines, the chain holds"));
    bench.refused(&["audit", "--contains", &"0".repeat(64)], 1, "does not contain");
}

#[test]
fn second_leader_token_for_an_ordinal_is_refused_until_the_first_is_revoked() {
    let bench = Bench::initialised();
    let issue = |name, group, ordinal| {
        let terms = ["--name", name, "--leads", group, "--ordinal", ordinal];
        bench.run(&[&["token", "issue", "--operator", "operator.key"][..], &terms].concat())
    };
    assert!(issue("leader-1", "alpha", "0").status.success());
    let refused = issue("leader-2", "alpha", "0");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(3), "{said}");
    for part in ["ordinal 0", "alpha", "leader-1", "kgc token revoke", "--ordinal"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!bench.path("leader-2.token").exists());
    assert!(said.contains("1 is free"), "{said}");
    // Another ordinal, another group.
    assert!(issue("leader-3", "alpha", "1").status.success());
    assert!(issue("leader-4", "bravo", "0").status.success());
    bench.ok(&["token", "revoke", "leader-1"]);
    assert!(issue("leader-2", "alpha", "0").status.success(), "free again");
}

#[test]
fn tampered_audit_table_is_shown() {
    let bench = Bench::initialised();
    let registry = rusqlite::Connection::open(bench.path("kgc-data/registry.sqlite")).expect("open");
    registry.execute_batch("DROP TRIGGER audit_is_not_changed; UPDATE audit SET at = 0").expect("tamper");
    bench.refused(&["audit"], 1, "line 1");
}

#[test]
fn missing_deployment_and_registry_are_explained() {
    let bench = Bench::new();
    for args in [&["serve"][..], &["audit"], &["drone", "list"], &["token", "list"]] {
        bench.refused(args, 2, "kgc init");
    }
    let bench = Bench::initialised();
    fs::write(bench.path("kgc-data/registry.sqlite"), "this is no database, but it is long enough")
        .expect("write");
    bench.refused(&["audit"], 7, "registry.sqlite");
}

#[test]
fn help_teaches() {
    let bench = Bench::new();
    let help = bench.ok(&["--help"]);
    for part in ["kgc init --deployment", "Exit codes:", "QUIVER_KGC_DATA_DIR"] {
        assert!(help.contains(part), "{part}");
    }
    assert!(!help.contains("correct horse"), "the environment is not shown");
}

#[test]
fn ordinal_that_is_not_given_is_the_next_free_one() {
    let bench = Bench::initialised();
    let issue = |name: &str, rest: &[&str]| {
        let terms = ["token", "issue", "--operator", "operator.key", "--leads", "alpha", "--name", name];
        let said = bench.ok(&[&terms[..], &["--json"], rest].concat());
        serde_json::from_str::<Value>(&said).expect("one line")
    };
    assert_eq!(issue("leader-1", &[])["ordinal"], 1);
    assert_eq!(issue("leader-2", &[])["ordinal"], 2);
    assert_eq!(issue("leader-4", &["--ordinal", "4"])["ordinal"], 4);
    assert_eq!(issue("leader-3", &[])["ordinal"], 3);
    bench.ok(&["token", "revoke", "leader-1"]);
    let many = ["--name", "more", "--leads", "alpha", "--count", "2", "--out", "tokens", "--json"];
    let said = bench.ok(&[&["token", "issue", "--operator", "operator.key"][..], &many].concat());
    let ordinals: Vec<Value> = said
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("json")["ordinal"].clone())
        .collect();
    assert_eq!(ordinals, [1, 5]);
    let elsewhere = ["--name", "far", "--leads", "alpha", "--record", "never"];
    let said = bench.ok(&[&["token", "issue", "--operator", "operator.key"][..], &elsewhere].concat());
    assert!(said.contains("ordinal 1 was not checked"), "{said}");
}

#[test]
fn tokens_issued_at_once_have_different_names_and_ordinals() {
    let bench = Bench::initialised();
    let all_at_once = |commands: &[Vec<String>]| -> Vec<Output> {
        thread::scope(|scope| {
            let run = |args: &Vec<String>| {
                let args: Vec<&str> = args.iter().map(String::as_str).collect();
                bench.run(&args)
            };
            let running: Vec<_> = commands.iter().map(|args| scope.spawn(move || run(args))).collect();
            running.into_iter().map(|running| running.join().expect("run")).collect()
        })
    };
    let issue = |name: String, out: String| {
        let fixed = ["token", "issue", "--operator", "operator.key", "--leads", "alpha", "--json"];
        let terms = ["--name".into(), name, "--out".into(), out];
        fixed.iter().map(ToString::to_string).chain(terms).collect::<Vec<_>>()
    };
    let leaders: Vec<_> = (0..8).map(|n| issue(format!("leader-{n}"), format!("{n}.token"))).collect();
    let mut ordinals: Vec<_> = all_at_once(&leaders)
        .iter()
        .map(|output| serde_json::from_slice::<Value>(&output.stdout).expect("json")["ordinal"].as_u64())
        .collect();
    ordinals.sort_unstable();
    assert_eq!(ordinals, (1..=8).map(Some).collect::<Vec<_>>());
    let same: Vec<_> = (0..8).map(|n| issue("one".into(), format!("one-{n}.token"))).collect();
    let codes: Vec<_> = all_at_once(&same).iter().map(|output| output.status.code()).collect();
    let (issued, refused): (Vec<_>, Vec<Option<i32>>) =
        codes.iter().copied().partition(|code| *code == Some(0));
    assert_eq!(issued.len(), 1, "{codes:?}");
    assert!(refused.iter().all(|code| *code == Some(3)), "{codes:?}");
    assert_eq!(
        fs::read_dir(bench.path(""))
            .expect("read")
            .filter(|entry| {
                entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with("one-"))
            })
            .count(),
        1
    );
}

#[test]
fn token_whose_file_cannot_be_written_is_listed_as_revoked_and_frees_its_name() {
    let bench = Bench::initialised();
    let issue = ["token", "issue", "--operator", "operator.key", "--name", "edge-1", "--group", "alpha"];
    bench.refused(&[&issue[..], &["--out", "nowhere/edge-1.token"]].concat(), 2, "nowhere/edge-1.token");
    let audit = bench.ok(&["audit"]);
    let place = |what: &str| audit.find(what).unwrap_or_else(|| panic!("{what}: {audit}"));
    assert!(place("token issued") < place("token revoked"), "it is in the list before it is in a file");
    assert_eq!(bench.json(&["token", "list", "--json"])[0]["state"], "revoked");
    bench.ok(&issue);
    bench.refused(&issue, 3, "edge-1 is taken by an open token");
    assert_eq!(bench.json(&["token", "list", "--json"]).as_array().expect("list").len(), 2);
}

#[test]
fn what_will_be_missing_later_is_said_now() {
    let bench = Bench::new();
    let init = ["init", "--deployment", "alps", "--operator", "operator.pub"];
    let said = bench.ok(&init);
    assert!(said.contains("no --address was given") && said.contains("--kgc HOST:PORT"), "{said}");
    let issue = ["token", "issue", "--operator", "operator.key", "--name"];
    let said = bench.ok(&[&issue[..], &["edge-1"]].concat());
    assert!(said.contains("may join no group") && said.contains("--group GROUP"), "{said}");
    let said = bench.ok(&[&issue[..], &["edge-2", "--group", "alpha"]].concat());
    assert_eq!(said.lines().count(), 1, "{said}");
    for expires in ["99999999d", "9999-12-31T00:00:00Z"] {
        for flag in ["--expires", "--not-after"] {
            bench.refused(&[&issue[..], &["edge-3", flag, expires]].concat(), 2, "ten years");
        }
    }
    assert!(!bench.path("edge-3.token").exists());
}

#[test]
fn results_that_scripts_read_are_json_with_times_of_rfc_3339() {
    let bench = Bench::new();
    let address = "/ip4/127.0.0.1/tcp/7000";
    let init = ["init", "--deployment", "alps", "--operator", "operator.pub", "--address", address, "--json"];
    let made = bench.json(&init);
    let file = fs::read_to_string(bench.path("kgc-data/deployment.toml")).expect("read");
    assert!(file.contains(made["fingerprint"].as_str().expect("hex")), "{made}");
    assert_eq!((&made["file"], &made["addresses"][0]), (&"kgc-data/deployment.toml".into(), &address.into()));
    let terms = ["--name", "edge-1", "--group", "alpha", "--expires", "2030-01-02T03:04:05Z", "--json"];
    let issued = bench.json(&[&["token", "issue", "--operator", "operator.key"][..], &terms].concat());
    assert_eq!((&issued["expires"], &issued["groups"][0]), (&"2030-01-02T03:04:05Z".into(), &"alpha".into()));
    assert_eq!((&issued["file"], &issued["recorded"]), (&"edge-1.token".into(), &true.into()));
    let listed = bench.json(&["token", "list", "--json"]);
    assert_eq!((&listed[0]["id"], &listed[0]["expiry"]), (&issued["id"], &issued["expires"]));
    let audit = bench.ok(&["audit", "--json"]);
    let line: Value = serde_json::from_str(audit.lines().next().expect("a line")).expect("json");
    let at = line["at"].as_str().expect("text");
    assert!(at.len() == 20 && at.starts_with("20") && at.ends_with('Z'), "{at}");
    assert_eq!(line["subject"], made["fingerprint"], "in full");
}

#[test]
fn audit_table_fits_a_terminal() {
    let bench = Bench::initialised();
    bench.ok(&["token", "issue", "--operator", "operator.key", "--name", "edge-1", "--group", "alpha"]);
    bench.ok(&["abe", "setup", "--name", "orders"]);
    let audit = bench.ok(&["audit"]);
    let table: Vec<_> = audit.lines().filter(|line| !line.contains("the chain holds")).collect();
    assert_eq!(table.len(), 4, "{audit}");
    assert!(table.iter().all(|line| line.chars().count() <= 130), "{audit}");
}

#[test]
fn damage_is_answered_with_what_a_kgc_can_do() {
    let bench = Bench::initialised();
    let state = bench.path("kgc-data/master.state");
    let whole = fs::read(&state).expect("read");
    fs::write(&state, &whole[..whole.len() - 30]).expect("write");
    let output = bench.run(&["serve", "--listen", "/ip4/127.0.0.1/tcp/0"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(said.contains("restore it from a backup") && said.contains("no other place"), "{said}");
    assert!(!said.contains("enrol anew"), "{said}");
    fs::write(&state, whole).expect("write");
    fs::remove_file(bench.path("kgc-data/registry.sqlite")).expect("remove");
    bench.refused(&["token", "list"], 2, "is not the data directory of a KGC");
}

#[test]
fn data_directory_too_long_for_a_socket_is_refused_before_a_passphrase_is_asked_for() {
    let bench = Bench::initialised();
    let long = bench.path(&"x".repeat(100));
    fs::rename(bench.path("kgc-data"), &long).expect("rename");
    let serve = ["serve", "--listen", "/ip4/127.0.0.1/tcp/0", "-d", long.to_str().expect("utf-8")];
    let mut command = Command::new(env!("CARGO_BIN_EXE_kgc"));
    command.args(serve).current_dir(bench.path("")).env_clear();
    let output = command.output().expect("run");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    for part in ["control.sock has", "at most 103", "shorter --data-dir", "a relative one"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn directory_of_a_single_kgc_gets_no_key_of_a_quorum() {
    let bench = Bench::initialised();
    let key = ["quorum", "key", "--id", "1", "--address", "/ip4/127.0.0.1/tcp/7000"];
    bench.refused(&key, 2, "holds a single KGC");
    assert!(!bench.path("kgc-data/transport.state").exists());
    bench.refused(&["quorum", "status"], 2, "kgc-data does not belong to a quorum");
}
