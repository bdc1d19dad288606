//! A quorum all of whose members are needed, and a message from encryption to decryption.

use quiver_age::Identity;
use quiver_ibe::{Dealing, IdentityKey, IdentityPoint, KeyShare, PublicShares, UnverifiedKeyShare, combine};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use super::files::{condition, open, seal};
use crate::{LabError, Result};

/// Form in which shares of keys arrive at the combiner.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ShareForm {
    /// Points of one process, which extracts all by one table, as in the published benchmarks.
    Memory,
    /// Points that are each extracted by itself, as by a holder of one master share.
    Alone,
    /// Extracted like that, and as 98 bytes each, which are decoded and whose subgroup is checked.
    Bytes,
}

impl ShareForm {
    fn extract(self, dealing: &Dealing, point: &IdentityPoint) -> Vec<KeyShare> {
        match self {
            Self::Memory => dealing.extract(point),
            Self::Alone | Self::Bytes => dealing.shares().iter().map(|share| share.extract(point)).collect(),
        }
    }
}

/// A quorum with its shares of one identity's key.
pub(super) struct IbeQuorum {
    dealing: Dealing,
    pub(super) publics: PublicShares,
    point: IdentityPoint,
    shares: Vec<UnverifiedKeyShare>,
    bytes: Vec<Vec<u8>>,
    rng: ChaCha20Rng,
}

impl IbeQuorum {
    /// A quorum of so many, all of whom are needed: as many shares are combined as in the published
    /// benchmarks.
    pub(super) fn of(count: u32, seed: u64) -> Result<Self> {
        Self::drawn(count, ChaCha20Rng::seed_from_u64(seed))
    }

    fn drawn(count: u32, mut rng: ChaCha20Rng) -> Result<Self> {
        let count = u16::try_from(count).unwrap_or(u16::MAX);
        let dealing = Dealing::deal(count, count, &mut rng)?;
        let (publics, point) = (dealing.public_shares()?, IdentityPoint::of(&condition()?));
        let mut quorum = Self { dealing, publics, point, shares: Vec::new(), bytes: Vec::new(), rng };
        quorum.shares = quorum.extract(ShareForm::Memory);
        quorum.bytes = quorum.shares.iter().map(|share| share.encode().to_vec()).collect();
        Ok(quorum)
    }

    fn extract(&self, arrival: ShareForm) -> Vec<UnverifiedKeyShare> {
        arrival.extract(&self.dealing, &self.point).into_iter().map(Into::into).collect()
    }

    /// K out of the shares, checked.
    pub(super) fn aggregate(&mut self, arrival: ShareForm) -> Result<IdentityKey> {
        if arrival != ShareForm::Bytes {
            return Ok(combine(&self.publics, &self.point, &self.shares, &mut self.rng)?);
        }
        let shares = self.bytes.iter().map(|bytes| UnverifiedKeyShare::decode(bytes));
        let shares = shares.collect::<Result<Vec<_>, _>>()?;
        Ok(combine(&self.publics, &self.point, &shares, &mut self.rng)?)
    }

    /// Every share extracted, and K out of them.
    pub(super) fn extract_and_aggregate(&mut self, arrival: ShareForm) -> Result<IdentityKey> {
        self.shares = self.extract(arrival);
        if arrival == ShareForm::Bytes {
            self.bytes = self.shares.iter().map(|share| share.encode().to_vec()).collect();
        }
        self.aggregate(arrival)
    }

    /// Identity that opens files to the condition.
    pub(super) fn identity(&mut self) -> Result<Identity> {
        let mut identity = Identity::new(*self.publics.master());
        identity.insert(condition()?, self.aggregate(ShareForm::Memory)?)?;
        Ok(identity)
    }
}

/// Deals, encrypts, extracts, aggregates, decrypts, and compares the message.
pub(super) fn end_to_end(
    count: u32,
    arrival: ShareForm,
    message: &[u8],
    rng: &mut ChaCha20Rng,
) -> Result<()> {
    let count = u16::try_from(count).unwrap_or(u16::MAX);
    let dealing = Dealing::deal(count, count, rng)?;
    let publics = dealing.public_shares()?;
    let file = seal(publics.master(), message)?;
    let point = IdentityPoint::of(&condition()?);
    let extracted = arrival.extract(&dealing, &point).into_iter();
    let shares = match arrival {
        ShareForm::Memory | ShareForm::Alone => extracted.map(UnverifiedKeyShare::from).collect(),
        ShareForm::Bytes => extracted
            .map(|share| UnverifiedKeyShare::decode(&*share.encode()))
            .collect::<Result<Vec<_>, _>>()?,
    };
    let mut identity = Identity::new(*publics.master());
    identity.insert(condition()?, combine(&publics, &point, &shares, rng)?)?;
    if open(&file, &identity)? == message { Ok(()) } else { Err(LabError::WrongKey("end to end")) }
}
