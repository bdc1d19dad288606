//! Statements of the KGC about an authority: name, scheme, public parameters and delivery point.
//!
//! Attribute keys, identity-based keys and certificates of policies come from schemes of their own, with
//! master keys of their own. The public part of such an authority is one statement of the KGC with purpose
//! `parameters`, so that leaders and edges verify it offline, from a file or from any peer:
//!
//! ```text
//! body      = lp("authority") ‖ lp(kind) ‖ lp(name) ‖ lp(scheme) ‖ A ‖ lp(schema) ‖ lp(parameters)
//! encoding  = lp(body) ‖ signature
//! fingerprint = H("quiver/1 authority", suite, P_pub, body)
//! ```
//!
//! A = a·P is the authority's delivery point, used by [`delivery`](crate::delivery). The scheme's own part is
//! opaque here: its crate decodes it.

use alloc::vec::Vec;
use core::ops::Deref;

use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Digest, Hasher};
use rand_core::CryptoRngCore;

use crate::{Deployment, Element, Error, MasterSecret, Name, Purpose, StatementSignature, Suite};

/// Bytes an encoded schema may have.
pub const MAX_SCHEMA_LEN: usize = 64 * 1024;
/// Bytes a scheme's encoded public parameters may have.
pub const MAX_PARAMETERS_LEN: usize = 256 * 1024;
/// Bytes a signed statement about an authority may have.
pub const MAX_AUTHORITY_LEN: usize = MAX_SCHEMA_LEN + MAX_PARAMETERS_LEN + 1024;

/// An authority beside the KGC, as it is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorityStatement<S: Suite> {
    /// Kind of its keys: `abe` for attribute keys, `ibe` for identity-based ones.
    pub kind: Name,
    /// Name for people; one name, one authority, for ever.
    pub name: Name,
    /// The scheme's ID.
    pub scheme: Name,
    /// A = a·P; P_pub if its answers are unattested.
    pub delivery: Element<S>,
    /// The inputs that the scheme accepts, in the encoding of the scheme's crates; at most [`MAX_SCHEMA_LEN`]
    /// bytes.
    pub schema: Vec<u8>,
    /// The scheme's public parameters in its own encoding; at most [`MAX_PARAMETERS_LEN`] bytes.
    pub parameters: Vec<u8>,
}

impl<S: Suite> AuthorityStatement<S> {
    fn check(&self) -> Result<(), Error> {
        if self.schema.len() > MAX_SCHEMA_LEN {
            return Err(Error::TooLong { what: "schema", limit: MAX_SCHEMA_LEN });
        }
        if self.parameters.len() > MAX_PARAMETERS_LEN {
            return Err(Error::TooLong { what: "parameters", limit: MAX_PARAMETERS_LEN });
        }
        Ok(())
    }

    /// The body of the signed statement, which a quorum signs with purpose [`Purpose::Parameters`].
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        // §4.2: kind, name, scheme, A, schema, public parameters.
        writer.lp(b"authority").lp(self.kind.as_bytes()).lp(self.name.as_bytes()).lp(self.scheme.as_bytes());
        writer.fixed(self.delivery.as_bytes()).lp(&self.schema).lp(&self.parameters);
        writer.finish()
    }

    /// Reads the body of a statement. Whether it was signed is for the caller to ask.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::InvalidName`], [`Error::InvalidPoint`] or [`Error::IdentityPoint`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        if reader.lp(MAX_AUTHORITY_LEN)? != b"authority" {
            return Err(Error::Malformed("not a statement about an authority"));
        }
        let name = |reader: &mut Reader<'_>| Name::from_bytes(reader.lp(Name::MAX_LEN)?);
        let statement = Self {
            kind: name(&mut reader)?,
            name: name(&mut reader)?,
            scheme: name(&mut reader)?,
            delivery: Element::read(&mut reader)?,
            schema: reader.lp(MAX_SCHEMA_LEN)?.to_vec(),
            parameters: reader.lp(MAX_PARAMETERS_LEN)?.to_vec(),
        };
        reader.end()?;
        Ok(statement)
    }
}

/// A statement about an authority whose signature is not verified yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedAuthority<S: Suite> {
    statement: AuthorityStatement<S>,
    signature: StatementSignature<S>,
}

impl<S: Suite> MasterSecret<S> {
    /// Signs a statement about an authority.
    ///
    /// # Errors
    /// [`Error::TooLong`].
    pub fn sign_authority(
        &self,
        deployment: &Deployment<S>,
        statement: AuthorityStatement<S>,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<SignedAuthority<S>, Error> {
        statement.check()?;
        // §4.2: one statement with purpose `parameters` makes the authority known.
        let signature = self.sign(deployment, Purpose::Parameters, &statement.body(), rng);
        Ok(SignedAuthority { statement, signature })
    }
}

impl<S: Suite> SignedAuthority<S> {
    /// Takes a statement with a signature on its [`body`](AuthorityStatement::body) that was made elsewhere,
    /// for instance by a quorum.
    ///
    /// # Errors
    /// [`Error::TooLong`].
    pub fn new(statement: AuthorityStatement<S>, signature: StatementSignature<S>) -> Result<Self, Error> {
        statement.check()?;
        Ok(Self { statement, signature })
    }

    /// The encoding: `lp(body)`, then the signature. At most [`MAX_AUTHORITY_LEN`] bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        Writer::new().lp(&self.statement.body()).fixed(&self.signature.encode()).finish()
    }

    /// Reads the encoding.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::Malformed`], [`Error::InvalidName`], [`Error::InvalidPoint`],
    /// [`Error::IdentityPoint`] or [`Error::InvalidScalar`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() > MAX_AUTHORITY_LEN {
            return Err(Error::TooLong { what: "statement about an authority", limit: MAX_AUTHORITY_LEN });
        }
        let mut reader = Reader::new(bytes);
        let statement = AuthorityStatement::decode(reader.lp(MAX_AUTHORITY_LEN)?)?;
        let signature = StatementSignature::decode(reader.take(StatementSignature::<S>::LEN)?)?;
        reader.end()?;
        Ok(Self { statement, signature })
    }

    /// Checks that the KGC of `deployment` made this statement.
    ///
    /// # Errors
    /// [`Error::InvalidSignature`].
    pub fn verify(self, deployment: &Deployment<S>) -> Result<VerifiedAuthority<S>, Error> {
        let body = self.statement.body();
        // §4.2: the KGC's signature, purpose `parameters`.
        self.signature.verify(deployment, Purpose::Parameters, &body)?;
        // §14: F = H("quiver/1 authority", suite, P_pub, statement) names the authority.
        let hash = Hasher::new("quiver/1 authority").lp(S::ID.as_bytes());
        let fingerprint = hash.fixed(deployment.master().as_bytes()).lp(&body).finish();
        Ok(VerifiedAuthority { signed: self, fingerprint })
    }
}

/// An authority that the KGC vouches for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedAuthority<S: Suite> {
    signed: SignedAuthority<S>,
    fingerprint: Digest,
}

impl<S: Suite> VerifiedAuthority<S> {
    /// H("quiver/1 authority", suite, P_pub, body): names this authority with these parameters. 32 bytes.
    #[must_use]
    pub const fn fingerprint(&self) -> &Digest {
        &self.fingerprint
    }

    /// The signed encoding, to be passed on.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.signed.encode()
    }
}

impl<S: Suite> Deref for VerifiedAuthority<S> {
    type Target = AuthorityStatement<S>;

    fn deref(&self) -> &AuthorityStatement<S> {
        &self.signed.statement
    }
}
