//! Envelopes, byte for byte, as another program makes them from the description: `vectors/envelopes.py`.

use quiver_abe::envelope::{CHUNK_LEN, Lifetime, SendingSession, Signer, seal_bytes};
use quiver_crypto::Hasher;
use rand_core::{CryptoRng, Error, RngCore};

use crate::toy::{ALICE, NOW, PARAMETERS, Toy, opened, rng, words};

const VECTORS: &str = include_str!("../vectors/envelopes.txt");

fn line(name: &str) -> &'static str {
    VECTORS.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = ")).unwrap()
}

/// Gives 0, 1, 2, … once: the seed of an envelope and nothing else.
struct Counting(u8);

impl RngCore for Counting {
    fn next_u32(&mut self) -> u32 {
        unreachable!("a seed is bytes")
    }

    fn next_u64(&mut self) -> u64 {
        unreachable!("a seed is bytes")
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            *byte = self.0;
            self.0 = self.0.checked_add(1).expect("more than a seed is drawn");
        }
        assert!(self.0 <= 32, "more than a seed is drawn");
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.fill_bytes(bytes);
        Ok(())
    }
}

impl CryptoRng for Counting {}

fn begin(signer: Option<&dyn Signer>, lifetime: Lifetime) -> SendingSession {
    let (target, mut seed) = (words("scout medic"), Counting(0));
    let group = signer.is_some().then_some("alpha");
    SendingSession::begin::<Toy>(&PARAMETERS, &target, group, signer, lifetime, NOW, &mut seed).unwrap()
}

fn next(session: &mut SendingSession, signer: Option<&dyn Signer>, data: &[u8]) -> Vec<u8> {
    seal_bytes(session.message(NOW).unwrap(), data, signer, &mut rng()).unwrap()
}

#[test]
fn envelopes_are_those_that_another_program_makes() {
    let mut session = begin(Some(&ALICE), Lifetime::new(86_400, 65_536).unwrap());
    let mut seal = |data: &[u8]| next(&mut session, Some(&ALICE), data);
    assert_eq!(hex::encode(seal(b"go north")), line("opening"));
    assert_eq!(hex::encode(seal(b"")), line("following"));
    let long: Vec<u8> = (0..2 * CHUNK_LEN + 3).map(|at| (at * 31 % 251) as u8).collect();
    let digest = Hasher::new("vector").lp(&seal(&long)).finish();
    assert_eq!(hex::encode(digest), line("digest of a long one"));
    let mut single = begin(None, Lifetime::SINGLE);
    assert_eq!(hex::encode(next(&mut single, None, b"go north")), line("unsigned"));
}

#[test]
fn envelopes_that_another_program_made_open() {
    let open = |name| opened(&hex::decode(line(name)).unwrap(), "medic");
    assert_eq!(open("opening"), Ok((b"go north".to_vec(), Some([1; 32]))));
    assert_eq!(open("unsigned"), Ok((b"go north".to_vec(), None)));
}
