//! Corrections for GPS that a program sends several times: the group is sent them once.
//!
//! `GPS_RTCM_DATA` names no receiver, and one datagram reaches every member. Some ground stations send it once for each
//! vehicle all the same, because they know a link for each. The copies differ in their frames' sequence numbers alone.

use std::collections::VecDeque;
use std::time::Duration;

use quiver_mavlink::Frame;

/// The message.
const GPS_RTCM_DATA: u32 = 233;
/// Time within which equal corrections are one. They carry a number of 5 bits, so that later ones that are equal by
/// chance are rare, and are of another second.
const WITHIN: Duration = Duration::from_millis(500);
/// Corrections that are remembered: more than a base sends within that time.
const REMEMBERED: usize = 64;

/// Corrections that were sent lately.
#[derive(Debug, Default)]
pub(super) struct Corrections(VecDeque<(Duration, Vec<u8>)>);

impl Corrections {
    /// Tells whether the frame repeats corrections that were sent just now; if not, remembers it.
    pub(super) fn is_repeated(&mut self, now: Duration, frame: Frame<'_>) -> bool {
        // Other messages may well be meant twice.
        if frame.message_id() != GPS_RTCM_DATA || !frame.is_proven() {
            return false;
        }
        while self.0.front().is_some_and(|(at, _)| now.saturating_sub(*at) >= WITHIN)
            || self.0.len() > REMEMBERED
        {
            self.0.pop_front();
        }
        // Compared by their payload: sequence number and check sum differ.
        if self.0.iter().any(|(_, payload)| payload == frame.payload()) {
            return true;
        }
        self.0.push_back((now, frame.payload().to_vec()));
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of pymavlink: `gps_rtcm_data_encode(flags=8, len=4, data=b"RTCM")`, with this sequence number.
    fn frame(sequence: u8) -> Vec<u8> {
        let frames: [&[u8]; 2] = [
            &[
                0xfd, 0x06, 0x00, 0x00, 0x00, 0xff, 0xbe, 0xe9, 0x00, 0x00, 0x08, 0x04, 0x52, 0x54, 0x43,
                0x4d, 0x43, 0x77,
            ],
            &[
                0xfd, 0x06, 0x00, 0x00, 0x01, 0xff, 0xbe, 0xe9, 0x00, 0x00, 0x08, 0x04, 0x52, 0x54, 0x43,
                0x4d, 0xee, 0x72,
            ],
        ];
        frames[usize::from(sequence)].to_vec()
    }

    fn is_repeated(corrections: &mut Corrections, now: u64, bytes: &[u8]) -> bool {
        corrections.is_repeated(Duration::from_millis(now), Frame::parse(bytes).unwrap())
    }

    #[test]
    fn copies_with_other_sequence_numbers_are_found_for_a_while() {
        let mut corrections = Corrections::default();
        assert!(!is_repeated(&mut corrections, 0, &frame(0)));
        assert!(is_repeated(&mut corrections, 10, &frame(1)));
        assert!(is_repeated(&mut corrections, 499, &frame(0)));
        assert!(!is_repeated(&mut corrections, 500, &frame(1)));
        // A damaged one is no copy.
        let mut damaged = frame(0);
        damaged[12] ^= 1;
        assert!(!is_repeated(&mut corrections, 501, &damaged));
    }
}
