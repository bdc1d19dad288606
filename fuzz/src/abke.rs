//! Attribute-based key exchange: keys, credentials, and every message of either side, in the state that takes
//! it. A value that decodes has one encoding; nothing but the honest message leads to a key.

use std::sync::{Arc, OnceLock};

use quiver_abke::{
    Authority, AuthorityKey, Awaiting, Client, Committed, Credential, ExchangeTerms, Hello, OpenedClient,
    PolicyCircuit, Seeded, UnverifiedCredential, Verifier,
};
use quiver_crypto::Secret;
use quiver_garble::policy::{self, Schema};

use crate::scene::rng;

const TERMS: ExchangeTerms<'_> = ExchangeTerms { policy: &[1; 32], server: b"leader", channel: b"channel" };
const SIGNATURE: &[u8] = b"signed";

fn schema() -> Schema {
    Schema::parse("battery: u2, medic: bool").expect("a schema")
}

fn asked() -> Arc<PolicyCircuit> {
    let policy = policy::Policy::compile("battery >= 2 and not medic", &schema()).expect("a policy");
    Arc::new(PolicyCircuit::new(policy.circuit()).expect("one output"))
}

fn authority() -> Authority {
    Authority::derive(&Secret::new([1; 32]), 1, schema().bits()).expect("three attributes")
}

fn certified() -> Credential {
    let attributes = schema().encode(&[("battery", 3), ("medic", 0)]).expect("values that fit");
    authority().certify(&attributes, &mut rng(90)).expect("as many as there are slots")
}

/// Values that all exchanges have in common.
struct ExchangeParties {
    verifier: Verifier,
    credential: Credential,
    policy: Arc<PolicyCircuit>,
}

/// Values of every exchange, made once.
fn parties() -> &'static ExchangeParties {
    static PARTIES: OnceLock<ExchangeParties> = OnceLock::new();
    PARTIES.get_or_init(|| ExchangeParties {
        verifier: Verifier::new(authority().key().clone()),
        credential: certified(),
        policy: asked(),
    })
}

/// An honest run, stopped where either side waits.
struct ExchangeRun {
    client: Client,
    hello: Vec<u8>,
    offer: Vec<u8>,
    tables: Vec<u8>,
    server: Awaiting,
}

fn run() -> ExchangeRun {
    let (rng, ExchangeParties { verifier, credential, policy }) = (&mut rng(91), parties());
    let key = credential.unlink(rng);
    let (client, hello) = Client::start(&TERMS, policy.clone(), key, rng).expect("as many attributes");
    let read = Hello::decode(&hello, schema().bits()).expect("honest");
    let verified = read.verify(verifier, rng).expect("certified");
    let (mut server, offer) =
        verified.offer(&TERMS, policy.clone(), rng, |_| SIGNATURE.to_vec()).expect("fits");
    let mut tables = Vec::new();
    while let Some(piece) = server.next_tables().expect("a valid program") {
        tables.extend(piece);
    }
    ExchangeRun { client, hello, offer, tables, server: server.finish().expect("all taken") }
}

/// The same, where the client has committed and the server has opened its seeds.
fn committed() -> (Committed, Vec<u8>, Seeded, Vec<u8>) {
    let run = run();
    let mut client = run.client.offer(&run.offer, |_, signature| signature == SIGNATURE).expect("honest");
    client.tables(&run.tables).expect("as many as there are");
    let (client, commitment) = client.commit(&mut rng(92)).expect("all there");
    let (server, seeds) = run.server.commitment(&commitment).expect("a commitment");
    (client, commitment, server, seeds)
}

/// The same, where the client has opened its commitment.
fn opened() -> (OpenedClient, Vec<u8>, Seeded) {
    let (client, _, server, seeds) = committed();
    let (client, opening) = client.open(&seeds, &mut rng(93)).expect("honest seeds");
    (client, opening, server)
}

/// Messages of the honest run. Every run has the same, because all draw the same random numbers.
struct ExchangeMessages {
    hello: Vec<u8>,
    commitment: Vec<u8>,
    seeds: Vec<u8>,
    opening: Vec<u8>,
    confirmation: Vec<u8>,
}

fn honest() -> &'static ExchangeMessages {
    static HONEST: OnceLock<ExchangeMessages> = OnceLock::new();
    HONEST.get_or_init(|| {
        let (_, commitment, _, seeds) = committed();
        let (_, opening, server) = opened();
        let (_, confirmation) = server.opening(&opening).expect("honest");
        ExchangeMessages { hello: run().hello, commitment, seeds, opening, confirmation }
    })
}

