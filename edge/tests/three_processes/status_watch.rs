//! `status --watch` of leader and edge: on a pseudo-terminal, and as a line for each change.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::Command;
use std::time::Duration;

use serialport::{SerialPort, TTYPort};

use quiver_ainq::Epoch;
use quiver_service_testing::{Process, TestDeployment, eventually};

use super::swarm::Swarm;

/// A terminal of 24 lines of 80 columns.
struct Terminal {
    /// End of the terminal at which a person would sit.
    far: TTYPort,
    /// Keeps the other end open when nobody else does.
    _near: TTYPort,
    path: String,
    seen: String,
}

impl Terminal {
    fn new() -> Self {
        let (mut far, near) = TTYPort::pair().expect("a pseudo-terminal");
        far.set_timeout(Duration::from_millis(20)).expect("timeout");
        let path = near.name().expect("its name");
        let terminal = Self { far, _near: near, path, seen: String::new() };
        terminal.stty(&["sane", "rows", "24", "cols", "80"]);
        terminal
    }

    fn stty(&self, args: &[&str]) -> String {
        let said = Command::new("stty").args(["-F", &self.path]).args(args).output().expect("stty");
        assert!(said.status.success(), "{said:?}");
        String::from_utf8(said.stdout).expect("text")
    }

    fn open(&self) -> File {
        OpenOptions::new().read(true).write(true).open(&self.path).expect("open")
    }

    /// Looks if this was written to it so far, blanks aside: where there are blanks already, none are
    /// written.
    fn shows(&mut self, part: &str) -> Option<()> {
        let mut bytes = [0; 4096];
        while let Ok(length) = self.far.read(&mut bytes) {
            self.seen.push_str(&String::from_utf8_lossy(&bytes[..length]));
        }
        let part: String = part.split_whitespace().collect();
        printed(&self.seen).contains(&part).then_some(())
    }
}

/// Terminal output without its control sequences (`ESC [ … letter`) and without blanks.
fn printed(written: &str) -> String {
    let mut parts = written.split("\x1b[");
    let first = parts.next().unwrap_or_default();
    let rest =
        parts.map(|part| part.split_once(|end: char| end.is_ascii_alphabetic()).map_or("", |(_, text)| text));
    std::iter::once(first).chain(rest).flat_map(str::split_whitespace).collect()
}

#[test]
fn wave_is_shown_live_and_q_puts_the_terminal_back() {
    let swarm = Swarm::new();
    let before = swarm.in_sync((0, 0));
    let mut terminal = Terminal::new();
    let usual = terminal.stty(&["-a"]);
    let mut command = swarm.bench.command("leader", &["status", "--watch", "--every", "100ms"]);
    command.stdin(terminal.open()).stdout(terminal.open());
    let watching = Process::launch(command, &swarm.bench.log("leader"));
    eventually("the wave is shown", || terminal.shows("2 of 2 acknowledged"));
    assert_ne!(terminal.stty(&["-a"]), usual);
    swarm.bench.ok("leader", &["rekey"]);
    let after = swarm.in_sync(before);
    // Usually what changed is drawn, which says little alone; on a screen of another size, all is.
    terminal.seen.clear();
    terminal.stty(&["rows", "25"]);
    let epoch = format!("{}, ", Epoch { term: after.0, counter: after.1 });
    eventually("the new epoch is shown", || terminal.shows(&epoch));
    terminal.far.write_all(b"q").expect("a key");
    assert_eq!(watching.wait().code(), Some(0));
    terminal.stty(&["rows", "24"]);
    assert_eq!(terminal.stty(&["-a"]), usual);
}

#[test]
fn watching_without_a_terminal_is_refused() {
    let swarm = TestDeployment::new();
    swarm.refused(
        "leader",
        &["status", "--watch"],
        2,
        &["needs a terminal", "standard input is not one", "--json"],
    );
}

#[test]
fn edge_is_shown_again_and_again_until_ctrl_c() {
    let swarm = Swarm::new();
    let before = swarm.in_sync((0, 0));
    let mut terminal = Terminal::new();
    let usual = terminal.stty(&["-a"]);
    let mut command =
        swarm.bench.command("edge", &["status", "-d", "edge-1-data", "--watch", "--every", "100ms"]);
    command.stdin(terminal.open()).stdout(terminal.open());
    let watching = Process::launch(command, &swarm.bench.log("edge"));
    eventually("the edge is shown", || terminal.shows("drone edge-1"));
    swarm.bench.ok("leader", &["rekey"]);
    let after = swarm.in_sync(before);
    let epoch = Epoch { term: after.0, counter: after.1 }.to_string();
    eventually("the new epoch is shown", || terminal.shows(&epoch));
    watching.signal("INT");
    assert_eq!(watching.wait().code(), Some(0));
    assert_eq!(terminal.stty(&["-a"]), usual);
}

#[test]
fn each_change_is_a_line_of_json() {
    let swarm = Swarm::new();
    let before = swarm.in_sync((0, 0));
    let watch = |program: &str, more: &[&str]| {
        let args = [&["status", "--watch", "--json", "--every", "100ms"][..], more].concat();
        Process::start(swarm.bench.command(program, &args), &swarm.bench.log(&format!("watch-{program}")))
    };
    let watching = [watch("edge", &["-d", "edge-1-data"]), watch("leader", &[])];
    let counter = |number: u64| format!("\"counter\":{number},");
    watching.iter().for_each(|watching| drop(watching.line(&counter(before.1))));
    swarm.bench.ok("leader", &["rekey"]);
    let after = swarm.in_sync(before);
    for watching in watching {
        let line = watching.line(&counter(after.1));
        let status: serde_json::Value = serde_json::from_str(&line).expect("one line is one status");
        assert_eq!(status["term"], after.0);
        watching.signal("INT");
        assert_eq!(watching.wait().code(), Some(0));
    }
    // A missing edge is reported first.
    swarm.bench.refused("edge", &["status", "-d", "nowhere", "--watch", "--json"], 4, &["nowhere"]);
}
