//! Lines from the console, and what they ask for.

use alloc::vec::Vec;

use quiver_ainq::Name;
use quiver_crypto::Zeroizing;
use quiver_group::edge::MAX_PROVISIONING_LEN;

/// The longest line in bytes: one that provisions.
pub(crate) const MAX_LINE: usize = 2 * MAX_PROVISIONING_LEN + 16;

/// Help for the console commands of an image with envelopes.
#[cfg(feature = "envelopes")]
pub(crate) const ENVELOPES: &str = "\
fetch                fetch attribute keys
attributes           what is held of attribute authorities
seal <authority> '<policy or attributes>' <text>
                     say something to whoever's attributes fit, signed
open <hex>           open an envelope that came as a file
";

/// Help for the console commands of an image with the group's datagrams.
#[cfg(feature = "datagrams")]
pub(crate) const DATAGRAMS: &str = "\
datagram <text>      say something to whoever of the group is in range, unsigned
datagram-signed <text>
                     the same, signed
";

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

/// A console command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command<'a> {
    Help,
    Status,
    /// Hexadecimal.
    Provision(&'a str),
    Join(Name),
    Leave,
    Send(&'a str),
    #[cfg(feature = "datagrams")]
    Datagram(&'a str),
    #[cfg(feature = "datagrams")]
    SignedDatagram(&'a str),
    #[cfg(feature = "envelopes")]
    Fetch,
    #[cfg(feature = "envelopes")]
    Attributes,
    #[cfg(feature = "envelopes")]
    Seal(Sealing<'a>),
    /// Hexadecimal.
    #[cfg(feature = "envelopes")]
    Open(&'a str),
    Wipe,
    Reset,
    /// All of the line.
    Bench(&'a str),
}

/// Arguments of `seal`: the recipients and the text.
#[cfg(feature = "envelopes")]
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sealing<'a> {
    /// The authority's name.
    pub(crate) authority: &'a str,
    /// A policy or a list of attributes.
    pub(crate) target: &'a str,
    pub(crate) text: &'a str,
}

#[cfg(feature = "envelopes")]
impl<'a> Sealing<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (authority, rest) = text.split_once(char::is_whitespace)?;
        let (target, text) = rest.trim_start().strip_prefix('\'')?.split_once('\'')?;
        let text = text.strip_prefix(char::is_whitespace)?.trim_start();
        (!text.is_empty()).then_some(Self { authority, target, text })
    }
}

impl<'a> Command<'a> {
    /// Parses a line; the error describes what is wrong without repeating the line.
    pub(crate) fn parse(line: &'a [u8]) -> Result<Self, &'static str> {
        let line = core::str::from_utf8(line).map_err(|_| "not text")?.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim_start();
        let alone = |command| if rest.is_empty() { Ok(command) } else { Err("this command takes nothing") };
        match word {
            "help" => alone(Self::Help),
            "status" => alone(Self::Status),
            "leave" => alone(Self::Leave),
            "wipe" => alone(Self::Wipe),
            "reset" => alone(Self::Reset),
            "bench" => Ok(Self::Bench(line)),
            #[cfg(feature = "envelopes")]
            "fetch" => alone(Self::Fetch),
            #[cfg(feature = "envelopes")]
            "attributes" => alone(Self::Attributes),
            #[cfg(feature = "envelopes")]
            "seal" => {
                Sealing::parse(rest).map(Self::Seal).ok_or("seal <authority> '<policy or attributes>' <text>")
            }
            #[cfg(feature = "envelopes")]
            "open" if !rest.is_empty() => Ok(Self::Open(rest)),
            #[cfg(feature = "datagrams")]
            "datagram" | "datagram-signed" if rest.is_empty() => Err("this command takes something"),
            #[cfg(feature = "datagrams")]
            "datagram" => Ok(Self::Datagram(rest)),
            #[cfg(feature = "datagrams")]
            "datagram-signed" => Ok(Self::SignedDatagram(rest)),
            "provision" | "send" | "join" if rest.is_empty() => Err("this command takes something"),
            "provision" => Ok(Self::Provision(rest)),
            "send" => Ok(Self::Send(rest)),
            "join" => Name::new(rest).map(Self::Join).map_err(|_| "not a name"),
            _ => Err("no such command; try help"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
        assert_eq!(Command::parse(b" send  two  words "), Ok(Command::Send("two  words")));
        assert_eq!(Command::parse(b"join alpha"), Ok(Command::Join(Name::new("alpha").unwrap())));
        assert_eq!(Command::parse(b"bench sha 3"), Ok(Command::Bench("bench sha 3")));
        for wrong in [&b"wipe it"[..], b"send", b"join a/b", b"Status", b"\xff", b"wipex"] {
            assert!(Command::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[cfg(feature = "datagrams")]
    #[test]
    fn datagrams_take_all_of_the_text() {
        assert_eq!(Command::parse(b"datagram  two  words "), Ok(Command::Datagram("two  words")));
        assert_eq!(Command::parse(b"datagram-signed go"), Ok(Command::SignedDatagram("go")));
        for wrong in [&b"datagram"[..], b"datagram-signed ", b"datagrams x", b"datagram-unsigned x"] {
            assert!(Command::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[cfg(feature = "envelopes")]
    #[test]
    fn what_is_sealed_names_authority_recipients_and_text() {
        let sealing = Sealing { authority: "orders", target: "scout and \"a b\"", text: "go  'north'" };
        assert_eq!(
            Command::parse(b"seal orders  'scout and \"a b\"' go  'north'"),
            Ok(Command::Seal(sealing))
        );
        for wrong in [
            &b"seal"[..],
            b"seal orders",
            b"seal orders scout go",
            b"seal orders 'scout",
            b"seal orders 'scout' ",
            b"open",
        ] {
            assert!(Command::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..9_000)) {
            for line in lines(&bytes).into_iter().flatten() {
                prop_assert!(line.len() <= MAX_LINE);
                let _ = Command::parse(&line);
            }
        }
    }
}
