//! The image with envelopes: a key is fetched, and board and service open what the other seals. The refusals
//! are tested in QEMU.

use std::fs;

use quiver_emulation::build::image;
use quiver_emulation::deployment::start_edge;
use quiver_service_testing::TestDeployment;
use quiver_service_testing::eventually;

use crate::member_board::{MemberBoard, NAME};

/// RAM that stays free of the heap, and of the stack.
const MARGIN: u64 = 16 * 1024;

fn figure(board: &mut MemberBoard, name: &str) -> u64 {
    board.model.board.console.type_line("status");
    let line = board.model.board.console.line(&format!("memory {name} "));
    line.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

#[test]
fn board_fetches_a_key_and_opens_and_seals_as_a_service_does() {
    let deployment = TestDeployment::new();
    fs::write(deployment.path("schema.toml"), "plain = [\"scout\", \"medic\"]\n").expect("write");
    let setup = ["abe", "setup", "--name", "orders", "--scheme", "gpsw06", "--schema", "schema.toml"];
    deployment.ok("kgc", &setup);
    let image = image("quiver-nrf52840", "edge", "envelopes");
    let mut board = MemberBoard::with(deployment, &image, 32);
    let medic = start_edge(&board.deployment, "medic-1", &board.kgc, &board.leader);
    let _ = board.deployment.served(2, (0, 0));
    for drone in [NAME, "medic-1"] {
        board.deployment.grant(&board.kgc, drone, &["--authority", "orders", "--policy", "scout"]);
    }
    board.deployment.ok("edge", &["abe", "fetch", "-d", "medic-1-data"]);
    // At most one fetch at a time, and the board begins one by itself.
    let console = &mut board.model.board.console;
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
    board.deployment.ok("edge", &send);
    let heard = board.model.board.console.line("go north");
    assert_eq!(heard, "envelope medic-1 go north");
    board.model.board.console.type_line("seal orders 'scout' the north is clear");
    board.model.board.console.line("sealed ");
    let line = medic.line("the north is clear");
    assert!(line.contains("\"from\":\"board-1\"") && line.contains("\"signed\":true"), "{line}");
    for what in ["heap", "stack"] {
        let (peak, size) =
            (figure(&mut board, &format!("{what}-peak")), figure(&mut board, &format!("{what}-size")));
        assert!(peak + MARGIN <= size, "{what}: {peak} of {size} bytes");
    }
    assert_eq!(board.model.status("resets"), 2, "no reset but the first start's");
}
