//! The KGC's reply to an enrolment request, sealed to the drone.

use alloc::vec::Vec;

use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Digest, Hasher, Secret, Zeroizing, aead, extract};
use rand_core::CryptoRngCore;

use super::{EnrolmentRequest, KgcId, MAX_REQUEST_LEN, VerifiedRequest};
use crate::{
    Deployment, DroneKeypair, DronePublicKey, Element, Error, MasterSecret, SecretScalar, SecretValue, Suite,
    UnverifiedPartialKey,
};

/// A reply key seals one reply.
const NONCE: [u8; 12] = [0; 12];

/// HKDF(salt = H(request, kgc id, A), e·P_i ‖ e·N_i).
fn reply_key<S: Suite>(
    request: &Digest,
    kgc: KgcId,
    a: &Element<S>,
    with_value: &S::Point,
    with_reply: &S::Point,
) -> Secret<32> {
    // §3.5: the salt binds the reply to request, KGC and A.
    let hash = Hasher::new("quiver/1 enrolment reply").lp(S::ID.as_bytes());
    let salt = hash.fixed(request).u16(kgc).fixed(a.as_bytes()).finish();
    let mut ikm = Writer::with_capacity(2 * S::POINT_LEN);
    ikm.fixed(S::encode(with_value).as_ref()).fixed(S::encode(with_reply).as_ref());
    extract(&salt, &Zeroizing::new(ikm.finish()))
}

/// A partial key sealed to the drone that asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedReply<S: Suite> {
    kgc: KgcId,
    a: Element<S>,
    ciphertext: Vec<u8>,
}

impl<S: Suite> SealedReply<S> {
    /// Bytes of the encoding.
    pub const LEN: usize = 2 + S::POINT_LEN + S::SCALAR_LEN + S::POINT_LEN + aead::TAG_LEN;

    /// Issues the partial key that a verified request asks for with `master`, sealed to the drone.
    ///
    /// Not to be called before the pin is durable, nor twice for one request: a repeat gets the stored reply.
    pub fn issue(
        master: &MasterSecret<S>,
        deployment: &Deployment<S>,
        request: &VerifiedRequest<S>,
        this: KgcId,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> (Self, DronePublicKey<S>) {
        // §2.3: (s_i, R_i) is the KGC's signature over lp(D_i) ‖ P_i.
        let partial = master.issue_partial_key(deployment, &request.identity, &request.public_value, rng);
        let public = DronePublicKey::new(request.identity.clone(), *partial.r(), request.public_value);
        // §3.5: e is drawn for this reply, so its key seals one message and the nonce may be constant.
        let e = SecretScalar::<S>::generate(rng);
        let a = e.public();
        // §3.5: e·P_i ‖ e·N_i
        let key = reply_key(
            &request.digest,
            this,
            &a,
            &S::mul(e.expose(), request.public_value.point()),
            &S::mul(e.expose(), request.reply_point.point()),
        );
        let ciphertext = aead::seal(&key, &NONCE, &[], &partial.encode());
        (Self { kgc: this, a, ciphertext }, public)
    }

    /// The KGC that answered.
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
        let ciphertext = reader.take(S::SCALAR_LEN + S::POINT_LEN + aead::TAG_LEN)?.to_vec();
        reader.end()?;
        Ok(Self { kgc, a, ciphertext })
    }
}

/// A drone's side of an enrolment that is under way: x_i, the secret of the reply point, and the request.
#[derive(derive_more::Debug)]
#[debug("PendingEnrolment {{ request: {request:?}, .. }}")]
pub struct PendingEnrolment<S: Suite> {
    pub(super) request: EnrolmentRequest<S>,
    pub(super) value: SecretValue<S>,
    pub(super) reply: SecretScalar<S>,
}

impl<S: Suite> PendingEnrolment<S> {
    /// The request, to be sent again byte for byte until it is answered.
    #[must_use]
    pub const fn request(&self) -> &EnrolmentRequest<S> {
        &self.request
    }

    /// Opens a reply and checks the partial key in it.
    ///
    /// # Errors
    /// [`Error::WrongKgc`] if that KGC was not asked, [`Error::SealBroken`], or [`Error::InvalidPartialKey`],
    /// which only the KGC itself can cause.
    pub fn open(&self, deployment: &Deployment<S>, reply: &SealedReply<S>) -> Result<DroneKeypair<S>, Error> {
        // §3.3: the reply must come from a KGC that was asked.
        if !self.request.kgcs.contains(&reply.kgc) {
            return Err(Error::WrongKgc);
        }
        let key = reply_key(
            &self.request.digest(),
            reply.kgc,
            // §3.5: x_i·A = a·P_i and n_i·A = a·N_i.
            &reply.a,
            &S::mul(self.value.scalar().expose(), reply.a.point()),
            &S::mul(self.reply.expose(), reply.a.point()),
        );
        let plaintext = aead::open(&key, &NONCE, &[], &reply.ciphertext)?;
        let partial = UnverifiedPartialKey::decode(&plaintext).map_err(|_| Error::InvalidPartialKey)?;
        // §2.3: verified before it becomes a key.
        partial.verify(deployment, &self.request.statement().identity(), &self.value)
    }

    /// The encoding for the drone's storage: `lp(request)`, x_i, n_i. Secret.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let request = self.request.encode();
        let mut writer = Writer::with_capacity(4 + request.len() + 2 * S::SCALAR_LEN);
        writer.lp(&request).fixed(&self.value.to_bytes()).fixed(&self.reply.to_bytes());
        Zeroizing::new(writer.finish())
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// As [`EnrolmentRequest::decode`], and [`Error::InvalidScalar`] if the secrets are not those of the
    /// request.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let request = EnrolmentRequest::decode(reader.lp(MAX_REQUEST_LEN)?)?;
        let value = SecretValue::decode(reader.take(S::SCALAR_LEN)?)?;
        let reply = SecretScalar::decode(reader.take(S::SCALAR_LEN)?)?;
        reader.end()?;
        // §3.4: the KGC pinned this P_i, so other secrets would be of no use.
        if value.public() != request.public_value || reply.public() != request.reply_point {
            return Err(Error::InvalidScalar);
        }
        Ok(Self { request, value, reply })
    }
}
