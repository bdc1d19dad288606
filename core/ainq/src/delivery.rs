//! Delivery of a secret from an authority beside the KGC to an enrolled drone, through an untrusted gateway
//! (§4).
//!
//! ```text
//! drone → authority   request: (D,R,P), F, N = n·P, question; signed under y over all of that and the authority's challenge
//! authority → drone   answer:  E = e·P, and the secret under HKDF(salt = H(request, F, E), e·Y ‖ e·N ‖ a·N)
//! ```
//!
//! F is the fingerprint of the authority's [statement](crate::authority), which has A = a·P. Of the three
//! parts of the key e·Y closes the answer to everybody but the drone; e·N, with n erased, keeps a recorded
//! answer closed to whoever learns y later; a·N shows that it comes from the authority, because nobody else
//! can compute it. The last is why the KGC's x signs no answers: the authority works without it.
//!
//! The challenge is the authority's cookie for this connection, so a recorded request is good for nothing
//! elsewhere or later.
//!
//! A delivery that proves itself genuine, or of an authority whose secret several hold in shares so that none
//! has a, is sealed without its third part: it is **unattested**, `e·Y ‖ e·N` under a salt of its own. Only
//! the drone can open it all the same; but anybody may have made its content.

use alloc::vec::Vec;

use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Digest, Hasher, Secret, Zeroizing, aead, extract};
use rand_core::CryptoRngCore;

use crate::{
    Deployment, DroneKeypair, DronePublicKey, Element, Error, Label, RevocationStatement, SecretScalar,
    Signature, Suite, UnixTime, VerifiedAuthority,
};

/// Bytes a question may have.
pub const MAX_QUESTION_LEN: usize = 1024;
/// Bytes a secret that is delivered may have.
pub const MAX_SECRET_LEN: usize = 256 * 1024;
/// Bytes an encoded request may have, with the longest points of any suite.
pub const MAX_DELIVERY_REQUEST_LEN: usize = 4096;

/// A drone asks an authority for something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedDeliveryRequest<S: Suite> {
    drone: DronePublicKey<S>,
    authority: Digest,
    reply_point: Element<S>,
    question: Vec<u8>,
    signature: Signature<S>,
}

/// The signed message: F, lp(challenge), N, lp(question). The drone's key is in every signature's hash.
fn signed<S: Suite>(
    authority: &Digest,
    challenge: &[u8],
    reply_point: &Element<S>,
    question: &[u8],
) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.fixed(authority).lp(challenge).fixed(reply_point.as_bytes()).lp(question);
    writer.finish()
}

impl<S: Suite> SignedDeliveryRequest<S> {
    /// Makes a request to `authority` under `label`, the kind of the authority.
    ///
    /// # Errors
    /// [`Error::TooLong`] for a question of more than [`MAX_QUESTION_LEN`] bytes.
    pub fn create(
        deployment: &Deployment<S>,
        keypair: &DroneKeypair<S>,
        label: Label,
        authority: Digest,
        challenge: &[u8],
        question: &[u8],
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<(Self, PendingDelivery<S>), Error> {
        if question.len() > MAX_QUESTION_LEN {
            return Err(Error::TooLong { what: "question", limit: MAX_QUESTION_LEN });
        }
        // §4.2: N = n·P is one-time: with n erased, a recorded answer stays closed to an attacker that learns
        // y.
        let reply = SecretScalar::generate(rng);
        let reply_point = reply.public();
        let message = signed(&authority, challenge, &reply_point, question);
        // §4.1: the signature covers F, the challenge, N and the question.
        let signature = keypair.sign(deployment, label, &message, rng);
        let drone = keypair.public().clone();
        let request = Self { drone, authority, reply_point, question: question.to_vec(), signature };
        let pending = PendingDelivery { authority, digest: request.digest(), reply };
        Ok((request, pending))
    }

    /// The claimed drone.
    #[must_use]
    pub const fn drone(&self) -> &DronePublicKey<S> {
        &self.drone
    }

    /// F, the authority that is asked.
    #[must_use]
    pub const fn authority(&self) -> &Digest {
        &self.authority
    }

    /// The canonical encoding, at most [`MAX_DELIVERY_REQUEST_LEN`] bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.fixed(&self.drone.encode()).fixed(&self.authority).fixed(self.reply_point.as_bytes());
        writer.lp(&self.question).fixed(&self.signature.encode());
        writer.finish()
    }

