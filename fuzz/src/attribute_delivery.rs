//! Attribute authorities beside a KGC: their statements, requests of drones, replies and keyrings; and the
//! machines of both sides, fed with anything that an attacker can send who has a valid cookie.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quiver_ainq::{
    AuthorityStatement, Bls12381G1, DroneKeypair, Error, Label, PendingDelivery, RevocationStatement,
    Ristretto255, SealedDelivery, SecretScalar, SignedAuthority, SignedDeliveryRequest, Suite,
    VerifiedAuthority,
};
use quiver_crypto::{Secret, Zeroizing};
use quiver_delivery::attributes::{
    AttributeIssuer, FetchEvent, FetchTiming, Fetcher, IssuerConfig, IssuingAuthority, KeyMaker, KeyQuery,
    KeyResponse, MakeError,
};
use quiver_delivery::{DeliveryServer, Standalone};
use quiver_machine::{Input, Machine, Route};
use quiver_message::{DeliveryReply, DeliveryRequest as RequestMessage, Message, Payload};
use quiver_service::keyring::{HeldKey, Keyring, KeyringEntry};
use rand_chacha::rand_core::CryptoRngCore;

use crate::scene::{NOW, PEER, START, Staged, canonical, drain, feed, name, rng};

const CHALLENGE: &[u8] = b"a cookie";
const ANSWER: &[u8] = b"the answer";

/// An authority, a drone's honest request to it, and the honest answer.
struct HonestDelivery<S: Suite> {
    delivery: SecretScalar<S>,
    authority: VerifiedAuthority<S>,
    request: SignedDeliveryRequest<S>,
    pending: PendingDelivery<S>,
    sealed: SealedDelivery<S>,
}

fn honest<S: Staged>() -> HonestDelivery<S> {
    let (scene, mut rng) = (S::scene(), rng(70));
    let (deployment, keypair) = (&scene.deployment, &scene.honest().edge.keypair);
    let delivery = SecretScalar::generate(&mut rng);
    let statement = AuthorityStatement {
        kind: name("abe"),
        name: name("orders"),
        scheme: name("toy"),
        delivery: delivery.public(),
        schema: vec![1],
        parameters: vec![2; 20],
    };
    let signed = scene.master.sign_authority(deployment, statement, &mut rng).expect("short enough");
    let authority = signed.verify(deployment).expect("just signed");
    let question = KeyQuery { statement: true, held: Some(3) }.encode();
    let asked = *authority.fingerprint();
    let label = Label::Attributes;
    let (request, pending) =
        SignedDeliveryRequest::create(deployment, keypair, label, asked, CHALLENGE, &question, &mut rng)
            .expect("short enough");
    let list = RevocationStatement::empty();
    let verified = request.clone().verify(deployment, label, CHALLENGE, &list, START).expect("honest");
    let sealed = verified.seal(&authority, &delivery, ANSWER, &mut rng).expect("short enough");
    HonestDelivery { delivery, authority, request, pending, sealed }
}

