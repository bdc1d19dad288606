//! Five KGCs of which any three act, as processes on loopback: key generation, enrolment while one is dead
//! and another lies, refresh, repair, revocation.

#[path = "quorum/adoption.rs"]
mod adoption;
#[path = "quorum/bench.rs"]
mod bench;
#[path = "quorum/conditions/condition_keys.rs"]
mod condition_keys;
#[path = "quorum/copies.rs"]
mod copies;
#[path = "quorum/drones.rs"]
mod drones;
#[path = "quorum/foreign_rows.rs"]
mod foreign_rows;
#[path = "quorum/conditions/key_release.rs"]
mod key_release;
#[path = "quorum/liar.rs"]
mod liar;

use std::fs;
use std::thread::{self, sleep};
use std::time::Duration;

use quiver_service_testing::{Process, eventually, text};

use self::bench::Bench;
use self::drones::Fleet;
use self::liar::Liar;

const ALL: [u16; 5] = [1, 2, 3, 4, 5];

#[test]
fn five_kgcs_make_a_key_issue_refresh_repair_and_revoke_together() {
    let bench = Bench::new(5, 3);
    let mut kgcs = key_is_generated_although_one_is_killed(&bench);
    let fleet = Fleet::new(&bench);
    drones_enrol_while_one_kgc_is_dead_and_another_lies(&bench, &mut kgcs, &fleet);
    shares_are_refreshed(&bench, &mut kgcs);
    lost_shares_are_repaired(&bench, &mut kgcs);
    drones_enrol_with_the_repaired_kgc(&bench, &mut kgcs, &fleet);
    three_operators_revoke_a_drone(&bench, &fleet);
    deployment_file_that_was_lost_is_copied_and_not_made_up(&bench, &mut kgcs);
    quorum_vouches_for_an_attribute_authority_of_one_of_its_kgcs(&bench);
    for id in ALL {
        bench.ok(id, &["audit"]);
    }
    logs_are_for_people(&bench);
}

/// No event is logged as the program has it in memory.
fn logs_are_for_people(bench: &Bench) {
    let mut signed = 0;
    for entry in fs::read_dir(bench.directory()).expect("read") {
        let path = entry.expect("entry").path();
        if path.extension().is_none_or(|extension| extension != "err") {
            continue;
        }
        for line in text(&path).lines() {
            assert!(line.len() < 600 && !line.contains("event="), "{}: {line}", path.display());
            signed += usize::from(line.contains("the quorum signed a statement digest="));
        }
    }
    assert!(signed > 0, "statements were signed");
}

fn quorum_vouches_for_an_attribute_authority_of_one_of_its_kgcs(bench: &Bench) {
    bench.refused(1, &["abe", "setup", "--name", "alone", "--wait", "1s"], 8, "nothing was set up");
    assert_eq!(bench.json(1, &["ibe", "list", "--json"])["master"]["threshold"], 3);
    let setup = bench.start(1, &["abe", "setup", "--name", "orders"]);
    let line = setup.line("kgc quorum approve ");
    let digest = line.split("approve ").nth(1).and_then(|rest| rest.split('`').next()).expect("a digest");
    bench.ok(3, &["quorum", "approve", digest]);
    bench.ok(5, &["quorum", "approve", digest]);
    assert!(setup.line("fingerprint").len() > 60);
    setup.line("in effect at the running `kgc serve`");
    assert!(bench.path("kgc-1/orders.authority").exists());
}

/// One is killed while they gather, and once more when the rounds have begun.
fn key_is_generated_although_one_is_killed(bench: &Bench) -> Vec<Process> {
    let mut kgcs: Vec<_> = [1, 2, 3, 4].map(|id| bench.serve(id)).into();
    eventually("the four wait for the fifth", || {
        let ceremony = bench.status(3)?["ceremony"].clone();
        (ceremony["waits_for"] == serde_json::json!([5])).then_some(())
    });
    kgcs[2].kill();
    kgcs[2] = bench.serve(3);
    eventually("the third gathers with the others again", || {
        (bench.status(3)?["ceremony"]["waits_for"] == serde_json::json!([5])).then_some(())
    });
    bench.refused(3, &["quorum", "refresh"], 3, "no shares");
    bench.refused(
        3,
        &["token", "issue", "--operator", "operator.key", "--name", "early"],
        1,
        "not made its key",
    );
    kgcs.push(bench.serve(5));
    kgcs[2].logged("the rounds begin");
    kgcs[2].kill();
    kgcs[2] = bench.serve(3);
    for id in ALL {
        bench.serving(id, 0);
    }
    let file = unsigned_deployment(bench, 1);
    for id in ALL {
        assert_eq!(unsigned_deployment(bench, id), file, "KGC {id} made another key");
    }
    kgcs
}

