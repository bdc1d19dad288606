//! The header of a datagram: kind, low bits of the epoch, slot and number, 4 to 6 bytes. §20.1.

use alloc::vec::Vec;

use quiver_ainq::traffic::{SALT_LEN, Start};
use quiver_ainq::{Epoch, LEADER_SLOT, MAX_SLOTS, Slot};
use quiver_crypto::canonical::{Malformed, Reader};

/// Version, in the two upper bits of the first byte. No frame of MAVLink starts so.
const VERSION: u8 = 1;

/// Longest datagram that is looked at, the bound of CCM with a nonce of 13 bytes.
pub(crate) const MAX_LEN: usize = 65_535;

/// Content of a datagram. Three bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatagramKind {
    /// A payload.
    Single,
    /// Several payloads, each behind its length.
    Batch,
    /// A payload and a signature.
    SignedSingle,
    /// Several payloads and a signature.
    SignedBatch,
    /// Payloads that were sealed under the former key before.
    Again,
    /// The same and a signature.
    SignedAgain,
    /// Hashes of datagrams that were sent unsigned, and a signature.
    Manifest,
    /// The start of a sender.
    Announcement,
}

impl DatagramKind {
    const ALL: [Self; 8] = [
        Self::Single,
        Self::Batch,
        Self::SignedSingle,
        Self::SignedBatch,
        Self::Again,
        Self::SignedAgain,
        Self::Manifest,
        Self::Announcement,
    ];

    /// Returns true if a signature stands at its end. Signed ones are numbered apart from the others.
    pub(crate) const fn is_signed(self) -> bool {
        matches!(self, Self::SignedSingle | Self::SignedBatch | Self::SignedAgain | Self::Manifest)
    }
}

/// The low bits of an epoch. Those of the next epoch in a term are others; those of another term are the same
/// in one of eight cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hint(u8);

impl Hint {
    pub(crate) const fn of(epoch: &Epoch) -> Self {
        Self((epoch.counter & 7) as u8)
    }

    /// Returns the hint of a byte, if it is one.
    pub(crate) const fn from_byte(byte: u8) -> Option<Self> {
        if byte < 8 { Some(Self(byte)) } else { None }
    }

    pub(crate) const fn byte(self) -> u8 {
        self.0
    }

    /// Returns true if it is the hint of the epoch just before.
    pub(crate) const fn precedes(self, other: Self) -> bool {
        other.0.wrapping_sub(self.0) & 7 == 1
    }
}

/// A datagram, taken apart. `header` are the bytes in front of what is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram<'a> {
    pub(crate) kind: DatagramKind,
    pub(crate) hint: Hint,
    pub(crate) slot: Slot,
    pub(crate) number: Number,
    pub(crate) header: &'a [u8],
    pub(crate) sealed: &'a [u8],
}

/// Number that distinguishes a datagram from others of its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    /// The low bits of the number of a datagram with payloads.
    Payloads(u16),
    /// The start that an announcement is about, and the announcement's own number.
    Announcement { start: Start, number: u32 },
}

impl<'a> Datagram<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        if bytes.len() > MAX_LEN {
            return Err(Malformed("length"));
        }
        let mut reader = Reader::new(bytes);
        let first = reader.u8()?;
        let kind = DatagramKind::ALL.get(usize::from(first >> 3 & 7)).copied();
        // §20.1: version in 2 bits, kind in 3, the low bits of the epoch in 3.
        let (Some(kind), Some(hint), VERSION) = (kind, Hint::from_byte(first & 7), first >> 6) else {
            return Err(Malformed("version"));
        };
        let slot = read_slot(&mut reader)?;
        let number = match kind {
            // §20.4: an announcement has the whole start, so that receivers need nothing before it.
            DatagramKind::Announcement => {
                let (boot_no, salt) = (reader.u32()?, reader.array::<SALT_LEN>()?);
                Number::Announcement { start: Start { slot, boot_no, salt }, number: reader.u32()? }
            }
            _ => Number::Payloads(reader.u16()?),
        };
        let (header, sealed) =
            bytes.split_at_checked(bytes.len() - reader.remaining()).ok_or(Malformed("truncated"))?;
        Ok(Self { kind, hint, slot, number, header, sealed })
    }
}

/// Begins a datagram with payloads; what follows is sealed.
pub(crate) fn begin(kind: DatagramKind, hint: Hint, slot: Slot, counter: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_first(&mut bytes, kind, hint, slot);
    // The low bits; the others are the receiver's to know.
    let [_, _, low @ ..] = counter.to_be_bytes();
    bytes.extend_from_slice(&low);
    bytes
}

