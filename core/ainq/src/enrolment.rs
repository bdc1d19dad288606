//! Enrolment of a drone: it obtains its partial key from a KGC through an untrusted gateway (§3).
//!
//! ```text
//! drone → KGC   request: token, P_i, N_i, KGC ids, session, proofs under tsk and x_i over all of that
//! KGC → drone   reply:   A = e·P, and (s_i, R_i) under HKDF(salt = H(request, kgc id, A), e·P_i ‖ e·N_i)
//! ```
//!
//! N_i is a one-time reply point: a recorded reply stays closed to an attacker who learns x_i later; P_i
//! keeps it closed to one who guesses the one-time key. The KGC pins the token to (D_i, P_i) before its first
//! answer: [`VerifiedRequest::pin`].

use alloc::vec::Vec;

use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Digest, Hasher};
use rand_core::CryptoRngCore;

use crate::schnorr::{Equation, SchnorrNonce};
use crate::{
    Deployment, DronePublicKey, Element, Error, Identity, IssuedToken, OperatorPublicKey, SchnorrSignature,
    SecretScalar, SecretValue, Suite, Token, TokenStatement, UnixTime,
};

mod reply;
mod share;

pub use reply::{PendingEnrolment, SealedReply};
pub use share::SealedShare;

/// Number of a KGC: a FROST identifier, counted from 1; a single KGC is 1.
pub type KgcId = u16;

/// Bytes an enrolment request may have.
pub const MAX_REQUEST_LEN: usize = 4096;

/// KGCs one request may be addressed to.
pub const MAX_KGCS: usize = 64;

/// A request for a partial key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnrolmentRequest<S: Suite> {
    token: Token<S>,
    public_value: Element<S>,
    reply_point: Element<S>,
    kgcs: Vec<KgcId>,
    session: [u8; 16],
    token_proof: SchnorrSignature<S>,
    value_proof: SchnorrSignature<S>,
}

/// Key of each of the two proofs.
#[derive(Clone, Copy)]
enum Proof {
    Token,
    Value,
}

impl Proof {
    const fn domain(self) -> &'static str {
        match self {
            Self::Token => "quiver/1 proof of token key",
            Self::Value => "quiver/1 proof of secret value",
        }
    }

    fn challenge<S: Suite>(self, key: &Element<S>, commitment: &Element<S>, transcript: &[u8]) -> S::Scalar {
        // Binds a proof to its suite, key and commitment, and to the request that both proofs share.
        let parts = [S::ID.as_bytes(), key.as_bytes(), commitment.as_bytes(), transcript];
        S::hash_to_scalar(self.domain(), &parts)
    }

    fn make<S: Suite>(
        self,
        (secret, public): (&SecretScalar<S>, &Element<S>),
        transcript: &[u8],
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> SchnorrSignature<S> {
        // §3.3: a Schnorr proof of the secret; its nonce is hedged as in a signature (§2.4).
        let nonce = SchnorrNonce::hedged(secret, self.domain(), transcript, rng);
        nonce.sign(secret, |k| self.challenge(public, k, transcript))
    }

    /// The equation of a proof.
    fn equation<'a, S: Suite>(
        self,
        proof: &'a SchnorrSignature<S>,
        key: &'a Element<S>,
        transcript: &[u8],
    ) -> Equation<'a, S> {
        Equation { signature: proof, challenge: self.challenge(key, proof.commitment(), transcript), key }
    }
}

