//! A refresh that ended everywhere but at one KGC (docs/quorum.md, "Refresh"): it stored its new shares, and the KGC whose
//! confirmation it lacks is lost.
//!
//! Each round of a refresh is stored before it is sent. So a KGC whose state file cannot be replaced holds all others in the
//! round after its last, and one after the other they are led to where the losses happen.

use std::fs;
use std::time::Duration;

use quiver_service_testing::{Process, eventually, within};

use crate::bench::Bench;

/// Keeps a KGC from storing anything: a directory lies where the next state file is written.
fn hold(bench: &Bench, id: u16) {
    fs::create_dir(bench.path(&format!("kgc-{id}/quorum.state.new"))).expect("mkdir");
}

fn release(bench: &Bench, id: u16) {
    fs::remove_dir(bench.path(&format!("kgc-{id}/quorum.state.new"))).expect("rmdir");
}

/// Time in which a KGC comes to the round that it is led to.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until a KGC waits for another, in a round that its status describes so. `None` if it does not come there.
fn waits(bench: &Bench, id: u16, other: u16, round: &str) -> Option<()> {
    within(PATIENCE, || {
        let status = bench.ok(id, &["quorum", "status"]);
        let refresh = status.lines().find(|line| line.starts_with("refresh: "))?;
        (refresh.contains(&format!("waiting for KGC {other}")) && refresh.contains(round)).then_some(())
    })
}

/// Leads three KGCs to where KGC 3 alone has not stored the new shares, and KGC 1 is killed. `None` if two of them wait
/// for each other: a KGC that cannot store sends nothing again, and what it sent before may have been lost at one that
/// could not store either.
fn led(bench: &Bench) -> Option<[Process; 3]> {
    let mut kgcs = [1, 2, 3].map(|id| bench.serve(id));
    (1..=3).for_each(|id| bench.serving(id, 0));
    bench.refused(1, &["quorum", "adopt"], 3, "no shares wait for confirmation");
    // KGC 3 joins by itself as soon as it has started.
    kgcs[2].kill();
    let _refreshes = [1, 2].map(|id| bench.start(id, &["quorum", "refresh"]));
    let together = |waiting: [(u16, u16, &str); 2]| {
        waiting.into_iter().try_for_each(|(id, other, round)| waits(bench, id, other, round))
    };
    together([(1, 3, "take part"), (2, 3, "take part")])?;
    hold(bench, 1);
    kgcs[2] = bench.serve(3);
    together([(2, 1, "commit"), (3, 1, "commit")])?;
    hold(bench, 2);
    release(bench, 1);
    together([(1, 2, "same commitments"), (3, 2, "same commitments")])?;
    hold(bench, 1);
    release(bench, 2);
    together([(2, 1, "send their shares"), (3, 1, "send their shares")])?;
    hold(bench, 3);
    release(bench, 1);
    // KGCs 1 and 2 have stored the new shares, and confirmed them.
    together([(1, 3, "store theirs"), (2, 3, "store theirs")])?;
    kgcs[2].logged("cannot store what must survive a crash");
    kgcs[0].kill();
    release(bench, 3);
    // KGC 3 confirms to all but KGC 1, and is lost.
    within(PATIENCE, || bench.has_in_force(2, 1))?;
    within(PATIENCE, || bench.has_in_force(3, 1))?;
    Some(kgcs)
}

#[test]
fn shares_that_a_lost_kgc_did_not_confirm_are_put_in_force_by_the_operator() {
    let led = || {
        let bench = Bench::new(3, 2);
        let kgcs = led(&bench)?;
        Some((bench, kgcs))
    };
    let (bench, mut kgcs) = (0..8).find_map(|_| led()).expect("the losses happen where they are to");
    kgcs[2].kill();
    fs::remove_dir_all(bench.path("kgc-3")).expect("remove");
    kgcs[0] = bench.serve(1);
    eventually("the status shows that the others have the new version in force", || {
        let status = bench.status(1)?;
        let other = status["others"].as_array()?.iter().find(|other| other["kgc"] == 2)?;
        (status["version"] == 0 && other["version"] == 1).then_some(())
    });
    bench.ok(1, &["quorum", "adopt"]);
    bench.in_force(1, 1);
    bench.refused(1, &["quorum", "adopt"], 3, "no shares wait for confirmation");
    // It serves with them, and holds them after a start.
    kgcs[0].kill();
    kgcs[0] = bench.serve(1);
    bench.in_force(1, 1);
    eventually("it serves", || (bench.status(1)?["serving"] == true).then_some(()));
}
