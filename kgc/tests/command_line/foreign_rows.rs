//! Rows that somebody without the key wrote into the registry, changed or deleted are found by `kgc serve` and `kgc
//! audit`, and nothing is issued by them.

use std::fs;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use quiver_service::deployment_file::{DeploymentFile, owner};
use quiver_service::secrets::Protection;
use quiver_service::state_file::StateFile;
use quiver_service_testing::deployment::{ANY, KEY};
use quiver_service_testing::{TestDeployment, eventually};
use rusqlite::Connection;

const APPROVE: &str =
    "INSERT INTO ibe_approval (condition, approved, at) VALUES ('mission/alpha/phase-2', 1, 1)";

fn registry(bench: &TestDeployment) -> Connection {
    Connection::open(bench.path("kgc-data/registry.sqlite")).expect("open")
}

fn tamper(bench: &TestDeployment, sql: &str) {
    registry(bench).execute_batch(sql).expect("tamper");
}

fn count(bench: &TestDeployment, table: &str) -> u64 {
    let query = format!("SELECT count(*) FROM {table}");
    registry(bench).query_row(&query, [], |row| row.get(0)).expect("count")
}

/// Expects both `kgc serve` and `kgc audit` to refuse.
fn refused(bench: &TestDeployment, parts: &[&str]) {
    bench.refused("kgc", &["serve", "--listen", ANY], 7, parts);
    bench.refused("kgc", &["audit"], 7, parts);
}

#[test]
fn foreign_rows_keep_the_kgc_from_starting_until_they_are_gone_or_accepted() {
    let bench = TestDeployment::new().logging("info");
    bench.token("edge-1", &["--group", "alpha"]);
    bench.ok("kgc", &["token", "revoke", "edge-1"]);
    bench.ok("kgc", &["ibe", "release", "mission/alpha/phase-1"]);
    let audit = bench.ok("kgc", &["audit"]);
    assert!(audit.contains("all rows are authentic"), "{audit}");
    tamper(&bench, APPROVE);
    refused(&bench, &["row 2 of ibe_approval was inserted", "one backup", "kgc audit --accept-rows"]);
    // Nor does a command change anything by what it reads there.
    bench.refused("kgc", &["ibe", "release", "mission/bravo"], 7, &["row 2 of ibe_approval was inserted"]);
    tamper(&bench, "DELETE FROM ibe_approval WHERE revision = 2");
    bench.kgc(ANY).address();
    // Deleted rows do not come back: the operator accepts that, and revokes again.
    tamper(&bench, "DELETE FROM revoked_token");
    refused(&bench, &["row 1 of revoked_token was deleted (written with line "]);
    let accepted = bench.ok("kgc", &["audit", "--accept-rows"]);
    assert!(accepted.contains("rows accepted") && accepted.contains("all rows are authentic"), "{accepted}");
    bench.ok("kgc", &["token", "revoke", "edge-1"]);
    bench.kgc(ANY).address();
    tamper(&bench, "UPDATE revoked_token SET token_id = zeroblob(16)");
    refused(&bench, &["row 2 of revoked_token was changed"]);
}

#[test]
fn foreign_row_beside_a_running_kgc_is_not_taken_up() {
    let bench = TestDeployment::with_passphrase().logging("info");
    let kgc = bench.kgc(ANY);
    kgc.address();
    // It has the key: commands need no passphrase.
    let mut release = bench.command("kgc", &["ibe", "release", "mission/alpha/phase-1"]);
    release.env_remove("QUIVER_PASSPHRASE");
    assert!(bench.finish("kgc", release).status.success());
    kgc.logged("release of mission/alpha/phase-1 approved in the registry");
    kgc.logged("line of the audit table authenticated for the command line");
    let audit = bench.ok("kgc", &["audit"]);
    assert!(audit.contains("all rows are authentic"), "{audit}");
    tamper(&bench, APPROVE);
    kgc.logged("row 2 of ibe_approval was inserted");
    bench.refused("kgc", &["audit"], 7, &["row 2 of ibe_approval was inserted"]);
    let said = bench.ok("kgc", &["ibe", "release", "mission/alpha/phase-3"]);
    assert!(said.contains("not in effect") && said.contains("row 2 of ibe_approval"), "{said}");
    tamper(&bench, "DELETE FROM ibe_approval WHERE revision = 2");
    kgc.logged("release of mission/alpha/phase-3 approved in the registry");
    assert!(!quiver_service_testing::text(&kgc.err).contains("phase-2 approved"));
}

