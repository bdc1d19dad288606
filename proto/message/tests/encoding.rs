//! Every message: its encoding is fixed by a snapshot, it survives the way there and back, and nothing that
//! differs from it by one bit or byte panics or passes for it with other bytes.

#[path = "encoding/admission.rs"]
mod admission;
#[path = "encoding/envelopes.rs"]
mod envelopes;
#[path = "encoding/quorum.rs"]
mod quorum;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use prost::Message as _;
use prost::encoding::{WireType, decode_key, encode_key, encode_varint, key_len};
use quiver_ainq::{
    Batch, Deployment, DroneKeypair, DronePublicKey, EpochOutput, EpochPart, GroupContext, Identity, Join,
    KemTerm, Label, Leadership, MasterSecret, Name, RevocationStatement, Revoked, Ristretto255, Role, Roster,
    SecretScalar, SecretValue, SparePair, StrategyKind, Times,
};
use quiver_kem::KemSet;
use quiver_message as m;
use quiver_message::{Extension, ExtensionMessage, Message, MessageError};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

type S = Ristretto255;

struct Fixture {
    rng: ChaCha20Rng,
    master: MasterSecret<S>,
    deployment: Deployment<S>,
    leader: DroneKeypair<S>,
    edge: DroneKeypair<S>,
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn drone(
    master: &MasterSecret<S>,
    deployment: &Deployment<S>,
    id: u8,
    role: Role,
    rng: &mut ChaCha20Rng,
) -> DroneKeypair<S> {
    let identity = Identity {
        serial: [id; 16],
        name: name(&format!("drone-{id}")),
        role,
        groups: vec![name("alpha")],
        not_after: 2_000_000_000,
    };
    let secret = SecretValue::generate(rng);
    let partial = master.issue_partial_key(deployment, &identity, &secret.public(), rng);
    partial.verify(deployment, &identity, &secret).unwrap()
}

impl Fixture {
    fn new() -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        let master = MasterSecret::generate(&mut rng);
        let deployment = Deployment::new(name("test"), master.public());
        let role = Role::Leader { group: name("alpha"), ordinal: 3 };
        let leader = drone(&master, &deployment, 1, role, &mut rng);
        let edge = drone(&master, &deployment, 2, Role::Edge, &mut rng);
        Self { rng, master, deployment, leader, edge }
    }

    /// A term opened without members, and an epoch that adds the edge.
    fn group(&mut self, strategy: StrategyKind) -> (Leadership<S>, EpochOutput<S>) {
        let (deployment, group) = (self.deployment.clone(), name("alpha"));
        let context = GroupContext { deployment, group, leader: self.leader.public().clone() };
        let none = Default::default();
        let (mut leadership, _) = Leadership::open_term(
            context,
            &self.leader,
            Roster::new(),
            &none,
            65_539,
            [0; 32],
            &TIMES,
            strategy,
            &mut self.rng,
        )
        .unwrap();
        let ephemeral = SecretScalar::<S>::generate(&mut self.rng).public();
        let join = Join::new(&self.deployment, self.edge.public().clone(), ephemeral).unwrap();
        let batch = Batch { joins: vec![join], ..Batch::default() };
        let output = leadership.rekey(&self.leader, batch, &TIMES, &mut self.rng).unwrap();
        (leadership, output)
    }

    /// An epoch that adds the edge.
    fn epoch(&mut self) -> EpochOutput<S> {
        self.group(StrategyKind::Flat).1
    }

    /// Messages of a leader with a tree: a path on a join, the wraps of a later epoch, a path on a request.
    fn tree_messages(&mut self) -> Vec<(&'static str, Message<S>)> {
        let (mut leadership, joined) = self.group(StrategyKind::Tree);
        let part = EpochPart::Path(leadership.path_message(0, &[1; 16]).unwrap());
        let before = joined.header.core.clone();
        let welcome = m::Welcome { nonce: [1; 16], header: joined.header, part };
        let renewed = leadership.rekey(&self.leader, Batch::default(), &TIMES, &mut self.rng).unwrap();
        let header = renewed.header;
        let wraps = renewed.wraps.unwrap().whole();
        let short = m::ShortRekey { header: header.shorten(&before).unwrap(), wraps: wraps.clone() };
        let delta = Some(EpochPart::Delta(wraps));
        let mut path = |r| Some(EpochPart::Path(leadership.path_message(0, &r).unwrap()));
        let (pushed, answer) = (path([2; 16]), path([3; 16]));
        let reply = m::CatchUpReply { number: [3; 16], header: header.clone(), part: answer, tag: [7; 32] };
        vec![
            ("WelcomePath", Message::Welcome(welcome)),
            ("RekeyDelta", Message::Rekey(m::Rekey::new(header.clone(), delta))),
            ("RekeyPath", Message::Rekey(m::Rekey::new(header, pushed))),
            ("ShortRekey", Message::ShortRekey(short)),
            ("CatchUpReplyPath", Message::CatchUpReply(reply)),
        ]
    }
}

