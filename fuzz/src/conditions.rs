//! Targets of conditions: identity-based encryption, age files, the release of keys.
//!
//! | module | what it has |
//! |---|---|
//! | [`age_files`] | age files to conditions: recipients, identities, files |
//! | [`ibe`] | identity-based encryption: conditions, shares, keys, ciphertexts |
//! | [`share_release`] | release of identity keys: payloads, and the machines of both sides |

pub mod age_files;
pub mod ibe;
pub mod share_release;
