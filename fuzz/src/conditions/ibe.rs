//! Identity-based encryption: conditions, and what quorums, senders and readers write. A value that decodes
//! has one encoding; no share, key or ciphertext but the honest one is taken.

use std::sync::LazyLock;

use quiver_ibe::{
    Condition, ConditionKind, Dealing, Error, IbeCiphertext, IdentityKey, IdentityPoint, MasterCommitment,
    MasterPublicKey, MasterShare, PublicShares, UnverifiedIdentityKey, UnverifiedKeyShare,
    UnverifiedMasterShare, combine, verify_batch,
};

use crate::scene::{canonical, rng};

const MESSAGE: &[u8; 16] = b"sixteen bytes of";

/// Shares, ciphertext and keys of an honest quorum, sender and reader.
struct HonestQuorum {
    dealing: Dealing,
    publics: PublicShares,
    point: IdentityPoint,
    shares: Vec<UnverifiedKeyShare>,
    key: IdentityKey,
    ciphertext: IbeCiphertext,
}

fn honest() -> &'static HonestQuorum {
    static HONEST: LazyLock<HonestQuorum> = LazyLock::new(|| {
        let mut rng = rng(60);
        let dealing = Dealing::deal(2, 3, &mut rng).expect("a threshold");
        let publics = dealing.public_shares().expect("consistent");
        let point = IdentityPoint::of(&"mission/alpha/phase-2".parse().expect("a condition"));
        let shares: Vec<UnverifiedKeyShare> =
            dealing.shares().iter().map(|share| share.extract(&point).into()).collect();
        let key = combine(&publics, &point, &shares, &mut rng).expect("honest shares");
        let ciphertext = publics.master().encrypt(&point, MESSAGE, &mut rng).expect("a short message");
        HonestQuorum { dealing, publics, point, shares, key, ciphertext }
    });
    &HONEST
}

/// Conditions.
pub fn condition(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else { return };
    let Ok(condition) = text.parse::<Condition>() else { return };
    assert_eq!(condition.as_str(), text, "two spellings of one condition");
    let again = match condition.kind() {
        ConditionKind::Mission(path) => Condition::mission(path),
        ConditionKind::Drone(serial) => Ok(Condition::drone(&serial)),
        ConditionKind::NotBefore(time) => Condition::not_before(time),
    };
    assert_eq!(again, Ok(condition), "what a condition means is not what it says");
}

/// Conditions of every kind.
pub fn condition_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "mission/alpha/phase-2",
        "drone/00102030405060708090a0b0c0d0e0f0",
        "not-before/2026-12-01T06:00:00Z",
        "not-before/2028-02-29T23:59:59Z",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Ciphertexts, and opening them.
pub fn ciphertext(bytes: &[u8]) {
    let Some(ciphertext) = canonical(bytes, IbeCiphertext::decode(bytes), IbeCiphertext::encode) else {
        return;
    };
    let honest = honest();
    match honest.key.decrypt(&ciphertext) {
        Ok(message) => assert!(ciphertext == honest.ciphertext && *message == MESSAGE),
        Err(error) => assert_eq!(error, Error::Decryption),
    }
}

/// An honest ciphertext, and one to another identity.
pub fn ciphertext_seeds() -> Vec<Vec<u8>> {
    let honest = honest();
    let other = IdentityPoint::of_bytes(b"another");
    let stray = honest.publics.master().encrypt(&other, &[7; 32], &mut rng(61)).expect("a short message");
    vec![honest.ciphertext.encode(), stray.encode()]
}

/// Key shares and identity keys, and combining them with honest ones.
pub fn key_share(bytes: &[u8]) {
    let honest = honest();
    let key = UnverifiedIdentityKey::decode(bytes);
    if let Ok(key) = key.and_then(|key| key.verify(honest.publics.master(), &honest.point)) {
        assert_eq!(key.encode()[..], *bytes);
        assert_eq!(key, honest.key, "another key of the identity");
    }
    let share = UnverifiedKeyShare::decode(bytes);
    let Some(share) = canonical(bytes, share, |share| share.encode().to_vec()) else { return };
    let right = honest.shares.iter().any(|known| known.encode() == share.encode());
    let alone = verify_batch(&honest.publics, &honest.point, core::slice::from_ref(&share), &mut rng(62));
    assert_eq!(alone.is_ok(), right);
    let helper = honest.shares.iter().find(|known| known.index() != share.index()).expect("three shares");
    match combine(&honest.publics, &honest.point, &[share.clone(), helper.clone()], &mut rng(63)) {
        Ok(key) => assert!(right && key == honest.key),
        Err(Error::InvalidKeyShares { culprits }) => {
            assert!(!right && culprits.iter().map(|culprit| culprit.index).eq([share.index()]));
        }
        Err(error) => panic!("{error}"),
    }
}

/// Honest shares, the key, and a share of another identity's key.
pub fn key_share_seeds() -> Vec<Vec<u8>> {
    let honest = honest();
    let stray = honest.dealing.shares()[0].extract(&IdentityPoint::of_bytes(b"another"));
    let shares = honest.shares.iter().map(|share| share.encode().to_vec());
    shares.chain([honest.key.encode().to_vec(), stray.encode().to_vec()]).collect()
}

/// Public shares and master public keys.
pub fn public_shares(bytes: &[u8]) {
    canonical(bytes, MasterPublicKey::decode(bytes), |key| key.encode().to_vec());
    if let Some(publics) = canonical(bytes, PublicShares::decode(bytes), PublicShares::encode) {
        let indices = publics.shares().iter().map(|(index, _)| *index);
        assert!(
            indices.clone().is_sorted_by(|a, b| a < b) && indices.len() >= usize::from(publics.threshold())
        );
    }
}

/// Public shares of quorums of two sizes, and a master public key.
pub fn public_shares_seeds() -> Vec<Vec<u8>> {
    let single = Dealing::deal(1, 1, &mut rng(64)).and_then(|dealing| dealing.public_shares());
    let publics = &honest().publics;
    vec![publics.encode(), single.expect("one of one").encode(), publics.master().encode().to_vec()]
}

/// Master shares and commitments, and checking one by the other.
pub fn master_share(bytes: &[u8]) {
    let honest = honest();
    canonical(bytes, MasterCommitment::decode(bytes), MasterCommitment::encode);
    let share = MasterShare::decode(bytes);
    let Some(share) = canonical(bytes, share, |share| share.encode().to_vec()) else { return };
    let right = honest.dealing.shares().iter().any(|known| known.encode() == share.encode());
    assert_eq!(honest.publics.check(&share).is_ok(), right);
    let claimed = UnverifiedMasterShare::new(share);
    assert_eq!(claimed.clone().verify(honest.dealing.commitment()).is_ok(), right);
    let batch = honest.dealing.commitment().verify_batch(vec![claimed], &mut rng(65));
    assert_eq!(batch.is_ok(), right);
}

/// Honest master shares, and the commitment to them.
pub fn master_share_seeds() -> Vec<Vec<u8>> {
    let dealing = &honest().dealing;
    let shares = dealing.shares().iter().map(|share| share.encode().to_vec());
    shares.chain([dealing.commitment().encode()]).collect()
}