macro_rules! both_suites {
    ($($(#[$doc:meta])* $name:ident, $seeds:ident => $body:ident, $honest:expr;)*) => {
        $($(#[$doc])* pub fn $name(bytes: &[u8]) {
            $body::<Ristretto255>(bytes);
            $body::<Bls12381G1>(bytes);
        }

        /// Valid encodings of both suites.
        pub fn $seeds() -> Vec<Vec<u8>> {
            fn of<S: Staged>() -> Vec<u8> {
                let encode: fn(&HonestDelivery<S>) -> Vec<u8> = $honest;
                encode(&honest::<S>())
            }
            vec![of::<Ristretto255>(), of::<Bls12381G1>()]
        })*
    };
}

both_suites! {
    /// The KGC's statements about authorities.
    authority_statement, authority_statement_seeds => statements, |honest| honest.authority.bytes();
    /// Drones' requests.
    delivery_request, delivery_request_seeds => requests, |honest| honest.request.encode();
    /// Sealed answers.
    sealed_delivery, sealed_delivery_seeds => answers, |honest| honest.sealed.encode();
    /// Keyring of a drone.
    keyring, keyring_seeds => keyrings, |honest| ring(honest).encode().to_vec();
}

fn ring<S: Suite>(honest: &HonestDelivery<S>) -> Keyring<S> {
    let key = HeldKey { grant: 3, key: Zeroizing::new(vec![7; 40]) };
    let mut keyring = Keyring::default();
    keyring.put(KeyringEntry { authority: honest.authority.clone(), key: Some(key) }).expect("room");
    keyring
}

fn statements<S: Staged>(bytes: &[u8]) {
    let signed = SignedAuthority::<S>::decode(bytes);
    if let Some(signed) = canonical(bytes, signed, SignedAuthority::encode) {
        let verified = signed.verify(&S::scene().deployment);
        assert!(verified.is_err() || bytes == honest::<S>().authority.bytes(), "nobody's authority");
    }
}

fn requests<S: Staged>(bytes: &[u8]) {
    let request = SignedDeliveryRequest::<S>::decode(bytes);
    if let Some(request) = canonical(bytes, request, SignedDeliveryRequest::encode) {
        let (deployment, list) = (&S::scene().deployment, RevocationStatement::empty());
        let verified = request.verify(deployment, Label::Attributes, CHALLENGE, &list, START);
        assert!(verified.is_err() || bytes == honest::<S>().request.encode(), "a forged request");
    }
}

fn answers<S: Staged>(bytes: &[u8]) {
    let sealed = SealedDelivery::<S>::decode(bytes);
    if let Some(sealed) = canonical(bytes, sealed, SealedDelivery::encode) {
        let honest = honest::<S>();
        let opened = honest.pending.open(&S::scene().honest().edge.keypair, &honest.authority, &sealed);
        match opened {
            Ok(answer) => assert!(bytes == honest.sealed.encode() && *answer == ANSWER, "a forged answer"),
            Err(error) => assert_eq!(error, Error::SealBroken),
        }
    }
}

fn keyrings<S: Staged>(bytes: &[u8]) {
    let deployment = &S::scene().deployment;
    canonical(bytes, Keyring::decode(bytes, deployment), |keyring| keyring.encode().to_vec());
}

/// Payloads of request and reply, within the signature and the seal.
pub fn attribute_payload(bytes: &[u8]) {
    canonical(bytes, KeyQuery::decode(bytes), KeyQuery::encode);
    canonical(bytes, KeyResponse::decode(bytes), |answer| answer.encode().to_vec());
}

/// Questions and answers of every kind.
pub fn attribute_payload_seeds() -> Vec<Vec<u8>> {
    let key = Zeroizing::new(vec![5; 30]);
    let answers = [KeyResponse::Nothing, KeyResponse::Held { grant: 9 }, KeyResponse::Key { grant: 9, key }];
    let questions = [KeyQuery { statement: false, held: None }, KeyQuery { statement: true, held: Some(9) }];
    let answers = answers.iter().map(|answer| answer.encode().to_vec());
    answers.chain(questions.iter().map(KeyQuery::encode)).collect()
}

/// Remembers whether it was ever asked.
#[derive(Debug)]
struct Alarm(Arc<Mutex<bool>>);

impl KeyMaker for Alarm {
    fn make(&mut self, _: &[u8], _: &mut dyn CryptoRngCore) -> Result<Zeroizing<Vec<u8>>, MakeError> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        Ok(Zeroizing::new(vec![1; 10]))
    }
}

type S = Ristretto255;

/// A server and a drone whose connection an attacker controls, who replaces with these bytes the message, the
/// request within it, the sealed reply, or the statement.
pub fn attribute_delivery_input(bytes: &[u8]) {
    let (honest, scene) = (honest::<S>(), S::scene());
    let rung = Arc::new(Mutex::new(false));
    let (statement, delivery) = (honest.authority.clone(), honest.delivery.clone());
    let config = IssuerConfig {
        authorities: vec![IssuingAuthority { statement, delivery, maker: Box::new(Alarm(rung.clone())) }],
        grants: Vec::new(),
        interval: Duration::ZERO,
    };
    let issuer = AttributeIssuer::new(config).expect("one authority");
    let server = DeliveryServer::new(Secret::new([3; 32]), issuer);
    let mut server = Standalone::server(scene.deployment.clone(), server);
    let keypair = &scene.honest().edge.keypair;
    let keypair = DroneKeypair::restore(&scene.deployment, keypair.public().clone(), &keypair.to_bytes())
        .expect("its own");
    let fetcher = Fetcher::new(&scene.deployment, vec![], FetchTiming::default()).expect("nothing held");
    let mut drone = Standalone::client(scene.deployment.clone(), keypair, fetcher);
    drone.handle_input(NOW, Input::Connected { peer: PEER, route: Route::Kgc }, &mut rng(72));
    let (hello, _) = drain(&mut drone);
    let (challenge, _) = feed(&mut server, &hello[0]);
    let (request, _) = feed(&mut drone, &challenge[0]);
    let Ok(Message::DeliveryRequest(asked)) = Message::<S>::decode(&scene.deployment, &request[0]) else {
        panic!("a drone that has a challenge asks");
    };
    feed(&mut server, bytes);
    let within = RequestMessage { request: bytes.to_vec(), ..asked };
    feed(&mut server, &Message::<S>::DeliveryRequest(within).encode(&scene.deployment));
    assert!(!*rung.lock().unwrap_or_else(PoisonError::into_inner), "a key for a stranger");
    let digest = SignedDeliveryRequest::<S>::decode(&asked.request).expect("its own").digest();
    let payload = Payload::AttributeKeys;
    let replies = [
        DeliveryReply { payload, request_digest: digest, statement: vec![], sealed: bytes.to_vec() },
        DeliveryReply { payload, request_digest: digest, statement: bytes.to_vec(), sealed: vec![1] },
        DeliveryReply {
            payload,
            request_digest: digest,
            statement: honest.authority.bytes(),
            sealed: bytes.to_vec(),
        },
    ];
    let replies = replies.map(|reply| Message::<S>::DeliveryReply(reply).encode(&scene.deployment));
    for message in replies.iter().map(Vec::as_slice).chain([bytes]) {
        let (_, events) = feed(&mut drone, message);
        let believed = events.iter().any(|event| matches!(event, FetchEvent::Answered { .. }));
        assert!(!believed, "an answer that no authority made");
    }
}

/// Requests, statements and replies of another conversation.
pub fn attribute_delivery_input_seeds() -> Vec<Vec<u8>> {
    let honest = honest::<S>();
    vec![honest.request.encode(), honest.authority.bytes(), honest.sealed.encode(), vec![0; 40]]
}
