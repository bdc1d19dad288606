//! A board's word that it has a broadcast.

use alloc::vec::Vec;

use quiver_crypto::canonical::{Malformed, Reader, Writer};

use crate::LinkError;

/// Follows the kind of a broadcast's frames.
const KIND: u8 = 11;

/// Confirms a broadcast to the gateway that sent it: kind (1), session (4), digest (4). A datagram of its own that
/// nobody answers: a board sends it a few times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirmation {
    /// The board's session.
    pub session: u32,
    /// Digest of the message, as the frames have it.
    pub digest: [u8; 4],
}

impl Confirmation {
    /// The datagram's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.u8(KIND).u32(self.session).fixed(&self.digest);
        writer.finish()
    }

    /// Reads a datagram.
    ///
    /// # Errors
    /// [`LinkError::MalformedDatagram`] unless [`Confirmation::encode`] makes these bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, LinkError> {
        Self::read(bytes).map_err(|_| LinkError::MalformedDatagram)
    }

    fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != KIND {
            return Err(Malformed("kind"));
        }
        let confirmation = Self { session: reader.u32()?, digest: reader.array()? };
        reader.end()?;
        Ok(confirmation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confirmation_keeps_its_encoding() {
        let confirmation = Confirmation { session: 0x0102_0304, digest: [5, 6, 7, 8] };
        let bytes = confirmation.encode();
        assert_eq!(bytes, [11, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(Confirmation::decode(&bytes), Ok(confirmation));
        for malformed in [&bytes[..8], &[&bytes[..], &[0]].concat(), &[10, 1, 2, 3, 4, 5, 6, 7, 8], &[]] {
            assert_eq!(Confirmation::decode(malformed), Err(LinkError::MalformedDatagram), "{malformed:?}");
        }
    }
}
