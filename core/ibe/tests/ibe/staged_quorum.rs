//! A quorum made by a dealer, and bytes that are no points.

use ark_bls12_381::{G1Affine, G2Affine};
use quiver_ibe::{
    Culprit, Dealing, Error, IdentityKey, IdentityPoint, PublicShares, ShareFault, UnverifiedKeyShare,
    combine,
};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

pub(crate) fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

pub(crate) struct Quorum {
    pub(crate) dealing: Dealing,
    pub(crate) publics: PublicShares,
}

impl Quorum {
    pub(crate) fn new(seed: u64, threshold: u16, count: u16) -> Self {
        let dealing = Dealing::deal(threshold, count, &mut rng(seed)).unwrap();
        let publics = dealing.public_shares().unwrap();
        Self { dealing, publics }
    }

    pub(crate) fn share(&self, point: &IdentityPoint, index: u16) -> UnverifiedKeyShare {
        self.dealing.shares()[usize::from(index) - 1].extract(point).into()
    }

    pub(crate) fn shares(&self, point: &IdentityPoint, indices: &[u16]) -> Vec<UnverifiedKeyShare> {
        indices.iter().map(|index| self.share(point, *index)).collect()
    }

    pub(crate) fn key(&self, point: &IdentityPoint, indices: &[u16]) -> Result<IdentityKey, Error> {
        combine(&self.publics, point, &self.shares(point, indices), &mut rng(99))
    }
}

/// The error that names these, and no other.
pub(crate) fn blamed(culprits: &[(u16, ShareFault)]) -> Error {
    let culprits = culprits.iter().map(|&(index, fault)| Culprit { index, fault }).collect();
    Error::InvalidKeyShares { culprits }
}

/// The encoding of a group's identity, in so many bytes.
pub(crate) fn identity(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    bytes[0] = 0xc0;
    bytes
}

/// A point of the first curve of another order: its x-coordinate is the least that will do.
pub(crate) fn outside_g1() -> [u8; 48] {
    let found = (1_u8..).find(|x| {
        G1Affine::get_point_from_x_unchecked(u64::from(*x).into(), false)
            .is_some_and(|point| !point.is_in_correct_subgroup_assuming_on_curve())
    });
    let mut bytes = [0; 48];
    (bytes[0], bytes[47]) = (0x80, found.unwrap());
    bytes
}

/// The same of the second curve.
pub(crate) fn outside_g2() -> [u8; 96] {
    let found = (1_u8..).find(|x| {
        G2Affine::get_point_from_x_unchecked(u64::from(*x).into(), false)
            .is_some_and(|point| !point.is_in_correct_subgroup_assuming_on_curve())
    });
    let mut bytes = [0; 96];
    (bytes[0], bytes[95]) = (0x80, found.unwrap());
    bytes
}
