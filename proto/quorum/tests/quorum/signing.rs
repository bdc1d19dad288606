//! Statements: signed by members whose own rules allow it, and by no other.

use std::collections::BTreeMap;
use std::time::Duration;

use quiver_ainq::{
    AuthorityStatement, Batch, EquivocationProof, GroupContext, Header, Identity, KgcId, Leadership,
    MAX_REVOCATION_LIST_LEN, Name, Purpose, RevocationStatement, Revoked, Role, Roster, SecretScalar,
    SecretValue, SignedAuthority, SignedRevocationList, StatementSignature, StrategyKind, Times,
    identity_statement,
};
use quiver_crypto::canonical::Writer;
use quiver_message::Message;
use quiver_message::quorum::{
    QuorumMessage, SignPackage, SignProposal, SignRefusal, SignRefusalReason, SignerCommitment,
};
use quiver_quorum::SigningPackage;
use quiver_quorum_node::{QuorumCommand, QuorumEvent, approval, ibe_name};

use quiver_testbed::matching;

use crate::key_generation::holdings;
use crate::world::{Packet, S, START, VALIDITY, World};

fn revoke(serials: &[u8]) -> QuorumCommand {
    QuorumCommand::Revoke(unknown(serials))
}

fn unknown(serials: &[u8]) -> Vec<Revoked> {
    serials.iter().map(|serial| Revoked::unknown([*serial; 16])).collect()
}

/// The newest list of a member, as anybody checks it.
fn list(world: &World, id: KgcId) -> RevocationStatement {
    let node = world.node(id);
    match node.signed_revocations() {
        None => RevocationStatement::empty(),
        Some(bytes) => {
            let list = SignedRevocationList::<S>::decode(bytes).unwrap();
            RevocationStatement::clone(
                &list.verify(node.deployment().unwrap()).expect("signed by the quorum"),
            )
        }
    }
}

fn names(world: &World, serials: &[u8]) -> bool {
    let all = |id: KgcId| serials.iter().all(|serial| list(world, id).names_serial(&[*serial; 16]));
    world.ids().into_iter().all(all)
}

/// No number was ever given to two lists.
fn check_lists(world: &World) {
    let mut lists: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    for packet in world.sent() {
        if let QuorumMessage::SignedStatement(statement) = &packet.message
            && statement.purpose.as_str() == Purpose::Revocation.as_str()
        {
            let list = RevocationStatement::decode(&statement.body).unwrap();
            let known = lists.entry(list.number).or_insert_with(|| statement.body.clone());
            assert_eq!(*known, statement.body, "two lists of one number");
        }
    }
}

fn quorum(seed: u64, n: u16, t: u16) -> World {
    let mut world = World::new(seed, n, t);
    world.generate();
    world.until("the quorum says who it is", |world| {
        world.ids().iter().all(|id| world.node(*id).quorum_statement().is_some())
    });
    world
}

#[test]
fn a_drone_is_revoked_as_soon_as_t_operators_want_it() {
    let mut world = quorum(1, 5, 3);
    world.command(1, revoke(&[7, 8]));
    world.command(4, revoke(&[7, 9]));
    world.run_for(Duration::from_secs(300));
    assert!(
        world.ids().iter().all(|id| list(&world, *id) == RevocationStatement::empty()),
        "two are not enough"
    );
    world.command(5, revoke(&[7]));
    world.until("it is revoked", |world| names(world, &[7]));
    assert_eq!(list(&world, 2).revoked, unknown(&[7]), "and nothing else");
    assert_eq!(world.node(1).view().proposed, 1);
    // A revoked drone stays revoked.
    world.command_all(&revoke(&[3]));
    world.until("another is revoked", |world| names(world, &[3, 7]));
    check_lists(&world);
}

#[test]
fn lists_are_signed_in_any_weather_while_members_die_and_no_number_is_used_twice() {
    for seed in 0..6 {
        let mut world = quorum(20 + seed, 5, 3);
        world.set_faults(70, 70, 3000);
        for step in 1..=4_u8 {
            let dies = (step as KgcId + seed as KgcId) % 5 + 1;
            for id in [1, 2, 3, 4, 5] {
                world.command(id, revoke(&[step]));
            }
            world.crash_after(dies, 3 + seed as u32 * 2);
            world.until("it is revoked", |world| world.all_alive() && names(world, &[step]));
        }
        check_lists(&world);
    }
}

