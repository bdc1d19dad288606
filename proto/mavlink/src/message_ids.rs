//! Which messages are commands: they are signed, and the last to be dropped when the air is full.

use alloc::collections::BTreeSet;

use crate::frame::Frame;

/// Messages by which one system makes another act: signed by their sender unless configured otherwise,
/// because the group's key only says that a member sent them.
///
/// Commands and modes (`COMMAND_INT`, `COMMAND_LONG`, `COMMAND_CANCEL`, `SET_MODE`,
/// `CHANGE_OPERATOR_CONTROL`); parameters (`PARAM_SET`, `PARAM_EXT_SET`, `PARAM_MAP_RC`); missions, fences
/// and rally points (`MISSION_*` that write, `FENCE_POINT`, `RALLY_POINT`, `SAFETY_SET_ALLOWED_AREA`); set
/// points and sticks (`MANUAL_CONTROL`, `RC_CHANNELS_OVERRIDE`, `SET_ATTITUDE_TARGET`,
/// `SET_POSITION_TARGET_*`, `SET_ACTUATOR_CONTROL_TARGET`); origin and home; files, shells, logs and keys
/// (`FILE_TRANSFER_PROTOCOL`, `SERIAL_CONTROL`, `LOG_ERASE`, `DEVICE_OP_WRITE`, `SETUP_SIGNING`).
pub const SIGNED_BY_DEFAULT: [u32; 30] = [
    5, 11, 23, 38, 39, 41, 44, 45, 48, 50, 54, 69, 70, 73, 75, 76, 80, 82, 84, 86, 110, 121, 126, 139, 160,
    175, 243, 256, 323, 11_002,
];

/// Messages that are not commands and still wait for nothing: what a command, a mission or a parameter waits
/// for, and the heartbeat, without which a vehicle goes into its failsafe (`HEARTBEAT`, `PARAM_REQUEST_*`,
/// `MISSION_REQUEST*`, `MISSION_ACK`, `COMMAND_ACK`, `PARAM_EXT_ACK`).
const URGENT: [u32; 10] = [0, 20, 21, 40, 43, 47, 51, 77, 324, 320];

/// What is dropped first when more is to be sent than the air takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Dropped first, the oldest before the newest.
    Telemetry,
    /// Dropped last, and sealed again when the group's key changes.
    Command,
}

/// The message ids whose frames their sender signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedMessages(BTreeSet<u32>);

impl SignedMessages {
    /// Signs the messages of these ids and no others.
    #[must_use]
    pub fn of(ids: impl IntoIterator<Item = u32>) -> Self {
        Self(ids.into_iter().collect())
    }

    /// Whether the frame's message is signed.
    #[must_use]
    pub fn contains(&self, frame: Frame<'_>) -> bool {
        self.0.contains(&frame.message_id())
    }

    /// The ids, in order.
    pub fn ids(&self) -> impl Iterator<Item = u32> {
        self.0.iter().copied()
    }
}

impl Default for SignedMessages {
    fn default() -> Self {
        Self::of(SIGNED_BY_DEFAULT)
    }
}

/// What becomes of the frame when the air is full.
#[must_use]
pub fn priority(frame: Frame<'_>) -> Priority {
    let id = frame.message_id();
    if SIGNED_BY_DEFAULT.contains(&id) || URGENT.contains(&id) {
        Priority::Command
    } else {
        Priority::Telemetry
    }
}
