//! Repair of a lost share by the other KGCs (§5.3).
//!
//! Source: Stinson, Wei, *Combinatorial repairability for threshold schemes*, Designs, Codes and Cryptography
//! 2018 (the enrolment scheme), as `frost-core` has it in `keys::repairable`. Deviation: the helpers commit
//! to their messages, so that a liar is named; without that, only the sum is seen to be wrong.
//!
//! | symbol | here |
//! |---|---|
//! | r | the KGC that lost its share |
//! | H | the helpers, t or more of the others |
//! | ζ_i | Lagrange's coefficient of helper i at r, so that x_r = Σ ζ_i·x_i |
//! | δ_ij, D_ij = δ_ij·P | random, with Σ_j δ_ij = ζ_i·x_i: [`Helping::delta_for`], [`Helping::package`] |
//! | σ_j = Σ_i δ_ij | [`Helping::answer`] |
//!
//! ```text
//! helper i → helpers, r   all D_ij           checked: Σ_j D_ij = ζ_i·Y_i
//! helper i → helper j     δ_ij               checked: δ_ij·P = D_ij
//! helper j → r            σ_j, and a hash of all D, which must be r's own
//!                                            checked: σ_j·P = Σ_i D_ij
//! r                       x_r = Σ σ_j        checked: x_r·P = Y_r
//! ```
//!
//! δ and σ travel over channels that nobody else reads. No helper learns x_r, and r learns nothing of the
//! others' shares. There is nothing to store: after a crash the repair starts anew, with another context.

mod plan;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use frost_core::keys::repairable::{self, Delta, Sigma};
use quiver_ainq::KgcId;
use quiver_crypto::{Digest, Secret, Zeroizing};
use rand_core::CryptoRngCore;

use self::plan::RepairPlan;
use crate::public::frost;
use crate::suite::{SCALAR_LEN, identifier};
use crate::{Error, PublicShares, QuorumSuite, SecretShare};

/// Bytes of a δ, in every suite.
pub const DELTA_LEN: usize = SCALAR_LEN;

/// Bytes of a helper's answer, in every suite: a hash and σ.
pub const ANSWER_LEN: usize = 32 + SCALAR_LEN;

/// Bytes of a helper's package: one commitment per helper.
#[must_use]
pub const fn package_len<S: QuorumSuite>(helpers: usize) -> usize {
    helpers.saturating_mul(S::POINT_LEN)
}

/// A helper's side of a repair.
#[derive(derive_more::Debug)]
#[debug("Helping(KGC {kgc}, {plan:?})")]
pub struct Helping<S: QuorumSuite> {
    plan: RepairPlan<S>,
    kgc: KgcId,
    /// δ_ij of this helper i.
    own: BTreeMap<KgcId, Secret<SCALAR_LEN>>,
    /// δ_ij for this helper j, its own among them.
    deltas: BTreeMap<KgcId, Secret<SCALAR_LEN>>,
}

/// The side of the KGC that lost its share.
#[derive(derive_more::Debug)]
#[debug("Recovering({plan:?})")]
pub struct Recovering<S: QuorumSuite> {
    plan: RepairPlan<S>,
    sigmas: BTreeMap<KgcId, Secret<SCALAR_LEN>>,
}

