//! Live runs whose drones are hosted by other ranks. Here ranks are threads, with the messages that MPI carries elsewhere.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};

use quiver_ainq::StrategyKind;
use quiver_report::Progress;
use quiver_sim::live::{self, RankLine};
use quiver_sim::plan::{Plan, TransportKind};
use quiver_sim::report::{RunOutcome, RunReport};
use quiver_sim::{Result, SimError};

/// A plan for drones that ranks host.
fn plan(ranks: u32) -> Plan {
    Plan { drones: 40, transport: TransportKind::Tcp, messages: 6, workers: ranks, ..Plan::default() }
}

/// Runs a plan with a thread for each rank that hosts drones.
fn run(plan: &Plan) -> (Result<RunReport>, Vec<Result<RunOutcome>>) {
    let (near, far): (Vec<RankLine>, Vec<RankLine>) = (0..plan.workers).map(|_| RankLine::pair()).unzip();
    let ranks: Vec<JoinHandle<Result<RunOutcome>>> =
        far.into_iter().map(|line| thread::spawn(|| live::work(line))).collect();
    let report = live::run_over(plan, &Progress::hidden(), near, &mut |_| {});
    (report, ranks.into_iter().map(|rank| rank.join().unwrap()).collect())
}

/// The report of a run that passed.
fn passed(plan: &Plan) -> RunReport {
    let (report, ranks) = run(plan);
    let report = report.unwrap();
    assert_eq!(report.outcome(), RunOutcome::Passed, "{}", report.failures());
    assert!(ranks.iter().all(|rank| matches!(rank, Ok(RunOutcome::Passed))), "{ranks:?}");
    report
}

/// Names of operations, each with its number of drones.
fn operations(report: &RunReport) -> Vec<(String, usize)> {
    report.operations.iter().map(|operation| (operation.name(), operation.drones)).collect()
}

#[test]
fn drones_of_three_ranks_hold_every_invariant_and_the_keys_of_drones_in_one_process() {
    let mut finished = Vec::new();
    let spread = passed(&plan(3));
    let hosted: Vec<usize> = spread.workers.iter().map(|worker| worker.drones).collect();
    // 40 of the group, 4 newcomers, 1 outsider.
    assert_eq!(hosted, [15, 15, 15]);
    assert!(spread.workers[1].who.starts_with("rank 2 on "), "{:?}", spread.workers);
    let together =
        live::run_over(&plan(0), &Progress::hidden(), Vec::new(), &mut |part| finished.push(part)).unwrap();
    assert_eq!(spread.keys_digest, together.keys_digest);
    assert_eq!(spread.choices_digest, together.choices_digest);
    assert_eq!(operations(&spread), operations(&together));
    // After each operation the watcher has all that are finished.
    let counts: Vec<usize> = finished.iter().map(|part| part.operations.len()).collect();
    assert_eq!(counts, (1..=together.operations.len()).collect::<Vec<_>>());
    assert!(finished.iter().all(|part| part.outcome() == RunOutcome::Interrupted));
}

#[test]
fn drones_behind_relays_of_two_ranks_have_the_keys_of_drones_without_and_cost_the_leader_little() {
    let tree = |ranks| Plan { strategy: StrategyKind::Tree, ..plan(ranks) };
    let relayed = passed(&Plan { relays: 2, ..tree(2) });
    let alone = passed(&tree(0));
    assert_eq!(relayed.keys_digest, alone.keys_digest);
    let sent = |run: &RunReport| run.operation("re-key").unwrap().leader_bytes.unwrap();
    assert!(sent(&relayed) * 5 < sent(&alone), "{} and {}", sent(&relayed), sent(&alone));
}

/// The operations of a run with two ranks and of one in one process.
fn spread_and_together(plan: &Plan) -> [Vec<(String, usize)>; 2] {
    let plan = Plan { drones: 12, messages: 2, restart_leader: false, ..plan.clone() };
    [2, 0].map(|workers| operations(&passed(&Plan { workers, ..plan.clone() })))
}

#[test]
fn drones_of_ranks_open_envelopes_and_orders_as_those_in_one_process() {
    let [spread, together] =
        spread_and_together(&Plan { envelopes: true, orders: true, kgcs: 3, threshold: 2, ..plan(2) });
    assert_eq!(spread, together);
    let members = 12 + 2 - 1;
    for operation in [
        "envelope (to 3)",
        "order sealed to phase 2",
        "phase 2 requested early (13 refused)",
        "phase 2 released (2 of 3)",
    ] {
        assert!(spread.contains(&(operation.into(), members)), "{operation}: {spread:?}");
    }
}

#[test]
fn drones_of_ranks_join_anonymously_as_those_in_one_process() {
    let admission = Some(quiver_world::admission::FENCE.into());
    let [spread, together] = spread_and_together(&Plan { admission, ..plan(2) });
    assert_eq!(spread, together);
    let admissions = spread.iter().filter(|(operation, _)| operation.contains("admitted"));
    assert!(admissions.count() >= 2, "{spread:?}");
}