impl<S: Suite> EnrolmentRequest<S> {
    /// Asks the given KGCs for the identity of the token, with a fresh secret value.
    ///
    /// `session` distinguishes attempts; it should be random. The pending enrolment must be stored before the
    /// request is sent: for this token the KGC will never accept another public value.
    ///
    /// # Errors
    /// [`Error::WrongDeployment`] if the token is for another one, [`Error::TooLong`] or [`Error::WrongKgc`]
    /// if there are too many KGCs or none.
    pub fn create(
        deployment: &Deployment<S>,
        issued: &IssuedToken<S>,
        kgcs: &[KgcId],
        session: [u8; 16],
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<(Self, PendingEnrolment<S>), Error> {
        // §3.2: the token names P_pub, so one of another deployment ends here.
        if issued.token.statement.master != *deployment.master() {
            return Err(Error::WrongDeployment);
        }
        let kgcs = ascending(kgcs);
        check_kgcs(&kgcs)?;
        // §3.3: x_i, and the secret of the one-time reply point N_i.
        let value = SecretValue::generate(rng);
        let reply = SecretScalar::generate(rng);
        let (public_value, reply_point) = (value.public(), reply.public());
        // §3.3: both proofs are over the whole request, the KGCs' ids and the session.
        let transcript =
            transcript(&issued.token.statement.encode(), &public_value, &reply_point, &kgcs, &session);
        let request = Self {
            token: issued.token.clone(),
            public_value,
            reply_point,
            kgcs,
            session,
            token_proof: Proof::Token.make((issued.secret(), &issued.token.statement.tpk), &transcript, rng),
            value_proof: Proof::Value.make((value.scalar(), &public_value), &transcript, rng),
        };
        Ok((request.clone(), PendingEnrolment { request, value, reply }))
    }

    /// The operator's grant, if it is genuine: see [`verify`](Self::verify).
    pub const fn statement(&self) -> &TokenStatement<S> {
        &self.token.statement
    }

    /// P_i.
    pub const fn public_value(&self) -> &Element<S> {
        &self.public_value
    }

    /// The KGCs that are asked, ascending.
    pub fn kgcs(&self) -> &[KgcId] {
        &self.kgcs
    }

    /// Distinguishes attempts of one drone.
    pub const fn session(&self) -> &[u8; 16] {
        &self.session
    }

    /// The canonical encoding, at most [`MAX_REQUEST_LEN`] bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.fixed(&self.token.encode());
        writer.fixed(self.public_value.as_bytes()).fixed(self.reply_point.as_bytes());
        write_kgcs(&mut writer, &self.kgcs);
        writer.fixed(&self.session).fixed(&self.token_proof.encode()).fixed(&self.value_proof.encode());
        writer.finish()
    }

    /// Reads the canonical encoding.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::WrongKgc`], [`Error::InvalidScalar`], and as [`TokenStatement::decode`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() > MAX_REQUEST_LEN {
            return Err(Error::TooLong { what: "enrolment request", limit: MAX_REQUEST_LEN });
        }
        let mut reader = Reader::new(bytes);
        let token = Token::read(&mut reader)?;
        let (public_value, reply_point) = (Element::read(&mut reader)?, Element::read(&mut reader)?);
        let count = reader.count(MAX_KGCS, 2)?;
        let kgcs = (0..count).map(|_| reader.u16()).collect::<Result<Vec<_>, _>>()?;
        check_kgcs(&kgcs)?;
        let session = reader.array()?;
        let token_proof = SchnorrSignature::read(&mut reader)?;
        let value_proof = SchnorrSignature::read(&mut reader)?;
        reader.end()?;
        Ok(Self { token, public_value, reply_point, kgcs, session, token_proof, value_proof })
    }

    /// H over the encoding: distinguishes a repeated request from another.
    pub fn digest(&self) -> Digest {
        // §3.4: a byte-identical repeat has the same digest and gets the stored reply.
        Hasher::new("quiver/1 enrolment request").lp(S::ID.as_bytes()).lp(&self.encode()).finish()
    }

    /// Checks all that a KGC must check before it pins the token: deployment, times, the operator's
    /// signature, that the request is addressed to it, and both proofs.
    ///
    /// # Errors
    /// [`Error::WrongDeployment`], [`Error::Expired`], [`Error::UnknownOperator`], [`Error::WrongKgc`] or
    /// [`Error::InvalidSignature`].
    pub fn verify(
        &self,
        deployment: &Deployment<S>,
        operators: &[OperatorPublicKey<S>],
        this: KgcId,
        now: UnixTime,
    ) -> Result<VerifiedRequest<S>, Error> {
        // §3.3: the proofs cover the KGCs' ids; only a KGC that was asked answers.
        if !self.kgcs.contains(&this) {
            return Err(Error::WrongKgc);
        }
        // §3.4: deployment and expiry, before any curve operation.
        self.token.check_times(deployment, now)?;
        let (statement, digest) = (self.token.statement.encode(), self.digest());
        let transcript =
            transcript(&statement, &self.public_value, &self.reply_point, &self.kgcs, &self.session);
        // §3.3: the proofs under tsk and x_i, over one transcript.
        let proofs = [
            Proof::Token.equation(&self.token_proof, &self.token.statement.tpk, &transcript),
            Proof::Value.equation(&self.value_proof, &self.public_value, &transcript),
        ];
        // §3.4: the operator's signature and both proofs.
        self.check_signatures(operators, &statement, &proofs, &digest)?;
        Ok(VerifiedRequest {
            identity: self.token.statement.identity(),
            public_value: self.public_value,
            reply_point: self.reply_point,
            digest,
        })
    }

    /// Checks the operator's signature and both proofs: in one product if only one operator can have signed,
    /// and one by one to find the mistake.
    fn check_signatures(
        &self,
        operators: &[OperatorPublicKey<S>],
        statement: &[u8],
        [token, value]: &[Equation<'_, S>; 2],
        digest: &Digest,
    ) -> Result<(), Error> {
        // One operator: its equation and those of the proofs in one product, weighted by the request.
        if let [operator] = operators
            && Equation::all_hold(&[&self.token.equation(operator, statement), token, value], digest)
        {
            return Ok(());
        }
        // One by one, to distinguish an unknown operator from a wrong proof.
        if !operators.iter().any(|operator| self.token.equation(operator, statement).holds()) {
            return Err(Error::UnknownOperator);
        }
        if !token.holds() || !value.holds() {
            return Err(Error::InvalidSignature);
        }
        Ok(())
    }
}

