//! A policy signed by the KGC: leaders of a group may demand it for joining, until its end.
//!
//! ```text
//! body     = lp("abke-policy") ‖ F ‖ lp(group) ‖ lp(name) ‖ not after u64 ‖ lp(text)
//! encoding = lp(body) ‖ signature, purpose `abke-policy`
//! id       = H("quiver/1 abke-policy", suite, P_pub, body)
//! ```
//!
//! F is the fingerprint of the authority whose fields the text is about. The circuit is not in it: every
//! holder of the schema compiles the text to the same circuit.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Deref;

use quiver_abke::Error as AbkeError;
use quiver_abke::exchange::PolicyCircuit as ExchangePolicy;
use quiver_ainq::{
    Deployment, Error as AinqError, MasterSecret, Name, Purpose, StatementSignature, Suite, UnixTime,
    VerifiedAuthority,
};
use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Digest, Hasher};
use quiver_garble::policy::{MAX_TEXT, Policy, PolicyTextError as TextError};
use rand_core::CryptoRngCore;

use crate::certifying::{CertificationTerms, CertifyError};

/// Bytes a signed policy may have.
pub const MAX_POLICY_LEN: usize = MAX_TEXT + 512;

/// AND gates of a policy that can be demanded: 16 MiB of tables.
pub const MAX_ANDS: usize = 1 << 20;

/// Reason why a policy cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdmissionPolicyError {
    /// It is not as the KGC signed it, or not canonical.
    #[error(transparent)]
    Statement(#[from] AinqError),
    /// It is about the fields of another authority.
    #[error("a policy about the fields of another authority")]
    OtherAuthority,
    /// It is for another group.
    #[error("a policy for group {0}")]
    OtherGroup(Name),
    /// Its time is over.
    #[error("the policy has expired")]
    Expired,
    /// Its text does not compile.
    #[error("{0}")]
    Text(#[from] TextError),
    /// It takes more AND gates than [`MAX_ANDS`].
    #[error("a policy of {0} AND gates; at most {MAX_ANDS} can be demanded")]
    TooLarge(usize),
    /// Its circuit is none for the exchange.
    #[error(transparent)]
    Circuit(#[from] AbkeError),
    /// The statement about the authority does not verify.
    #[error(transparent)]
    Terms(#[from] CertifyError),
}

/// A policy as the operator makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyStatement {
    /// F: whose fields it is about.
    pub authority: Digest,
    /// The group whose leaders may demand it.
    pub group: Name,
    /// Name of the policy, for people.
    pub name: Name,
    /// End of the policy.
    pub not_after: UnixTime,
    /// The text; at most [`MAX_TEXT`] bytes.
    pub text: String,
}

impl PolicyStatement {
    fn check(&self) -> Result<(), AinqError> {
        if self.text.len() > MAX_TEXT {
            return Err(AinqError::TooLong { what: "policy", limit: MAX_TEXT });
        }
        Ok(())
    }

    /// The body of the signed statement.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        // §A3: lp("abke-policy") ‖ F ‖ lp(group) ‖ lp(name) ‖ not after ‖ lp(text).
        writer.lp(b"abke-policy").fixed(&self.authority).lp(self.group.as_bytes()).lp(self.name.as_bytes());
        writer.u64(self.not_after).lp(self.text.as_bytes());
        writer.finish()
    }

    /// Reads the body of a statement. Whether it was signed is for the caller to ask.
    ///
    /// # Errors
    /// [`AinqError::Malformed`], [`AinqError::InvalidName`].
    pub fn decode(bytes: &[u8]) -> Result<Self, AinqError> {
        let mut reader = Reader::new(bytes);
        if reader.lp(MAX_POLICY_LEN)? != b"abke-policy" {
            return Err(AinqError::Malformed("not a policy"));
        }
        let statement = Self {
            authority: reader.array()?,
            group: Name::from_bytes(reader.lp(Name::MAX_LEN)?)?,
            name: Name::from_bytes(reader.lp(Name::MAX_LEN)?)?,
            not_after: reader.u64()?,
            text: core::str::from_utf8(reader.lp(MAX_TEXT)?)
                .map_err(|_| AinqError::Malformed("a policy that is no text"))?
                .into(),
        };
        reader.end()?;
        Ok(statement)
    }
}

/// A policy with a signature that is not verified yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedPolicy<S: Suite> {
    statement: PolicyStatement,
    signature: StatementSignature<S>,
}

