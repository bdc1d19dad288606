//! Messages of anonymous admission.

use quiver_admission::{
    AdmissionChallenge, AdmissionHello, AdmissionLeave, AdmissionMessage, AdmissionProof, AdmissionStep,
    MAX_ADMISSION_POLICY_LEN, MAX_ADMISSION_STEP_LEN,
};
use quiver_ainq::{DronePublicKey, KemTerm, Signature};
use quiver_kem::KemSet;
use quiver_message as m;

use super::{NumberedReader, S, check_refused, name};

pub(super) fn reader() -> NumberedReader {
    super::reader::<AdmissionMessage<S>>()
}

/// Messages between an anonymous drone and a leader that demands a policy.
pub(super) fn messages(
    leader: &DronePublicKey<S>,
    signature: Signature<S>,
) -> Vec<(&'static str, AdmissionMessage<S>)> {
    let (nonce, cookie, leader) = ([1; 16], [2; 40], leader.clone());
    let challenge = AdmissionChallenge { nonce, cookie, leader, policy: vec![3; 90], signature, kem: None };
    let proof = AdmissionProof { nonce, cookie, step: vec![1; 60], kem: None };
    let (set, term) = (KemSet::MlKem768, KemTerm::new(KemSet::MlKem768, 300).unwrap());
    let hello = AdmissionHello { nonce, group: name("alpha"), kem: None };
    let step = AdmissionStep { nonce, step: vec![3; 33], ciphertext: vec![] };
    let offer = Some(m::KemOffer::Key { set, key: vec![8; set.key_len()] });
    let leave = AdmissionLeave { group: name("alpha"), slot: 3, held: [4; 32], tag: [5; 32] };
    vec![
        ("AdmissionHello", AdmissionMessage::Hello(hello.clone())),
        ("AdmissionChallenge", AdmissionMessage::Challenge(challenge.clone())),
        ("AdmissionProof", AdmissionMessage::Proof(proof.clone())),
        ("AdmissionStep", AdmissionMessage::Step(step.clone())),
        ("AdmissionLeave", AdmissionMessage::Leave(leave)),
        ("AdmissionStepBare", AdmissionMessage::Step(AdmissionStep { step: vec![], ..step.clone() })),
        ("AdmissionHelloHybrid", AdmissionMessage::Hello(AdmissionHello { kem: Some(set), ..hello })),
        (
            "AdmissionChallengeHybrid",
            AdmissionMessage::Challenge(AdmissionChallenge { kem: Some(term), ..challenge }),
        ),
        ("AdmissionProofHybrid", AdmissionMessage::Proof(AdmissionProof { kem: offer, ..proof })),
        (
            "AdmissionStepHybrid",
            AdmissionMessage::Step(AdmissionStep { ciphertext: vec![9; set.ciphertext_len()], ..step }),
        ),
    ]
}

#[test]
fn admission_messages_out_of_bounds_are_refused() {
    let (deployment, all) = super::messages();
    let check = |message: AdmissionMessage<S>, field| check_refused(&deployment, &message.into(), field);
    let (nonce, cookie) = ([1; 16], [2; 40]);
    let challenge = all.iter().find_map(|(_, message)| match message.extension()?.unwrap() {
        AdmissionMessage::Challenge(challenge) => Some(challenge),
        _ => None,
    });
    let challenge = challenge.unwrap();
    for length in [0, MAX_ADMISSION_POLICY_LEN + 1] {
        let policy = vec![0; length];
        check(AdmissionMessage::Challenge(AdmissionChallenge { policy, ..challenge.clone() }), "policy");
    }
    for length in [0, MAX_ADMISSION_STEP_LEN + 1] {
        let step = vec![0; length];
        check(AdmissionMessage::Proof(AdmissionProof { nonce, cookie, step, kem: None }), "step");
    }
    let step = vec![0; MAX_ADMISSION_STEP_LEN + 1];
    check(AdmissionMessage::Step(AdmissionStep { nonce, step, ciphertext: vec![] }), "step");
}

#[test]
fn second_factors_of_admission_out_of_bounds_are_refused() {
    let (deployment, all) = super::messages();
    let check = |message: AdmissionMessage<S>, field| check_refused(&deployment, &message.into(), field);
    let found = |what| {
        let (_, message) = all.iter().find(|(name, _)| *name == what)?;
        message.extension()?.ok()
    };
    let Some(AdmissionMessage::Proof(proof)) = found("AdmissionProof") else { panic!("no proof") };
    let Some(AdmissionMessage::Step(step)) = found("AdmissionStep") else { panic!("no step") };
    let check_offer = |kem| {
        let proof = AdmissionProof { kem: Some(kem), ..proof.clone() };
        check(AdmissionMessage::Proof(proof), "kem");
    };
    for (set, other) in [(KemSet::MlKem768, KemSet::MlKem1024), (KemSet::MlKem1024, KemSet::MlKem768)] {
        let (own, others) = (set.key_len(), other.key_len());
        for length in [0, own - 1, own + 1, others] {
            let key = vec![8; length];
            check_offer(m::KemOffer::Key { set, key: key.clone() });
            check_offer(m::KemOffer::Ahead { set, key });
        }
        // A run of admission has a key of its own alone.
        check_offer(m::KemOffer::Ahead { set, key: vec![8; own] });
        let own = set.ciphertext_len();
        for length in [own - 1, own + 1] {
            let step = AdmissionStep { ciphertext: vec![9; length], ..step.clone() };
            check(AdmissionMessage::Step(step), "ciphertext");
        }
        // No run may be linked with another by what both ends have.
        check_offer(m::KemOffer::Held { term: KemTerm::new(set, 1).unwrap(), tag: [7; 16] });
    }
}
