//! The bench shell on the console of `edge`, as it is on a board: microseconds by the board's own clock.

use quiver_bench::transcript::{self, BenchmarkOutcome};
use quiver_emulation::build::image;
use quiver_emulation::model::{Model, ModelSetup};
use quiver_service_testing::TestDeployment;

use crate::member_board::NAME;

/// The board's output for a line, up to that of the next.
fn answer(model: &mut Model, line: &str) -> String {
    let before = model.board.console.said().len();
    model.board.console.type_line(line);
    // The console does one thing after the other.
    model.board.console.type_line("status");
    model.board.console.line("counters ");
    model.board.console.said()[before..].join("\n")
}

fn outcomes(model: &mut Model, line: &str) -> Vec<BenchmarkOutcome> {
    let answer = answer(model, line);
    transcript::parse(&answer).unwrap_or_else(|error| panic!("{error}\n{answer}"))
}

#[test]
fn board_measures_ciphers_hashes_and_ainq_and_goes_on() {
    let image = image("quiver-nrf52840", "edge", "bench");
    let deployment = TestDeployment::new();
    let setup = ModelSetup::new(31, &deployment.path("flash"));
    let mut model = Model::start(&deployment.log(NAME), &image, &setup);
    model.board.console.line("unprovisioned");
    let mut all = Vec::new();
    for line in
        ["bench aes-ecb 3 4", "bench aes-cbc 3 4", "bench sha 3 256", "bench aead 3 256", "bench ainq 1"]
    {
        let found = outcomes(&mut model, line);
        assert!(!found.is_empty(), "{line}");
        all.extend(found);
    }
    assert!(all.iter().filter(|outcome| outcome.benchmark.starts_with("ainq ")).count() >= 17, "{all:?}");
    for outcome in &all {
        assert_eq!((&*outcome.board, &*outcome.mcu), ("nrf52840dk", "nRF52840"));
        assert_eq!(outcome.instructions, None, "a board does not count them: {outcome:?}");
        assert!(outcome.minimum <= outcome.average && outcome.average <= outcome.maximum, "{outcome:?}");
    }
    // The first of what takes long: an X25519 of some 660,000 instructions is no more than 25 ms and no less
    // than 10.
    let secret = all.iter().find(|outcome| outcome.benchmark == "ainq secret").expect("it is among them");
    assert!((10_000.0..25_000.0).contains(&secret.average), "{secret:?}");
    for (wrong, said) in [
        ("bench", "usage"),
        ("bench nonsense 3", "usage"),
        ("bench sha", "usage"),
        ("bench sha 0", "usage"),
        ("bench sha 3 99999999999999999999", "usage"),
        ("bench pairing 1", "not in this image"),
    ] {
        let answer = answer(&mut model, wrong).to_lowercase();
        assert!(answer.contains(said), "{wrong}: {answer}");
    }
    assert_eq!(model.status("resets"), 2, "the watchdog was fed: no reset but the first start's");
}
