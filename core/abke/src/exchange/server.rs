//! The server of the exchange, one type per step.

use alloc::sync::Arc;
use alloc::vec::Vec;

use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Digest, Secret, Zeroizing, ct_eq};
use quiver_garble::Label;
use quiver_garble::label::LABEL_LEN;
use rand_core::CryptoRngCore;

use super::context::{Ephemeral, EphemeralSecret};
use super::labels::{self, MASKED_LEN};
use super::session::{Agreed, Transcript, commit, offer_digest};
use super::tables::TableGarbler;
use super::{ExchangeMessageKind, ExchangeTerms, MAX_SIGNATURE, PolicyCircuit, Session};
use crate::{AbkeCiphertext, Error, PublicKey, Randomness, UnverifiedPublicKey, Verifier};

/// A hello whose key is not verified yet.
pub struct Hello {
    client: Ephemeral,
    key: UnverifiedPublicKey,
}

impl Hello {
    /// Bytes of a hello for so many attributes.
    pub const fn encoded_len(attributes: usize) -> usize {
        33 + UnverifiedPublicKey::encoded_len(attributes)
    }

    /// Reads a hello. The length is looked at before anything is computed.
    ///
    /// # Errors
    /// [`Error::Unexpected`], [`Error::Malformed`], [`Error::InvalidPoint`].
    pub fn decode(hello: &[u8], attributes: usize) -> Result<Self, Error> {
        let mut reader = Reader::new(ExchangeMessageKind::Hello.body(hello)?);
        if hello.len() != Self::encoded_len(attributes) {
            return Err(Error::Malformed("a hello of another length"));
        }
        let client = Ephemeral(reader.array()?);
        // The identity as A_C would make the shared secret public.
        client.point()?;
        let key = UnverifiedPublicKey::decode(reader.take(reader.remaining())?, attributes)?;
        Ok(Self { client, key })
    }

    /// Verifies one.
    ///
    /// # Errors
    /// As [`Verifier::verify`].
    pub fn verify(self, verifier: &Verifier, rng: &mut dyn CryptoRngCore) -> Result<VerifiedHello, Error> {
        Ok(VerifiedHello { client: self.client, key: verifier.verify(self.key, rng)? })
    }

    /// Verifies many, in far less than the time that each alone would take.
    pub fn verify_batch(
        hellos: Vec<Self>,
        verifier: &Verifier,
        rng: &mut dyn CryptoRngCore,
    ) -> Vec<Result<VerifiedHello, Error>> {
        let (clients, keys): (Vec<_>, Vec<_>) =
            hellos.into_iter().map(|hello| (hello.client, hello.key)).unzip();
        let verdicts = verifier.verify_batch(keys, rng);
        clients
            .into_iter()
            .zip(verdicts)
            .map(|(client, key)| Ok(VerifiedHello { client, key: key? }))
            .collect()
    }
}

/// A hello whose key the authority signed.
pub struct VerifiedHello {
    client: Ephemeral,
    key: PublicKey,
}

impl VerifiedHello {
    /// Makes an offer. `sign` gets ctx, which covers the whole run, and returns the signature on it.
    ///
    /// # Errors
    /// [`Error::Attributes`] if the policy is not over as many as the key has; [`Error::Malformed`] for a
    /// signature of more than [`MAX_SIGNATURE`] bytes.
    pub fn offer(
        self,
        terms: &ExchangeTerms<'_>,
        policy: Arc<PolicyCircuit>,
        rng: &mut dyn CryptoRngCore,
        sign: impl FnOnce(&Digest) -> Vec<u8>,
    ) -> Result<(Garbling, Vec<u8>), Error> {
        let Self { client, key } = self;
        let attributes = key.attributes();
        if policy.attributes() != attributes {
            return Err(Error::Attributes { wanted: policy.attributes(), found: attributes });
        }
        // A_S and the nonce are fresh, and in ctx, so no offer serves two runs.
        let secret = EphemeralSecret::random(rng);
        let mut nonce = [0; 32];
        rng.fill_bytes(&mut nonce);
        let begun = terms.begin(&policy, &key.authority(), &key.digest(), &client);
        let context = begun.complete(secret.public(), &nonce);
        let signature = sign(&context);
        if signature.len() > MAX_SIGNATURE {
            return Err(Error::Malformed("a signature of more bytes than there may be"));
        }

        let seeds = Seeds { encryption: Secret::random(rng), garbling: Secret::random(rng) };
        // Everything garbled and encrypted follows from the two seeds, which message 4 opens.
        let randomness = Randomness::derive(&seeds.encryption, &context, attributes);
        let plaintexts = randomness.plaintexts();
        let garbler = labels::garbler(&policy, &seeds.garbling, &context);
        let ciphertext = AbkeCiphertext::encrypt(&key, &randomness, &plaintexts)?;
        let masked = labels::mask(&context, &plaintexts, &labels::inputs(&garbler, attributes)?);

        let mut writer = Writer::with_capacity(offer_len(attributes, signature.len()));
        // Message 2: A_S ‖ nonce ‖ signature ‖ ciphertext ‖ label of 1 ‖ masked labels.
        writer.u8(ExchangeMessageKind::Offer as u8).fixed(&secret.public().0).fixed(&nonce).lp(&signature);
        writer.fixed(&ciphertext.encode()).fixed(&garbler.one().to_bytes()).fixed(&masked);
        let offer = writer.finish();
        // The secret of A_C and A_S; ctx, which the server signs, has both.
        let shared = secret.agree(&client)?;
        let run = ServerRun { context, offer: offer_digest(&offer), shared, seeds };
        Ok((Garbling { run, policy, tables: TableGarbler::new(garbler) }, offer))
    }
}

