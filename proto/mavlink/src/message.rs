//! The few messages that an endpoint writes or reads itself: `TUNNEL`, `STATUSTEXT`, `RADIO_STATUS`.

use alloc::vec::Vec;

use crate::{
    error::MavlinkError,
    frame::{Frame, Origin, build},
};

/// Component id for a bridge between MAVLink links (`MAV_COMP_ID_UDP_BRIDGE`).
pub const BRIDGE_COMPONENT: u8 = 240;
/// Bytes of the longest datagram that a `TUNNEL` carries.
pub const MAX_TUNNELLED: usize = 128;
/// Bytes that `TUNNEL` puts around a datagram: 12 of a frame, 5 of fields.
pub const TUNNEL_OVERHEAD: usize = 17;
/// Bytes of the longest text of one `STATUSTEXT`.
pub const MAX_STATUS_TEXT: usize = 50;

/// `payload_type` of a group's datagram. From 0x8000 on types are private.
const TUNNEL_TYPE: u16 = 0xd156;
const TUNNEL: (u32, u8) = (385, 147);
const STATUSTEXT: (u32, u8) = (253, 83);
const RADIO_STATUS: (u32, u8) = (109, 185);

/// How grave a status text is, as in syslog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Severity {
    /// Nothing passes.
    Critical = 2,
    /// Something is wrong.
    Error = 3,
    /// Something may go wrong.
    Warning = 4,
    /// What an operator may want to know.
    Notice = 5,
    /// What is usual.
    Info = 6,
}

/// A `TUNNEL` frame that carries a datagram to everybody, for radios that take nothing but MAVLink:
/// [`TUNNEL_OVERHEAD`] bytes more, less if the datagram ends in zeros.
///
/// # Errors
/// A datagram longer than [`MAX_TUNNELLED`].
pub fn tunnel(origin: Origin, datagram: &[u8]) -> Result<Vec<u8>, MavlinkError> {
    let too_long = MavlinkError::TooLong { len: datagram.len(), max: MAX_TUNNELLED };
    let len =
        u8::try_from(datagram.len()).ok().filter(|len| usize::from(*len) <= MAX_TUNNELLED).ok_or(too_long)?;
    let [low, high] = TUNNEL_TYPE.to_le_bytes();
    let mut payload = Vec::with_capacity(5 + datagram.len());
    payload.extend_from_slice(&[low, high, 0, 0, len]);
    payload.extend_from_slice(datagram);
    Ok(build(TUNNEL.0, TUNNEL.1, origin, &payload))
}

/// The datagram in a `TUNNEL` frame of [`tunnel`]; `None` for every other frame.
#[must_use]
pub fn tunnelled(frame: Frame<'_>) -> Option<Vec<u8>> {
    if frame.message_id() != TUNNEL.0 || !frame.is_proven() {
        return None;
    }
    let (&[low, high, _, _, len], datagram) = frame.payload().split_first_chunk()?;
    let len = usize::from(len);
    if u16::from_le_bytes([low, high]) != TUNNEL_TYPE || len > MAX_TUNNELLED || datagram.len() > len {
        return None;
    }
    // Zeros at its end were left away.
    let mut whole = datagram.to_vec();
    whole.resize(len, 0);
    Some(whole)
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

/// What a radio says of itself. It stays on the side of the radio: it is about this link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RadioStatus {
    /// Strength of the received signal, in the radio's own unit; 255 is unknown.
    pub rssi: u8,
    /// The same as the other side says.
    pub remote_rssi: u8,
    /// How much of the transmit buffer is free, in percent. Autopilots send less when it is low.
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

/// Whether the frame is a radio's word about itself, which does not leave this side.
#[must_use]
pub fn is_radio_status(frame: Frame<'_>) -> bool {
    frame.message_id() == RADIO_STATUS.0 && frame.is_proven()
}
