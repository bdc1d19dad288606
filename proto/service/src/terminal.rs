//! Writes results to standard output.

use std::io::{self, Write};
use std::net::SocketAddr;

use serde::Serialize;

/// Writes a line to standard output and flushes it, so that a pipe sees it at once. A reader that went away
/// (`| head`) is no error. Any other error says that it is of printing, because what the command does is done by then.
pub fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| unprinted(&error)),
    }
}

/// Says of an error of standard output that it is of printing.
pub fn unprinted(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot print the result: {error}"))
}

/// A count with its noun: `1 line`, `2 lines`.
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Writes a value to standard output as JSON for programs and people.
pub fn json(value: &(impl Serialize + ?Sized)) -> io::Result<()> {
    line(&serde_json::to_string_pretty(value)?)
}

/// First line of a service that listens at these addresses, if all of them are of this machine alone; `None`
/// if others can reach it.
pub fn not_reachable(listen: &[String]) -> Option<String> {
    let everywhere = |address: &String| {
        if let Ok(address) = address.parse::<SocketAddr>() {
            return address.ip().is_loopback().then(|| format!("0.0.0.0:{}", address.port()));
        }
        let rest = address.strip_prefix("/ip4/127.").and_then(|rest| rest.split_once('/'));
        let rest = rest.map(|(_, port)| port).or_else(|| address.strip_prefix("/ip6/::1/"));
        rest.map(|rest| format!("/ip4/0.0.0.0/{rest}"))
    };
    let everywhere = listen.iter().map(everywhere).collect::<Option<Vec<_>>>()?;
    let first = everywhere.first()?;
    Some(format!("only this machine can reach this service; for others to reach it, give --listen {first}"))
}

/// A group message as the services show it.
#[derive(Clone, Debug, Serialize)]
pub struct PrintedMessage<'a> {
    /// The group.
    pub group: &'a str,
    /// The application's channel.
    pub channel: &'a str,
    /// The sender: a name if signed, a slot otherwise.
    pub from: &'a str,
    /// True if the sender signed. If not, only "a member sent it" is certain.
    pub signed: bool,
    /// The content.
    #[serde(serialize_with = "as_hex", rename = "hex")]
    pub data: &'a [u8],
}

fn as_hex<S: serde::Serializer>(data: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&hex::encode(data))
}

impl PrintedMessage<'_> {
    /// A line: for people, or as JSON with the content as `hex` and, if it is text, as `text`.
    pub fn line(&self, json: bool) -> String {
        let text = std::str::from_utf8(self.data).ok();
        if json {
            let mut object = serde_json::json!(self);
            object["event"] = "message".into();
            object["text"] = text.into();
            return object.to_string();
        }
        // A sender to the group must not be able to drive our terminal: control characters are spelled out.
        let content = match text {
            Some(text) => text.chars().flat_map(spelled).collect(),
            None => format!("0x{}", hex::encode(self.data)),
        };
        let source = if self.signed { "signed" } else { "unauthenticated source" };
        format!("[{}/{}] {} ({source}): {content}", self.group, self.channel, self.from)
    }
}

/// A character as it may go to a terminal.
pub(crate) fn spelled(character: char) -> Vec<char> {
    let spelled = character.is_control() || turns_direction(character);
    if spelled { character.escape_default().collect() } else { vec![character] }
}

/// Characters that let a text be shown in another order than it is sent.
const fn turns_direction(character: char) -> bool {
    matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// Aligns rows in columns, for people. The first row is the heading.
pub fn table<const N: usize>(heading: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = heading.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut lines = vec![aligned(&heading.map(String::from), &widths)];
    lines.extend(rows.iter().map(|row| aligned(row, &widths)));
    lines.join("\n")
}

fn aligned(cells: &[String], widths: &[usize]) -> String {
    let padded: Vec<_> = cells.iter().zip(widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
    padded.join("  ").trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_cannot_drive_the_terminal() {
        let mut message = PrintedMessage {
            group: "alpha",
            channel: "chat",
            from: "edge-1",
            signed: true,
            data: b"hi\x1b[2J\n",
        };
        assert_eq!(message.line(false), "[alpha/chat] edge-1 (signed): hi\\u{1b}[2J\\n");
        let object: serde_json::Value = serde_json::from_str(&message.line(true)).expect("json");
        assert_eq!((&object["text"], &object["event"]), (&"hi\x1b[2J\n".into(), &"message".into()));
        message.data = "on\u{202e}ffo".as_bytes();
        assert!(message.line(false).ends_with("on\\u{202e}ffo"), "{}", message.line(false));
        message.data = &[0xff];
        assert!(message.line(false).ends_with("0xff"));
        let object: serde_json::Value = serde_json::from_str(&message.line(true)).expect("json");
        assert_eq!((&object["text"], &object["hex"]), (&serde_json::Value::Null, &"ff".into()));
    }

    #[test]
    fn service_on_loopback_alone_says_what_to_give() {
        let told =
            |listen: &[&str]| not_reachable(&listen.iter().map(|text| (*text).into()).collect::<Vec<_>>());
        let own = told(&["/ip4/127.0.0.1/udp/7001/quic-v1", "/ip6/::1/tcp/7001"]).expect("told");
        assert!(own.ends_with("--listen /ip4/0.0.0.0/udp/7001/quic-v1"), "{own}");
        assert_eq!(told(&["/ip4/127.0.0.1/tcp/7001", "/ip4/10.0.0.1/tcp/7001"]), None);
        assert_eq!(told(&["/ip4/0.0.0.0/tcp/7001"]), None);
        assert!(told(&["127.0.0.1:7001"]).expect("told").ends_with("--listen 0.0.0.0:7001"));
        assert_eq!(told(&["10.0.0.1:7001"]), None);
        assert_eq!(told(&[]), None);
    }

    #[test]
    fn one_is_no_plural() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "gate")), ["0 gates", "1 gate", "2 gates"]);
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["edge-1".to_string(), "up".to_string()], ["e".to_string(), "down".to_string()]];
        assert_eq!(table(["NAME", "STATE"], &rows), "NAME    STATE\nedge-1  up\ne       down");
    }
}
