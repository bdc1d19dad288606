//! Spare points: the one-time half of a pairwise key that a member publishes ahead of need.
//!
//! A leader that opens a term makes a fresh pairwise secret T = l·(Y + E_q) with every member without asking
//! it. E_q is such a point: its secret e_q is used for one epoch and erased, so that y alone opens nothing
//! that was recorded. Numbers q rise strictly; a statement with a higher one replaces those before.

use alloc::vec::Vec;

use quiver_crypto::Zeroizing;
use quiver_crypto::canonical::{Reader, Writer};
use rand_core::CryptoRngCore;

use crate::{
    Deployment, DroneKeypair, DronePublicKey, Element, Error, Label, Name, SecretScalar, Signature, Suite,
};

/// A spare point with its secret: (q, e_q, E_q).
pub struct SparePair<S: Suite> {
    q: u64,
    secret: SecretScalar<S>,
    point: Element<S>,
}

impl<S: Suite> SparePair<S> {
    /// Draws the spare pair number `q`. Numbers start at 1; 0 stands for the ephemeral point of a join.
    #[must_use]
    pub fn generate(q: u64, rng: &mut (impl CryptoRngCore + ?Sized)) -> Self {
        Self::new(q, SecretScalar::generate(rng))
    }

    /// Draws the one-time pair of a join, E_now. It has the number 0 and is never published as a spare.
    #[must_use]
    pub fn ephemeral(rng: &mut (impl CryptoRngCore + ?Sized)) -> Self {
        Self::generate(0, rng)
    }

    fn new(q: u64, secret: SecretScalar<S>) -> Self {
        let point = secret.public();
        Self { q, secret, point }
    }

    /// Number of the pair.
    #[must_use]
    pub const fn q(&self) -> u64 {
        self.q
    }

    /// E_q.
    #[must_use]
    pub const fn point(&self) -> &Element<S> {
        &self.point
    }

    pub(crate) const fn secret(&self) -> &SecretScalar<S> {
        &self.secret
    }

    /// The signed public half, for the leader and its successors.
    #[must_use]
    pub fn statement(
        &self,
        keypair: &DroneKeypair<S>,
        deployment: &Deployment<S>,
        group: &Name,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> SpareStatement<S> {
        // §6.6: a fresh one-time point under a signature `spare`.
        let message = spare_message(group, keypair.public(), self.q, &self.point);
        let signature = keypair.sign(deployment, Label::Spare, &message, rng);
        SpareStatement { q: self.q, point: self.point, signature }
    }

    /// Encodes the pair for the edge's encrypted state: q (8 bytes), e_q.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        // Allocated once, so that no copy of the secret stays behind in memory that was outgrown.
        let mut bytes = Zeroizing::new(Vec::with_capacity(8 + S::SCALAR_LEN));
        bytes.extend_from_slice(&self.q.to_be_bytes());
        bytes.extend_from_slice(&*S::scalar_encode(self.secret.expose()));
        bytes
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// [`Error::Malformed`] or [`Error::InvalidScalar`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let q = reader.u64()?;
        let secret = SecretScalar::decode(reader.take(S::SCALAR_LEN)?)?;
        reader.end()?;
        Ok(Self::new(q, secret))
    }
}

impl<S: Suite> core::fmt::Debug for SparePair<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SparePair").field("q", &self.q).field("point", &self.point).finish_non_exhaustive()
    }
}

/// A spare point as a member publishes it: (q, E_q), signed `spare`.
#[derive(Clone, Debug)]
pub struct SpareStatement<S: Suite> {
    /// Number of the spare point.
    pub q: u64,
    /// E_q.
    pub point: Element<S>,
    /// The member's signature over [`message`](Self::message).
    pub signature: Signature<S>,
}

impl<S: Suite> SpareStatement<S> {
    /// The signed message: lp(group) ‖ lp(D) ‖ R ‖ P ‖ q ‖ E_q.
    #[must_use]
    pub fn message(&self, group: &Name, public: &DronePublicKey<S>) -> Vec<u8> {
        spare_message(group, public, self.q, &self.point)
    }

    /// Checks the statement of the member `public`.
    ///
    /// # Errors
    /// [`Error::Malformed`] for the number 0, otherwise the error of the signature's verification.
    pub fn verify(
        &self,
        deployment: &Deployment<S>,
        group: &Name,
        public: &DronePublicKey<S>,
    ) -> Result<(), Error> {
        self.verify_implicit(deployment, group, public, &public.implicit(deployment)?)
    }

    /// Verifies as [`verify`](Self::verify) does, with `public`'s Y known.
    ///
    /// # Errors
    /// As [`verify`](Self::verify).
    pub fn verify_implicit(
        &self,
        deployment: &Deployment<S>,
        group: &Name,
        public: &DronePublicKey<S>,
        implicit: &Element<S>,
    ) -> Result<(), Error> {
        // Number 0 is E_now of a join, which is no spare point (§1.2).
        if self.q == 0 {
            return Err(Error::Malformed("spare number"));
        }
        // §10.2: without the member's signature a lying leader would choose E.
        let message = self.message(group, public);
        self.signature.verify_implicit(deployment, public, implicit, Label::Spare, &message)
    }
}

fn spare_message<S: Suite>(group: &Name, public: &DronePublicKey<S>, q: u64, point: &Element<S>) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.lp(group.as_bytes()).fixed(&public.encode()).u64(q).fixed(point.as_bytes());
    writer.finish()
}
