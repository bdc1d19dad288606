//! Files: made, opened, and damaged in every place.

#[path = "support/kgc.rs"]
mod kgc;

use std::io::{self, Read, Write};

use kgc::Kgc;
use proptest::prelude::*;
use quiver_age::{
    EncryptingWriter, Error, Format, Identity, RECIPIENTS_LIMIT, Recipient, SealedFile, encrypt,
};

const CHUNK: usize = 64 * 1024;
const TAG: usize = 16;
const PHASE: &str = "mission/alpha/phase-2";
const DAWN: &str = "not-before/2026-12-01T06:00:00Z";

fn sealed(recipients: &[Recipient], format: Format, plaintext: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let count = encrypt(recipients, format, plaintext, &mut file).expect("encrypted");
    assert_eq!(count, plaintext.len() as u64);
    file
}

/// Opens, and returns what came out before the error, if there was one.
fn open(file: &[u8], identity: &Identity) -> (Vec<u8>, Result<u64, Error>) {
    let mut out = Vec::new();
    let opened = SealedFile::read(file).and_then(|sealed| sealed.open(identity));
    let result = opened.and_then(|plaintext| plaintext.copy_to(&mut out));
    (out, result)
}

fn content(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 7 + index / CHUNK) as u8).collect()
}

/// Offset of the content.
fn payload(file: &[u8]) -> usize {
    let mac = file.windows(5).position(|window| window == b"\n--- ").expect("a MAC");
    mac + 1 + file[mac + 1..].iter().position(|&byte| byte == b'\n').expect("a line") + 1 + 16
}

/// Made by `rage` 0.12.1 and the first version of the plugin, armoured, for [`PHASE`] and [`DAWN`] under the
/// master key 5.
const FROM_RAGE: &[u8] = include_bytes!("vectors/rage.age");

#[test]
fn file_that_rage_made_once_opens_for_ever() {
    for condition in [PHASE, DAWN] {
        let (out, result) = open(FROM_RAGE, &Kgc::new(5).identity(&[condition]));
        assert_eq!(result.expect("opens"), 31);
        assert_eq!(out, b"Advance to the river and hold.\n");
    }
}

#[test]
fn whatever_fits_into_chunks_or_not_comes_back() {
    let kgc = Kgc::new(5);
    let (recipient, identity) = (kgc.recipient(PHASE), kgc.identity(&[PHASE]));
    for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 2 * CHUNK + 17] {
        for format in [Format::Binary, Format::Armoured] {
            let plaintext = content(length);
            let file = sealed(std::slice::from_ref(&recipient), format, &plaintext);
            assert_eq!(file.starts_with(b"-----BEGIN AGE"), format == Format::Armoured);
            let (out, result) = open(&file, &identity);
            assert_eq!(result.expect("opens"), length as u64);
            assert!(out == plaintext, "{length} bytes, {format:?}");
        }
    }
}

#[test]
fn key_of_any_condition_opens() {
    let (kgc, other) = (Kgc::new(5), Kgc::new(6));
    let recipients = [kgc.recipient(PHASE), kgc.recipient(DAWN), other.recipient(PHASE)];
    let file = sealed(&recipients, Format::Binary, b"orders");
    for identity in [kgc.identity(&[PHASE]), kgc.identity(&["mission/z", DAWN]), other.identity(&[PHASE])] {
        assert_eq!(open(&file, &identity).0, b"orders");
    }
    let read = SealedFile::read(&file[..]).expect("a header");
    let conditions: Vec<_> = read.keys().iter().map(|key| key.condition.as_str()).collect();
    assert_eq!(conditions, [PHASE, DAWN, PHASE]);
}

#[test]
fn stanza_that_does_not_open_leaves_other_identities_their_try() {
    let kgc = Kgc::new(5);
    let file_key = age_core::format::FileKey::new(Box::new([7; 16]));
    let mut stanza = kgc.recipient(PHASE).wrap(&file_key).expect("a stanza");
    *stanza.body.last_mut().expect("a body") ^= 1;
    let identity = kgc.identity(&[PHASE]);
    assert!(matches!(identity.unwrap(&stanza), Some(Err(Error::AlteredHeader))));
    // Any result but `None` would end the search, although another identity could open the file.
    assert!(age::Identity::unwrap_stanza(&identity, &stanza).is_none());
}

