//! A KEM without security, whose "policy" is a list of words of which a key must hold one, and a toy
//! signature.

use quiver_abe::AbeError;
use quiver_abe::envelope::{
    self, EnvelopeHeader, Kem, Lifetime, ReceivingSession, SendingSession, Signer, Verifier,
};
use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Hasher, Secret, ct_eq};
use rand_chacha::ChaCha20Rng;
use rand_core::{CryptoRngCore, SeedableRng};

pub(crate) const NOW: u64 = 1_800_000_000;

/// Words, any of which opens. The shared secret is a hash of public bytes.
pub(crate) struct Toy;

impl Kem for Toy {
    type Parameters = [u8; 32];
    type Key = String;
    type Target = Vec<String>;
    type Ciphertext = (Vec<String>, Vec<u8>);

    fn scheme(_: &[u8; 32]) -> &'static str {
        "toy"
    }

    fn encapsulate(
        parameters: &[u8; 32],
        target: &Vec<String>,
        coins: &mut dyn CryptoRngCore,
    ) -> Result<(Vec<u8>, Secret<32>), AbeError> {
        let mut r = [0; 32];
        coins.fill_bytes(&mut r);
        let ciphertext = Writer::new().lp(&Self::encode_target(target)).fixed(&r).finish();
        let shared = Secret::new(Hasher::new("toy").fixed(parameters).lp(&ciphertext).finish());
        Ok((ciphertext, shared))
    }

    fn decode(_: &[u8; 32], bytes: &[u8]) -> Result<Self::Ciphertext, AbeError> {
        let mut reader = Reader::new(bytes);
        let words = String::from_utf8_lossy(reader.lp(1000)?).split(' ').map(String::from).collect();
        reader.array::<32>()?;
        reader.end()?;
        Ok((words, bytes.to_vec()))
    }

    fn target((words, _): &Self::Ciphertext) -> &Vec<String> {
        words
    }

    fn decapsulate(
        parameters: &[u8; 32],
        key: &String,
        (words, bytes): &Self::Ciphertext,
    ) -> Result<Secret<32>, AbeError> {
        if !words.contains(key) {
            return Err(AbeError::NotSatisfied);
        }
        Ok(Secret::new(Hasher::new("toy").fixed(parameters).lp(bytes).finish()))
    }

    fn encode_target(target: &Vec<String>) -> Vec<u8> {
        target.join(" ").into_bytes()
    }
}

/// Signs with a hash of a "secret" that its public key is a hash of.
pub(crate) struct ToySigner(pub(crate) [u8; 32]);

/// Knows the secrets of those it verifies.
pub(crate) struct ToyVerifier(pub(crate) Vec<[u8; 32]>);

fn tag(secret: &[u8; 32], statement: &[u8]) -> Vec<u8> {
    Hasher::new("toy signature").fixed(secret).lp(statement).finish().to_vec()
}

impl Signer for ToySigner {
    fn public(&self) -> Vec<u8> {
        Hasher::new("toy public").fixed(&self.0).finish().to_vec()
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn sign(&self, statement: &[u8], _: &mut dyn CryptoRngCore) -> Vec<u8> {
        tag(&self.0, statement)
    }
}

impl Verifier for ToyVerifier {
    type Sender = [u8; 32];

    fn verify(&self, sender: &[u8], statement: &[u8], signature: &[u8]) -> Option<[u8; 32]> {
        let secret = self.0.iter().find(|secret| ToySigner(**secret).public() == sender)?;
        ct_eq(&tag(secret, statement), signature).then_some(*secret)
    }
}

pub(crate) const ALICE: ToySigner = ToySigner([1; 32]);
pub(crate) const PARAMETERS: [u8; 32] = [9; 32];

pub(crate) fn known() -> ToyVerifier {
    ToyVerifier(vec![[1; 32], [2; 32]])
}

pub(crate) fn rng() -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(4)
}

pub(crate) fn words(text: &str) -> Vec<String> {
    text.split(' ').map(String::from).collect()
}

pub(crate) fn session(signer: Option<&dyn Signer>, lifetime: Lifetime) -> SendingSession {
    session_at(signer, lifetime, NOW, 4)
}

pub(crate) fn session_at(
    signer: Option<&dyn Signer>,
    lifetime: Lifetime,
    now: u64,
    seed: u64,
) -> SendingSession {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let target = words("scout medic");
    SendingSession::begin::<Toy>(&PARAMETERS, &target, Some("alpha"), signer, lifetime, now, &mut rng)
        .unwrap()
}

/// The next message of a session, whole.
pub(crate) fn next(session: &mut SendingSession, signer: Option<&dyn Signer>, data: &[u8]) -> Vec<u8> {
    next_at(NOW, session, signer, data)
}

pub(crate) fn next_at(
    now: u64,
    session: &mut SendingSession,
    signer: Option<&dyn Signer>,
    data: &[u8],
) -> Vec<u8> {
    let mut sealed = Vec::new();
    envelope::io::seal(session.message(now).unwrap(), data, &mut sealed, signer, &mut rng()).unwrap();
    sealed
}

/// A single envelope by Alice.
pub(crate) fn sealed(data: &[u8]) -> Vec<u8> {
    next(&mut session(Some(&ALICE), Lifetime::SINGLE), Some(&ALICE), data)
}

/// Opens an opening message; the error as text.
pub(crate) fn opened(bytes: &[u8], key: &str) -> Result<(Vec<u8>, Option<[u8; 32]>), String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let mut rest = bytes;
    let header = envelope::io::read_header(&mut rest).map_err(|error| text(&error))?;
    let EnvelopeHeader::Opening(opening) = &header else {
        return Err("not an opening".into());
    };
    let session =
        ReceivingSession::open::<Toy>(&PARAMETERS, &key.into(), opening).map_err(|error| text(&error))?;
    let opener = session.opener(&header).map_err(|error| text(&error))?;
    let mut data = Vec::new();
    let sender = envelope::io::open(opener, rest, &mut data, &known()).map_err(|error| text(&error))?;
    Ok((data, sender))
}
