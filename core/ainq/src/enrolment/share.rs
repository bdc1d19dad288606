//! A quorum member's share of a partial key, sealed to the drone.
//!
//! ```text
//! drone → KGC   the same request as to a single KGC
//! KGC → drone   a commitment, after the pin is durable
//! drone → KGCs  the package: whose commitments the key is to be made of
//! KGC → drone   z_j under HKDF(salt = H(request, kgc id, package, A), e·P_i ‖ e·N_i)
//! ```
//!
//! FROST (RFC 9591) with the drone as the coordinator: the sum of the z_j is s_i, so neither a KGC nor
//! anybody between may see more of them than its own.

use alloc::vec::Vec;

use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Digest, Hasher, Secret, Zeroizing, aead, extract};
use rand_core::CryptoRngCore;

use super::{KgcId, PendingEnrolment, VerifiedRequest};
use crate::{Deployment, DroneKeypair, Element, Error, SecretScalar, Suite, UnverifiedPartialKey};

/// A share's key seals one share.
const NONCE: [u8; 12] = [0; 12];

/// HKDF(salt = H(request, kgc id, package, A), e·P_i ‖ e·N_i).
fn share_key<S: Suite>(
    (request, kgc, package): (&Digest, KgcId, &Digest),
    a: &Element<S>,
    with_value: &S::Point,
    with_reply: &S::Point,
) -> Secret<32> {
    let hash = Hasher::new("quiver/1 enrolment share").lp(S::ID.as_bytes());
    // §3.7: the salt binds request, KGC, package and A.
    let salt = hash.fixed(request).u16(kgc).fixed(package).fixed(a.as_bytes()).finish();
    let mut ikm = Zeroizing::new(Vec::with_capacity(2 * S::POINT_LEN));
    ikm.extend_from_slice(S::encode(with_value).as_ref());
    ikm.extend_from_slice(S::encode(with_reply).as_ref());
    extract(&salt, &ikm)
}

impl<S: Suite> VerifiedRequest<S> {
    /// Seals this KGC's share z_j to the drone. `package` is the digest of the signing package it is for,
    /// `share` has `S::SCALAR_LEN` bytes.
    ///
    /// # Errors
    /// [`Error::InvalidScalar`] if it has another length.
    pub fn seal_share(
        &self,
        this: KgcId,
        package: &Digest,
        share: &[u8],
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<SealedShare<S>, Error> {
        if share.len() != S::SCALAR_LEN {
            return Err(Error::InvalidScalar);
        }
        // §3.7: one-time, as for a whole key (§3.5).
        let e = SecretScalar::<S>::generate(rng);
        let a = e.public();
        // §3.7: e·P_i ‖ e·N_i
        let key = share_key(
            (&self.digest, this, package),
            &a,
            &S::mul(e.expose(), self.public_value.point()),
            &S::mul(e.expose(), self.reply_point.point()),
        );
        Ok(SealedShare { kgc: this, a, ciphertext: aead::seal(&key, &NONCE, &[], share) })
    }
}

/// A share of a partial key, sealed to the drone that asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedShare<S: Suite> {
    kgc: KgcId,
    a: Element<S>,
    ciphertext: Vec<u8>,
}

impl<S: Suite> SealedShare<S> {
    /// Bytes of the encoding: 82 for ristretto255, 98 for BLS12-381.
    pub const LEN: usize = 2 + S::POINT_LEN + S::SCALAR_LEN + aead::TAG_LEN;

    /// The KGC that claims this share.
    pub const fn kgc(&self) -> KgcId {
        self.kgc
    }

    /// The encoding: KGC id, A, ciphertext.
    pub fn encode(&self) -> Vec<u8> {
        Writer::new().u16(self.kgc).fixed(self.a.as_bytes()).fixed(&self.ciphertext).finish()
    }

    /// Reads [`LEN`](Self::LEN) bytes.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::InvalidPoint`] or [`Error::IdentityPoint`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let (kgc, a) = (reader.u16()?, Element::read(&mut reader)?);
        let ciphertext = reader.take(S::SCALAR_LEN + aead::TAG_LEN)?.to_vec();
        reader.end()?;
        Ok(Self { kgc, a, ciphertext })
    }
}

impl<S: Suite> PendingEnrolment<S> {
    /// Opens a KGC's share for the signing package of this digest: `S::SCALAR_LEN` bytes, secret, not yet
    /// checked.
    ///
    /// # Errors
    /// [`Error::WrongKgc`] if that KGC was not asked, or [`Error::SealBroken`].
    pub fn open_share(&self, package: &Digest, share: &SealedShare<S>) -> Result<Zeroizing<Vec<u8>>, Error> {
        if !self.request.kgcs().contains(&share.kgc) {
            return Err(Error::WrongKgc);
        }
        let key = share_key(
            (&self.request.digest(), share.kgc, package),
            &share.a,
            // §3.7: x_i·A = e·P_i and n_i·A = e·N_i.
            &S::mul(self.value.scalar().expose(), share.a.point()),
            &S::mul(self.reply.expose(), share.a.point()),
        );
        Ok(aead::open(&key, &NONCE, &[], &share.ciphertext)?)
    }

    /// The statement that the quorum signs: the partial key is the signature.
    #[must_use]
    pub fn identity_statement(&self, deployment: &Deployment<S>) -> Vec<u8> {
        // §3.6: the bytes that the quorum signs; the drone only adds the shares up.
        let identity = self.request.statement().identity().encode();
        crate::identity_statement(deployment, &identity, self.request.public_value())
    }

    /// Checks a partial key that was put together out of shares.
    ///
    /// # Errors
    /// [`Error::InvalidPartialKey`].
    pub fn accept(
        &self,
        deployment: &Deployment<S>,
        partial: UnverifiedPartialKey<S>,
    ) -> Result<DroneKeypair<S>, Error> {
        // §3.6: s·P = R + H0·P_pub; only now the sum of the shares is a key.
        partial.verify(deployment, &self.request.statement().identity(), &self.value)
    }
}
