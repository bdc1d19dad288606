//! The supply fails in the middle of a write to flash, or sags.

use std::thread::sleep;
use std::time::Duration;

use quiver_emulation::model::POWER_LOST;

use crate::member_board::MemberBoard;

#[test]
fn board_comes_up_with_the_old_or_the_new_state_wherever_power_fails() {
    let mut board = MemberBoard::new(11);
    let before = board.model.status("flash-operations");
    board.follows_a_re_key();
    let writes = board.model.status("flash-operations") - before;
    assert!(writes > 30, "a re-key is stored: {writes}");
    // In the record's first words, within it, in its key's slot, and while the former key is cleared.
    for at in
        [1, 2, writes / 2, writes - 25, writes - 20, writes - 14, writes - 11, writes - 6, writes - 1, writes]
    {
        board.model.lose_power_at(at);
        board.deployment.ok("leader", &["rekey"]);
        assert_eq!(board.model.ended().code(), Some(POWER_LOST), "operation {at} of {writes}");
        board.start_again();
        board.comes_back("power");
    }
    board.exchanges_messages("after ten failures");
    assert_eq!(board.deployment.keys_issued(), 2, "nobody enrolled anew");
}

#[test]
fn power_that_fails_again_and_again_while_the_board_starts_costs_nothing() {
    let mut board = MemberBoard::new(12);
    let before = board.model.status("flash-operations");
    board.follows_a_re_key();
    let writes = board.model.status("flash-operations") - before;
    board.model.lose_power_at(writes - 5);
    board.deployment.ok("leader", &["rekey"]);
    assert_eq!(board.model.ended().code(), Some(POWER_LOST));
    // A write that was interrupted is cleared at the next start, and power fails in that, too.
    for at in 1..4 {
        board.setup.options = vec!["--power-loss-at-write".into(), at.to_string()];
        board.start_again();
        assert_eq!(board.model.ended().code(), Some(POWER_LOST), "operation {at} of a start");
    }
    board.setup.options.clear();
    board.start_again();
    board.comes_back("power");
    assert_eq!(board.deployment.keys_issued(), 2, "nobody enrolled anew");
}

#[test]
fn nothing_is_written_while_the_supply_is_low() {
    let mut board = MemberBoard::new(13);
    board.model.order("supply low");
    let before = board.model.status("flash-operations");
    board.deployment.ok("leader", &["rekey"]);
    sleep(Duration::from_secs(1));
    assert_eq!(board.model.status("flash-operations"), before, "no word and no page");
    board.model.order("supply good");
    board.follows_a_re_key();
    board.model.board.console.type_line("status");
    assert!(board.model.board.console.line("counters ").contains("supply_warnings="));
    assert!(board.model.status("flash-operations") > before, "the state is kept again");
    board.kill_and_start();
    board.comes_back("power");
}
