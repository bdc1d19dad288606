//! Signatures of drones and leaders under y, singly and in batches.
//!
//! ```text
//! k = wide(HMAC(y, rand32 ‖ label ‖ m))                                   hedged
//! K = k·P
//! c = Hq("quiver/1 sig", suite, label, P_pub, lp(D), R, P, Y, K, lp(m))
//! z = k + c·y
//! ```
//!
//! c is never FROST's H2: that one belongs to the KGC. Everything of which the implicit key was made goes
//! into the hash, so a signature binds signer and deployment.

use alloc::vec::Vec;

use quiver_crypto::canonical::{Reader, Writer};
use rand_core::CryptoRngCore;

use crate::schnorr::SchnorrNonce;
use crate::{Deployment, DroneKeypair, DronePublicKey, Element, Error, SchnorrSignature, Suite};

/// Kind of a signed message. No signature of one kind passes for one of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Label {
    /// The header of an epoch, by the leader.
    Header,
    /// An answer that welcomes a drone, by the leader.
    Welcome,
    /// A request to join.
    Join,
    /// A spare point.
    Spare,
    /// A notice of leaving.
    Leave,
    /// A notice of eviction, by a leader.
    Evict,
    /// An envelope, by its sender.
    Envelope,
    /// A group message, by a leader or an edge.
    Command,
    /// A datagram, the manifest of several, or the announcement of their sender.
    Datagram,
    /// A deputy's question to its leader.
    StandBy,
    /// A leader's answer to a deputy: that it is there, and what changed.
    Replica,
    /// A request to the attribute authority.
    Attributes,
    /// A request for the release of an identity-based key.
    IbeRelease,
    /// An attribute-based key exchange.
    Abke,
    /// A leader's policy for anonymous joins.
    Admission,
    /// A drone's clock, for a peer that asked.
    Clock,
    /// Proof that a drone holds a key, for the KGCs of a quorum.
    Enrolled,
}

impl Label {
    /// The label in the signed bytes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Welcome => "welcome",
            Self::Join => "join",
            Self::Spare => "spare",
            Self::Leave => "leave",
            Self::Evict => "evict",
            Self::Envelope => "envelope",
            Self::Command => "command",
            Self::Datagram => "datagram",
            Self::StandBy => "stand-by",
            Self::Replica => "replica",
            Self::Attributes => "attributes",
            Self::IbeRelease => "ibe-release",
            Self::Abke => "abke",
            Self::Admission => "admission",
            Self::Clock => "clock",
            Self::Enrolled => "enrolled",
        }
    }
}

/// A signature (K, z) by a drone: `S::POINT_LEN + S::SCALAR_LEN` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature<S: Suite>(SchnorrSignature<S>);

impl<S: Suite> DroneKeypair<S> {
    /// Signs `message`.
    pub fn sign(
        &self,
        deployment: &Deployment<S>,
        label: Label,
        message: &[u8],
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Signature<S> {
        // §2.4: hedged: fresh randomness and the message both enter.
        let nonce = SchnorrNonce::hedged(self.secret(), label.as_str(), message, rng);
        let challenge =
            |k: &_| challenge(deployment, self.public(), self.implicit_bytes(), label, k, message);
        // (K, z) with z = k + c·y.
        Signature(nonce.sign(self.secret(), challenge))
    }
}

impl<S: Suite> Signature<S> {
    /// Bytes of the encoding.
    pub const LEN: usize = SchnorrSignature::<S>::LEN;

    /// Checks that the drone with this public key signed `message`.
    ///
    /// # Errors
    /// [`Error::InvalidSignature`], or [`Error::IdentityPoint`] if the implicit key is the identity.
    pub fn verify(
        &self,
        deployment: &Deployment<S>,
        public: &DronePublicKey<S>,
        label: Label,
        message: &[u8],
    ) -> Result<(), Error> {
        self.verify_implicit(deployment, public, &public.implicit(deployment)?, label, message)
    }

    /// Verifies as [`verify`](Self::verify) does, with the implicit key of `public` known, which costs a
    /// third of the work.
    ///
    /// # Errors
    /// [`Error::InvalidSignature`].
    pub fn verify_implicit(
        &self,
        deployment: &Deployment<S>,
        public: &DronePublicKey<S>,
        implicit: &Element<S>,
        label: Label,
        message: &[u8],
    ) -> Result<(), Error> {
        let challenge =
            challenge(deployment, public, implicit.as_bytes(), label, self.0.commitment(), message);
        // z·P = K + c·Y.
        if !self.0.satisfies(&challenge, implicit.point()) {
            return Err(Error::InvalidSignature);
        }
        Ok(())
    }

    /// The encoding: K, then z.
    pub fn encode(&self) -> Vec<u8> {
        self.0.encode()
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        self.0.write(writer);
    }