const TIMES: Times = Times { issued_at: 1_800_000_000, valid_until: 1_800_000_600, revocation_number: 5 };

/// One of each message, in the order of the `.proto`.
fn messages() -> (Deployment<S>, Vec<(&'static str, Message<S>)>) {
    let mut f = Fixture::new();
    let output = f.epoch();
    let (header, entry) = (output.header.clone(), EpochPart::Entry(output.entries[0].clone()));
    let group = name("alpha");
    let spare = SparePair::<S>::generate(9, &mut f.rng).statement(&f.edge, &f.deployment, &group, &mut f.rng);
    let signature = f.edge.sign(&f.deployment, Label::Command, b"statement", &mut f.rng);
    let list = RevocationStatement {
        number: 4,
        issued: 1_800_000_000,
        next_update: 1_800_086_400,
        revoked: vec![
            Revoked { serial: [2; 16], not_after: 1000, leader: true },
            Revoked { serial: [1; 16], not_after: 2000, leader: false },
        ],
    };
    let list = f.master.sign_revocations(&f.deployment, list, &mut f.rng).unwrap().encode();
    let point = *SecretScalar::<S>::generate(&mut f.rng).public().encoding();
    let drone = f.edge.public().encode();
    let frame = quiver_ainq::SealedMessage {
        slot: 8,
        boot_no: 2,
        salt: [6; 8],
        counter: 77,
        hedge: [5; 8],
        ciphertext: vec![9; 20],
    };
    let source = m::Source { drone: f.edge.public().encode(), signature: signature.encode() };
    let epoch = header.core.epoch;
    let joined = m::JoinRequest {
        group: group.clone(),
        drone: drone.clone(),
        nonce: [1; 16],
        challenge: [2; 40],
        ephemeral: point.to_vec(),
        spare_q: spare.q,
        spare_point: spare.point.as_bytes().to_vec(),
        spare_signature: spare.signature.encode(),
        signature: signature.encode(),
        kem: None,
    };
    let leader = f.leader.public().clone();
    let hybrid = with_a_second_factor(&leader, &joined);
    let mut all = vec![
        ("EnrolHello", Message::EnrolHello(m::EnrolHello { nonce: [1; 16] })),
        ("EnrolCookie", Message::EnrolCookie(m::EnrolCookie { nonce: [1; 16], cookie: [2; 40] })),
        (
            "EnrolRequest",
            Message::EnrolRequest(m::EnrolRequest { nonce: [1; 16], cookie: [2; 40], request: vec![3; 50] }),
        ),
        ("EnrolReply", Message::EnrolReply(m::EnrolReply { request_digest: [4; 32], reply: vec![5; 60] })),
        (
            "Refusal",
            Message::Refusal(m::Refusal {
                reason: m::RefusalReason::Busy,
                reference: vec![1; 16],
                retry_after: Duration::from_millis(1500),
            }),
        ),
        (
            "JoinHello",
            Message::JoinHello(m::JoinHello { group: group.clone(), drone, nonce: [1; 16], kem: None }),
        ),
        (
            "JoinChallenge",
            Message::JoinChallenge(m::JoinChallenge {
                nonce: [1; 16],
                challenge: [2; 40],
                leader: leader.clone(),
                revocation_number: 4,
                kem: None,
            }),
        ),
        ("JoinRequest", Message::JoinRequest(joined)),
        (
            "Welcome",
            Message::Welcome(m::Welcome { nonce: [1; 16], header: header.clone(), part: entry.clone() }),
        ),
        ("Ack", Message::Ack(m::Ack { slot: 8, epoch, tag: [7; 32] })),
        ("Rekey", Message::Rekey(m::Rekey::new(header.clone(), Some(entry.clone())))),
        (
            "CatchUpRequest",
            Message::CatchUpRequest(m::CatchUpRequest {
                group: group.clone(),
                slot: 8,
                number: [1; 16],
                held: [2; 32],
                tag: [7; 32],
            }),
        ),
        (
            "CatchUpReply",
            Message::CatchUpReply(m::CatchUpReply {
                number: [1; 16],
                header,
                part: Some(entry),
                tag: [7; 32],
            }),
        ),
        (
            "SparePublication",
            Message::SparePublication(m::SparePublication { group: group.clone(), slot: 8, spare }),
        ),
        ("SpareAck", Message::SpareAck(m::SpareAck { q: 9, tag: [7; 32] })),
        ("Leave", Message::Leave(m::Leave { group: group.clone(), slot: 8, held: [2; 32], signature })),
        (
            "EvictionNotice",
            Message::EvictionNotice(m::EvictionNotice {
                group: group.clone(),
                leader,
                epoch,
                serials: vec![[3; 16]],
                signature,
            }),
        ),
        (
            "GroupMessage",
            Message::GroupMessage(m::GroupMessage {
                group,
                epoch,
                channel: name("chat"),
                frame,
                source: Some(source),
            }),
        ),
        ("RevocationQuery", Message::RevocationQuery(m::RevocationQuery { number: 4, max_len: 8192 })),
        ("RevocationList", Message::RevocationList(m::RevocationList { list })),
    ];
    all.extend(f.tree_messages());
    all.extend(between_leaders(&mut f));
    all.extend(deliveries());
    all.extend(extending(quorum::messages()));
    all.extend(hybrid);
    all.extend(extending(admission::messages(f.leader.public(), signature)));
    all.extend(extending(envelopes::messages()));
    (f.deployment, all)
}

/// Messages of a feature as those of the kernel.
fn extending<E: Into<Message<S>>>(
    messages: Vec<(&'static str, E)>,
) -> impl Iterator<Item = (&'static str, Message<S>)> {
    messages.into_iter().map(|(name, message)| (name, message.into()))
}

/// A reader of one feature's messages, which are read and written.
type FeatureReader =
    fn(&ExtensionMessage, Option<&DronePublicKey<S>>) -> Option<Result<Message<S>, MessageError>>;

/// The numbers of a feature's messages with the bounds of these, and their reader.
type NumberedReader = (&'static [(u32, usize)], FeatureReader);

fn reader<E: Extension<S> + Into<Message<S>>>() -> NumberedReader {
    (E::KINDS, |message, leader| Some(message.decode::<S, E>(leader)?.map(Into::into)))
}

/// The features that have messages: the numbers and bounds of these, and their readers.
fn features() -> [NumberedReader; 3] {
    [quorum::reader(), admission::reader(), envelopes::reader()]
}

/// Decodes a message as a machine with every feature does.
fn decode(deployment: &Deployment<S>, bytes: &[u8]) -> Result<Message<S>, MessageError> {
    decode_expecting(deployment, bytes, None)
}

fn decode_expecting(
    deployment: &Deployment<S>,
    bytes: &[u8],
    leader: Option<&DronePublicKey<S>>,
) -> Result<Message<S>, MessageError> {
    let message = Message::decode_expecting(deployment, bytes, leader)?;
    let Message::Extension(extension) = &message else { return Ok(message) };
    let read = features().into_iter().find_map(|(_, read)| read(extension, leader));
    read.unwrap_or(Err(MessageError::NoBody))
}

/// An encoded message with this content of the body with this number.
fn framed(deployment: &Deployment<S>, number: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![10, 8];
    bytes.extend(&deployment.fingerprint()[..8]);
    encode_key(number, WireType::LengthDelimited, &mut bytes);
    encode_varint(content.len() as u64, &mut bytes);
    [&bytes[..], content].concat()
}

/// Names of the bodies of `Message` in the `.proto`, by their numbers.
fn bodies() -> BTreeMap<u32, String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/proto");
    let files = protox::compile(["quiver/v1/message.proto"], [folder]).expect("the .proto compiles").file;
    let mut messages = files.iter().flat_map(|file| &file.message_type);
    let frame = messages.find(|message| message.name() == "Message").expect("the frame");
    let bodies = frame.field.iter().filter(|field| field.oneof_index.is_some());
    bodies.map(|field| (field.number() as u32, field.name().to_string())).collect()
}

#[test]
fn every_body_of_the_proto_is_the_kernels_or_one_features_and_is_among_these_messages() {
    let (deployment, messages) = messages();
    let bodies = bodies();
    let kinds: Vec<u32> =
        features().iter().flat_map(|(kinds, _)| *kinds).map(|(number, _)| *number).collect();
    let of_features: BTreeSet<u32> = kinds.iter().copied().collect();
    assert_eq!(kinds.len(), of_features.len(), "two features have one number: {kinds:?}");
    let mut tried = BTreeMap::new();
    for (name, message) in messages {
        let bytes = message.encode(&deployment);
        let (number, _) = decode_key(&mut &bytes[10..]).unwrap();
        let is_extension = matches!(message, Message::Extension(_));
        assert_eq!(is_extension, of_features.contains(&number), "{name}");
        let read = decode(&deployment, &bytes).unwrap();
        assert_eq!(is_extension, matches!(read, Message::Extension(_)), "{name}");
        tried.insert(number, name);
    }
    assert!(tried.keys().eq(bodies.keys()), "{tried:?} of {bodies:?}");
}

#[test]
fn every_feature_bounds_the_content_of_its_messages() {
    let (deployment, _) = messages();
    for (number, most) in features().iter().flat_map(|(kinds, _)| *kinds) {
        assert!(*most < m::MAX_MESSAGE_LEN / 2, "{number}");
        for (len, refused) in
            [(*most, MessageError::NotProtobuf), (most + 1, MessageError::TooLong(most + 1))]
        {
            let bytes = framed(&deployment, *number, &vec![0; len]);
            assert_eq!(decode(&deployment, &bytes).unwrap_err(), refused, "{number}");
        }
    }
}

#[test]
fn a_message_of_an_unknown_kind_is_none_of_a_features_whatever_its_form() {
    let (deployment, _) = messages();
    let unknown = (2..200).filter(|number| !bodies().contains_key(number));
    let mut tried = 0;
    for number in unknown {
        let bytes = framed(&deployment, number, &[1; 40]);
        let Ok(Message::Extension(message)) = Message::<S>::decode(&deployment, &bytes) else {
            panic!("{number}: none")
        };
        assert_eq!(message.number(), number);
        // Nobody answers it when it comes by gossip.
        assert!(!Message::<S>::Extension(message.clone()).is_publication());
        assert_eq!(Message::<S>::Extension(message).encode(&deployment), bytes);
        let (frame, body) = bytes.split_at(10);
        for bytes in [[frame, body].concat(), [frame, body, body].concat(), [body, frame].concat()] {
            assert_eq!(decode(&deployment, &bytes).unwrap_err(), MessageError::NoBody, "{number}");
        }
        tried += 1;
    }
    assert!(tried > 100);
    // Nor is something else than bytes with a length.
    let bytes = [&framed(&deployment, 99, &[])[..10], &[0xf8, 0x07, 0x01]].concat();
    assert_eq!(Message::<S>::decode(&deployment, &bytes).unwrap_err(), MessageError::NoBody);
}

#[test]
fn a_features_message_in_another_form_is_refused_by_who_knows_its_kind() {
    let (deployment, messages) = messages();
    let mut tried = 0;
    for (name, message) in messages {
        let Message::Extension(extension) = &message else { continue };
        let bytes = message.encode(&deployment);
        let (frame, body) = bytes.split_at(10);
        // Its key with a byte more than it takes: these have two bytes at most.
        let (key, rest) = body.split_at(key_len(extension.number()));
        let padded = match key {
            [one] => [frame, &[one | 0x80, 0], rest].concat(),
            key => [frame, &[key[0], key[1] | 0x80, 0], rest].concat(),
        };
        for other in
            [[body, frame].concat(), [frame, body, body].concat(), [frame, frame, body].concat(), padded]
        {
            let refused = decode(&deployment, &other).unwrap_err();
            assert_eq!(refused, MessageError::NotCanonical, "{name}");
        }
        tried += 1;
    }
    assert!(tried >= 16);
}

#[test]
fn channel_of_a_group_message_is_read_without_its_key_and_other_messages_have_none() {
    let (deployment, all) = messages();
    for (what, message) in all {
        let bytes = message.encode(&deployment);
        let expected = (what == "GroupMessage").then_some("chat");
        assert_eq!(m::group_message_channel(&bytes), expected, "{what}");
        // Neither what is cut nor what is altered makes it panic.
        for end in 0..bytes.len() {
            let _ = m::group_message_channel(&bytes[..end]);
        }
        for at in 0..bytes.len().min(200) {
            let mut altered = bytes.clone();
            altered[at] ^= 0xff;
            let _ = m::group_message_channel(&altered);
        }
    }
}

/// Messages of a delivery between drone and KGC, with either payload's offer and reply.
fn deliveries() -> Vec<(&'static str, Message<S>)> {
    let (nonce, cookie) = ([1; 16], [2; 40]);
    let challenge = |offer| Message::DeliveryChallenge(m::DeliveryChallenge { nonce, cookie, offer });
    let keys = m::DeliveryOffer::AttributeKeys { authorities: vec![[3; 32], [4; 32]] };
    let shares = m::DeliveryOffer::KeyShares { kgc: 3, master: [4; 32], version: 5 };
    let payload = m::Payload::AttributeKeys;
    let request = m::DeliveryRequest { payload, nonce, cookie, request: vec![3; 50] };
    let reply = m::DeliveryReply {
        payload: m::Payload::KeyShares,
        request_digest: [4; 32],
        statement: vec![5; 20],
        sealed: vec![6; 48],
    };
    vec![
        ("DeliveryHello", Message::DeliveryHello(m::DeliveryHello { payload, nonce })),
        ("DeliveryHelloShares", Message::DeliveryHello(m::DeliveryHello { payload: reply.payload, nonce })),
        ("DeliveryChallenge", challenge(keys)),
        ("DeliveryChallengeShares", challenge(shares)),
        (
            "DeliveryRequestShares",
            Message::DeliveryRequest(m::DeliveryRequest { payload: reply.payload, ..request.clone() }),
        ),
        ("DeliveryRequest", Message::DeliveryRequest(request)),
        ("DeliveryReply", Message::DeliveryReply(m::DeliveryReply { payload, ..reply.clone() })),
        ("DeliveryReplyShares", Message::DeliveryReply(reply)),
    ]
}

fn check_refused(deployment: &Deployment<S>, message: &Message<S>, field: &'static str) {
    let error = decode(deployment, &message.encode(deployment)).unwrap_err();
    assert_eq!(error, MessageError::Invalid(field));
}

#[test]
fn release_messages_out_of_bounds_are_refused() {
    let (deployment, _) = messages();
    let check = |message: Message<S>, field| check_refused(&deployment, &message, field);
    let challenge = |kgc, version| {
        let offer = m::DeliveryOffer::KeyShares { kgc, master: [3; 32], version };
        Message::DeliveryChallenge(m::DeliveryChallenge { nonce: [1; 16], cookie: [2; 40], offer })
    };
    check(challenge(0, 1), "kgc");
    check(challenge(1, 0), "version");
    let payload = m::Payload::KeyShares;
    for length in [0, quiver_ainq::delivery::MAX_DELIVERY_REQUEST_LEN + 1] {
        let request =
            m::DeliveryRequest { payload, nonce: [1; 16], cookie: [2; 40], request: vec![0; length] };
        check(Message::DeliveryRequest(request), "request");
    }
    let good = m::DeliveryReply { payload, request_digest: [1; 32], statement: vec![], sealed: vec![1] };
    let statement = vec![0; m::MAX_RELEASE_STATEMENT_LEN + 1];
    check(Message::DeliveryReply(m::DeliveryReply { statement, ..good.clone() }), "statement");
    for length in [0, 513] {
        check(Message::DeliveryReply(m::DeliveryReply { sealed: vec![0; length], ..good.clone() }), "sealed");
    }
}

/// Messages of a join where pairwise secrets have a second factor.
fn with_a_second_factor(
    leader: &DronePublicKey<S>,
    request: &m::JoinRequest,
) -> Vec<(&'static str, Message<S>)> {
    let (nonce, set) = ([1; 16], KemSet::MlKem768);
    let term = KemTerm::new(set, 300).unwrap();
    let (group, drone, leader) = (request.group.clone(), request.drone.clone(), leader.clone());
    let hello = m::JoinHello { group, drone, nonce, kem: Some(set) };
    let challenge =
        m::JoinChallenge { nonce, challenge: [2; 40], leader, revocation_number: 4, kem: Some(term) };
    let asks = |offer| Message::JoinRequest(m::JoinRequest { kem: Some(offer), ..request.clone() });
    let ciphertext = vec![9; set.ciphertext_len()];
    vec![
        ("JoinHelloHybrid", Message::JoinHello(hello)),
        ("JoinChallengeHybrid", Message::JoinChallenge(challenge)),
        ("JoinRequestKey", asks(m::KemOffer::Key { set, key: vec![8; set.key_len()] })),
        ("JoinRequestAhead", asks(m::KemOffer::Ahead { set, key: vec![8; set.key_len()] })),
        ("JoinRequestHeld", asks(m::KemOffer::Held { term, tag: [7; 16] })),
        ("JoinCiphertext", Message::JoinCiphertext(m::JoinCiphertext { nonce, term, ciphertext })),
    ]
}

#[test]
fn second_factors_out_of_bounds_are_refused() {
    let (deployment, all) = messages();
    let check = |message: Message<S>, field| check_refused(&deployment, &message, field);
    let found = |what| all.iter().find(|(name, _)| *name == what).map(|(_, message)| message.clone());
    let Some(Message::JoinRequest(request)) = found("JoinRequest") else { panic!("no request") };
    let Some(Message::JoinCiphertext(answer)) = found("JoinCiphertext") else { panic!("no ciphertext") };
    for (set, other) in [(KemSet::MlKem768, KemSet::MlKem1024), (KemSet::MlKem1024, KemSet::MlKem768)] {
        let (own, others) = (set.key_len(), other.key_len());
        for length in [0, own - 1, own + 1, others] {
            let key = vec![8; length];
            for kem in [m::KemOffer::Key { set, key: key.clone() }, m::KemOffer::Ahead { set, key }] {
                let kem = Some(kem);
                check(Message::JoinRequest(m::JoinRequest { kem, ..request.clone() }), "kem");
            }
        }
        let (own, others) = (set.ciphertext_len(), other.ciphertext_len());
        let term = KemTerm::new(set, 1).unwrap();
        for length in [0, own - 1, own + 1, others] {
            let answer = m::JoinCiphertext { term, ciphertext: vec![9; length], ..answer.clone() };
            check(Message::JoinCiphertext(answer), "ciphertext");
        }
    }
}

#[test]
fn attribute_messages_out_of_bounds_are_refused() {
    let (deployment, _) = messages();
    let check = |message: Message<S>, field| check_refused(&deployment, &message, field);
    let challenge = |authorities| {
        let offer = m::DeliveryOffer::AttributeKeys { authorities };
        Message::DeliveryChallenge(m::DeliveryChallenge { nonce: [1; 16], cookie: [2; 40], offer })
    };
    let many = (0..=m::MAX_AUTHORITIES as u8).map(|number| [number; 32]).collect();
    for authorities in [many, vec![[2; 32], [2; 32]], vec![[3; 32], [2; 32]]] {
        check(challenge(authorities), "authorities");
    }
    let payload = m::Payload::AttributeKeys;
    let request = |request| m::DeliveryRequest { payload, nonce: [1; 16], cookie: [2; 40], request };
    for length in [0, quiver_ainq::delivery::MAX_DELIVERY_REQUEST_LEN + 1] {
        check(Message::DeliveryRequest(request(vec![0; length])), "request");
    }
    let good = m::DeliveryReply { payload, request_digest: [1; 32], statement: vec![], sealed: vec![1] };
    let long = vec![0; quiver_ainq::MAX_AUTHORITY_LEN + 1];
    check(Message::DeliveryReply(m::DeliveryReply { statement: long, ..good.clone() }), "statement");
    for length in [0, quiver_ainq::delivery::MAX_SECRET_LEN + 129] {
        let sealed = vec![0; length];
        check(Message::DeliveryReply(m::DeliveryReply { sealed, ..good.clone() }), "sealed");
    }
    // Both at their longest fit one message.
    let longest = m::DeliveryReply {
        statement: vec![0; quiver_ainq::MAX_AUTHORITY_LEN],
        sealed: vec![0; quiver_ainq::delivery::MAX_SECRET_LEN + 128],
        ..good
    };
    let bytes = Message::<S>::DeliveryReply(longest).encode(&deployment);
    assert!(decode(&deployment, &bytes).is_ok());
}

/// Messages between leaders and their deputies.
fn between_leaders(f: &mut Fixture) -> Vec<(&'static str, Message<S>)> {
    let (first, second) = (f.epoch().header, f.epoch().header);
    let signature = f.leader.sign(&f.deployment, Label::StandBy, b"statement", &mut f.rng);
    let stand_by = m::StandBy {
        group: name("alpha"),
        deputy: f.leader.public().encode(),
        nonce: [1; 16],
        challenge: [2; 40],
        number: 3,
        received: 2,
        held: first.core.epoch,
        digest: [7; 32],
        signature: signature.encode(),
    };
    let chunk = chunk(f).encode();
    let replica = m::Replica { nonce: [1; 16], number: 3, header: first.clone(), chunk, signature };
    let changes = quiver_ainq::SlotChanges {
        removed: (0..40).map(|number| 300 + 200 * number).collect(),
        added: (0..9).collect(),
    };
    let mut header = first.clone();
    (header.core.removed, header.core.added) = Default::default();
    header.core.changes = Some(changes.digest());
    let epoch_changes = m::EpochChanges { header, changes };
    let proof = quiver_ainq::EquivocationProof { first, second };
    vec![
        ("EpochChanges", Message::EpochChanges(epoch_changes)),
        ("StandBy", Message::StandBy(stand_by)),
        ("Replica", Message::Replica(replica)),
        ("EquivocationProof", Message::EquivocationProof(Box::new(proof))),
    ]
}

/// A member with its spare point, one that has spent it, and a free slot.
fn chunk(f: &mut Fixture) -> m::ReplicaChunk<S> {
    let holder = f.edge.public().clone();
    let spare =
        SparePair::<S>::generate(9, &mut f.rng).statement(&f.edge, &f.deployment, &name("alpha"), &mut f.rng);
    let seats = vec![
        m::Seat { slot: 1, holder: Some(holder.clone()), spare: Some(spare), spent: 0 },
        m::Seat { slot: 4, holder: Some(holder), spare: None, spent: 8 },
        m::Seat { slot: 9, holder: None, spare: None, spent: 0 },
    ];
    m::ReplicaChunk { number: 2, first: false, last: true, seats, evicted: vec![[3; 16]] }
}

#[test]
fn a_chunk_survives_the_way_there_and_back_and_no_byte_of_it_is_idle() {
    let mut f = Fixture::new();
    let chunk = chunk(&mut f);
    let bytes = chunk.encode();
    let decoded = m::ReplicaChunk::<S>::decode(&bytes).unwrap();
    assert_eq!(format!("{decoded:?}"), format!("{chunk:?}"));
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        // Fields may be left out, but then it is another chunk, and the leader's signature is over the bytes.
        for other in [&bytes[..place], &changed] {
            if let Ok(decoded) = m::ReplicaChunk::<S>::decode(other) {
                assert_eq!(decoded.encode(), other, "byte {place}");
            }
        }
    }
}

#[test]
fn a_chunk_out_of_bounds_is_refused() {
    let mut f = Fixture::new();
    let good = chunk(&mut f);
    let free = |slot| m::Seat { slot, holder: None, spare: None, spent: 0 };
    let decode = |chunk: m::ReplicaChunk<S>| m::ReplicaChunk::<S>::decode(&chunk.encode()).map(drop);
    let many = (0..=m::MAX_SEATS as u32).map(free).collect();
    let out = vec![[1; 16]; m::MAX_REPLICA_EVICTED + 1];
    let bad = [
        (m::ReplicaChunk { number: 0, ..good.clone() }, "chunk"),
        (m::ReplicaChunk { seats: many, ..good.clone() }, "chunk"),
        (m::ReplicaChunk { evicted: out, ..good.clone() }, "evicted"),
        (m::ReplicaChunk { seats: vec![free(4), free(4)], ..good.clone() }, "seats"),
        (m::ReplicaChunk { seats: vec![free(4), free(3)], ..good.clone() }, "seats"),
        (m::ReplicaChunk { seats: vec![m::Seat { spent: 1, ..free(4) }], ..good }, "spare"),
    ];
    for (chunk, field) in bad {
        assert_eq!(decode(chunk), Err(MessageError::Invalid(field)));
    }
}

#[test]
fn slots_are_taken_with_the_header_that_has_their_digest_and_no_other() {
    let mut f = Fixture::new();
    let header = f.epoch().header;
    let changes =
        |slot| quiver_ainq::SlotChanges { removed: (slot..slot + 9).collect(), ..Default::default() };
    let message = |digest, changes| {
        let mut header = header.clone();
        header.core.changes = digest;
        Message::EpochChanges(m::EpochChanges { header, changes })
    };
    let bytes = message(Some(changes(5).digest()), changes(5)).encode(&f.deployment);
    assert!(matches!(decode(&f.deployment, &bytes), Ok(Message::EpochChanges(_))));
    for digest in [None, Some(changes(6).digest()), Some([0; 32])] {
        let bytes = message(digest, changes(5)).encode(&f.deployment);
        let refused = decode(&f.deployment, &bytes).map(drop);
        assert_eq!(refused, Err(MessageError::Invalid("changes")));
    }
    // As many runs as one set may have, and one more.
    for (runs, taken) in [(quiver_ainq::MAX_RUNS, true), (quiver_ainq::MAX_RUNS + 1, false)] {
        let added = (0..runs as u32).map(|number| 2 * number).collect();
        let changes = quiver_ainq::SlotChanges { added, ..Default::default() };
        let bytes = message(Some(changes.digest()), changes).encode(&f.deployment);
        assert_eq!(decode(&f.deployment, &bytes).is_ok(), taken, "{} bytes", bytes.len());
    }
}

#[test]
fn every_messages_encoding_is_as_it_was() {
    let (deployment, messages) = messages();
    for (name, message) in messages {
        insta::assert_snapshot!(name, hex::encode(message.encode(&deployment)));
    }
}

#[test]
fn every_message_survives_the_way_there_and_back() {
    let (deployment, messages) = messages();
    for (name, message) in messages {
        let bytes = message.encode(&deployment);
        let decoded = decode(&deployment, &bytes).unwrap();
        assert_eq!(decoded.encode(&deployment), bytes, "{name}");
        assert_eq!(format!("{decoded:?}"), format!("{message:?}"));
    }
    survive(envelopes::messages());
    survive(quorum::messages());
    let f = &mut Fixture::new();
    let signature = f.leader.sign(&f.deployment, Label::Admission, b"statement", &mut f.rng);
    survive(admission::messages(f.leader.public(), signature));
}

/// Messages of a feature are the same once they were written and read.
fn survive<E: Extension<S> + Into<Message<S>> + Clone + std::fmt::Debug>(messages: Vec<(&'static str, E)>) {
    for (name, message) in messages {
        let read: E = <E as Into<Message<S>>>::into(message.clone()).extension().unwrap().unwrap();
        assert_eq!(format!("{read:?}"), format!("{message:?}"), "{name}");
    }
}

#[test]
fn a_message_is_the_same_whoever_is_expected_to_speak() {
    let (deployment, messages) = messages();
    let mut f = Fixture::new();
    let mut leader = f.leader.public().clone();
    leader.remember_implicit(&deployment).unwrap();
    let stranger = drone(&f.master, &deployment, 9, Role::Edge, &mut f.rng);
    for (what, message) in &messages {
        let bytes = message.encode(&deployment);
        for expected in [f.leader.public(), &leader, stranger.public()] {
            let decoded = decode_expecting(&deployment, &bytes, Some(expected)).unwrap();
            assert_eq!(decoded.encode(&deployment), bytes, "{what}");
            assert_eq!(format!("{decoded:?}"), format!("{:?}", decode(&deployment, &bytes).unwrap()));
        }
    }
}

#[test]
fn a_rekey_from_a_template_is_the_message() {
    let mut f = Fixture::new();
    let output = f.epoch();
    let (entry, nothing) = (EpochPart::Entry(output.entries[0].clone()), None);
    let rekeys = f.tree_messages().into_iter().filter_map(|(_, message)| match message {
        Message::Rekey(rekey) => Some((rekey.header, rekey.part)),
        _ => None,
    });
    let flat = [(output.header.clone(), Some(entry)), (output.header, nothing)];
    let mut tried = 0;
    for (header, part) in rekeys.chain(flat) {
        let template = m::RekeyTemplate::new(&f.deployment, &header);
        let written = template.message(part.as_ref());
        assert_eq!(written, Message::Rekey(m::Rekey::new(header, part)).encode(&f.deployment));
        tried += 1;
    }
    assert_eq!(tried, 4);
}

#[test]
fn newcomers_beside_wraps_are_slots_and_the_starts_of_nonces() {
    let mut f = Fixture::new();
    let rekeys = f.tree_messages().into_iter().filter_map(|(_, message)| match message {
        Message::Rekey(rekey @ m::Rekey { part: Some(EpochPart::Delta(_)), .. }) => Some(rekey),
        _ => None,
    });
    let rekey = rekeys.last().unwrap();
    let nonces: [m::Nonce; 2] = [[7; 16], core::array::from_fn(|i| i as u8)];
    let newcomers: m::Newcomers = [(3, &nonces[0]), ((1 << 20) - 1, &nonces[1])].into_iter().collect();
    let message = Message::Rekey(m::Rekey { newcomers: newcomers.clone(), ..rekey.clone() });
    let bytes = message.encode(&f.deployment);
    let expected = [&[0, 0, 0, 3][..], &[7; 8], &[0, 15, 255, 255], &[0, 1, 2, 3, 4, 5, 6, 7]].concat();
    assert!(bytes.ends_with(&expected));
    let Message::Rekey(read) = decode(&f.deployment, &bytes).unwrap() else { panic!("another") };
    assert_eq!((&read.newcomers, read.newcomers.is_empty()), (&newcomers, false));
    let slots = [nonces[0], nonces[1], [8; 16]].map(|nonce| read.newcomers.slot_of(&nonce));
    assert_eq!(slots, [Some(3), Some((1 << 20) - 1), None]);
    let Some(EpochPart::Delta(wraps)) = rekey.part.clone() else { unreachable!("filtered") };
    let template = m::RekeyTemplate::new(&f.deployment, &rekey.header);
    assert_eq!(template.broadcast(wraps, &newcomers), bytes);
    // A part of one.
    let mut wire = m::wire::Message::decode(&bytes[..]).unwrap();
    let Some(m::wire::message::Body::Rekey(inner)) = &mut wire.body else { panic!("another") };
    inner.newcomers.pop();
    let refused = decode(&f.deployment, &wire.encode_to_vec()).map(drop).unwrap_err();
    assert_eq!(refused, MessageError::Invalid("newcomers"));
}

#[test]
fn truncated_messages_are_errors() {
    let (deployment, messages) = messages();
    for (name, message) in messages {
        let bytes = message.encode(&deployment);
        for len in 0..bytes.len() {
            assert!(decode(&deployment, &bytes[..len]).is_err(), "{name} cut to {len} bytes");
        }
    }
}

#[test]
fn a_message_of_another_deployment_is_refused_as_such() {
    let (deployment, messages) = messages();
    let other = Deployment::new(name("other"), *deployment.master());
    for (_, message) in messages {
        let error = decode(&other, &message.encode(&deployment)).unwrap_err();
        assert_eq!(error, MessageError::ForeignDeployment);
    }
}

#[test]
fn unknown_fields_and_long_messages_are_refused() {
    let (deployment, messages) = messages();
    for (_, message) in messages {
        let mut bytes = message.encode(&deployment);
        bytes.extend([0xf8, 0x07, 0x01]);
        assert_eq!(decode(&deployment, &bytes).unwrap_err(), MessageError::NotCanonical);
    }
    let long = vec![0; m::MAX_MESSAGE_LEN + 1];
    assert_eq!(decode(&deployment, &long).unwrap_err(), MessageError::TooLong(long.len()));
}

#[test]
fn the_identity_element_is_no_point_in_any_message() {
    let (deployment, messages) = messages();
    let point_of = |message: &Message<S>| match message {
        Message::Welcome(welcome) => welcome.header.core.point.map(|point| *point.encoding()),
        Message::SparePublication(publication) => Some(*publication.spare.point.encoding()),
        Message::JoinChallenge(challenge) => Some(challenge.leader.p().try_into().unwrap()),
        _ => None,
    };
    let mut tried = 0;
    for (name, message) in messages {
        let Some(point) = point_of(&message) else { continue };
        let mut bytes = message.encode(&deployment);
        let place = bytes.windows(32).position(|window| window == point).unwrap();
        // ristretto255's identity, then a field element that is not reduced.
        for bad in [[0; 32], [0xff; 32]] {
            bytes[place..place + 32].copy_from_slice(&bad);
            let error = decode(&deployment, &bytes).unwrap_err();
            assert!(matches!(error, MessageError::Field { .. }), "{name}: {error:?}");
        }
        tried += 1;
    }
    assert_eq!(tried, 5);
}

proptest! {
    #[test]
    fn a_changed_byte_gives_an_error_or_another_message(which: prop::sample::Index, place: prop::sample::Index, value: u8) {
        let (deployment, messages) = messages();
        let bytes = messages[which.index(messages.len())].1.encode(&deployment);
        let mut changed = bytes.clone();
        let place = place.index(bytes.len());
        prop_assume!(changed[place] != value);
        changed[place] = value;
        if let Ok(message) = decode(&deployment, &changed) {
            // No two encodings of one message: whatever a relay changes is visible to the receiver.
            prop_assert_ne!(message.encode(&deployment), bytes);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let (deployment, _) = messages();
        let _ = decode(&deployment, &bytes);
    }
}
