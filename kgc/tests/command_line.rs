//! The `kgc` program's offline commands, as a user runs them.

#[path = "command_line/attributes.rs"]
mod attributes;
#[path = "command_line/certifying.rs"]
mod certifying;
#[path = "command_line/containers.rs"]
mod containers;
#[path = "command_line/live.rs"]
mod live;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

struct Bench {
    directory: TempDir,
}

impl Bench {
    fn new() -> Self {
        let bench = Self { directory: tempfile::tempdir().expect("tempdir") };
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

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kgc"));
        command.args(args).current_dir(self.directory.path());
        command.env_clear().env("QUIVER_PASSPHRASE", "correct horse").output().expect("run")
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
fn init_refuses_bad_names_operators_and_addresses() {
    let bench = Bench::new();
    bench.refused(&["init", "--deployment", "the alps", "--operator", "operator.pub"], 2, "--deployment");
    bench.refused(
        &["init", "--deployment", "alps", "--operator", "operator.key"],
        2,
        "operator.key: this is the operator's secret key; give the operator's public key (operator.pub)",
    );
    bench.refused(
        &["init", "--deployment", "alps", "--operator", "none.pub"],
        2,
        "there is no file none.pub",
    );
    let address =
        ["init", "--deployment", "alps", "--operator", "operator.pub", "--address", "kgc.example:7000"];
    bench.refused(&address, 2, "kgc.example:7000");
    let other_suite =
        ["init", "--deployment", "alps", "--operator", "operator.pub", "--suite", "bls12-381-g1"];
    bench.refused(&other_suite, 2, "suite");
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
