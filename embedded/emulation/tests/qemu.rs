//! The edge image in QEMU, against a real KGC and a real leader that is its gateway: enrolment, re-keys,
//! messages, resets and faults.

use std::path::PathBuf;
use std::sync::OnceLock;

use quiver_emulation::board::{EmulatedBoard, Time, qemu};
use quiver_emulation::build::image;
use quiver_emulation::fault_script::{StepFault, steps};
use quiver_emulation::swarm::{EmulatedSwarm, epoch_in};
use quiver_emulation::wire::{End, LinkFaults};
use quiver_service_testing::TestDeployment;
use quiver_service_testing::eventually;

fn edge() -> PathBuf {
    static IMAGE: OnceLock<PathBuf> = OnceLock::new();
    IMAGE.get_or_init(|| image("quiver-mps2", "mps2-edge", "edge")).clone()
}

/// A board with these options of the image.
fn board(deployment: &TestDeployment, name: &str, options: &[&str]) -> EmulatedBoard {
    let mut board =
        EmulatedBoard::start(&deployment.log(name), |ports| qemu(&edge(), Time::Host, options, ports));
    assert!(board.console.line("start board").contains("mps2-an386"));
    board
}

/// A group of one board with these options, in step.
fn swarm(options: &[&str]) -> EmulatedSwarm {
    let mut swarm = EmulatedSwarm::new(&["edge-1"], |deployment, name| board(deployment, name, options));
    swarm.set_up(0, "edge-1");
    swarm
}

#[test]
fn board_enrols_joins_follows_ten_rekeys_and_exchanges_messages() {
    let mut swarm = swarm(&["seed=1"]);
    for _ in 0..10 {
        let epoch = swarm.rekey(1);
        assert_eq!(swarm.boards[0].console.line_that("a key", epoch_in), epoch);
    }
    swarm.deployment.ok("leader", &["send", "return to base"]);
    let heard = swarm.boards[0].console.line("message ");
    assert_eq!(heard, "message chat leader-1 return to base");
    swarm.boards[0].console.type_line("send on my way");
    let line = swarm.leader.line("on my way");
    assert!(line.contains("edge-1"), "{line}");
    assert_eq!(swarm.deployment.keys_issued(), 2, "the leader's and the board's");
    // It had a pair of ML-KEM made, and decapsulated.
    swarm.boards[0].console.assert_memory();
}

#[test]
fn reset_board_keeps_its_state_and_goes_on() {
    let mut swarm = swarm(&["seed=2"]);
    for _ in 0..2 {
        let console = &mut swarm.boards[0].console;
        console.type_line("reset");
        assert!(console.line("start board").ends_with("reset software"));
        let back = console.line_that("a key", epoch_in);
        assert!(back >= swarm.epoch(), "{back:?}");
        let epoch = swarm.rekey(1);
        swarm.boards[0].console.line_that("the new key", |line| epoch_in(line).filter(|at| *at == epoch));
    }
    assert_eq!(swarm.deployment.keys_issued(), 2, "nobody enrolled anew");
}

#[test]
fn wiped_board_knows_nothing_until_it_is_set_up_again() {
    let mut swarm = swarm(&["seed=3"]);
    swarm.boards[0].console.type_line("wipe");
    swarm.boards[0].console.line("wiped");
    let console = &mut swarm.boards[0].console;
    console.type_line("reset");
    console.line("unprovisioned");
    console.type_line("send hello?");
    console.line("error");
    console.type_line("status");
    console.line_that("the status", |line| {
        assert!(!line.contains("edge-1") && epoch_in(line).is_none(), "{line}");
        (line == "end").then_some(())
    });
    swarm.set_up(0, "edge-2");
}

