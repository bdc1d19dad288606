//! An audit table whose end is missing is noticed: by `kgc audit`, and by `kgc serve` at its start.

use std::fs;

use quiver_service_testing::deployment::ANY;
use quiver_service_testing::{TestDeployment, eventually};

fn served(bench: &TestDeployment) {
    let kgc = bench.kgc(ANY);
    kgc.address();
    assert!(kgc.terminate().success());
}

#[test]
fn older_registry_is_noticed_until_the_operator_accepts_it() {
    let bench = TestDeployment::new().logging("info");
    served(&bench);
    let registry = bench.path("kgc-data/registry.sqlite");
    let older = fs::read(&registry).expect("read");
    // The same at the same time, whose history goes on in another way.
    fs::create_dir(bench.path("other")).expect("mkdir");
    for name in ["master.state", "registry.sqlite", "deployment.toml"] {
        fs::copy(bench.path("kgc-data").join(name), bench.path("other").join(name)).expect("copy");
    }
    bench.token("edge-1", &["--group", "alpha"]);
    bench.token("edge-2", &["--group", "alpha"]);
    served(&bench);
    let whole = bench.ok("kgc", &["audit"]);
    assert!(
        whole.contains(
            "3 lines, the chain holds, with line 3 as noted in master.state, all rows are authentic; head "
        ),
        "{whole}"
    );
    fs::write(&registry, older).expect("write");
    let parts = ["it ends with line 1, and line 3 was noted", "master.state", "kgc audit --accept"];
    bench.refused("kgc", &["audit"], 7, &parts);
    bench.refused("kgc", &["serve", "--listen", ANY], 7, &parts);
    // Nor is anything added to it.
    bench.refused("kgc", &["token", "revoke", "edge-1"], 7, &parts);
    // Another table, as long as the one before.
    for name in ["edge-1", "edge-3"] {
        bench.token_by(name, &["--operator", "operator.key", "--group", "alpha", "-d", "other"]);
    }
    fs::copy(bench.path("other/registry.sqlite"), &registry).expect("copy");
    bench.refused("kgc", &["audit"], 7, &["line 3 is not the one that was noted"]);
    let accepted = bench.ok("kgc", &["audit", "--accept"]);
    assert!(accepted.contains("audit table accepted"), "{accepted}");
    assert!(accepted.contains("4 lines, the chain holds, with line 4 as noted"), "{accepted}");
    served(&bench);
    // Nothing more to accept.
    assert!(bench.ok("kgc", &["audit", "--accept"]).contains("4 lines, the chain holds"));
}

#[test]
fn directory_copied_without_its_write_ahead_log_is_noticed() {
    let bench = TestDeployment::new().logging("info");
    let kgc = bench.kgc(ANY);
    kgc.address();
    bench.token("edge-1", &["--group", "alpha"]);
    eventually("the running KGC notes the line", || {
        bench.ok("kgc", &["audit"]).contains("2 lines, the chain holds, with line 2 as noted").then_some(())
    });
    bench.refused("kgc", &["audit", "--accept"], 5, &["master.state", "in use"]);
    fs::create_dir(bench.path("copy")).expect("mkdir");
    for name in ["master.state", "registry.sqlite", "deployment.toml"] {
        fs::copy(bench.path("kgc-data").join(name), bench.path("copy").join(name)).expect("copy");
    }
    kgc.kill();
    bench.refused("kgc", &["audit", "-d", "copy"], 7, &["line 2 was noted", "registry.sqlite-wal"]);
    // Killed, and whole.
    served(&bench);
}

#[test]
fn audit_without_the_passphrase_says_what_it_did_not_check() {
    let bench = TestDeployment::with_passphrase();
    let mut audit = bench.command("kgc", &["audit"]);
    audit.env_remove("QUIVER_PASSPHRASE");
    let said = String::from_utf8(bench.finish("kgc", audit).stdout).expect("utf-8");
    assert!(said.contains("not compared") && said.contains("--passphrase-file"), "{said}");
}
