//! The client of the exchange, one type per step.

use alloc::sync::Arc;
use alloc::vec::Vec;

use quiver_crypto::canonical::Reader;
use quiver_crypto::{Digest, Hasher, Secret, Zeroizing, ct_eq};
use quiver_garble::label::LABEL_LEN;
use quiver_garble::{Evaluator, Label, PrivacyFree};
use rand_core::CryptoRngCore;

use super::context::{Begun, Ephemeral, EphemeralSecret};
use super::labels::{self, MASKED_LEN};
use super::session::{Agreed, Transcript, commit, offer_digest, tables_hash};
use super::tables::{PIECE_LEN, TableGarbler};
use super::{ExchangeMessageKind, ExchangeTerms, MAX_SIGNATURE, PolicyCircuit, Session};
use crate::{AbkeCiphertext, Deviation, Error, Presentation, Randomness};

/// A client that has sent its hello and waits for an offer.
pub struct Client {
    begun: Begun,
    secret: EphemeralSecret,
    policy: Arc<PolicyCircuit>,
    key: Presentation,
}

impl Client {
    /// Says hello. The presentation is used up: another run takes another.
    ///
    /// # Errors
    /// [`Error::Attributes`] if the policy is not over as many as the credential has.
    pub fn start(
        terms: &ExchangeTerms<'_>,
        policy: Arc<PolicyCircuit>,
        key: Presentation,
        rng: &mut dyn CryptoRngCore,
    ) -> Result<(Self, Vec<u8>), Error> {
        if policy.attributes() != key.attributes() {
            return Err(Error::Attributes { wanted: policy.attributes(), found: key.attributes() });
        }
        let secret = EphemeralSecret::random(rng);
        // Message 1: A_C and the unlinked key.
        let hello = [&[ExchangeMessageKind::Hello as u8], &secret.public().0[..], key.encoded()].concat();
        let begun = terms.begin(&policy, &key.authority(), &key.digest(), secret.public());
        Ok((Self { begun, secret, policy, key }, hello))
    }

    /// Takes the offer. Nothing but ctx is computed before `verify` has accepted the server's signature on
    /// ctx.
    ///
    /// # Errors
    /// [`Error::Unexpected`] for another message; [`Error::InvalidPoint`] for A_S; [`Error::InvalidContext`].
    pub fn offer(
        self,
        offer: &[u8],
        verify: impl FnOnce(&Digest, &[u8]) -> bool,
    ) -> Result<Evaluating, Error> {
        let Self { begun, secret, policy, key } = self;
        let parts = OfferParts::read(offer, key.attributes())?;
        let context = begun.complete(&parts.server, &parts.nonce);
        // Before anything is computed from the offer: the server's signature on ctx.
        if !verify(&context, parts.signature) {
            return Err(Error::InvalidContext);
        }
        let shared = secret.agree(&parts.server)?;
        let received = ServerMessages {
            ciphertext: AbkeCiphertext::decode(parts.ciphertext, key.attributes()),
            one: parts.one,
            masked: parts.masked.to_vec(),
        };
        // A ciphertext that does not decode gives labels that mean nothing: the error is reported after the
        // seeds.
        let labels = received.labels(&context, &key);
        let evaluator = Evaluator::new(policy.program(), &labels::run(&context), parts.one, &labels)?;
        let run = ClientRun { context, offer: offer_digest(offer), shared, policy, key, received, labels };
        let pending = Vec::with_capacity(PIECE_LEN + LABEL_LEN);
        Ok(Evaluating { run, evaluator, position: 0, pending, taken: 0, hash: tables_hash() })
    }
}

/// An offer, cut up.
struct OfferParts<'a> {
    server: Ephemeral,
    nonce: [u8; 32],
    signature: &'a [u8],
    ciphertext: &'a [u8],
    one: Label,
    masked: &'a [u8],
}

impl<'a> OfferParts<'a> {
    fn read(offer: &'a [u8], attributes: usize) -> Result<Self, Error> {
        let mut reader = Reader::new(ExchangeMessageKind::Offer.body(offer)?);
        let (server, nonce) = (Ephemeral(reader.array()?), reader.array()?);
        let parts = Self {
            server,
            nonce,
            signature: reader.lp(MAX_SIGNATURE)?,
            ciphertext: reader.take(AbkeCiphertext::encoded_len(attributes))?,
            one: Label::from_bytes(reader.array()?),
            masked: reader.take(attributes.saturating_mul(MASKED_LEN))?,
        };
        reader.end()?;
        parts.server.point()?;
        Ok(parts)
    }
}

