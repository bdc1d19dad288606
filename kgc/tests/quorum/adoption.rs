//! A refresh that ended everywhere but at one KGC (docs/quorum.md, "Refresh"): it stored its new shares, and the KGC whose
//! confirmation it lacks is lost.
//!
//! Each round of a refresh is stored before it is sent, so a KGC whose state file cannot be replaced stays in its round;
//! and each KGC needs the messages of both others to go on. So a step in which some KGCs are held ends in one way alone,
//! in whatever order messages arrive, and however often the KGCs are started in it.

use std::fs;
use std::time::Duration;

use quiver_service_testing::{eventually, text, within};

use crate::bench::Bench;

/// Time after which the KGCs are started again. A KGC that cannot store neither sends nor receives until it can, and its
/// last message may have come before its receiver could use it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs the three KGCs until `done`. Those held cannot store anything: a directory lies where the next state file is
/// written.
fn step(bench: &Bench, held: &[u16], done: impl Fn() -> Option<()>) {
    let next_state = |id: &u16| bench.path(&format!("kgc-{id}/quorum.state.new"));
    held.iter().for_each(|id| fs::create_dir(next_state(id)).expect("mkdir"));
    eventually(&format!("the KGCs come to where they are led while {held:?} cannot store"), || {
        let kgcs = [1, 2, 3].map(|id| bench.serve(id));
        let log = |id: &u16| text(&kgcs[usize::from(*id) - 1].err);
        let could_not = || held.iter().all(|id| log(id).contains("cannot store what must survive a crash"));
        within(PATIENCE, || done().filter(|()| could_not()))
    });
    // After their end, because they would go on.
    held.iter().for_each(|id| fs::remove_dir(next_state(id)).expect("rmdir"));
}

/// Looks whether a KGC waits for these others, in one of these stages of the refresh. For a KGC that is not held, that stage
/// is stored.
fn waits(bench: &Bench, id: u16, others: &[u16], stages: &[&str]) -> Option<()> {
    let status = bench.status(id)?;
    let ceremony = &status["ceremony"];
    let there = stages.iter().any(|stage| ceremony["stage"] == *stage);
    (there && ceremony["waits_for"] == serde_json::json!(others)).then_some(())
}

#[test]
fn shares_that_a_lost_kgc_did_not_confirm_are_put_in_force_by_the_operator() {
    const GATHERING: &str = "all must take part";
    const COMMITTING: &str = "all must commit";
    const ECHOING: &str = "all must have the same commitments";
    const SHARING: &str = "all must send their shares";
    const CONFIRMING: &str = "all must store theirs";

    let bench = Bench::new(3, 2);
    {
        let kgcs = [1, 2, 3].map(|id| bench.serve(id));
        (1..=3).for_each(|id| bench.serving(id, 0));
        bench.refused(1, &["quorum", "adopt"], 3, "no shares wait for confirmation");
        // KGC 3 would join at once.
        kgcs[2].kill();
        let _refreshes = [1, 2].map(|id| bench.start(id, &["quorum", "refresh"]));
        for id in [1, 2] {
            eventually("they wait for KGC 3", || waits(&bench, id, &[3], &[GATHERING]));
        }
    }
    let first_two = |stages: &[&str]| [1, 2].into_iter().try_for_each(|id| waits(&bench, id, &[3], stages));
    step(&bench, &[1, 2], || waits(&bench, 3, &[1, 2], &[COMMITTING]));
    // KGC 3 cannot store once it has the others' commitments, which they may have before its own.
    step(&bench, &[3], || first_two(&[COMMITTING, ECHOING]));
    step(&bench, &[3], || first_two(&[ECHOING]));
    step(&bench, &[1, 2], || waits(&bench, 3, &[1, 2], &[SHARING]));
    // KGCs 1 and 2 store the new shares, and confirm them.
    step(&bench, &[3], || first_two(&[CONFIRMING]));
    // KGC 3 does so too; KGC 1 cannot store that all have.
    step(&bench, &[1], || [2, 3].into_iter().try_for_each(|id| bench.has_in_force(id, 1)));

    fs::remove_dir_all(bench.path("kgc-3")).expect("remove");
    let [first, _second] = [1, 2].map(|id| bench.serve(id));
    eventually("the status shows that the others have the new version in force", || {
        let status = bench.status(1)?;
        let other = status["others"].as_array()?.iter().find(|other| other["kgc"] == 2)?;
        (status["version"] == 0 && other["version"] == 1).then_some(())
    });
    bench.ok(1, &["quorum", "adopt"]);
    bench.in_force(1, 1);
    bench.refused(1, &["quorum", "adopt"], 3, "no shares wait for confirmation");
    // It serves with them, and holds them after a start.
    first.kill();
    let _first = bench.serve(1);
    bench.in_force(1, 1);
    eventually("it serves", || (bench.status(1)?["serving"] == true).then_some(()));
}