/// Reads a KGC's deployment file without the quorum's signature under the public shares: its last 64 bytes. A KGC that was killed
/// between the rounds and the signature may have it made once more, and a threshold signature is another each time.
fn unsigned_deployment(bench: &Bench, id: u16) -> String {
    let file = fs::read_to_string(bench.path(&format!("kgc-{id}/deployment.toml"))).expect("read");
    let (before, quorum) = file.split_once("quorum = \"").expect("public shares");
    let (shares, after) = quorum.split_once('"').expect("their end");
    assert!(shares.len() > 128, "{file}");
    format!("{before}{}{after}", &shares[..shares.len() - 128])
}

fn drones_enrol_while_one_kgc_is_dead_and_another_lies(bench: &Bench, kgcs: &mut [Process], fleet: &Fleet) {
    kgcs[4].kill();
    let liar = Liar::start(bench, 5, fleet);
    liar_is_blamed_by_a_drone_that_needs_its_share(bench, kgcs, fleet, &liar);
    let report = fleet.enrol("edge", 100, 20, |enrolled| {
        if enrolled == 20 {
            kgcs[3].kill();
        }
    });
    assert_eq!(report.enrolled, 100);
    // Three others are often faster: whether any of these drones had a share of the liar's is chance.
    assert!(report.culprits.iter().all(|kgc| *kgc == 5), "only the liar is blamed: {:?}", report.culprits);
    drop(liar);
    kgcs[3] = bench.serve(4);
    kgcs[4] = bench.serve(5);
    for id in ALL {
        bench.serving(id, 0);
    }
}

fn liar_is_blamed_by_a_drone_that_needs_its_share(
    bench: &Bench,
    kgcs: &mut [Process],
    fleet: &Fleet,
    liar: &Liar,
) {
    kgcs[2].kill();
    kgcs[3].kill();
    let report = thread::scope(|scope| {
        let drone = scope.spawn(|| fleet.enrol("first", 1, 1, |_| {}));
        eventually("the liar signs", || (liar.lies() > 0).then_some(()));
        kgcs[2] = bench.serve(3);
        kgcs[3] = bench.serve(4);
        drone.join().expect("the drone enrols")
    });
    assert_eq!((report.enrolled, report.culprits), (1, vec![5]));
}

fn shares_are_refreshed(bench: &Bench, kgcs: &mut [Process]) {
    let keys = liar::keys_in_force(bench, 2);
    // It does not end before the last takes part.
    kgcs[4].signal("STOP");
    let first = bench.start(1, &["quorum", "refresh", "--json"]);
    first.logged("a KGC joins no sooner than a minute after its last key generation or refresh");
    bench.refresh(kgcs, 1);
    assert!(first.wait().success());
    let refreshed = liar::keys_in_force(bench, 2);
    assert_eq!(refreshed.version(), 1);
    assert_ne!(*refreshed.ainq().share().expose(), *keys.ainq().share().expose());
    assert_eq!(refreshed.ainq().public().master(), keys.ainq().public().master(), "the key is what it was");
}

fn lost_shares_are_repaired(bench: &Bench, kgcs: &mut [Process]) {
    let before = liar::keys_in_force(bench, 2);
    kgcs[1].kill();
    let transport = fs::read(bench.path("kgc-2/transport.state")).expect("the backup");
    fs::remove_dir_all(bench.path("kgc-2")).expect("remove");
    bench.restore_transport(2, &transport);
    // Beside the copy the public file says which key the shares are to be of.
    let deployment = fs::read_to_string(bench.path("kgc-1/deployment.toml")).expect("read");
    let init = ["quorum", "init", "--file", "quorum.toml", "--operator", "operator.pub"];
    bench.write("kgc-2/deployment.toml", "deployment = ");
    bench.refused(2, &init, 2, "deployment.toml");
    bench.write("kgc-2/deployment.toml", &deployment);
    bench.init(2);
    let kept = fs::read_to_string(bench.path("kgc-2/deployment.toml")).expect("read");
    assert_eq!(kept, deployment, "it was not touched");
    kgcs[1] = bench.serve(2);
    eventually("it sees that the others have shares", || {
        let status = bench.status(2)?;
        let others = status["others"].as_array()?;
        (others.iter().filter(|other| other["version"] == 1).count() == 4).then_some(())
    });
    assert!(bench.ok(2, &["quorum", "status"]).contains("kgc quorum repair"), "the next step is said");
    bench.refused(2, &["quorum", "repair", "--wait", "1s"], 8, "kgc quorum approve --repair");
    for helper in [1, 3, 4] {
        bench.ok(helper, &["quorum", "approve", "--repair", "2"]);
    }
    bench.serving(2, 1);
    let after = liar::keys_in_force(bench, 2);
    assert_eq!(*after.ainq().share().expose(), *before.ainq().share().expose());
    assert_eq!(*after.ibe().share().expose(), *before.ibe().share().expose());
    bench.refused(2, &["quorum", "repair"], 3, "nothing to repair");
    bench.refused(1, &["quorum", "approve", "--repair", "9"], 3, "no KGC 9");
}

