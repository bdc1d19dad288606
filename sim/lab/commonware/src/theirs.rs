//! The timelock encryption of the crate `commonware-cryptography`, whose keys are threshold signatures.

use std::error::Error;

use commonware_cryptography::Signer;
use commonware_cryptography::bls12381::dkg::feldman_desmedt::deal;
use commonware_cryptography::bls12381::primitives::ops::{keypair, sign_message, threshold, verify_message};
use commonware_cryptography::bls12381::primitives::sharing::Mode;
use commonware_cryptography::bls12381::primitives::variant::{MinPk, MinSig, Variant};
use commonware_cryptography::bls12381::tle::{Block, decrypt, encrypt};
use commonware_cryptography::ed25519::PrivateKey;
use commonware_parallel::Sequential;
use commonware_utils::{N3f1, TryCollect, test_rng};

use crate::{HOLDERS, IbeContender, Operation};

const NAMESPACE: &[u8] = b"quiver";
const TARGET: &[u8] = b"mission/alpha/phase-2";
const MESSAGE: [u8; 32] = *b"a message of thirty-two bytes ..";

pub(crate) fn contenders() -> Result<Vec<IbeContender>, Box<dyn Error>> {
    Ok(vec![contender::<MinPk>("commonware-minpk")?, contender::<MinSig>("commonware-minsig")?])
}

fn contender<V: Variant>(name: &'static str) -> Result<IbeContender, Box<dyn Error>> {
    let mut rng = test_rng();
    let (secret, public) = keypair::<_, V>(&mut rng);
    let message = Block::new(MESSAGE);
    let key = sign_message::<V>(&secret, NAMESPACE, TARGET);
    let ciphertext = encrypt::<_, V>(&mut rng, public, (NAMESPACE, TARGET), &message)
        .map_err(|error| format!("{error:?}"))?;
    Ok(IbeContender {
        name,
        encrypt: Box::new(move || encrypt::<_, V>(&mut rng, public, (NAMESPACE, TARGET), &message).is_ok()),
        decrypt: Box::new(move || decrypt::<V>(&key, &ciphertext) == Some(Block::new(MESSAGE))),
        combine: combination::<V>()?,
    })
}

/// Recovers the signature from as many shares as are needed, and verifies it.
fn combination<V: Variant>() -> Result<Operation, Box<dyn Error>> {
    let holders = (0..u64::from(HOLDERS)).map(|seed| PrivateKey::from_seed(seed).public_key()).try_collect();
    let holders = holders.map_err(|error| format!("{error:?}"))?;
    let (output, shares) = deal::<V, _, N3f1>(&mut test_rng(), Mode::NonZeroCounter, holders)
        .map_err(|error| format!("{error:?}"))?;
    let partials: Vec<_> =
        shares.values().iter().map(|share| threshold::sign_message::<V>(share, NAMESPACE, TARGET)).collect();
    Ok(Box::new(move || {
        let sharing = output.public();
        let recovered = threshold::recover::<V, _>(sharing, &partials, &Sequential);
        recovered.is_ok_and(|key| verify_message::<V>(sharing.public(), NAMESPACE, TARGET, &key).is_ok())
    }))
}