#[test]
fn missing_keys_and_other_masters_are_told_apart() {
    let (kgc, other) = (Kgc::new(5), Kgc::new(6));
    let file = sealed(&[kgc.recipient(PHASE), kgc.recipient(DAWN)], Format::Binary, b"orders");
    let (out, result) = open(&file, &kgc.identity(&["mission/alpha/phase-3"]));
    assert!(matches!(result, Err(Error::NoKey { conditions }) if conditions == [PHASE, DAWN]));
    assert!(out.is_empty());
    let (out, result) = open(&file, &other.identity(&[PHASE]));
    let (found, own) = match result {
        Err(Error::OtherMaster { found, own }) => (found, own),
        other => panic!("{other:?}"),
    };
    assert_eq!(found, [hex::encode(kgc.master().fingerprint())]);
    assert_eq!(own, hex::encode(other.master().fingerprint()));
    assert!(out.is_empty());
}

#[test]
fn files_for_keys_of_other_kinds_are_told_apart() {
    let recipient = age::x25519::Identity::generate().to_public();
    let encryptor = age::Encryptor::with_recipients(std::iter::once(&recipient as _)).expect("a recipient");
    let mut file = Vec::new();
    encryptor.wrap_output(&mut file).expect("header").finish().expect("content");
    assert!(matches!(SealedFile::read(&file[..]).err(), Some(Error::NotToConditions)));
}

#[test]
fn file_may_be_for_keys_of_other_kinds_as_well() {
    let (kgc, native) = (Kgc::new(5), age::x25519::Identity::generate());
    let recipients: [&dyn age::Recipient; 2] = [&native.to_public(), &kgc.recipient(PHASE)];
    let encryptor = age::Encryptor::with_recipients(recipients.into_iter()).expect("recipients");
    let mut file = Vec::new();
    let mut writer = encryptor.wrap_output(&mut file).expect("header");
    writer.write_all(b"orders").and_then(|()| writer.finish().map(drop)).expect("content");
    assert_eq!(open(&file, &kgc.identity(&[PHASE])).0, b"orders");
    let decryptor = age::Decryptor::new(&file[..]).expect("header");
    let mut out = Vec::new();
    decryptor.decrypt(std::iter::once(&native as _)).expect("key").read_to_end(&mut out).expect("content");
    assert_eq!(out, b"orders");
}

#[test]
fn nobody_and_too_many_are_no_recipients() {
    let recipient = Kgc::new(5).recipient(PHASE);
    let refused = EncryptingWriter::new(&[], Format::Binary, io::sink()).err();
    assert!(matches!(refused, Some(Error::NoRecipients)));
    let many = vec![recipient; RECIPIENTS_LIMIT + 1];
    let refused = EncryptingWriter::new(&many, Format::Binary, io::sink()).err();
    assert!(matches!(refused, Some(Error::TooManyRecipients)));
}

#[test]
fn as_many_recipients_as_there_may_be_with_the_longest_conditions_fit_a_header() {
    let kgc = Kgc::new(5);
    let texts: Vec<_> = (0..RECIPIENTS_LIMIT).map(|number| format!("mission/{number:0>247}")).collect();
    assert_eq!(texts[0].len(), 255);
    let recipients: Vec<_> = texts.iter().map(|text| kgc.recipient(text)).collect();
    let file = sealed(&recipients, Format::Armoured, b"orders");
    assert_eq!(open(&file, &kgc.identity(&[texts.last().expect("many")])).0, b"orders");
}

#[test]
fn header_altered_in_any_byte_opens_nothing() {
    let kgc = Kgc::new(5);
    let identity = kgc.identity(&[PHASE]);
    let file = sealed(&[kgc.recipient(PHASE), kgc.recipient(DAWN)], Format::Binary, b"orders");
    for place in 0..payload(&file) {
        for change in [0x01, 0x20, 0x80] {
            let mut altered = file.clone();
            altered[place] ^= change;
            let (out, result) = open(&altered, &identity);
            assert!(out.is_empty() && result.is_err(), "byte {place} ^ {change}");
        }
    }
}