impl<S: QuorumSuite> Helping<S> {
    /// Starts to help KGC `lost` together with `helpers`, of whom this KGC is one.
    ///
    /// `context` is a hash of what all must agree on: the deployment, the identifiers of the KGCs, the
    /// attempt. The caller has verified that the requesting KGC is `lost`: the receiver of the answers has
    /// its share.
    ///
    /// # Errors
    /// [`Error::WrongVersion`] or [`Error::WrongQuorum`] if share and public shares do not belong together;
    /// [`Error::UnknownKgc`] if this KGC does not help, `lost` does, or one is not of the quorum;
    /// [`Error::DuplicateKgc`]; [`Error::WrongNumber`] for fewer than t helpers.
    pub fn new(
        share: &SecretShare<S>,
        public: &PublicShares<S>,
        helpers: &[KgcId],
        lost: KgcId,
        context: Digest,
        mut rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<Self, Error> {
        // The share and the public shares must be of one quorum and version.
        share.matches(public)?;
        let kgc = share.kgc();
        let mut plan = RepairPlan::new(public.clone(), helpers, lost, context)?;
        plan.check_helper(kgc)?;
        let ids = plan.helpers().map(identifier::<S>).collect::<Result<Vec<_>, _>>()?;
        // FROST's step 1: δ_ij for every helper j, which add up to this helper's part of x_r.
        let deltas = repairable::repair_share_part1(&ids, share.key(), &mut rng, identifier::<S>(lost)?)
            .map_err(frost)?;
        let mut own = BTreeMap::new();
        for helper in plan.helpers() {
            let delta = deltas.get(&identifier::<S>(helper)?).ok_or(Error::Frost)?;
            let bytes = Zeroizing::new(delta.serialize());
            own.insert(helper, Secret::try_from(bytes.as_slice()).map_err(|_| Error::Frost)?);
        }
        // §5.3: a helper commits to its δ before it sends any, so that a wrong one shows whose it is.
        plan.commit(kgc, &own)?;
        let deltas = own.get(&kgc).map(|delta| (kgc, delta.clone())).into_iter().collect();
        Ok(Self { plan, kgc, own, deltas })
    }

    /// Message of this helper to the other helpers and to the KGC that lost its share: [`package_len`] bytes,
    /// public.
    #[must_use]
    pub fn package(&self) -> &[u8] {
        self.plan.package(self.kgc)
    }

    /// Delta of this helper for helper `to` alone: [`DELTA_LEN`] bytes, secret.
    ///
    /// # Errors
    /// [`Error::UnknownKgc`].
    pub fn delta_for(&self, to: KgcId) -> Result<Zeroizing<Vec<u8>>, Error> {
        let delta = self.own.get(&to).ok_or(Error::UnknownKgc(to))?;
        Ok(Zeroizing::new(delta.expose().to_vec()))
    }

    /// Takes the package of helper `from`.
    ///
    /// # Errors
    /// [`Error::UnknownKgc`]; [`Error::InvalidMessage`]; [`Error::InvalidShare`] if it does not add up to the
    /// public share of `from`; [`Error::Contradiction`].
    pub fn receive_package(&mut self, from: KgcId, package: &[u8]) -> Result<(), Error> {
        self.plan.receive_package(from, package)
    }

    /// Takes the δ of helper `from` for this one. Its package comes first.
    ///
    /// # Errors
    /// [`Error::UnknownKgc`]; [`Error::Incomplete`] before the package; [`Error::InvalidMessage`];
    /// [`Error::InvalidShare`] unless it is the one that `from` committed to.
    pub fn receive_delta(&mut self, from: KgcId, delta: &[u8]) -> Result<(), Error> {
        self.plan.check_helper(from)?;
        let commitment = self.plan.commitment(from, self.kgc)?;
        // §5.3: every δ is checked against the commitment to it.
        let delta = opens::<S>(from, delta, commitment.point())?;
        self.deltas.insert(from, delta);
        Ok(())
    }

    /// Helpers whose packages or δ are missing.
    #[must_use]
    pub fn missing(&self) -> Vec<KgcId> {
        self.plan.helpers().filter(|helper| !self.deltas.contains_key(helper)).collect()
    }

    /// Answer of this helper to the KGC that lost its share, and to no other: [`ANSWER_LEN`] bytes, secret.
    ///
    /// # Errors
    /// [`Error::Incomplete`].
    pub fn answer(&self) -> Result<Zeroizing<Vec<u8>>, Error> {
        let missing = self.missing();
        if !missing.is_empty() {
            return Err(Error::Incomplete { missing });
        }
        let deltas = self.deltas.values().map(|delta| Delta::<S::Frost>::deserialize(delta.expose()));
        let deltas = deltas.collect::<Result<Vec<_>, _>>().map_err(frost)?;
        // FROST's step 2: σ_j = Σ_i δ_ij.
        let sigma = Zeroizing::new(repairable::repair_share_part2(&deltas).serialize());
        let mut answer = Zeroizing::new(Vec::with_capacity(ANSWER_LEN));
        // The digest of all packages: helpers that were sent different ones do not combine.
        answer.extend_from_slice(&self.plan.digest());
        answer.extend_from_slice(&sigma);
        Ok(answer)
    }
}

impl<S: QuorumSuite> Recovering<S> {
    /// Starts to recover the share of KGC `lost` with `helpers`.
    ///
    /// `public` are the public shares that are in use, of which the caller has made sure: they are under the
    /// master public key it has pinned, and of the version the helpers have.
    ///
    /// # Errors
    /// [`Error::UnknownKgc`] if `lost` helps or one is not of the quorum; [`Error::DuplicateKgc`];
    /// [`Error::WrongNumber`] for fewer than t helpers.
    pub fn new(
        public: &PublicShares<S>,
        helpers: &[KgcId],
        lost: KgcId,
        context: Digest,
    ) -> Result<Self, Error> {
        Ok(Self { plan: RepairPlan::new(public.clone(), helpers, lost, context)?, sigmas: BTreeMap::new() })
    }