#[test]
fn what_was_signed_for_binds_across_a_restart() {
    let mut world = quorum(2, 3, 2);
    // The coordinator dies before it has put the signature together.
    world.set_tamper(Box::new(|packet| match packet.message {
        QuorumMessage::SignShare(_) => Vec::new(),
        _ => vec![packet],
    }));
    world.command(1, revoke(&[1]));
    world.command(2, revoke(&[1]));
    world.run_for(Duration::from_secs(30));
    assert!(!names(&world, &[1]));
    world.stop(1);
    world.stop(2);
    world.run_for(Duration::from_secs(1));
    world.start(1);
    world.start(2);
    world.tamper = None;
    world.until("it is revoked", |world| names(world, &[1]));
    assert!(list(&world, 3).number > 1, "the first number is spent");
    check_lists(&world);
}

#[test]
fn a_list_is_renewed_before_it_is_stale() {
    let mut world = quorum(3, 3, 2);
    world.command_all(&revoke(&[1]));
    world.until("it is revoked", |world| names(world, &[1]));
    let first = list(&world, 1);
    for _ in 0..22 {
        world.run_for(Duration::from_secs(3600));
    }
    let second = list(&world, 3);
    assert_eq!((second.number, &second.revoked), (second.issued, &first.revoked));
    assert!(second.issued < first.next_update && second.next_update == second.issued + VALIDITY);
    assert!(world.ids().iter().all(|id| list(&world, *id) == second));
    check_lists(&world);
}

#[test]
fn who_sends_a_wrong_share_is_named_and_the_list_is_signed_by_others() {
    let mut world = quorum(4, 5, 3);
    world.set_tamper(Box::new(|mut packet| {
        if let (2, QuorumMessage::SignShare(share)) = (packet.from, &mut packet.message) {
            share.share[0] ^= 1;
        }
        vec![packet]
    }));
    world.command_all(&revoke(&[1]));
    world.until("it is revoked", |world| names(world, &[1]));
    let named = |event: &QuorumEvent| matches!(event, QuorumEvent::WrongShare { .. });
    let all: Vec<_> =
        world.ids().into_iter().flat_map(|id| world.events(id)).filter(|event| named(event)).collect();
    assert!(
        !all.is_empty() && all.iter().all(|event| **event == QuorumEvent::WrongShare { by: 2 }),
        "{all:?}"
    );
    // Members that it left without an answer ask the others for the next one.
    let let_down: Vec<_> = world.ids().into_iter().filter(|id| world.events(*id).iter().any(named)).collect();
    let before = world.sent().len();
    world.command_all(&revoke(&[3]));
    world.until("another is revoked", |world| names(world, &[1, 3]));
    let asked: Vec<KgcId> = world.sent()[before..]
        .iter()
        .filter(|packet| {
            let_down.contains(&packet.from) && matches!(packet.message, QuorumMessage::SignProposal(_))
        })
        .map(|packet| packet.to)
        .collect();
    assert!(!asked.is_empty() && !asked.contains(&2), "{asked:?}");
}

#[test]
fn too_few_members_say_who_answered_and_who_did_not() {
    let mut world = quorum(5, 5, 3);
    [3, 4, 5].into_iter().for_each(|id| world.command(id, revoke(&[1])));
    world.until("it is revoked", |world| names(world, &[1]));
    [3, 4, 5].into_iter().for_each(|id| world.command(id, revoke(&[2])));
    // They have reported it, and are gone before anything comes of it.
    world.run_for(Duration::from_millis(15));
    [1, 2, 4, 5].into_iter().for_each(|id| world.stop(id));
    world.run_for(Duration::from_secs(60));
    let said = world.events(3).iter().rev().find_map(matching!(
        QuorumEvent::NotSigned { purpose, willing, silent, .. } => (*purpose, willing.clone(), silent.clone())
    ));
    assert_eq!(said, Some((Purpose::Revocation, vec![3], vec![1, 2, 4, 5])));
}

