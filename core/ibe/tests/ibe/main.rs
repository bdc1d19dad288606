//! Tests of identity-based encryption: messages, key shares, quorums, vectors.

mod conditions;
mod key_shares;
mod messages;
mod quorums;
mod staged_quorum;
mod vectors;