/// Bytes of an offer.
const fn offer_len(attributes: usize, signature: usize) -> usize {
    69 + signature + AbkeCiphertext::encoded_len(attributes) + LABEL_LEN + MASKED_LEN * attributes
}

/// seed_enc and seed_gc.
struct Seeds {
    encryption: Secret<32>,
    garbling: Secret<32>,
}

/// Values that stay the same from the offer on.
struct ServerRun {
    context: Digest,
    offer: Digest,
    shared: Secret<32>,
    seeds: Seeds,
}

/// A server that made an offer and garbles.
pub struct Garbling {
    run: ServerRun,
    policy: Arc<PolicyCircuit>,
    tables: TableGarbler,
}

impl Garbling {
    /// The next 64 KiB of the garbled circuit, or the rest of it. `None` at the end.
    ///
    /// # Errors
    /// None that would not be a mistake in this crate.
    pub fn next_tables(&mut self) -> Result<Option<Vec<u8>>, Error> {
        self.tables.next(&self.policy)
    }

    /// Goes on to wait for the commitment.
    ///
    /// # Errors
    /// [`Error::Unexpected`] if tables are left.
    pub fn finish(self) -> Result<Awaiting, Error> {
        let Self { run, policy, tables } = self;
        let (garbler, tables) = tables.finish(&policy)?;
        // The label for yes, which only a client with the attributes can find before the seeds.
        let wanted = Zeroizing::new(garbler.output(policy.output())?.one);
        Ok(Awaiting { run, tables, wanted })
    }
}

/// A server that waits for a commitment.
pub struct Awaiting {
    run: ServerRun,
    tables: Digest,
    /// The label for yes.
    wanted: Zeroizing<Label>,
}

impl Awaiting {
    /// Takes the commitment and opens the seeds.
    ///
    /// # Errors
    /// [`Error::Unexpected`].
    pub fn commitment(self, commitment: &[u8]) -> Result<(Seeded, Vec<u8>), Error> {
        let commitment: &[u8; 32] = ExchangeMessageKind::Commitment.fixed(commitment)?;
        let Self { run, tables, wanted } = self;
        // Message 4: the client's label is committed, so the seeds no longer help it.
        let seeds = [*run.seeds.encryption.expose(), *run.seeds.garbling.expose()].concat();
        let message = [&[ExchangeMessageKind::Seeds as u8], &seeds[..]].concat();
        let transcript = Transcript::new(&run.context, &run.offer, &tables).commitment(commitment);
        let transcript = transcript.seeds(seeds.first_chunk().unwrap_or(&[0; 64]));
        Ok((Seeded { run, wanted, commitment: *commitment, transcript }, message))
    }
}

/// A server that opened its seeds and waits for the opening.
pub struct Seeded {
    run: ServerRun,
    wanted: Zeroizing<Label>,
    commitment: [u8; 32],
    transcript: Transcript,
}

impl Seeded {
    /// Takes the opening, and confirms the key if the label is the one for yes.
    ///
    /// # Errors
    /// [`Error::Unexpected`], [`Error::InvalidOpening`], [`Error::Unsatisfied`], [`Error::Unconfirmed`].
    pub fn opening(self, opening: &[u8]) -> Result<(Session, Vec<u8>), Error> {
        let opening: &[u8; 80] = ExchangeMessageKind::Opening.fixed(opening)?;
        let mut reader = Reader::new(opening);
        let (label, rho) = (Label::from_bytes(reader.array()?), Secret::new(reader.array()?));
        let confirmation: [u8; 32] = reader.array()?;
        let Self { run, wanted, commitment, transcript } = self;
        let agreed = Agreed::new(run.context, transcript.opening(label, &rho), &run.shared);
        // com must be one to this label, the label the one for yes, and the client's confirmation right.
        let opens = ct_eq(commit(&rho, &run.context, label).expose(), &commitment);
        let says_yes = label == *wanted;
        let confirmed = ct_eq(&confirmation, agreed.client.expose());
        match (opens, says_yes, confirmed) {
            (true, true, true) => {
                let message =
                    [&[ExchangeMessageKind::Confirmation as u8], &agreed.server.expose()[..]].concat();
                Ok((agreed.session, message))
            }
            (false, ..) => Err(Error::InvalidOpening),
            (_, false, _) => Err(Error::Unsatisfied),
            _ => Err(Error::Unconfirmed),
        }
    }
}

debug!(Hello, VerifiedHello, Garbling, Awaiting, Seeded);