/// Member 1's answer to a proposal of member 2.
fn answer(world: &mut World, version: u32, purpose: &str, body: Vec<u8>) -> Option<SignRefusalReason> {
    let proposal = SignProposal { session: [9; 16], version, purpose: Name::new(purpose).unwrap(), body };
    let sent = world.sent().len();
    world.inject(&Packet { from: 2, to: 1, message: QuorumMessage::SignProposal(proposal) });
    world.run_for(Duration::from_millis(100));
    world.sent()[sent..]
        .iter()
        .find_map(|packet| match &packet.message {
            QuorumMessage::SignRefusal(refusal) if packet.from == 1 => Some(Some(refusal.reason)),
            QuorumMessage::SignCommitment(_) if packet.from == 1 => Some(None),
            _ => None,
        })
        .expect("it answers")
}

#[test]
fn nonces_do_not_outlive_a_member_that_is_brought_back_with_its_memory() {
    let mut world = quorum(16, 3, 2);
    let shares = holdings(&world)[0].ainq().public().encode();
    assert_eq!(answer(&mut world, 0, "quorum", shares), None);
    // Another copy of it may sign with them.
    world.resume(1);
    let commitment = world.sent().iter().rev().find_map(|packet| match &packet.message {
        QuorumMessage::SignCommitment(commitment) if packet.from == 1 => Some(commitment.commitment.clone()),
        _ => None,
    });
    let part = |kgc| SignerCommitment { kgc, commitment: commitment.clone().expect("it answered") };
    let package = SignPackage { session: [9; 16], commitments: vec![part(1), part(2)] };
    let sent = world.sent().len();
    world.inject(&Packet { from: 2, to: 1, message: QuorumMessage::SignPackage(package) });
    world.run_for(Duration::from_millis(100));
    let unknown = |packet: &Packet| {
        let QuorumMessage::SignRefusal(refusal) = &packet.message else { return false };
        packet.from == 1 && refusal.reason == SignRefusalReason::UnknownSession
    };
    assert!(world.sent()[sent..].iter().any(unknown));
}

#[test]
fn nobody_signs_what_its_own_state_does_not_bear_out() {
    use SignRefusalReason as Why;
    let mut world = quorum(6, 3, 2);
    world.command_all(&revoke(&[1]));
    world.until("it is revoked", |world| names(world, &[1]));
    world.command(1, revoke(&[2]));
    let known = list(&world, 1);
    let now = START + world.time().as_secs();
    let good = RevocationStatement {
        number: known.number + 1,
        issued: now,
        next_update: now + VALIDITY,
        revoked: unknown(&[1, 2]),
    };
    assert!(known.number >= START, "numbers have a floor in time");
    let cases = [
        (good.clone(), None),
        (RevocationStatement { number: known.number, ..good.clone() }, Some(Why::Superseded)),
        (RevocationStatement { number: known.number + 50_000, ..good.clone() }, Some(Why::Content)),
        (RevocationStatement { revoked: unknown(&[2]), ..good.clone() }, Some(Why::Superseded)),
        (RevocationStatement { revoked: unknown(&[1, 2, 3]), ..good.clone() }, Some(Why::NotApproved)),
        (RevocationStatement { issued: now - 5000, ..good.clone() }, Some(Why::Times)),
        (RevocationStatement { next_update: now + 10 * VALIDITY, ..good.clone() }, Some(Why::Times)),
        (RevocationStatement { revoked: unknown(&[1]), ..good }, Some(Why::Times)),
    ];
    for (list, expected) in cases {
        assert_eq!(answer(&mut world, 0, "revocation", list.encode()), expected, "{list:?}");
    }
    assert_eq!(answer(&mut world, 1, "revocation", good.encode()), Some(Why::Version));
    assert_eq!(answer(&mut world, 0, "revocation", vec![1; 40]), Some(Why::Content));
    let shares = holdings(&world)[0].ainq().public().encode();
    assert_eq!(answer(&mut world, 0, "quorum", shares.clone()), None);
    assert_eq!(answer(&mut world, 0, "quorum", shares[1..].to_vec()), Some(Why::Content));
    // A drone's partial key is never signed as a statement.
    assert_eq!(answer(&mut world, 0, "identity", shares.clone()), Some(Why::Content));
    assert_eq!(answer(&mut world, 0, "parameters", shares), Some(Why::NotApproved));
}

