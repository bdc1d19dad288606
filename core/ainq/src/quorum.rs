//! Statements of a quorum of KGCs: its members and their public shares, self-signed.
//!
//! A drone pins P_pub alone. To identify which of several KGCs sent a wrong share, it also needs the
//! threshold and the public part of every KGC's share: a statement of purpose `quorum` under that same key.
//! So its sender need not be trusted, and a deployment's file need not change when the shares are refreshed.

use alloc::vec::Vec;

use quiver_crypto::canonical::{Reader, Writer};

use crate::{Deployment, Error, Purpose, StatementSignature, Suite};

/// Bytes a statement may have: enough for 64 KGCs in every suite.
pub const MAX_QUORUM_STATEMENT_LEN: usize = 8192;

/// Public shares with the quorum's signature, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumStatement<S: Suite> {
    shares: Vec<u8>,
    signature: StatementSignature<S>,
}

/// Public shares that the quorum itself signed, encoded as in `quiver-quorum`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedQuorum(Vec<u8>);

impl VerifiedQuorum {
    /// The encoded public shares.
    #[must_use]
    pub fn shares(&self) -> &[u8] {
        &self.0
    }
}

impl<S: Suite> QuorumStatement<S> {
    /// Puts encoded public shares and the signature on them together.
    ///
    /// # Errors
    /// [`Error::TooLong`].
    pub fn new(shares: Vec<u8>, signature: StatementSignature<S>) -> Result<Self, Error> {
        if 4 + shares.len() + StatementSignature::<S>::LEN > MAX_QUORUM_STATEMENT_LEN {
            return Err(Error::TooLong { what: "quorum statement", limit: MAX_QUORUM_STATEMENT_LEN });
        }
        Ok(Self { shares, signature })
    }

    /// Checks that the KGC of `deployment`, which is the quorum as a whole, signed this.
    ///
    /// # Errors
    /// [`Error::InvalidSignature`].
    pub fn verify(&self, deployment: &Deployment<S>) -> Result<VerifiedQuorum, Error> {
        // §3.6: the quorum itself signs its public shares, so a drone pins P_pub alone.
        self.signature.verify(deployment, Purpose::Quorum, &self.shares)?;
        Ok(VerifiedQuorum(self.shares.clone()))
    }

    /// The encoding: `lp(shares)`, signature.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        Writer::new().lp(&self.shares).fixed(&self.signature.encode()).finish()
    }

    /// Reads the encoding.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::Malformed`], and as [`StatementSignature::decode`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() > MAX_QUORUM_STATEMENT_LEN {
            return Err(Error::TooLong { what: "quorum statement", limit: MAX_QUORUM_STATEMENT_LEN });
        }
        let mut reader = Reader::new(bytes);
        let shares = reader.lp(MAX_QUORUM_STATEMENT_LEN)?.to_vec();
        let signature = StatementSignature::decode(reader.take(StatementSignature::<S>::LEN)?)?;
        reader.end()?;
        Ok(Self { shares, signature })
    }
}