#[test]
fn garbage_on_the_line_at_every_point_delays_and_breaks_nothing() {
    let mut swarm = EmulatedSwarm::new(&["edge-1"], |deployment, name| board(deployment, name, &["seed=4"]));
    // A frame is up to 1,200 bytes long: every second or third is hit, and repeated until it arrives.
    let faults = LinkFaults { garbage: 2_000, errors: 10_000, losses: 10_000, cut: false };
    swarm.boards[0].wire.set_faults(faults);
    swarm.set_up(0, "edge-1");
    for _ in 0..3 {
        let epoch = swarm.rekey(1);
        swarm.boards[0].console.line_that("the new key", |line| epoch_in(line).filter(|at| *at >= epoch));
    }
    let wire = &swarm.boards[0].wire;
    for towards in [End::Board, End::Gateway] {
        // Frames that never end, and nothing but ends of frames.
        wire.inject(towards, &[0x55; 100_000]);
        wire.inject(towards, &[0; 10_000]);
    }
    let epoch = swarm.rekey(1);
    swarm.boards[0].console.line_that("the new key", |line| epoch_in(line).filter(|at| *at >= epoch));
    assert_eq!(swarm.deployment.keys_issued(), 2, "nobody enrolled anew");
    let said = swarm.boards[0].console.said();
    assert_eq!(said.iter().filter(|line| line.contains("start board")).count(), 1, "it never started anew");
}

/// A life with garbage of this kind at every step of enrolment, join, re-key and catching up, of either
/// side's start, and of the session with the gateway.
fn lives_through(fault: StepFault) {
    let mut swarm = EmulatedSwarm::new(&["edge-1"], |deployment, name| board(deployment, name, &["seed=10"]));
    swarm.boards[0].wire.fault_at_steps(fault);
    swarm.set_up(0, "edge-1");
    let _ = swarm.rekey(1);
    swarm.boards[0].console.type_line("reset");
    swarm.boards[0].console.line("reset software");
    swarm.boards[0].console.line_that("a key", epoch_in);
    // Another term: the board publishes the point that the next one is to be opened with.
    swarm.restart_leader();
    let epoch = swarm.rekey(1);
    swarm.boards[0].console.line_that("the new key", |line| epoch_in(line).filter(|at| *at >= epoch));
    let wire = swarm.boards[0].wire.clone();
    eventually("every step was hit", || (wire.hit() == steps()).then_some(()));
    let epoch = swarm.rekey(1);
    swarm.boards[0].console.line_that("the new key", |line| epoch_in(line).filter(|at| *at >= epoch));
    assert_eq!(swarm.deployment.keys_issued(), 2, "nobody enrolled anew");
    let starts = swarm.boards[0].console.said().iter().filter(|line| line.contains("start board")).count();
    assert_eq!(starts, 2, "it started anew only when it was told to");
}

#[test]
fn garbage_before_each_step_delays_and_breaks_nothing() {
    lives_through(StepFault::Before);
}

#[test]
fn garbage_within_each_step_delays_and_breaks_nothing() {
    lives_through(StepFault::Within);
}

#[test]
fn garbage_after_each_step_delays_and_breaks_nothing() {
    lives_through(StepFault::After);
}

#[test]
fn nonsense_in_good_frames_at_each_step_delays_and_breaks_nothing() {
    lives_through(StepFault::Nonsense);
}

#[test]
fn flood_at_each_step_delays_and_breaks_nothing() {
    lives_through(StepFault::Flood);
}

#[test]
fn line_that_was_cut_for_a_while_is_caught_up_with() {
    let mut swarm = swarm(&["seed=5"]);
    swarm.boards[0].wire.set_faults(LinkFaults { cut: true, ..LinkFaults::default() });
    swarm.deployment.ok("leader", &["rekey"]);
    swarm.boards[0].console.line("gateway lost");
    swarm.boards[0].wire.set_faults(LinkFaults::default());
    swarm.boards[0].console.line("gateway connected");
    let epoch = swarm.rekey(1);
    swarm.boards[0].console.line_that("the new key", |line| epoch_in(line).filter(|at| *at >= epoch));
}

#[test]
fn garbage_on_the_console_is_refused_line_by_line() {
    let mut swarm = swarm(&["seed=6"]);
    let console = &mut swarm.boards[0].console;
    console.type_bytes(&[0xff; 20_000]);
    console.type_line("");
    console.line("error line is too long");
    for wrong in ["provision 00", "provision zz", "no such thing", "join a/b", "bench nothing 0"] {
        console.type_line(wrong);
        console.line("error");
    }
    let epoch = swarm.rekey(1);
    swarm.boards[0].console.line_that("the new key", |line| epoch_in(line).filter(|at| *at >= epoch));
}

