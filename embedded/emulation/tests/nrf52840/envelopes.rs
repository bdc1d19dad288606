//! The image with envelopes: a key is fetched, and board and service open what the other seals. On the chip as in QEMU; there stands all that is
//! refused.

use std::fs;

use quiver_emulation::build::image_of;
use quiver_emulation::deployment::Deployment;
use quiver_emulation::patience::eventually;

use crate::stage::{NAME, Stage};

/// RAM that stays free of the heap, and of the stack.
const MARGIN: u64 = 16 * 1024;

fn figure(stage: &mut Stage, name: &str) -> u64 {
    stage.model.board.console.type_line("status");
    let line = stage.model.board.console.line(&format!("memory {name} "));
    line.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

#[test]
fn board_fetches_a_key_and_opens_and_seals_as_a_service_does() {
    let deployment = Deployment::new();
    fs::write(deployment.path("schema.toml"), "plain = [\"scout\", \"medic\"]\n").expect("write");
    let setup = ["abe", "setup", "--name", "orders", "--scheme", "gpsw06", "--schema", "schema.toml"];
    deployment.ok("kgc", &setup);
    let image = image_of("compact", "quiver-nrf52840", "edge", "envelopes");
    let mut stage = Stage::with(deployment, &image, 32);
    let medic = stage.deployment.edge("medic-1", &stage.kgc, &stage.leader);
    let _ = stage.deployment.served(2, (0, 0));
    for drone in [NAME, "medic-1"] {
        stage.deployment.grant(&stage.kgc, drone, &["--authority", "orders", "--policy", "scout"]);
    }
    stage.deployment.ok("edge", &["abe", "fetch", "-d", "medic-1-data"]);
    // At most one fetch at a time, and the board begins one by itself.
    let console = &mut stage.model.board.console;
    eventually("the board has its key", || {
        console.type_line("fetch");
        let held = |line: &str| {
            let answered =
                line.starts_with("fetched") || line.starts_with("unfetched") || line.starts_with("error");
            answered
                .then_some(false)
                .or_else(|| line.starts_with("attributes orders gpsw06 scout").then_some(true))
        };
        console.line_that("an answer", held).then_some(())
    });
    let send = ["envelope", "send", "-d", "medic-1-data", "--attributes", "scout", "go north"];
    stage.deployment.ok("edge", &send);
    let heard = stage.model.board.console.line("go north");
    assert_eq!(heard, "envelope medic-1 go north");
    stage.model.board.console.type_line("seal orders 'scout' the north is clear");
    stage.model.board.console.line("sealed ");
    let line = medic.line("the north is clear");
    assert!(line.contains("\"from\":\"board-1\"") && line.contains("\"signed\":true"), "{line}");
    for what in ["heap", "stack"] {
        let (peak, size) =
            (figure(&mut stage, &format!("{what}-peak")), figure(&mut stage, &format!("{what}-size")));
        assert!(peak + MARGIN <= size, "{what}: {peak} of {size} bytes");
    }
    assert_eq!(stage.model.status("resets"), 2, "no reset but the first start's");
}
