//! Commands of the gateway's console.

/// The longest line in bytes; a longer one is no command.
const MAX_LINE: usize = 32;

/// Answer to everything else.
pub const HELP: &str = "usage: status | network [4 hexadecimal digits]\r\n";

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Show all counters.
    Status,
    /// Show which network is served, or serve another.
    Network(Option<u16>),
    /// Not understood.
    Other,
}

impl Command {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let command = match (words.next()?, words.next(), words.next()) {
            ("status", None, None) => Self::Status,
            ("network", None, None) => Self::Network(None),
            ("network", Some(digits), None)
                if digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()) =>
            {
                u16::from_str_radix(digits, 16)
                    .ok()
                    .filter(|network| *network != 0xFFFF)
                    .map_or(Self::Other, |n| Self::Network(Some(n)))
            }
            _ => Self::Other,
        };
        Some(command)
    }
}

/// Collects a line.
#[derive(Debug)]
pub struct CommandLine {
    bytes: [u8; MAX_LINE],
    len: usize,
}

impl Default for CommandLine {
    fn default() -> Self {
        Self::new()
    }
}

impl CommandLine {
    /// Empty.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; MAX_LINE], len: 0 }
    }

    /// Takes one byte; the command, if it ended a line that is not empty.
    pub fn push(&mut self, byte: u8) -> Option<Command> {
        if !matches!(byte, b'\r' | b'\n') {
            if let Some(place) = self.bytes.get_mut(self.len) {
                *place = byte;
            }
            self.len = self.len.saturating_add(1);
            return None;
        }
        let len = core::mem::take(&mut self.len);
        match self.bytes.get(..len).map(core::str::from_utf8) {
            Some(Ok(line)) => Command::parse(line),
            _ => Some(Command::Other),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn commands(text: &[u8]) -> Vec<Command> {
        let mut line = CommandLine::new();
        text.iter().filter_map(|byte| line.push(*byte)).collect()
    }

    #[test]
    fn commands_are_understood_with_any_end_of_line() {
        let all = [Command::Status, Command::Network(None), Command::Network(Some(0x12AB))];
        for end in ["\r", "\n", "\r\n"] {
            let text = std::format!("status{end}{end}network{end} network  12aB {end}");
            assert_eq!(commands(text.as_bytes()), all);
        }
    }

    #[test]
    fn anything_else_is_answered_with_usage() {
        for text in [
            "stat",
            "status now",
            "network 1",
            "network 12345",
            "network +123",
            "network ffff",
            "network 1 2",
            "\u{7f}",
        ] {
            assert_eq!(commands(std::format!("{text}\n").as_bytes()), [Command::Other], "{text}");
        }
        assert_eq!(commands(&[0xFF, b'\n']), [Command::Other]);
    }

    #[test]
    fn endless_line_is_one_mistake_and_costs_no_memory() {
        let mut text = std::vec![b'x'; 100_000];
        text.extend(b"\nstatus\n");
        assert_eq!(commands(&text), [Command::Other, Command::Status]);
    }
}
