//! Memory that decoding a hostile message takes. A board has 256 KB for everything.

use std::alloc::System;

use cap::Cap;
use quiver_ainq::{Deployment, MasterSecret, Name, Ristretto255};
use quiver_message::Message;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// The longest message that a board takes, in bytes.
const LEN: usize = 16 * 1024;
/// Bounds above all numbers of bodies and of their fields.
const BODIES: usize = 60;
const FIELDS: usize = 24;
/// Fields of the only messages with many small fields, which are for KGCs.
const TO_KGCS: [usize; 1] = [33];

fn varint(mut number: usize, to: &mut Vec<u8>) {
    while number > 0x7f {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// A field with its length in front.
fn field(number: usize, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(content.len() + 6);
    varint(number << 3 | 2, &mut bytes);
    varint(content.len(), &mut bytes);
    bytes.extend_from_slice(content);
    bytes
}

/// Encodes as many empty fields as there is room for.
fn many(number: usize) -> Vec<u8> {
    field(number, &[]).repeat(LEN / 2 - 64)
}

#[test]
fn no_message_makes_its_receiver_allocate_seven_times_its_length() {
    let master = MasterSecret::<Ristretto255>::generate(&mut ChaCha20Rng::seed_from_u64(1));
    let deployment = Deployment::new(Name::new("test").unwrap(), master.public());
    let prefix = field(1, &deployment.fingerprint()[..8]);
    let mut runs = Vec::with_capacity(LEN);
    for start in (0..).step_by(2) {
        if runs.len() > LEN - 64 {
            break;
        }
        varint(start, &mut runs);
        varint(1, &mut runs);
    }
    let mut most = 0;
    let mut decode = |what: [usize; 3], content: Vec<u8>| {
        let message = [&prefix[..], &field(what[0], &content)].concat();
        let before = ALLOCATOR.total_allocated();
        let result = Message::decode(&deployment, &message).map(drop);
        let allocated = ALLOCATOR.total_allocated() - before;
        assert!(allocated <= 7 * LEN, "{allocated} bytes for {what:?}: {result:?}");
        most = most.max(allocated);
    };
    for body in (2..BODIES).filter(|body| !TO_KGCS.contains(body)) {
        for outer in 1..FIELDS {
            decode([body, outer, 0], many(outer));
            for inner in 1..FIELDS {
                // Fields of a part, and numbers one after the other.
                decode([body, outer, inner], field(outer, &many(inner)));
                decode([body, outer, inner], field(outer, &field(inner, &[1; LEN - 64])));
                decode([body, outer, inner], field(outer, &field(inner, &runs)));
            }
        }
    }
    // The bytes, shared; eight for each run of slots, which has three on the wire; the bytes once more to
    // compare with them.
    assert!(most > 4 * LEN, "{most} bytes at most: the longest fields were not read");
}
