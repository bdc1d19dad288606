//! An authority, a drone, a leader and a policy for tests of the exchange.

use std::sync::Arc;

use quiver_abke::{
    Authority, Awaiting, Client, Committed, Credential, Error, ExchangeTerms, Hello, OpenedClient,
    PolicyCircuit, Seeded, Session, Verifier,
};
use quiver_crypto::{Hasher, Secret};
use quiver_garble::policy::Schema;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;

pub(crate) const TERMS: ExchangeTerms<'_> =
    ExchangeTerms { policy: &[1; 32], server: b"leader 7", channel: b"channel 1" };
const FIELDS: &str = "battery: u4, medic: bool, x: i3";

/// Attributes in all.
pub(crate) const M: usize = 8;

pub(crate) fn rng(seed: u8) -> ChaCha20Rng {
    ChaCha20Rng::from_seed([seed; 32])
}

pub(crate) fn authority() -> Authority {
    Authority::derive(&Secret::new([1; 32]), 3, M).unwrap()
}

pub(crate) fn verifier() -> Verifier {
    Verifier::new(authority().key().clone())
}

pub(crate) fn policy(text: &str) -> Arc<PolicyCircuit> {
    let schema = Schema::parse(FIELDS).unwrap();
    let policy = quiver_garble::policy::Policy::compile(text, &schema).unwrap();
    Arc::new(PolicyCircuit::new(policy.circuit()).unwrap())
}

pub(crate) fn geofence() -> Arc<PolicyCircuit> {
    policy("battery >= 9 and (medic or x * x < 4)")
}

/// Attributes of a drone: battery, medic, x.
pub(crate) fn attributes(battery: i128, medic: bool, x: i128) -> Vec<bool> {
    let values = [("battery", battery), ("medic", i128::from(medic)), ("x", x)];
    Schema::parse(FIELDS).unwrap().encode(&values).unwrap()
}

pub(crate) fn credential(attributes: &[bool]) -> Credential {
    authority().certify(attributes, &mut rng(2)).unwrap()
}

/// A credential that the geofence admits.
pub(crate) fn inside() -> Credential {
    credential(&attributes(12, false, -1))
}

/// One that it does not.
pub(crate) fn outside() -> Credential {
    credential(&attributes(12, false, 3))
}

pub(crate) fn sign(server: &[u8], context: &[u8; 32]) -> Vec<u8> {
    Hasher::new("a signature").lp(server).fixed(context).finish().to_vec()
}

pub(crate) fn is_signed(context: &[u8; 32], signature: &[u8]) -> bool {
    sign(TERMS.server, context) == signature
}

/// Client and server after an offer, and their messages.
pub(crate) struct Offered {
    pub(crate) client: Client,
    pub(crate) hello: Vec<u8>,
    pub(crate) offer: Vec<u8>,
    pub(crate) tables: Vec<u8>,
    pub(crate) server: Awaiting,
    seed: u8,
}

pub(crate) fn offered(credential: &Credential, seed: u8) -> Offered {
    offered_in(credential, &TERMS, &geofence(), seed)
}

pub(crate) fn offered_in(
    credential: &Credential,
    terms: &ExchangeTerms<'_>,
    policy: &Arc<PolicyCircuit>,
    seed: u8,
) -> Offered {
    let rng = &mut rng(seed);
    let key = credential.unlink(rng);
    let (client, hello) = Client::start(terms, Arc::clone(policy), key, rng).unwrap();
    let (offer, tables, server) = answer(&hello, terms, policy, rng);
    Offered { client, hello, offer, tables, server, seed }
}

pub(crate) fn answer(
    hello: &[u8],
    terms: &ExchangeTerms<'_>,
    policy: &Arc<PolicyCircuit>,
    rng: &mut ChaCha20Rng,
) -> (Vec<u8>, Vec<u8>, Awaiting) {
    let verified = Hello::decode(hello, M).unwrap().verify(&verifier(), rng).unwrap();
    let (mut garbling, offer) =
        verified.offer(terms, Arc::clone(policy), rng, |context| sign(terms.server, context)).unwrap();
    let mut tables = Vec::new();
    while let Some(piece) = garbling.next_tables().unwrap() {
        tables.extend(piece);
    }
    (offer, tables, garbling.finish().unwrap())
}

/// Client and server behind the seeds.
pub(crate) struct Committing {
    pub(crate) client: Committed,
    pub(crate) commitment: Vec<u8>,
    pub(crate) seeds: Vec<u8>,
    pub(crate) server: Seeded,
}

impl Offered {
    pub(crate) fn commit(self) -> Committing {
        let mut evaluating = self.client.offer(&self.offer, is_signed).unwrap();
        evaluating.tables(&self.tables).unwrap();
        let (client, commitment) = evaluating.commit(&mut rng(50 + self.seed)).unwrap();
        let (server, seeds) = self.server.commitment(&commitment).unwrap();
        Committing { client, commitment, seeds, server }
    }
}

/// Client and server behind the opening.
pub(crate) struct Opening {
    pub(crate) client: OpenedClient,
    pub(crate) opening: Vec<u8>,
    pub(crate) server: Seeded,
}

impl Committing {
    pub(crate) fn open(self) -> Opening {
        let (client, opening) = self.client.open(&self.seeds, &mut rng(51)).unwrap();
        Opening { client, opening, server: self.server }
    }
}

impl Opening {
    pub(crate) fn confirm(self) -> Result<(Session, Session), Error> {
        let (server, confirmation) = self.server.opening(&self.opening)?;
        Ok((self.client.confirm(&confirmation)?, server))
    }
}

/// The places of the parts of an offer with a signature of 32 bytes.
pub(crate) struct Layout;

impl Layout {
    pub(crate) const SERVER: usize = 1;
    pub(crate) const NONCE: usize = 33;
    pub(crate) const SIGNATURE: usize = 69;
    pub(crate) const CIPHERTEXT: usize = 101;
    pub(crate) const ONE: usize = Self::CIPHERTEXT + 192 * (M + 1);
    pub(crate) const LABELS: usize = Self::ONE + 16;
    pub(crate) const LEN: usize = Self::LABELS + 32 * M;
    /// c_{j,b}
    pub(crate) const fn half(attribute: usize, bit: usize) -> usize {
        Self::CIPHERTEXT + 192 + 192 * attribute + 96 * bit
    }
}

/// Bytes of a key, in a hello behind its kind and A_C.
pub(crate) const KEY: usize = 33;
