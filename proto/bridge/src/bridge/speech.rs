//! Tells local programs by `STATUSTEXT` why nothing passes, seldom enough to be read.

use std::time::Duration;

use quiver_mavlink::{Origin, message};
use tokio::time::Instant;

/// Time between two texts.
const BETWEEN: Duration = Duration::from_secs(5);

/// When what was told last.
#[derive(Debug, Default)]
pub(super) struct Speech {
    told: Option<Instant>,
    sequence: u8,
}

impl Speech {
    /// A `STATUSTEXT` frame with this text, if there was none lately.
    pub(super) fn tell(&mut self, now: Instant, system: u8, text: &str) -> Option<Vec<u8>> {
        if self.told.is_some_and(|told| now.duration_since(told) < BETWEEN) {
            return None;
        }
        self.told = Some(now);
        self.sequence = self.sequence.wrapping_add(1);
        let origin = Origin { system, component: message::BRIDGE_COMPONENT, sequence: self.sequence };
        Some(message::status_text(origin, message::Severity::Critical, text))
    }
}

/// What an operator is told about frames that do not pass for this reason; at most 50 bytes.
pub(super) fn trouble(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "no key" => "Quiver: no valid group key, nothing passes",
        "no system id" => "Quiver: the leader granted no system id",
        "other system" => "Quiver: not the system id that was granted",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fit_and_are_told_seldom() {
        let now = Instant::now();
        let mut speech = Speech::default();
        for reason in ["no key", "no system id", "other system"] {
            assert!(trouble(reason).unwrap().len() <= message::MAX_STATUS_TEXT);
        }
        assert_eq!(trouble("duplicate"), None);
        assert!(speech.tell(now, 1, "a").is_some());
        assert!(speech.tell(now + BETWEEN / 2, 1, "a").is_none());
        assert!(speech.tell(now + BETWEEN, 1, "a").is_some());
    }
}
