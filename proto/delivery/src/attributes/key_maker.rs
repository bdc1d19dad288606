//! Makes keys for an authority: what its scheme must do.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use quiver_ainq::UnixTime;
use quiver_crypto::Zeroizing;
use rand_core::CryptoRngCore;

/// Reason why no key could be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MakeError(pub String);

/// A grant, in the scheme's encoding and as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The encoding that [`KeyMaker::make`] takes.
    pub encoded: Vec<u8>,
    /// Text that parses to the same.
    pub text: String,
}

/// The master key of one authority, at work.
pub trait KeyMaker: fmt::Debug + Send {
    /// Sets the time. Returns the number of the current period, with which keys issued from now on end;
    /// `None` if this authority's keys do not end. A drone with the key of an earlier period is issued
    /// another.
    fn begin_period(&mut self, now: UnixTime) -> Option<u64> {
        let _ = now;
        None
    }

    /// A fresh key for what was granted, both in the scheme's encodings. The key has at most
    /// [`MAX_KEY_LEN`](super::query::MAX_KEY_LEN) bytes; the issuer refuses longer ones.
    ///
    /// # Errors
    /// [`MakeError`] if this authority makes no keys for it.
    fn make(&mut self, granted: &[u8], rng: &mut dyn CryptoRngCore) -> Result<Zeroizing<Vec<u8>>, MakeError>;

    /// Public data of the period for leaders without a grant: it changes, or it would be in the statement.
    fn published(&self) -> Option<Vec<u8>> {
        None
    }
}
