//! Release of identity keys: payloads of request and reply, the statement about the master key, and the
//! machines of a KGC and of a drone with an attacker between them.

use quiver_ainq::{DroneKeypair, Ristretto255, SignedDeliveryRequest};
use quiver_crypto::{Secret, Zeroizing};
use quiver_delivery::{DeliveryServer, Standalone};
use quiver_ibe::{Condition, Dealing};
use quiver_key_release::{
    CollectCommand, CollectEvent, CollectTiming, Collector, DEFAULT_RATE, Holding, Pattern, ReleaseAuthority,
    ReleaseConfig, ReleaseEvent, ReleaseParameters, ReleasePolicy, ShareQuery, ShareReleaser, ShareResponse,
    ShareServer,
};
use quiver_machine::{Input, Machine, Route};
use quiver_message::{DeliveryReply, DeliveryRequest as RequestMessage, Message, Payload};
use std::time::Duration;

use crate::scene::{NOW, PEER, Staged, canonical, drain, feed, name, rng};

type S = Ristretto255;

const CONDITION: &str = "not-before/2020-01-01T00:00:00Z";

/// Payloads of request and reply, within the signature and the seal, and the parameters of a statement.
pub fn payload(bytes: &[u8]) {
    canonical(bytes, ShareQuery::decode(bytes), ShareQuery::encode);
    canonical(bytes, ShareResponse::decode(bytes), |answer| answer.encode().to_vec());
    canonical(bytes, ReleaseParameters::decode(bytes), ReleaseParameters::encode);
}

/// Questions and answers of every kind, and parameters.
pub fn payload_seeds() -> Vec<Vec<u8>> {
    let condition = Some(CONDITION.parse().expect("a condition"));
    let questions = [
        ShareQuery { kgc: 1, statement: true, condition },
        ShareQuery { kgc: 2, statement: false, condition: None },
    ];
    let answers = [
        ShareResponse::Share { version: 1, share: Zeroizing::new([5; 98]) },
        ShareResponse::NotYet { at: 9, now: 8 },
        ShareResponse::NotApproved,
    ];
    let publics = Dealing::deal(2, 3, &mut rng(73)).and_then(|dealing| dealing.public_shares());
    let parameters = ReleaseParameters { version: 1, publics: publics.expect("dealt") };
    let answers = answers.iter().map(|answer| answer.encode().to_vec());
    answers.chain(questions.iter().map(ShareQuery::encode)).chain([parameters.encode()]).collect()
}

/// A KGC with a master key, whose release policy allows what the clock allows.
fn server() -> (Standalone<S, ShareServer<S>>, ReleaseAuthority<S>) {
    let (scene, mut rng) = (S::scene(), rng(74));
    let dealing = Dealing::deal(1, 1, &mut rng).expect("one of one");
    let publics = dealing.public_shares().expect("dealt");
    let statement = ReleaseParameters { version: 1, publics }.statement(&scene.deployment, name("ibe"));
    let signed = scene.master.sign_authority(&scene.deployment, statement.expect("short"), &mut rng);
    let signed = signed.expect("short enough").encode();
    let authority = ReleaseAuthority::decode(&scene.deployment, &signed).expect("just signed");
    let holding = Holding::new(authority.clone(), dealing.shares()[0].clone()).expect("belong together");
    let pattern: Pattern = "not-before".parse().expect("a pattern");
    let policy = ReleasePolicy { revision: 1, pattern, audience: Some(Default::default()) };
    let config = ReleaseConfig {
        holding: Some(holding),
        policies: vec![policy],
        approvals: vec![],
        rate: DEFAULT_RATE,
    };
    let server = DeliveryServer::new(Secret::new([3; 32]), ShareReleaser::new(config));
    (Standalone::server(scene.deployment.clone(), server), authority)
}

/// A KGC and a drone whose connection an attacker controls, who replaces with these bytes the message, the
/// request within it, the sealed reply, or the statement.
pub fn input(bytes: &[u8]) {
    let (scene, (mut server, authority)) = (S::scene(), server());
    let keypair = &scene.honest().edge.keypair;
    let keypair = DroneKeypair::restore(&scene.deployment, keypair.public().clone(), &keypair.to_bytes());
    let collector = Collector::new(None, CollectTiming::default());
    let mut drone = Standalone::client(scene.deployment.clone(), keypair.expect("its own"), collector);
    let condition: Condition = CONDITION.parse().expect("a condition");
    let patience = Duration::from_secs(60);
    let collect = CollectCommand::Collect { condition: Some(condition), patience, wait: false };
    drone.handle_input(NOW, Input::Command(collect), &mut rng(76));
    drone.handle_input(NOW, Input::Connected { peer: PEER, route: Route::Kgc }, &mut rng(76));
    let (hello, _) = drain(&mut drone);
    let (challenge, _) = feed(&mut server, &hello[0]);
    let (request, _) = feed(&mut drone, &challenge[0]);
    let Ok(Message::DeliveryRequest(asked)) = Message::<S>::decode(&scene.deployment, &request[0]) else {
        panic!("a drone that has a challenge asks");
    };
    let within = RequestMessage { request: bytes.to_vec(), ..asked };
    let within = Message::<S>::DeliveryRequest(within).encode(&scene.deployment);
    for message in [bytes, within.as_slice()] {
        let (_, events) = feed(&mut server, message);
        let released = events.iter().any(|event| matches!(event, ReleaseEvent::Released { .. }));
        assert!(!released, "a share for a stranger");
    }
    let request_digest = SignedDeliveryRequest::<S>::decode(&asked.request).expect("its own").digest();
    let statement = authority.statement().bytes();
    let payload = Payload::KeyShares;
    let replies = [
        DeliveryReply { payload, request_digest, statement: vec![], sealed: bytes.to_vec() },
        DeliveryReply { payload, request_digest, statement: bytes.to_vec(), sealed: vec![1] },
        DeliveryReply { payload, request_digest, statement, sealed: bytes.to_vec() },
    ];
    let replies = replies.map(|reply| Message::<S>::DeliveryReply(reply).encode(&scene.deployment));
    for message in replies.iter().map(Vec::as_slice).chain([bytes]) {
        let (_, events) = feed(&mut drone, message);
        let believed = events.iter().any(|event| matches!(event, CollectEvent::Collected { .. }));
        assert!(!believed, "a key that no KGC released");
    }
    // Nothing of that has kept the KGC's own answer out.
    let (reply, _) = feed(&mut server, &request[0]);
    let (_, events) = feed(&mut drone, &reply[0]);
    let collected = events.iter().any(|event| matches!(event, CollectEvent::Collected { .. }));
    assert!(collected || bytes.len() > 8, "short noise keeps nothing out");
}

/// Messages of another conversation.
pub fn input_seeds() -> Vec<Vec<u8>> {
    let (_, authority) = server();
    vec![authority.statement().bytes(), vec![0; 40], payload_seeds().concat()]
}
