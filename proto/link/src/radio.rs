//! Data frames of IEEE 802.15.4-2006: short addresses within one network, no security, no acknowledgement by
//! the MAC (the endpoints acknowledge).
//!
//! Little-endian: frame control (2 bytes) ‖ sequence number (1) ‖ network (2) ‖ destination (2) ‖ source (2)
//! ‖ datagram. The hardware appends and checks the frame check sequence (2 bytes).

use alloc::vec::Vec;

use crate::LinkError;

/// The longest frame in bytes without the frame check sequence: `aMaxPHYPacketSize` less two.
pub const MAX_PSDU: usize = 125;
/// Bytes in front of the datagram.
const HEADER_LEN: usize = 9;
/// The longest datagram in a radio frame in bytes.
pub const MAX_RADIO_DATAGRAM: usize = MAX_PSDU - HEADER_LEN;
/// The broadcast address, which no board has.
pub const BROADCAST: u16 = 0xFFFF;

/// `aMaxMACSafePayloadSize`: longer payloads have frame version 1 (section 7.2.1.1.6).
const MAX_SAFE_PAYLOAD: usize = 102;
/// Data frame, network identifier left out of the source, short addresses; frame version 0.
const CONTROL_2003: u16 = 0x8841;
/// The same with frame version 1.
const CONTROL_2006: u16 = 0x9841;

/// A data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RadioFrame<'a> {
    /// Counts the sender's frames.
    pub sequence: u8,
    /// The network (PAN identifier).
    pub network: u16,
    /// The short address of the receiver; a gateway's is 0.
    pub destination: u16,
    /// The short address of the sender.
    pub source: u16,
    /// The datagram.
    pub datagram: &'a [u8],
}

impl<'a> RadioFrame<'a> {
    /// The frame as bytes, without the frame check sequence.
    ///
    /// # Errors
    /// [`LinkError::DatagramTooLong`] beyond [`MAX_RADIO_DATAGRAM`].
    pub fn encode(&self) -> Result<Vec<u8>, LinkError> {
        let len = self.datagram.len();
        if len > MAX_RADIO_DATAGRAM {
            return Err(LinkError::DatagramTooLong { len, max: MAX_RADIO_DATAGRAM });
        }
        let control = if len > MAX_SAFE_PAYLOAD { CONTROL_2006 } else { CONTROL_2003 };
        let mut bytes = Vec::with_capacity(HEADER_LEN + len);
        bytes.extend_from_slice(&control.to_le_bytes());
        bytes.push(self.sequence);
        for field in [self.network, self.destination, self.source] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        bytes.extend_from_slice(self.datagram);
        Ok(bytes)
    }

    /// Reads a frame, given without the frame check sequence.
    ///
    /// # Errors
    /// [`LinkError::MalformedRadioFrame`] for everything that [`RadioFrame::encode`] does not make: other
    /// kinds of frames, a broadcast source, too many bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, LinkError> {
        let malformed = LinkError::MalformedRadioFrame;
        let (control, rest) = u16_le(bytes).ok_or(malformed)?;
        let (&sequence, rest) = rest.split_first().ok_or(malformed)?;
        let (network, rest) = u16_le(rest).ok_or(malformed)?;
        let (destination, rest) = u16_le(rest).ok_or(malformed)?;
        let (source, datagram) = u16_le(rest).ok_or(malformed)?;
        let expected = if datagram.len() > MAX_SAFE_PAYLOAD { CONTROL_2006 } else { CONTROL_2003 };
        if control != expected || source == BROADCAST || bytes.len() > MAX_PSDU {
            return Err(malformed);
        }
        Ok(Self { sequence, network, destination, source, datagram })
    }
}

fn u16_le(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u16::from_le_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn frames_of_all_lengths_are_read_back() {
        let datagram = [0xA5; MAX_RADIO_DATAGRAM];
        for len in 0..=MAX_RADIO_DATAGRAM {
            let frame = RadioFrame {
                sequence: 9,
                network: 0x1234,
                destination: 0,
                source: 0x00F1,
                datagram: &datagram[..len],
            };
            let bytes = frame.encode().unwrap();
            assert!(bytes.len() <= MAX_PSDU);
            assert_eq!(RadioFrame::parse(&bytes), Ok(frame));
            assert!(RadioFrame::parse(&bytes[..bytes.len().min(8)]).is_err());
        }
    }

    #[test]
    fn other_frames_are_refused() {
        let frame = RadioFrame { sequence: 0, network: 1, destination: 0, source: 2, datagram: b"x" };
        let good = frame.encode().unwrap();
        for bit in 0..16 {
            let mut other = good.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(RadioFrame::parse(&other), Err(LinkError::MalformedRadioFrame), "bit {bit}");
        }
        let broadcast = RadioFrame { source: BROADCAST, ..frame }.encode().unwrap();
        assert_eq!(RadioFrame::parse(&broadcast), Err(LinkError::MalformedRadioFrame));
        let long = [good, vec![0; MAX_PSDU]].concat();
        assert_eq!(RadioFrame::parse(&long), Err(LinkError::MalformedRadioFrame));
    }
}
