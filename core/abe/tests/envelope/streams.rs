//! Data of any length opens as it was sealed, however it is cut.

use proptest::prelude::*;
use quiver_abe::envelope::{
    self, CHUNK_LEN, EnvelopeError, EnvelopeHeader, Lifetime, ReceivingSession, SEALED_CHUNK_LEN, Splitter,
};

use crate::toy::{ALICE, NOW, PARAMETERS, Toy, ToySigner, known, next, opened, rng, sealed, session};

/// Lengths around the boundaries of chunks.
fn lengths() -> [usize; 8] {
    [0, 1, CHUNK_LEN - 1, CHUNK_LEN, CHUNK_LEN + 1, 2 * CHUNK_LEN - 1, 2 * CHUNK_LEN, 3 * CHUNK_LEN + 17]
}

fn data(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 % 251) as u8).collect()
}

#[test]
fn data_of_any_length_comes_out_as_it_went_in_with_its_sender() {
    for len in lengths() {
        let data = data(len);
        assert_eq!(opened(&sealed(&data), "scout"), Ok((data, Some([1; 32]))));
    }
}

#[test]
fn envelope_that_nobody_signed_opens_as_nobodys() {
    for len in lengths() {
        let bytes = next(&mut session(None, Lifetime::SINGLE), None, &data(len));
        assert_eq!(opened(&bytes, "medic"), Ok((data(len), None)));
    }
}

#[test]
fn envelope_is_longer_by_header_tags_and_signature() {
    let header = sealed(&[]).len() - 16 - 32;
    for len in lengths() {
        assert_eq!(sealed(&data(len)).len(), header + len + 16 * len.div_ceil(CHUNK_LEN) + 16 + 32);
    }
}

#[test]
fn key_that_does_not_fit_is_told_so_and_no_more() {
    assert_eq!(opened(&sealed(b"order"), "cook"), Err("policy not satisfied".into()));
}

#[test]
fn sealer_takes_no_chunk_after_a_short_one_and_none_that_is_empty_or_too_long() {
    let seal = |data: &[&[u8]]| {
        let mut sealer = session(None, Lifetime::SINGLE).message(NOW).unwrap().sealer;
        data.iter().try_for_each(|data| sealer.seal(data).map(|_| ()))
    };
    assert_eq!(seal(&[&[]]), Err(EnvelopeError::ChunkLength));
    assert_eq!(seal(&[&data(CHUNK_LEN + 1)]), Err(EnvelopeError::ChunkLength));
    assert_eq!(seal(&[b"short", b"more"]), Err(EnvelopeError::ChunkLength));
    assert_eq!(seal(&[&data(CHUNK_LEN), b"more"]), Ok(()));
}

#[test]
fn nobody_but_the_sessions_sender_ends_a_message() {
    let finish = |with: Option<&dyn envelope::Signer>, by: Option<&dyn envelope::Signer>| {
        session(with, Lifetime::SINGLE).message(NOW).unwrap().sealer.finish(by, &mut rng()).err()
    };
    let mallory = ToySigner([2; 32]);
    assert_eq!(finish(Some(&ALICE), None), Some(EnvelopeError::WrongSigner));
    assert_eq!(finish(Some(&ALICE), Some(&mallory)), Some(EnvelopeError::WrongSigner));
    assert_eq!(finish(None, Some(&ALICE)), Some(EnvelopeError::WrongSigner));
    assert_eq!(finish(Some(&ALICE), Some(&ALICE)), None);
}

#[test]
fn what_fits_into_memory_is_sealed_and_opened_as_streams_are() {
    for len in lengths() {
        let (data, message) = (data(len), session(Some(&ALICE), Lifetime::SINGLE).message(NOW).unwrap());
        let bytes = envelope::seal_bytes(message, &data, Some(&ALICE), &mut rng()).unwrap();
        assert_eq!(bytes, sealed(&data));
        let (header, chunks) = EnvelopeHeader::decode(&bytes).unwrap();
        let EnvelopeHeader::Opening(opening) = &header else { panic!("no opening") };
        let session = ReceivingSession::open::<Toy>(&PARAMETERS, &"scout".into(), opening).unwrap();
        let open = |chunks: &[u8]| {
            envelope::open_bytes(session.opener(&header).unwrap(), chunks, &known())
                .map(|(data, sender)| (data.to_vec(), sender))
        };
        assert_eq!(open(chunks), Ok((data, Some([1; 32]))));
        assert!(open(&chunks[..chunks.len() - 1]).is_err() && open(&chunks[1..]).is_err());
        assert_eq!(open(&[]), Err(EnvelopeError::Truncated));
    }
}

proptest! {
    #[test]
    fn chunks_are_found_however_the_bytes_are_cut(
        len in 0..3 * SEALED_CHUNK_LEN, trailer in 16..80usize,
        cuts in prop::collection::vec(1..SEALED_CHUNK_LEN, 1..20),
    ) {
        let bytes = data(len);
        let (mut splitter, mut found, mut rest) = (Splitter::new(trailer), Vec::new(), &bytes[..]);
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (mut piece, later) = rest.split_at(rest.len().min(*cut));
            while !piece.is_empty() {
                piece = splitter.push(piece);
                if let Some(chunk) = splitter.chunk() {
                    prop_assert_eq!(chunk.len(), SEALED_CHUNK_LEN);
                    found.extend(chunk);
                }
            }
            rest = later;
        }
        match splitter.finish() {
            Ok((last, end)) => {
                prop_assert_eq!(end.len(), trailer);
                prop_assert!(last.as_ref().is_none_or(|last| last.len() <= SEALED_CHUNK_LEN));
                found.extend(last.into_iter().flatten());
                found.extend(end);
                prop_assert_eq!(found, bytes);
            }
            Err(error) => {
                prop_assert_eq!(error, EnvelopeError::Truncated);
                prop_assert!(len < trailer);
            }
        }
    }
}
