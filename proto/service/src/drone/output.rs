//! Prints a drone's service on standard output: events, messages, and events of features' parts.

use quiver_ainq::Name;
use quiver_group::MessageOrigin;
use serde_json::Value;

use super::feature::PartEvent;
use crate::line_output;
use crate::terminal::PrintedMessage;

/// Standard output of a service, for people or as JSON lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandardOutput {
    /// True if it is JSON.
    pub json: bool,
}

impl StandardOutput {
    /// Prints a line.
    pub fn line(self, line: &str) {
        line_output::print(line);
    }

    /// Prints an event for scripts. People find it in the log.
    pub fn event(self, event: &Value) {
        if self.json {
            self.line(&event.to_string());
        }
    }

    /// Prints a message of the group.
    pub fn message(self, group: &str, channel: &Name, data: &[u8], source: &MessageOrigin) {
        let (from, signed) = match source {
            MessageOrigin::Signed { name, .. } => (name.to_string(), true),
            MessageOrigin::Unauthenticated { slot } => (format!("slot {slot}"), false),
        };
        self.line(
            &PrintedMessage { group, channel: channel.as_str(), from: &from, signed, data }.line(self.json),
        );
    }

    /// Prints an event of a feature's part.
    pub fn part(self, group: &str, event: &dyn PartEvent) {
        if let Some(line) = event.line(group, self.json) {
            self.line(&line);
        }
    }
}
