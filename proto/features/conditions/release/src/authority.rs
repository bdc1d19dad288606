//! Public data of a master key: MPK, t, and the KGCs' share public keys, signed by the KGC or the quorum.
//!
//! It is a statement about an authority of kind `ibe`. Its parameters are `version u32 ‖ public shares`; its
//! delivery point is P_pub, because answers are unattested. MPK stays for ever; each refresh of the shares
//! makes a new statement with the next version, and the highest version that was seen counts.

use alloc::vec::Vec;

use quiver_ainq::{
    AuthorityStatement, Deployment, Error as AinqError, KgcId, Name, SignedAuthority, Suite,
    VerifiedAuthority,
};
use quiver_crypto::Digest;
use quiver_crypto::canonical::{Reader, Writer};
use quiver_ibe::{MasterPublicKey, PublicShares};
use quiver_message::MAX_RELEASE_STATEMENT_LEN;

/// The parameters of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseParameters {
    /// 1 for the first shares; each refresh adds 1.
    pub version: u32,
    /// MPK, t, and every S_j.
    pub publics: PublicShares,
}

impl ReleaseParameters {
    /// version u32 ‖ public shares.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        Writer::new().u32(self.version).fixed(&self.publics.encode()).finish()
    }

    /// Reads the encoding. Checks that the shares are of one polynomial.
    ///
    /// # Errors
    /// [`AinqError::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, AinqError> {
        let mut reader = Reader::new(bytes);
        let version = reader.u32()?;
        let publics = PublicShares::decode(reader.take(reader.remaining())?);
        let publics = publics.map_err(|_| AinqError::Malformed("public shares"))?;
        // §4.3: versions count from 1, and the highest one seen counts.
        if version == 0 {
            return Err(AinqError::Malformed("version of shares"));
        }
        Ok(Self { version, publics })
    }

    /// The statement to be signed: the same bytes at every KGC of a quorum.
    ///
    /// # Errors
    /// [`AinqError::InvalidName`], never.
    pub fn statement<S: Suite>(
        &self,
        deployment: &Deployment<S>,
        name: Name,
    ) -> Result<AuthorityStatement<S>, AinqError> {
        Ok(AuthorityStatement {
            kind: Name::new(super::KIND)?,
            name,
            scheme: Name::new(super::SCHEME)?,
            // §5.4: P_pub as its delivery point, because answers are unattested (§4.3).
            delivery: *deployment.master(),
            schema: Vec::new(),
            parameters: self.encode(),
        })
    }
}

/// A master key that the KGC vouches for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseAuthority<S: Suite> {
    statement: VerifiedAuthority<S>,
    parameters: ReleaseParameters,
}

impl<S: Suite> ReleaseAuthority<S> {
    /// Takes a statement of kind `ibe`.
    ///
    /// # Errors
    /// [`AinqError::WrongAuthority`] for one of another kind, and those of [`ReleaseParameters::decode`].
    pub fn new(deployment: &Deployment<S>, statement: VerifiedAuthority<S>) -> Result<Self, AinqError> {
        // §4.3: the kind, the scheme, and P_pub as delivery point: other statements are genuine too.
        let of_the_kind = statement.kind.as_str() == super::KIND
            && statement.scheme.as_str() == super::SCHEME
            && statement.delivery == *deployment.master();
        if !of_the_kind {
            return Err(AinqError::WrongAuthority);
        }
        let parameters = ReleaseParameters::decode(&statement.parameters)?;
        Ok(Self { statement, parameters })
    }

    /// Reads a signed statement and checks all of it.
    ///
    /// # Errors
    /// [`AinqError::TooLong`] for more than [`MAX_RELEASE_STATEMENT_LEN`] bytes, those of
    /// [`SignedAuthority::decode`] and [`SignedAuthority::verify`], and those of [`Self::new`].
    pub fn decode(deployment: &Deployment<S>, bytes: &[u8]) -> Result<Self, AinqError> {
        // §4.3: a statement has at most 16 KiB; nothing longer is decoded.
        if bytes.len() > MAX_RELEASE_STATEMENT_LEN {
            return Err(AinqError::TooLong {
                what: "statement about a master key",
                limit: MAX_RELEASE_STATEMENT_LEN,
            });
        }
        Self::new(deployment, SignedAuthority::decode(bytes)?.verify(deployment)?)
    }

    /// The signed statement, to be passed on.
    #[must_use]
    pub const fn statement(&self) -> &VerifiedAuthority<S> {
        &self.statement
    }

    /// Returns the authority's name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.statement.name
    }

    /// MPK.
    #[must_use]
    pub const fn master(&self) -> &MasterPublicKey {
        self.parameters.publics.master()
    }

    /// Fingerprint of MPK in requests and in files. 32 bytes.
    #[must_use]
    pub fn fingerprint(&self) -> Digest {
        self.master().fingerprint()
    }

    /// The version of the shares.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.parameters.version
    }

    /// MPK, t, and every S_j.
    #[must_use]
    pub const fn publics(&self) -> &PublicShares {
        &self.parameters.publics
    }

    /// The KGCs that hold shares, ascending.
    pub fn kgcs(&self) -> impl Iterator<Item = KgcId> {
        self.parameters.publics.shares().iter().map(|(kgc, _)| *kgc)
    }
}

#[cfg(test)]
mod tests {
    use quiver_ainq::{MasterSecret, Ristretto255};
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn a_statement_is_looked_into_only_if_it_is_no_longer_than_the_bound_says() {
        let master = MasterSecret::<Ristretto255>::generate(&mut ChaCha20Rng::seed_from_u64(1));
        let deployment = Deployment::new(Name::new("test").unwrap(), master.public());
        let decoded = |length| ReleaseAuthority::decode(&deployment, &alloc::vec![0; length]).map(drop);
        let limit = MAX_RELEASE_STATEMENT_LEN;
        let too_long = Err(AinqError::TooLong { what: "statement about a master key", limit });
        assert_eq!(decoded(limit + 1), too_long);
        assert_ne!(decoded(limit), too_long);
    }
}