#[test]
fn registry_is_not_changed_without_the_passphrase_while_no_kgc_runs() {
    let bench = TestDeployment::with_passphrase().logging("info");
    let changes = [
        &["ibe", "release", "mission/alpha"][..],
        &["ibe", "policy", "deny", "mission"],
        &["token", "revoke", "00000000000000000000000000000000"],
        &["token", "issue", "--operator", "operator.key", "--name", "edge-1", "--group", "alpha"],
        &["drone", "revoke", "edge-1"],
        &["abe", "grant", "--drone", "edge-1", "--attributes", "scout"],
    ];
    for change in changes {
        let mut command = bench.command("kgc", change);
        command.env_remove("QUIVER_PASSPHRASE");
        bench.expect_refusal("kgc", command, 6, &["passphrase"]);
    }
    assert!(!bench.path("edge-1.token").exists());
    assert_eq!(count(&bench, "audit"), 1);
    // A registry elsewhere records nothing, and nothing is asked for but what opens the operator's key.
    bench.ok("kgc", &["operator", "new", "--out", "plain", "--no-passphrase"]);
    let issue = ["token", "issue", "--operator", "plain.key", "--name", "edge-1", "--record", "never"];
    let mut command = bench.command("kgc", &issue);
    command.env_remove("QUIVER_PASSPHRASE");
    assert!(bench.finish("kgc", command).status.success());
}

/// The files as an earlier build left them.
fn as_of_an_earlier_build(bench: &TestDeployment) {
    let deployment = DeploymentFile::read(&bench.path("kgc-data/deployment.toml")).expect("read");
    let (owner, key) =
        (owner(&deployment.pin().expect("pin"), "kgc"), Protection::from_key_text(KEY.as_bytes(), "test"));
    let path = bench.path("kgc-data/master.state");
    let (mut file, mut records) = StateFile::open(&path, &owner, &key.expect("good")).expect("open");
    let before = records.len();
    // Tag 4: the key of the registry.
    records.retain(|record| record[0] != 4);
    assert_eq!(records.len() + 1, before);
    file.replace(&records).expect("replace");
    downgrade(bench);
}

fn downgrade(bench: &TestDeployment) {
    tamper(bench, "DROP TABLE audit_mac; DROP TABLE authenticated_row; PRAGMA user_version = 7;");
}

#[test]
fn registry_of_an_earlier_build_is_taken_as_it_is_once() {
    let bench = TestDeployment::new().logging("info");
    bench.token("edge-1", &["--group", "alpha"]);
    bench.ok("kgc", &["ibe", "release", "mission/alpha/phase-1"]);
    as_of_an_earlier_build(&bench);
    bench.refused("kgc", &["token", "list"], 7, &["earlier build", "kgc serve"]);
    let kgc = bench.kgc(ANY);
    kgc.logged("they were authenticated now as they were found");
    kgc.address();
    let audit = bench.ok("kgc", &["audit"]);
    assert!(audit.contains("registry upgraded") && audit.contains("all rows are authentic"), "{audit}");
    assert_eq!(bench.ok("kgc", &["token", "list"]).lines().filter(|line| line.contains("edge-1")).count(), 1);
    assert!(kgc.terminate().success());
    // Not a second time.
    let kept = fs::read(bench.path("kgc-data/registry.sqlite")).expect("read");
    downgrade(&bench);
    tamper(&bench, APPROVE);
    bench.refused("kgc", &["serve", "--listen", ANY], 7, &["master.state", "one backup", "--accept-rows"]);
    bench.refused("kgc", &["ibe", "release", "mission/bravo"], 7, &["master.state"]);
    fs::write(bench.path("kgc-data/registry.sqlite"), kept).expect("write");
    bench.kgc(ANY).address();
}

/// Begins to approve a condition.
fn begin(bench: &TestDeployment, condition: &str) -> Child {
    let mut command = bench.command("kgc", &["ibe", "release", condition]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("spawn")
}

#[test]
fn killed_commands_leave_row_line_and_mac_or_none_of_them() {
    let bench = TestDeployment::new().logging("info");
    for round in 0..24 {
        let condition = format!("mission/alpha/phase-{round}");
        let mut child = begin(&bench, &condition);
        sleep(Duration::from_millis(5 * round));
        // kill -9, unless it is done.
        let _ = child.kill();
        child.wait().expect("wait");
    }
    bench.ok("kgc", &["ibe", "release", "mission/alpha/last"]);
    let approvals = count(&bench, "ibe_approval");
    assert_eq!((count(&bench, "audit"), count(&bench, "audit_mac")), (approvals + 1, approvals + 1));
    let audit = bench.ok("kgc", &["audit"]);
    assert!(audit.contains("all rows are authentic"), "{audit}");
    // The same with a running KGC, which authenticates for the commands.
    let kgc = bench.kgc(ANY);
    kgc.address();
    for round in 0..12 {
        let condition = format!("mission/bravo/phase-{round}");
        let mut child = begin(&bench, &condition);
        sleep(Duration::from_millis(5 * round));
        if round == 11 {
            kgc.kill();
        }
        let _ = child.kill();
        child.wait().expect("wait");
    }
    let kgc = bench.kgc(ANY);
    kgc.address();
    eventually("all rows are authentic", || {
        bench.ok("kgc", &["audit"]).contains("all rows are authentic").then_some(())
    });
}
