//! The unmodified image of the nRF52840 in its model, with the real KGC and leader: what a board does from its first start to its last
//! write, whatever happens to its supply, its noise, its button and its radio.

#[path = "nrf52840/air.rs"]
mod air;
#[path = "nrf52840/bench.rs"]
mod bench;
#[path = "nrf52840/envelopes.rs"]
mod envelopes;
#[path = "nrf52840/soak.rs"]
mod soak;
#[path = "nrf52840/stage.rs"]
mod stage;
#[path = "nrf52840/supply.rs"]
mod supply;
#[path = "nrf52840/trouble.rs"]
mod trouble;

use self::stage::Stage;

#[test]
fn board_enrols_joins_follows_ten_re_keys_and_speaks() {
    let mut stage = Stage::new(1);
    for _ in 0..10 {
        stage.follows_a_re_key();
    }
    stage.speaks_both_ways("in step after ten");
    assert_eq!(stage.model.status("overruns"), 0, "no byte was lost");
    assert_eq!(stage.deployment.keys_issued(), 2, "the leader's and the board's");
}

#[test]
fn board_goes_on_after_every_kind_of_reset() {
    let mut stage = Stage::new(2);
    stage.model.order("reset");
    stage.comes_back("pin");
    stage.model.board.console.type_line("reset");
    stage.comes_back("software");
    stage.model.order("power-cycle");
    stage.comes_back("power");
    stage.kill_and_start();
    stage.comes_back("power");
    stage.speaks_both_ways("after four starts");
    assert_eq!(stage.deployment.keys_issued(), 2, "nobody enrolled anew");
}

#[test]
fn board_catches_up_when_its_cable_was_out() {
    let mut stage = Stage::new(3);
    stage.model.order("unplug link");
    stage.deployment.ok("leader", &["rekey"]);
    stage.deployment.ok("leader", &["rekey"]);
    stage.model.order("plug link");
    stage.follows_a_re_key();
    stage.speaks_both_ways("after the cable was back");
}
