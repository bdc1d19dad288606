//! Shares from a trusted dealer, for experiments and for turning a single KGC into a quorum.
//!
//! The machine that runs this could issue keys alone. A new quorum uses [`dkg`](crate::dkg), in which none
//! can.

use alloc::vec::Vec;

use frost_core::SigningKey;
use frost_core::keys::{self, IdentifierList, KeyPackage};
use quiver_ainq::MasterSecret;
use rand_core::CryptoRngCore;

use crate::public::frost;
use crate::suite::identifier;
use crate::{Error, PublicShares, QuorumParameters, QuorumSuite, SecretShare};

/// Result of a dealer: one share per KGC, in the order of their identifiers, and the public shares.
pub type Dealt<S> = (Vec<SecretShare<S>>, PublicShares<S>);

/// Draws a master secret and splits it. The secret itself is erased.
///
/// # Errors
/// None but [`Error::Frost`], with negligible probability.
pub fn deal<S: QuorumSuite>(
    parameters: QuorumParameters,
    mut rng: &mut (impl CryptoRngCore + ?Sized),
) -> Result<Dealt<S>, Error> {
    split_key(&SigningKey::new(&mut rng), parameters, rng)
}

/// Splits the master secret of a single KGC, whose public key stays the same. The KGC erases its own copy.
///
/// # Errors
/// As [`deal`].
pub fn split<S: QuorumSuite>(
    master: &MasterSecret<S>,
    parameters: QuorumParameters,
    rng: &mut (impl CryptoRngCore + ?Sized),
) -> Result<Dealt<S>, Error> {
    split_key(&SigningKey::deserialize(&master.encode()).map_err(frost)?, parameters, rng)
}

fn split_key<S: QuorumSuite>(
    key: &SigningKey<S::Frost>,
    parameters: QuorumParameters,
    mut rng: &mut (impl CryptoRngCore + ?Sized),
) -> Result<Dealt<S>, Error> {
    let (n, t) = (parameters.members(), parameters.threshold());
    // RFC 9591, appendix C: a trusted dealer.
    let (mut shares, package) = keys::split(key, n, t, IdentifierList::Default, &mut rng).map_err(frost)?;
    let public = PublicShares::of_frost(parameters, 0, &package)?;
    let take = |kgc| {
        let share = shares.remove(&identifier::<S>(kgc)?).ok_or(Error::UnknownKgc(kgc))?;
        SecretShare::of_frost(kgc, &public, KeyPackage::try_from(share).map_err(frost)?)
    };
    let shares = parameters.kgcs().map(take).collect::<Result<_, _>>()?;
    Ok((shares, public))
}
