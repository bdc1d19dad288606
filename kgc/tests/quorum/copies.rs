//! Two processes of one KGC, because a volume was cloned; and a KGC that was put back from an older copy.

use std::fs;
use std::os::unix::fs::DirBuilderExt;

use quiver_service_testing::eventually;

use crate::bench::Bench;

const ANY: &str = "/ip4/127.0.0.1/tcp/0";

/// Copies the files of a data directory.
fn copy(bench: &Bench, from: &str, to: &str) {
    fs::DirBuilder::new().mode(0o700).create(bench.path(to)).expect("mkdir");
    for entry in fs::read_dir(bench.path(from)).expect("read") {
        let entry = entry.expect("entry");
        if entry.file_type().expect("type").is_file() {
            fs::copy(entry.path(), bench.path(to).join(entry.file_name())).expect("copy");
        }
    }
}

#[test]
fn copy_that_started_while_the_first_did_not_answer_is_heard_by_the_other_kgcs() {
    let bench = Bench::new(3, 2);
    let kgcs = [1, 2, 3].map(|id| bench.serve(id));
    (1..=3).for_each(|id| bench.serving(id, 0));
    kgcs[0].signal("STOP");
    copy(&bench, "kgc-1", "kgc-4");
    let serve = ["serve", "--listen", ANY, "--metrics", "127.0.0.1:0"];
    let duplicate = bench.start(4, &serve);
    duplicate.line("listening on");
    kgcs[0].signal("CONT");
    let heard = kgcs[1].logged("two processes run with one identity");
    assert!(heard.contains("drone=\"KGC 1\""), "{heard}");
    let why = "another process runs with a copy of this one's identity: both asked KGC";
    for kgc in [&kgcs[0], &duplicate] {
        kgc.logged(why);
    }
    let at = duplicate.logged("serving metrics and health");
    let at = at.split("address=").nth(1).expect("an address").trim();
    eventually("the copy is not ready", || {
        let (code, said) = bench.answer(4, &["health", "--metrics", at]);
        (code == Some(1) && said.contains(why)).then_some(())
    });
    duplicate.kill();
    kgcs[0].logged("nobody hears another process with this one's identity any more");
    // The first answers again where it always did.
    bench.refused(4, &serve, 5, "with this one's transport key");
}

#[test]
fn kgc_that_was_put_back_from_before_a_refresh_is_not_ready_says_why_and_is_repaired() {
    let bench = Bench::new(3, 2);
    let mut kgcs = [1, 2, 3].map(|id| bench.serve(id));
    (1..=3).for_each(|id| bench.serving(id, 0));
    kgcs[2].kill();
    copy(&bench, "kgc-3", "older");
    kgcs[2] = bench.serve(3);
    (1..=3).for_each(|id| bench.serving(id, 0));
    bench.refresh(&mut kgcs, 1);

    kgcs[2].kill();
    fs::remove_dir_all(bench.path("kgc-3")).expect("remove");
    copy(&bench, "older", "kgc-3");
    kgcs[2] = bench.serve(3);
    let why = "the shares here are of version 0, and KGCs 1 and 2 have version 1";
    kgcs[2].logged(why);
    let (code, said) = bench.answer(3, &["health"]);
    assert!(code == Some(1) && said.contains(why) && said.contains("run `kgc quorum repair`"), "{said}");
    assert!(bench.ok(3, &["quorum", "status"]).contains(why));
    assert_eq!(bench.answer(1, &["health"]).0, Some(0), "the others are ready");
    bench.refused(3, &["quorum", "repair", "--wait", "1s"], 8, "kgc quorum approve --repair");
    for helper in [1, 2] {
        bench.ok(helper, &["quorum", "approve", "--repair", "3"]);
    }
    bench.serving(3, 1);
    kgcs[2].logged("of the version that the others have");
    eventually("it is ready", || (bench.answer(3, &["health"]).0 == Some(0)).then_some(()));
    bench.refused(3, &["quorum", "repair"], 3, "nothing to repair");
}