#[test]
fn header_cut_anywhere_is_no_header() {
    let kgc = Kgc::new(5);
    let file = sealed(&[kgc.recipient(PHASE)], Format::Binary, b"");
    let nonce = payload(&file) - 16;
    for length in 0..nonce {
        let error = SealedFile::read(&file[..length]).err();
        // Text shorter than the first line's beginning could be anything.
        let told = match error {
            Some(Error::NotAnAgeFile) => length < 19,
            Some(Error::DamagedHeader) => length >= 19,
            _ => false,
        };
        assert!(told, "{length} bytes: {error:?}");
    }
    for length in nonce..file.len() {
        let (out, result) = open(&file[..length], &kgc.identity(&[PHASE]));
        assert!(matches!(result, Err(Error::Damaged { genuine: 0 })), "{length} bytes");
        assert!(out.is_empty());
    }
}

/// The number of genuine bytes in the error is the number of bytes that were read.
fn damaged(file: &[u8], identity: &Identity, plaintext: &[u8]) -> usize {
    let (out, result) = open(file, identity);
    assert!(matches!(result, Err(Error::Damaged { genuine }) if genuine == out.len() as u64), "{result:?}");
    assert!(plaintext.starts_with(&out));
    out.len()
}

#[test]
fn content_cut_at_or_beside_a_border_of_chunks_gives_the_chunks_before_and_an_error() {
    let kgc = Kgc::new(5);
    let identity = kgc.identity(&[PHASE]);
    // The last chunk is short, or full.
    for length in [2 * CHUNK + 100, 3 * CHUNK] {
        let plaintext = content(length);
        let file = sealed(&[kgc.recipient(PHASE)], Format::Binary, &plaintext);
        let start = payload(&file);
        for chunk in 0..=2 {
            let border = start + chunk * (CHUNK + TAG);
            for cut in [border.max(start + 1) - 1, border, border + 1, border + TAG, border + TAG + 1] {
                let whole = (cut - start) / (CHUNK + TAG);
                assert_eq!(damaged(&file[..cut], &identity, &plaintext), whole * CHUNK, "cut at {cut}");
            }
        }
        let end = file.len();
        assert_eq!(damaged(&file[..end - 1], &identity, &plaintext), 2 * CHUNK);
        let longer = [&file[..], &[0]].concat();
        // A full last chunk is genuine by itself; that something follows is an error all the same.
        let genuine = damaged(&longer, &identity, &plaintext);
        assert_eq!(genuine, if length == 3 * CHUNK { length } else { 2 * CHUNK });
    }
}

#[test]
fn chunks_in_another_order_twice_or_left_out_are_refused() {
    let kgc = Kgc::new(5);
    let identity = kgc.identity(&[PHASE]);
    let plaintext = content(2 * CHUNK + 100);
    let file = sealed(&[kgc.recipient(PHASE)], Format::Binary, &plaintext);
    let (head, body) = file.split_at(payload(&file));
    let chunks: Vec<_> = body.chunks(CHUNK + TAG).collect();
    for (order, genuine) in
        [(vec![1, 0, 2], 0), (vec![0, 0, 1, 2], 1), (vec![0, 2], 1), (vec![0, 1, 2, 2], 2)]
    {
        let content = order.iter().flat_map(|&place: &usize| chunks[place].iter().copied());
        let altered: Vec<_> = head.iter().copied().chain(content).collect();
        assert_eq!(damaged(&altered, &identity, &plaintext), genuine * CHUNK, "{order:?}");
    }
}

#[test]
fn header_without_end_is_not_read_to_its_end() {
    struct Endless(u64);
    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0 += buffer.len() as u64;
            buffer.fill(b'a');
            Ok(buffer.len())
        }
    }
    for start in ["age-encryption.org/v1\n-> ", "-----BEGIN AGE ENCRYPTED FILE-----\n"] {
        let mut endless = Endless(0);
        let refused = SealedFile::read(start.as_bytes().chain(&mut endless)).err();
        assert!(matches!(refused, Some(Error::HeaderTooLong { .. } | Error::DamagedHeader)), "{refused:?}");
        assert!(endless.0 < 100_000, "{} bytes were read", endless.0);
    }
    let lines = "-> a\n\n".repeat(2000);
    let refused = SealedFile::read(format!("age-encryption.org/v1\n{lines}").as_bytes()).err();
    assert!(matches!(refused, Some(Error::HeaderTooLong { .. })), "{refused:?}");
}

