//! Keys, shares and ciphertexts that the Go library DistributedIBE wrote are the same here.
//!
//! `vectors/distributedibe.json` was written by running that library (github.com/Fairblock/DistributedIBE) on
//! identities and thresholds of ours: nothing in it was computed by this crate. Beside comparing with it,
//! everything that follows from the secret shares alone is computed again with arkworks, whatever back end
//! the crate has.

use ark_bls12_381::{Fr, G1Affine, G1Projective, G2Affine, G2Projective};
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
use ark_ff::{Field, PrimeField, Zero};
use quiver_ibe::{
    IbeCiphertext, IdentityPoint, MasterCommitment, MasterPublicKey, MasterShare, PublicShares,
    UnverifiedIdentityKey, UnverifiedKeyShare, UnverifiedMasterShare, combine, verify_batch,
};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::Deserialize;

#[derive(Deserialize)]
struct Vector {
    threshold: u16,
    validators: u16,
    master_public_key: Hex,
    identity: String,
    identity_point: Hex,
    secret_shares: Vec<Hex>,
    identity_key_shares: Vec<Hex>,
    share_public_keys: Vec<Hex>,
    feldman_commitments: Vec<Hex>,
    identity_key: Hex,
    stanza_body: Hex,
    file_key: Hex,
}

#[derive(Deserialize, PartialEq, Debug)]
#[serde(transparent)]
struct Hex(#[serde(with = "hex::serde")] Vec<u8>);

fn vectors() -> Vec<Vector> {
    let vectors: Vec<Vector> = serde_json::from_str(include_str!("vectors/distributedibe.json")).unwrap();
    assert_eq!(vectors.len(), 4);
    vectors
}

fn rng() -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(3)
}

impl Vector {
    fn point(&self) -> IdentityPoint {
        IdentityPoint::of_bytes(self.identity.as_bytes())
    }

    fn master_shares(&self) -> Vec<MasterShare> {
        assert_eq!(self.secret_shares.len(), usize::from(self.validators));
        let shares = (1..).zip(&self.secret_shares);
        shares.map(|(index, Hex(scalar))| MasterShare::from_scalar_bytes(index, scalar).unwrap()).collect()
    }

    fn key_shares(&self) -> Vec<UnverifiedKeyShare> {
        let shares = (1_u16..).zip(&self.identity_key_shares);
        let encoded = shares.map(|(index, Hex(point))| [&index.to_be_bytes()[..], point].concat());
        encoded.map(|bytes| UnverifiedKeyShare::decode(&bytes).unwrap()).collect()
    }

    fn commitment(&self) -> MasterCommitment {
        let count = u32::try_from(self.feldman_commitments.len()).unwrap();
        let mut bytes = count.to_be_bytes().to_vec();
        self.feldman_commitments.iter().for_each(|Hex(point)| bytes.extend_from_slice(point));
        let commitment = MasterCommitment::decode(&bytes).unwrap();
        assert_eq!(commitment.encode(), bytes);
        commitment
    }

    fn public_shares(&self) -> PublicShares {
        let (master, count) = (&self.master_public_key.0, u32::from(self.validators));
        let mut bytes = [&[1][..], &self.threshold.to_be_bytes(), master, &count.to_be_bytes()].concat();
        for (index, Hex(point)) in (1_u16..).zip(&self.share_public_keys) {
            bytes.extend_from_slice(&index.to_be_bytes());
            bytes.extend_from_slice(point);
        }
        let publics = PublicShares::decode(&bytes).unwrap();
        assert_eq!(publics.encode(), bytes);
        publics
    }
}

#[test]
fn identities_hash_to_the_points_of_distributed_ibe() {
    for vector in vectors() {
        assert_eq!(vector.point().encode()[..], vector.identity_point.0);
    }
}

#[test]
fn share_public_keys_are_those_of_distributed_ibe() {
    for vector in vectors() {
        let publics = vector.public_shares();
        assert_eq!(publics.threshold(), vector.threshold);
        for share in vector.master_shares() {
            publics.check(&share).unwrap();
        }
        assert_eq!(publics.master().encode()[..], vector.master_public_key.0);
    }
}

#[test]
fn commitments_of_distributed_ibe_verify_its_shares_one_by_one_and_at_once() {
    for vector in vectors() {
        let commitment = vector.commitment();
        assert_eq!(commitment.threshold(), vector.threshold);
        assert_eq!(commitment.master().encode()[..], vector.master_public_key.0);
        let publics = vector.public_shares();
        let shares: Vec<_> = vector.master_shares().into_iter().map(UnverifiedMasterShare::new).collect();
        for share in &shares {
            assert_eq!(commitment.public(share.index()), *publics.share(share.index()).unwrap());
            share.clone().verify(&commitment).unwrap();
        }
        assert_eq!(commitment.verify_batch(shares, &mut rng()).unwrap().len(), vector.secret_shares.len());
    }
}