#[test]
fn list_leaves_out_whose_identity_has_ended_and_nobody_else() {
    use SignRefusalReason as Why;
    let mut world = quorum(9, 3, 2);
    let ends = |serial: u8, not_after| Revoked { serial: [serial; 16], not_after, leader: false };
    let (soon, later) = (ends(1, START + 1000), ends(2, START + 900_000));
    world.command_all(&QuorumCommand::Revoke(vec![soon, later]));
    world.until("they are revoked", |world| names(world, &[1, 2]));
    assert_eq!(list(&world, 1).revoked, [soon, later]);
    let proposed = |world: &World, revoked: &[Revoked]| {
        let now = START + world.time().as_secs();
        let (number, next_update) = (list(world, 1).number + 900, now + VALIDITY);
        let mut list = RevocationStatement { number, issued: now, next_update, revoked: revoked.to_vec() };
        list.sort();
        list.encode()
    };
    world.command(1, revoke(&[3]));
    let third = Revoked::unknown([3; 16]);
    for (revoked, why) in [
        (vec![soon, later, third], None),
        (vec![later, third], Some(Why::Superseded)),
        (vec![soon, third], Some(Why::Superseded)),
        (vec![ends(1, START + 999), later, third], Some(Why::Superseded)),
        // Neither for ever nor for boards without its operator's approval.
        (vec![ends(1, u64::MAX), later, third], Some(Why::NotApproved)),
        (vec![Revoked { leader: true, ..soon }, later, third], Some(Why::NotApproved)),
        // Nor for less than its operator wants.
        (vec![soon, later, ends(3, u64::MAX)], Some(Why::NotApproved)),
        (vec![soon, later, Revoked { not_after: START, ..third }], Some(Why::NotApproved)),
    ] {
        let body = proposed(&world, &revoked);
        assert_eq!(answer(&mut world, 0, "revocation", body), why, "{revoked:?}");
    }
    for _ in 0..40 {
        world.run_for(Duration::from_secs(3600));
    }
    let renewed = list(&world, 1);
    assert_eq!(renewed.revoked, [later], "renewed without the one that ended");
    assert!(world.ids().iter().all(|id| list(&world, *id) == renewed));
    check_lists(&world);
}

#[test]
fn drone_is_revoked_for_as_long_and_told_to_as_many_as_any_of_those_who_want_it_knows() {
    let mut world = quorum(10, 3, 2);
    let edge = Revoked { serial: [1; 16], not_after: START + 900_000, leader: false };
    world.command(1, QuorumCommand::Revoke(vec![edge]));
    world.command(2, QuorumCommand::Revoke(vec![Revoked { leader: true, not_after: START + 5, ..edge }]));
    world.until("it is revoked", |world| names(world, &[1]));
    assert_eq!(list(&world, 3).revoked, [Revoked { leader: true, ..edge }]);
    // A member without proposals has none afterwards.
    world.command(3, revoke(&[1]));
    assert!(world.ids().iter().all(|id| world.node(*id).view().proposed == 0));
}

#[test]
fn list_held_by_a_stranger_is_taken_if_the_quorum_signed_it() {
    let mut world = quorum(11, 3, 2);
    world.command_all(&revoke(&[1]));
    world.until("it is revoked", |world| names(world, &[1]));
    let held = world.node(1).signed_revocations().unwrap().to_vec();
    let mut other = quorum(12, 3, 2);
    other.command(1, QuorumCommand::TakeRevocations(held.clone()));
    assert_eq!(list(&other, 1).number, 0, "another quorum's");
    let records = world.stored(3);
    world.stop(3);
    let kept = records.into_iter().filter(|(kind, _)| *kind < 2).map(|(_, record)| record);
    *world.member_mut(3).records_mut() = kept.collect();
    [1, 2].into_iter().for_each(|id| world.stop(id));
    world.start(3);
    assert_eq!(list(&world, 3).number, 0);
    world.command(3, QuorumCommand::TakeRevocations(held));
    assert!(list(&world, 3).names_serial(&[1; 16]));
}

