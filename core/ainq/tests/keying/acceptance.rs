//! Refusals of an edge: forged, replayed, foreign and corrupted headers and entries.

use quiver_ainq::{
    Batch, Deployment, DroneKeypair, Element, Entry, Epoch, EpochPart, EquivocationProof, Error,
    GroupMembership, Header, Identity, Label, Leadership, MAX_SLOTS, RevocationStatement, Revoked, Role,
    SecretScalar, SecretValue, SlotRun, SlotSet, SparePair, SpareStatement, StrategyKind, Suite,
    VerifiedHeader,
};

use crate::swarm::{Broadcast, NOW, Swarm, context_of, leader_role, name, times};

for_each_suite! {
    corrupting_any_one_thing_is_noticed_and_changes_nothing;
    only_the_leader_of_this_group_and_ordinal_is_believed;
    a_broadcast_forged_from_public_keys_is_refused;
    old_foreign_expired_and_revoked_headers_are_refused;
    a_term_may_be_a_million_rounds_ahead_and_no_further;
    rounds_and_counters_have_an_end;
    a_height_fits_the_strategy;
    slots_are_listed_or_have_their_digest_and_never_both;
    entries_and_memberships_name_slots_that_a_group_has;
    another_members_entry_is_of_no_use;
    a_header_of_another_deployment_is_refused;
    headers_and_entries_survive_encoding;
    two_headers_for_one_epoch_convict_the_leader;
    two_headers_under_two_keys_of_one_serial_convict_the_leader;
    a_spare_statement_holds_for_one_member_and_group;
    a_terms_opening_needs_the_spare_it_names;
    a_welcome_needs_its_own_ephemeral_secret;
}

fn verify<S: Suite>(swarm: &Swarm<S>, header: &Header<S>) -> Result<VerifiedHeader<S>, Error> {
    let member = swarm.edges[0].membership.as_ref().unwrap();
    let none = RevocationStatement::empty();
    header.clone().verify(&swarm.deployment, &name("alpha"), Some(member.epoch()), &none, NOW)
}

/// The whole of acceptance, from bytes to the next state.
fn accept<S: Suite>(
    swarm: &Swarm<S>,
    header: &Header<S>,
    entry: &Entry,
) -> Result<GroupMembership<S>, Error> {
    let edge = &swarm.edges[0];
    let header = Header::decode(&header.encode(&swarm.deployment), &swarm.deployment)?;
    let entry = Entry::decode(&entry.encode())?;
    let header = verify(swarm, &header)?;
    let member = edge.membership.as_ref().unwrap();
    member.advance(&swarm.context(), &edge.keypair, Some(&edge.spare), &header, &EpochPart::Entry(entry))
}

fn sign<S: Suite>(swarm: &mut Swarm<S>, by: &DroneKeypair<S>, header: &Header<S>) -> Header<S> {
    let digest = header.digest(&swarm.deployment);
    let signature = by.sign(&swarm.deployment, Label::Header, &digest, &mut swarm.rng);
    Header { signature, ..header.clone() }
}

