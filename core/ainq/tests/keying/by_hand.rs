//! The protocol once more, written down from its description with nothing but a hash, an HMAC and point
//! arithmetic: what enters every hash, in which order, under which label.

use quiver_ainq::{
    DronePublicKey, EpochKind, Header, HeaderCore, Receiver, Ristretto255, SealedMessage, Sender, SlotSet,
    Suite,
};
use sha2::{Digest as _, Sha256};

use crate::swarm::{Swarm, name};

type S = Ristretto255;
const SUITE: &[u8] = b"QUIVER-AINQ-RISTRETTO255-SHA512-v1";

fn lp(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
}

fn hash(domain: &str, parts: &[&[u8]]) -> [u8; 32] {
    Sha256::digest([lp(domain.as_bytes()), parts.concat()].concat()).into()
}

/// HMAC by its definition (RFC 2104), for keys of at most a block.
fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let pad = |byte: u8| -> Vec<u8> { (0..64).map(|i| key.get(i).copied().unwrap_or(0) ^ byte).collect() };
    let inner = Sha256::digest([&pad(0x36), message].concat());
    Sha256::digest([&pad(0x5c)[..], &inner].concat()).into()
}

fn prf(key: &[u8], label: &str, input: &[&[u8]]) -> [u8; 32] {
    hmac(key, &[lp(SUITE), lp(label.as_bytes()), input.concat()].concat())
}

fn triple(public: &DronePublicKey<S>) -> Vec<u8> {
    [lp(&public.identity.encode()), public.r().to_vec(), public.p().to_vec()].concat()
}

fn set(slots: &SlotSet) -> Vec<u8> {
    let runs = slots.runs();
    let runs = runs.iter().flat_map(|run| [run.start.to_be_bytes(), run.len.to_be_bytes()].concat());
    [u32::try_from(slots.runs().len()).unwrap().to_be_bytes().to_vec(), runs.collect()].concat()
}

fn core_digest(swarm: &Swarm<S>, core: &HeaderCore<S>) -> [u8; 32] {
    let point = core.point.as_ref().map_or(vec![0], |point| [&[1], point.as_bytes()].concat());
    let kind = if core.kind == EpochKind::Open { 1 } else { 2 };
    let fingerprint = swarm.deployment.fingerprint();
    let parts: [&[u8]; 18] = [
        &lp(SUITE),
        &fingerprint,
        &lp(core.group.as_bytes()),
        &triple(&core.leader),
        &core.epoch.term.to_be_bytes(),
        &core.epoch.counter.to_be_bytes(),
        &core.prev,
        &core.nonce,
        &core.issued_at.to_be_bytes(),
        &core.valid_until.to_be_bytes(),
        &[1, kind],
        &point,
        &[0],
        &set(&core.removed),
        &set(&core.added),
        &set(&core.absent),
        &core.roster_hash,
        &core.revocation_number.to_be_bytes(),
    ];
    hash("quiver/1 core", &parts)
}

/// W[0] of an edge in an epoch that adds it with the one-time scalar e of number q.
fn first_chain(swarm: &Swarm<S>, header: &Header<S>, edge: usize, slot: u32, q: u64, e: &[u8]) -> [u8; 32] {
    let keypair = &swarm.edges[edge].keypair;
    let y = S::scalar_decode(&keypair.to_bytes()).unwrap();
    let e = S::scalar_decode(e).unwrap();
    let point = header.core.point.as_ref().unwrap();
    // T = (y + e)·V
    let t = S::agree(&(y + e), point).unwrap();
    let ctx = hash(
        "quiver/1 pair",
        &[
            &lp(SUITE),
            swarm.deployment.master().as_bytes(),
            &lp(b"alpha"),
            &header.core.epoch.term.to_be_bytes(),
            &header.core.epoch.counter.to_be_bytes(),
            point.as_bytes(),
            &triple(&header.core.leader),
            &triple(keypair.public()),
            &slot.to_be_bytes(),
            &q.to_be_bytes(),
            S::encode(&S::mul_base(&e)).as_ref(),
        ],
    );
    // HKDF-Extract is HMAC with the salt as its key.
    hmac(&ctx, t.expose())
}

#[test]
fn keys_are_what_the_description_says() {
    let mut swarm = Swarm::<S>::formed(41, 2);
    swarm.expire();
    swarm.rekey_undelivered(&[], vec![]);
    swarm.expire();
    let kept = swarm.edges[1].kept.clone();
    // Kept: y, e_1 (spare), e_now.
    let joined = swarm.broadcasts[1].header.clone();
    let mut chain = first_chain(&swarm, &joined, 1, 1, 0, &kept.scalars[2]);
    let auth = prf(&chain, "auth", &[]);
    assert_eq!(swarm.leadership.auth_key(1).unwrap().expose(), &auth);
    for broadcast in &swarm.broadcasts[1..] {
        check_epoch(&swarm, &broadcast.header, &broadcast.entry(1).unwrap().wrap, &chain);
        chain = prf(&chain, "step", &[]);
    }
    let opened = swarm.open(&[1]);
    let chain = first_chain(&swarm, &opened.header, 1, 1, 1, &kept.scalars[1]);
    assert_eq!(opened.entries.len(), 1);
    assert_eq!(opened.entries[0].q, Some(1));
    let key = check_epoch(&swarm, &opened.header, &opened.entries[0].wrap, &chain);
    check_use(&swarm, &key);
}