#[test]
fn whose_fault_it_was_is_told() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }
    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let kgc = Kgc::new(5);
    let recipients = [kgc.recipient(PHASE)];
    let read = encrypt(&recipients, Format::Binary, Broken, io::sink());
    assert!(matches!(read, Err(Error::Read(error)) if error.kind() == io::ErrorKind::PermissionDenied));
    let written = encrypt(&recipients, Format::Binary, &b"orders"[..], Broken);
    assert!(matches!(written, Err(Error::Write(error)) if error.kind() == io::ErrorKind::StorageFull));
    let file = sealed(&recipients, Format::Binary, b"orders");
    let opened = SealedFile::read((&file[..payload(&file) + 3]).chain(Broken)).expect("a header");
    let read = opened.open(&kgc.identity(&[PHASE])).and_then(|plaintext| plaintext.copy_to(io::sink()));
    assert!(matches!(read, Err(Error::Read(error)) if error.kind() == io::ErrorKind::PermissionDenied));
    let opened = SealedFile::read(&file[..]).expect("a header").open(&kgc.identity(&[PHASE])).expect("a key");
    let written = opened.copy_to(Broken);
    assert!(matches!(written, Err(Error::Write(error)) if error.kind() == io::ErrorKind::StorageFull));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn content_altered_anywhere_gives_no_byte_of_that_chunk(
        length in 1usize..3 * CHUNK, place in any::<prop::sample::Index>(), change in 1u8..
    ) {
        let kgc = Kgc::new(5);
        let plaintext = content(length);
        let mut file = sealed(&[kgc.recipient(PHASE)], Format::Binary, &plaintext);
        let start = payload(&file);
        let place = start + place.index(file.len() - start);
        file[place] ^= change;
        let genuine = damaged(&file, &kgc.identity(&[PHASE]), &plaintext);
        prop_assert_eq!(genuine, (place - start) / (CHUNK + TAG) * CHUNK);
    }

    #[test]
    fn armour_altered_anywhere_gives_nothing_that_is_not_genuine(
        place in any::<prop::sample::Index>(), change in 1u8..128
    ) {
        let kgc = Kgc::new(5);
        let mut file = sealed(&[kgc.recipient(PHASE)], Format::Armoured, b"orders");
        let place = place.index(file.len());
        file[place] ^= change;
        let (out, result) = open(&file, &kgc.identity(&[PHASE]));
        // White space at the end is ignored.
        if result.is_ok() {
            prop_assert_eq!(&out, b"orders");
            prop_assert!(place + 1 >= file.len(), "byte {} became {:?}", place, file[place] as char);
        } else {
            prop_assert!(out.is_empty());
        }
    }

    #[test]
    fn any_bytes_are_no_file(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(SealedFile::read(&bytes[..]).is_err());
        let behind_a_start = [b"age-encryption.org/v1\n-> quiver-ibe ", &bytes[..]].concat();
        prop_assert!(SealedFile::read(&behind_a_start[..]).is_err());
    }

    #[test]
    fn content_in_pieces_of_any_size_makes_the_same_file(cuts in prop::collection::vec(1usize..70_000, 1..6)) {
        let kgc = Kgc::new(5);
        let plaintext = content(cuts.iter().sum());
        let mut writer = EncryptingWriter::new(&[kgc.recipient(PHASE)], Format::Binary, Vec::new()).expect("a header");
        let mut rest = &plaintext[..];
        for cut in cuts {
            let (piece, after) = rest.split_at(cut);
            writer.write_all(piece).expect("memory");
            rest = after;
        }
        let file = writer.finish().expect("memory");
        prop_assert_eq!(open(&file, &kgc.identity(&[PHASE])).0, plaintext);
    }
}
