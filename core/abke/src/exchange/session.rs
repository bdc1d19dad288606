//! The result of a run: a session key and its identifiers.

use quiver_crypto::{Digest, Hasher, Secret, extract, prf};
use quiver_garble::Label;

use super::labels::first_half;
use crate::DOMAIN;

/// Hash of a run's messages, up to and with the label and ρ that open the commitment.
pub(crate) struct Transcript(Hasher);

impl Transcript {
    /// ctx covers the hello; the digests cover the offer's bytes and the tables.
    pub(crate) fn new(context: &Digest, offer: &Digest, tables: &Digest) -> Self {
        Self(Hasher::new(DOMAIN).lp(b"transcript").fixed(context).fixed(offer).fixed(tables))
    }

    pub(crate) fn commitment(self, commitment: &[u8; 32]) -> Self {
        Self(self.0.fixed(commitment))
    }

    pub(crate) fn seeds(self, seeds: &[u8; 64]) -> Self {
        Self(self.0.fixed(seeds))
    }

    /// The digest of all.
    pub(crate) fn opening(self, label: Label, rho: &Secret<32>) -> Digest {
        // Label and ρ come last: what confirms the key covers all messages before it.
        self.0.fixed(&label.to_bytes()).fixed(rho.expose()).finish()
    }
}

/// The digest of an offer.
pub(crate) fn offer_digest(offer: &[u8]) -> Digest {
    Hasher::new(DOMAIN).lp(b"offer").lp(offer).finish()
}

/// A hash of tables, as they come.
pub(crate) fn tables_hash() -> Hasher {
    Hasher::new(DOMAIN).lp(b"tables")
}

/// HMAC(ρ, ctx ‖ label).
pub(crate) fn commit(rho: &Secret<32>, context: &Digest, label: Label) -> Secret<32> {
    // HMAC under ρ hides the label and binds to it.
    prf(rho, DOMAIN, "commitment", &[context, &label.to_bytes()])
}

/// Keys of both sides, and each other's confirmation to come.
pub(crate) struct Agreed {
    pub(crate) session: Session,
    pub(crate) client: Secret<32>,
    pub(crate) server: Secret<32>,
}

impl Agreed {
    /// Key = HKDF(H(transcript), x(A_C, A_S)), and what confirms it.
    pub(crate) fn new(context: Digest, transcript: Digest, shared: &Secret<32>) -> Self {
        let agreed = extract(&transcript, shared.expose());
        let derived = |label| prf(&agreed, DOMAIN, label, &[&context]);
        Self {
            client: derived("confirmation of the client"),
            server: derived("confirmation of the server"),
            session: Session { key: derived("key"), context, transcript },
        }
    }
}

/// A run that succeeded on this side.
pub struct Session {
    key: Secret<32>,
    context: Digest,
    transcript: Digest,
}

impl Session {
    /// The key that both sides have.
    pub fn key(&self) -> &Secret<32> {
        &self.key
    }

    /// ctx of the run.
    pub fn context(&self) -> Digest {
        self.context
    }

    /// Hash of all messages.
    pub fn transcript(&self) -> Digest {
        self.transcript
    }

    /// A name for the client in this run, and in no other.
    pub fn pseudonym(&self) -> [u8; 16] {
        // §A4.2: a pseudonym of 16 bytes for this run.
        first_half(&Hasher::new(DOMAIN).lp(b"pseudonym").fixed(&self.transcript).finish())
    }

    /// W = HKDF(H(ctx), key): takes the place of the pairwise secret of two identified peers.
    pub fn pairwise(&self) -> Secret<32> {
        // §A5.1: W = HKDF(H(ctx), key of the exchange).
        let salt = Hasher::new(DOMAIN).lp(b"pairwise").fixed(&self.context).finish();
        extract(&salt, self.key.expose())
    }
}

debug!(Session);
