//! Rules: which frames are signed by their sender, and which are the last to be dropped when the air is full.

use alloc::collections::BTreeSet;

use crate::{frame::Frame, message::HEARTBEAT, message_class::MessageClass};

/// Messages that are not commands and still wait for nothing: what a command, a mission or a parameter waits
/// for, and the heartbeat, without which a vehicle goes into its failsafe (`HEARTBEAT`, `PARAM_REQUEST_*`,
/// `MISSION_REQUEST*`, `MISSION_ACK`, `COMMAND_ACK`, `PARAM_EXT_ACK`).
const URGENT: [u32; 10] = [0, 20, 21, 40, 43, 47, 51, 77, 324, 320];

/// Priority of a frame when more is to be sent than the air takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Dropped first, the oldest before the newest.
    Telemetry,
    /// Dropped last, and sealed again when the group's key changes.
    Command,
}

/// The messages whose frames their sender signs, and without a signature are not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedMessages(Rule);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    /// Messages that make their receiver act and those that nobody knows, but for these.
    AllBut(BTreeSet<u32>),
    /// These messages alone, whatever is in them.
    Only(BTreeSet<u32>),
}

impl SignedMessages {
    /// Signs the messages of these ids and no others.
    #[must_use]
    pub fn only(ids: impl IntoIterator<Item = u32>) -> Self {
        Self(Rule::Only(ids.into_iter().collect()))
    }

    /// Signs what is signed unless configured otherwise ([`MessageClass::is_signed`], and every message of
    /// another dialect), but not these.
    #[must_use]
    pub fn all_but(ids: impl IntoIterator<Item = u32>) -> Self {
        Self(Rule::AllBut(ids.into_iter().collect()))
    }

    /// Tells whether the frame is to be signed. `is_ground`: whether its system is a ground station's, of which
    /// every heartbeat is: autopilots do not ask what a heartbeat of their ground station's number says.
    #[must_use]
    pub fn contains(&self, frame: Frame<'_>, is_ground: bool) -> bool {
        let id = frame.message_id();
        match &self.0 {
            Rule::Only(ids) => ids.contains(&id),
            Rule::AllBut(ids) if ids.contains(&id) => false,
            Rule::AllBut(_) if id == HEARTBEAT && is_ground => true,
            Rule::AllBut(_) => MessageClass::of(frame).is_none_or(MessageClass::is_signed),
        }
    }
}

impl Default for SignedMessages {
    fn default() -> Self {
        Self::all_but([])
    }
}

/// Priority of the frame when the air is full.
#[must_use]
pub fn priority(frame: Frame<'_>) -> Priority {
    let id = frame.message_id();
    let is_command = matches!(MessageClass::of_message(id), Some((MessageClass::Command, _)));
    if is_command || URGENT.contains(&id) { Priority::Command } else { Priority::Telemetry }
}
