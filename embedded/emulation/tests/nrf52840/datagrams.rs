//! The image with the group's datagrams, among members that exchange them with it: across its restart, a new
//! key and an eviction. On one virtual time, without services.

use std::path::PathBuf;

use quiver_emulation::build::image;
use quiver_group::LeaderCommand;
use quiver_test_network::name;

use crate::member_board::NAME;
use crate::soak::virtual_board::VirtualBoard;

/// RAM that stays free of the heap, and of the stack.
const MARGIN: u64 = 16 * 1024;

/// The image of a drone with datagrams and coded broadcasts, for a development kit.
pub(crate) fn by_radio() -> PathBuf {
    image("quiver-nrf52840", "edge", "broadcasts,datagrams")
}

/// The board says something signed, and the first companion receives it.
fn board_says(board: &mut VirtualBoard, text: &str) {
    board.type_line(&format!("datagram-signed {text}"));
    let expected = (NAME.to_string(), text.to_string());
    board.until("the board's datagram", |board| board.network.datagrams_received(0).contains(&expected));
}

/// The first companion says something, signed or not, and the board prints it.
fn member_says(board: &mut VirtualBoard, text: &str, sign: bool) {
    assert!(board.network.send_datagram(0, text, sign));
    board.until("the member's datagram", |board| {
        board.heard_line("datagram ").is_some_and(|line| line.ends_with(&format!(" {text}")))
    });
}

fn rekey(board: &mut VirtualBoard, command: LeaderCommand) {
    let before = board.network.epoch();
    board.network.lead(command);
    board.until("another key", |board| board.network.epoch() != before && board.agree());
}

#[test]
fn image_exchanges_datagrams_across_a_restart_a_new_key_and_an_eviction() {
    let mut board = VirtualBoard::with(&by_radio(), 7);
    board.join(2);
    for companion in 0..2 {
        board.network.listen(companion);
    }
    board_says(&mut board, "at first");
    member_says(&mut board, "go north", true);
    member_says(&mut board, "telemetry", false);

    let starts = board.count("start board ");
    board.type_line("reset");
    board.until("another start", |board| board.count("start board ") > starts);
    let keys = board.count("key ");
    board.until("its key", |board| board.count("key ") > keys && board.agree());
    board_says(&mut board, "after a restart");
    member_says(&mut board, "welcome back", true);

    rekey(&mut board, LeaderCommand::Rekey);
    board_says(&mut board, "after a key");
    member_says(&mut board, "go south", true);

    board.network.capture(1);
    rekey(&mut board, LeaderCommand::Evict(name("companion-1")));
    let heard = board.network.datagrams_received(1).len();
    assert!(board.network.send_datagram(1, "listen to me", true), "it has its former key");
    board_says(&mut board, "among us");
    member_says(&mut board, "we go on", true);
    assert_eq!((board.count("datagram companion-1"), board.network.datagrams_received(1).len()), (0, heard));

    let status = board.status();
    assert!(status.number(" old_epoch=") > 0, "the evicted member's");
    // §20.8: a command that left just before a key is sealed again.
    let again = status.number(" sealed_again=");
    assert_eq!(status.number(" sent_payloads="), 3 + again, "since its restart");
    for what in ["heap", "stack"] {
        let [peak, size] = ["peak", "size"].map(|figure| status.number(&format!("memory {what}-{figure} ")));
        assert!(peak + MARGIN <= size, "{what}: {peak} of {size} bytes");
    }
    assert_eq!(board.chip.control.status("overruns"), 0, "no byte was lost");
}
