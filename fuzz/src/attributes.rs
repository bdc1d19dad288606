//! Targets of attributes: attribute-based encryption, policies, envelopes.
//!
//! | module | what it has |
//! |---|---|
//! | [`abe`] | attribute-based encryption: one encoding each, and keys open only what their policy allows |
//! | [`envelopes`] | headers of envelopes, and envelopes opened |
//! | [`policies`] | the policy language, and encoded policies, attributes and schemas |

pub mod abe;
pub mod envelopes;
pub mod policies;
