//! Certificateless keys: the KGC's master secret, partial keys, a drone's keypair.
//!
//! Source: Frimpong, Rabbaninejad, Michalas, *Arrows in a Quiver: A Secure Certificateless Group Key
//! Distribution Protocol for Drones*, NordSec 2021, eprint 2021/1372; Setup, GenSecretValue, GenPartialKey
//! and FullKeyGen.
//!
//! | paper | meaning | here |
//! |---|---|---|
//! | x, P_pub = x·P | the KGC's master secret and public key | [`MasterSecret`], [`Deployment::master`] |
//! | D_i | identity | [`Identity`] |
//! | x_i, P_i = x_i·P | secret value, chosen by the drone; its public value | [`SecretValue`], `p` of [`DronePublicKey`] |
//! | s_i, R_i | partial private and public key, issued by the KGC | [`UnverifiedPartialKey`], `r` of [`DronePublicKey`] |
//! | Y_i = R_i + H0(D_i,R_i,P_i)·P_pub + P_i | implicit public key | [`DronePublicKey::implicit`] |
//! | y_i = s_i + x_i | its secret | [`DroneKeypair`] |
//!
//! Deviation: H0 is the challenge of a Schnorr signature with FROST's hash, over `lp(D_i) ‖ P_i` with suite,
//! deployment and purpose before it. The equation is the paper's; the hash is separated from every other, and
//! a quorum of KGCs can issue.

mod public;

use alloc::vec::Vec;

use quiver_crypto::Zeroizing;
use quiver_crypto::canonical::{Reader, Writer};
use rand_core::CryptoRngCore;

pub use self::public::{DronePublicKey, Handle};
use crate::schnorr::SchnorrNonce;
use crate::statement::{Purpose, challenge};
use crate::{Deployment, Element, Error, Identity, SecretScalar, Suite};

/// x, the master secret of the KGC: its holder can issue keys for any identity.
#[derive(Debug)]
pub struct MasterSecret<S: Suite>(SecretScalar<S>);

impl<S: Suite> MasterSecret<S> {
    /// **Setup**: draws x.
    #[must_use]
    pub fn generate(rng: &mut (impl CryptoRngCore + ?Sized)) -> Self {
        Self(SecretScalar::generate(rng))
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// [`Error::InvalidScalar`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        SecretScalar::decode(bytes).map(Self)
    }

    /// x as `S::SCALAR_LEN` bytes, for the KGC's own storage.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        self.0.to_bytes()
    }

    /// P_pub.
    #[must_use]
    pub fn public(&self) -> Element<S> {
        self.0.public()
    }

    pub(crate) const fn scalar(&self) -> &SecretScalar<S> {
        &self.0
    }

    /// **GenPartialKey**: R_i = r_i·P, s_i = r_i + x·H0(D_i,R_i,P_i).
    ///
    /// `deployment` must be the one this secret belongs to, or the drone will refuse the key.
    pub fn issue_partial_key(
        &self,
        deployment: &Deployment<S>,
        identity: &Identity,
        public_value: &Element<S>,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> UnverifiedPartialKey<S> {
        // §2.3: the partial key is the signature with purpose `identity` over lp(D) ‖ P_i.
        let message = identity_statement(deployment, &identity.encode(), public_value);
        let nonce = SchnorrNonce::hedged(&self.0, "identity", &message, rng);
        let r = *nonce.commitment();
        // §2.3: s_i = r_i + H0(D_i, R_i, P_i)·x, with the challenge as H0.
        let h0 = challenge(deployment, r.as_bytes(), &message);
        UnverifiedPartialKey::new(nonce.respond(&h0, &self.0), r)
    }
}

/// The bytes a partial key signs: purpose `identity`, body `lp(D_i) ‖ P_i`.
///
/// A KGC builds them itself from a verified request and never signs bytes it was handed.
pub fn identity_statement<S: Suite>(
    deployment: &Deployment<S>,
    identity: &[u8],
    public_value: &Element<S>,
) -> Vec<u8> {
    identity_message(deployment, identity, public_value.as_bytes())
}

fn identity_message<S: Suite>(deployment: &Deployment<S>, identity: &[u8], public_value: &[u8]) -> Vec<u8> {
    // §2.3: the body lp(D) ‖ P_i, behind suite, deployment and purpose.
    let body = Writer::new().lp(identity).fixed(public_value).finish();
    Purpose::Identity.message(deployment, &body)
}

/// x_i, the secret value that a drone chooses, because of which the KGC cannot read messages for the drone.
#[derive(Debug)]
pub struct SecretValue<S: Suite> {
    secret: SecretScalar<S>,
    public: Element<S>,
}

impl<S: Suite> SecretValue<S> {
    /// **GenSecretValue**: draws x_i.
    #[must_use]
    pub fn generate(rng: &mut (impl CryptoRngCore + ?Sized)) -> Self {
        Self::of(SecretScalar::generate(rng))
    }

    fn of(secret: SecretScalar<S>) -> Self {
        Self { public: secret.public(), secret }
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// [`Error::InvalidScalar`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        SecretScalar::decode(bytes).map(Self::of)
    }