/// A list of so many bytes at most that names as many drones as fit, signed by the members 1 and 2.
fn full_list(world: &mut World) -> SignedRevocationList<S> {
    let keys = holdings(world);
    let deployment = world.node(1).deployment().unwrap().clone();
    let now = START + world.time().as_secs();
    let mut list =
        RevocationStatement { number: 1, issued: now, next_update: now + VALIDITY, revoked: Vec::new() };
    let one = |number: u32| {
        let mut serial = [0; 16];
        serial[..4].copy_from_slice(&number.to_be_bytes());
        Revoked::unknown(serial)
    };
    let (empty, signature) = (list.encode().len(), StatementSignature::<S>::LEN);
    list.revoked.push(one(1));
    let each = list.encode().len() - empty;
    let fit = (MAX_REVOCATION_LIST_LEN - empty - signature) / each;
    list.revoked = (1..=fit as u32).map(one).collect();
    list.sort();
    let message = Purpose::Revocation.message(&deployment, &list.statement());
    let drawn: Vec<_> =
        keys[..2].iter().map(|keys| keys.ainq().share().commit(&mut world.rng).unwrap()).collect();
    let package = SigningPackage::new(0, message, [(1, drawn[0].1), (2, drawn[1].1)]).unwrap();
    let shares = keys.iter().zip(drawn);
    let shares = shares
        .map(|(keys, (nonces, _))| (keys.kgc(), keys.ainq().share().sign(nonces, &package).unwrap()))
        .collect();
    let signature = keys[0].ainq().public().aggregate_statement(&package, &shares).unwrap();
    SignedRevocationList::new(list, signature).unwrap()
}

#[test]
fn a_drone_too_many_is_proposed_to_nobody_and_the_operator_is_told() {
    let mut world = quorum(17, 3, 2);
    let full = full_list(&mut world).encode();
    for id in world.ids() {
        world.command(id, QuorumCommand::TakeRevocations(full.clone()));
        assert_eq!(list(&world, id).number, 1, "it holds the longest list there is");
    }
    world.command_all(&revoke(&[0xFF]));
    world.run_for(Duration::from_secs(60));
    for id in world.ids() {
        assert!(world.events(id).contains(&QuorumEvent::TooMany), "{id} says so");
        assert_eq!(list(&world, id).number, 1);
    }
}

fn about(world: &mut World, kind: &str, name: Name, parameters: Vec<u8>) -> AuthorityStatement<S> {
    AuthorityStatement {
        kind: Name::new(kind).unwrap(),
        name,
        scheme: Name::new("bf-fullident-bls12381").unwrap(),
        delivery: *world.node(1).deployment().unwrap().master(),
        schema: Vec::new(),
        parameters,
    }
}