#[test]
fn board_whose_randomness_fails_does_no_cryptography() {
    let mut swarm =
        EmulatedSwarm::new(&["edge-1"], |deployment, name| board(deployment, name, &["rng=stuck"]));
    swarm.boards[0].console.line("fault randomness");
    let line = swarm.provisioning("edge-1");
    swarm.boards[0].console.type_line(&line);
    swarm.boards[0].console.line("error not now");
    eventually("the leader enrols", || (swarm.deployment.keys_issued() > 0).then_some(()));
    assert_eq!(swarm.deployment.keys_issued(), 1, "the leader's alone");
}

#[test]
fn power_lost_at_any_word_leaves_a_board_that_goes_on() {
    // From the first words that a board ever writes, over the enrolment, to re-keys.
    for cuts in
        [["cut=1", "cut=40", "cut=90"], ["cut=9", "cut=300", "cut=700"], ["cut=150", "cut=450", "cut=1100"]]
    {
        let mut swarm = EmulatedSwarm::new(&["edge-1"], |deployment, name| {
            board(deployment, name, &[&["seed=8"][..], &cuts].concat())
        });
        let line = swarm.provisioning("edge-1");
        // A line typed as the power went is typed again.
        let mut tries = 0;
        loop {
            tries += 1;
            swarm.boards[0].console.type_line(&line);
            let answer = swarm.boards[0].console.line_that("an answer", |line| {
                ["provisioned", "error provisioned already", "start board", "fault"]
                    .into_iter()
                    .find(|start| line.starts_with(start))
            });
            assert!(tries < 5 && answer != "fault", "{answer}");
            if answer.contains("provisioned") {
                break;
            }
        }
        swarm.boards[0].console.line_that("a key", epoch_in);
        for _ in 0..6 {
            let epoch = swarm.rekey(1);
            swarm.boards[0].console.line_that("the new key", |line| {
                assert!(!line.contains("fault"), "{line}");
                epoch_in(line).filter(|at| *at >= epoch)
            });
        }
        let starts =
            swarm.boards[0].console.said().iter().filter(|line| line.contains("reset power")).count();
        assert!(starts >= 3, "power was lost only {} times", starts - 1);
        assert_eq!(swarm.deployment.keys_issued(), 2, "nobody enrolled anew");
    }
}

#[test]
fn watchdog_brings_a_board_back_that_hangs_while_it_stores_a_key() {
    let mut swarm = swarm(&["seed=11", "hang=700"]);
    let hung = |swarm: &EmulatedSwarm| {
        swarm.boards[0].console.said().iter().any(|line| line.ends_with("reset watchdog"))
    };
    for _ in 0..20 {
        let _ = swarm.rekey(1);
        if hung(&swarm) {
            break;
        }
    }
    assert!(hung(&swarm), "700 operations of the flash were not reached");
    let epoch = swarm.rekey(1);
    swarm.boards[0].console.line_that("the new key", |line| epoch_in(line).filter(|at| *at >= epoch));
    swarm.boards[0].console.type_line("status");
    assert!(swarm.boards[0].console.line("counters ").contains("watchdog_resets=1"));
    assert_eq!(swarm.deployment.keys_issued(), 2, "nobody enrolled anew");
}

#[test]
fn no_secret_reaches_console_line_or_log() {
    let mut swarm = EmulatedSwarm::new(&["edge-1"], |deployment, name| board(deployment, name, &["seed=9"]));
    let provisioning = swarm.set_up(0, "edge-1");
    // The blob ends with the token's secret and a check of 8 bytes.
    let secret = &provisioning[provisioning.len() - 16 - 64..provisioning.len() - 16];
    for (path, log) in swarm.deployment.all_logs() {
        // The operator's own command prints it, to be typed.
        if path.to_string_lossy().ends_with("-edge.out") {
            assert!(String::from_utf8_lossy(&log).contains(secret), "this is what the secret looks like");
            continue;
        }
        let found = String::from_utf8_lossy(&log).contains(secret);
        assert!(!found, "the token's secret is in {}", path.display());
    }
}
