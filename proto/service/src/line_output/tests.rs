//! Lines that nobody takes: full disks, readers that went away or stopped.

use std::fs::File;
use std::io::{PipeReader, Read, pipe};

use super::*;

fn put(output: &LineOutput, to: impl AsFd, line: &str) -> Put {
    output.put(to.as_fd(), |lost| format!("{lost} {line}\n").into_bytes())
}

/// All that is in the pipe, once its writer is gone.
fn content(mut reader: PipeReader) -> String {
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("text");
    text
}

#[test]
fn reader_that_stopped_holds_nobody_back_and_finds_whole_lines_later() {
    let output = LineOutput::new();
    let (mut reader, writer) = pipe().expect("pipe");
    let long = "x".repeat(3 * PIECE);
    let written = (0..).take_while(|_| matches!(put(&output, &writer, &long), Put::Written)).count();
    assert!(written > 0, "a pipe has room");
    // Without a time limit: it would hang here.
    for _ in 0..1000 {
        assert!(matches!(put(&output, &writer, "lost"), Put::LostMore));
    }
    let mut taken = vec![0; 2 * PIECE];
    reader.read_exact(&mut taken).expect("read");
    assert!(matches!(put(&output, &writer, "again"), Put::WrittenAgain { lost: 1001 }));
    assert!(matches!(put(&output, &writer, "more"), Put::Written));
    drop(writer);
    let text = String::from_utf8(taken).expect("text") + &content(reader);
    let lines: Vec<_> = text.lines().collect();
    let (whole, cut) = (format!("0 {long}"), lines[written]);
    assert!(lines[..written].iter().all(|line| *line == whole));
    assert!(
        lines.len() == written + 2 || whole.starts_with(cut),
        "a piece of the first that was lost, or none"
    );
    assert_eq!(lines[lines.len() - 2..], ["1001 again", "0 more"]);
    assert!(lines.len() <= written + 3);
}

#[test]
fn full_disk_and_reader_that_went_away_lose_lines_and_say_so_once() {
    let output = LineOutput::new();
    let full = File::options().write(true).open("/dev/full").expect("open");
    assert!(
        matches!(put(&output, &full, "a"), Put::LostFirst(error) if error.kind() == ErrorKind::StorageFull)
    );
    assert!(matches!(put(&output, &full, "b"), Put::LostMore));
    let (reader, writer) = pipe().expect("pipe");
    assert!(matches!(put(&output, &writer, "c"), Put::WrittenAgain { lost: 2 }));
    drop(reader);
    assert!(
        matches!(put(&output, &writer, "d"), Put::LostFirst(error) if error.kind() == ErrorKind::BrokenPipe)
    );
}
