//! One seed gives one trace: in another process, and on another number of threads.

use std::process::Command;
use std::time::Duration;

use quiver_ainq::Ristretto255;
use quiver_world::{Action, InsecureToy, LinkFaults, MasterKeySuite, NoObserver, NodeId, Setup, World};

/// A short life with faults, hashed.
fn trace<S: MasterKeySuite>(seed: u64, parallel: bool) -> String {
    trace_of::<S>(Setup { seed, parallel, ..Setup::default() })
}

fn trace_of<S: MasterKeySuite>(setup: Setup) -> String {
    let faults = LinkFaults { loss: 0.05, duplicate: 0.05, corrupt: 0.02, reorder: 0.1, ..LinkFaults::SOUND };
    let setup = Setup { members: 24, traced: true, faults, recording: true, ..setup };
    let mut world = World::<S>::new(setup).unwrap();
    world.start_everyone();
    for edge in 0..24 {
        world.schedule(Duration::from_secs(5), Action::Join(edge));
    }
    let crash = Action::Crash { node: NodeId::Leader(0), after: 3, down_for: Duration::from_secs(2) };
    world.schedule(Duration::from_secs(20), crash);
    world.schedule(Duration::from_secs(30), Action::Leave(3));
    world.schedule(Duration::from_secs(31), Action::Usurp { edge: 4, rounds: 1 });
    world.schedule(Duration::from_secs(32), Action::Replay { pick: 1000, to: NodeId::Edge(5) });
    world.schedule(Duration::from_secs(40), Action::Evict(7));
    world.run_until(Duration::from_secs(90), &mut NoObserver);
    assert!(world.steps() > 500, "{} steps prove little", world.steps());
    world.trace_hash().unwrap().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
#[expect(clippy::print_stdout, reason = "the child process speaks to its parent")]
fn one_seed_gives_one_trace_in_two_processes() {
    const CHILD: &str = "QUIVER_WORLD_TRACE_CHILD";
    let all =
        || [trace::<InsecureToy>(7, false), trace::<InsecureToy>(7, true), trace::<Ristretto255>(7, false)];
    if std::env::var_os(CHILD).is_some() {
        println!("traces: {}", all().join(" "));
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["determinism::one_seed_gives_one_trace_in_two_processes", "--exact", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let theirs = printed.lines().find_map(|line| line.split_once("traces: ")).expect("the child prints").1;
    assert_eq!(theirs, all().join(" "));
}

#[test]
fn another_seed_gives_another_trace() {
    assert_ne!(trace::<InsecureToy>(1, false), trace::<InsecureToy>(2, false));
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| trace::<InsecureToy>(3, true))
    };
    assert_eq!(on(1), on(4));
}

#[test]
fn sharing_verifications_changes_nothing() {
    let sharing = |parallel| {
        let setup = Setup { seed: 5, parallel, share_verifications: true, ..Setup::default() };
        trace_of::<Ristretto255>(setup)
    };
    assert_eq!(sharing(true), trace::<Ristretto255>(5, true));
    assert_eq!(sharing(false), trace::<Ristretto255>(5, false));
}
