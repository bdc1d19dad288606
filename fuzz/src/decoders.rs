//! Decoders of canonical bytes: whatever decodes must encode to the very bytes it came from, so that nothing
//! that is hashed or signed has two encodings; and using it must not panic. Both suites are fed with the same
//! bytes.

use quiver_ainq::{
    Bls12381G1, DroneKeypair, DronePublicKey, EnrolmentRequest, Entry, Epoch, EpochPart, GroupMembership,
    Header, Identity, IssuedToken, MasterSecret, OperatorPublicKey, OperatorSecretKey, PendingEnrolment,
    Ratchet, RevocationStatement, Ristretto255, SchnorrSignature, SealedReply, SecretValue, Signature,
    SignedRevocationList, SlotSet, SparePair, StatementSignature, StrategyKind, Token, TokenStatement,
    UnverifiedPartialKey,
};
use quiver_crypto::canonical::{Reader, Writer};
use quiver_enrolment::threshold::EnrolmentMessage;
use quiver_message::{Extension, Message, RevocationQuery, ShortRekey};

use crate::admission;
use crate::attributes::envelopes;
use crate::scene::{GROUP, START, Staged, canonical, name, rng};

pub mod deputies;
pub mod group;
pub mod seeds;
pub mod tree;

macro_rules! both_suites {
    ($($(#[$doc:meta])* $name:ident => $body:ident;)*) => {
        $($(#[$doc])* pub fn $name(bytes: &[u8]) {
            $body::<Ristretto255>(bytes);
            $body::<Bls12381G1>(bytes);
        })*
    };
}

both_suites! {
    /// Tokens, their statements, issued tokens and operators' keys.
    token => tokens;
    /// A drone's public key, and the implicit key computed from it.
    drone_public_key => public_keys;
    /// Signatures of drones and of the KGC.
    signature => signatures;
    /// Partial keys, secret values, master secrets.
    partial_key => partial_keys;
    /// Requests to the KGC, and their verification.
    enrolment_request => enrolment_requests;
    /// Sealed replies, and opening them.
    sealed_reply => sealed_replies;
    /// State of a drone until the reply arrives.
    pending_enrolment => pending_enrolments;
    /// Signed revocation lists.
    revocation_list => revocation_lists;
    /// Headers, and their verification.
    header => headers;
    /// Spare pairs.
    spare => spares;
    /// Ratchets at rest.
    ratchet => ratchets;
    /// Memberships at rest.
    membership => memberships;
}

/// Messages of one suite.
pub fn message<S: Staged>(bytes: &[u8]) {
    let deployment = &S::scene().deployment;
    let Ok(message) = Message::<S>::decode(deployment, bytes) else { return };
    // A message of no known kind may have any form; the decoder of its feature refuses all but one.
    if !matches!(message, Message::Extension(_)) {
        assert_eq!(message.encode(deployment), bytes, "two encodings of one message");
    }
    match message {
        Message::JoinRequest(request) => drop(request.decode::<S>()),
        Message::ShortRekey(short) => completed(short),
        Message::Extension(_) => {
            extension::<S, EnrolmentMessage>(&message, bytes);
            admission::message(&message, bytes);
            envelopes::message(&message, bytes);
        }
        _ => {}
    }
}

/// A message of a feature, if it is one of this: read and written again.
pub(crate) fn extension<S: Staged, E: Extension<S> + Into<Message<S>>>(message: &Message<S>, bytes: &[u8]) {
    let Some(Ok(read)) = message.extension::<E>() else { return };
    assert_eq!(read.into().encode(&S::scene().deployment), bytes, "two encodings of one message");
}

/// A short header, completed with the epoch before it as a member does.
fn completed<S: Staged>(short: ShortRekey<S>) {
    let (scene, tree) = (S::scene(), S::scene().tree());
    let before = &tree.joined.0;
    let whole = short.header.rebuild(&before.core, &before.digest(&scene.deployment), &short.wraps);
    let Ok(whole) = whole else { return };
    let again = whole.shorten(&before.core).expect("it builds on that epoch");
    assert_eq!(again.epoch, whole.core.epoch);
    let digest = whole.digest(&scene.deployment);
    let verified = whole.verify(&scene.deployment, &name(GROUP), None, &RevocationStatement::empty(), START);
    let honest = digest == tree.header.digest(&scene.deployment);
    assert!(verified.is_err() || honest, "a short header that no leader signed");
}

/// Messages of the second suite that need no machine to make.
pub fn bls_message_seeds() -> Vec<Vec<u8>> {
    let scene = Bls12381G1::scene();
    let honest = scene.honest();
    let (header, entry) = (honest.header.clone(), EpochPart::Entry(honest.entry.clone()));
    let list = quiver_message::RevocationList { list: honest.list.clone() };
    let messages = [
        Message::RevocationQuery(RevocationQuery { number: 7, max_len: 0 }),
        Message::RevocationList(list),
        Message::Rekey(quiver_message::Rekey::new(header.clone(), Some(entry.clone()))),
        Message::Welcome(quiver_message::Welcome { nonce: [3; 16], header, part: entry }),
        Message::ShortRekey(short()),
    ];
    let encoded = messages.iter().map(|message| message.encode(&scene.deployment));
    encoded.chain([message_with_two_bodies::<Bls12381G1>()]).collect()
}

/// A message of no kind of the kernel's with another behind it, as a peer may send it.
pub(crate) fn message_with_two_bodies<S: Staged>() -> Vec<u8> {
    // Field 30 with three bytes, and field 21 with none.
    let bodies = [0xf2, 0x01, 3, 1, 2, 3, 0xaa, 0x01, 0];
    let fingerprint = S::scene().deployment.fingerprint();
    [&[0x0a, 8][..], &fingerprint[..8], &bodies].concat()
}

/// The re-key of the tree as it goes to everybody.
fn short<S: Staged>() -> ShortRekey<S> {
    let tree = S::scene().tree();
    let header = tree.header.shorten(&tree.joined.0.core).expect("it follows");
    ShortRekey { header, wraps: tree.delta.clone() }
}

/// Identities.
pub fn identity(bytes: &[u8]) {
    if let Some(identity) = canonical(bytes, Identity::decode(bytes), Identity::encode) {
        assert!(identity.groups.is_sorted_by(|a, b| a < b), "groups out of order or twice");
    }
}

/// Entries of an epoch.
pub fn entry(bytes: &[u8]) {
    canonical(bytes, Entry::decode(bytes), Entry::encode);
}

/// Sets of slots.
pub fn slot_set(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    let Ok(set) = SlotSet::decode(&mut reader) else { return };
    let used = bytes.len() - reader.remaining();
    let mut writer = Writer::new();
    set.encode(&mut writer);
    assert_eq!(writer.finish(), bytes[..used]);
    assert_eq!(set.iter().count(), set.len());
    assert_eq!(set.iter().collect::<SlotSet>(), set);
    assert!(set.iter().all(|slot| set.contains(slot) && slot < quiver_ainq::MAX_SLOTS));
}

fn tokens<S: Staged>(bytes: &[u8]) {
    let scene = S::scene();
    canonical(bytes, TokenStatement::<S>::decode(bytes), TokenStatement::encode);
    canonical(bytes, IssuedToken::<S>::decode(bytes), |token| token.encode().to_vec());
    canonical(bytes, OperatorPublicKey::<S>::decode(bytes), OperatorPublicKey::encode);
    canonical(bytes, OperatorSecretKey::<S>::decode(bytes), |key| key.encode().to_vec());
    if let Some(token) = canonical(bytes, Token::<S>::decode(bytes), Token::encode) {
        let verified = token.verify(&scene.deployment, &[scene.operator.public()], START);
        let honest = scene.honest().statements.contains(&token.statement.encode());
        assert!(verified.is_err() || honest, "a token that no operator issued");
    }
}

fn public_keys<S: Staged>(bytes: &[u8]) {
    if let Some(public) = canonical(bytes, DronePublicKey::<S>::decode(bytes), DronePublicKey::encode) {
        let _ = public.implicit(&S::scene().deployment);
        let _ = public.handle();
        let twin = DroneKeypair::restore(&S::scene().deployment, public, &[1; 32]);
        assert!(twin.is_err(), "a secret that is not the key's");
    }
}

fn signatures<S: Staged>(bytes: &[u8]) {
    canonical(bytes, Signature::<S>::decode(bytes), Signature::encode);
    canonical(bytes, StatementSignature::<S>::decode(bytes), StatementSignature::encode);
    canonical(bytes, SchnorrSignature::<S>::decode(bytes), SchnorrSignature::encode);
}

fn partial_keys<S: Staged>(bytes: &[u8]) {
    canonical(bytes, UnverifiedPartialKey::<S>::decode(bytes), |key| key.encode().to_vec());
    canonical(bytes, SecretValue::<S>::decode(bytes), |value| value.to_bytes().to_vec());
    canonical(bytes, MasterSecret::<S>::decode(bytes), |master| master.encode().to_vec());
}

fn enrolment_requests<S: Staged>(bytes: &[u8]) {
    let scene = S::scene();
    let request = canonical(bytes, EnrolmentRequest::<S>::decode(bytes), EnrolmentRequest::encode);
    if let Some(request) = request {
        let verified = request.verify(&scene.deployment, &[scene.operator.public()], 1, START);
        assert!(
            verified.is_err() || bytes == scene.honest().edge.pending.request().encode(),
            "a forged request"
        );
    }
}

fn sealed_replies<S: Staged>(bytes: &[u8]) {
    let Some(reply) = canonical(bytes, SealedReply::<S>::decode(bytes), SealedReply::encode) else { return };
    let scene = S::scene();
    let enrolled = &scene.honest().edge;
    let opened = enrolled.pending.open(&scene.deployment, &reply);
    assert!(opened.is_err() || reply.encode() == enrolled.reply.encode(), "a forged reply");
}

fn pending_enrolments<S: Staged>(bytes: &[u8]) {
    let pending = PendingEnrolment::<S>::decode(bytes);
    if let Some(pending) = canonical(bytes, pending, |pending| pending.encode().to_vec()) {
        let scene = S::scene();
        let _ = pending.open(&scene.deployment, &scene.honest().edge.reply);
    }
}

fn revocation_lists<S: Staged>(bytes: &[u8]) {
    let scene = S::scene();
    let list = canonical(bytes, SignedRevocationList::<S>::decode(bytes), SignedRevocationList::encode);
    if let Some(verified) = list.and_then(|list| list.verify(&scene.deployment).ok()) {
        let honest = scene.honest().list.as_slice();
        let signed = if verified.is_whole() {
            verified.bytes() == honest
        } else {
            honest.starts_with(verified.bytes())
        };
        assert!(signed, "a list that no KGC signed");
        assert!(verified.names_serial(&[7; 16]));
    }
}

fn headers<S: Staged>(bytes: &[u8]) {
    let scene = S::scene();
    let header = Header::<S>::decode(bytes, &scene.deployment);
    let header = canonical(bytes, header, |header| header.encode(&scene.deployment));
    let Some(header) = header else { return };
    let digest = header.digest(&scene.deployment);
    let verified = header.verify(&scene.deployment, &name(GROUP), None, &RevocationStatement::empty(), START);
    let mut honest = [&scene.honest().header, &scene.tree().header].into_iter();
    assert!(
        verified.is_err() || honest.any(|honest| digest == honest.digest(&scene.deployment)),
        "a header that no leader signed"
    );
}

fn spares<S: Staged>(bytes: &[u8]) {
    let pair = canonical(bytes, SparePair::<S>::decode(bytes), |pair| pair.encode().to_vec());
    if let Some(pair) = pair {
        let scene = S::scene();
        let keypair = &scene.honest().edge.keypair;
        let group = name(GROUP);
        let statement = pair.statement(keypair, &scene.deployment, &group, &mut rng(3));
        let verified = statement.verify(&scene.deployment, &group, keypair.public());
        assert_eq!(verified.is_ok(), pair.q() > 0, "numbers of spare points start at 1");
    }
}

fn ratchets<S: Staged>(bytes: &[u8]) {
    let ratchet = canonical(bytes, Ratchet::<S>::decode(bytes), |ratchet| ratchet.encode().to_vec());
    if let Some(mut ratchet) = ratchet {
        let u = ratchet.u();
        assert!(u == 0 || ratchet.skip_to(u - 1).is_err(), "a ratchet went back");
        assert!(u <= Epoch::MAX_COUNTER + 1, "a ratchet beyond the last epoch");
        assert_eq!(ratchet.skip_to(u + 10).is_ok(), u + 10 <= Epoch::MAX_COUNTER + 1);
        assert!(ratchet.skip_to(u + 100_000).is_err(), "a ratchet skipped too far");
    }
}

fn memberships<S: Staged>(bytes: &[u8]) {
    let Ok(membership) = GroupMembership::<S>::restore(bytes) else { return };
    // Codes that trees had in earlier versions are read, and today's is written.
    let mut expected = bytes.to_vec();
    let place = seeds::strategy_place::<S>(membership.group());
    if matches!(expected[place], 2 | 3) {
        expected[place] = StrategyKind::Tree.code();
    }
    assert_eq!(*membership.encode(), expected, "two encodings of one value");
    assert!(membership.group_key().is_none(), "a group key at rest");
    let scene = S::scene();
    let (header, entry) = (scene.honest().header.clone(), &scene.honest().entry);
    let leader = header.core.leader.clone();
    let group = name(GROUP);
    let verified = header.verify(&scene.deployment, &group, None, &RevocationStatement::empty(), START);
    let context = quiver_ainq::GroupContext { deployment: scene.deployment.clone(), group, leader };
    let keypair = &scene.honest().edge.keypair;
    let part = EpochPart::Entry(entry.clone());
    let _ = membership.advance(&context, keypair, None, &verified.expect("an honest header"), &part);
}
