//! No randomness, a hang, a button held down: what must not happen, and what must.

use std::thread::sleep;
use std::time::Duration;

use quiver_emulation::deployment::GROUP;
use quiver_emulation::model::{Model, ModelSetup};
use quiver_service_testing::TestDeployment;
use quiver_service_testing::eventually;

use crate::member_board::{MemberBoard, NAME, edge, provision};

/// The red LED is the board's second.
fn is_red(model: &mut Model) -> bool {
    model.order("leds").as_bytes().get("leds ".len() + 1) == Some(&b'1')
}

#[test]
fn board_without_randomness_shows_it_and_does_no_cryptography() {
    for failure in ["silent", "constant"] {
        let deployment = TestDeployment::new();
        let setup = ModelSetup::new(21, &deployment.path("flash")).with(&["--rng", failure]);
        let mut model = Model::start(&deployment.log(NAME), &edge(), &setup);
        model.board.console.line("fault randomness");
        eventually("the red light", || is_red(&mut model).then_some(()));
        let token = deployment.token(NAME, &["--group", GROUP]);
        let line = deployment.ok("edge", &provision(&token, &[]));
        model.board.console.type_line(line.trim());
        model.board.console.line("error not now");
        assert!(is_red(&mut model), "{failure}");
        assert_eq!(
            model.status("resets"),
            2,
            "no reset in a loop: one start, and one more to set up the reset pin"
        );
    }
}

#[test]
fn board_whose_noise_recovers_works_after_a_reset() {
    let mut board = MemberBoard::new(22);
    board.model.order("rng silent");
    board.model.order("reset");
    board.model.board.console.line("fault randomness");
    board.model.order("rng ok");
    board.model.order("reset");
    board.comes_back("pin");
}

#[test]
fn watchdog_brings_a_board_back_that_hangs() {
    let mut board = MemberBoard::new(23);
    board.model.order("freeze");
    board.comes_back("watchdog");
    board.exchanges_messages("awake again");
}

#[test]
fn watchdog_brings_a_board_back_whose_flash_never_answers() {
    let mut board = MemberBoard::new(27);
    // The driver waits for it in a loop that has no end, in the middle of a key's record.
    board.model.order("flash stuck");
    board.deployment.ok("leader", &["rekey"]);
    board.comes_back("watchdog");
    board.model.board.console.type_line("status");
    assert!(board.model.board.console.line("counters ").contains("watchdog_resets=1"));
    assert_eq!(board.deployment.keys_issued(), 2, "nobody enrolled anew");
}

#[test]
fn button_held_for_five_seconds_wipes_and_a_short_touch_does_not() {
    let mut board = MemberBoard::new(24);
    board.model.order("press 1");
    sleep(Duration::from_secs(2));
    board.model.order("release 1");
    board.follows_a_re_key();
    board.model.order("press 1");
    board.model.board.console.line("wiped");
    board.model.order("release 1");
    stays_wiped(&mut board);
}

#[test]
fn command_wipes() {
    let mut board = MemberBoard::new(25);
    board.model.board.console.type_line("wipe");
    board.model.board.console.line("wiped");
    stays_wiped(&mut board);
}

/// Asserts that neither a restart nor the flash brings anything back.
fn stays_wiped(board: &mut MemberBoard) {
    board.kill_and_start();
    board.model.board.console.line("unprovisioned");
    let flash = std::fs::read(board.deployment.path("board-1.flash")).expect("read");
    let state = &flash[0xF_6000..0x10_0000];
    assert!(state.iter().all(|&byte| byte == 0xFF), "the state's pages are erased");
}

#[test]
fn half_an_hour_alone_is_quiet() {
    let deployment = TestDeployment::new();
    let setup = ModelSetup::new(26, &deployment.path("flash"));
    let mut model = Model::start(&deployment.log(NAME), &edge(), &setup);
    model.board.console.line("unprovisioned");
    model.order("speed 0");
    eventually("half an hour", || (model.seconds() > 1800.0).then_some(()));
    model.order("speed 1");
    assert_eq!(model.status("resets"), 2, "no reset but the first start's");
    model.board.console.type_line("status");
    model.board.console.line("state ");
}