    /// Takes the package of helper `from`.
    ///
    /// # Errors
    /// As [`Helping::receive_package`].
    pub fn receive_package(&mut self, from: KgcId, package: &[u8]) -> Result<(), Error> {
        self.plan.receive_package(from, package)
    }

    /// Takes the answer of helper `from`. All packages come first.
    ///
    /// # Errors
    /// [`Error::UnknownKgc`]; [`Error::Incomplete`] before the packages; [`Error::InvalidMessage`];
    /// [`Error::EchoMismatch`] if `from` received other commitments, or claims so; [`Error::InvalidShare`].
    pub fn receive_answer(&mut self, from: KgcId, answer: &[u8]) -> Result<(), Error> {
        self.plan.check_helper(from)?;
        let missing = self.plan.missing();
        if !missing.is_empty() {
            return Err(Error::Incomplete { missing });
        }
        let (digest, sigma) =
            answer.split_first_chunk::<32>().ok_or(Error::InvalidMessage { culprit: from })?;
        // All must have the same commitments.
        if *digest != self.plan.digest() {
            return Err(Error::EchoMismatch { with: from });
        }
        // §5.3: σ_j·P must be the sum of the commitments to the δ_ij.
        let sigma = opens::<S>(from, sigma, &self.plan.sum_for(from)?)?;
        self.sigmas.insert(from, sigma);
        Ok(())
    }

    /// Helpers whose answers are missing.
    #[must_use]
    pub fn missing(&self) -> Vec<KgcId> {
        self.plan.helpers().filter(|helper| !self.sigmas.contains_key(helper)).collect()
    }

    /// The share that was lost.
    ///
    /// # Errors
    /// [`Error::Incomplete`].
    pub fn finish(&self) -> Result<SecretShare<S>, Error> {
        let missing = self.missing();
        if !missing.is_empty() {
            return Err(Error::Incomplete { missing });
        }
        let sigmas = self.sigmas.values().map(|sigma| Sigma::<S::Frost>::deserialize(sigma.expose()));
        let sigmas = sigmas.collect::<Result<Vec<_>, _>>().map_err(frost)?;
        let (public, lost) = (self.plan.public(), self.plan.lost());
        let package = public.for_frost([lost])?;
        // FROST's step 3: x_r = Σ_j σ_j.
        let key = repairable::repair_share_part3(&sigmas, identifier::<S>(lost)?, &package).map_err(frost)?;
        SecretShare::of_frost(lost, public, key)
    }
}

/// The scalar that opens a commitment, or who sent another.
fn opens<S: QuorumSuite>(
    from: KgcId,
    scalar: &[u8],
    commitment: &S::Point,
) -> Result<Secret<SCALAR_LEN>, Error> {
    let bytes = Secret::try_from(scalar).map_err(|_| Error::InvalidMessage { culprit: from })?;
    let scalar = S::scalar_decode(scalar).ok_or(Error::InvalidMessage { culprit: from })?;
    let scalar = Zeroizing::new(scalar);
    if S::mul_base(&scalar) == *commitment { Ok(bytes) } else { Err(Error::InvalidShare { culprit: from }) }
}
