//! Compares datagrams with those that `tests/vectors/make.py` made from docs/protocol.md alone.

use alloc::string::String;
use alloc::vec::Vec;

use quiver_ainq::traffic::Start;
use quiver_ainq::{Epoch, Slot};
use quiver_crypto::Secret;

use crate::body::manifest_hash;
use crate::cipher::{DatagramNonce, open, open_full, seal, seal_full};
use crate::header::{Datagram, DatagramKind, Hint, Number, begin, begin_announcement};

const VECTORS: &str = include_str!("../tests/vectors/datagrams.txt");

fn lines(what: &str) -> Vec<Vec<&'static str>> {
    let lines = VECTORS.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let lines: Vec<_> = lines.filter(|line| line.first() == Some(&what)).collect();
    assert!(lines.len() > 1, "no vectors of {what}");
    lines
}

fn key(text: &str) -> Secret<16> {
    Secret::new(hex::decode(text).unwrap().try_into().unwrap())
}

fn hint(counter: &str) -> Hint {
    Hint::of(&Epoch { term: 1 << 16, counter: counter.parse().unwrap() })
}

fn kind(text: &str) -> DatagramKind {
    match text {
        "single" => DatagramKind::Single,
        "batch" => DatagramKind::Batch,
        "signed-single" => DatagramKind::SignedSingle,
        "signed-batch" => DatagramKind::SignedBatch,
        "again" => DatagramKind::Again,
        "signed-again" => DatagramKind::SignedAgain,
        "manifest" => DatagramKind::Manifest,
        _ => panic!("{text}"),
    }
}

#[test]
fn datagrams_are_those_of_another_implementation() {
    for line in lines("payloads") {
        let [_, secret, named, epoch, slot, counter, body, expected] = line[..] else { panic!("{line:?}") };
        let (kind, counter, slot): (_, u32, Slot) =
            (kind(named), counter.parse().unwrap(), slot.parse().unwrap());
        let body = hex::decode(body).unwrap();
        let mut bytes = begin(kind, hint(epoch), slot, counter);
        let header = bytes.len();
        bytes.extend_from_slice(&body);
        let nonce = DatagramNonce { signed: kind.is_signed(), counter };
        let sealed = seal(&key(secret), nonce, bytes, header);
        assert_eq!(hex::encode(&sealed), expected);
        let read = Datagram::read(&sealed).unwrap();
        assert_eq!((read.kind, read.slot, read.number), (kind, slot, Number::Payloads(counter as u16)));
        assert_eq!(open(&key(secret), nonce, read.header, read.sealed).unwrap().to_vec(), body);
    }
}

#[test]
fn announcements_are_those_of_another_implementation() {
    for line in lines("announcement") {
        let [_, secret, epoch, slot, boot, salt, number, body, expected] = line[..] else {
            panic!("{line:?}")
        };
        let salt = hex::decode(salt).unwrap().try_into().unwrap();
        let start = Start { slot: slot.parse().unwrap(), boot_no: boot.parse().unwrap(), salt };
        let (number, body) = (number.parse().unwrap(), hex::decode(body).unwrap());
        let mut bytes = begin_announcement(hint(epoch), &start, number);
        let header = bytes.len();
        bytes.extend_from_slice(&body);
        let nonce = DatagramNonce { signed: false, counter: number };
        let sealed = seal_full(&key(secret), nonce, bytes, header);
        assert_eq!(hex::encode(&sealed), expected);
        let read = Datagram::read(&sealed).unwrap();
        assert_eq!(read.number, Number::Announcement { start, number });
        assert_eq!(open_full(&key(secret), nonce, read.header, read.sealed).unwrap().to_vec(), body);
    }
}

#[test]
fn hashes_of_manifests_are_those_of_another_implementation() {
    for line in lines("hash") {
        let [_, code, counter, body, expected] = line[..] else { panic!("{line:?}") };
        let kind = if code == "0" { DatagramKind::Single } else { DatagramKind::Batch };
        let hash = manifest_hash(kind, counter.parse().unwrap(), &hex::decode(body).unwrap());
        let shown: String = hex::encode(hash);
        assert_eq!(shown, expected);
    }
}
