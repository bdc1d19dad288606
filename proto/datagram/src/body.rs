//! Bodies of datagrams: payloads, repeated payloads, manifests; and the statement that is signed. §20.3 to
//! §20.6.

use alloc::vec::Vec;

use quiver_ainq::traffic::Start;
use quiver_crypto::canonical::{Malformed, Reader, Writer};
use quiver_crypto::{Digest, Hasher};

use crate::header::{DatagramKind, Hint, read_varint, write_varint};

/// Bytes of a hash in a manifest.
pub(crate) const HASH_LEN: usize = 8;

/// A hash in a manifest.
pub(crate) type Hash = [u8; HASH_LEN];

/// Most bytes of the length in front of a payload.
pub(crate) const MAX_LENGTH_LEN: usize = 3;

/// Bytes in front of payloads that were sealed under the former key before.
pub(crate) const AGAIN_LEN: usize = 5;

/// Each payload behind its length.
pub(crate) fn write_batch<'a>(bytes: &mut Vec<u8>, payloads: impl IntoIterator<Item = &'a [u8]>) {
    for payload in payloads {
        write_varint(bytes, u32::try_from(payload.len()).unwrap_or(u32::MAX));
        bytes.extend_from_slice(payload);
    }
}

/// Bytes of a payload behind its length.
pub(crate) fn batch_len(payload: usize) -> usize {
    payload
        + if payload < 1 << 7 {
            1
        } else if payload < 1 << 14 {
            2
        } else {
            MAX_LENGTH_LEN
        }
}

/// Reads payloads: at least one, none empty.
pub(crate) fn read_batch(bytes: &[u8]) -> Result<Vec<&[u8]>, Malformed> {
    let (mut reader, mut payloads) = (Reader::new(bytes), Vec::new());
    while payloads.is_empty() || reader.remaining() > 0 {
        let len = read_varint(&mut reader)?;
        let payload = reader.take(usize::try_from(len).unwrap_or(usize::MAX))?;
        // An empty payload says nothing, and a batch of them would cost the receiver more than the sender.
        if payload.is_empty() {
            return Err(Malformed("payload"));
        }
        payloads.push(payload);
    }
    Ok(payloads)
}

/// The payloads of a datagram, and under which number of which epoch they were sealed before.
pub(crate) struct Payloads<'a> {
    pub(crate) payloads: Vec<&'a [u8]>,
    pub(crate) before: Option<(Hint, u32)>,
}

impl<'a> Payloads<'a> {
    /// Reads the body of any kind but a manifest and an announcement, without its signature.
    pub(crate) fn read(kind: DatagramKind, body: &'a [u8]) -> Result<Self, Malformed> {
        match kind {
            DatagramKind::Single | DatagramKind::SignedSingle if !body.is_empty() => {
                Ok(Self { payloads: alloc::vec![body], before: None })
            }
            DatagramKind::Batch | DatagramKind::SignedBatch => {
                Ok(Self { payloads: read_batch(body)?, before: None })
            }
            DatagramKind::Again | DatagramKind::SignedAgain => {
                let mut reader = Reader::new(body);
                let hint = Hint::from_byte(reader.u8()?).ok_or(Malformed("epoch"))?;
                let before = Some((hint, reader.u32()?));
                Ok(Self { payloads: read_batch(reader.take(reader.remaining())?)?, before })
            }
            _ => Err(Malformed("payload")),
        }
    }
}

/// §20.3: hint and number under which the payloads were sealed before, then each behind its length.
pub(crate) fn write_again<'a>(
    bytes: &mut Vec<u8>,
    (hint, counter): (Hint, u32),
    payloads: impl IntoIterator<Item = &'a [u8]>,
) {
    bytes.push(hint.byte());
    bytes.extend_from_slice(&counter.to_be_bytes());
    write_batch(bytes, payloads);
}

/// Hashes of all that a sender sent unsigned from a number on.
pub(crate) struct Manifest {
    pub(crate) from: u32,
    pub(crate) hashes: Vec<Hash>,
}

