//! Work that a leader leaves to its driver, and what it does meanwhile.

use std::time::Duration;

use quiver_abke::Error as AbkeError;
use quiver_admission::AdmissionError;
use quiver_admission::gate::GateTiming;
use quiver_ainq::StrategyKind;
use quiver_group::{EdgeCommand, LeaderCommand, LeaderEvent};
use quiver_machine::Misdeed;

use crate::swarm::Swarm;
use crate::world::{Node, World};

const A_WHILE: Duration = Duration::from_secs(20);

/// A swarm whose leader computes nothing for those who want in.
fn with_workers(seed: u64, workers: usize) -> Swarm {
    let mut swarm = Swarm::new(seed, StrategyKind::Tree);
    swarm.workers = workers;
    swarm.crash_leader();
    swarm.start_leader();
    swarm
}

#[test]
fn leader_with_workers_computes_nothing_itself_and_lets_the_same_in() {
    for workers in [1, 3] {
        let mut swarm = with_workers(1, workers);
        let inside: Vec<usize> = (0..5).map(|at| swarm.add(100 + at, -50, false)).collect();
        let outside = swarm.add(300, -50, false);
        swarm.run(A_WHILE);
        swarm.assert_in(&inside);
        assert!(swarm.ending(outside).is_some());
        assert_eq!(swarm.leader().admission_work(), 0);
    }
}

#[test]
fn first_key_waits_for_company_before_it_is_verified() {
    let mut swarm = with_workers(7, 1);
    swarm.run(A_WHILE);
    swarm.world.jobs_held = true;
    swarm.add(100, -50, false);
    let millisecond = Duration::from_millis(1);
    let waited = (1..1000).find(|_| {
        swarm.run(millisecond);
        !swarm.world.jobs.is_empty()
    });
    assert!(millisecond * waited.unwrap() >= GateTiming::default().batching, "{waited:?} ms");
}

#[test]
fn members_are_served_while_jobs_are_under_way_and_late_results_are_nobodys() {
    let mut swarm = with_workers(2, 1);
    let member = swarm.add(100, -50, false);
    swarm.run(A_WHILE);
    swarm.assert_in(&[member]);
    swarm.world.jobs_held = true;
    // A drone's key is being verified, for as long as that takes.
    let late = swarm.add(101, -50, false);
    while swarm.world.jobs.is_empty() {
        swarm.run(Duration::from_millis(10));
        assert!(swarm.ending(late).is_none());
    }
    let job = swarm.world.jobs.pop_front().unwrap();
    swarm.lead(LeaderCommand::Rekey);
    swarm.run(Duration::from_secs(2));
    swarm.assert_in(&[member]);
    swarm.command(member, EdgeCommand::Leave);
    swarm.run(Duration::from_secs(5));
    swarm.assert_in(&[]);
    // It hangs up; then what was computed for it comes, to a leader that has forgotten what it was for.
    swarm.hang_up(late);
    swarm.world.jobs.push_back(job);
    assert!(swarm.world.work());
    swarm.run(A_WHILE);
    swarm.assert_in(&[]);
    let job = {
        let again = swarm.add(102, -50, false);
        while swarm.world.jobs.is_empty() {
            swarm.run(Duration::from_millis(10));
            assert!(swarm.ending(again).is_none());
        }
        swarm.world.jobs.pop_front().unwrap()
    };
    swarm.crash_leader();
    swarm.start_leader();
    swarm.world.jobs.push_back(job);
    assert!(swarm.world.work());
    swarm.world.jobs_held = false;
    swarm.run(A_WHILE);
    assert!(
        !swarm.events().iter().any(|event| matches!(event, LeaderEvent::Blamed { .. })),
        "{:?}",
        swarm.events()
    );
}

#[test]
fn forged_key_costs_its_senders_connection_and_that_of_nobody_verified_with_it() {
    for workers in [0, 2] {
        let mut swarm = with_workers(3, workers);
        // All in one batch. Another authority signed for the second: its key is well formed, and nobody's
        // here.
        let first = swarm.add(100, -50, false);
        let forged = World::new(77).credential_of(&[8; 32], (101, -50, false));
        let forger = swarm.add(101, -50, false);
        swarm.apply(forger, &forged);
        let last = swarm.add(102, -50, false);
        let outside = swarm.add(300, -50, false);
        swarm.run(A_WHILE);
        swarm.assert_in(&[first, last]);
        let invalid = AdmissionError::Exchange(AbkeError::InvalidSignature);
        assert!(swarm.denied().contains(&&invalid), "{:?}", swarm.denied());
        // Nor that of who shows a genuine key and does not satisfy the policy.
        let forgery = (Node::Leader, Node::Drone(forger), Misdeed::Forgery);
        assert_eq!(swarm.world.penalized, [forgery], "{workers} workers");
        assert!(swarm.ending(outside).is_some());
    }
}