/// Enrols drones with two others stopped, so that nothing is issued without the KGC that was repaired.
fn drones_enrol_with_the_repaired_kgc(bench: &Bench, kgcs: &mut [Process], fleet: &Fleet) {
    kgcs[0].kill();
    kgcs[2].kill();
    let report = fleet.enrol("late", 20, 20, |_| {});
    assert_eq!((report.enrolled, report.culprits), (20, vec![]));
    kgcs[0] = bench.serve(1);
    kgcs[2] = bench.serve(3);
    for id in ALL {
        bench.serving(id, 1);
    }
}

/// A deployment of before the second factor, whose file says none by saying nothing.
fn deployment_file_that_was_lost_is_copied_and_not_made_up(bench: &Bench, kgcs: &mut [Process]) {
    kgcs[3].kill();
    let path = bench.path("kgc-4/deployment.toml");
    let file = fs::read_to_string(&path).expect("read");
    let of_before: String = file
        .lines()
        .filter(|line| !line.starts_with("kem"))
        .fold(String::new(), |text, line| format!("{text}{line}\n"));
    assert_ne!(file, of_before);
    fs::remove_file(&path).expect("remove");
    kgcs[3] = bench.serve(4);
    let told = kgcs[3].logged("is lost");
    assert!(told.contains("`kem`") && told.contains("copy it from another KGC"), "{told}");
    bench.serving(4, 1);
    assert!(!path.exists(), "it would say a second factor that drones do not have");
    kgcs[3].kill();
    bench.write("kgc-4/deployment.toml", &of_before);
    kgcs[3] = bench.serve(4);
    bench.serving(4, 1);
    assert_eq!(fs::read_to_string(&path).expect("read"), of_before, "what it says stays");
    kgcs[3].kill();
    bench.write("kgc-4/deployment.toml", &file);
    kgcs[3] = bench.serve(4);
    bench.serving(4, 1);
}

fn three_operators_revoke_a_drone(bench: &Bench, fleet: &Fleet) {
    let serial = fleet.serial_of("late-7");
    let first = bench.ok(2, &["drone", "revoke", "late-7"]);
    assert!(first.contains("requested (1 of 3 KGCs). Run at 2 more: kgc drone revoke"), "{first}");
    bench.refused(2, &["drone", "revoke", "late-7"], 3, "is already requested at this KGC");
    bench.refused(1, &["drone", "revoke", "late-7"], 3, "is known to this KGC");
    bench.ok(1, &["drone", "revoke", &serial]);
    eventually("two KGCs want it", || {
        (bench.status(1)?["revocations_wanted"] == 1 && bench.status(2)?["revocations_wanted"] == 1)
            .then_some(())
    });
    // Long enough for anything that two could do.
    sleep(Duration::from_secs(2));
    assert_eq!(bench.status(1).expect("status")["revocation_list"], 0, "two are not enough");
    let third = bench.ok(4, &["drone", "revoke", &serial]);
    assert!(third.contains("is revoked: 3 KGCs have requested it"), "{third}");
    for id in ALL {
        eventually(&format!("KGC {id} has the list"), || {
            let status = bench.status(id)?;
            (status["revocation_list"].as_u64() > Some(0) && status["revocations_wanted"] == 0).then_some(())
        });
    }
    let drones = bench.json(2, &["drone", "list", "--json"]);
    let revoked: Vec<_> =
        drones.as_array().expect("list").iter().filter(|drone| drone["revoked"] == true).collect();
    assert_eq!(revoked.len(), 1);
    assert_eq!(revoked[0]["name"], "late-7");
}

