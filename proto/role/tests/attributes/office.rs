//! An office alone: what it refuses to be set up with, and that it works without a KGC beside it.

use quiver_crypto::Secret;
use quiver_message::{AttributeHello, Message, RevocationQuery};
use quiver_role::attributes::{Answer, Authority, Office, OfficeConfig, OfficeError, Question};
use quiver_role::{Input, Machine, Output, Peer, Via};

use crate::world::{INTERVAL, S, Toy, World, name};

fn config(world: &World, places: &[(usize, usize)]) -> OfficeConfig<S> {
    let authority = |&(statement, secret): &(usize, usize)| Authority {
        statement: world.authorities[statement].statement.clone(),
        delivery: world.authorities[secret].delivery.clone(),
        maker: Box::new(Toy(world.made.clone())),
    };
    OfficeConfig {
        deployment: world.deployment.clone(),
        cookie_key: Secret::new([1; 32]),
        authorities: places.iter().map(authority).collect(),
        grants: vec![],
        interval: INTERVAL,
    }
}

#[test]
fn office_checks_its_authorities() {
    let world = World::new(1, &["orders", "sensors"]);
    Office::new(config(&world, &[(1, 1), (0, 0)])).unwrap();
    Office::new(config(&world, &[])).unwrap();
    let refused = |places: &[(usize, usize)]| Office::new(config(&world, places)).unwrap_err();
    assert_eq!(refused(&[(0, 0), (0, 0)]), OfficeError::Twice);
    assert_eq!(refused(&[(0, 1)]), OfficeError::WrongKey(name("orders")));
    assert_eq!(refused(&[(0, 0); 17]), OfficeError::TooMany);
}

#[test]
fn office_without_a_kgc_answers_and_blames() {
    let mut world = World::new(2, &["orders"]);
    let mut office = world.office();
    let hello = Message::<S>::AttributeHello(AttributeHello { nonce: [1; 16] });
    let query = Message::<S>::RevocationQuery(RevocationQuery { number: 0, max_len: 0 });
    let now = world.clock();
    let mut answers = Vec::new();
    for message in [hello, query] {
        let bytes = message.encode(&world.deployment);
        let input = Input::Received { from: Peer(1), via: Via::Peer, bytes: &bytes };
        office.handle_input(now, input, &mut world.rng);
        match office.poll_output() {
            Output::Transmit { payload, .. } => {
                answers.push(Message::<S>::decode(&world.deployment, &payload).unwrap());
            }
            other => assert!(format!("{other:?}").contains("attribute authority"), "{other:?}"),
        }
        assert!(matches!(office.poll_output(), Output::Timeout(None)));
    }
    let fingerprint = *world.authorities[0].statement.fingerprint();
    assert!(
        matches!(&answers[..], [Message::AttributeChallenge(answer)] if answer.authorities == [fingerprint])
    );
}

#[test]
fn question_and_answer_have_one_encoding_each() {
    let questions = [
        Question { statement: false, held: None },
        Question { statement: true, held: None },
        Question { statement: true, held: Some(7) },
    ];
    for question in questions {
        let bytes = question.encode();
        assert_eq!(Question::decode(&bytes), Ok(question));
        for length in 0..bytes.len() {
            assert!(Question::decode(&bytes[..length]).is_err());
        }
    }
    let key = quiver_crypto::Zeroizing::new(vec![0xab; 40]);
    let answers =
        [Answer::Nothing, Answer::Withdrawn, Answer::Held { grant: 7 }, Answer::Key { grant: 8, key }];
    for answer in answers {
        let bytes = answer.encode();
        assert_eq!(Answer::decode(&bytes), Ok(answer.clone()));
        assert!(!format!("{answer:?}").contains("171"), "the key is not printed");
        for length in 0..bytes.len() {
            assert!(Answer::decode(&bytes[..length]).is_err());
        }
        for place in 0..bytes.len() {
            let mut changed = bytes.to_vec();
            changed[place] ^= 1;
            if let Ok(other) = Answer::decode(&changed) {
                assert_eq!(*other.encode(), changed);
            }
        }
    }
}
