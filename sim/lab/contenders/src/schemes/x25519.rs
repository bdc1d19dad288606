//! X25519 (RFC 7748): long-term keys of a controller and its members, and what each pair shares.

use curve25519_dalek::montgomery::MontgomeryPoint;
use quiver_crypto::{Secret, extract};
use rand_core::CryptoRngCore;

/// A long-term key of X25519.
#[derive(Debug)]
pub struct X25519Identity {
    secret: Secret<32>,
    public: [u8; 32],
}

impl X25519Identity {
    /// Draws a key.
    pub fn generate(rng: &mut (impl CryptoRngCore + ?Sized)) -> Self {
        let secret = Secret::random(rng);
        let public = MontgomeryPoint::mul_base_clamped(*secret.expose()).to_bytes();
        Self { secret, public }
    }

    /// Public key of the identity.
    #[must_use]
    pub const fn public(&self) -> [u8; 32] {
        self.public
    }

    /// The key shared with the holder of a public key: HKDF-Extract of the shared point under both public keys, the
    /// controller's first. `None` for a public key of small order.
    #[must_use]
    pub fn agree(&self, other: [u8; 32], controller: [u8; 32], member: [u8; 32]) -> Option<Secret<32>> {
        let shared = Secret::new(MontgomeryPoint(other).mul_clamped(*self.secret.expose()).to_bytes());
        // RFC 7748, 6.1: all zeros come of a point of small order.
        (shared != Secret::new([0; 32])).then(|| extract(&[controller, member].concat(), shared.expose()))
    }
}