#[test]
fn quorum_is_set_up_step_by_step_and_says_what_comes_next() {
    let bench = Bench::empty();
    bench.refused(1, &["quorum", "status"], 2, "kgc quorum key");
    bench.write("quorum.toml", "deployment = 'alps'\nthreshold = 2\n");
    let init = ["quorum", "init", "--file", "quorum.toml", "--operator", "operator.pub"];
    bench.refused(1, &init, 2, "kgc");
    let part = bench.key(1);
    assert_eq!(bench.key(1), part, "asked again, the key is the same");
    bench.write("quorum.toml", &format!("deployment = 'alps'\nthreshold = 1\n{part}"));
    bench.refused(1, &init, 2, "`kgc init`");
    let strangers = [bench.key(2), bench.key(3)].concat().replace("id = 3", "id = 1");
    bench.write("quorum.toml", &format!("deployment = 'alps'\nthreshold = 2\n{strangers}"));
    bench.refused(1, &init, 2, "none of the KGCs in the file is this one");
    bench.write("quorum.toml", &format!("deployment = 'alps'\nthreshold = 2\n{part}{}", bench.key(2)));
    assert!(bench.ok(1, &init).contains("kgc serve"));
    bench.refused(1, &init, 2, "will not be overwritten");
    bench.refused(
        1,
        &["init", "--deployment", "alps", "--operator", "operator.pub"],
        2,
        "will not be overwritten",
    );
    bench.refused(1, &["quorum", "status"], 4, "kgc serve");
    bench.refused(1, &["token", "list"], 0, "");
    bench.refused(1, &["quorum", "approve"], 2, "DIGEST");
}

#[test]
fn kgc_of_a_quorum_notices_an_older_registry() {
    let bench = Bench::new(3, 2);
    let serve = || {
        let kgc = bench.serve(1);
        kgc.address();
        assert!(kgc.terminate().success());
    };
    serve();
    let registry = bench.path("kgc-1/registry.sqlite");
    let older = fs::read(&registry).expect("read");
    bench.ok(1, &["drone", "revoke", &"09".repeat(16)]);
    serve();
    fs::write(&registry, older).expect("write");
    for command in [&["audit"][..], &["serve", "--listen", &bench.address(1)]] {
        bench.refused(1, command, 7, "quorum.state");
    }
    assert!(bench.ok(1, &["audit", "--accept"]).contains("as noted in quorum.state"));
    serve();
}

#[test]
fn kgc_that_pinned_another_init_file_is_named() {
    let bench = Bench::empty();
    let parts = [1, 2, 3].map(|id| bench.key(id)).concat();
    let pin = |id, name: &str| {
        bench.write("quorum.toml", &format!("deployment = '{name}'\nthreshold = 2\n{parts}"));
        bench.init(id);
        bench.serve(id)
    };
    let _kgcs = [pin(1, "alps"), pin(2, "alpz")];
    eventually("KGC 1 knows that KGC 2 pinned another file", || {
        let other = bench.status(1)?["others"][0].clone();
        (other["kgc"] == 2 && other["pinned_otherwise"] == true).then_some(())
    });
    let status = bench.ok(1, &["quorum", "status"]);
    assert!(status.contains("KGC 2 pinned another init file than this KGC"), "{status}");
    assert!(status.contains("up, other init file"), "{status}");
    bench.refused(1, &["health"], 1, "KGC 2 pinned another init file than this KGC");
    assert!(status.contains("KGC 3: not connected; and for KGC 2"), "{status}");
}

/// Figures, not a check: `cargo test --release -p quiver-kgc --test quorum -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
#[expect(clippy::print_stdout, reason = "the figures are what it is for")]
fn time_of_threshold_enrolment() {
    let bench = Bench::new(5, 3);
    let _kgcs = ALL.map(|id| bench.serve(id));
    for id in ALL {
        bench.serving(id, 0);
    }
    let fleet = Fleet::new(&bench);
    let alone: Vec<_> = (0..50).map(|number| fleet.time_of_one(&format!("one-{number}"))).collect();
    let issue = median(alone.iter().map(|figures| figures.issue));
    let all = median(alone.iter().map(|figures| figures.all));
    println!("one drone, 3 of 5: issue {issue:?}, with dialling and Noise {all:?} (medians of 50)");
    let report = fleet.enrol("many", 1000, 64, |_| {});
    println!("{} drones, 64 at a time: {:?}", report.enrolled, report.time);
    assert_eq!(report.enrolled, 1000);
}

fn median(times: impl Iterator<Item = Duration>) -> Duration {
    let mut times: Vec<_> = times.collect();
    times.sort_unstable();
    times[times.len() / 2]
}
