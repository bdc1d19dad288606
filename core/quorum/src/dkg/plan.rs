//! A KGC's computation in key generation, by FROST, from a seed and the messages received.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use frost_core::keys::dkg::{self, round1, round2};
use frost_core::keys::{SigningShare, refresh};
use frost_core::{Field, Group, Identifier};
use quiver_ainq::KgcId;
use quiver_crypto::{Digest, Secret, Zeroizing};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use super::CeremonyOutcome;
use crate::public::frost;
use crate::suite::{SCALAR_LEN, identifier};
use crate::{Error, PublicShares, QuorumParameters, QuorumSuite, SecretShare};

/// Identifier, purpose of the ceremony, and the seed of everything this KGC draws in it.
pub(super) struct CeremonyPlan<S: QuorumSuite> {
    pub(super) parameters: QuorumParameters,
    pub(super) kgc: KgcId,
    pub(super) context: Digest,
    pub(super) seed: Secret<32>,
    /// The shares to refresh, if it is not to make new ones.
    pub(super) old: Option<Old<S>>,
}

/// A share that is being refreshed, and the quorum it is part of.
pub(super) struct Old<S: QuorumSuite> {
    pub(super) share: SecretShare<S>,
    pub(super) public: PublicShares<S>,
    /// The version to come.
    pub(super) next: u32,
}

/// Secret polynomial of this KGC, and its shares for the others.
pub(super) struct Dealt<S: QuorumSuite> {
    secret: round2::SecretPackage<S::Frost>,
    shares: BTreeMap<KgcId, round2::Package<S::Frost>>,
}

/// The packages of all other KGCs.
type Packages<S> =
    BTreeMap<Identifier<<S as QuorumSuite>::Frost>, round1::Package<<S as QuorumSuite>::Frost>>;

/// Result of FROST's first part: a secret to keep and a package to send.
type Part1<S> =
    (round1::SecretPackage<<S as QuorumSuite>::Frost>, round1::Package<<S as QuorumSuite>::Frost>);

impl<S: QuorumSuite> Old<S> {
    pub(super) fn new(share: SecretShare<S>, public: PublicShares<S>) -> Result<Self, Error> {
        share.matches(&public)?;
        let exhausted = Error::WrongVersion { expected: u32::MAX - 1, actual: public.version() };
        let next = public.version().checked_add(1).ok_or(exhausted)?;
        Ok(Self { share, public, next })
    }
}

impl<S: QuorumSuite> Dealt<S> {
    pub(super) fn share_for(&self, to: KgcId) -> Result<Zeroizing<Vec<u8>>, Error> {
        let package = self.shares.get(&to).ok_or(Error::UnknownKgc(to))?;
        Ok(Zeroizing::new(package.signing_share().serialize()))
    }
}

impl<S: QuorumSuite> CeremonyPlan<S> {
    /// Round 1. The same every time, so that a KGC which crashed deals the same again.
    pub(super) fn part1(&self) -> Result<Part1<S>, Error> {
        let (n, t) = (self.parameters.members(), self.parameters.threshold());
        // The same seed gives the same polynomials after a crash.
        let rng = ChaCha20Rng::from_seed(*self.seed.expose());
        let own = identifier::<S>(self.kgc)?;
        // Komlo, Goldberg, figure 1, round 1; a refresh deals zero, and has nothing to prove.
        match self.old {
            None => dkg::part1(own, n, t, rng),
            Some(_) => refresh::refresh_dkg_part1(own, n, t, rng),
        }
        .map_err(frost)
    }

    /// Checks the proof that a dealer knows its secret, which makes it impossible to choose it after the
    /// others'.
    ///
    /// FROST checks proofs only when it has those of all. So it is asked about a ceremony of two, this KGC
    /// and that dealer, in which this KGC's polynomial is zero; nothing of the result is used. When
    /// shares are refreshed there is no secret to know.
    pub(super) fn check_proof(&self, from: KgcId, package: round1::Package<S::Frost>) -> Result<(), Error> {
        if self.old.is_some() {
            return Ok(());
        }
        let t = self.parameters.threshold();
        let zeros =
            vec![<<<S::Frost as frost_core::Ciphersuite>::Group as Group>::Field>::zero(); usize::from(t)];
        let commitment = package.commitment().clone();
        // Zeros of this KGC, so that only the dealer's proof can fail.
        let zero = round1::SecretPackage::new(identifier::<S>(self.kgc)?, zeros, commitment, t, 2);
        let packages = BTreeMap::from([(identifier::<S>(from)?, package)]);
        dkg::part2(zero, &packages).map(drop).map_err(|_| Error::InvalidProof { culprit: from })
    }

    /// Round 2.
    pub(super) fn part2(&self, packages: &BTreeMap<KgcId, Vec<u8>>) -> Result<Dealt<S>, Error> {
        // Repeated from the seed, so that no polynomial is stored.
        let (secret, _) = self.part1()?;
        let packages = self.decode_packages(packages)?;
        // Komlo, Goldberg, figure 1, round 2: f_j(i) for every other KGC.
        let (secret, mut shares) = match self.old {
            None => dkg::part2(secret, &packages),
            Some(_) => refresh::refresh_dkg_part2(secret, &packages),
        }
        .map_err(frost)?;
        let take = |kgc| Ok((kgc, shares.remove(&identifier::<S>(kgc)?).ok_or(Error::Frost)?));
        let shares = self.parameters.others(self.kgc).map(take).collect::<Result<_, Error>>()?;
        Ok(Dealt { secret, shares })
    }

    /// The end.
    pub(super) fn part3(
        &self,
        dealt: &Dealt<S>,
        packages: &BTreeMap<KgcId, Vec<u8>>,
        shares: &BTreeMap<KgcId, Secret<SCALAR_LEN>>,
    ) -> Result<CeremonyOutcome<S>, Error> {
        let packages = self.decode_packages(packages)?;
        let shares = shares
            .iter()
            .map(|(kgc, share)| {
                let share = SigningShare::deserialize(share.expose()).map_err(frost)?;
                Ok((identifier::<S>(*kgc)?, round2::Package::new(share)))
            })
            .collect::<Result<BTreeMap<_, _>, Error>>()?;
        // Komlo, Goldberg, figure 1, round 2: x_i = Σ f_j(i).
        let (version, (key, public)) = match &self.old {
            None => (0, dkg::part3(&dealt.secret, &packages, &shares).map_err(frost)?),
            Some(old) => {
                let public = old.public.for_frost(self.parameters.kgcs())?;
                let key = old.share.key().clone();
                // New share = old share + a share of zero.
                let refreshed = refresh::refresh_dkg_shares(&dealt.secret, &packages, &shares, public, key);
                (old.next, refreshed.map_err(frost)?)
            }
        };
        let public = PublicShares::of_frost(self.parameters, version, &public)?;
        Ok((SecretShare::of_frost(self.kgc, &public, key)?, public))
    }

    fn decode_packages(&self, packages: &BTreeMap<KgcId, Vec<u8>>) -> Result<Packages<S>, Error> {
        let decode =
            |(kgc, bytes): (&KgcId, &Vec<u8>)| Ok((identifier::<S>(*kgc)?, self.decode_package(bytes)?));
        packages.iter().map(decode).collect()
    }
}
