//! Enrolment tokens: an operator's signed permission to enrol an identity.
//!
//! Every KGC pins the operators' keys when it is set up; they are not the KGC's own. The statement names a
//! token key tpk whose secret tsk stays on the drone, so a token read on its way enrols nobody.

use alloc::vec::Vec;

use quiver_crypto::Zeroizing;
use quiver_crypto::canonical::{Reader, Writer};
use rand_core::CryptoRngCore;

use crate::identity::{MAX_IDENTITY_LEN, check_groups, read_grant, write_grant};
use crate::schnorr::{Equation, SchnorrNonce};
use crate::{
    Deployment, Element, Error, Identity, Name, Role, SchnorrSignature, SecretScalar, Suite, UnixTime,
};

/// An operator's secret key.
#[derive(Debug)]
pub struct OperatorSecretKey<S: Suite> {
    secret: SecretScalar<S>,
    public: Element<S>,
}

/// An operator's public key, as KGCs pin it: `S::POINT_LEN` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperatorPublicKey<S: Suite>(pub Element<S>);

/// Grant of an operator; the id and the token key are drawn when the token is issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenGrant {
    /// Name of the drone for people.
    pub name: Name,
    /// Role of the drone.
    pub role: Role,
    /// The groups it may join, in any order; at most [`MAX_GROUPS`](crate::MAX_GROUPS).
    pub groups: Vec<Name>,
    /// End of its identity.
    pub not_after: UnixTime,
    /// Time until which the token may be used.
    pub expiry: UnixTime,
}

/// The signed statement of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenStatement<S: Suite> {
    /// The token's id, which becomes the drone's serial.
    pub id: [u8; 16],
    /// Name of the drone for people.
    pub name: Name,
    /// Role of the drone.
    pub role: Role,
    /// The groups it may join, ascending.
    pub groups: Vec<Name>,
    /// End of its identity.
    pub not_after: UnixTime,
    /// Time until which the token may be used.
    pub expiry: UnixTime,
    /// P_pub of the deployment the token is for.
    pub master: Element<S>,
    /// The token key.
    pub tpk: Element<S>,
}

/// A statement with an operator's signature that is not verified yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token<S: Suite> {
    /// The grant.
    pub statement: TokenStatement<S>,
    /// The operator's signature.
    pub signature: SchnorrSignature<S>,
}

/// A token with its secret tsk, as it is put on a drone.
#[derive(derive_more::Debug)]
#[debug("IssuedToken {{ token: {token:?}, .. }}")]
pub struct IssuedToken<S: Suite> {
    /// The public part.
    pub token: Token<S>,
    tsk: SecretScalar<S>,
}

impl<S: Suite> OperatorSecretKey<S> {
    /// Draws a key.
    #[must_use]
    pub fn generate(rng: &mut (impl CryptoRngCore + ?Sized)) -> Self {
        Self::of(SecretScalar::generate(rng))
    }

    fn of(secret: SecretScalar<S>) -> Self {
        Self { public: secret.public(), secret }
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// [`Error::InvalidScalar`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        SecretScalar::decode(bytes).map(Self::of)
    }

    /// `S::SCALAR_LEN` bytes.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        self.secret.to_bytes()
    }

    /// The public key.
    #[must_use]
    pub fn public(&self) -> OperatorPublicKey<S> {
        OperatorPublicKey(self.public)
    }

    /// Issues a token for one drone of `deployment`.
    ///
    /// # Errors
    /// [`Error::TooLong`] if there are too many groups.
    pub fn issue(
        &self,
        deployment: &Deployment<S>,
        grant: TokenGrant,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<IssuedToken<S>, Error> {
        let TokenGrant { name, role, mut groups, not_after, expiry } = grant;
        groups.sort_unstable();
        groups.dedup();
        check_groups(&groups)?;
        // §3.2: the secret of tpk stays with the drone.
        let tsk = SecretScalar::generate(rng);
        // §2.1: the token's id becomes the drone's serial.
        let mut id = [0; 16];
        rng.fill_bytes(&mut id);
        let (master, tpk) = (*deployment.master(), tsk.public());
        let statement = TokenStatement { id, name, role, groups, not_after, expiry, master, tpk };
        let message = statement.encode();
        // §2.4: hedged: fresh randomness and the message both enter.
        let nonce = SchnorrNonce::hedged(&self.secret, "token", &message, rng);
        let signature = nonce.sign(&self.secret, |k| challenge(&self.public, k, &message));
        Ok(IssuedToken { token: Token { statement, signature }, tsk })
    }
}

impl<S: Suite> OperatorPublicKey<S> {
    /// Reads `S::POINT_LEN` bytes.
    ///
    /// # Errors
    /// [`Error::InvalidPoint`] or [`Error::IdentityPoint`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        Element::decode(bytes).map(Self)
    }

    /// `S::POINT_LEN` bytes.
    pub fn encode(&self) -> Vec<u8> {
        self.0.as_bytes().to_vec()
    }
}

/// Hq("quiver/1 token", suite, operator key, K, statement).
fn challenge<S: Suite>(operator: &Element<S>, commitment: &Element<S>, statement: &[u8]) -> S::Scalar {
    let parts = [S::ID.as_bytes(), operator.as_bytes(), commitment.as_bytes(), statement];
    S::hash_to_scalar("quiver/1 token", &parts)
}