/// Transcript of both proofs: statement (which has P_pub), P_i, N_i, KGC ids, session.
fn transcript<S: Suite>(
    statement: &[u8],
    public_value: &Element<S>,
    reply_point: &Element<S>,
    kgcs: &[KgcId],
    session: &[u8; 16],
) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.lp(statement).fixed(public_value.as_bytes()).fixed(reply_point.as_bytes());
    write_kgcs(&mut writer, kgcs);
    writer.fixed(session).finish()
}

fn write_kgcs(writer: &mut Writer, kgcs: &[KgcId]) {
    writer.count(kgcs.len());
    for kgc in kgcs {
        writer.u16(*kgc);
    }
}

/// The ids in order, each once. They are few, and a library's sort for their type takes a board 2 KB of
/// flash.
fn ascending(ids: &[KgcId]) -> Vec<KgcId> {
    let mut sorted: Vec<KgcId> = Vec::with_capacity(ids.len());
    for id in ids {
        if let Err(place) = sorted.binary_search(id) {
            sorted.insert(place, *id);
        }
    }
    sorted
}

fn check_kgcs(kgcs: &[KgcId]) -> Result<(), Error> {
    if kgcs.len() > MAX_KGCS {
        return Err(Error::TooLong { what: "KGCs of a request", limit: MAX_KGCS });
    }
    if kgcs.is_empty() || kgcs.contains(&0) {
        return Err(Error::WrongKgc);
    }
    // One encoding for one set of KGCs: ascending, none twice.
    if !kgcs.is_sorted_by(|a, b| a < b) {
        return Err(Error::Malformed("KGCs must ascend"));
    }
    Ok(())
}

/// A request a KGC has checked, all but whether the token is pinned to something else.
#[derive(Clone, Debug)]
pub struct VerifiedRequest<S: Suite> {
    identity: Identity,
    public_value: Element<S>,
    reply_point: Element<S>,
    digest: Digest,
}

impl<S: Suite> VerifiedRequest<S> {
    /// The token's id.
    pub const fn token_id(&self) -> &[u8; 16] {
        &self.identity.serial
    }

    /// D_i.
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// P_i.
    pub const fn public_value(&self) -> &Element<S> {
        &self.public_value
    }

    /// Distinguishes a repeat from another request.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// The statement that is signed for the drone: built here from verified values, never from received
    /// bytes.
    pub fn identity_statement(&self, deployment: &Deployment<S>) -> Vec<u8> {
        // §3.7: the KGC builds the message itself and signs no byte that the drone sends.
        crate::identity_statement(deployment, &self.identity.encode(), &self.public_value)
    }

    /// The public key that the drone has if R_i is this.
    pub fn public_key(&self, r: Element<S>) -> DronePublicKey<S> {
        DronePublicKey::new(self.identity.clone(), r, self.public_value)
    }

    /// H(D_i, P_i). The KGC stores it under the token's id before its first answer, and refuses any other for
    /// ever.
    pub fn pin(&self) -> Digest {
        // §3.4: the pin H(D, P_i), to which the token is bound for ever.
        let hash = Hasher::new("quiver/1 enrolment pin").lp(S::ID.as_bytes());
        hash.lp(&self.identity.encode()).fixed(self.public_value.as_bytes()).finish()
    }
}
