//! Interface to FROST of the KGC of a quorum, and of a drone that enrols with one.
//!
//! The machines run over any [`Suite`], FROST over a [`QuorumSuite`]. The difference is behind two
//! interfaces, whose implementations [`Kgcs::quorum`](crate::Kgcs::quorum) and [`MasterShare::new`] provide,
//! so that only the configuration of a machine has to know it. A machine for a single KGC is made without
//! them and links nothing of FROST.

mod coordinator;
mod frost;
#[cfg(feature = "services")]
mod kgc;
pub mod message;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use quiver_ainq::{KgcId, Suite, UnverifiedPartialKey, VerifiedQuorum};
use quiver_crypto::{Digest, Zeroizing};
use quiver_quorum::Error;
pub use quiver_quorum::QuorumSuite;

#[cfg(feature = "services")]
pub use self::kgc::MasterShare;
pub use self::message::{EnrolCommitment, EnrolDone, EnrolShare, EnrolSigning, EnrolmentMessage};

/// Reads public shares that the quorum signed.
type SharesReader<S> = fn(&VerifiedQuorum) -> Result<Box<dyn ShareVerifier<S>>, Error>;

/// Public shares of all KGCs, as a coordinator needs them.
trait ShareVerifier<S: Suite>: fmt::Debug + Send + Sync {
    /// t.
    fn threshold(&self) -> u16;
    /// Number of refreshes of the shares.
    fn version(&self) -> u32;
    /// Refuses a KGC that has no share, and bytes that are no commitment.
    fn check_commitment(&self, kgc: KgcId, commitment: &[u8]) -> Result<(), Error>;
    /// Names the signing package.
    fn package(&self, message: &[u8], parts: &[(KgcId, Vec<u8>)]) -> Result<Digest, Error>;
    /// A partial key out of one share of every part, or who spoilt it.
    fn aggregate(
        &self,
        message: &[u8],
        parts: &[(KgcId, Vec<u8>)],
        shares: &[(KgcId, Zeroizing<Vec<u8>>)],
    ) -> Result<UnverifiedPartialKey<S>, Error>;
}
