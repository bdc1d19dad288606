//! The unmodified image of the nRF52840 in its model, with the real KGC and leader: from the first start to
//! the last write, with faults of supply, noise source, button and radio.

#[path = "nrf52840/bench.rs"]
mod bench;
#[path = "nrf52840/datagrams.rs"]
mod datagrams;
#[path = "nrf52840/envelopes.rs"]
mod envelopes;
#[path = "nrf52840/faults.rs"]
mod faults;
#[path = "nrf52840/member_board.rs"]
mod member_board;
#[path = "nrf52840/radio.rs"]
mod radio;
#[path = "nrf52840/soak.rs"]
mod soak;
#[path = "nrf52840/supply.rs"]
mod supply;

use self::member_board::MemberBoard;

#[test]
fn board_enrols_joins_follows_ten_re_keys_and_speaks() {
    let mut board = MemberBoard::new(1);
    for _ in 0..10 {
        board.follows_a_re_key();
    }
    board.exchanges_messages("in step after ten");
    assert_eq!(board.model.status("overruns"), 0, "no byte was lost");
    assert_eq!(board.deployment.keys_issued(), 2, "the leader's and the board's");
}

#[test]
fn board_goes_on_after_every_kind_of_reset() {
    let mut board = MemberBoard::new(2);
    board.model.order("reset");
    board.comes_back("pin");
    board.model.board.console.type_line("reset");
    board.comes_back("software");
    board.model.order("power-cycle");
    board.comes_back("power");
    board.kill_and_start();
    board.comes_back("power");
    board.exchanges_messages("after four starts");
    assert_eq!(board.deployment.keys_issued(), 2, "nobody enrolled anew");
}

#[test]
fn board_catches_up_when_its_cable_was_out() {
    let mut board = MemberBoard::new(3);
    board.model.order("unplug link");
    board.deployment.ok("leader", &["rekey"]);
    board.deployment.ok("leader", &["rekey"]);
    board.model.order("plug link");
    board.follows_a_re_key();
    board.exchanges_messages("after the cable was back");
}