/// Begins an announcement; what follows is sealed.
pub(crate) fn begin_announcement(hint: Hint, start: &Start, number: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_first(&mut bytes, DatagramKind::Announcement, hint, start.slot);
    bytes.extend_from_slice(&start.boot_no.to_be_bytes());
    bytes.extend_from_slice(&start.salt);
    bytes.extend_from_slice(&number.to_be_bytes());
    bytes
}

fn write_first(bytes: &mut Vec<u8>, kind: DatagramKind, hint: Hint, slot: Slot) {
    let kind = DatagramKind::ALL.iter().position(|one| *one == kind).unwrap_or_default() as u8;
    bytes.push(VERSION << 6 | kind << 3 | hint.0);
    write_slot(bytes, slot);
}

/// 0 for the leader, else one more than the slot, seven bits a byte, the lowest first.
pub(crate) fn write_slot(bytes: &mut Vec<u8>, slot: Slot) {
    write_varint(bytes, if slot == LEADER_SLOT { 0 } else { slot.saturating_add(1) });
}

pub(crate) fn read_slot(reader: &mut Reader<'_>) -> Result<Slot, Malformed> {
    match read_varint(reader)?.checked_sub(1) {
        None => Ok(LEADER_SLOT),
        // §20.1: no member has a slot above 2^20, so that no other number is one.
        Some(slot) if slot < MAX_SLOTS => Ok(slot),
        Some(_) => Err(Malformed("slot")),
    }
}

/// Seven bits a byte, the lowest first; of at most three bytes.
pub(crate) fn write_varint(bytes: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Reads a number, of whose encodings only the shortest is valid.
pub(crate) fn read_varint(reader: &mut Reader<'_>) -> Result<u32, Malformed> {
    let mut value = 0;
    for shift in [0, 7, 14] {
        let byte = reader.u8()?;
        value |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            // A zero at the end is a longer encoding of the same number.
            return if byte == 0 && shift > 0 { Err(Malformed("number")) } else { Ok(value) };
        }
    }
    Err(Malformed("number"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_header_is_read_as_it_was_written(
            kind in 0..7_usize, epoch in any::<u64>(), slot in prop_oneof![0..300_u32, 0..=MAX_SLOTS], counter in any::<u32>(),
            body in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let (kind, hint) = (DatagramKind::ALL[kind], Hint::of(&Epoch { term: 1, counter: epoch }));
            let mut bytes = begin(kind, hint, slot, counter);
            let header = bytes.clone();
            prop_assert!(header.len() <= 6);
            bytes.extend_from_slice(&body);
            let number = Number::Payloads(counter as u16);
            let expected = Datagram { kind, hint, slot, number, header: &header, sealed: &body };
            prop_assert_eq!(Datagram::read(&bytes), Ok(expected));
        }

        #[test]
        fn whatever_is_read_is_written_the_same(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(read) = Datagram::read(&bytes) {
                let again = match read.number {
                    Number::Payloads(number) => begin(read.kind, read.hint, read.slot, number.into()),
                    Number::Announcement { start, number } => begin_announcement(read.hint, &start, number),
                };
                prop_assert_eq!(again, read.header);
            }
        }
    }

    #[test]
    fn most_senders_need_four_bytes_and_the_leader_too() {
        let hint = Hint(3);
        let len = |slot| begin(DatagramKind::Single, hint, slot, 0).len();
        assert_eq!(
            [len(LEADER_SLOT), len(0), len(126), len(127), len(16_382), len(16_383)],
            [4, 4, 4, 5, 5, 6]
        );
        assert_eq!(begin(DatagramKind::Single, hint, 6, 0x0102_0304), [0x43, 7, 3, 4]);
    }

    #[test]
    fn mavlink_frames_and_other_versions_are_no_datagrams() {
        for first in [0xfd, 0xfe, 0x00, 0x80] {
            assert!(Datagram::read(&[first; 40]).is_err(), "{first:x}");
        }
    }

    #[test]
    fn the_next_epoch_is_told_from_the_one_before() {
        let hint = |counter| Hint::of(&Epoch { term: 1 << 16, counter });
        assert!(hint(7).precedes(hint(8)) && hint(8).precedes(hint(9)));
        assert!(!hint(8).precedes(hint(8)) && !hint(9).precedes(hint(8)) && !hint(7).precedes(hint(9)));
    }
}