impl<S: Suite> SignedPolicy<S> {
    /// Signs a policy.
    ///
    /// # Errors
    /// [`AinqError::TooLong`].
    pub fn sign(
        master: &MasterSecret<S>,
        deployment: &Deployment<S>,
        statement: PolicyStatement,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<Self, AinqError> {
        statement.check()?;
        let signature = master.sign(deployment, Purpose::AbkePolicy, &statement.body(), rng);
        Ok(Self { statement, signature })
    }

    /// Takes a policy with a signature on its [`body`](PolicyStatement::body) that was made elsewhere, for
    /// instance by a quorum.
    ///
    /// # Errors
    /// [`AinqError::TooLong`].
    pub fn new(statement: PolicyStatement, signature: StatementSignature<S>) -> Result<Self, AinqError> {
        statement.check()?;
        Ok(Self { statement, signature })
    }

    /// The encoding: `lp(body)`, then the signature. At most [`MAX_POLICY_LEN`] bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        Writer::new().lp(&self.statement.body()).fixed(&self.signature.encode()).finish()
    }

    /// Reads the encoding.
    ///
    /// # Errors
    /// [`AinqError::TooLong`], [`AinqError::Malformed`], [`AinqError::InvalidName`],
    /// [`AinqError::InvalidPoint`], [`AinqError::IdentityPoint`] or [`AinqError::InvalidScalar`].
    pub fn decode(bytes: &[u8]) -> Result<Self, AinqError> {
        if bytes.len() > MAX_POLICY_LEN {
            return Err(AinqError::TooLong { what: "signed policy", limit: MAX_POLICY_LEN });
        }
        let mut reader = Reader::new(bytes);
        let statement = PolicyStatement::decode(reader.lp(MAX_POLICY_LEN)?)?;
        let signature = StatementSignature::decode(reader.take(StatementSignature::<S>::LEN)?)?;
        reader.end()?;
        Ok(Self { statement, signature })
    }

    /// Checks that the KGC of `deployment` signed it.
    ///
    /// # Errors
    /// [`AinqError::InvalidSignature`].
    pub fn verify(self, deployment: &Deployment<S>) -> Result<VerifiedPolicy<S>, AinqError> {
        let body = self.statement.body();
        // §A3: by the KGC, with purpose `abke-policy`; a quorum's signature is the same.
        self.signature.verify(deployment, Purpose::AbkePolicy, &body)?;
        // §A3: id = H("quiver/1 abke-policy", suite, P_pub, body).
        let hash = Hasher::new("quiver/1 abke-policy").lp(S::ID.as_bytes());
        let id = hash.fixed(deployment.master().as_bytes()).lp(&body).finish();
        Ok(VerifiedPolicy { signed: self, id })
    }
}

/// A policy that the KGC vouches for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedPolicy<S: Suite> {
    signed: SignedPolicy<S>,
    id: Digest,
}

impl<S: Suite> VerifiedPolicy<S> {
    /// Names this policy. 32 bytes.
    #[must_use]
    pub const fn id(&self) -> &Digest {
        &self.id
    }

    /// The signed encoding, to be passed on.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.signed.encode()
    }

    /// Compiles it, if it may be demanded for this group now, of drones with fields of this authority.
    ///
    /// # Errors
    /// [`AdmissionPolicyError`], for one's own log.
    pub fn compile(
        &self,
        group: &Name,
        authority: &VerifiedAuthority<S>,
        now: UnixTime,
    ) -> Result<Policy, AdmissionPolicyError> {
        // §A4.2: about the fields of this authority, for this group, and not over.
        if self.authority != *authority.fingerprint() {
            return Err(AdmissionPolicyError::OtherAuthority);
        }
        if self.group != *group {
            return Err(AdmissionPolicyError::OtherGroup(self.group.clone()));
        }
        if now >= self.not_after {
            return Err(AdmissionPolicyError::Expired);
        }
        // §A3: every holder of the schema compiles the text to the same circuit.
        let policy = Policy::compile(&self.text, CertificationTerms::of(authority)?.schema())?;
        // §A4.2: at most 2^20 AND gates, 16 MiB of tables.
        match policy.statistics().and {
            ands if ands > MAX_ANDS => Err(AdmissionPolicyError::TooLarge(ands)),
            _ => Ok(policy),
        }
    }

    /// The same, ready for the exchange.
    ///
    /// # Errors
    /// [`AdmissionPolicyError`], for one's own log.
    pub fn exchangeable(
        &self,
        group: &Name,
        authority: &VerifiedAuthority<S>,
        now: UnixTime,
    ) -> Result<Arc<ExchangePolicy>, AdmissionPolicyError> {
        Ok(Arc::new(ExchangePolicy::new(self.compile(group, authority, now)?.circuit())?))
    }
}

impl<S: Suite> Deref for VerifiedPolicy<S> {
    type Target = PolicyStatement;

    fn deref(&self) -> &PolicyStatement {
        &self.signed.statement
    }
}

#[cfg(test)]
mod tests;
