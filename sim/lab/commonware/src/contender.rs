//! Contenders and their operations.

use std::error::Error;

use crate::{ours, theirs};

/// Executes an operation once; returns whether it succeeded.
pub type Operation = Box<dyn FnMut() -> bool>;

/// A scheme with a quorum, an identity, its key and a ciphertext for it.
pub struct IbeContender {
    /// Crate and variant: letters, digits, hyphens.
    pub name: &'static str,
    /// Encrypts 32 bytes to the identity.
    pub encrypt: Operation,
    /// Decrypts, and compares.
    pub decrypt: Operation,
    /// Makes the identity's key of shares, and checks it.
    pub combine: Operation,
}

/// All of them.
///
/// # Errors
/// The error of a contender.
pub fn contenders() -> Result<Vec<IbeContender>, Box<dyn Error>> {
    Ok(ours::contenders()?.into_iter().chain(theirs::contenders()?).collect())
}
