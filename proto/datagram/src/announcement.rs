//! Announcements: a sender's start, what it asks for, and with its signature its key. §20.4.

use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::traffic::Start;
use quiver_ainq::{DronePublicKey, Signature, Slot, Suite};
use quiver_crypto::Digest;
use quiver_crypto::canonical::{Malformed, Reader};

use crate::body::statement;
use crate::header::{DatagramKind, read_slot, write_slot};

/// Most slots that one announcement asks for.
pub(crate) const MAX_WANTED: usize = 8;

/// Unit of the time between manifests.
const INTERVAL_UNIT: Duration = Duration::from_millis(100);

/// Flags: a signature and a key follow; and in front of them the number of a signed datagram.
const SIGNED: u8 = 1;
const NUMBERED: u8 = 2;

/// A sender that is asked to announce itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnnouncementRequest {
    pub(crate) slot: Slot,
    /// True to ask for key and signature as well.
    pub(crate) key: bool,
}

/// Sealed content of an announcement, without key and signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Announcement {
    /// Time between manifests in tenths of a second; 0 if there are none.
    pub(crate) interval: u8,
    /// The number of the sender's next unsigned datagram.
    pub(crate) next: u32,
    /// The number of its next signed datagram, or of one that was so before, as it signed it; 0 if it is not said.
    pub(crate) next_signed: u32,
    pub(crate) wanted: Vec<AnnouncementRequest>,
}

impl Announcement {
    /// Adds it to a datagram, with what [`signed_part`] gives if it is to be signed.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>, signed: Option<&[u8]>) {
        // §20.4: n is there once 16,384 datagrams were signed, and only under the signature.
        let numbered = signed.is_some() && self.next_signed > 0;
        let flags = if numbered { SIGNED | NUMBERED } else { SIGNED };
        bytes.push(signed.map_or(0, |_| flags));
        bytes.push(self.interval);
        bytes.extend_from_slice(&self.next.to_be_bytes());
        bytes.push(u8::try_from(self.wanted.len()).unwrap_or(u8::MAX));
        for wanted in &self.wanted {
            bytes.push(wanted.key.into());
            write_slot(bytes, wanted.slot);
        }
        if numbered {
            bytes.extend_from_slice(&self.next_signed.to_be_bytes());
        }
        bytes.extend_from_slice(signed.unwrap_or_default());
    }

    /// Reads it; the second is what [`signed_part`] made.
    pub(crate) fn read(body: &[u8]) -> Result<(Self, Option<&[u8]>), Malformed> {
        let mut reader = Reader::new(body);
        let flags = reader.u8()?;
        let (interval, next) = (reader.u8()?, reader.u32()?);
        let count = usize::from(reader.u8()?);
        // One encoding for each announcement: n without a signature is none.
        if flags > SIGNED | NUMBERED || flags == NUMBERED || count > MAX_WANTED {
            return Err(Malformed("announcement"));
        }
        let mut wanted = Vec::with_capacity(count);
        for _ in 0..count {
            let key = match reader.u8()? {
                flag @ 0..=1 => flag == 1,
                _ => return Err(Malformed("announcement")),
            };
            wanted.push(AnnouncementRequest { slot: read_slot(&mut reader)?, key });
        }
        let next_signed = if flags & NUMBERED > 0 { reader.u32()? } else { 0 };
        let rest = reader.take(reader.remaining())?;
        // A number of 0 is left out, so 0 where one is said to be there is another encoding of the same.
        if rest.is_empty() != (flags == 0) || (next_signed == 0) != (flags & NUMBERED == 0) {
            return Err(Malformed("announcement"));
        }
        Ok((Self { interval, next, next_signed, wanted }, (flags > 0).then_some(rest)))
    }
}

/// The time between manifests as an announcement says it, rounded up.
pub(crate) fn interval_code(every: Option<Duration>) -> u8 {
    let code = every.map_or(0, |every| every.as_millis().div_ceil(INTERVAL_UNIT.as_millis()).max(1));
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// The same as a time.
pub(crate) fn interval(code: u8) -> Option<Duration> {
    (code > 0).then(|| INTERVAL_UNIT * u32::from(code))
}

/// §20.4: what a sender signs of its announcement: D, its slot and start, how often manifests come, and the number of a
/// signed datagram if there is one.
pub(crate) fn announced(digest: &Digest, start: &Start, interval: u8, next_signed: u32) -> Vec<u8> {
    let [a, b, c, d] = next_signed.to_be_bytes();
    let body = [interval, a, b, c, d];
    let len = if next_signed > 0 { body.len() } else { 1 };
    statement(digest, start, DatagramKind::Announcement, 0, body.get(..len).unwrap_or_default())
}

/// The signature and the key of a signed announcement.
pub(crate) fn signed_part<S: Suite>(signer: &DronePublicKey<S>, signature: &Signature<S>) -> Vec<u8> {
    let mut bytes = signature.encode();
    bytes.extend_from_slice(&signer.encode());
    bytes
}

/// Takes apart what [`signed_part`] made: the signature, and the encoded key.
pub(crate) fn split_signed_part<S: Suite>(bytes: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    bytes.split_at_checked(Signature::<S>::LEN).ok_or(Malformed("announcement"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quiver_ainq::MAX_SLOTS;

    use super::*;

    proptest! {
        #[test]
        fn an_announcement_is_read_as_it_was_written(
            interval in any::<u8>(), next in any::<u32>(), number in any::<u32>(),
            wanted in prop::collection::vec((0..=MAX_SLOTS, any::<bool>()), 0..=MAX_WANTED),
            signed in prop::option::of(prop::collection::vec(any::<u8>(), 1..40)),
        ) {
            let wanted = wanted.into_iter().map(|(slot, key)| AnnouncementRequest { slot, key }).collect();
            let next_signed = if signed.is_some() { number } else { 0 };
            let announcement = Announcement { interval, next, next_signed, wanted };
            let mut bytes = Vec::new();
            announcement.write(&mut bytes, signed.as_deref());
            prop_assert_eq!(Announcement::read(&bytes), Ok((announcement, signed.as_deref())));
        }

        #[test]
        fn whatever_is_read_is_written_the_same(bytes in prop::collection::vec(0..3_u8, 0..30)) {
            if let Ok((announcement, signed)) = Announcement::read(&bytes) {
                let mut again = Vec::new();
                announcement.write(&mut again, signed);
                prop_assert_eq!(again, bytes);
            }
        }
    }

    #[test]
    fn times_between_manifests_are_tenths_of_a_second() {
        let code = |millis| interval_code(Some(Duration::from_millis(millis)));
        assert_eq!([code(1), code(100), code(101), code(1_000), code(60_000)], [1, 1, 2, 10, 255]);
        assert_eq!((interval_code(None), interval(0)), (0, None));
        assert_eq!(interval(10), Some(Duration::from_secs(1)));
    }
}
