//! The scripts are what this version's KGC, leader and drones say.

#[path = "../recorder/recorder.rs"]
mod recorder;

use quiver_ainq::StrategyKind;
use quiver_bench::ainq::{Cue, FLAT, Script, TREE};

#[test]
fn scripts_are_recorded_again_byte_for_byte() {
    let hint = "record them again: cargo run -p quiver-bench --features std --example record";
    assert!(recorder::record(StrategyKind::Flat) == FLAT, "flat: {hint}");
    assert!(recorder::record(StrategyKind::Tree) == TREE, "tree: {hint}");
}

#[test]
fn script_has_one_welcome_three_rekeys_and_seven_removals() {
    for script in [FLAT, TREE] {
        let decoded = Script::decode(script).unwrap();
        let count = |cue| decoded.steps.iter().filter(|step| step.cue == cue).count();
        assert_eq!([Cue::Connected, Cue::Welcome, Cue::Rekey, Cue::Evict].map(count), [1, 1, 3, 7]);
        assert_eq!(decoded.encode(), script);
    }
}

#[test]
fn script_cut_short_or_with_more_is_refused() {
    for end in 0..FLAT.len() {
        assert!(Script::decode(&FLAT[..end]).is_err(), "{end}");
    }
    assert!(Script::decode(&[FLAT, &[0]].concat()).is_err());
}