    /// Reads the canonical encoding.
    ///
    /// # Errors
    /// [`Error::TooLong`], and as [`DronePublicKey::decode`] and [`Signature::decode`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() > MAX_DELIVERY_REQUEST_LEN {
            return Err(Error::TooLong { what: "delivery request", limit: MAX_DELIVERY_REQUEST_LEN });
        }
        let mut reader = Reader::new(bytes);
        let request = Self {
            drone: DronePublicKey::read(&mut reader)?,
            authority: reader.array()?,
            reply_point: Element::read(&mut reader)?,
            question: reader.lp(MAX_QUESTION_LEN)?.to_vec(),
            signature: Signature::read(&mut reader)?,
        };
        reader.end()?;
        Ok(request)
    }

    /// H over the encoding: what ties an answer to it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Hasher::new("quiver/1 delivery request").lp(S::ID.as_bytes()).lp(&self.encode()).finish()
    }

    /// Checks that a drone that is enrolled, not revoked and not at its end signed this for the challenge.
    /// The cheap checks come first.
    ///
    /// # Errors
    /// [`Error::Expired`], [`Error::Revoked`], [`Error::InvalidSignature`] or [`Error::IdentityPoint`].
    pub fn verify(
        self,
        deployment: &Deployment<S>,
        label: Label,
        challenge: &[u8],
        revocations: &RevocationStatement,
        now: UnixTime,
    ) -> Result<VerifiedDelivery<S>, Error> {
        // §4.1: expiry, revocation, signature, in this order.
        if now >= self.drone.identity.not_after {
            return Err(Error::Expired);
        }
        if revocations.names(&self.drone) {
            return Err(Error::Revoked);
        }
        // Y is computed once, for the signature and for the answer's key.
        let implicit = self.drone.implicit(deployment)?;
        let message = signed(&self.authority, challenge, &self.reply_point, &self.question);
        self.signature.verify_implicit(deployment, &self.drone, &implicit, label, &message)?;
        let digest = self.digest();
        Ok(VerifiedDelivery { request: self, implicit, digest })
    }
}

/// A request that the drone it names has made just now.
#[derive(Clone, Debug)]
pub struct VerifiedDelivery<S: Suite> {
    request: SignedDeliveryRequest<S>,
    implicit: Element<S>,
    digest: Digest,
}

impl<S: Suite> VerifiedDelivery<S> {
    /// The requesting drone.
    #[must_use]
    pub const fn drone(&self) -> &DronePublicKey<S> {
        &self.request.drone
    }

    /// Fingerprint of the authority that is asked.
    #[must_use]
    pub const fn authority(&self) -> &[u8; 32] {
        &self.request.authority
    }

    /// The question; at most [`MAX_QUESTION_LEN`] bytes.
    #[must_use]
    pub fn question(&self) -> &[u8] {
        &self.request.question
    }

