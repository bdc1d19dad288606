//! The context of a run (ctx): a hash of all it depends on, 32 bytes.

use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::IsIdentity as _;
use quiver_crypto::{Digest, Hasher, Secret, Zeroizing};
use quiver_pairing::PairingError;
use rand_core::CryptoRngCore;

use super::PolicyCircuit;
use crate::{DOMAIN, Error, PointLabel};

/// Name of keys, hashes and garbling, beyond what [`DOMAIN`] says.
const SUITE: &str = "BLS12-381, ristretto255, privacy-free half gates over AES-128, SHA-256";

/// Terms of a run that both sides know before it begins. If they differ, no key results.
#[derive(Clone, Copy, Debug)]
pub struct ExchangeTerms<'a> {
    /// The name of the policy, under which it was allowed to be asked.
    pub policy: &'a [u8; 32],
    /// The server's identity and public key.
    pub server: &'a [u8],
    /// A unique value of the channel between the two.
    pub channel: &'a [u8],
}

impl ExchangeTerms<'_> {
    /// Begins ctx, without the server's part.
    pub(crate) fn begin(
        &self,
        policy: &PolicyCircuit,
        authority: &Digest,
        key: &Digest,
        client: &Ephemeral,
    ) -> Begun {
        // ctx: what both sides know before the run, ...
        let hash = Hasher::new(DOMAIN).lp(b"context").lp(SUITE.as_bytes());
        let hash = hash.fixed(self.policy).fixed(&policy.digest()).fixed(authority);
        let hash = hash.lp(self.server).lp(self.channel);
        // ... the client's key and A_C, ...
        Begun(hash.fixed(key).fixed(&client.0))
    }
}

/// ctx without the server's part.
pub(crate) struct Begun(Hasher);

impl Begun {
    /// ctx.
    pub(crate) fn complete(self, server: &Ephemeral, nonce: &[u8; 32]) -> Digest {
        // ... A_S and the server's nonce; the server signs all of it.
        self.0.fixed(&server.0).fixed(nonce).finish()
    }
}

/// An ephemeral public key: A_C or A_S, as it is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ephemeral(pub(crate) [u8; 32]);

/// The secret half.
pub(crate) struct EphemeralSecret {
    scalar: Zeroizing<Scalar>,
    public: Ephemeral,
}

impl EphemeralSecret {
    pub(crate) fn random(rng: &mut dyn CryptoRngCore) -> Self {
        let mut wide = Zeroizing::new([0; 64]);
        rng.fill_bytes(&mut *wide);
        // 512 bits reduced modulo the order.
        let scalar = Zeroizing::new(Scalar::from_bytes_mod_order_wide(&wide));
        let public = Ephemeral(RistrettoPoint::mul_base(&scalar).compress().to_bytes());
        Self { scalar, public }
    }

    pub(crate) fn public(&self) -> &Ephemeral {
        &self.public
    }

    /// The common secret.
    ///
    /// # Errors
    /// [`Error::InvalidPoint`] for a key that is no point, or the identity.
    pub(crate) fn agree(&self, other: &Ephemeral) -> Result<Secret<32>, Error> {
        let shared = Zeroizing::new(other.point()? * *self.scalar);
        Ok(Secret::new(shared.compress().to_bytes()))
    }
}

impl Ephemeral {
    /// The point.
    ///
    /// # Errors
    /// [`Error::InvalidPoint`] if there is none, or for the identity.
    pub(crate) fn point(&self) -> Result<RistrettoPoint, Error> {
        let refused = |reason| Error::InvalidPoint { element: PointLabel::Ephemeral, reason };
        let point = CompressedRistretto(self.0).decompress().ok_or(refused(PairingError::NotCanonical))?;
        // The identity would make the shared secret public.
        if point.is_identity() { Err(refused(PairingError::Identity)) } else { Ok(point) }
    }
}
