//! The second factor: κ against values made elsewhere, and who follows with which κ.

use std::collections::BTreeMap;

use quiver_ainq::{
    Admission, AgreedSecret, Anonymous, Batch, Deployment, Element, EpochPart, Error, GroupMembership,
    Handle, Header, Join, KemKey, KemPair, KemTerm, Leadership, MAX_KEM_STEPS, Pseudonym, Ratchet,
    Ristretto255, Slot, SparePair, StrategyKind, Suite, TermKeys, VerifiedHeader,
};
use quiver_crypto::Secret;
use quiver_kem::{DecapsulationKey, KemSet, encapsulate};
use serde::Deserialize;

use crate::swarm::{Broadcast, NOW, Swarm, name, times};

/// A row of `vectors/kem.json`.
#[derive(Deserialize)]
struct Vector {
    set: String,
    deployment: String,
    master: String,
    group: String,
    leader: String,
    drone: String,
    seed: String,
    message: String,
    shared: String,
    secret: String,
    context: String,
    terms: Vec<VectorTerm>,
}

#[derive(Deserialize)]
struct VectorTerm {
    g: u64,
    key: String,
    tag: String,
    chain: String,
    auth: String,
}

fn bytes<const N: usize>(text: &str) -> [u8; N] {
    hex::decode(text).unwrap().try_into().unwrap()
}

#[test]
fn key_its_steps_tags_and_chains_are_those_of_an_independent_program() {
    let vectors: Vec<Vector> = serde_json::from_str(include_str!("../vectors/kem.json")).unwrap();
    assert_eq!(vectors.len(), 4);
    for vector in vectors {
        let set: KemSet = vector.set.parse().unwrap();
        let (secret, public) = DecapsulationKey::generate(set, Secret::new(bytes(&vector.seed)));
        let (ciphertext, shared) = encapsulate(set, &public, &Secret::new(bytes(&vector.message))).unwrap();
        assert_eq!(hex::encode(shared.expose()), vector.shared);
        assert_eq!(secret.decapsulate(&ciphertext).unwrap(), shared);
        let master = Element::<Ristretto255>::decode(&hex::decode(&vector.master).unwrap()).unwrap();
        let pair = KemPair {
            deployment: &Deployment::new(name(&vector.deployment), master),
            group: &name(&vector.group),
            leader: &Handle(bytes(&vector.leader)),
            drone: &Handle(bytes(&vector.drone)),
            key: &public,
            ciphertext: &ciphertext,
        };
        let first = KemTerm::new(set, vector.terms[0].g).unwrap();
        let made = KemKey::derive(first, &shared, &pair);
        let (agreed, context) = (AgreedSecret::new(&bytes::<32>(&vector.secret)), bytes(&vector.context));
        for term in &vector.terms {
            let at = KemTerm::new(set, term.g).unwrap();
            let key = made.at(pair.leader, at).unwrap();
            assert_eq!(hex::encode(&key.encode()[9..]), term.key);
            assert_eq!(hex::encode(key.tag()), term.tag);
            let ratchet = Ratchet::derive_with(&agreed, &key, &context).encode();
            assert_eq!(hex::encode(&ratchet[8..40]), term.chain);
            assert_eq!(hex::encode(&ratchet[40..]), term.auth);
        }
    }
}

/// κ that both sides hold, in a term of the leader.
fn shared_key<S: Suite>(swarm: &Swarm<S>, number: u8, term: KemTerm) -> KemKey<S> {
    let pair = KemPair {
        deployment: &swarm.deployment,
        group: &name("alpha"),
        leader: &swarm.leader.public().handle(),
        drone: &swarm.edges[usize::from(number)].keypair.public().handle(),
        key: &[number],
        ciphertext: &[number],
    };
    KemKey::derive(term, &Secret::new([number; 32]), &pair)
}

fn term(g: u64) -> KemTerm {
    KemTerm::new(KemSet::MlKem768, g).unwrap()
}

