//! Two processes of one identity, each with a data directory of its own: a volume was cloned. Locks cannot see it.

use std::fs;

use crate::bench::{Bench, Process, eventually};
use crate::failover::{EDGES, Twins, free_port};
use crate::monitoring::{MONITORED, endpoint, health};
use crate::swarm::ANY;

/// The files of a data directory, while its process runs; none of them is ever half written.
fn copy(bench: &Bench, from: &str, to: &str) {
    fs::create_dir(bench.path(to)).expect("mkdir");
    for entry in fs::read_dir(bench.path(from)).expect("read") {
        let entry = entry.expect("entry");
        if entry.file_type().expect("type").is_file() {
            fs::copy(entry.path(), bench.path(to).join(entry.file_name())).expect("copy");
        }
    }
}

/// Waits until one of the two is not ready and says that it may not be the only one.
fn one_of_them_says_so(bench: &Bench, twins: [&Process; 2], part: &str) {
    eventually(&format!("a leader that says `{part}`"), || {
        let said = |process: &&Process| {
            let (code, said) = health(bench, "leader", &endpoint(process));
            code == 1 && said.contains(part)
        };
        twins.iter().any(said).then_some(())
    });
}

#[test]
fn kgc_does_not_start_while_another_answers_with_its_key() {
    let bench = Bench::new();
    let at = format!("/ip4/127.0.0.1/tcp/{}", free_port());
    let init =
        ["init", "-d", "first", "--deployment", "alps", "--operator", "operator.pub", "--address", &at];
    bench.ok("kgc", &init);
    copy(&bench, "first", "second");
    let mut first = bench.start("kgc", &["serve", "-d", "first", "--listen", &at]);
    first.address();
    let second = ["serve", "-d", "second", "--listen", ANY];
    bench.refused("kgc", &second, 5, &["copy of this data directory", &at]);
    first.kill();
    bench.start("kgc", &second).address();
}

#[test]
fn leader_says_when_another_leads_with_a_copy_of_its_state() {
    let twins = Twins::start();
    let bench = &twins.bench;
    twins.follow(0, &EDGES);

    copy(bench, "leader-0-data", "leader-0-copy");
    let serve = ["serve", "-d", "leader-0-copy", "--kgc", &twins.kgc_at, "--listen", ANY, "--silence", "2s"];
    let mut leader =
        bench.start("leader", &[&serve[..], &["--peer", &twins.sockets[1]], &MONITORED].concat());
    let why = "another process leads with a copy of its state";
    one_of_them_says_so(bench, [&twins.leaders[0], &leader], why);
    leader.kill();
    eventually("the group goes on without the copy", || {
        let held: Vec<_> = EDGES.iter().filter_map(|edge| bench.edge_status(edge)).collect();
        let same =
            held.iter().all(|edge| edge["synced"] == true && edge["epoch_digest"] == held[0]["epoch_digest"]);
        (held.len() == EDGES.len() && same).then_some(())
    });
}
