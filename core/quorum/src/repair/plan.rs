//! The agreed parameters of a repair, and all helpers' commitments.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use quiver_ainq::{Element, KgcId};
use quiver_crypto::{Digest, Hasher, Secret, Zeroizing};

use crate::suite::{SCALAR_LEN, element};
use crate::{Error, PublicShares, QuorumSuite};

/// A repair: the KGC that lost its share, its helpers, and their commitments.
#[derive(derive_more::Debug)]
#[debug("KGC {lost} by {helpers:?}")]
pub(super) struct RepairPlan<S: QuorumSuite> {
    public: PublicShares<S>,
    helpers: BTreeSet<KgcId>,
    lost: KgcId,
    context: Digest,
    /// D_ij by i, each list in the order of the helpers j.
    packages: BTreeMap<KgcId, Vec<u8>>,
}

impl<S: QuorumSuite> RepairPlan<S> {
    pub(super) fn new(
        public: PublicShares<S>,
        helpers: &[KgcId],
        lost: KgcId,
        context: Digest,
    ) -> Result<Self, Error> {
        let parameters = public.parameters();
        parameters.check(lost)?;
        let mut unique = BTreeSet::new();
        for helper in helpers {
            parameters.check(*helper)?;
            if *helper == lost {
                return Err(Error::UnknownKgc(lost));
            }
            if !unique.insert(*helper) {
                return Err(Error::DuplicateKgc(*helper));
            }
        }
        parameters.check_number(unique.len())?;
        Ok(Self { public, helpers: unique, lost, context, packages: BTreeMap::new() })
    }

    pub(super) const fn public(&self) -> &PublicShares<S> {
        &self.public
    }

    pub(super) const fn lost(&self) -> KgcId {
        self.lost
    }

    pub(super) fn helpers(&self) -> impl Iterator<Item = KgcId> {
        self.helpers.iter().copied()
    }

    pub(super) fn missing(&self) -> Vec<KgcId> {
        self.helpers().filter(|helper| !self.packages.contains_key(helper)).collect()
    }

    pub(super) fn check_helper(&self, kgc: KgcId) -> Result<(), Error> {
        if self.helpers.contains(&kgc) { Ok(()) } else { Err(Error::UnknownKgc(kgc)) }
    }

    pub(super) fn package(&self, of: KgcId) -> &[u8] {
        self.packages.get(&of).map_or(&[], Vec::as_slice)
    }

    /// Commits to this helper's own δ_ij.
    pub(super) fn commit(
        &mut self,
        kgc: KgcId,
        deltas: &BTreeMap<KgcId, Secret<SCALAR_LEN>>,
    ) -> Result<(), Error> {
        let mut package = Vec::with_capacity(super::package_len::<S>(deltas.len()));
        for delta in deltas.values() {
            let delta = Zeroizing::new(S::scalar_decode(delta.expose()).ok_or(Error::Frost)?);
            // δ = 0, whose commitment has no encoding, occurs with the probability of guessing a key.
            let commitment = Element::<S>::from_point(S::mul_base(&delta)).map_err(|_| Error::Frost)?;
            package.extend_from_slice(commitment.as_bytes());
        }
        self.packages.insert(kgc, package);
        Ok(())
    }

    pub(super) fn receive_package(&mut self, from: KgcId, package: &[u8]) -> Result<(), Error> {
        self.check_helper(from)?;
        if let Some(known) = self.packages.get(&from) {
            return if known == package { Ok(()) } else { Err(Error::Contradiction { culprit: from }) };
        }
        let invalid = Error::InvalidMessage { culprit: from };
        if package.len() != super::package_len::<S>(self.helpers.len()) {
            return Err(invalid);
        }
        let commitments: Vec<Element<S>> =
            package.chunks(S::POINT_LEN).map(element).collect::<Result<_, _>>().map_err(|_| invalid)?;
        // §5.3: what a helper sends is checked against its public share.
        if !self.adds_up(from, &commitments)? {
            return Err(Error::InvalidShare { culprit: from });
        }
        self.packages.insert(from, package.to_vec());
        Ok(())
    }

    /// Checks that Σ_j D_ij = ζ_i·Y_i, where ζ_i = Π (r − k)/(i − k) over the other helpers k: both sides are
    /// multiplied by the denominator, so that nothing is inverted.
    fn adds_up(&self, from: KgcId, commitments: &[Element<S>]) -> Result<bool, Error> {
        let scalar = |kgc: KgcId| S::scalar_from_u128(u128::from(kgc));
        let one = S::scalar_from_u128(1);
        let others = || self.helpers().filter(|helper| *helper != from);
        // ζ_i = numerator / denominator, Lagrange's coefficient of helper i at r.
        let numerator = others().fold(one, |product, k| product * (scalar(self.lost) - scalar(k)));
        let denominator = others().fold(one, |product, k| product * (scalar(from) - scalar(k)));
        let mut scalars = alloc::vec![denominator; commitments.len()];
        let mut points: Vec<S::Point> = commitments.iter().map(|commitment| *commitment.point()).collect();
        scalars.push(-numerator);
        points.push(*self.public.share(from)?.point());
        // denominator·Σ_j D_ij = numerator·Y_i
        Ok(S::is_identity(&S::vartime_multiscalar(&scalars, &points)))
    }

    /// D_ij.
    pub(super) fn commitment(&self, from: KgcId, to: KgcId) -> Result<Element<S>, Error> {
        let package = self.packages.get(&from).ok_or_else(|| Error::Incomplete { missing: [from].into() })?;
        let mut in_order = self.helpers().zip(package.chunks(S::POINT_LEN));
        let (_, bytes) = in_order.find(|(helper, _)| *helper == to).ok_or(Error::UnknownKgc(to))?;
        element(bytes)
    }

    /// Σ_i D_ij.
    pub(super) fn sum_for(&self, to: KgcId) -> Result<S::Point, Error> {
        let points = self.helpers().map(|from| Ok(*self.commitment(from, to)?.point()));
        let points = points.collect::<Result<Vec<_>, Error>>()?;
        Ok(S::vartime_multiscalar(&alloc::vec![S::scalar_from_u128(1); points.len()], &points))
    }

    /// A hash of what all must agree on, and of all commitments.
    pub(super) fn digest(&self) -> Digest {
        // Helpers that received other commitments have another digest.
        let hash = Hasher::new("quiver/1 quorum repair").lp(S::ID.as_bytes()).fixed(&self.context);
        let hash = hash.fixed(&self.public.digest()).u16(self.lost);
        self.helpers().fold(hash, |hash, helper| hash.u16(helper).lp(self.package(helper))).finish()
    }
}
