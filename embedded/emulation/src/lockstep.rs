//! Lockstep with the nRF52840 model: its time passes only as far as the test lets it. So a test with a
//! virtual time of its own runs in the chip's, idle time costs nothing, and every run is the same, however
//! busy the host is.

use std::path::Path;
use std::time::Duration;

use quiver_service_testing::Process;

use crate::board::{accept, listener, port};
use crate::control::ControlPort;
use crate::model::{ModelSetup, chip, command};

/// A chip in lockstep with its test.
#[derive(Debug)]
pub struct LockstepChip {
    /// The model's control port, for everything else that can happen to a chip: see
    /// [`command`](ControlPort::command).
    pub control: ControlPort,
    /// Ended with the chip.
    emulator: Process,
}

/// One of the chip's serial lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChipLine {
    /// The line to the gateway.
    Link,
    /// The console.
    Console,
}

/// Output of a step of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepOutput {
    /// The time since the chip's power came, which is where time has stopped.
    pub now: Duration,
    /// Bytes that the chip sent on its link.
    pub link: Vec<u8>,
    /// Bytes that it wrote to its console.
    pub console: Vec<u8>,
}

impl LockstepChip {
    /// Starts the model with an image; no time passes yet. Its output about itself goes to `log` with the
    /// endings `out` and `err`.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(log: &Path, image: &Path, setup: &ModelSetup) -> Self {
        let (control, mut command) = (listener(), command());
        command.args(chip(image, setup, port(&control))).arg("--lockstep");
        let emulator = Process::start(command, log);
        Self { control: ControlPort::new(accept(&control, &emulator)), emulator }
    }

    /// Lets time pass until `at`, or until the chip has sent something. A few milliseconds more if the chip
    /// cannot be stopped there, as in the middle of an operation of its flash.
    ///
    /// # Panics
    /// If the model has ended, as it does when the firmware does what the hardware forbids.
    pub fn until(&mut self, at: Duration) -> StepOutput {
        assert!(self.emulator.is_running(), "{}", self.emulator.story());
        let answer = self.control.command(&format!("until {}", at.as_micros()));
        let words: Vec<_> = answer.split(' ').collect();
        let &["until", now, "link", link, "console", console] = &*words else { panic!("{answer}") };
        let now = Duration::from_micros(now.parse().expect("microseconds"));
        StepOutput { now, link: bytes(link), console: bytes(console) }
    }

    /// Puts bytes onto a line to the chip, where they arrive at the line's speed.
    ///
    /// # Panics
    /// If the model has ended.
    pub fn send(&mut self, line: ChipLine, bytes: &[u8]) {
        let name = match line {
            ChipLine::Link => "link",
            ChipLine::Console => "console",
        };
        self.control.command(&format!("say {name} {}", hex::encode(bytes)));
    }
}

fn bytes(text: &str) -> Vec<u8> {
    if text == "-" { Vec::new() } else { hex::decode(text).expect("hexadecimal") }
}