#[test]
fn parameters_need_t_operators_but_a_members_own_part_in_ibe_does_not() {
    let mut world = quorum(7, 3, 2);
    let shares = holdings(&world)[0].ibe().public().encode();
    let signed =
        |world: &World, id| {
            world.events(id).iter().rev().find_map(
                matching!(QuorumEvent::Signed { body, signature } => (body.clone(), signature.clone())),
            )
        };
    let statement = about(&mut world, "ibe", ibe_name(2).unwrap(), shares.clone());
    let approved = world.stored(2).remove(&2);
    world.command(2, QuorumCommand::Propose(statement.body()));
    world.until("it is signed", |world| signed(world, 2).is_some());
    assert_eq!(world.stored(2).remove(&2), approved, "no operator has said anything");
    let (body, signature) = signed(&world, 2).unwrap();
    let signature = StatementSignature::<S>::decode(&signature).unwrap();
    assert_eq!(body, statement.body());
    let authority = SignedAuthority::new(statement, signature).unwrap();
    assert!(authority.verify(world.node(1).deployment().unwrap()).is_ok());
    // Neither another's part, nor other shares, nor another kind, scheme or delivery point.
    let own = about(&mut world, "ibe", ibe_name(2).unwrap(), shares.clone());
    let delivery = SecretScalar::<S>::generate(&mut world.rng).public();
    let wrong = [
        AuthorityStatement { scheme: Name::new("boneh-franklin").unwrap(), ..own.clone() },
        AuthorityStatement { delivery, ..own },
        about(&mut world, "ibe", ibe_name(3).unwrap(), shares.clone()),
        about(&mut world, "ibe", ibe_name(2).unwrap(), shares[1..].to_vec()),
        about(&mut world, "abe", Name::new("orders").unwrap(), shares),
    ];
    for statement in wrong {
        assert_eq!(
            answer(&mut world, 0, "parameters", statement.body()),
            Some(SignRefusalReason::NotApproved)
        );
        world.command(1, QuorumCommand::Approve(approval(&statement.body())));
        assert_eq!(answer(&mut world, 0, "parameters", statement.body()), None);
        world.command(1, QuorumCommand::Withdraw(approval(&statement.body())));
        assert!(answer(&mut world, 0, "parameters", statement.body()).is_some());
    }
}

#[test]
fn policies_of_admission_need_t_operators_and_are_signed_as_nothing_else() {
    use SignRefusalReason as Why;
    let mut world = quorum(8, 3, 2);
    let body = |first: &[u8]| Writer::new().lp(first).lp(b"x < 5").finish();
    let policy = body(b"abke-policy");
    assert_eq!(answer(&mut world, 0, "abke-policy", policy.clone()), Some(Why::NotApproved));
    world.command(1, QuorumCommand::Approve(approval(&policy)));
    assert_eq!(answer(&mut world, 0, "abke-policy", policy.clone()), None);
    assert_eq!(answer(&mut world, 0, "parameters", policy.clone()), Some(Why::NotApproved));
    // A body that is no policy is not signed as one, approved or not.
    let other = body(b"authority");
    world.command(1, QuorumCommand::Approve(approval(&other)));
    assert_eq!(answer(&mut world, 0, "abke-policy", other), Some(Why::NotApproved));
    world.command(2, QuorumCommand::Propose(policy.clone()));
    let signed = |world: &World| {
        world
            .events(2)
            .iter()
            .find_map(matching!(QuorumEvent::Signed { body, signature } => (body.clone(), signature.clone())))
    };
    world.until("it is signed", |world| signed(world).is_some());
    let (body, signature) = signed(&world).unwrap();
    let signature = StatementSignature::<S>::decode(&signature).unwrap();
    assert_eq!(body, policy);
    assert!(signature.verify(world.node(1).deployment().unwrap(), Purpose::AbkePolicy, &policy).is_ok());
}

/// A leader's key under the quorum's, issued by t members.
fn two_headers(world: &mut World) -> ([u8; 16], [Header<S>; 2]) {
    let keys = holdings(world);
    let deployment = world.node(1).deployment().unwrap().clone();
    let name = |text: &str| Name::new(text).unwrap();
    let role = Role::Leader { group: name("alpha"), ordinal: 3 };
    let identity = Identity {
        serial: [1; 16],
        name: name("drone"),
        role,
        groups: vec![name("alpha")],
        not_after: START * 2,
    };
    let secret = SecretValue::generate(&mut world.rng);
    let message = identity_statement(&deployment, &identity.encode(), &secret.public());
    let drawn: Vec<_> =
        keys[..2].iter().map(|keys| keys.ainq().share().commit(&mut world.rng).unwrap()).collect();
    let commitments = [(1, drawn[0].1), (2, drawn[1].1)];
    let package = SigningPackage::new(0, message, commitments).unwrap();
    let shares = keys.iter().zip(drawn);
    let shares = shares
        .map(|(keys, (nonces, _))| (keys.kgc(), keys.ainq().share().sign(nonces, &package).unwrap()))
        .collect();
    let partial = keys[0].ainq().public().aggregate_partial_key(&package, &shares).unwrap();
    let leader = partial.verify(&deployment, &identity, &secret).unwrap();
    let times = Times { issued_at: START, valid_until: START + 600, revocation_number: 0 };
    let mut header = || {
        let context = GroupContext {
            deployment: deployment.clone(),
            group: name("alpha"),
            leader: leader.public().clone(),
        };
        let none = Default::default();
        let (mut leadership, _) = Leadership::open_term(
            context,
            &leader,
            Roster::new(),
            &none,
            65_539,
            [0; 32],
            &times,
            StrategyKind::Flat,
            &mut world.rng,
        )
        .unwrap();
        leadership.rekey(&leader, Batch::default(), &times, &mut world.rng).unwrap().header
    };
    (leader.public().identity.serial, [header(), header()])
}

