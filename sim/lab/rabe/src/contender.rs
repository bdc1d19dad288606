//! Contenders and their operations.

use std::error::Error;

use crate::{ours, theirs};

/// Executes an operation once; returns whether it succeeded.
pub type Operation = Box<dyn FnMut() -> bool>;

/// A scheme with keys and a ciphertext for a conjunction of some attributes.
pub struct AbeContender {
    /// Crate, scheme, and whether tables were made: letters, digits, hyphens.
    pub name: String,
    /// Derives a key for the attributes, or for the policy.
    pub generate: Operation,
    /// Encrypts to the attributes, or to the policy.
    pub encrypt: Operation,
    /// Decrypts, and compares.
    pub decrypt: Operation,
}

/// All contenders.
pub type Contenders = Vec<AbeContender>;

impl AbeContender {
    /// All of them, with so many attributes each.
    ///
    /// # Errors
    /// The error of a contender.
    pub fn all(attributes: usize) -> Result<Contenders, Box<dyn Error>> {
        let names: Vec<String> = (0..attributes).map(|number| format!("attribute-{number}")).collect();
        let mut all = theirs::contenders(&names)?;
        all.extend(ours::contenders(&names)?);
        Ok(all)
    }
}
