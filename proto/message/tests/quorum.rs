//! Every message between the KGCs of a quorum: its encoding is fixed by a snapshot, it survives encoding,
//! out-of-bounds values are refused, and no bytes that differ by one decode to it.

use quiver_ainq::{Deployment, MasterSecret, Name, Revoked, Ristretto255};
use quiver_crypto::Zeroizing;
use quiver_message::quorum::{
    Both, Ceremony, CeremonyAbort, CeremonyKind, Echo, Helper, MAX_BODY_LEN, MAX_COMMITMENTS_LEN,
    MAX_MEMBERS, MAX_PROPOSED, MAX_PUBLIC_SHARES_LEN, QuorumMessage, QuorumProof, QuorumStatus, RepairAnswer,
    RepairDelta, RepairOffer, RepairRequest, RepairStart, Rounds, SecretBytes, SignCommitment, SignPackage,
    SignProposal, SignRefusal, SignRefusalReason, SignShare, SignedStatement, SignerCommitment,
};
use quiver_message::{MAX_MESSAGE_LEN, Message, MessageError};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

const QUORUM: [u8; 32] = [0xab; 32];

fn secret(byte: u8, len: usize) -> SecretBytes {
    SecretBytes::new(Zeroizing::new(vec![byte; len]))
}

fn secrets() -> Both<SecretBytes> {
    Both { ainq: secret(21, 32), ibe: secret(22, 32) }
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn status() -> QuorumStatus {
    QuorumStatus {
        version: 3,
        keys: Some([1; 32]),
        list: 7,
        statement: true,
        asks: true,
        proposed: vec![
            Revoked { serial: [2; 16], not_after: 1000, leader: true },
            Revoked { serial: [4; 16], not_after: u64::MAX, leader: false },
        ],
    }
}

fn ceremony() -> Ceremony {
    let echo = Echo { hashes: Both { ainq: [5; 32], ibe: [6; 32] }, digests: vec![[7; 32]; 3] };
    let rounds = Rounds {
        session: [8; 32],
        commitments: Some(Both { ainq: vec![9; 160], ibe: vec![10; 224] }),
        echo: Some(echo),
        share: Some(secrets()),
        confirmation: Some([11; 32]),
    };
    let (kind, keys) = (CeremonyKind::Refresh, Some([1; 32]));
    Ceremony { kind, attempt: 1_800_000_000, nonce: [12; 32], keys, asks: true, rounds: Some(rounds) }
}

fn start() -> RepairStart {
    let helpers = vec![Helper { kgc: 1, nonce: [13; 32] }, Helper { kgc: 4, nonce: [14; 32] }];
    RepairStart { session: [8; 32], nonce: [12; 32], version: 3, helpers }
}

fn offer() -> RepairOffer {
    let public_shares = Both { ainq: vec![15; 200], ibe: vec![16; 300] };
    RepairOffer { nonce: [12; 32], helper_nonce: [13; 32], version: 3, public_shares }
}

fn proposal() -> SignProposal {
    SignProposal { session: [17; 16], version: 3, purpose: name("revocation"), body: vec![18; 40] }
}

fn package() -> SignPackage {
    let one = |kgc| SignerCommitment { kgc, commitment: vec![kgc as u8; 64] };
    SignPackage { session: [17; 16], commitments: vec![one(2), one(5)] }
}

fn messages() -> Vec<(&'static str, QuorumMessage)> {
    use QuorumMessage as Q;
    let commitments = Both { ainq: vec![9; 64], ibe: vec![10; 96] };
    let delta = RepairDelta {
        session: [8; 32],
        member: 3,
        commitments: commitments.clone(),
        delta: secrets(),
        asks: true,
    };
    let bare =
        Ceremony { kind: CeremonyKind::Generation, keys: None, rounds: None, asks: false, ..ceremony() };
    let refusal = SignRefusal { session: [17; 16], reason: SignRefusalReason::Superseded, number: 9 };
    let statement = SignedStatement { purpose: name("quorum"), body: vec![19; 50], signature: vec![20; 64] };
    vec![
        ("QuorumStatus", Q::Status(status())),
        ("Ceremony", Q::Ceremony(ceremony())),
        ("CeremonyBare", Q::Ceremony(bare)),
        ("CeremonyAbort", Q::Abort(CeremonyAbort { session: [8; 32], culprit: Some(2) })),
        ("RepairRequest", Q::RepairRequest(RepairRequest { nonce: [12; 32] })),
        ("RepairOffer", Q::RepairOffer(offer())),
        ("RepairStart", Q::RepairStart(start())),
        ("RepairDelta", Q::RepairDelta(delta)),
        ("RepairAnswer", Q::RepairAnswer(RepairAnswer { session: [8; 32], commitments, answer: secrets() })),
        ("SignProposal", Q::SignProposal(proposal())),
        ("SignCommitment", Q::SignCommitment(SignCommitment { session: [17; 16], commitment: vec![23; 64] })),
        ("SignPackage", Q::SignPackage(package())),
        ("SignShare", Q::SignShare(SignShare { session: [17; 16], share: vec![24; 32] })),
        ("SignRefusal", Q::SignRefusal(refusal)),
        ("SignedStatement", Q::SignedStatement(statement)),
        ("QuorumProof", Q::Proof(QuorumProof { proof: vec![25; 60] })),
    ]
}

#[test]
fn every_messages_encoding_is_as_it_was() {
    for (name, message) in messages() {
        insta::assert_snapshot!(name, hex::encode(message.encode(&QUORUM)));
    }
}

#[test]
fn every_message_survives_the_way_there_and_back() {
    for (name, message) in messages() {
        let bytes = message.encode(&QUORUM);
        assert!(QuorumMessage::is_framed_as(&bytes), "{name}");
        assert_eq!(QuorumMessage::decode(&QUORUM, &bytes).as_ref(), Ok(&message), "{name}");
        assert_eq!(QuorumMessage::decode(&[0; 32], &bytes), Err(MessageError::ForeignDeployment), "{name}");
    }
}

#[test]
fn nothing_that_differs_by_a_byte_passes_for_it() {
    for (name, message) in messages() {
        let bytes = message.encode(&QUORUM);
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            for other in [&bytes[..place], &changed] {
                if let Ok(decoded) = QuorumMessage::decode(&QUORUM, other) {
                    assert_ne!(decoded, message, "{name}, byte {place}");
                    assert_eq!(decoded.encode(&QUORUM), other, "{name}, byte {place}");
                }
            }
        }
    }
}

