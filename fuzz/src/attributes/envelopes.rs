//! Envelopes: headers have one encoding, and only envelopes of the honest sender open.

use std::sync::LazyLock;

use quiver_abe::envelope::{
    AnyKey, AnyParameters, AnyScheme, EnvelopeError, EnvelopeHeader, EnvelopeTarget, Lifetime,
    ReceivingSession, SendingSession, Signer, Verifier, open_bytes, seal_bytes,
};
use quiver_abe::{FabeoCp, PublicEncoding, Scheme, SecretEncoding, Universe};
use quiver_crypto::Hasher;
use quiver_envelope::{
    AttributeAccess, AttributeKeys, EnvelopeCommand, EnvelopeEvent, EnvelopeMessage, Envelopes,
};
use quiver_message::Message;
use quiver_policy::{AttributeSet, Schema};
use rand_chacha::rand_core::CryptoRngCore;

use crate::decoders;
use crate::scene::{START, Staged, rng};

/// Signs with a hash, and recognises its own signatures: the fuzzer has no key to forge with.
struct Signatory;

impl Signer for Signatory {
    fn public(&self) -> Vec<u8> {
        vec![3; 8]
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn sign(&self, statement: &[u8], _: &mut dyn CryptoRngCore) -> Vec<u8> {
        Hasher::new("fuzz signature").lp(statement).finish().to_vec()
    }
}

impl Verifier for Signatory {
    type Sender = ();

    fn verify(&self, sender: &[u8], statement: &[u8], signature: &[u8]) -> Option<()> {
        let expected = Hasher::new("fuzz signature").lp(statement).finish();
        (sender == self.public() && signature == expected).then_some(())
    }
}

/// A message between drones about envelopes.
pub(crate) fn message<S: Staged>(message: &Message<S>, bytes: &[u8]) {
    decoders::extension::<S, EnvelopeMessage>(message, bytes);
}

/// The part of a drone's machine that seals and opens envelopes.
pub(crate) type EnvelopePart = Envelopes;

/// Only envelopes of the honest run open, and all of those are signed.
pub(crate) fn genuine(event: &EnvelopeEvent) {
    if let EnvelopeEvent::Opened { data, author, .. } = event {
        assert!(author.is_some() && ORDERS.contains(&data.as_slice()), "a forged order");
    }
}

/// Plaintexts that the machines of the honest run seal.
pub(crate) const ORDERS: [&[u8]; 2] = [b"order one", b"order two"];

/// Parameters and a key that fits, for machines.
pub(crate) fn keys() -> EnvelopeCommand {
    static KEYS: LazyLock<AttributeKeys> = LazyLock::new(|| {
        let (parameters, key) = authority();
        AttributeKeys::new(vec![AttributeAccess::new(parameters, Some(key)).expect("of one authority")])
    });
    EnvelopeCommand::Keys(KEYS.clone())
}

/// An order for every holder of the key.
pub(crate) fn order(data: &[u8]) -> EnvelopeCommand {
    let target = EnvelopeTarget::policy("scout", &Schema::new()).expect("a policy");
    let authority = *HONEST.parameters.authority().as_bytes();
    EnvelopeCommand::Seal { authority, target, data: data.to_vec(), signed: true }
}

fn authority() -> (AnyParameters, AnyKey) {
    let (mut rng, schema) = (rng(50), Schema::new());
    let (parameters, master) = FabeoCp::setup(&Universe::Open, &mut rng).expect("an authority");
    let set = AttributeSet::parse("scout", &schema).expect("attributes");
    let key = FabeoCp::derive(&parameters, &master, &set, &mut rng).expect("a key");
    let key = AnyKey::decode(FabeoCp::ID, &key.encode()).expect("a key");
    (AnyParameters::decode(FabeoCp::ID, &parameters.encode()).expect("parameters"), key)
}

/// A session of two messages, and what opens it.
struct HonestSession {
    parameters: AnyParameters,
    key: AnyKey,
    sealed: [Vec<u8>; 2],
}

static HONEST: LazyLock<HonestSession> = LazyLock::new(|| {
    let (mut rng, (parameters, key)) = (rng(51), authority());
    let target = EnvelopeTarget::policy("scout", &Schema::new()).expect("a policy");
    let lifetime = Lifetime::default();
    let begun = SendingSession::begin::<AnyScheme>(
        &parameters,
        &target,
        Some("alpha"),
        Some(&Signatory),
        lifetime,
        START,
        &mut rng,
    );
    let mut session = begun.expect("a session");
    let sealed = [&b"go north"[..], b"go on"].map(|data| {
        let message = session.message(START).expect("a message");
        seal_bytes(message, data, Some(&Signatory), &mut rng).expect("an envelope")
    });
    HonestSession { parameters, key, sealed }
});

/// Headers, and what follows them.
pub fn header(bytes: &[u8]) {
    let told = EnvelopeHeader::len_of(bytes);
    let Ok((header, rest)) = EnvelopeHeader::decode(bytes) else { return };
    let used = bytes.len() - rest.len();
    assert_eq!(header.encode(), bytes[..used], "two encodings of one header");
    assert_eq!(told, Ok(Some(used)));
}

/// Whole envelopes, opened with a key that fits.
pub fn envelope(bytes: &[u8]) {
    let honest = &*HONEST;
    let opened = open(honest, bytes);
    assert_eq!(opened.is_ok(), honest.sealed.iter().any(|sealed| sealed == bytes), "{opened:?}");
}

fn open(honest: &HonestSession, bytes: &[u8]) -> Result<Vec<u8>, EnvelopeError> {
    let (header, chunks) = EnvelopeHeader::decode(bytes)?;
    let opening = match &header {
        EnvelopeHeader::Opening(opening) => opening.clone(),
        EnvelopeHeader::Following(_) => match EnvelopeHeader::decode(&honest.sealed[0])?.0 {
            EnvelopeHeader::Opening(opening) => opening,
            EnvelopeHeader::Following(_) => return Err(EnvelopeError::UnknownSession),
        },
    };
    let session = ReceivingSession::open::<AnyScheme>(&honest.parameters, &honest.key, &opening)?;
    let (data, sender) = open_bytes(session.opener(&header)?, chunks, &Signatory)?;
    assert_eq!(sender, Some(()), "unsigned, and yet it names a sender");
    Ok(data.to_vec())
}

/// Messages of the session, both of them.
pub fn envelope_seeds() -> Vec<Vec<u8>> {
    HONEST.sealed.to_vec()
}