#[test]
fn key_never_steps_back_nor_far_ahead_nor_into_another_set() {
    let swarm = Swarm::<Ristretto255>::new(1, 1);
    let leader = swarm.leader.public().handle();
    let key = shared_key(&swarm, 0, term(5));
    let at = |g| key.at(&leader, term(g)).map(|key| key.term().g());
    assert_eq!(at(4), Err(Error::Stale));
    assert_eq!(at(5), Ok(5));
    assert_eq!(at(5 + MAX_KEM_STEPS), Ok(5 + MAX_KEM_STEPS));
    assert_eq!(at(6 + MAX_KEM_STEPS), Err(Error::Exhausted));
    let other = KemTerm::new(KemSet::MlKem1024, 5).unwrap();
    assert_eq!(key.at(&leader, other).map(drop), Err(Error::MissingKem));
    // In two parts as in one.
    let mut stepped = key.clone();
    stepped.step_to(&leader, 9).unwrap();
    stepped.step_to(&leader, 12).unwrap();
    assert_eq!(stepped.tag(), key.at(&leader, term(12)).unwrap().tag());
    // Another leader's steps lead elsewhere.
    let elsewhere = key.at(&Handle([1; 32]), term(12)).unwrap();
    assert_ne!(elsewhere.tag(), stepped.tag());
    assert!(stepped.is_named(&stepped.tag()) && !stepped.is_named(&key.tag()));
    let stored = KemKey::<Ristretto255>::decode(&stepped.encode()).unwrap();
    assert_eq!((stored.term(), stored.tag()), (stepped.term(), stepped.tag()));
    assert_eq!(format!("{key:?}"), "KemKey { term: KemTerm { set: MlKem768, g: 5 }, .. }");
}

#[test]
fn stored_keys_and_terms_that_cannot_be_are_refused() {
    let swarm = Swarm::<Ristretto255>::new(1, 1);
    let good = shared_key(&swarm, 0, term(5)).encode().to_vec();
    let with = |at: usize, value: u8| {
        let mut bad = good.clone();
        bad[at] = value;
        KemKey::<Ristretto255>::decode(&bad).map(drop)
    };
    assert_eq!(with(0, 3), Err(Error::Malformed("kem")));
    assert_eq!(with(8, 0), Err(Error::Malformed("kem")));
    assert_eq!(with(1, 1), Err(Error::Malformed("kem")));
    for len in 0..good.len() {
        assert!(KemKey::<Ristretto255>::decode(&good[..len]).is_err());
    }
    assert!(KemTerm::new(KemSet::MlKem768, 1 << 48).is_ok());
    assert!(KemTerm::new(KemSet::MlKem768, (1 << 48) + 1).is_err());
}

/// Opens the next term with κ of these edges at this count.
fn open<S: Suite>(swarm: &mut Swarm<S>, at: KemTerm, keyed: &[u8], spares: &[usize]) -> Header<S> {
    let spares: BTreeMap<Slot, (u64, Element<S>)> = spares
        .iter()
        .map(|index| {
            (swarm.slot(*index), (swarm.edges[*index].spare.q(), *swarm.edges[*index].spare.point()))
        })
        .collect();
    let keys = keyed.iter().map(|number| {
        let key = shared_key(swarm, *number, term(1)).at(&swarm.leader.public().handle(), at).unwrap();
        (swarm.slot(usize::from(*number)), key)
    });
    let keys = TermKeys::new(at, keys.collect::<Vec<_>>());
    let round = swarm.leadership.epoch().term + (1 << 16);
    let (leadership, output) = Leadership::open_term_with_kem(
        swarm.context(),
        &swarm.leader,
        swarm.leadership.roster().clone(),
        &spares,
        &keys,
        (round, *swarm.leadership.digest()),
        &times(),
        swarm.leadership.strategy(),
        &mut swarm.rng,
    )
    .unwrap();
    swarm.leadership = leadership;
    swarm.broadcasts.push(Broadcast::of(&output));
    output.header
}

fn joined<S: Suite>(
    swarm: &mut Swarm<S>,
    index: usize,
    key: Option<&KemKey<S>>,
) -> Result<(VerifiedHeader<S>, EpochPart, SparePair<S>), Error> {
    let ephemeral = SparePair::ephemeral(&mut swarm.rng);
    let public = swarm.edges[index].keypair.public().clone();
    let mut join = Join::new(&swarm.deployment, public, *ephemeral.point()).unwrap();
    if let Some(key) = key {
        join = join.with_kem(key.clone());
    }
    let batch = Batch { joins: vec![join], ..Batch::default() };
    let output = swarm.leadership.rekey(&swarm.leader, batch, &times(), &mut swarm.rng)?;
    swarm.broadcasts.push(Broadcast::of(&output));
    let slot = output.assigned[0];
    if output.wraps.is_some() {
        swarm.path_message(slot).unwrap();
    }
    let part = swarm.last().part(slot).unwrap();
    Ok((swarm.verified(&output.header), part, ephemeral))
}