/// The server's messages, which are checked when the seeds are known.
struct ServerMessages {
    /// The ciphertext, or its error: that is reported when the seeds are there.
    ciphertext: Result<AbkeCiphertext, Error>,
    one: Label,
    masked: Vec<u8>,
}

impl ServerMessages {
    /// Labels of the client's own attributes. Anything, if there is no ciphertext.
    fn labels(&self, context: &Digest, key: &Presentation) -> Zeroizing<Vec<Label>> {
        match self.ciphertext.as_ref().map(|ciphertext| ciphertext.decrypt(key)) {
            Ok(Ok(plaintexts)) => {
                labels::unmask(context, key.secrets().attributes(), &plaintexts, &self.masked)
            }
            _ => Zeroizing::new(alloc::vec![Label::default(); key.attributes()]),
        }
    }
}

/// Values that stay the same from the offer on.
struct ClientRun {
    context: Digest,
    offer: Digest,
    shared: Secret<32>,
    policy: Arc<PolicyCircuit>,
    key: Presentation,
    received: ServerMessages,
    labels: Zeroizing<Vec<Label>>,
}

/// A client that takes in the garbled circuit.
pub struct Evaluating {
    run: ClientRun,
    evaluator: Evaluator<PrivacyFree>,
    /// Steps that were done.
    position: usize,
    /// Tables that were not used yet, and what came of one.
    pending: Vec<u8>,
    /// Bytes of tables that came.
    taken: usize,
    hash: Hasher,
}

impl Evaluating {
    /// Bytes of the garbled circuit that are still to come.
    pub fn remaining(&self) -> usize {
        self.run.policy.tables_len().saturating_sub(self.taken)
    }

    /// Takes the next bytes of the garbled circuit, however it is cut, in memory for one piece of 64 KiB.
    ///
    /// # Errors
    /// [`Error::Unexpected`] if there are more than the circuit has.
    pub fn tables(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if bytes.len() > self.remaining() {
            return Err(Error::Unexpected("more tables than the circuit has"));
        }
        self.taken = self.taken.saturating_add(bytes.len());
        self.hash = self.hash.clone().fixed(bytes);
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = PIECE_LEN.saturating_sub(self.pending.len()).min(rest.len());
            let (now, later) = rest.split_at(room);
            self.pending.extend_from_slice(now);
            rest = later;
            if self.pending.len() >= PIECE_LEN {
                self.evaluate()?;
            }
        }
        Ok(())
    }

    /// Evaluates as far as there are tables.
    fn evaluate(&mut self) -> Result<(), Error> {
        let (tables, rest) = self.pending.as_chunks::<LABEL_LEN>();
        let (steps, position) = self.run.policy.steps(self.position, tables.len());
        self.evaluator.evaluate(steps, &mut tables.iter().copied())?;
        self.position = position;
        let used = self.pending.len().saturating_sub(rest.len());
        self.pending.drain(..used);
        Ok(())
    }

    /// Commits to what came out, which is a random label if the ciphertext is none.
    ///
    /// # Errors
    /// [`Error::Unexpected`] if the garbled circuit is not all there.
    pub fn commit(mut self, rng: &mut dyn CryptoRngCore) -> Result<(Committed, Vec<u8>), Error> {
        if self.remaining() > 0 {
            return Err(Error::Unexpected("the garbled circuit ends early"));
        }
        self.evaluate()?;
        // Drawn in any case, so that the time does not depend on the ciphertext.
        let mut random = [0; LABEL_LEN];
        rng.fill_bytes(&mut random);
        let label = match self.run.received.ciphertext {
            Ok(_) => self.evaluator.output(self.run.policy.output())?,
            Err(_) => Label::from_bytes(random),
        };
        let rho = Secret::random(rng);
        // Message 3: com = HMAC(ρ, ctx ‖ label). It hides the label until the seeds are known to be honest.
        let commitment = commit(&rho, &self.run.context, label);
        let message = [&[ExchangeMessageKind::Commitment as u8], &commitment.expose()[..]].concat();
        let tables = self.hash.finish();
        let transcript =
            Transcript::new(&self.run.context, &self.run.offer, &tables).commitment(commitment.expose());
        let label = Zeroizing::new(label);
        Ok((Committed { run: self.run, tables, label, rho, transcript }, message))
    }
}

/// A client that committed to a label and waits for the seeds.
pub struct Committed {
    run: ClientRun,
    tables: Digest,
    label: Zeroizing<Label>,
    rho: Secret<32>,
    transcript: Transcript,
}