#[test]
fn neither_frame_passes_for_the_other() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let master = MasterSecret::<Ristretto255>::generate(&mut rng);
    let deployment = Deployment::new(name("test"), master.public());
    for (name, message) in messages() {
        assert!(Message::decode(&deployment, &message.encode(&QUORUM)).is_err(), "{name}");
    }
    let query = quiver_message::RevocationQuery { number: 4, max_len: 0 };
    let bytes = Message::<Ristretto255>::RevocationQuery(query).encode(&deployment);
    assert!(!QuorumMessage::is_framed_as(&bytes));
    assert!(QuorumMessage::decode(&QUORUM, &bytes).is_err());
}

#[test]
fn no_secret_is_printed() {
    let printed = format!("{:?}", messages());
    for secret in ["21, 21", "22, 22"] {
        assert!(!printed.contains(secret));
    }
    assert!(printed.contains("SecretBytes(32 bytes)"));
}

fn refused(message: &QuorumMessage, field: &'static str) {
    let decoded = QuorumMessage::decode(&QUORUM, &message.encode(&QUORUM));
    assert_eq!(decoded, Err(MessageError::Invalid(field)));
}

#[test]
fn statuses_and_ceremonies_out_of_bounds_are_refused() {
    use QuorumMessage as Q;
    refused(&Q::Status(QuorumStatus { keys: None, ..status() }), "version");
    let many = (0..=MAX_PROPOSED as u16).map(|number| [number.to_be_bytes(); 8].concat().try_into().unwrap());
    refused(
        &Q::Status(QuorumStatus { proposed: many.map(Revoked::unknown).collect(), ..status() }),
        "proposed",
    );
    for serials in [[2, 2], [3, 2]] {
        let proposed = serials.map(|serial| Revoked::unknown([serial; 16])).to_vec();
        refused(&Q::Status(QuorumStatus { proposed, ..status() }), "proposed");
    }
    refused(&Q::Ceremony(Ceremony { keys: None, ..ceremony() }), "keys");
    refused(&Q::Ceremony(Ceremony { kind: CeremonyKind::Generation, ..ceremony() }), "keys");
    let with = |change: &dyn Fn(&mut Rounds)| {
        let mut message = ceremony();
        change(message.rounds.as_mut().unwrap());
        Q::Ceremony(message)
    };
    let long = vec![1; MAX_COMMITMENTS_LEN + 1];
    refused(&with(&|rounds| rounds.commitments.as_mut().unwrap().ibe = long.clone()), "commitments");
    refused(&with(&|rounds| rounds.commitments.as_mut().unwrap().ainq = Vec::new()), "commitments");
    refused(&with(&|rounds| rounds.share.as_mut().unwrap().ibe = secret(1, 129)), "share");
    refused(
        &with(&|rounds| rounds.echo.as_mut().unwrap().digests = vec![[1; 32]; MAX_MEMBERS + 1]),
        "digests",
    );
    refused(&with(&|rounds| rounds.echo.as_mut().unwrap().digests = Vec::new()), "digests");
}

#[test]
fn repairs_and_signings_out_of_bounds_are_refused() {
    use QuorumMessage as Q;
    let helper = |kgc| Helper { kgc, nonce: [1; 32] };
    let all = (1..=MAX_MEMBERS as u16 + 1).map(helper).collect();
    for helpers in [vec![helper(1)], vec![helper(1), helper(1)], vec![helper(2), helper(1)], all] {
        refused(&Q::RepairStart(RepairStart { helpers, ..start() }), "helpers");
    }
    let long = vec![1; MAX_PUBLIC_SHARES_LEN + 1];
    let public_shares = Both { ainq: long, ibe: vec![1] };
    refused(&Q::RepairOffer(RepairOffer { public_shares, ..offer() }), "public_shares");
    refused(&Q::SignProposal(SignProposal { body: vec![0; MAX_BODY_LEN + 1], ..proposal() }), "body");
    let one = |kgc, len| SignerCommitment { kgc, commitment: vec![1; len] };
    for commitments in [vec![one(1, 64)], vec![one(2, 64), one(1, 64)], vec![one(1, 64), one(2, 129)]] {
        refused(&Q::SignPackage(SignPackage { commitments, ..package() }), "commitments");
    }
    let refusal = SignRefusal { session: [1; 16], reason: SignRefusalReason::Busy, number: 1 };
    refused(&Q::SignRefusal(refusal), "number");
    // The longest body fits a message.
    let longest = Q::SignProposal(SignProposal { body: vec![0; MAX_BODY_LEN], ..proposal() }).encode(&QUORUM);
    assert!(longest.len() <= MAX_MESSAGE_LEN && QuorumMessage::decode(&QUORUM, &longest).is_ok());
}
