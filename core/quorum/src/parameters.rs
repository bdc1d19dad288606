//! The size and the threshold of a quorum.

use alloc::vec::Vec;

use quiver_ainq::KgcId;
use quiver_crypto::canonical::{Reader, Writer};

use crate::Error;

/// KGCs that a quorum may have.
pub const MAX_MEMBERS: u16 = 64;

/// n KGCs with the identifiers 1 to n, of which any t act and fewer than t can do nothing.
///
/// 2t > n, so that two quorums never act without a KGC in common, and what every honest KGC refuses to sign
/// twice is signed once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QuorumParameters {
    members: u16,
    threshold: u16,
}

impl QuorumParameters {
    /// Bytes of the encoding.
    pub const LEN: usize = 4;

    /// A quorum of `threshold` out of `members`.
    ///
    /// # Errors
    /// [`Error::InvalidParameters`] unless 2 ≤ t ≤ n ≤ [`MAX_MEMBERS`] and 2t > n.
    pub const fn new(members: u16, threshold: u16) -> Result<Self, Error> {
        // §5.1: 2 ≤ t ≤ n ≤ 64, 2t > n.
        if threshold < 2 || threshold > members || members > MAX_MEMBERS || 2 * threshold <= members {
            return Err(Error::InvalidParameters { members, threshold });
        }
        Ok(Self { members, threshold })
    }

    /// n, the KGCs there are.
    #[must_use]
    pub const fn members(self) -> u16 {
        self.members
    }

    /// t, the KGCs it takes.
    #[must_use]
    pub const fn threshold(self) -> u16 {
        self.threshold
    }

    /// The identifiers of all KGCs, 1 to n.
    pub fn kgcs(self) -> impl Iterator<Item = KgcId> {
        1..=self.members
    }

    /// The identifiers of all KGCs but one.
    pub fn others(self, kgc: KgcId) -> impl Iterator<Item = KgcId> {
        self.kgcs().filter(move |other| *other != kgc)
    }

    /// Refuses an identifier outside 1 to n.
    ///
    /// # Errors
    /// [`Error::UnknownKgc`].
    pub const fn check(self, kgc: KgcId) -> Result<(), Error> {
        if kgc == 0 || kgc > self.members { Err(Error::UnknownKgc(kgc)) } else { Ok(()) }
    }

    /// Refuses a number of KGCs that is below t or above n.
    pub(crate) fn check_number(self, actual: usize) -> Result<(), Error> {
        if actual < usize::from(self.threshold) || actual > usize::from(self.members) {
            return Err(Error::WrongNumber { actual, threshold: self.threshold });
        }
        Ok(())
    }

    /// The KGCs other than `kgc` for which `there` does not hold.
    pub(crate) fn missing(self, kgc: KgcId, there: impl Fn(&KgcId) -> bool) -> Vec<KgcId> {
        self.others(kgc).filter(|other| !there(other)).collect()
    }

    pub(crate) fn write(self, writer: &mut Writer) {
        writer.u16(self.members).u16(self.threshold);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Self::new(reader.u16()?, reader.u16()?)
    }
}