    /// Digest of the request, to which the answer is bound.
    #[must_use]
    pub const fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Seals the answer to the drone. `secret` is a of the authority's statement.
    ///
    /// # Errors
    /// [`Error::TooLong`] for more than [`MAX_SECRET_LEN`] bytes, [`Error::WrongAuthority`] if another one
    /// was asked.
    pub fn seal(
        &self,
        authority: &VerifiedAuthority<S>,
        secret: &SecretScalar<S>,
        answer: &[u8],
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<SealedDelivery<S>, Error> {
        if answer.len() > MAX_SECRET_LEN {
            return Err(Error::TooLong { what: "answer", limit: MAX_SECRET_LEN });
        }
        // §4.1: F names the authority that is asked.
        if self.request.authority != *authority.fingerprint() {
            return Err(Error::WrongAuthority);
        }
        // §4.2: a·N shows that the authority made the answer: it takes a or n.
        let with_authority = S::mul(secret.expose(), self.request.reply_point.point());
        Ok(self.seal_with(Some(&with_authority), answer, rng))
    }

    /// Seals an answer to the drone without proof of its origin: for content that proves itself.
    ///
    /// # Errors
    /// [`Error::TooLong`] for more than [`MAX_SECRET_LEN`] bytes.
    pub fn seal_unattested(
        &self,
        answer: &[u8],
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<SealedDelivery<S>, Error> {
        if answer.len() > MAX_SECRET_LEN {
            return Err(Error::TooLong { what: "answer", limit: MAX_SECRET_LEN });
        }
        Ok(self.seal_with(None, answer, rng))
    }

    fn seal_with(
        &self,
        with_authority: Option<&S::Point>,
        answer: &[u8],
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> SealedDelivery<S> {
        // §4.2: E = e·P is fresh for every answer: its key seals one message, and the nonce may be constant.
        let e = SecretScalar::<S>::generate(rng);
        let point = e.public();
        // §4.2: e·Y closes the answer to all but the drone, e·N to those who learn y later.
        let key = answer_key::<S>(
            (&self.digest, &self.request.authority, &point),
            &S::mul(e.expose(), self.implicit.point()),
            &S::mul(e.expose(), self.request.reply_point.point()),
            with_authority,
        );
        SealedDelivery { point, ciphertext: aead::seal(&key, &NONCE, &[], answer) }
    }
}

/// An answer key seals one answer.
const NONCE: [u8; 12] = [0; 12];

/// HKDF(salt = H(request, F, E), e·Y ‖ e·N ‖ a·N); without a·N for an answer that is unattested.
fn answer_key<S: Suite>(
    (request, authority, e): (&Digest, &Digest, &Element<S>),
    with_key: &S::Point,
    with_reply: &S::Point,
    with_authority: Option<&S::Point>,
) -> Secret<32> {
    let domain = match with_authority {
        Some(_) => "quiver/1 delivery answer",
        None => "quiver/1 unattested delivery answer",
    };
    let hash = Hasher::new(domain).lp(S::ID.as_bytes());
    // §4.2: salt = H(request, F, E).
    let salt = hash.fixed(request).fixed(authority).fixed(e.as_bytes()).finish();
    // §4.2: ikm = e·Y ‖ e·N ‖ a·N; without a·N where the content proves itself (§4.3).
    let mut ikm = Writer::with_capacity(3 * S::POINT_LEN);
    for point in [with_key, with_reply].into_iter().chain(with_authority) {
        ikm.fixed(S::encode(point).as_ref());
    }
    extract(&salt, &Zeroizing::new(ikm.finish()))
}

/// An answer, sealed to the drone that asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedDelivery<S: Suite> {
    point: Element<S>,
    ciphertext: Vec<u8>,
}

impl<S: Suite> SealedDelivery<S> {
    /// Bytes an encoding may have.
    pub const MAX_LEN: usize = S::POINT_LEN + MAX_SECRET_LEN + aead::TAG_LEN;

    /// The encoding: E, then the ciphertext.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        Writer::new().fixed(self.point.as_bytes()).fixed(&self.ciphertext).finish()
    }

    /// Reads the encoding.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::Malformed`], [`Error::InvalidPoint`] or [`Error::IdentityPoint`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() > Self::MAX_LEN {
            return Err(Error::TooLong { what: "sealed answer", limit: Self::MAX_LEN });
        }
        let mut reader = Reader::new(bytes);
        let point = Element::read(&mut reader)?;
        let ciphertext = reader.take(reader.remaining())?;
        if ciphertext.len() < aead::TAG_LEN {
            return Err(Error::Malformed("truncated"));
        }
        Ok(Self { point, ciphertext: ciphertext.to_vec() })
    }
}

/// A drone's side of a request that is under way: n. It is good for one answer and never stored.
#[derive(derive_more::Debug)]
#[debug("PendingDelivery {{ authority: {authority:?}, .. }}")]
pub struct PendingDelivery<S: Suite> {
    authority: Digest,
    digest: Digest,
    reply: SecretScalar<S>,
}

impl<S: Suite> PendingDelivery<S> {
    /// F, the authority that was asked.
    #[must_use]
    pub const fn authority(&self) -> &Digest {
        &self.authority
    }

    /// Digest of the request, to which the answer is bound.
    #[must_use]
    pub const fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Opens the answer. Success proves that the authority made it for this request.
    ///
    /// # Errors
    /// [`Error::WrongAuthority`] if this is not the one asked, [`Error::SealBroken`].
    pub fn open(
        &self,
        keypair: &DroneKeypair<S>,
        authority: &VerifiedAuthority<S>,
        answer: &SealedDelivery<S>,
    ) -> Result<Zeroizing<Vec<u8>>, Error> {
        if self.authority != *authority.fingerprint() {
            return Err(Error::WrongAuthority);
        }
        // §4.2: n·A = a·N.
        let with_authority = S::mul(self.reply.expose(), authority.delivery.point());
        self.open_with(keypair, Some(&with_authority), answer)
    }

    /// Opens an answer without proof of its origin. Success proves only that it was made for this request.
    ///
    /// # Errors
    /// [`Error::SealBroken`].
    pub fn open_unattested(
        &self,
        keypair: &DroneKeypair<S>,
        answer: &SealedDelivery<S>,
    ) -> Result<Zeroizing<Vec<u8>>, Error> {
        self.open_with(keypair, None, answer)
    }

    fn open_with(
        &self,
        keypair: &DroneKeypair<S>,
        with_authority: Option<&S::Point>,
        answer: &SealedDelivery<S>,
    ) -> Result<Zeroizing<Vec<u8>>, Error> {
        // §4.2: y·E = e·Y and n·E = e·N.
        let key = answer_key::<S>(
            (&self.digest, &self.authority, &answer.point),
            &S::mul(keypair.secret().expose(), answer.point.point()),
            &S::mul(self.reply.expose(), answer.point.point()),
            with_authority,
        );
        Ok(aead::open(&key, &NONCE, &[], &answer.ciphertext)?)
    }
}