    /// Reads [`LEN`](Self::LEN) bytes.
    ///
    /// # Errors
    /// As [`SchnorrSignature::decode`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        SchnorrSignature::decode(bytes).map(Self)
    }

    /// Reads [`LEN`](Self::LEN) bytes off the front of `reader`.
    ///
    /// # Errors
    /// As [`SchnorrSignature::decode`].
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        SchnorrSignature::read(reader).map(Self)
    }
}

/// c = Hq("quiver/1 sig", suite, label, P_pub, lp(D), R, P, Y, K, lp(m)).
fn challenge<S: Suite>(
    deployment: &Deployment<S>,
    public: &DronePublicKey<S>,
    implicit: &[u8],
    label: Label,
    commitment: &Element<S>,
    message: &[u8],
) -> S::Scalar {
    // §2.4: binds suite, label, P_pub, the whole public key and the message; the hash is never FROST's.
    S::hash_to_scalar(
        "quiver/1 sig",
        &[
            S::ID.as_bytes(),
            label.as_str().as_bytes(),
            deployment.master().as_bytes(),
            &public.identity.encode(),
            public.r(),
            public.p(),
            implicit,
            commitment.as_bytes(),
            message,
        ],
    )
}

/// A signature of a batch.
#[derive(Clone, Copy, Debug)]
pub struct SignedItem<'a, S: Suite> {
    /// The claimed signer.
    pub public: &'a DronePublicKey<S>,
    /// Kind of the message.
    pub label: Label,
    /// The message.
    pub message: &'a [u8],
    /// The signature.
    pub signature: &'a Signature<S>,
}

/// Returns true if all signatures are valid; true of none.
///
/// One multiscalar product of a random linear combination with independent 128-bit weights: a batch with a
/// bad signature passes with probability 2^-127. When it fails, [`Signature::verify`] one by one names the
/// culprits.
#[must_use]
pub fn verify_batch<S: Suite>(
    deployment: &Deployment<S>,
    items: &[SignedItem<'_, S>],
    rng: &mut (impl CryptoRngCore + ?Sized),
) -> bool {
    let mut implicit: Vec<Element<S>> = Vec::with_capacity(items.len());
    let mut before: Option<&DronePublicKey<S>> = None;
    for item in items {
        // A drone's signatures tend to be adjacent.
        let known = implicit.last().copied().filter(|_| before == Some(item.public));
        match known.map_or_else(|| item.public.implicit(deployment), Ok) {
            Ok(key) => implicit.push(key),
            Err(_) => return false,
        }
        before = Some(item.public);
    }
    verify_batch_implicit(deployment, items, &implicit, rng)
}

/// Verifies as [`verify_batch`] does, with the implicit keys known: one per item, in the same order.
#[must_use]
pub fn verify_batch_implicit<S: Suite>(
    deployment: &Deployment<S>,
    items: &[SignedItem<'_, S>],
    implicit: &[Element<S>],
    rng: &mut (impl CryptoRngCore + ?Sized),
) -> bool {
    if items.len() != implicit.len() {
        return false;
    }
    // §6.4: one random linear combination: Σ w·z · P = Σ w · K + Σ w·c · Y
    let zero = S::scalar_from_u128(0);
    let mut response = zero;
    let mut scalars = Vec::with_capacity(2 * items.len());
    let mut points = Vec::with_capacity(2 * items.len());
    let mut open: Option<(Element<S>, S::Scalar)> = None;
    for (item, key) in items.iter().zip(implicit) {
        // An independent weight of 128 bits for each signature.
        let mut weight = [0; 16];
        rng.fill_bytes(&mut weight);
        let weight = S::scalar_from_u128(u128::from_le_bytes(weight));
        let signature = &item.signature.0;
        let c = challenge(
            deployment,
            item.public,
            key.as_bytes(),
            item.label,
            signature.commitment(),
            item.message,
        );
        response = response + weight * *signature.response();
        // The terms of K; those of Y follow, one for each drone.
        scalars.push(weight);
        points.push(*signature.commitment().point());
        // The terms of one drone's signatures become one.
        open = match open {
            Some((current, sum)) if current == *key => Some((current, sum + weight * c)),
            other => {
                push_term(&mut scalars, &mut points, other);
                Some((*key, weight * c))
            }
        };
    }
    push_term(&mut scalars, &mut points, open);
    S::mul_base(&response) == S::vartime_multiscalar(&scalars, &points)
}

fn push_term<S: Suite>(
    scalars: &mut Vec<S::Scalar>,
    points: &mut Vec<S::Point>,
    term: Option<(Element<S>, S::Scalar)>,
) {
    if let Some((key, scalar)) = term {
        scalars.push(scalar);
        points.push(*key.point());
    }
}
