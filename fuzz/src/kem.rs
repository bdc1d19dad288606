//! The second factor of pairwise secrets: ML-KEM's keys and ciphertexts, κ at rest, and the messages of its
//! exchange.

use std::sync::OnceLock;

use quiver_ainq::{Deployment, Handle, KemKey, KemPair, KemTerm, MAX_KEM_STEPS, Ristretto255, Suite as _};
use quiver_crypto::Secret;
use quiver_kem::{DecapsulationKey, KemSet, encapsulate};
use quiver_message::{JoinChallenge, JoinCiphertext, JoinHello, JoinRequest, KemOffer, Message};

use crate::decoders;
use crate::scene::{GROUP, Staged as _, canonical, name};

type S = Ristretto255;

/// A pair of each parameter set.
fn pairs() -> &'static [(DecapsulationKey, Vec<u8>); 2] {
    static PAIRS: OnceLock<[(DecapsulationKey, Vec<u8>); 2]> = OnceLock::new();
    PAIRS
        .get_or_init(|| KemSet::ALL.map(|set| DecapsulationKey::generate(set, Secret::new([set.code(); 64]))))
}

/// Received encapsulation keys, which a leader encapsulates to: what is taken has a ciphertext of its set.
pub fn encapsulation_key(bytes: &[u8]) {
    let message = Secret::new([7; 32]);
    for set in KemSet::ALL {
        let made = encapsulate(set, bytes, &message);
        assert!(bytes.len() == set.key_len() || made.is_err(), "a key of another length was taken");
        if let Ok((ciphertext, _)) = made {
            assert_eq!(ciphertext.len(), set.ciphertext_len());
        }
    }
}

/// Keys of both sets.
pub fn encapsulation_key_seeds() -> Vec<Vec<u8>> {
    pairs().iter().map(|(_, key)| key.clone()).collect()
}

/// Received ciphertexts, which a drone decapsulates: what has the length of its set gives a secret, always
/// the same.
pub fn kem_ciphertext(bytes: &[u8]) {
    for (secret, _) in pairs() {
        let shared = secret.decapsulate(bytes);
        assert_eq!(shared.is_ok(), bytes.len() == secret.set().ciphertext_len());
        assert_eq!(shared, secret.decapsulate(bytes));
    }
}

/// Ciphertexts of both sets.
pub fn kem_ciphertext_seeds() -> Vec<Vec<u8>> {
    let made = pairs().iter().map(|(secret, key)| encapsulate(secret.set(), key, &Secret::new([9; 32])));
    made.filter_map(|made| Some(made.ok()?.0)).collect()
}

/// κ at rest: it steps forward alone, and not too far at once.
pub fn kem_key(bytes: &[u8]) {
    let key = canonical(bytes, KemKey::<S>::decode(bytes), |key| key.encode().to_vec());
    let Some(mut key) = key else { return };
    let (leader, g) = (Handle([1; 32]), key.term().g());
    assert!(g == 0 || key.step_to(&leader, g - 1).is_err(), "κ went back");
    assert!(key.step_to(&leader, g.saturating_add(MAX_KEM_STEPS + 1)).is_err(), "κ stepped too far");
    let before = key.tag();
    if key.step_to(&leader, g.saturating_add(2)).is_ok() {
        assert_ne!(key.tag(), before);
    }
}

/// κ of both sets.
pub fn kem_key_seeds() -> Vec<Vec<u8>> {
    terms().map(|term| made_key(term).encode().to_vec()).to_vec()
}

fn terms() -> [KemTerm; 2] {
    KemSet::ALL.map(|set| KemTerm::new(set, 0x1_0000 + 5).expect("a count"))
}

fn made_key(term: KemTerm) -> KemKey<S> {
    let (deployment, group): (&Deployment<S>, _) = (&S::scene().deployment, name(GROUP));
    let (leader, drone) = (Handle([1; 32]), Handle([2; 32]));
    let pair =
        KemPair { deployment, group: &group, leader: &leader, drone: &drone, key: &[], ciphertext: &[] };
    KemKey::derive(term, &Secret::new([3; 32]), &pair)
}

/// The messages of a join.
pub fn kem_message(bytes: &[u8]) {
    decoders::message::<S>(bytes);
}

/// A join with each set: hello, challenge, requests with a key, with one ahead of a
/// leader's term and with the name of one held, ciphertext.
pub fn kem_message_seeds() -> Vec<Vec<u8>> {
    let scene = S::scene();
    let honest = scene.honest();
    let (edge, leader) = (honest.edge.keypair.public(), honest.leader.keypair.public());
    let messages = terms().into_iter().zip(pairs()).zip(kem_ciphertext_seeds());
    let messages = messages.flat_map(|((term, (_, key)), ciphertext)| {
        let (set, nonce) = (term.set(), [5; 16]);
        let hello = JoinHello { group: name(GROUP), drone: edge.encode(), nonce, kem: Some(set) };
        let challenge = JoinChallenge {
            nonce,
            challenge: [6; 40],
            leader: leader.clone(),
            revocation_number: 3,
            kem: Some(term),
        };
        let request = |kem: KemOffer| JoinRequest {
            group: name(GROUP),
            drone: edge.encode(),
            nonce,
            challenge: [6; 40],
            ephemeral: scene.deployment.master().as_bytes().to_vec(),
            spare_q: 4,
            spare_point: scene.deployment.master().as_bytes().to_vec(),
            spare_signature: vec![8; S::POINT_LEN + S::SCALAR_LEN],
            signature: vec![8; S::POINT_LEN + S::SCALAR_LEN],
            kem: Some(kem),
        };
        [
            Message::JoinHello(hello),
            Message::JoinChallenge(challenge),
            Message::JoinRequest(request(KemOffer::Key { set, key: key.clone() })),
            Message::JoinRequest(request(KemOffer::Ahead { set, key: key.clone() })),
            Message::JoinRequest(request(KemOffer::Held { term, tag: made_key(term).tag() })),
            Message::JoinCiphertext(JoinCiphertext { nonce, term, ciphertext }),
        ]
    });
    messages.map(|message: Message<S>| message.encode(&scene.deployment)).collect()
}
