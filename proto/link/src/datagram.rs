//! Datagrams: hellos, pings, fragments, and acknowledgements.

use alloc::vec::Vec;

use quiver_crypto::canonical::{Malformed, Reader, Writer};

use crate::hello::{GatewayWelcome, Hello};
use crate::{LinkError, MAX_FRAGMENTS};

/// Bytes in front of a fragment.
pub(crate) const FRAGMENT_OVERHEAD: usize = 13;
/// The longest bitmap in bytes.
const MAX_BITMAP: usize = MAX_FRAGMENTS.div_ceil(8);

mod kind {
    pub(super) const HELLO: u8 = 1;
    pub(super) const WELCOME: u8 = 2;
    pub(super) const PING: u8 = 3;
    pub(super) const PONG: u8 = 4;
    pub(super) const LOST: u8 = 5;
    pub(super) const FRAGMENT: u8 = 6;
    pub(super) const LAST_FRAGMENT: u8 = 7;
    pub(super) const HAVE: u8 = 8;
    pub(super) const DONE: u8 = 9;
}

/// One of several equal parts of a message and its check sum; the last may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment<'a> {
    /// True if its sender wants to know what was received.
    pub(crate) asks: bool,
    /// Number of the message in the session, modulo 2^16.
    pub(crate) id: u16,
    /// Bytes of all parts together.
    pub(crate) total: u32,
    /// Index of the part.
    pub(crate) index: u8,
    /// Number of parts.
    pub(crate) count: u8,
    pub(crate) bytes: &'a [u8],
}

/// Content of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Datagram<'a> {
    Hello(Hello),
    Welcome(GatewayWelcome),
    Ping { session: u32 },
    Pong { session: u32, unix_time: u64 },
    Lost { session: u32 },
    Fragment { session: u32, fragment: Fragment<'a> },
    Have { session: u32, id: u16, bitmap: &'a [u8] },
    Done { session: u32, id: u16, checksum: u32 },
}

impl<'a> Datagram<'a> {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        match self {
            Self::Hello(hello) => hello.write(writer.u8(kind::HELLO)),
            Self::Welcome(welcome) => welcome.write(writer.u8(kind::WELCOME)),
            Self::Ping { session } => {
                writer.u8(kind::PING).u32(*session);
            }
            Self::Pong { session, unix_time } => {
                writer.u8(kind::PONG).u32(*session).u64(*unix_time);
            }
            Self::Lost { session } => {
                writer.u8(kind::LOST).u32(*session);
            }
            Self::Fragment { session, fragment } => {
                writer.u8(if fragment.asks { kind::LAST_FRAGMENT } else { kind::FRAGMENT });
                writer.u32(*session).u16(fragment.id).u32(fragment.total);
                writer.u8(fragment.index).u8(fragment.count).fixed(fragment.bytes);
            }
            Self::Have { session, id, bitmap } => {
                writer.u8(kind::HAVE).u32(*session).u16(*id).fixed(bitmap);
            }
            Self::Done { session, id, checksum } => {
                writer.u8(kind::DONE).u32(*session).u16(*id).u32(*checksum);
            }
        }
        writer.finish()
    }

    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Self, LinkError> {
        Self::read(bytes).map_err(|_| LinkError::MalformedDatagram)
    }

    fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let datagram = match reader.u8()? {
            kind::HELLO => Self::Hello(Hello::read(&mut reader)?),
            kind::WELCOME => Self::Welcome(GatewayWelcome::read(&mut reader)?),
            kind::PING => Self::Ping { session: reader.u32()? },
            kind::PONG => Self::Pong { session: reader.u32()?, unix_time: reader.u64()? },
            kind::LOST => Self::Lost { session: reader.u32()? },
            kind::FRAGMENT => Self::read_fragment(&mut reader, false)?,
            kind::LAST_FRAGMENT => Self::read_fragment(&mut reader, true)?,
            kind::HAVE => Self::read_have(&mut reader)?,
            kind::DONE => Self::Done { session: reader.u32()?, id: reader.u16()?, checksum: reader.u32()? },
            _ => return Err(Malformed("kind")),
        };
        // A datagram has one encoding: bytes behind it are none of it.
        reader.end()?;
        Ok(datagram)
    }

    fn read_fragment(reader: &mut Reader<'a>, asks: bool) -> Result<Self, Malformed> {
        let session = reader.u32()?;
        let (id, total) = (reader.u16()?, reader.u32()?);
        let (index, count) = (reader.u8()?, reader.u8()?);
        let bytes = reader.take(reader.remaining())?;
        let fragment = Fragment { asks, id, total, index, count, bytes };
        // Equal parts but for the last: nothing else is a fragment.
        if fragment.expected_len() != Some(bytes.len()) {
            return Err(Malformed("fragment"));
        }
        Ok(Self::Fragment { session, fragment })
    }

    fn read_have(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let (session, id) = (reader.u32()?, reader.u16()?);
        let bitmap = reader.take(reader.remaining())?;
        // At most 255 fragments.
        if bitmap.len() > MAX_BITMAP {
            return Err(Malformed("bitmap"));
        }
        Ok(Self::Have { session, id, bitmap })
    }
}

