//! What a scheme must do for an authority.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use quiver_crypto::Zeroizing;
use rand_core::CryptoRngCore;

/// Why no key could be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MakeError(pub String);

/// The master key of one authority, at work.
pub trait KeyMaker: fmt::Debug + Send {
    /// A fresh key for what was granted, both in the scheme's encodings. The key has at most
    /// [`MAX_KEY_LEN`](super::inner::MAX_KEY_LEN) bytes; the office refuses longer ones.
    ///
    /// # Errors
    /// [`MakeError`] if this authority makes no keys for it.
    fn make(&mut self, granted: &[u8], rng: &mut dyn CryptoRngCore) -> Result<Zeroizing<Vec<u8>>, MakeError>;
}