fn newcomer_needs_the_key_of_the_term_and_no_other<S: Suite>(strategy: StrategyKind) {
    let mut swarm = Swarm::<S>::keyed_by(strategy, 7, 3);
    let header = open(&mut swarm, term(1), &[], &[]);
    assert_eq!((header.core.kem, swarm.leadership.kem()), (Some(term(1)), Some(term(1))));
    let (key, other) = (shared_key(&swarm, 0, term(1)), shared_key(&swarm, 1, term(1)));
    let leader = swarm.leader.public().handle();
    // The leader admits nobody without κ of this term.
    assert_eq!(joined(&mut swarm, 0, None).map(drop), Err(Error::MissingKem));
    let ahead = key.at(&leader, term(2)).unwrap();
    assert_eq!(joined(&mut swarm, 0, Some(&ahead)).map(drop), Err(Error::MissingKem));
    assert_eq!(swarm.leadership.roster().len(), 0, "nothing has changed");
    let (header, part, ephemeral) = joined(&mut swarm, 0, Some(&key)).unwrap();
    assert_eq!(header.core().kem, Some(term(1)));
    let (context, keypair) = (swarm.context(), &swarm.edges[0].keypair);
    let enter = |key| {
        GroupMembership::join_with_kem(&context, keypair, &ephemeral, key, &header, &part)
            .map(|member| member.epoch())
    };
    let broken = if strategy == StrategyKind::Flat { Error::WrongTag } else { Error::SealBroken };
    assert_eq!(enter(None), Err(Error::MissingKem));
    assert_eq!(enter(Some(&ahead)), Err(Error::MissingKem));
    assert_eq!(enter(Some(&other)), Err(broken));
    assert_eq!(enter(Some(&key)), Ok(header.core().epoch));
}

fn opening_is_followed_with_the_key_of_its_count_alone<S: Suite>(strategy: StrategyKind) {
    let mut swarm = Swarm::<S>::formed_by(strategy, 8, 4);
    // The third has no κ at the leader, the fourth no spare point: both are absent.
    let header = open(&mut swarm, term(3), &[0, 1, 3], &[0, 1, 2]);
    let absent: Vec<Slot> = header.core.absent.iter().collect();
    assert_eq!(absent, [swarm.slot(2), swarm.slot(3)]);
    let (context, leader) = (swarm.context(), swarm.leader.public().handle());
    let verified = swarm.verified(&header);
    let part = swarm.last().part(swarm.slot(1)).unwrap();
    let edge = &swarm.edges[1];
    let member = edge.membership.as_ref().unwrap();
    let follow = |key: Option<&KemKey<S>>| {
        let spare = (Some(&edge.spare), key);
        member.advance_with_kem(&context, &edge.keypair, spare, &verified, &part).map(|next| next.epoch())
    };
    let key = shared_key(&swarm, 1, term(1));
    let at = |g| key.at(&leader, term(g)).unwrap();
    assert_eq!(follow(None), Err(Error::MissingKem));
    for g in [1, 2, 4] {
        assert_eq!(follow(Some(&at(g))), Err(Error::MissingKem));
    }
    let stranger = shared_key(&swarm, 0, term(1)).at(&leader, term(3)).unwrap();
    let foreign = key.at(&Handle([1; 32]), term(3)).unwrap();
    for wrong in [stranger, foreign] {
        assert!(matches!(follow(Some(&wrong)), Err(Error::WrongTag | Error::SealBroken)));
    }
    assert_eq!(follow(Some(&at(3))), Ok(header.core.epoch));
}

fn header_without_a_second_factor_is_no_way_round_it<S: Suite>(strategy: StrategyKind) {
    let mut swarm = Swarm::<S>::keyed_by(strategy, 9, 2);
    let key = shared_key(&swarm, 0, term(1));
    let with_key = joined(&mut swarm, 0, Some(&key)).map(drop);
    assert_eq!(with_key, Err(Error::OtherKem));
    let (header, part, ephemeral) = joined(&mut swarm, 0, None).unwrap();
    let (context, keypair) = (swarm.context(), &swarm.edges[0].keypair);
    let enter =
        |key| GroupMembership::join_with_kem(&context, keypair, &ephemeral, key, &header, &part).map(drop);
    assert_eq!(enter(Some(&key)), Err(Error::OtherKem));
    assert_eq!(enter(None), Ok(()));
}

