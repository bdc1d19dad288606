//! Messages of an enrolment with a quorum of KGCs.

use quiver_enrolment::threshold::{EnrolCommitment, EnrolDone, EnrolShare, EnrolSigning, EnrolmentMessage};

use super::{NumberedReader, check_refused};

pub(super) fn reader() -> NumberedReader {
    super::reader::<EnrolmentMessage>()
}

/// Messages between drones and the KGCs of a quorum.
pub(super) fn messages() -> Vec<(&'static str, EnrolmentMessage)> {
    let commitment =
        EnrolCommitment { request_digest: [4; 32], kgc: 3, commitment: vec![5; 64], statement: vec![6; 90] };
    let parts = vec![(1, vec![7; 64]), (3, vec![5; 64])];
    let signing = EnrolSigning { request_digest: [4; 32], parts };
    let share = EnrolShare { package_digest: [8; 32], share: vec![9; 82] };
    vec![
        ("EnrolCommitment", EnrolmentMessage::Commitment(commitment)),
        ("EnrolSigning", EnrolmentMessage::Signing(signing)),
        ("EnrolShare", EnrolmentMessage::Share(share)),
        ("EnrolDone", EnrolmentMessage::Done(EnrolDone { drone: vec![7; 150], signature: vec![8; 64] })),
    ]
}

#[test]
fn messages_of_a_quorum_out_of_bounds_are_refused() {
    let (deployment, _) = super::messages();
    let check = |message: EnrolmentMessage, field| check_refused(&deployment, &message.into(), field);
    let good =
        EnrolCommitment { request_digest: [4; 32], kgc: 1, commitment: vec![5; 64], statement: vec![6; 90] };
    check(EnrolmentMessage::Commitment(EnrolCommitment { kgc: 0, ..good.clone() }), "kgc");
    for length in [0, 193] {
        let commitment = vec![5; length];
        check(EnrolmentMessage::Commitment(EnrolCommitment { commitment, ..good.clone() }), "commitment");
    }
    for length in [0, quiver_ainq::MAX_QUORUM_STATEMENT_LEN + 1] {
        let statement = vec![6; length];
        check(EnrolmentMessage::Commitment(EnrolCommitment { statement, ..good.clone() }), "statement");
    }
    let signing = |kgcs: Vec<u16>| {
        let parts = kgcs.into_iter().map(|kgc| (kgc, vec![5; 64])).collect();
        EnrolmentMessage::Signing(EnrolSigning { request_digest: [4; 32], parts })
    };
    for kgcs in [vec![], vec![2, 2], vec![3, 2], (1..=65).collect()] {
        check(signing(kgcs), "parts");
    }
    check(signing(vec![0, 1]), "kgc");
    for length in [0, 513] {
        let share = EnrolShare { package_digest: [8; 32], share: vec![9; length] };
        check(EnrolmentMessage::Share(share), "share");
    }
}
