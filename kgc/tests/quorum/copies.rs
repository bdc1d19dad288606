//! Two processes of one KGC: a volume was cloned.

use std::fs;
use std::os::unix::fs::DirBuilderExt;

use quiver_service_testing::eventually;

use crate::bench::Bench;

const ANY: &str = "/ip4/127.0.0.1/tcp/0";

/// The data directory of KGC 1, for KGC 4.
fn copy(bench: &Bench) {
    fs::DirBuilder::new().mode(0o700).create(bench.path("kgc-4")).expect("mkdir");
    for entry in fs::read_dir(bench.path("kgc-1")).expect("read") {
        let entry = entry.expect("entry");
        if entry.file_type().expect("type").is_file() {
            fs::copy(entry.path(), bench.path("kgc-4").join(entry.file_name())).expect("copy");
        }
    }
}

#[test]
fn copy_that_started_while_the_first_did_not_answer_is_heard_by_the_other_kgcs() {
    let bench = Bench::new(3, 2);
    let kgcs = [1, 2, 3].map(|id| bench.serve(id));
    (1..=3).for_each(|id| bench.serving(id, 0));
    kgcs[0].signal("STOP");
    copy(&bench);
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