    /// x_i as `S::SCALAR_LEN` bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        self.secret.to_bytes()
    }

    /// P_i.
    #[must_use]
    pub const fn public(&self) -> Element<S> {
        self.public
    }

    pub(crate) const fn scalar(&self) -> &SecretScalar<S> {
        &self.secret
    }
}

/// (s_i, R_i) as received from the KGC, or from an impostor: `S::SCALAR_LEN + S::POINT_LEN` bytes, secret.
#[derive(derive_more::Debug)]
#[debug("UnverifiedPartialKey {{ r: {r:?}, .. }}")]
pub struct UnverifiedPartialKey<S: Suite> {
    s: Zeroizing<S::Scalar>,
    r: Element<S>,
}

impl<S: Suite> UnverifiedPartialKey<S> {
    /// Takes the two parts, for instance as a quorum's aggregate.
    #[must_use]
    pub fn new(s: S::Scalar, r: Element<S>) -> Self {
        Self { s: Zeroizing::new(s), r }
    }

    /// R_i, which is public.
    #[must_use]
    pub const fn r(&self) -> &Element<S> {
        &self.r
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// [`Error::InvalidScalar`], [`Error::InvalidPoint`], [`Error::IdentityPoint`] or [`Error::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let s = S::scalar_decode(reader.take(S::SCALAR_LEN)?).ok_or(Error::InvalidScalar)?;
        let partial = Self::new(s, Element::read(&mut reader)?);
        reader.end()?;
        Ok(partial)
    }

    /// The encoding: s_i, then R_i.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut writer = Writer::with_capacity(S::SCALAR_LEN + S::POINT_LEN);
        writer.fixed(&*S::scalar_encode(&self.s)).fixed(self.r.as_bytes());
        Zeroizing::new(writer.finish())
    }

    /// **FullKeyGen**: the only way to a keypair.
    ///
    /// # Errors
    /// [`Error::InvalidPartialKey`] unless the KGC of `deployment` issued this for this identity and secret
    /// value.
    pub fn verify(
        self,
        deployment: &Deployment<S>,
        identity: &Identity,
        secret_value: &SecretValue<S>,
    ) -> Result<DroneKeypair<S>, Error> {
        let public = DronePublicKey::new(identity.clone(), self.r, secret_value.public());
        // §3.5: the drone checks s_i·P = R_i + H0(D_i,R_i,P_i)·P_pub; with P_i on both sides that is
        // (s_i + x_i)·P = Y_i, ...
        let implicit = public.implicit(deployment).map_err(|_| Error::InvalidPartialKey)?;
        // ... whose secret y_i = s_i + x_i is checked against it.
        let sum = Zeroizing::new(*self.s + *secret_value.scalar().expose());
        let secret = SecretScalar::new(*sum).map_err(|_| Error::InvalidPartialKey)?;
        if S::mul_base(secret.expose()) != *implicit.point() {
            return Err(Error::InvalidPartialKey);
        }
        Ok(DroneKeypair::of(public, &implicit, secret))
    }
}

/// A drone's keypair: the public key, Y_i, and y_i with y_i·P = Y_i.
#[derive(derive_more::Debug)]
#[debug("DroneKeypair {{ public: {public:?}, .. }}")]
pub struct DroneKeypair<S: Suite> {
    public: DronePublicKey<S>,
    /// Y_i, encoded: it is hashed with every signature, and the point is six times as large.
    implicit: S::Encoding,
    secret: SecretScalar<S>,
}

impl<S: Suite> DroneKeypair<S> {
    fn of(mut public: DronePublicKey<S>, implicit: &Element<S>, secret: SecretScalar<S>) -> Self {
        // Y_i is known, so the points it was computed from are needed as bytes alone.
        public.forget_points();
        Self { public, implicit: *implicit.encoding(), secret }
    }

    /// (D_i, R_i, P_i).
    #[must_use]
    pub const fn public(&self) -> &DronePublicKey<S> {
        &self.public
    }

    /// Y_i, computed as y_i·P.
    #[must_use]
    pub fn implicit(&self) -> Element<S> {
        self.secret.public()
    }

    pub(crate) fn implicit_bytes(&self) -> &[u8] {
        self.implicit.as_ref()
    }

    /// y_i as `S::SCALAR_LEN` bytes, for the drone's own storage.
    #[must_use]
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        self.secret.to_bytes()
    }

    /// Puts a keypair together again out of its public key and what [`to_bytes`](Self::to_bytes) gave.
    ///
    /// # Errors
    /// [`Error::InvalidScalar`], or [`Error::InvalidPartialKey`] unless y_i·P = Y_i in this deployment.
    pub fn restore(
        deployment: &Deployment<S>,
        public: DronePublicKey<S>,
        secret: &[u8],
    ) -> Result<Self, Error> {
        // The stored secret must be that of the public key, which is not authenticated here.
        let secret = SecretScalar::decode(secret)?;
        let implicit = public.implicit(deployment)?;
        if S::mul_base(secret.expose()) != *implicit.point() {
            return Err(Error::InvalidPartialKey);
        }
        Ok(Self::of(public, &implicit, secret))
    }

    /// y_i.
    pub(crate) const fn secret(&self) -> &SecretScalar<S> {
        &self.secret
    }
}
