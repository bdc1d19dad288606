//! Formats events of envelopes that came over the group's gossip, as a line.

use quiver_envelope::EnvelopeEvent;
use quiver_service::terminal::PrintedMessage;
use serde_json::json;

/// Stands where a channel's name stands in group messages.
const CHANNEL: &str = "envelope";

/// A line about an event, for people or as JSON. Nothing about what was sent.
#[must_use]
pub fn format(group: &str, event: &EnvelopeEvent, as_json: bool) -> Option<String> {
    let (session, opened) = match event {
        EnvelopeEvent::Opened { session, number, begun, data, author } => {
            (session, Some((number, begun, data, author.as_ref().map(|author| author.name.as_str()))))
        }
        EnvelopeEvent::NotSatisfied { session } => (session, None),
        // A service takes all there are.
        EnvelopeEvent::TooLarge { .. } | EnvelopeEvent::Sent { .. } | EnvelopeEvent::NotSent(_) => {
            return None;
        }
    };
    let session = hex::encode(session.get(..8).unwrap_or_default());
    let Some((number, begun, data, author)) = opened else {
        return Some(match as_json {
            true => json!({"event": "envelope", "opened": false, "session": session}).to_string(),
            false => format!("[{group}/{CHANNEL}] policy not satisfied"),
        });
    };
    let (from, signed) = (author.unwrap_or("somebody"), author.is_some());
    let message = PrintedMessage { group, channel: CHANNEL, from, signed, data };
    if !as_json {
        return Some(message.line(false));
    }
    let text = std::str::from_utf8(data).ok();
    let line = json!({
        "event": "envelope", "opened": true, "session": session, "number": number, "begun": begun, "group": group,
        "from": author, "signed": signed, "hex": hex::encode(data), "text": text,
    });
    Some(line.to_string())
}

#[cfg(test)]
mod tests {
    use quiver_ainq::{Name, Role};
    use quiver_envelope::Author;

    use super::*;

    fn opened(author: Option<&str>) -> EnvelopeEvent {
        let author = author.map(|name| Author { name: Name::new(name).expect("name"), role: Role::Edge });
        EnvelopeEvent::Opened {
            session: [0xab; 32],
            number: 3,
            begun: 1_800_000_000,
            data: b"go".to_vec().into(),
            author,
        }
    }

    #[test]
    fn who_signed_is_shown_and_that_nobody_did() {
        let line = |author| format("alpha", &opened(author), false).expect("shown");
        assert_eq!(line(Some("edge-1")), "[alpha/envelope] edge-1 (signed): go");
        assert_eq!(line(None), "[alpha/envelope] somebody (unauthenticated source): go");
    }

    #[test]
    fn of_what_does_not_fit_nothing_is_said_but_that() {
        let event = EnvelopeEvent::NotSatisfied { session: [0xab; 32] };
        assert_eq!(format("alpha", &event, false).as_deref(), Some("[alpha/envelope] policy not satisfied"));
        let line: serde_json::Value =
            serde_json::from_str(&format("alpha", &event, true).expect("shown")).expect("json");
        assert_eq!(line, json!({"event": "envelope", "opened": false, "session": "abababababababab"}));
    }

    #[test]
    fn scripts_get_everything_that_opened() {
        let line: serde_json::Value =
            serde_json::from_str(&format("alpha", &opened(None), true).expect("shown")).expect("json");
        assert_eq!(
            (&line["text"], &line["signed"], &line["number"], &line["begun"]),
            (&"go".into(), &false.into(), &3.into(), &1_800_000_000.into())
        );
        assert_eq!(line["from"], serde_json::Value::Null);
    }
}