type Corruption<S> = (&'static str, Box<dyn Fn(&mut Header<S>, &mut Entry)>);

fn corruptions<S: Suite>(swarm: &mut Swarm<S>) -> Vec<Corruption<S>> {
    let point = SecretScalar::<S>::generate(&mut swarm.rng).public();
    let other = swarm.enrol(leader_role("alpha", 1)).public().clone();
    let forged = swarm.edges[0].keypair.sign(&swarm.deployment, Label::Header, b"x", &mut swarm.rng);
    let wrong_label = {
        let digest = swarm.last().header.digest(&swarm.deployment);
        swarm.leader.sign(&swarm.deployment, Label::Welcome, &digest, &mut swarm.rng)
    };
    vec![
        ("group", Box::new(|h, _| h.core.group = name("beta"))),
        ("leader", Box::new(move |h, _| h.core.leader = other.clone())),
        ("leader's ordinal", Box::new(|h, _| h.core.leader.identity.role = leader_role("alpha", 2))),
        ("term", Box::new(|h, _| h.core.epoch.term += 1 << 16)),
        ("counter", Box::new(|h, _| h.core.epoch.counter += 1)),
        ("prev", Box::new(|h, _| h.core.prev[0] ^= 1)),
        ("nonce", Box::new(|h, _| h.core.nonce[31] ^= 1)),
        ("issued_at", Box::new(|h, _| h.core.issued_at -= 1)),
        ("valid_until", Box::new(|h, _| h.core.valid_until += 1)),
        ("strategy", Box::new(|h, _| h.core.strategy = StrategyKind::Tree)),
        ("V", Box::new(move |h, _| h.core.point = h.core.point.map(|_| point))),
        ("height", Box::new(|h, _| h.core.height = 1)),
        ("removed", Box::new(|h, _| h.core.removed = SlotSet::from_iter([9]))),
        ("added", Box::new(|h, _| h.core.added = SlotSet::from_iter([9]))),
        ("changes", Box::new(|h, _| h.core.changes = Some([9; 32]))),
        ("absent", Box::new(|h, _| h.core.absent = SlotSet::from_iter([9]))),
        ("roster_hash", Box::new(|h, _| h.core.roster_hash[7] ^= 0x80)),
        ("revocation number", Box::new(|h, _| h.core.revocation_number += 1)),
        ("entries_root", Box::new(|h, _| h.entries_root[0] ^= 1)),
        ("tag", Box::new(|h, _| h.tag[0] ^= 1)),
        ("signature", Box::new(move |h, _| h.signature = forged)),
        ("label", Box::new(move |h, _| h.signature = wrong_label)),
        ("slot", Box::new(|_, e| e.slot += 1)),
        ("q", Box::new(|_, e| e.q = Some(e.q.map_or(1, |q| q + 1)))),
        ("first bit of wrap", Box::new(|_, e| e.wrap[0] ^= 0x80)),
        ("last bit of wrap", Box::new(|_, e| e.wrap[31] ^= 1)),
    ]
}

fn corrupting_any_one_thing_is_noticed_and_changes_nothing<S: Suite>() {
    let mut swarm = Swarm::<S>::formed(21, 2);
    swarm.rekey_undelivered(&[], vec![]);
    one_by_one(&mut swarm);
    swarm.add_edge();
    swarm.rekey_undelivered(&[2], vec![]);
    one_by_one(&mut swarm);
    swarm.open_undelivered(&[0, 1]);
    one_by_one(&mut swarm);
}

fn one_by_one<S: Suite>(swarm: &mut Swarm<S>) {
    let broadcast = swarm.last().clone();
    let before = swarm.edges[0].membership.as_ref().unwrap().encode();
    for (what, corrupt) in corruptions(swarm) {
        let (mut header, mut entry) = (broadcast.header.clone(), broadcast.entries[0].clone());
        corrupt(&mut header, &mut entry);
        if what == "V" && header.core.point.is_none() {
            continue;
        }
        assert!(accept(swarm, &header, &entry).is_err(), "{what}");
        assert_eq!(swarm.edges[0].membership.as_ref().unwrap().encode(), before, "{what}");
    }
    accept(swarm, &broadcast.header, &broadcast.entries[0]).unwrap();
    swarm.deliver(0).unwrap();
    assert!(swarm.agrees(0));
}

fn only_the_leader_of_this_group_and_ordinal_is_believed<S: Suite>() {
    let mut swarm = Swarm::<S>::formed(22, 2);
    swarm.rekey_undelivered(&[], vec![]);
    let header = swarm.last().header.clone();
    let pretenders = [Role::Edge, leader_role("beta", 1), leader_role("alpha", 2), leader_role("alpha", 0)];
    for role in pretenders {
        let pretender = swarm.enrol(role);
        let mut forged = header.clone();
        forged.core.leader = pretender.public().clone();
        let forged = sign(&mut swarm, &pretender, &forged);
        assert_eq!(verify(&swarm, &forged).unwrap_err(), Error::NotALeader);
    }
    // A namesake of the leader, properly enrolled, signs; but the pairwise keys are with the one that opened
    // the term.
    let namesake = swarm.enrol(leader_role("alpha", 1));
    let mut forged = header.clone();
    forged.core.leader = namesake.public().clone();
    let forged = sign(&mut swarm, &namesake, &forged);
    let entry = swarm.last().entries[0].clone();
    assert_eq!(accept(&swarm, &forged, &entry).unwrap_err(), Error::NotALeader);
    let mut edge_as_leader = header;
    edge_as_leader.core.leader.identity.role = Role::Edge;
    let refused = verify(&swarm, &edge_as_leader).unwrap_err();
    assert_eq!(refused, Error::InvalidSignature);
}

fn a_broadcast_forged_from_public_keys_is_refused<S: Suite>() {
    let mut swarm = Swarm::<S>::formed(23, 1);
    // The forger runs the protocol itself, with its own secret l, for the real members and their real spare
    // points.
    let forger = swarm.enrol(leader_role("alpha", 1));
    let spare = [(0, (swarm.edges[0].spare.q(), *swarm.edges[0].spare.point()))];
    let (_, output) = Leadership::open_term(
        context_of(&swarm.deployment, &forger),
        &forger,
        swarm.leadership.roster().clone(),
        &spare.into_iter().collect(),
        9 << 16 | 1,
        [0; 32],
        &times(),
        StrategyKind::Flat,
        &mut swarm.rng,
    )
    .unwrap();
    // Everything fits but who signed it: the real leader did not, a drone that is no leader must not.
    let mut as_leader = output.header.clone();
    as_leader.core.leader = swarm.leader.public().clone();
    assert_eq!(accept(&swarm, &as_leader, &output.entries[0]).unwrap_err(), Error::InvalidSignature);
    let insider = swarm.enrol(Role::Edge);
    let mut as_insider = output.header.clone();
    as_insider.core.leader = insider.public().clone();
    let as_insider = sign(&mut swarm, &insider, &as_insider);
    assert_eq!(accept(&swarm, &as_insider, &output.entries[0]).unwrap_err(), Error::NotALeader);
    // Without a certified role there is nothing to forge with: this one the KGC did make a leader.
    assert!(accept(&swarm, &output.header, &output.entries[0]).is_ok());
}

fn old_foreign_expired_and_revoked_headers_are_refused<S: Suite>() {
    let mut swarm = Swarm::<S>::formed(24, 1);
    let old = swarm.last().header.clone();
    swarm.expire();
    assert_eq!(verify(&swarm, &old).unwrap_err(), Error::Stale);
    let current = swarm.last().header.clone();
    assert_eq!(verify(&swarm, &current).unwrap_err(), Error::Stale);
    swarm.rekey_undelivered(&[], vec![]);
    let next = swarm.last().header.clone();
    let (deployment, alpha, none) = (swarm.deployment.clone(), name("alpha"), RevocationStatement::empty());
    let at = |group, revocations: &RevocationStatement, now| {
        next.clone().verify(&deployment, &group, None, revocations, now).map(drop)
    };
    assert_eq!(at(name("beta"), &none, NOW), Err(Error::WrongGroup));
    assert_eq!(at(alpha.clone(), &none, NOW), Ok(()));
    assert_eq!(at(alpha.clone(), &none, next.core.valid_until - 1), Ok(()));
    assert_eq!(at(alpha.clone(), &none, next.core.valid_until), Err(Error::Expired));
    let serial = swarm.leader.public().identity.serial;
    let by_serial =
        RevocationStatement { revoked: vec![Revoked::unknown(serial)], ..RevocationStatement::empty() };
    assert_eq!(at(alpha, &by_serial, NOW), Err(Error::Revoked));
    // The signature is looked at before role, revocation and validity: an outsider learns nothing about
    // those.
    let mut unsigned = next.clone();
    unsigned.tag[0] ^= 1;
    let refused = unsigned.verify(&swarm.deployment, &name("alpha"), None, &by_serial, u64::MAX);
    assert_eq!(refused.unwrap_err(), Error::InvalidSignature);
}

/// The newest header under another epoch, signed by the leader.
fn signed_at<S: Suite>(swarm: &mut Swarm<S>, epoch: Epoch) -> Header<S> {
    let mut header = swarm.last().header.clone();
    header.core.epoch = epoch;
    let leader = swarm.leader_again();
    sign(swarm, &leader, &header)
}

fn a_term_may_be_a_million_rounds_ahead_and_no_further<S: Suite>() {
    let mut swarm = Swarm::<S>::formed(33, 1);
    swarm.rekey_undelivered(&[], vec![]);
    let header = signed_at(&mut swarm, Epoch { term: Epoch::term_of(5 + (1 << 20), 1), counter: 2 });
    let after = |round, ordinal| {
        let newest = Epoch { term: Epoch::term_of(round, ordinal), counter: 7 };
        let none = RevocationStatement::empty();
        header.clone().verify(&swarm.deployment, &name("alpha"), Some(newest), &none, NOW).map(drop)
    };
    assert_eq!(after(5, 0), Ok(()));
    assert_eq!(after(4, u16::MAX), Err(Error::TermTooFar));
}

fn rounds_and_counters_have_an_end<S: Suite>() {
    let mut swarm = Swarm::<S>::formed(34, 1);
    swarm.rekey_undelivered(&[], vec![]);
    let mut at = |round, counter| {
        let header = signed_at(&mut swarm, Epoch { term: Epoch::term_of(round, 1), counter });
        let none = RevocationStatement::empty();
        header.verify(&swarm.deployment, &name("alpha"), None, &none, NOW).map(drop)
    };
    assert_eq!(at(1 << 46, 1 << 48), Ok(()));
    assert_eq!(at((1 << 46) + 1, 2), Err(Error::Malformed("epoch")));
    assert_eq!(at(1, (1 << 48) + 1), Err(Error::Malformed("epoch")));
}

fn a_height_fits_the_strategy<S: Suite>() {
    let mut swarm = Swarm::<S>::formed(35, 1);
    let mut header = swarm.open_undelivered(&[0]).header;
    let deployment = &swarm.deployment;
    let mut decoded = |strategy, height| {
        header.core.strategy = strategy;
        header.core.height = height;
        Header::decode(&header.encode(deployment), deployment).map(drop)
    };
    let malformed = Err(Error::Malformed("header"));
    assert_eq!(decoded(StrategyKind::Flat, 0), Ok(()));
    assert_eq!(decoded(StrategyKind::Flat, 1), malformed);
    for height in 0..=22 {
        let fits = (1..=20).contains(&height);
        let expected = if fits { Ok(()) } else { malformed.clone() };
        assert_eq!(decoded(StrategyKind::Tree, height), expected, "{height}");
    }
}

fn slots_are_listed_or_have_their_digest_and_never_both<S: Suite>() {
    let mut swarm = Swarm::<S>::formed_by(StrategyKind::Tree, 37, 2);
    let tree = swarm.rekey_undelivered(&[], vec![]).0.header;
    let opening = swarm.open_undelivered(&[0]).header;
    let mut flat = Swarm::<S>::formed(38, 2);
    let flat_rekey = flat.rekey_undelivered(&[], vec![]).0.header;
    let decoded = |deployment: &Deployment<S>, header: &Header<S>, change: &dyn Fn(&mut Header<S>)| {
        let mut header = header.clone();
        change(&mut header);
        Header::decode(&header.encode(deployment), deployment).map(|decoded| {
            assert_eq!(decoded.digest(deployment), header.digest(deployment));
            assert_eq!(decoded.core.changes, header.core.changes);
        })
    };
    let apart = |runs: u32| (0..runs).map(|number| 2 * number).collect::<SlotSet>();
    let malformed = Err(Error::Malformed("header"));
    let of_tree = |change: &dyn Fn(&mut Header<S>)| decoded(&swarm.deployment, &tree, change);
    assert_eq!(of_tree(&|header| header.core.changes = Some([1; 32])), Ok(()));
    assert_eq!(of_tree(&|header| header.core.removed = apart(32)), Ok(()));
    assert_eq!(of_tree(&|header| header.core.removed = apart(33)), malformed);
    for both in [0, 1] {
        assert_eq!(
            of_tree(&|header| {
                header.core.changes = Some([1; 32]);
                *[&mut header.core.removed, &mut header.core.added][both] = apart(1);
            }),
            malformed
        );
    }
    // Others list all, for their members have nothing else.
    let digest = |header: &mut Header<S>| header.core.changes = Some([1; 32]);
    assert_eq!(decoded(&swarm.deployment, &opening, &digest), malformed);
    assert_eq!(decoded(&flat.deployment, &flat_rekey, &digest), malformed);
    assert_eq!(decoded(&flat.deployment, &flat_rekey, &|header| header.core.removed = apart(33)), Ok(()));
}

fn entries_and_memberships_name_slots_that_a_group_has<S: Suite>() {
    let swarm = Swarm::<S>::formed(36, 1);
    let entry = |slot| Entry { slot, q: Some(1), wrap: [1; 32] };
    assert_eq!(Entry::decode(&entry(MAX_SLOTS - 1).encode()), Ok(entry(MAX_SLOTS - 1)));
    assert_eq!(Entry::decode(&entry(MAX_SLOTS).encode()), Err(Error::WrongSlot));
    let state = swarm.edges[0].membership.as_ref().unwrap().encode();
    // lp(suite) ‖ lp(group) ‖ leader's handle ‖ strategy, and then the slot.
    let place = 4 + S::ID.len() + 4 + "alpha".len() + 32 + 1;
    let restored = |slot: u32| {
        let mut state = state.to_vec();
        assert_eq!(state[place..place + 4], [0; 4]);
        state[place..place + 4].copy_from_slice(&slot.to_be_bytes());
        GroupMembership::<S>::restore(&state).map(|member| member.slot())
    };
    assert_eq!(restored(MAX_SLOTS - 1), Ok(MAX_SLOTS - 1));
    assert_eq!(restored(MAX_SLOTS), Err(Error::WrongSlot));
}

fn another_members_entry_is_of_no_use<S: Suite>() {
    let mut swarm = Swarm::<S>::formed(25, 2);
    swarm.rekey_undelivered(&[], vec![]);
    let broadcast = swarm.last().clone();
    let theirs = broadcast.entries[1].clone();
    assert_eq!(accept(&swarm, &broadcast.header, &theirs).unwrap_err(), Error::WrongSlot);
    let relabelled = Entry { slot: 0, ..theirs };
    assert_eq!(accept(&swarm, &broadcast.header, &relabelled).unwrap_err(), Error::WrongTag);
    // An insider knows K_g, so it can wrap another key for its neighbour; the tag gives it away.
    let mut swapped = broadcast.entries[0].clone();
    swapped.wrap.iter_mut().for_each(|byte| *byte ^= 0x5a);
    assert_eq!(accept(&swarm, &broadcast.header, &swapped).unwrap_err(), Error::WrongTag);
    // Removed members learn it from the header.
    swarm.rekey_undelivered(&[], vec![0]);
    let broadcast = swarm.last().clone();
    let entry = Entry { slot: 0, ..broadcast.entries[0].clone() };
    assert_eq!(accept(&swarm, &broadcast.header, &entry).unwrap_err(), Error::Removed);
}

fn a_header_of_another_deployment_is_refused<S: Suite>() {
    let swarm = Swarm::<S>::formed(26, 1);
    let other = Swarm::<S>::formed(27, 1);
    let header = &other.last().header;
    assert_eq!(verify(&swarm, header).unwrap_err(), Error::Stale);
    let refused =
        header.clone().verify(&swarm.deployment, &name("alpha"), None, &RevocationStatement::empty(), NOW);
    assert_eq!(refused.unwrap_err(), Error::InvalidSignature);
    let bytes = header.encode(&other.deployment);
    assert_eq!(Header::decode(&bytes, &swarm.deployment).unwrap_err(), Error::WrongDeployment);
}

fn headers_and_entries_survive_encoding<S: Suite>() {
    let mut swarm = Swarm::<S>::formed(28, 3);
    swarm.remove(1);
    swarm.open(&[0]);
    for broadcast in &swarm.broadcasts {
        let bytes = broadcast.header.encode(&swarm.deployment);
        let decoded = Header::decode(&bytes, &swarm.deployment).unwrap();
        assert_eq!(decoded.encode(&swarm.deployment), bytes);
        assert_eq!(decoded.digest(&swarm.deployment), broadcast.header.digest(&swarm.deployment));
        for cut in 0..bytes.len() {
            assert!(Header::decode(&bytes[..cut], &swarm.deployment).is_err());
        }
        let longer = [bytes.as_slice(), &[0]].concat();
        assert!(Header::decode(&longer, &swarm.deployment).is_err());
        for entry in &broadcast.entries {
            assert_eq!(&Entry::decode(&entry.encode()).unwrap(), entry);
        }
    }
    let mut tree = swarm.last().header.clone();
    tree.core.strategy = StrategyKind::Tree;
    let bytes = tree.encode(&swarm.deployment);
    assert_eq!(Header::decode(&bytes, &swarm.deployment).unwrap_err(), Error::Malformed("header"));
    let mut crooked = swarm.last().header.clone();
    crooked.core.removed = SlotSet::from_runs([SlotRun { start: 1, len: 1 }]).unwrap();
    let bytes = crooked.encode(&swarm.deployment);
    assert_eq!(Header::decode(&bytes, &swarm.deployment).unwrap_err(), Error::Malformed("header"));
}

fn two_headers_for_one_epoch_convict_the_leader<S: Suite>() {
    let mut swarm = Swarm::<S>::formed(29, 1);
    let first = swarm.last().header.clone();
    let mut second = first.clone();
    second.tag[0] ^= 1;
    let leader = swarm.leader_again();
    let second = sign(&mut swarm, &leader, &second);
    let judge = |first: &Header<S>, second: &Header<S>, swarm: &Swarm<S>| {
        let proof = EquivocationProof { first: first.clone(), second: second.clone() };
        proof.verify(&swarm.deployment, &name("alpha"))
    };
    assert_eq!(judge(&first, &second, &swarm).unwrap().handle(), leader.public().handle());
    // The same header signed twice is none, nor are two epochs, nor is a forgery.
    let again = sign(&mut swarm, &leader, &first);
    let harmless = Error::Malformed("headers that do not contradict each other");
    assert_eq!(judge(&first, &again, &swarm).unwrap_err(), harmless);
    swarm.expire();
    assert_eq!(judge(&first, &swarm.last().header, &swarm).unwrap_err(), harmless);
    let mut forged = first.clone();
    forged.tag[1] ^= 1;
    assert_eq!(judge(&first, &forged, &swarm).unwrap_err(), Error::InvalidSignature);
    // A header of another group proves nothing in this one, whichever of the two it is.
    let mut foreign = second;
    foreign.core.group = name("beta");
    let foreign = sign(&mut swarm, &leader, &foreign);
    assert_eq!(judge(&first, &foreign, &swarm).unwrap_err(), Error::WrongGroup);
    assert_eq!(judge(&foreign, &first, &swarm).unwrap_err(), Error::WrongGroup);
}

fn two_headers_under_two_keys_of_one_serial_convict_the_leader<S: Suite>() {
    let mut swarm = Swarm::<S>::formed(29, 1);
    let first = swarm.last().header.clone();
    let identity = swarm.leader.public().identity.clone();
    let another = |swarm: &mut Swarm<S>, identity: &Identity| {
        let secret = SecretValue::generate(&mut swarm.rng);
        let partial =
            swarm.master.issue_partial_key(&swarm.deployment, identity, &secret.public(), &mut swarm.rng);
        partial.verify(&swarm.deployment, identity, &secret).unwrap()
    };
    let convicted = |swarm: &mut Swarm<S>, by: &DroneKeypair<S>| {
        let mut second = first.clone();
        second.core.leader = by.public().clone();
        let second = sign(swarm, by, &second);
        EquivocationProof { first: first.clone(), second }.verify(&swarm.deployment, &name("alpha"))
    };
    let second_key = another(&mut swarm, &identity);
    assert_ne!(second_key.public().handle(), swarm.leader.public().handle());
    // The key that it names makes no difference: the serial is the drone.
    assert_eq!(convicted(&mut swarm, &second_key).unwrap().identity.serial, identity.serial);
    // Another drone of the same name and role proves nothing against this one.
    let other = Identity { serial: [9; 16], ..identity };
    let other = another(&mut swarm, &other);
    let harmless = Error::Malformed("headers that do not contradict each other");
    assert_eq!(convicted(&mut swarm, &other).unwrap_err(), harmless);
}

fn a_spare_statement_holds_for_one_member_and_group<S: Suite>() {
    let mut swarm = Swarm::<S>::new(30, 2);
    let alpha = name("alpha");
    let pair = SparePair::<S>::generate(7, &mut swarm.rng);
    let keypair = &swarm.edges[0].keypair;
    let statement = pair.statement(keypair, &swarm.deployment, &alpha, &mut swarm.rng);
    let check = |statement: &SpareStatement<S>, group: &str, index: usize| {
        statement.verify(&swarm.deployment, &name(group), swarm.edges[index].keypair.public())
    };
    assert_eq!(check(&statement, "alpha", 0), Ok(()));
    assert_eq!(check(&statement, "beta", 0), Err(Error::InvalidSignature));
    assert_eq!(check(&statement, "alpha", 1), Err(Error::InvalidSignature));
    let other_q = SpareStatement { q: 8, ..statement };
    assert_eq!(check(&other_q, "alpha", 0), Err(Error::InvalidSignature));
    let other_point: Element<S> = keypair.implicit();
    let other_point = SpareStatement { point: other_point, ..statement };
    assert_eq!(check(&other_point, "alpha", 0), Err(Error::InvalidSignature));
    let restored = SparePair::<S>::decode(&pair.encode()).unwrap();
    assert_eq!((restored.q(), restored.point()), (pair.q(), pair.point()));
    assert!(SparePair::<S>::decode(&pair.encode()[1..]).is_err());
}

fn a_terms_opening_needs_the_spare_it_names<S: Suite>() {
    let mut swarm = Swarm::<S>::formed(31, 1);
    swarm.open_undelivered(&[0]);
    let broadcast = swarm.last().clone();
    let header = verify(&swarm, &broadcast.header).unwrap();
    let edge = &swarm.edges[0];
    let member = edge.membership.as_ref().unwrap();
    let part = EpochPart::Entry(broadcast.entries[0].clone());
    let try_with = |spare: Option<&SparePair<S>>| {
        member.advance(&swarm.context(), &edge.keypair, spare, &header, &part).map(drop)
    };
    assert_eq!(try_with(None), Err(Error::WrongSpare));
    let mut rng = swarm.rng.clone();
    assert_eq!(try_with(Some(&SparePair::generate(2, &mut rng))), Err(Error::WrongSpare));
    assert_eq!(try_with(Some(&SparePair::generate(1, &mut rng))), Err(Error::WrongTag));
    assert_eq!(try_with(Some(&edge.spare)), Ok(()));
}

fn a_welcome_needs_its_own_ephemeral_secret<S: Suite>() {
    let mut swarm = Swarm::<S>::new(32, 2);
    let (output, secrets) = swarm.rekey_undelivered(&[0, 1], vec![]);
    let broadcast = Broadcast::of(&output);
    let header = swarm.verified(&broadcast.header);
    let join = |index: usize, secret: &SecretScalar<S>, slot: usize| {
        let (context, keypair) = (swarm.context(), &swarm.edges[index].keypair);
        let part = EpochPart::Entry(broadcast.entries[slot].clone());
        GroupMembership::join(&context, keypair, secret, &header, &part).map(drop)
    };
    assert_eq!(join(0, &secrets[0], 0), Ok(()));
    assert_eq!(join(0, &secrets[1], 0), Err(Error::WrongTag));
    assert_eq!(join(1, &secrets[0], 0), Err(Error::WrongTag));
    assert_eq!(join(0, &secrets[0], 1), Err(Error::WrongTag));
    // An epoch that adds no member welcomes none.
    let batch = Batch::default();
    let expiry = swarm.leadership.rekey(&swarm.leader, batch, &times(), &mut swarm.rng).unwrap();
    let header = swarm.verified(&expiry.header);
    let (context, keypair) = (swarm.context(), &swarm.edges[0].keypair);
    let part = EpochPart::Entry(expiry.entries[0].clone());
    let refused = GroupMembership::join(&context, keypair, &secrets[0], &header, &part);
    assert_eq!(refused.map(drop), Err(Error::MissingEntry));
    assert!(Epoch { term: 1, counter: 9 } < Epoch { term: 2, counter: 1 });
}
