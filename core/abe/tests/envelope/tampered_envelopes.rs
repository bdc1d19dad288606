//! An envelope that is changed anywhere does not open.

use quiver_abe::envelope::{CHUNK_LEN, Lifetime, SEALED_CHUNK_LEN};

use crate::toy::{ALICE, NOW, ToySigner, next, opened, sealed, session, session_at};

#[test]
fn flipping_any_bit_of_a_small_envelope_is_an_error() {
    let good = sealed(b"return to base");
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            assert!(opened(&bad, "scout").is_err(), "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn cutting_a_small_envelope_short_at_any_place_is_an_error() {
    let good = sealed(b"return to base");
    for len in 0..good.len() {
        assert!(opened(&good[..len], "scout").is_err(), "{len} bytes");
    }
}

#[test]
fn bytes_after_an_envelope_are_an_error() {
    for more in [1, 16, 48, 64, SEALED_CHUNK_LEN] {
        let mut longer = sealed(b"return to base");
        longer.resize(longer.len() + more, 0);
        assert!(opened(&longer, "scout").is_err(), "{more} bytes");
    }
}

/// The pieces of an envelope of four chunks of data, the last of 5 bytes: header, chunks, trailer.
fn pieces() -> Vec<Vec<u8>> {
    let data: Vec<u8> = (0..3 * CHUNK_LEN + 5).map(|at| (at / CHUNK_LEN) as u8).collect();
    let bytes = sealed(&data);
    let header = sealed(&[]).len() - 48;
    let (header, rest) = bytes.split_at(header);
    let (chunks, trailer) = rest.split_at(rest.len() - 48);
    let mut pieces = vec![header.to_vec()];
    pieces.extend(chunks.chunks(SEALED_CHUNK_LEN).map(<[u8]>::to_vec));
    pieces.push(trailer.to_vec());
    assert_eq!(pieces.len(), 6);
    pieces
}

#[test]
fn chunks_that_are_missing_moved_repeated_or_of_another_envelope_are_errors() {
    let good = pieces();
    assert!(opened(&good.concat(), "scout").is_ok());
    let refused = |order: &[usize]| {
        let bytes: Vec<u8> = order.iter().flat_map(|piece| good[*piece].clone()).collect();
        assert!(opened(&bytes, "scout").is_err(), "{order:?}");
    };
    refused(&[0, 1, 2, 3, 5]);
    refused(&[0, 1, 2, 4, 5]);
    refused(&[0, 2, 1, 3, 4, 5]);
    refused(&[0, 1, 1, 2, 3, 4, 5]);
    refused(&[0, 1, 2, 3, 4, 4, 5]);
    refused(&[0, 1, 2, 3, 4, 5, 5]);
    refused(&[0, 1, 2, 3, 4]);
    refused(&[0, 5]);
    refused(&[0]);
    let mut other = session_at(Some(&ALICE), Lifetime::SINGLE, NOW, 5);
    let other = next(&mut other, Some(&ALICE), &[0; 3 * CHUNK_LEN + 5]);
    let mut mixed = good.clone();
    mixed[1] = other[good[0].len()..][..SEALED_CHUNK_LEN].to_vec();
    assert!(opened(&mixed.concat(), "scout").is_err());
}

#[test]
fn damage_is_reported_with_the_chunk_it_is_in() {
    for chunk in 0..4 {
        let mut bad = pieces();
        bad[1 + chunk][3] ^= 1;
        assert_eq!(
            opened(&bad.concat(), "scout"),
            Err(format!("chunk {chunk} of the envelope is damaged or out of place"))
        );
    }
}

#[test]
fn envelope_of_a_sender_nobody_knows_is_an_error() {
    let stranger = ToySigner([3; 32]);
    let bytes = next(&mut session(Some(&stranger), Lifetime::SINGLE), Some(&stranger), b"obey");
    assert_eq!(opened(&bytes, "scout"), Err("the envelope's signature does not verify".into()));
}

/// A holder of a fitting key knows the session key of what Alice sealed, and could try to make her signature
/// count for something else. The seed, and with it every key, depends on who is named as the sender, so
/// another envelope results.
#[test]
fn naming_another_sender_of_the_same_length_does_not_open() {
    let good = sealed(b"return to base");
    let alice = quiver_abe::envelope::Signer::public(&ALICE);
    let at = good.windows(32).position(|window| window == alice).unwrap();
    let mut bad = good;
    bad[at..at + 32].copy_from_slice(&quiver_abe::envelope::Signer::public(&ToySigner([2; 32])));
    let text = "the envelope does not open: damaged, or not made for this key";
    assert_eq!(opened(&bad, "scout"), Err(text.into()));
}

#[test]
fn adding_a_word_to_the_policy_does_not_open() {
    let good = sealed(b"return to base");
    let at = good.windows(5).position(|window| window == b"medic").unwrap();
    let mut bad = good;
    bad[at..at + 5].copy_from_slice(b"enemy");
    for key in ["enemy", "scout"] {
        assert!(opened(&bad, key).unwrap_err().contains("does not open"));
    }
    assert_eq!(opened(&bad, "medic"), Err("policy not satisfied".into()));
}

#[test]
fn what_is_no_envelope_is_told_so() {
    for bytes in [&b"hello, world"[..], b"h", b"QvE\x02\0\0\0\x01", b"PK\x03\x04"] {
        assert_eq!(opened(bytes, "scout"), Err("not a Quiver envelope".into()), "{bytes:?}");
    }
    assert_eq!(opened(b"", "scout"), Err("the envelope is truncated".into()));
    assert_eq!(opened(b"QvE\x01\0", "scout"), Err("the envelope is truncated".into()));
    let long = opened(b"QvE\x01\xff\xff\xff\xff", "scout").unwrap_err();
    assert!(long.contains("header too long"), "{long}");
}
