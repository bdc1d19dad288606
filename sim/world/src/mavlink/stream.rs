//! A stream of MAVLink frames, each of which says whose it is and which.

use std::time::Duration;

use quiver_mavlink::message::{Severity, status_text};
use quiver_mavlink::{Frame, Origin};

/// Bytes of a frame beside its text: header, severity, check sum.
const AROUND_TEXT: usize = 13;

/// The frames of one system.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    system: u32,
    every: Duration,
    /// Bytes of the frames, in turn.
    lens: Vec<usize>,
    /// Time at which the next frame is due.
    pub(super) next: Duration,
    /// Number of the frame.
    number: u32,
}

impl Stream {
    /// A stream whose first frame has this number. No number may come twice in a run.
    pub(super) fn new(
        (system, number): (u32, u32),
        every: Duration,
        lens: Vec<usize>,
        first: Duration,
    ) -> Self {
        Self { system, every, lens, next: first, number }
    }

    /// The number of the next frame.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// A frame that is due. Of those that were missed only one is made up for.
    pub(super) fn due(&mut self, now: Duration) -> Option<Vec<u8>> {
        if self.next > now {
            return None;
        }
        let missed = now.saturating_sub(self.next).as_nanos() / self.every.as_nanos().max(1);
        self.next += self.every * (1 + u32::try_from(missed).unwrap_or(u32::MAX));
        let len = self.lens.get(self.number as usize % self.lens.len().max(1)).copied().unwrap_or_default();
        let mut text = format!("{:02x}{:06x}", self.system, self.number);
        while text.len() + AROUND_TEXT < len {
            text.push('.');
        }
        let sequence = self.number.to_le_bytes()[0];
        self.number += 1;
        let origin = Origin { system: self.system, component: 1, sequence };
        Some(status_text(origin, Severity::Info, &text))
    }
}

/// The system that a frame says it is from in its text.
pub(super) fn system_in_text(frame: &[u8]) -> Option<u32> {
    let frame = Frame::parse(frame).ok()?;
    let text = std::str::from_utf8(frame.payload().get(1..3)?).ok()?;
    u32::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_the_lengths_asked_for_and_say_whose_they_are() {
        let mut stream =
            Stream::new((200, 0), Duration::from_millis(100), vec![21, 40, 63], Duration::from_secs(1));
        assert_eq!(stream.due(Duration::from_millis(999)), None);
        for len in [21, 40, 63, 21] {
            let frame = stream.due(stream.next).unwrap();
            assert_eq!(frame.len(), len);
            assert!(Frame::parse(&frame).unwrap().is_proven());
            assert_eq!(system_in_text(&frame), Some(200));
        }
        assert_eq!(stream.next, Duration::from_millis(1400));
        // Half a second late: one frame, not five.
        assert!(stream.due(Duration::from_millis(1900)).is_some());
        assert_eq!(stream.due(Duration::from_millis(1900)), None);
        assert_eq!(stream.next, Duration::from_secs(2));
    }
}