#[test]
fn a_proof_of_equivocation_revokes_without_any_operator() {
    let mut world = quorum(8, 3, 2);
    let (serial, [first, second]) = two_headers(&mut world);
    let deployment = world.node(1).deployment().unwrap().clone();
    let encode = |first: &Header<S>, second: &Header<S>| {
        let proof = EquivocationProof { first: first.clone(), second: second.clone() };
        Message::EquivocationProof(Box::new(proof)).encode(&deployment)
    };
    world.command(2, QuorumCommand::Prove(encode(&first, &first)));
    world.run_for(Duration::from_secs(60));
    assert!(world.ids().iter().all(|id| list(&world, *id).number == 0), "one header proves nothing");
    world.command(2, QuorumCommand::Prove(encode(&first, &second)));
    world.until("the leader is revoked", |world| {
        world.ids().iter().all(|id| list(world, *id).names_serial(&serial))
    });
    check_lists(&world);
}

/// A refusal in the place of what a member sent, or behind it.
fn refusal(packet: &Packet, session: [u8; 16]) -> Packet {
    let refusal = SignRefusal { session, reason: SignRefusalReason::UnknownSession, number: 0 };
    Packet { message: QuorumMessage::SignRefusal(refusal), ..packet.clone() }
}

#[test]
fn no_member_that_commits_itself_and_refuses_stops_a_list() {
    type Veto = fn(Packet) -> Vec<Packet>;
    let vetoes: [(&str, Veto); 3] = [
        ("in place of its share", |packet| match &packet.message {
            QuorumMessage::SignShare(share) => vec![refusal(&packet, share.session)],
            _ => vec![packet],
        }),
        ("behind its commitment", |packet| match &packet.message {
            QuorumMessage::SignCommitment(commitment) => {
                let refusal = refusal(&packet, commitment.session);
                vec![packet, refusal]
            }
            _ => vec![packet],
        }),
        ("behind its share", |packet| match &packet.message {
            QuorumMessage::SignShare(share) => {
                let refusal = refusal(&packet, share.session);
                vec![packet, refusal]
            }
            _ => vec![packet],
        }),
    ];
    for (veto, tamper) in vetoes {
        // As many as may be dishonest, if t of n are to sign.
        for dishonest in [1, 2] {
            let mut world = quorum(9, 5, 3);
            for kgc in 1..=dishonest {
                // They answer sooner than the others, and coordinate nothing.
                world.network.set_faults_of(kgc, Some(quiver_testbed::LinkFaults::INSTANT));
            }
            world.set_tamper(Box::new(move |packet| match &packet.message {
                _ if packet.from > dishonest => vec![packet],
                QuorumMessage::SignProposal(_) => Vec::new(),
                _ => tamper(packet),
            }));
            // Their operators want the revocation too, or they would refuse at once and not be waited for.
            for id in 1..=5 {
                world.command(id, revoke(&[7]));
            }
            world.run_for(Duration::from_secs(200));
            for id in dishonest + 1..=5 {
                assert!(
                    list(&world, id).names_serial(&[7; 16]),
                    "{veto}, {dishonest} of them: at member {id}"
                );
            }
        }
    }
}
