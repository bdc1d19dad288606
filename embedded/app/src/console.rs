//! Console: lines that come in, what they ask for, and text that goes out.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Arguments, Display, Write};

use quiver_ainq::Name;
use quiver_crypto::{Hex, Zeroizing};
use quiver_group::edge::MAX_PROVISIONING_LEN;

/// The longest line in bytes: one that provisions.
pub(crate) const MAX_LINE: usize = 2 * MAX_PROVISIONING_LEN + 16;
/// Bytes of text that may wait for the console.
const MAX_OUTPUT: usize = 8 * 1024;

/// Help for the console commands.
pub(crate) const HELP: &str = "\
help                 this
status               identity, group, key, counters, memory
provision <hex>      set this board up, with what `edge provision` printed
join <group>         join this group in place of the present one
leave                leave the group
send <text>          say something to the group, signed
wipe                 erase all keys and settings
reset                start anew
bench ...            measure; `bench` alone says what
";

/// Gathers bytes into lines. Holds one line, erased when done, in memory allocated once.
pub(crate) struct LineReader {
    line: Zeroizing<Vec<u8>>,
    overflow: bool,
}

/// A line is too long and was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl LineReader {
    pub(crate) fn new() -> Self {
        Self { line: Zeroizing::new(Vec::with_capacity(MAX_LINE)), overflow: false }
    }

    /// Takes a byte. Gives the line that it ends, unless that is empty.
    pub(crate) fn push(&mut self, byte: u8) -> Option<Result<Zeroizing<Vec<u8>>, TooLong>> {
        match byte {
            b'\n' | b'\r' => {
                if core::mem::take(&mut self.overflow) {
                    return Some(Err(TooLong));
                }
                let line = core::mem::replace(&mut self.line, Zeroizing::new(Vec::new()));
                self.line = Zeroizing::new(Vec::with_capacity(MAX_LINE));
                (!line.trim_ascii().is_empty()).then_some(Ok(line))
            }
            0x08 | 0x7f => {
                self.line.pop();
                None
            }
            _ if self.overflow => None,
            byte if self.line.len() < MAX_LINE => {
                self.line.push(byte);
                None
            }
            _ => {
                use zeroize::Zeroize;
                self.line.zeroize();
                self.overflow = true;
                None
            }
        }
    }
}

/// Text that waits for the console. Never a secret.
#[derive(Debug, Default)]
pub(crate) struct ConsoleOutput {
    text: String,
}

impl ConsoleOutput {
    /// Prints one line, unless nobody reads the console and much waits there.
    pub(crate) fn print_line(&mut self, line: Arguments<'_>) {
        if self.text.len() < MAX_OUTPUT {
            // Writing to a string does not fail.
            let _ = writeln!(self.text, "{line}");
        }
    }

    /// Prints a text of several lines.
    pub(crate) fn print_text(&mut self, text: &str) {
        text.lines().for_each(|line| self.print_line(format_args!("{line}")));
    }

    /// Takes the text that waits.
    pub(crate) fn take(&mut self) -> String {
        core::mem::take(&mut self.text)
    }

    /// Writer of text that is not made of lines.
    pub(crate) fn writer(&mut self) -> &mut dyn Write {
        &mut self.text
    }
}

/// Shows bytes as text: printable ASCII but for the backslash as it is, all else as `\x` and two digits.
pub(crate) struct Escaped<'a>(pub(crate) &'a [u8]);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| match byte {
            b' '..=b'[' | b']'..=b'~' => f.write_char(char::from(*byte)),
            byte => write!(f, "\\x{}", Hex(&[*byte])),
        })
    }
}

/// Line from the console: a command's word, and its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConsoleLine<'a> {
    /// All of the line, without space around it.
    line: &'a str,
    /// The first word.
    pub(crate) word: &'a str,
    /// Everything behind the space after the first word; may be empty.
    pub(crate) rest: &'a str,
}

impl<'a> ConsoleLine<'a> {
    /// Splits a line.
    ///
    /// # Errors
    /// The reason, for the operator, if the line is not UTF-8.
    pub(crate) fn parse(line: &'a [u8]) -> Result<Self, &'static str> {
        let line = core::str::from_utf8(line).map_err(|_| "not text")?.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        Ok(Self { line, word, rest: rest.trim_start() })
    }

    /// Command that takes no arguments.
    ///
    /// # Errors
    /// The reason, for the operator, if there are arguments.
    pub(crate) fn alone<C>(&self, command: C) -> Result<C, &'static str> {
        if self.rest.is_empty() { Ok(command) } else { Err("this command takes nothing") }
    }