impl Committed {
    /// Computes all that the server sent anew, compares, and opens the commitment.
    ///
    /// # Errors
    /// [`Error::Unexpected`] for another message; [`Error::InvalidPoint`] if the ciphertext was none;
    /// [`Error::Cheated`]. Neither says anything about one's attributes, whether it is returned or when.
    pub fn open(self, seeds: &[u8], rng: &mut dyn CryptoRngCore) -> Result<(OpenedClient, Vec<u8>), Error> {
        let seeds: &[u8; 64] = ExchangeMessageKind::Seeds.fixed(seeds)?;
        let satisfied = self.check(seeds, rng)?;
        let Self { run, label, rho, transcript, .. } = self;
        // Message 5: label and ρ open com, and the client confirms the key.
        let transcript = transcript.seeds(seeds).opening(*label, &rho);
        let agreed = Agreed::new(run.context, transcript, &run.shared);
        let kind = [ExchangeMessageKind::Opening as u8];
        let opening = [&kind[..], &label.to_bytes(), rho.expose(), agreed.client.expose()].concat();
        Ok((OpenedClient { agreed, satisfied }, opening))
    }

    /// Tells if the policy is satisfied, after a check that the server's messages follow from the seeds.
    fn check(&self, seeds: &[u8; 64], rng: &mut dyn CryptoRngCore) -> Result<bool, Error> {
        let ClientRun { context, policy, key, received, labels, .. } = &self.run;
        let ciphertext = received.ciphertext.as_ref().map_err(Error::clone)?;
        let (of_encryption, of_garbling) = seeds.split_at(32);
        let secret = |bytes: &[u8]| Secret::try_from(bytes).map_err(|_| Error::Malformed("seeds"));

        let randomness = Randomness::derive(&secret(of_encryption)?, context, key.attributes());
        // The ciphertext: both halves for each attribute must follow from seed_enc.
        let encrypted = ciphertext.follows_from(&randomness, key, rng)?;

        let garbler = labels::garbler(policy, &secret(of_garbling)?, context);
        let pairs = labels::inputs(&garbler, key.attributes())?;
        // The labels: the masked ones must follow from both seeds, and the ones used be those of the
        // attributes.
        let masked = ct_eq(&labels::mask(context, &randomness.plaintexts(), &pairs), &received.masked);
        let own = key.secrets().attributes().iter().zip(pairs.iter()).zip(labels.iter());
        let own = own.fold(true, |all, ((&attribute, pair), label)| all & (pair.of(attribute) == *label));

        // The circuit: garbled anew from seed_gc, its tables must be those that came.
        let one = garbler.one() == received.one;
        let mut tables = TableGarbler::new(garbler);
        while tables.next(policy)?.is_some() {}
        let (garbler, digest) = tables.finish(policy)?;
        let circuit = one & ct_eq(&digest, &self.tables);
        let output = garbler.output(policy.output())?.decode(*self.label);

        // One decision; its reason is reported afterwards.
        match output {
            Some(satisfied) if encrypted & masked & own & circuit => Ok(satisfied),
            _ if !encrypted => Err(Error::Cheated(Deviation::Ciphertext)),
            _ if !masked => Err(Error::Cheated(Deviation::Labels)),
            _ if !circuit => Err(Error::Cheated(Deviation::Circuit)),
            _ => Err(Error::Cheated(Deviation::OwnLabels)),
        }
    }
}

/// A client that opened its commitment and waits for the confirmation.
pub struct OpenedClient {
    agreed: Agreed,
    satisfied: bool,
}

impl OpenedClient {
    /// Returns true if one's attributes satisfy the policy. If not, there will be no confirmation.
    pub fn satisfied(&self) -> bool {
        self.satisfied
    }

    /// Takes the confirmation. The key is good from here on.
    ///
    /// # Errors
    /// [`Error::Unexpected`], [`Error::Unsatisfied`], [`Error::Unconfirmed`].
    pub fn confirm(self, confirmation: &[u8]) -> Result<Session, Error> {
        let confirmation: &[u8; 32] = ExchangeMessageKind::Confirmation.fixed(confirmation)?;
        // An unsatisfied policy is reported as such, whatever the server confirms.
        match ct_eq(confirmation, self.agreed.server.expose()) {
            _ if !self.satisfied => Err(Error::Unsatisfied),
            true => Ok(self.agreed.session),
            false => Err(Error::Unconfirmed),
        }
    }
}

debug!(Client, Evaluating, Committed, OpenedClient);