/// Carries messages between two ends until one of them in this direction holds these words, and lets go of both.
fn carry_until(words: &'static [u8], from: RankLine, to: RankLine) {
    let RankLine { outgoing: back, incoming: mut answers } = from;
    let RankLine { outgoing: forth, incoming: mut commands } = to;
    let down = thread::spawn(move || {
        while let Some(command) = commands.blocking_recv() {
            if back.send(command).is_err() {
                break;
            }
        }
    });
    while let Some(answer) = answers.blocking_recv() {
        if answer.windows(words.len()).any(|window| window == words) || forth.send(answer).is_err() {
            break;
        }
    }
    drop((forth, answers));
    // It ends with the run.
    down.join().unwrap();
}

#[test]
fn a_rank_that_is_lost_ends_the_run_with_its_number_and_what_was_finished_is_kept() {
    let (near, far): (Vec<RankLine>, Vec<RankLine>) = (0..3).map(|_| RankLine::pair()).unzip();
    let mut ranks = Vec::new();
    for (nth, line) in far.into_iter().enumerate() {
        let line = if nth == 1 {
            // The second is lost with the first word that one of its drones left: after the group has re-keyed.
            let (own, carried) = RankLine::pair();
            thread::spawn(|| carry_until(b"\"Left\"", carried, line));
            own
        } else {
            line
        };
        ranks.push(thread::spawn(|| live::work(line)));
    }
    let mut kept = Vec::new();
    // All but one leave, so that one of each rank does.
    let plan = Plan { leave_percent: 90.0, ..plan(3) };
    let report = live::run_over(&plan, &Progress::hidden(), near, &mut |part| {
        kept = operations(&part);
    })
    .unwrap();
    assert_eq!(report.outcome(), RunOutcome::Failed);
    assert_eq!(report.violations, [], "nothing is wrong with the others");
    let text = report.failures();
    assert!(text.starts_with("1 rank lost\nrank 2 on "), "{text}");
    assert!(text.contains("is lost with 15 drones, and the run is over after"), "{text}");
    let names: Vec<String> = kept.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(names[..4], ["enrol", "connect", "form group", "re-key"], "{names:?}");
    assert!(names.len() <= 5, "{names:?}");
    assert_eq!(operations(&report), kept, "what was under way is not told");
    let ends: Vec<RunOutcome> = ranks.into_iter().map(|rank| rank.join().unwrap().unwrap()).collect();
    assert_eq!(ends, [RunOutcome::Passed, RunOutcome::Failed, RunOutcome::Passed]);
}

#[test]
fn a_rank_ends_with_its_run_whatever_it_is_at() {
    let (near, far) = RankLine::pair();
    let rank = thread::spawn(|| live::work(far));
    let mut plan = plan(1);
    let run = catch_unwind(AssertUnwindSafe(|| {
        plan.messages = 1;
        live::run_over(&plan, &Progress::hidden(), vec![near], &mut |part| {
            assert!(part.operations.len() < 2, "the run is killed here");
        })
    }));
    assert!(run.is_err());
    assert_eq!(rank.join().unwrap().unwrap(), RunOutcome::Failed);
}

#[test]
fn ranks_that_say_something_else_are_named() {
    let refusal = |answer: &'static [u8]| {
        let (near, far) = RankLine::pair();
        far.outgoing.send(answer.to_vec()).unwrap();
        let refused = live::run_over(&plan(1), &Progress::hidden(), vec![near], &mut |_| {}).unwrap_err();
        assert!(matches!(refused, SimError::Worker { .. }), "{refused}");
        refused.to_string()
    };
    let version = refusal(b"{\"Hello\":{\"version\":\"0\",\"host\":\"a\"}}");
    assert!(version.starts_with("rank 1: it is of version 0, this run of "), "{version}");
    for words in [&b"GET / HTTP/1.1"[..], b"\xff", b""] {
        let refused = refusal(words);
        assert!(refused.starts_with("rank 1: not understood"), "{refused}");
    }
    assert_eq!(refusal(b"\"Done\""), "rank 1: it does not greet");
    let late = Plan { timeout: std::time::Duration::from_millis(200), ..plan(1) };
    let (near, _far) = RankLine::pair();
    let silent = live::run_over(&late, &Progress::hidden(), vec![near], &mut |_| {}).unwrap_err();
    assert!(silent.to_string().contains("0 of 1 rank greeted within 0.2 s"), "{silent}");
}

#[test]
fn what_cannot_work_is_said() {
    let refusal = |words: &[&str], marks: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sim"));
        command.args(words).stdin(Stdio::null()).envs(marks.iter().copied());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    // A build without MPI plays alone.
    if cfg!(not(feature = "mpi")) {
        let text = refusal(&["run", "--transport", "tcp"], &[("OMPI_COMM_WORLD_SIZE", "3")]);
        assert!(text.contains("--features mpi"), "{text}");
    }
    let text = refusal(&["worker", "127.0.0.1:7400"], &[]);
    assert!(text.contains("worker"), "{text}");
    assert!(plan(2).check().is_ok());
    let memory = Plan { transport: TransportKind::Memory, ..plan(2) };
    assert!(memory.check().unwrap_err().to_string().contains("--transport tcp"));
    for (bind, part) in [("0.0.0.0", "reach this host"), ("nowhere.invalid", "--bind nowhere.invalid")] {
        let (report, ranks) = run(&Plan { bind: Some(bind.into()), ..plan(1) });
        let refused = report.unwrap_err().to_string();
        assert!(refused.contains(part), "{refused}");
        assert!(ranks[0].as_ref().unwrap_err().to_string().contains("gone"), "{ranks:?}");
    }
}