    /// The arguments of a command that takes some.
    ///
    /// # Errors
    /// The reason, for the operator, if there are none.
    pub(crate) const fn arguments(&self) -> Result<&'a str, &'static str> {
        if self.rest.is_empty() { Err("this command takes something") } else { Ok(self.rest) }
    }
}

/// A console command of every image. Parts have commands of their own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command<'a> {
    Help,
    Status,
    /// Hexadecimal.
    Provision(&'a str),
    Join(Name),
    Leave,
    Send(&'a str),
    Wipe,
    Reset,
    /// All of the line.
    Bench(&'a str),
}

impl<'a> Command<'a> {
    /// Reads a line; `None` if its word is not a command of every image.
    ///
    /// # Errors
    /// Description of the mistake for the operator, without repeating the line.
    pub(crate) fn read(line: &ConsoleLine<'a>) -> Result<Option<Self>, &'static str> {
        let command = match line.word {
            "help" => line.alone(Self::Help)?,
            "status" => line.alone(Self::Status)?,
            "leave" => line.alone(Self::Leave)?,
            "wipe" => line.alone(Self::Wipe)?,
            "reset" => line.alone(Self::Reset)?,
            "bench" => Self::Bench(line.line),
            "provision" => Self::Provision(line.arguments()?),
            "send" => Self::Send(line.arguments()?),
            "join" => Self::Join(Name::new(line.arguments()?).map_err(|_| "not a name")?),
            _ => return Ok(None),
        };
        Ok(Some(command))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    fn parse(line: &[u8]) -> Result<Command<'_>, &'static str> {
        Command::read(&ConsoleLine::parse(line)?)?.ok_or("no such command")
    }

    fn lines(bytes: &[u8]) -> Vec<Result<Vec<u8>, TooLong>> {
        let mut reader = LineReader::new();
        bytes
            .iter()
            .filter_map(|byte| reader.push(*byte))
            .map(|line| line.map(|line| line.to_vec()))
            .collect()
    }

    #[test]
    fn lines_end_with_either_character_and_backspace_takes_back() {
        let read = lines(b"status\r\n\n  \nsenf\x7fd\x08\x08\x08\x08\x08help\nhel");
        assert_eq!(read, [Ok(b"status".to_vec()), Ok(b"help".to_vec())]);
    }

    #[test]
    fn line_that_is_too_long_is_dropped_whole_and_the_next_one_is_read() {
        let mut bytes = alloc::vec![b'x'; MAX_LINE + 1];
        bytes.extend(b"status\nhelp\n");
        assert_eq!(lines(&bytes), [Err(TooLong), Ok(b"help".to_vec())]);
        let fits = [alloc::vec![b'x'; MAX_LINE], b"\n".to_vec()].concat();
        assert_eq!(lines(&fits), [Ok(alloc::vec![b'x'; MAX_LINE])]);
    }

    #[test]
    fn commands_are_read_strictly() {
        assert_eq!(parse(b" send  two  words "), Ok(Command::Send("two  words")));
        assert_eq!(parse(b"join alpha"), Ok(Command::Join(Name::new("alpha").unwrap())));
        assert_eq!(parse(b"bench sha 3"), Ok(Command::Bench("bench sha 3")));
        for wrong in [&b"wipe it"[..], b"send", b"join a/b", b"Status", b"\xff", b"wipex"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn text_is_shown_as_it_is_and_nothing_else_reaches_a_terminal() {
        assert_eq!(Escaped(b"it's \"five\" ~ [ok]").to_string(), "it's \"five\" ~ [ok]");
        assert_eq!(Escaped(b"a\\b\n\x1b[0m\xff\x7f").to_string(), "a\\x5cb\\x0a\\x1b[0m\\xff\\x7f");
        assert_eq!(Escaped(&[]).to_string(), "");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..9_000)) {
            for line in lines(&bytes).into_iter().flatten() {
                prop_assert!(line.len() <= MAX_LINE);
                let _ = parse(&line);
            }
        }
    }
}
