//! Quiver's scheme: hashing the identity every time, and keeping what one identity needs.

use std::error::Error;

use quiver_ibe::{Dealing, Encryptor, IdentityKey, IdentityPoint, PublicShares, UnverifiedKeyShare, combine};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::{HOLDERS, IbeContender, NEEDED, Operation};

const IDENTITY: &[u8] = b"mission/alpha/phase-2";
const MESSAGE: &[u8; 32] = b"a message of thirty-two bytes ..";

struct Quorum {
    publics: PublicShares,
    shares: Vec<UnverifiedKeyShare>,
    point: IdentityPoint,
    key: IdentityKey,
}

fn rng() -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(1)
}

fn quorum() -> Result<Quorum, Box<dyn Error>> {
    let dealing = Dealing::deal(NEEDED, HOLDERS, &mut rng())?;
    let (publics, point) = (dealing.public_shares()?, IdentityPoint::of_bytes(IDENTITY));
    let shares: Vec<_> = dealing.shares().iter().map(|share| share.extract(&point).into()).collect();
    let key = combine(&publics, &point, &shares, &mut rng())?;
    Ok(Quorum { publics, shares, point, key })
}

pub(crate) fn contenders() -> Result<Vec<IbeContender>, Box<dyn Error>> {
    let quorum = quorum()?;
    let (master, mut random) = (*quorum.publics.master(), rng());
    let once = move || {
        let point = IdentityPoint::of_bytes(IDENTITY);
        master.encrypt(&point, MESSAGE, &mut random).is_ok()
    };
    let (encryptor, mut random) = (Encryptor::new(master, quorum.point), rng());
    let kept = move || encryptor.encrypt(MESSAGE, &mut random).is_ok();
    Ok(vec![
        contender("quiver", Box::new(once), self::quorum()?)?,
        contender("quiver-kept", Box::new(kept), quorum)?,
    ])
}

fn contender(name: &'static str, encrypt: Operation, quorum: Quorum) -> Result<IbeContender, Box<dyn Error>> {
    let Quorum { publics, shares, point, key } = quorum;
    let mut random = rng();
    let ciphertext = publics.master().encrypt(&point, MESSAGE, &mut random)?;
    Ok(IbeContender {
        name,
        encrypt,
        decrypt: Box::new(move || key.decrypt(&ciphertext).is_ok_and(|opened| *opened == MESSAGE)),
        combine: Box::new(move || combine(&publics, &point, &shares, &mut random).is_ok()),
    })
}
