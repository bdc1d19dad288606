//! Classes of messages, by what they make their receiver do. A message that is not on the list of those that
//! make nobody act is signed by its sender.

mod table;

use self::table::GROUPS;
use crate::{frame::Frame, message};

const FILE_TRANSFER_PROTOCOL: u32 = 110;
/// Offset of the opcode in `FILE_TRANSFER_PROTOCOL`: behind three bytes of target, a sequence number and a
/// session (<https://mavlink.io/en/services/ftp.html>).
const FTP_OPCODE: usize = 6;
/// Opcodes of answers: acknowledged, refused.
const FTP_ANSWERS: [u8; 2] = [128, 129];

const SERIAL_CONTROL: u32 = 126;
/// Offset of the flags of `SERIAL_CONTROL`.
const SERIAL_FLAGS: usize = 7;
/// The flag that says that this is an answer, which autopilots do not take: `SERIAL_CONTROL_FLAG_REPLY`.
const SERIAL_REPLY: u8 = 1;

const RC_CHANNELS: u32 = 65;
/// The component whose `RC_CHANNELS` PX4 takes for sticks: `MAV_COMP_ID_SYSTEM_CONTROL`.
const SYSTEM_CONTROL: u8 = 140;

/// Effect of a message on whoever receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageClass {
    /// Reports a state, for people and programs to look at: makes nobody act.
    Report,
    /// Answers what was asked or commanded: makes nobody act.
    Answer,
    /// Asks for one frame of a like size and changes nothing: whoever asks in another's name gains nothing.
    Question,
    /// Makes its receiver act: what it is set to, stores, moves, or sends at length.
    Command,
    /// Data that its receiver estimates, avoids or flies by.
    Input,
    /// Tells of a modem's own link, and does not leave its side.
    Local,
}

impl MessageClass {
    /// The class of a message, and the reason: it completes the sentence "the message …". `None` for messages
    /// of other dialects than the standard's.
    #[must_use]
    pub fn of_message(id: u32) -> Option<(Self, &'static str)> {
        let group = GROUPS.iter().find(|group| group.ids.binary_search(&id).is_ok())?;
        Some((group.class, group.reason))
    }

    /// The class of a frame: of its message, and where one message is used in both directions of its content.
    /// `None` for messages of other dialects.
    #[must_use]
    pub fn of(frame: Frame<'_>) -> Option<Self> {
        let id = frame.message_id();
        let byte = |at: usize| frame.payload().get(at).copied().unwrap_or(0);
        match id {
            // Servers answer an answer by refusing it.
            FILE_TRANSFER_PROTOCOL if frame.is_proven() && FTP_ANSWERS.contains(&byte(FTP_OPCODE)) => {
                Some(Self::Answer)
            }
            SERIAL_CONTROL if frame.is_proven() && byte(SERIAL_FLAGS) & SERIAL_REPLY != 0 => {
                Some(Self::Answer)
            }
            RC_CHANNELS if frame.component_id() == SYSTEM_CONTROL => Some(Self::Command),
            // A vehicle's failsafe waits for its absence.
            _ if message::is_ground_heartbeat(frame) => Some(Self::Command),
            _ => Self::of_message(id).map(|(class, _)| class),
        }
    }

    /// Tells whether a frame of this class is taken only with the signature of the member that sends it.
    #[must_use]
    pub const fn is_signed(self) -> bool {
        match self {
            Self::Report | Self::Answer | Self::Question => false,
            Self::Command | Self::Input | Self::Local => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::layout::MessageLayout;

    #[test]
    fn groups_are_in_order_so_that_every_message_is_found_and_none_stands_twice() {
        let mut all: Vec<u32> = GROUPS.iter().flat_map(|group| group.ids).copied().collect();
        for group in &GROUPS {
            assert!(group.ids.is_sorted(), "{}", group.reason);
        }
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn every_message_whose_layout_is_known_has_a_class() {
        let known: Vec<u32> = (0..70_000).filter(|id| MessageLayout::of(*id).is_some()).collect();
        assert_eq!(known.len(), 353);
        for id in known {
            assert!(MessageClass::of_message(id).is_some(), "message {id}");
        }
    }
}