fn member_without_a_name_needs_both_secrets_of_its_run<S: Suite>(strategy: StrategyKind) {
    let mut swarm = Swarm::<S>::keyed_by(strategy, 10, 2);
    let (key, secret) = (shared_key(&swarm, 0, term(4)), AgreedSecret::new(&[7; 32]));
    let pseudonym = Pseudonym([3; 16]);
    let admitted = |swarm: &mut Swarm<S>, kem: Option<KemKey<S>>| {
        let member = Anonymous { pseudonym, until: NOW + 60 };
        let admissions = vec![Admission { member, secret: AgreedSecret::new(&[7; 32]), kem }];
        let batch = Batch { admissions, ..Batch::default() };
        let output = swarm.leadership.rekey(&swarm.leader, batch, &times(), &mut swarm.rng)?;
        swarm.broadcasts.push(Broadcast::of(&output));
        if output.wraps.is_some() {
            swarm.path_message(output.admitted[0]).unwrap();
        }
        let part = swarm.last().part(output.admitted[0]).unwrap();
        Ok((swarm.verified(&output.header), part))
    };
    // A leader whose terms have no second factor uses none that it was given.
    assert_eq!(admitted(&mut swarm, Some(key.clone())).map(drop), Err(Error::OtherKem));
    open(&mut swarm, term(4), &[], &[]);
    assert_eq!(admitted(&mut swarm, None).map(drop), Err(Error::MissingKem));
    let (header, part) = admitted(&mut swarm, Some(key.clone())).unwrap();
    let context = swarm.context();
    let enter = |secret, kem| GroupMembership::admitted(&context, &pseudonym, (secret, kem), &header, &part);
    let before = shared_key(&swarm, 0, term(3));
    let larger = shared_key(&swarm, 0, KemTerm::new(KemSet::MlKem1024, 4).unwrap());
    for other in [None, Some(&before), Some(&larger)] {
        assert_eq!(enter(&secret, other).map(drop), Err(Error::MissingKem));
    }
    // Either secret alone opens nothing.
    let (others_key, others_secret) = (shared_key(&swarm, 1, term(4)), AgreedSecret::new(&[8; 32]));
    for (secret, kem) in [(&secret, &others_key), (&others_secret, &key)] {
        let outcome = enter(secret, Some(kem)).map(drop);
        assert!(matches!(outcome, Err(Error::WrongTag | Error::SealBroken)), "{outcome:?}");
    }
    assert_eq!(enter(&secret, Some(&key)).map(|membership| membership.epoch()), Ok(header.core().epoch));
}

fn headers_say_set_and_count_and_nothing_where_there_is_none<S: Suite>(strategy: StrategyKind) {
    let mut swarm = Swarm::<S>::keyed_by(strategy, 11, 1);
    let none = swarm.last().header.clone();
    let with = open(&mut swarm, KemTerm::new(KemSet::MlKem1024, 258).unwrap(), &[], &[]);
    let (plain, longer) = (none.encode(&swarm.deployment), with.encode(&swarm.deployment));
    assert_eq!(longer.len(), plain.len() + 9);
    let decoded = Header::<S>::decode(&longer, &swarm.deployment).unwrap();
    assert_eq!(decoded.core.kem, with.core.kem);
    assert_eq!(decoded.digest(&swarm.deployment), with.digest(&swarm.deployment));
    // Signed: without it, or with another, it is another header.
    for other in [None, Some(term(258)), KemTerm::new(KemSet::MlKem1024, 257).ok()] {
        let mut forged = with.clone();
        forged.core.kem = other;
        let list = quiver_ainq::RevocationStatement::empty();
        let verified = forged.verify(&swarm.deployment, &name("alpha"), None, &list, NOW).map(drop);
        assert_eq!(verified, Err(Error::InvalidSignature));
    }
}

for_each_strategy! {
    newcomer_needs_the_key_of_the_term_and_no_other;
    opening_is_followed_with_the_key_of_its_count_alone;
    header_without_a_second_factor_is_no_way_round_it;
    member_without_a_name_needs_both_secrets_of_its_run;
    headers_say_set_and_count_and_nothing_where_there_is_none;
}
