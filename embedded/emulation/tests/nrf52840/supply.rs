//! The supply fails in the middle of a write to flash, or sags.

use std::thread::sleep;
use std::time::Duration;

use quiver_emulation::model::POWER_LOST;

use crate::stage::Stage;

#[test]
fn board_comes_up_with_the_old_or_the_new_state_wherever_power_fails() {
    let mut stage = Stage::new(11);
    let before = stage.model.status("flash-operations");
    stage.follows_a_re_key();
    let writes = stage.model.status("flash-operations") - before;
    assert!(writes > 30, "a re-key is stored: {writes}");
    // In the record's first words, within it, in its key's slot, and while the former key is cleared.
    for at in
        [1, 2, writes / 2, writes - 25, writes - 20, writes - 14, writes - 11, writes - 6, writes - 1, writes]
    {
        stage.model.lose_power_at(at);
        stage.deployment.ok("leader", &["rekey"]);
        assert_eq!(stage.model.ended().code(), Some(POWER_LOST), "operation {at} of {writes}");
        stage.start_again();
        stage.comes_back("power");
    }
    stage.speaks_both_ways("after ten failures");
    assert_eq!(stage.deployment.keys_issued(), 2, "nobody enrolled anew");
}

#[test]
fn power_that_fails_again_and_again_while_the_board_starts_costs_nothing() {
    let mut stage = Stage::new(12);
    let before = stage.model.status("flash-operations");
    stage.follows_a_re_key();
    let writes = stage.model.status("flash-operations") - before;
    stage.model.lose_power_at(writes - 5);
    stage.deployment.ok("leader", &["rekey"]);
    assert_eq!(stage.model.ended().code(), Some(POWER_LOST));
    // What was left half done is cleared at the next start, and power fails in that, too.
    for at in 1..4 {
        stage.setup.options = vec!["--power-loss-at-write".into(), at.to_string()];
        stage.start_again();
        assert_eq!(stage.model.ended().code(), Some(POWER_LOST), "operation {at} of a start");
    }
    stage.setup.options.clear();
    stage.start_again();
    stage.comes_back("power");
    assert_eq!(stage.deployment.keys_issued(), 2, "nobody enrolled anew");
}

#[test]
fn nothing_is_written_while_the_supply_is_low() {
    let mut stage = Stage::new(13);
    stage.model.order("supply low");
    let before = stage.model.status("flash-operations");
    stage.deployment.ok("leader", &["rekey"]);
    sleep(Duration::from_secs(1));
    assert_eq!(stage.model.status("flash-operations"), before, "no word and no page");
    stage.model.order("supply good");
    stage.follows_a_re_key();
    stage.model.board.console.type_line("status");
    assert!(stage.model.board.console.line("counters ").contains("supply_warnings="));
    assert!(stage.model.status("flash-operations") > before, "the state is kept again");
    stage.kill_and_start();
    stage.comes_back("power");
}
