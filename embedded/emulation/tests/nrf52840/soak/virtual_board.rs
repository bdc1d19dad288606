//! A board whose image runs in its model, and its network, on one virtual time: the chip's own.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use quiver_ainq::StrategyKind;
use quiver_emulation::lockstep::{ChipLine, LockstepChip};
use quiver_emulation::model::ModelSetup;
use quiver_emulation::wire::{End, FaultInjector};
use quiver_group::leader::LeaderTiming;
use quiver_test_network::TestNetwork;
use tempfile::TempDir;

use crate::member_board::{NAME, edge};

/// The least step of time.
const STEP: Duration = Duration::from_micros(100);

pub(crate) struct VirtualBoard {
    pub(crate) network: TestNetwork,
    pub(crate) chip: LockstepChip,
    /// Faults on the line to the gateway, both ways.
    pub(crate) faults: FaultInjector,
    pub(crate) now: Duration,
    /// Bytes for the gateway.
    heard: Vec<u8>,
    /// Lines of the console so far.
    pub(crate) said: Vec<String>,
    saying: Vec<u8>,
    _directory: TempDir,
}

impl VirtualBoard {
    /// A board as it comes from flashing, and its network.
    pub(crate) fn new(seed: u64) -> Self {
        Self::with(&edge(), seed)
    }

    /// The same with another image.
    pub(crate) fn with(image: &Path, seed: u64) -> Self {
        let directory = tempfile::tempdir().expect("tempdir");
        let setup = ModelSetup { seed, ..ModelSetup::default() };
        let chip = LockstepChip::start(&directory.path().join("model"), image, &setup);
        Self {
            network: TestNetwork::new(seed, StrategyKind::Tree, LeaderTiming::default(), Duration::ZERO),
            chip,
            faults: FaultInjector::new(seed),
            now: Duration::ZERO,
            heard: Vec::new(),
            said: Vec::new(),
            saying: Vec::new(),
            _directory: directory,
        }
    }

    /// The board is set up, enrols and joins a group with these many others.
    pub(crate) fn join(&mut self, companions: usize) {
        self.until("a board that listens", |board| board.heard_line("unprovisioned").is_some());
        let block = self.network.provisioning(NAME).encode();
        self.type_line(&format!("provision {}", hex::encode(&*block)));
        self.network.add_companions(companions);
        self.until("agreement", |board| board.agree() && board.network.companions_agree());
    }

    pub(crate) fn type_line(&mut self, text: &str) {
        self.chip.send(ChipLine::Console, format!("{text}\n").as_bytes());
    }

    /// Puts bytes on the line to the gateway, towards this end.
    pub(crate) fn inject(&mut self, towards: End, bytes: &[u8]) {
        match towards {
            End::Board => self.chip.send(ChipLine::Link, bytes),
            End::Gateway => self.heard.extend(bytes),
        }
    }

    /// Lets time pass until `end`.
    pub(crate) fn run_to(&mut self, end: Duration) {
        while self.now < end {
            self.step(end);
        }
    }

    /// Lets time pass until something holds; within a minute.
    pub(crate) fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let end = self.now + Duration::from_secs(60);
        while !holds(self) {
            let last = self.said.len().saturating_sub(20);
            assert!(
                self.now < end,
                "never at {:?}: {what}; it said last:\n{}",
                self.now,
                self.said[last..].join("\n")
            );
            self.step(end);
        }
    }

    /// Handles everything due in the network, and runs the chip until the next deadline or its next output.
    fn step(&mut self, end: Duration) {
        self.network.set_time(self.now);
        let mut heard = std::mem::take(&mut self.heard);
        while self.network.work(&heard) {
            heard.clear();
        }
        let arrives = self.faults.apply(&self.network.take_bytes());
        if !arrives.is_empty() {
            self.chip.send(ChipLine::Link, &arrives);
        }
        let next = self.network.due().unwrap_or(end).min(end).max(self.now + STEP);
        let sent = self.chip.until(next);
        self.now = sent.now;
        self.heard = self.faults.apply(&sent.link);
        self.listen(&sent.console);
    }

    fn listen(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte == b'\n' {
                let line = String::from_utf8_lossy(&self.saying).trim_end_matches('\r').into();
                self.said.push(line);
                self.saying.clear();
            } else {
                self.saying.push(byte);
            }
        }
    }

    /// The newest line that begins so.
    pub(crate) fn heard_line(&self, start: &str) -> Option<&str> {
        self.said.iter().rfind(|line| line.starts_with(start)).map(String::as_str)
    }

    /// Number of lines that begin so.
    pub(crate) fn count(&self, start: &str) -> usize {
        self.said.iter().filter(|line| line.starts_with(start)).count()
    }

    /// Returns true if the board holds the leader's key.
    pub(crate) fn agree(&self) -> bool {
        let held = self.heard_line("key ").map(|line| line.split(' ').collect::<Vec<_>>());
        let held = held.map(|words| format!("{} digest {}", words[1], words[5]));
        held.is_some() && held == self.network.epoch()
    }

    /// Epochs whose key the board ever held.
    pub(crate) fn keys(&self) -> BTreeSet<&str> {
        let keys = self.said.iter().filter_map(|line| line.strip_prefix("key "));
        keys.filter_map(|key| key.split(' ').next()).collect()
    }

    /// Returns true if board and gateway are in session, as both see it.
    pub(crate) fn in_session(&self) -> bool {
        self.network.gateway.has_session()
            && self.heard_line("gateway ").is_some_and(|line| line.starts_with("gateway connected"))
    }

    /// The board's answer to `status`.
    pub(crate) fn status(&mut self) -> Status {
        let before = self.said.len();
        self.type_line("status");
        self.until("a status", |board| board.said[before..].iter().any(|line| line == "end"));
        Status(self.said[before..].to_vec())
    }
}

/// A board's status.
pub(crate) struct Status(Vec<String>);

impl Status {
    /// The number behind these words.
    pub(crate) fn number(&self, words: &str) -> u64 {
        let rest = self.0.iter().find_map(|line| line.split_once(words)).map(|(_, rest)| rest);
        let digits = rest.map(|rest| rest.trim_start().split(|at: char| !at.is_ascii_digit()).next());
        let number = digits.flatten().and_then(|digits| digits.parse().ok());
        number.unwrap_or_else(|| panic!("no `{words}` in {:?}", self.0))
    }
}