impl<S: Suite> TokenStatement<S> {
    /// Bytes an encoding may have.
    pub const MAX_LEN: usize = 4 + 64 + MAX_IDENTITY_LEN + 8 + 2 * S::POINT_LEN;

    /// The identity the token is for.
    #[must_use]
    pub fn identity(&self) -> Identity {
        Identity {
            serial: self.id,
            name: self.name.clone(),
            role: self.role.clone(),
            groups: self.groups.clone(),
            not_after: self.not_after,
        }
    }

    /// The canonical encoding, which starts with the suite.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.lp(S::ID.as_bytes()).fixed(&self.id);
        write_grant(&mut writer, &self.name, &self.role, &self.groups, self.not_after);
        writer.u64(self.expiry).fixed(self.master.as_bytes()).fixed(self.tpk.as_bytes());
        writer.finish()
    }

    /// Reads the canonical encoding.
    ///
    /// # Errors
    /// [`Error::WrongSuite`], [`Error::Malformed`], [`Error::InvalidName`], [`Error::InvalidPoint`] or
    /// [`Error::IdentityPoint`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        if reader.lp(64)? != S::ID.as_bytes() {
            return Err(Error::WrongSuite);
        }
        let id = reader.array()?;
        let (name, role, groups, not_after) = read_grant(&mut reader)?;
        let expiry = reader.u64()?;
        let (master, tpk) = (Element::read(&mut reader)?, Element::read(&mut reader)?);
        reader.end()?;
        Ok(Self { id, name, role, groups, not_after, expiry, master, tpk })
    }
}

impl<S: Suite> Token<S> {
    /// Bytes an encoding may have.
    pub const MAX_LEN: usize = 4 + TokenStatement::<S>::MAX_LEN + SchnorrSignature::<S>::LEN;

    /// The canonical encoding: `lp(statement)`, then the signature.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        Writer::new().lp(&self.statement.encode()).fixed(&self.signature.encode()).finish()
    }

    /// Reads the canonical encoding.
    ///
    /// # Errors
    /// As [`TokenStatement::decode`], and [`Error::InvalidScalar`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let token = Self::read(&mut reader)?;
        reader.end()?;
        Ok(token)
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let statement = TokenStatement::decode(reader.lp(TokenStatement::<S>::MAX_LEN)?)?;
        Ok(Self { statement, signature: SchnorrSignature::read(reader)? })
    }

    /// Checks that one of the operators signed this token, for this deployment, and that it has not expired.
    ///
    /// # Errors
    /// [`Error::WrongDeployment`], [`Error::Expired`] or [`Error::UnknownOperator`].
    pub fn verify(
        &self,
        deployment: &Deployment<S>,
        operators: &[OperatorPublicKey<S>],
        now: UnixTime,
    ) -> Result<(), Error> {
        self.check_times(deployment, now)?;
        let statement = self.statement.encode();
        // §3.2: the signature of any pinned operator will do.
        if !operators.iter().any(|operator| self.equation(operator, &statement).holds()) {
            return Err(Error::UnknownOperator);
        }
        Ok(())
    }

    /// All but the signature.
    pub(crate) fn check_times(&self, deployment: &Deployment<S>, now: UnixTime) -> Result<(), Error> {
        // §3.2: the statement names P_pub.
        if self.statement.master != *deployment.master() {
            return Err(Error::WrongDeployment);
        }
        // §3.4: neither the token nor the identity may have expired.
        if now >= self.statement.expiry || now >= self.statement.not_after {
            return Err(Error::Expired);
        }
        Ok(())
    }

    /// The equation that holds if this operator signed the statement, which is passed encoded.
    pub(crate) fn equation<'a>(
        &'a self,
        operator: &'a OperatorPublicKey<S>,
        statement: &[u8],
    ) -> Equation<'a, S> {
        // §3.2: the operator's Schnorr signature over the statement.
        let challenge = challenge(&operator.0, self.signature.commitment(), statement);
        Equation { signature: &self.signature, challenge, key: &operator.0 }
    }
}

impl<S: Suite> IssuedToken<S> {
    /// The encoding for the drone's storage: `lp(token)`, then tsk. Secret.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let token = self.token.encode();
        let mut writer = Writer::with_capacity(4 + token.len() + S::SCALAR_LEN);
        writer.lp(&token).fixed(&self.tsk.to_bytes());
        Zeroizing::new(writer.finish())
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// As [`Token::decode`], and [`Error::InvalidScalar`] if the secret is not that of the token.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let token = Token::decode(reader.lp(Token::<S>::MAX_LEN)?)?;
        let tsk = SecretScalar::decode(reader.take(S::SCALAR_LEN)?)?;
        reader.end()?;
        // §3.2: the secret must be that of the statement's token key.
        if tsk.public() != token.statement.tpk {
            return Err(Error::InvalidScalar);
        }
        Ok(Self { token, tsk })
    }

    pub(crate) const fn secret(&self) -> &SecretScalar<S> {
        &self.tsk
    }
}
