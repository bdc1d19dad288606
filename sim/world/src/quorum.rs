//! Quorums in the world: a master key that several KGCs share, KGCs that lie, and what few of them know.

mod byzantine_kgc;
mod invariant;
mod lying_kgcs;
pub(crate) mod master_key;
mod toy;

pub(crate) use self::byzantine_kgc::{ByzantineKgc, EnrolmentLie, KgcLie};
pub(crate) use self::invariant::QuorumEvidence;
pub(crate) use self::lying_kgcs::LyingKgcs;
