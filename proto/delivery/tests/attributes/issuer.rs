//! An issuer alone: configurations that it refuses, and its server without a KGC beside it.

use quiver_delivery::attributes::{
    AttributeIssuer, IssuerConfig, IssuerError, IssuingAuthority, KeyQuery, KeyResponse,
};
use quiver_delivery::{Issuer, Standalone};
use quiver_machine::{Input, Machine, Output, Peer, Via};
use quiver_message::{DeliveryHello, Message, Payload, RevocationQuery};

use crate::world::{INTERVAL, S, Toy, World, name};

fn config(world: &World, places: &[(usize, usize)]) -> IssuerConfig<S> {
    let authority = |&(statement, secret): &(usize, usize)| IssuingAuthority {
        statement: world.authorities[statement].statement.clone(),
        delivery: world.authorities[secret].delivery.clone(),
        maker: Box::new(Toy(world.made.clone())),
    };
    IssuerConfig { authorities: places.iter().map(authority).collect(), grants: vec![], interval: INTERVAL }
}

#[test]
fn issuer_checks_its_authorities() {
    let world = World::new(1, &["orders", "sensors"]);
    AttributeIssuer::new(config(&world, &[(1, 1), (0, 0)])).unwrap();
    AttributeIssuer::new(config(&world, &[])).unwrap();
    let refused = |places: &[(usize, usize)]| AttributeIssuer::new(config(&world, places)).unwrap_err();
    assert_eq!(refused(&[(0, 0), (0, 0)]), IssuerError::Twice);
    assert_eq!(refused(&[(0, 1)]), IssuerError::WrongKey(name("orders")));
    assert_eq!(refused(&[(0, 0); 17]), IssuerError::TooMany);
}

#[test]
fn authority_is_added_once_to_an_issuer_at_work() {
    let world = World::new(1, &["orders", "sensors"]);
    let mut issuer = AttributeIssuer::new(config(&world, &[(0, 0)])).unwrap();
    let authority = |place| config(&world, &[place]).authorities.remove(0);
    let offered = |issuer: &AttributeIssuer<S>| issuer.offer().unwrap().authorities().len();
    assert_eq!(issuer.add(authority((1, 0))), Err(IssuerError::WrongKey(name("sensors"))));
    assert_eq!(offered(&issuer), 1);
    assert_eq!(issuer.add(authority((1, 1))), Ok(()));
    assert_eq!(issuer.add(authority((1, 1))), Err(IssuerError::Twice));
    assert_eq!(offered(&issuer), 2);
    let many: Vec<_> = (0..16).map(|n| format!("authority-{n}")).collect();
    let world = World::new(1, &many.iter().map(String::as_str).collect::<Vec<_>>());
    let sixteen: Vec<_> = (0..16).map(|n| (n, n)).collect();
    let mut issuer = AttributeIssuer::new(config(&world, &sixteen)).unwrap();
    let one_more = config(&World::new(2, &["one-more"]), &[(0, 0)]).authorities.remove(0);
    assert_eq!(issuer.add(one_more), Err(IssuerError::TooMany));
}

#[test]
fn server_without_a_kgc_answers_and_blames() {
    let mut world = World::new(2, &["orders"]);
    let mut server = Standalone::server(world.deployment.clone(), world.server());
    let hello =
        Message::<S>::DeliveryHello(DeliveryHello { payload: Payload::AttributeKeys, nonce: [1; 16] });
    let query = Message::<S>::RevocationQuery(RevocationQuery { number: 0, max_len: 0 });
    let now = world.clock();
    let mut answers = Vec::new();
    for message in [hello, query] {
        let bytes = message.encode(&world.deployment);
        let input = Input::Received { from: Peer(1), via: Via::Peer, bytes: &bytes };
        server.handle_input(now, input, &mut world.rng);
        match server.poll_output() {
            Output::Transmit { payload, .. } => {
                answers.push(Message::<S>::decode(&world.deployment, &payload).unwrap());
            }
            other => assert!(format!("{other:?}").contains("server of delivery"), "{other:?}"),
        }
        assert!(matches!(server.poll_output(), Output::Timeout(None)));
    }
    let fingerprint = *world.authorities[0].statement.fingerprint();
    assert!(
        matches!(&answers[..], [Message::DeliveryChallenge(answer)] if answer.offer.authorities() == [fingerprint])
    );
}

#[test]
fn question_and_answer_have_one_encoding_each() {
    let questions = [
        KeyQuery { statement: false, held: None },
        KeyQuery { statement: true, held: None },
        KeyQuery { statement: true, held: Some(7) },
    ];
    for question in questions {
        let bytes = question.encode();
        assert_eq!(KeyQuery::decode(&bytes), Ok(question));
        for length in 0..bytes.len() {
            assert!(KeyQuery::decode(&bytes[..length]).is_err());
        }
    }
    let key = quiver_crypto::Zeroizing::new(vec![0xab; 40]);
    let answers = [
        KeyResponse::Nothing,
        KeyResponse::Withdrawn,
        KeyResponse::Held { grant: 7 },
        KeyResponse::Key { grant: 8, key },
    ];
    for answer in answers {
        let bytes = answer.encode();
        assert_eq!(KeyResponse::decode(&bytes), Ok(answer.clone()));
        assert!(!format!("{answer:?}").contains("171"), "the key is not printed");
        for length in 0..bytes.len() {
            assert!(KeyResponse::decode(&bytes[..length]).is_err());
        }
        for place in 0..bytes.len() {
            let mut changed = bytes.to_vec();
            changed[place] ^= 1;
            if let Ok(other) = KeyResponse::decode(&changed) {
                assert_eq!(*other.encode(), changed);
            }
        }
    }
}