fn check_epoch(swarm: &Swarm<S>, header: &Header<S>, wrap: &[u8; 32], chain: &[u8; 32]) -> [u8; 32] {
    let d0 = core_digest(swarm, &header.core);
    let pad = prf(chain, "wrap", &[&d0, &1u32.to_be_bytes()]);
    let key: [u8; 32] = std::array::from_fn(|i| wrap[i] ^ pad[i]);
    assert_eq!(header.tag, prf(&key, "confirm", &[&d0, &[0; 32]]));
    let digest = hash("quiver/1 header", &[&d0, &[0; 32], &header.tag]);
    let mut header = header.clone();
    for _ in 0..2 {
        assert_eq!(header.digest(&swarm.deployment), digest);
        // The same if the leader's key remembers how D0 begins, ...
        header.core.leader.remember_implicit(&swarm.deployment).unwrap();
    }
    // ... which is of no use for another leader or another group.
    header.core.group = name("beta");
    assert_eq!(header.core.digest(&swarm.deployment), core_digest(swarm, &header.core));
    header.core.leader.identity.not_after += 1;
    assert_eq!(header.core.digest(&swarm.deployment), core_digest(swarm, &header.core));
    key
}

fn check_use(swarm: &Swarm<S>, key: &[u8; 32]) {
    let (digest, group_key) = (*swarm.leadership.digest(), swarm.leadership.group_key());
    let exported = prf(key, "export", &[&lp(b"video"), &digest]);
    assert_eq!(group_key.export(&name("video"), &digest).expose(), &exported);
    let shown = prf(key, "export", &[&lp(b""), &digest]);
    assert_eq!(group_key.fingerprint(&digest), shown[..8]);

    let k_tr = prf(key, "traffic", &[&digest]);
    let salt = *b"saltsalt";
    let mut sender = Sender::new(&group_key.traffic(&digest), digest, 1, 3, salt);
    sender.seal(&name("news"), None, b"first").unwrap();
    let frame = sender.seal(&name("news"), None, b"second").unwrap();
    let place = [&1u32.to_be_bytes()[..], &3u32.to_be_bytes(), &salt].concat();
    let k_snd = prf(&k_tr, "sender", &[&place]);
    let aad = [&digest[..], &place, &1u64.to_be_bytes(), &lp(b"news"), &[0]].concat();
    let hedge = prf(&prf(&k_tr, "hedge", &[&place]), "nonce", &[&aad, b"second"]);
    let hedge: [u8; 8] = hedge[..8].try_into().unwrap();
    let nonce: [u8; 12] = [&hedge[..], &1u32.to_be_bytes()].concat().try_into().unwrap();
    let sealed = quiver_crypto::aead::seal(&quiver_crypto::Secret::new(k_snd), &nonce, &aad, b"second");
    assert_eq!(frame, SealedMessage { slot: 1, boot_no: 3, salt, counter: 1, hedge, ciphertext: sealed });
    let leader = swarm.last().header.core.leader.handle();
    let mut receiver = Receiver::new(group_key.traffic(&digest), digest, leader);
    let opened = receiver.open(&frame, &name("news"), None).unwrap();
    assert_eq!(*receiver.accept(opened).unwrap(), b"second");
    // Signed: the sealed frame names the signer.
    let frame = sender.seal(&name("news"), Some(&leader), b"third").unwrap();
    let aad = [&digest[..], &place, &2u64.to_be_bytes(), &lp(b"news"), &[1], leader.as_bytes()].concat();
    let nonce: [u8; 12] = [&frame.hedge[..], &2u32.to_be_bytes()].concat().try_into().unwrap();
    let sealed = quiver_crypto::aead::seal(&quiver_crypto::Secret::new(k_snd), &nonce, &aad, b"third");
    assert_eq!(frame.ciphertext, sealed);
}

#[test]
fn small_messages_between_leader_and_member_are_tagged_as_described() {
    let auth = quiver_crypto::Secret::new([7; 32]);
    let (digest, r) = ([8; 32], [9; 16]);
    assert_eq!(quiver_ainq::ack_tag::<S>(&auth, &digest), prf(&[7; 32], "ack", &[&digest]));
    assert_eq!(quiver_ainq::catch_up_tag::<S>(&auth, &r, &digest), prf(&[7; 32], "catch-up", &[&r, &digest]));
    assert_eq!(quiver_ainq::fresh_tag::<S>(&auth, &digest, &r), prf(&[7; 32], "fresh", &[&digest, &r]));
}
