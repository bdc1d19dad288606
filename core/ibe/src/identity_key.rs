//! The secret key of an identity, and decryption with it.

use alloc::vec::Vec;

use quiver_crypto::{Secret, Zeroizing, ct_eq};
use quiver_pairing::{G1, G2, Group, pairing, product_is_one};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::encryption::mask;
use crate::hashes::{h2, h3};
use crate::{Error, IbeCiphertext, IdentityPoint, MasterPublicKey};

/// K = s·Q, checked: opens ciphertexts to the identity. Erased when dropped; `Debug` prints nothing.
#[derive(Clone, Zeroize, ZeroizeOnDrop, derive_more::Debug)]
#[debug("IdentityKey(..)")]
pub struct IdentityKey(G2);

impl IdentityKey {
    /// Bytes of an encoded key.
    pub const LEN: usize = G2::ENCODED_LEN;

    /// A key that was found to be right.
    pub(crate) const fn verified(point: G2) -> Self {
        Self(point)
    }

    /// The encoding, 96 bytes. Reading it back gives an [`UnverifiedIdentityKey`].
    #[must_use]
    pub fn encode(&self) -> Zeroizing<[u8; Self::LEN]> {
        Zeroizing::new(self.0.encode())
    }

    /// Decrypts, and checks that the ciphertext is the one that encryption makes of the result.
    ///
    /// # Errors
    /// [`Error::Decryption`]: altered, for another identity, or under another master public key.
    pub fn decrypt(&self, ciphertext: &IbeCiphertext) -> Result<Zeroizing<Vec<u8>>, Error> {
        let IbeCiphertext { u, v, w } = ciphertext;
        // BF01, section 4.2, Decrypt: σ = V ⊕ H2(e(U, K)); m = W ⊕ H4(σ)
        let paired = Zeroizing::new(pairing(u, &self.0));
        let sigma = Secret::new(Secret::new(*v).xor(&h2(&paired)));
        let message = Zeroizing::new(mask(w, &sigma));
        // "Set r = H3(σ, m). Test that U = rP. If not, reject the ciphertext."
        let r = h3(&sigma, &message)?;
        let expected = Zeroizing::new(G1::multiply_generator(&r).encode());
        if ct_eq(&*expected, &u.encode()) { Ok(message) } else { Err(Error::Decryption) }
    }
}

impl PartialEq for IdentityKey {
    fn eq(&self, other: &Self) -> bool {
        ct_eq(&*self.encode(), &*other.encode())
    }
}

impl Eq for IdentityKey {}

/// A received identity key, not verified: a point of the subgroup of G2, and not the identity.
#[derive(Clone, Debug, derive_more::From)]
pub struct UnverifiedIdentityKey(IdentityKey);

impl UnverifiedIdentityKey {
    /// Reads the encoding, 96 bytes.
    ///
    /// # Errors
    /// [`Error::InvalidPoint`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        G2::decode(bytes).map(|point| Self(IdentityKey(point))).map_err(|_| Error::InvalidPoint("G2"))
    }

    /// Checks that it is the key of this identity: e(P1, K) = e(MPK, Q), two pairings.
    ///
    /// # Errors
    /// [`Error::InvalidIdentityKey`].
    pub fn verify(self, master: &MasterPublicKey, point: &IdentityPoint) -> Result<IdentityKey, Error> {
        // e(P1, K) = e(MPK, Q) for K = s·Q and no other point.
        let pairs = equation(self.0.0, *master.point(), point);
        if product_is_one(&pairs) { Ok(self.0) } else { Err(Error::InvalidIdentityKey) }
    }
}

/// Pairs whose product is one exactly if e(P1, key) = e(public, Q): if key = x·Q and public = x·P1 for one x.
pub(crate) fn equation(key: G2, public: G1, point: &IdentityPoint) -> [(G1, G2); 2] {
    // e(−P1, key) and e(public, Q) cancel out.
    [(-G1::generator(), key), (public, *point.point())]
}