impl Manifest {
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4 + HASH_LEN * self.hashes.len());
        bytes.extend_from_slice(&self.from.to_be_bytes());
        self.hashes.iter().for_each(|hash| bytes.extend_from_slice(hash));
        bytes
    }

    pub(crate) fn read(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body);
        let from = reader.u32()?;
        let (hashes, rest) = reader.take(reader.remaining())?.as_chunks::<HASH_LEN>();
        let end = u32::try_from(hashes.len()).ok().and_then(|len| from.checked_add(len));
        // §20.6: hashes of 8 bytes each, whose numbers do not pass the last one.
        if hashes.is_empty() || !rest.is_empty() || end.is_none() {
            return Err(Malformed("manifest"));
        }
        Ok(Self { from, hashes: hashes.to_vec() })
    }

    /// One more than the highest number in it.
    pub(crate) fn end(&self) -> u32 {
        self.from.saturating_add(u32::try_from(self.hashes.len()).unwrap_or(u32::MAX))
    }

    /// The hash under a number.
    pub(crate) fn hash(&self, counter: u32) -> Option<&Hash> {
        self.hashes.get(usize::try_from(counter.checked_sub(self.from)?).ok()?)
    }
}

/// §20.6: the hash of one datagram in its sender's manifest.
pub(crate) fn manifest_hash(kind: DatagramKind, counter: u32, body: &[u8]) -> Hash {
    let hash = Hasher::new("quiver/1 datagram").u8(kind as u8).u32(counter).lp(body).finish();
    let mut first = [0; HASH_LEN];
    first.iter_mut().zip(hash).for_each(|(to, from)| *to = from);
    first
}

/// §20.5: what a sender signs of a datagram: D, its slot and start, kind, number and what is sealed.
pub(crate) fn statement(
    digest: &Digest,
    start: &Start,
    kind: DatagramKind,
    counter: u32,
    body: &[u8],
) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.fixed(digest).u32(start.slot).u32(start.boot_no).fixed(&start.salt);
    // §20.5: kind and number are signed, so that nobody presents the body as another kind, or again.
    writer.u8(kind as u8).u32(counter).lp(body);
    writer.finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_batch_is_read_as_it_was_written(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..300), 1..9),
        ) {
            let mut bytes = Vec::new();
            write_batch(&mut bytes, payloads.iter().map(Vec::as_slice));
            prop_assert_eq!(bytes.len(), payloads.iter().map(|one| batch_len(one.len())).sum::<usize>());
            prop_assert_eq!(read_batch(&bytes).unwrap(), payloads);
        }

        #[test]
        fn whatever_batch_is_read_is_written_the_same(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(payloads) = read_batch(&bytes) {
                let mut again = Vec::new();
                write_batch(&mut again, payloads);
                prop_assert_eq!(again, bytes);
            }
        }

        #[test]
        fn a_manifest_is_read_as_it_was_written(from in any::<u32>(), hashes in prop::collection::vec(any::<Hash>(), 1..20)) {
            let end = from.checked_add(hashes.len() as u32);
            let manifest = Manifest { from, hashes };
            let read = Manifest::read(&manifest.write());
            prop_assert_eq!(read.is_ok(), end.is_some());
            if let (Ok(read), Some(end)) = (read, end) {
                prop_assert_eq!(read.end(), end);
                prop_assert_eq!(read.hash(from), manifest.hashes.first());
                prop_assert_eq!(read.hash(end), None);
                prop_assert_eq!(read.hashes, manifest.hashes);
            }
        }
    }

    #[test]
    fn empty_payloads_and_empty_batches_are_refused() {
        for body in [&[][..], &[0], &[1, 7, 0], &[2, 7]] {
            assert!(read_batch(body).is_err(), "{body:?}");
        }
        assert!(Payloads::read(DatagramKind::Single, &[]).is_err());
        assert!(Payloads::read(DatagramKind::Again, &[8, 0, 0, 0, 0, 1, 9]).is_err());
        assert!(Payloads::read(DatagramKind::Again, &[7, 0, 0, 0, 0, 1, 9]).is_ok());
    }
}
