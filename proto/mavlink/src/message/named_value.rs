//! `NAMED_VALUE_INT`: a number under a name, which ground stations list and plot without knowing it.

use alloc::vec::Vec;

use crate::frame::{Origin, build};

/// The message's id.
pub const NAMED_VALUE_INT: u32 = 252;
const CRC_EXTRA: u8 = 44;
/// Bytes of the longest name.
const MAX_NAME: usize = 10;

/// A `NAMED_VALUE_INT` frame. `uptime`: milliseconds since the sender began. A name longer than 10 bytes is cut.
#[must_use]
pub fn named_value_int(origin: Origin, uptime: u32, name: &str, value: i32) -> Vec<u8> {
    let mut payload = [0; 8 + MAX_NAME];
    let bytes = uptime.to_le_bytes().into_iter().chain(value.to_le_bytes()).chain(name.bytes());
    for (to, from) in payload.iter_mut().zip(bytes) {
        *to = from;
    }
    build(NAMED_VALUE_INT, CRC_EXTRA, origin, &payload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Frame;

    #[test]
    fn frame_is_as_pymavlink_packs_it() {
        let origin = Origin { system: 7, component: 240, sequence: 3 };
        // MAVLink(None, 7, 240), seq 3: named_value_int_encode(0x01020304, b"QV_EPOCH", -2).pack()
        let frame = named_value_int(origin, 0x0102_0304, "QV_EPOCH", -2);
        let expected: &[u8] = &[
            0xfd, 0x10, 0x00, 0x00, 0x03, 0x07, 0xf0, 0xfc, 0x00, 0x00, 0x04, 0x03, 0x02, 0x01, 0xfe, 0xff,
            0xff, 0xff, 0x51, 0x56, 0x5f, 0x45, 0x50, 0x4f, 0x43, 0x48, 0xc0, 0x76,
        ];
        assert_eq!(frame, expected);
        assert!(Frame::parse(&frame).is_ok_and(|frame| frame.is_proven()));
        let long = named_value_int(origin, 1, "a name that is too long", 1);
        assert!(Frame::parse(&long).is_ok_and(|frame| frame.payload().ends_with(b"a name tha")));
    }
}
