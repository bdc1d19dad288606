//! The vector of RFC 9591, appendix E.2: FROST(ristretto255, SHA-512) with two of three signers.
//!
//! Nonces are hashes of randomness and a share there as here, so a source of randomness that yields the
//! vector's bytes is all it takes to follow the vector from the shares to the signature.

use std::collections::BTreeMap;

use quiver_ainq::{Element, KgcId, Ristretto255};
use quiver_crypto::canonical::Writer;
use quiver_quorum::{Error, PublicShares, QuorumParameters, SecretShare, SigningPackage};
use rand_core::{CryptoRng, RngCore};

const KEY: &str = "e2a62f39eede11269e3bd5a7d97554f5ca384f9f6d3dd9c3c0d05083c7254f57";

const SHARES: [&str; 3] = [
    "5c3430d391552f6e60ecdc093ff9f6f4488756aa6cebdbad75a768010b8f830e",
    "b06fc5eac20b4f6e1b271d9df2343d843e1e1fb03c4cbb673f2872d459ce6f01",
    "f17e505f0e2581c6acfe54d3846a622834b5e7b50cad9a2109a97ba7a80d5c04",
];

/// Values of a signer: randomness of the hiding and of the binding nonce, the commitments to both, its
/// signature share.
struct Signer {
    kgc: KgcId,
    randomness: [&'static str; 2],
    commitment: [&'static str; 2],
    share: &'static str,
}

const SIGNERS: [Signer; 2] = [
    Signer {
        kgc: 1,
        randomness: [
            "4366eff4b4676f97822998ec3e5af1388131bffa3db76e54ee19805f0e778f33",
            "173a02012818fbb58ed70b2dc620bb22e2d144d8c3953479e213ed7323f0270a",
        ],
        commitment: [
            "4818a19481eddc359c299dc101a84820423fcbe4b08badfa78c24b4de56c022e",
            "f6df3b1ca00c88b7688a6ebffd6eb2d81a3d1305342ec69cc24cb4558bc2b41b",
        ],
        share: "1f5adbfd775a95ce4c95c7d81b3898d89bdce160adece3168b38dc9367a20502",
    },
    Signer {
        kgc: 3,
        randomness: [
            "ca93286a68e79bd850839fd4fb4498fbee1bae3829f5dbd9e447860925e556cc",
            "598dce485138d86ddecebb5c0cfa112ac114eb35fcded3cf69ad915c7abeb425",
        ],
        commitment: [
            "52554f07003db6c789b867872a762bbd5efc5fb699dc8213863369d66117142c",
            "e0842fef27f9ccc38fbe93c73eb1f04d1de6c917b35aafffc8ffc7c02889cd70",
        ],
        share: "34c974f623cd0b5563334afc2a395ee86c0638136d6cad74240478c13d4a2101",
    },
];

const SIGNATURE: &str = "fa954853693068803615803a06e2c23a6228f7d6d6b442b72b26696aa776fe75\
                         532350f49b27a123b0c811d54671f6c008e319741a59918baf3c5455a5ec2603";

/// Yields the given bytes and no others.
struct Scripted(Vec<u8>);

impl RngCore for Scripted {
    fn next_u32(&mut self) -> u32 {
        unreachable!("nonces are made of bytes")
    }

    fn next_u64(&mut self) -> u64 {
        unreachable!("nonces are made of bytes")
    }

    fn fill_bytes(&mut self, to: &mut [u8]) {
        to.copy_from_slice(&self.0.drain(..to.len()).collect::<Vec<u8>>());
    }

    fn try_fill_bytes(&mut self, to: &mut [u8]) -> Result<(), rand_core::Error> {
        self.fill_bytes(to);
        Ok(())
    }
}

impl CryptoRng for Scripted {}

fn share(kgc: KgcId) -> SecretShare<Ristretto255> {
    let bytes = Writer::new()
        .lp(b"quiver/1 quorum secret share")
        .lp(b"QUIVER-AINQ-RISTRETTO255-SHA512-v1")
        .u16(kgc)
        .u16(3)
        .u16(2)
        .u32(0)
        .fixed(&hex::decode(KEY).unwrap())
        .fixed(&hex::decode(SHARES[usize::from(kgc) - 1]).unwrap())
        .finish();
    SecretShare::decode(&bytes).unwrap()
}

#[test]
fn signing_follows_the_vector_of_rfc_9591_from_shares_to_signature() {
    let parameters = QuorumParameters::new(3, 2).unwrap();
    let key = Element::decode(&hex::decode(KEY).unwrap()).unwrap();
    let public = [1, 2, 3].map(|kgc| *share(kgc).public());
    let public = PublicShares::new(parameters, 0, key, public.to_vec()).unwrap();
    let (mut nonces, mut commitments) = (Vec::new(), Vec::new());
    for signer in &SIGNERS {
        let mut rng = Scripted(hex::decode(signer.randomness.concat()).unwrap());
        let (nonce, commitment) = share(signer.kgc).commit(&mut rng).unwrap();
        assert_eq!(hex::encode(commitment.encode()), signer.commitment.concat());
        nonces.push(nonce);
        commitments.push((signer.kgc, commitment));
    }
    let package = SigningPackage::new(0, b"test".to_vec(), commitments).unwrap();
    assert_eq!(hex::encode(package.commitment(&key).unwrap().as_bytes()), SIGNATURE[..64]);
    let mut shares = BTreeMap::new();
    for (signer, nonce) in SIGNERS.iter().zip(nonces) {
        let one = share(signer.kgc).sign(nonce, &package).unwrap();
        assert_eq!(hex::encode(&*one.encode()), signer.share);
        shares.insert(signer.kgc, one);
    }
    let statement = public.aggregate_statement(&package, &shares).unwrap();
    assert_eq!(hex::encode(statement.encode()), SIGNATURE);
}

#[test]
fn the_vectors_signature_is_not_made_of_another_message() {
    let parameters = QuorumParameters::new(3, 2).unwrap();
    let key = Element::decode(&hex::decode(KEY).unwrap()).unwrap();
    let public = [1, 2, 3].map(|kgc| *share(kgc).public());
    let public = PublicShares::new(parameters, 0, key, public.to_vec()).unwrap();
    let commitment = |signer: &Signer| {
        let bytes = hex::decode(signer.commitment.concat()).unwrap();
        (signer.kgc, quiver_quorum::Commitment::decode(&bytes).unwrap())
    };
    let package = SigningPackage::new(0, b"tess".to_vec(), SIGNERS.iter().map(commitment)).unwrap();
    let share = |signer: &Signer| {
        let bytes = hex::decode(signer.share).unwrap();
        (signer.kgc, quiver_quorum::SignatureShare::decode(&bytes).unwrap())
    };
    let error = public.aggregate_statement(&package, &SIGNERS.iter().map(share).collect()).unwrap_err();
    assert_eq!(error, Error::InvalidSignatureShares { culprits: vec![1, 3] });
}