/// The authority's public keys.
pub fn authority_key(bytes: &[u8]) {
    if let Ok(key) = AuthorityKey::decode(bytes) {
        assert_eq!(key.encode(), bytes, "two encodings of one key");
    }
}

/// An authority's.
pub fn authority_key_seeds() -> Vec<Vec<u8>> {
    vec![authority().key().encode()]
}

/// A credential, as a drone is given it.
pub fn credential(bytes: &[u8]) {
    let Ok(read) = UnverifiedCredential::decode(bytes) else { return };
    let ExchangeParties { verifier, credential: certified, .. } = parties();
    if let Ok(credential) = read.verify(verifier, &mut rng(94)) {
        assert_eq!(credential.encode().as_slice(), bytes, "two encodings of one credential");
        assert_eq!(
            credential.encode(),
            certified.encode(),
            "a credential that the authority did not certify"
        );
    }
}

/// An honest one.
pub fn credential_seeds() -> Vec<Vec<u8>> {
    vec![parties().credential.encode().to_vec()]
}

/// A client's hello, and the key that it names.
pub fn hello(bytes: &[u8]) {
    let Ok(read) = Hello::decode(bytes, schema().bits()) else { return };
    let verified = read.verify(&parties().verifier, &mut rng(95));
    // Another ephemeral key is another client's with the same key.
    assert_eq!(
        verified.is_ok(),
        bytes[33..] == honest().hello[33..],
        "a key that nobody signed, or one that somebody did"
    );
}

/// An honest one.
pub fn hello_seeds() -> Vec<Vec<u8>> {
    vec![honest().hello.clone()]
}

/// A server's offer to a client that takes any signature: the client commits to any offer, and rejects a
/// wrong one at the end.
pub fn offer(bytes: &[u8]) {
    let run = run();
    let honest = bytes == run.offer;
    let Ok(mut client) = run.client.offer(bytes, |_, _| true) else { return };
    client.tables(&run.tables).expect("as many as there are");
    let (client, commitment) = client.commit(&mut rng(92)).expect("a client that has begun commits");
    let (server, seeds) = run.server.commitment(&commitment).expect("a commitment");
    let agreed = client.open(&seeds, &mut rng(93)).and_then(|(client, opening)| {
        let (_, confirmation) = server.opening(&opening)?;
        client.confirm(&confirmation)
    });
    assert_eq!(agreed.is_ok(), honest, "a key after another offer, or none after the right one");
}

/// An honest one.
pub fn offer_seeds() -> Vec<Vec<u8>> {
    vec![run().offer]
}

/// The garbled circuit.
pub fn tables(bytes: &[u8]) {
    let run = run();
    let mut client = run.client.offer(&run.offer, |_, _| true).expect("honest");
    let taken = client.tables(bytes).is_ok();
    assert_eq!(taken, bytes.len() <= run.tables.len(), "more than there are");
    if taken && client.remaining() == 0 {
        let (client, commitment) = client.commit(&mut rng(92)).expect("all there");
        let (_, seeds) = run.server.commitment(&commitment).expect("a commitment");
        assert_eq!(client.open(&seeds, &mut rng(93)).is_ok(), bytes == run.tables, "another circuit");
    }
}

/// An honest one.
pub fn tables_seeds() -> Vec<Vec<u8>> {
    vec![run().tables]
}

/// The short messages, each in the state that takes its kind. Every other kind is taken to the last state.
pub fn message(bytes: &[u8]) {
    let honest = honest();
    let kind = bytes.first();
    if kind == honest.commitment.first() {
        let taken = run().server.commitment(bytes).is_ok();
        assert_eq!(taken, bytes.len() == honest.commitment.len(), "no commitment");
    } else if kind == honest.seeds.first() {
        let (client, ..) = committed();
        assert_eq!(client.open(bytes, &mut rng(93)).is_ok(), bytes == honest.seeds, "other seeds");
    } else if kind == honest.opening.first() {
        let (_, _, server, _) = committed();
        assert_eq!(server.opening(bytes).is_ok(), bytes == honest.opening, "another opening");
    } else {
        let (client, ..) = opened();
        assert_eq!(client.confirm(bytes).is_ok(), bytes == honest.confirmation, "another confirmation");
    }
}

/// One of each.
pub fn message_seeds() -> Vec<Vec<u8>> {
    let ExchangeMessages { commitment, seeds, opening, confirmation, .. } = honest();
    [commitment, seeds, opening, confirmation].map(Clone::clone).to_vec()
}