#[test]
fn key_shares_are_those_of_distributed_ibe() {
    for vector in vectors() {
        let point = vector.point();
        for (share, Hex(expected)) in vector.master_shares().iter().zip(&vector.identity_key_shares) {
            assert_eq!(share.extract(&point).encode()[2..], *expected);
        }
        let verified = verify_batch(&vector.public_shares(), &point, &vector.key_shares(), &mut rng());
        assert_eq!(verified.unwrap().len(), usize::from(vector.validators));
    }
}

#[test]
fn any_threshold_of_shares_combines_to_the_key_of_distributed_ibe() {
    for vector in vectors() {
        let (publics, point, shares) = (vector.public_shares(), vector.point(), vector.key_shares());
        let threshold = usize::from(vector.threshold);
        for first in 0..=shares.len() - threshold {
            let key = combine(&publics, &point, &shares[first..][..threshold], &mut rng()).unwrap();
            assert_eq!(key.encode()[..], vector.identity_key.0);
        }
        let backwards: Vec<_> = shares.into_iter().rev().collect();
        let key = combine(&publics, &point, &backwards, &mut rng()).unwrap();
        assert_eq!(key.encode()[..], vector.identity_key.0);
    }
}

#[test]
fn ciphertexts_of_distributed_ibe_decrypt() {
    for vector in vectors() {
        let master = MasterPublicKey::decode(&vector.master_public_key.0).unwrap();
        let key = UnverifiedIdentityKey::decode(&vector.identity_key.0).unwrap();
        let key = key.verify(&master, &vector.point()).unwrap();
        let ciphertext = IbeCiphertext::decode(&vector.stanza_body.0).unwrap();
        assert_eq!(ciphertext.encode(), vector.stanza_body.0);
        assert_eq!(*key.decrypt(&ciphertext).unwrap(), vector.file_key.0);
    }
}

/// The secret that the first t shares give, without any code of ours.
fn master_secret(vector: &Vector) -> Fr {
    let count = u64::from(vector.threshold);
    let shares: Vec<Fr> =
        vector.secret_shares.iter().map(|Hex(bytes)| Fr::from_be_bytes_mod_order(bytes)).collect();
    (1..=count).zip(shares).fold(Fr::zero(), |sum, (own, share)| {
        let others = (1..=count).filter(|other| *other != own).map(Fr::from);
        sum + others.fold(share, |term, x| term * x * (x - Fr::from(own)).inverse().unwrap())
    })
}

/// A point's x-coordinate, big-endian, the highest coefficient first, as the encodings have it behind their
/// flags.
fn x_of_g1(point: G1Affine) -> Vec<u8> {
    be(point.x().unwrap())
}

fn x_of_g2(point: G2Affine) -> Vec<u8> {
    let x = point.x().unwrap();
    [be(x.c1), be(x.c0)].concat()
}

fn be(coordinate: ark_bls12_381::Fq) -> Vec<u8> {
    coordinate.into_bigint().0.iter().rev().flat_map(|limb| limb.to_be_bytes()).collect()
}

/// An encoding without its three flags.
fn without_flags(Hex(encoded): &Hex) -> Vec<u8> {
    let mut x = encoded.clone();
    x[0] &= 0x1f;
    x
}

#[test]
fn what_follows_from_the_secret_shares_follows_by_arkworks_too() {
    for vector in vectors() {
        let secret = master_secret(&vector);
        let master = (G1Projective::generator() * secret).into_affine();
        assert_eq!(x_of_g1(master), without_flags(&vector.master_public_key));
        assert_eq!(without_flags(&vector.feldman_commitments[0]), without_flags(&vector.master_public_key));
        // Q has no known logarithm: take it from the vector, by its x-coordinate and the sign in its flags.
        let x = without_flags(&vector.identity_point);
        let [c1, c0] = [&x[..48], &x[48..]].map(ark_bls12_381::Fq::from_be_bytes_mod_order);
        let larger = vector.identity_point.0[0] & 0x20 != 0;
        let point = G2Affine::get_point_from_x_unchecked(ark_bls12_381::Fq2::new(c0, c1), larger).unwrap();
        let key: G2Projective = point.into_group() * secret;
        assert_eq!(x_of_g2(key.into_affine()), without_flags(&vector.identity_key));
    }
}
