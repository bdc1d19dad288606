//! The few messages that an endpoint writes or reads itself: `STATUSTEXT`, `RADIO_STATUS`, one parameter's value.

mod named_value;

use alloc::vec::Vec;

use crate::{
    frame::{Frame, Origin, build},
    message_class::MessageClass,
};

pub use named_value::{NAMED_VALUE_INT, named_value_int};

/// Component id for a bridge between MAVLink links (`MAV_COMP_ID_UDP_BRIDGE`).
pub const BRIDGE_COMPONENT: u8 = 240;
/// Bytes of the longest text of one `STATUSTEXT`.
pub const MAX_STATUS_TEXT: usize = 50;

/// The message by which a system says that it is there.
pub(crate) const HEARTBEAT: u32 = 0;
/// Offset at which a heartbeat says what sends it.
const HEARTBEAT_TYPE: usize = 4;
/// Type of a ground station: `MAV_TYPE_GCS`.
const GROUND_STATION: u8 = 6;

const PARAM_VALUE: u32 = 22;
/// Offset of a parameter's name, and the bytes of the longest one.
const PARAM_NAME: usize = 8;
const PARAM_NAME_LEN: usize = 16;
/// The largest number up to which a parameter has every one.
const LARGEST_PARAM: f32 = 16_777_216.0;

const STATUSTEXT: (u32, u8) = (253, 83);
const RADIO_STATUS: (u32, u8) = (109, 185);

/// Severity of a status text, as in syslog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Severity {
    /// Trouble in which nothing passes.
    Critical = 2,
    /// Fault that is there now.
    Error = 3,
    /// Fault that may come.
    Warning = 4,
    /// News that an operator may want to know.
    Notice = 5,
    /// Usual news.
    Info = 6,
}

/// A `STATUSTEXT` frame for the programs at local endpoints. A text longer than [`MAX_STATUS_TEXT`] bytes is
/// cut.
#[must_use]
pub fn status_text(origin: Origin, severity: Severity, text: &str) -> Vec<u8> {
    let mut payload = [0; 1 + MAX_STATUS_TEXT];
    let mut end = text.len().min(MAX_STATUS_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let bytes = core::iter::once(severity as u8).chain(text.bytes().take(end));
    for (to, from) in payload.iter_mut().zip(bytes) {
        *to = from;
    }
    build(STATUSTEXT.0, STATUSTEXT.1, origin, &payload)
}

/// Report of a radio about itself. It stays on the side of the radio: it is about this link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RadioStatus {
    /// Strength of the received signal, in the radio's own unit; 255 is unknown.
    pub rssi: u8,
    /// The same as the other side says.
    pub remote_rssi: u8,
    /// Share of the transmit buffer that is free, in percent. Autopilots send less when it is low.
    pub free_buffer: u8,
    /// Noise, in the radio's own unit.
    pub noise: u8,
    /// The same as the other side says.
    pub remote_noise: u8,
    /// Packets received in error.
    pub receive_errors: u16,
    /// Packets mended.
    pub corrected: u16,
}

impl RadioStatus {
    /// Reads a `RADIO_STATUS` frame; `None` for every other frame.
    #[must_use]
    pub fn from_frame(frame: Frame<'_>) -> Option<Self> {
        if !is_radio_status(frame) {
            return None;
        }
        // MAVLink 2 leaves zeros at the end away.
        let byte = |at: usize| frame.payload().get(at).copied().unwrap_or(0);
        Some(Self {
            receive_errors: u16::from_le_bytes([byte(0), byte(1)]),
            corrected: u16::from_le_bytes([byte(2), byte(3)]),
            rssi: byte(4),
            remote_rssi: byte(5),
            free_buffer: byte(6),
            noise: byte(7),
            remote_noise: byte(8),
        })
    }

    /// A `RADIO_STATUS` frame, by which a carrier tells an autopilot that it is full.
    #[must_use]
    pub fn to_frame(self, origin: Origin) -> Vec<u8> {
        let ([e0, e1], [c0, c1]) = (self.receive_errors.to_le_bytes(), self.corrected.to_le_bytes());
        let signal = [self.rssi, self.remote_rssi, self.free_buffer, self.noise, self.remote_noise];
        let mut payload = [e0, e1, c0, c1, 0, 0, 0, 0, 0];
        for (to, from) in payload.iter_mut().skip(4).zip(signal) {
            *to = from;
        }
        build(RADIO_STATUS.0, RADIO_STATUS.1, origin, &payload)
    }
}

/// Parameter of ArduPilot that says whose heartbeats and sticks are the ground station's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroundParameter {
    /// The system id, or the first of several.
    First(u32),
    /// The last of several; 0 if there is one.
    Last(u32),
}

impl GroundParameter {
    /// Reads a `PARAM_VALUE` frame; `None` for every other frame and parameter.
    #[must_use]
    pub fn from_frame(frame: Frame<'_>) -> Option<Self> {
        if frame.message_id() != PARAM_VALUE || !frame.is_proven() {
            return None;
        }
        let name = frame.payload().get(PARAM_NAME..)?;
        let name = name.get(..PARAM_NAME_LEN).unwrap_or(name).split(|byte| *byte == 0).next()?;
        // ArduPilot writes the number as it is.
        let value = f32::from_le_bytes(frame.payload().first_chunk().copied()?);
        if !(0.0..=LARGEST_PARAM).contains(&value) {
            return None;
        }
        match name {
            b"SYSID_MYGCS" | b"MAV_GCS_SYSID" if value >= 1.0 => Some(Self::First(value as u32)),
            b"MAV_GCS_SYSID_HI" => Some(Self::Last(value as u32)),
            _ => None,
        }
    }
}

/// Tells whether the frame names itself a modem's word about its own link, which does not leave its side: an autopilot that
/// believes it sends less. `RADIO_STATUS`, its predecessor `RADIO`, and mLRS' `MLRS_RADIO_LINK_FLOW_CONTROL`.
#[must_use]
pub fn is_of_radio(frame: Frame<'_>) -> bool {
    matches!(MessageClass::of_message(frame.message_id()), Some((MessageClass::Local, _)))
}

/// Returns true if the frame is a radio's report about itself.
#[must_use]
pub fn is_radio_status(frame: Frame<'_>) -> bool {
    frame.message_id() == RADIO_STATUS.0 && frame.is_proven()
}

/// Tells whether the frame is a heartbeat by which a ground station says that it is there.
#[must_use]
pub fn is_ground_heartbeat(frame: Frame<'_>) -> bool {
    frame.message_id() == HEARTBEAT && frame.payload().get(HEARTBEAT_TYPE) == Some(&GROUND_STATION)
}