impl Fragment<'_> {
    /// Bytes of each part but the last.
    pub(crate) fn size(&self) -> Option<usize> {
        usize::try_from(self.total.div_ceil(u32::from(self.count).max(1))).ok()
    }

    /// Expected length of this part; `None` if there is no such part.
    fn expected_len(&self) -> Option<usize> {
        let (size, total) = (self.size()?, usize::try_from(self.total).ok()?);
        // The count must follow from length and size, so that all fragments of a message agree on its parts.
        if self.index >= self.count || size == 0 || total.div_ceil(size) != usize::from(self.count) {
            return None;
        }
        Some(total.checked_sub(size.checked_mul(self.index.into())?)?.min(size))
    }
}

/// A gateway's answer to a datagram of an unknown session, so that the board begins a new one at once; `None`
/// for anything else. For boards that have no [`GatewayEndpoint`](crate::GatewayEndpoint): endpoints do it
/// themselves.
pub fn refusal(datagram: &[u8]) -> Option<Vec<u8>> {
    match Datagram::decode(datagram).ok()? {
        // These alone are answered: two ends without a session do not answer each other for ever.
        Datagram::Ping { session } | Datagram::Fragment { session, .. } => {
            Some(Datagram::Lost { session }.encode())
        }
        _ => None,
    }
}

/// Returns true if a datagram is the group's own (docs/protocol.md, §20.1) and not of the link: it begins
/// with the bits 0 and 1. It belongs to no session; endpoints take it for malformed.
pub const fn is_of_group(datagram: &[u8]) -> bool {
    matches!(datagram, [0x40..=0x7f, ..])
}

/// Returns true if a datagram that was encoded is a fragment.
pub(crate) const fn is_fragment(datagram: &[u8]) -> bool {
    matches!(datagram, [kind::FRAGMENT | kind::LAST_FRAGMENT, ..])
}

/// Returns true if a datagram begins a session: a gateway makes a [`GatewayEndpoint`](crate::GatewayEndpoint)
/// for its sender.
pub fn is_hello(datagram: &[u8]) -> bool {
    matches!(Datagram::decode(datagram), Ok(Datagram::Hello(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_and_group_tell_their_datagrams_apart() {
        let ours = [
            Datagram::Ping { session: 0x4041_4243 },
            Datagram::Lost { session: 0x7f7f_7f7f },
            Datagram::Have { session: 1, id: 0x4040, bitmap: &[0x40] },
            Datagram::Done { session: 1, id: 1, checksum: u32::MAX },
        ];
        assert!(ours.iter().all(|datagram| !is_of_group(&datagram.encode())));
        for first in 0x40..=0x7f {
            assert!(is_of_group(&[first, 1, 2]));
            assert_eq!(Datagram::decode(&[first, 0, 0, 0, 1]), Err(LinkError::MalformedDatagram));
        }
        assert!([&[][..], &[0x3f], &[0x80]].iter().all(|bytes| !is_of_group(bytes)));
    }
}
