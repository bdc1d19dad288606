//! Acceptance in a tree: wraps and paths that are forged, changed, late, early or meant for others.

use quiver_ainq::{
    Delta, Entry, EpochKind, EpochPart, Error, GroupMembership, Header, Label, PathMessage, Ristretto255,
    Slot, SparePair, StrategyKind, Suite,
};

use crate::swarm::Swarm;

for_each_suite! {
    changing_any_byte_is_noticed_and_changes_nothing;
    wraps_are_taken_in_order_and_once;
    a_path_message_is_taken_once_and_by_its_addressee;
    a_path_of_the_epoch_held_mends_a_restart;
    wraps_are_bound_by_the_header;
    a_term_keeps_its_strategy;
    a_freed_slot_is_filled_again_in_the_same_epoch;
    masses_leave_and_join_in_one_epoch;
    an_epoch_that_lists_no_slots_shows_each_member_whether_it_is_out;
    nobody_else_can_show_a_member_that_it_is_out;
    the_tree_doubles_when_it_is_full;
    a_group_may_empty_and_fill_again;
    a_term_opens_by_entries_and_its_paths_follow;
    a_term_opens_by_wraps_and_paths_are_there_at_once;
    a_term_opens_by_a_path_alone;
    changed_wraps_of_an_opening_are_noticed_and_change_nothing;
    a_lost_path_message_costs_nothing_but_another;
    newcomers_follow_by_wraps_and_by_a_part_of_them;
    newcomers_that_follow_get_no_slot_that_is_freed_with_them;
    a_newcomer_takes_only_what_is_made_for_it;
}

fn formed<S: Suite>(seed: u64, edges: usize) -> Swarm<S> {
    Swarm::formed_by(StrategyKind::Tree, seed, edges)
}

fn tree_after<S: Suite>(seed: u64, edges: usize) -> Swarm<S> {
    let mut swarm = formed(seed, edges);
    swarm.expire();
    assert!((0..edges).all(|index| swarm.agrees(index)));
    swarm
}

/// Decodes a header and computes the next state, which is not kept.
fn accept<S: Suite>(swarm: &Swarm<S>, header: &[u8], part: &EpochPart) -> Result<GroupMembership<S>, Error> {
    let edge = &swarm.edges[0];
    let member = edge.membership.as_ref().unwrap();
    let header = Header::decode(header, &swarm.deployment)?;
    let alpha = crate::swarm::name("alpha");
    let none = quiver_ainq::RevocationStatement::empty();
    let header = header.verify(&swarm.deployment, &alpha, None, &none, crate::swarm::NOW)?;
    member.advance(&swarm.context(), &edge.keypair, Some(&edge.spare), &header, part)
}

fn everything_of<S: Suite>(swarm: &Swarm<S>) -> (Vec<u8>, Option<[u8; 8]>, bool) {
    let member = swarm.edges[0].membership.as_ref().unwrap();
    let shown = member.group_key().map(|key| key.fingerprint(member.digest()));
    (member.encode().to_vec(), shown, member.has_path())
}

fn changing_any_byte_is_noticed_and_changes_nothing<S: Suite>() {
    let mut swarm = tree_after::<S>(101, 5);
    // The neighbour goes: the member's own leaf wraps, and its whole path is fresh.
    let slot = swarm.slot(1);
    swarm.rekey_undelivered(&[], vec![slot]);
    let path = swarm.path_message(0).unwrap().encode();
    let header = swarm.last().header.encode(&swarm.deployment);
    let delta = swarm.last().wraps.as_ref().unwrap().whole().encode();
    let before = everything_of(&swarm);
    let with_delta =
        |header: &[u8], delta: &[u8]| accept(&swarm, header, &EpochPart::Delta(Delta::decode(delta)?));
    let with_path = |path: &[u8]| accept(&swarm, &header, &EpochPart::Path(PathMessage::decode(path)?));
    let every = if S::POINT_LEN == 32 { 1 } else { 5 };
    let changed = |bytes: &[u8], place: usize| {
        let mut bytes = bytes.to_vec();
        bytes[place] ^= 1 << (place % 8);
        bytes
    };
    for place in (0..header.len()).step_by(every) {
        assert!(with_delta(&changed(&header, place), &delta).is_err(), "header, byte {place}");
    }
    let refused = |error| matches!(error, Error::WrongWraps | Error::Malformed("wraps"));
    let branch = swarm.last().wraps.as_ref().unwrap().branch(swarm.slot(0)).encode();
    for wraps in [&delta, &branch] {
        for place in 0..wraps.len() {
            assert!(refused(with_delta(&header, &changed(wraps, place)).unwrap_err()), "byte {place}");
            assert!(refused(with_delta(&header, &wraps[..place]).unwrap_err()), "{place} bytes");
        }
        assert!(refused(with_delta(&header, &[&wraps[..], &[0]].concat()).unwrap_err()));
    }
    for place in 0..path.len() {
        assert!(with_path(&changed(&path, place)).is_err(), "path, byte {place}");
        assert!(with_path(&path[..place]).is_err(), "path, {place} bytes");
    }
    assert!(with_path(&[path.as_slice(), &[0]].concat()).is_err());
    assert_eq!(everything_of(&swarm), before);
    with_delta(&header, &delta).unwrap();
    with_path(&path).unwrap();
}

fn wraps_are_taken_in_order_and_once<S: Suite>() {
    let mut swarm = tree_after::<S>(102, 4);
    for _ in 0..3 {
        swarm.rekey_undelivered(&[], vec![]);
    }
    let [first, second, third] = swarm.broadcasts.last_chunk().unwrap().clone();
    assert_eq!(swarm.deliver_one(0, &second), Err(Error::Gap));
    assert_eq!(swarm.deliver_one(0, &third), Err(Error::Gap));
    swarm.deliver_one(0, &first).unwrap();
    assert_eq!(swarm.deliver_one(0, &first), Err(Error::Stale));
    assert_eq!(swarm.deliver_one(0, &third), Err(Error::Gap));
    swarm.deliver_one(0, &second).unwrap();
    swarm.deliver_one(0, &third).unwrap();
    assert_eq!(swarm.deliver_one(0, &second), Err(Error::Stale));
    assert!(swarm.agrees(0));
}

fn a_path_message_is_taken_once_and_by_its_addressee<S: Suite>() {
    let mut swarm = tree_after::<S>(103, 3);
    swarm.rekey_undelivered(&[], vec![]);
    let header = swarm.last().header.clone();
    let (own, others) = (swarm.path_message(0).unwrap(), swarm.path_message(1).unwrap());
    let next = swarm.path_message(0).unwrap();
    assert_ne!((own.r, own.encode()), (next.r, next.encode()), "no key seals two paths");
    assert_eq!(swarm.give(0, &header, &EpochPart::Path(others.clone())), Err(Error::WrongSlot));
    let mut relabelled = others;
    relabelled.slot = 0;
    assert_eq!(swarm.give(0, &header, &EpochPart::Path(relabelled)), Err(Error::SealBroken));
    let mut answer = own.clone();
    answer.r = [7; 16];
    assert_eq!(swarm.give(0, &header, &EpochPart::Path(answer)), Err(Error::SealBroken));
    swarm.give(0, &header, &EpochPart::Path(own.clone())).unwrap();
    assert!(swarm.agrees(0));
    assert_eq!(swarm.give(0, &header, &EpochPart::Path(own)), Err(Error::Stale));
    // It holds this epoch and its path: another is of no use.
    assert_eq!(swarm.give(0, &header, &EpochPart::Path(next.clone())), Err(Error::Stale));
    swarm.edges[0].membership.as_mut().unwrap().forget_key();
    swarm.give(0, &header, &EpochPart::Path(next)).unwrap();
    assert!(swarm.agrees(0));
    // Under the header of another epoch it does not open either.
    let late = swarm.path_message(0).unwrap();
    swarm.rekey_undelivered(&[], vec![]);
    let header = swarm.last().header.clone();
    assert_eq!(swarm.give(0, &header, &EpochPart::Path(late)), Err(Error::SealBroken));
    swarm.deliver(0).unwrap();
    assert!(swarm.agrees(0));
}

fn a_path_of_the_epoch_held_mends_a_restart<S: Suite>() {
    let mut swarm = tree_after::<S>(104, 3);
    let state = swarm.edges[0].membership.as_ref().unwrap().encode();
    let restored = GroupMembership::<S>::restore(&state).unwrap();
    assert!(!restored.synced() && !restored.has_path());
    assert_eq!((restored.follows(), &*restored.encode()), (StrategyKind::Tree, &*state));
    swarm.edges[0].membership = Some(restored);
    // As a version stored it whose trees had no seeds: what is stored has not changed.
    let mut former = state.to_vec();
    let code = former.len() - 125;
    assert_eq!(core::mem::replace(&mut former[code], 2), StrategyKind::Tree.code());
    assert_eq!(*GroupMembership::<S>::restore(&former).unwrap().encode(), *state);
    // The missed epochs cannot be followed without a path.
    let held = swarm.last().clone();
    assert_eq!(swarm.deliver_one(0, &held), Err(Error::Stale));
    swarm.catch_up(0).unwrap();
    assert!(swarm.agrees(0));
    let restored = GroupMembership::<S>::restore(&state).unwrap();
    swarm.edges[0].membership = Some(restored);
    swarm.rekey_undelivered(&[], vec![]);
    let missed = swarm.last().clone();
    assert_eq!(swarm.deliver_one(0, &missed), Err(Error::MissingPath));
    swarm.deliver(0).unwrap();
    assert!(swarm.agrees(0));
    swarm.expire();
    assert!((0..3).all(|index| swarm.agrees(index)));
}

fn wraps_are_bound_by_the_header<S: Suite>() {
    let mut swarm = tree_after::<S>(105, 4);
    let slot = swarm.slot(3);
    swarm.rekey_undelivered(&[], vec![slot]);
    let honest = swarm.last().clone();
    // An insider who knows all that one side of the tree knows wraps something else for the other side. K_g
    // and so the tag are unchanged; without entries_root this would pass.
    let mut bytes = honest.wraps.as_ref().unwrap().whole().encode();
    let inner = bytes.len() - 2 * 32;
    bytes[inner] ^= 1;
    let forged = EpochPart::Delta(Delta::decode(&bytes).unwrap());
    for index in 0..3 {
        assert_eq!(swarm.give(index, &honest.header, &forged), Err(Error::WrongWraps));
    }
    for bytes in [vec![], vec![0], vec![0xff; 200], vec![2 | 32, 0]] {
        assert_eq!(Delta::decode(&bytes), Err(Error::Malformed("wraps")));
    }
    // Signed by the leader, wraps of its header that have none for a member are its word that the member is out.
    let leader = swarm.leader_again();
    // Height 2, the root refreshed; neither child says anything.
    for bytes in [vec![2 | 32, 3], vec![3 | 32, 3]] {
        let delta = Delta::decode(&bytes).unwrap();
        let mut header = honest.header.clone();
        header.entries_root = delta.root();
        let digest = header.digest(&swarm.deployment);
        header.signature = leader.sign(&swarm.deployment, Label::Header, &digest, &mut swarm.rng);
        let refused = swarm.give(0, &header, &EpochPart::Delta(delta.clone())).unwrap_err();
        let height = delta.height() == honest.header.core.height;
        assert_eq!(refused, if height { Error::Removed } else { Error::WrongWraps });
    }
    let long = Delta::decode(&vec![0; Delta::MAX_LEN + 1]);
    assert!(matches!(long, Err(Error::TooLong { .. })));
    swarm.deliver_one(0, &honest).unwrap();
    assert!(swarm.agrees(0));
}

fn a_term_keeps_its_strategy<S: Suite>() {
    let mut swarm = tree_after::<S>(106, 2);
    swarm.rekey_undelivered(&[], vec![]);
    let leader = swarm.leader_again();
    let mut flat = swarm.last().header.clone();
    (flat.core.strategy, flat.core.height, flat.entries_root) = (StrategyKind::Flat, 0, [0; 32]);
    let digest = flat.digest(&swarm.deployment);
    flat.signature = leader.sign(&swarm.deployment, Label::Header, &digest, &mut swarm.rng);
    let delta = EpochPart::Delta(swarm.last().wraps.as_ref().unwrap().whole());
    let entry = EpochPart::Entry(Entry { slot: 0, q: None, wrap: [0; 32] });
    assert_eq!(swarm.give(0, &flat, &delta), Err(Error::UnsupportedStrategy));
    assert_eq!(swarm.give(0, &flat, &entry), Err(Error::UnsupportedStrategy));
    let tree = swarm.last().header.clone();
    assert_eq!(swarm.give(0, &tree, &entry), Err(Error::UnsupportedStrategy));
    // A flat term has no tree, and a tree has a height.
    let crooked = |change: &dyn Fn(&mut Header<S>)| {
        let mut header = tree.clone();
        change(&mut header);
        Header::decode(&header.encode(&swarm.deployment), &swarm.deployment).map(drop)
    };
    let malformed = Err(Error::Malformed("header"));
    assert_eq!(crooked(&|_| {}), Ok(()));
    assert_eq!(crooked(&|header| header.core.height = 0), malformed);
    assert_eq!(crooked(&|header| header.core.height = 21), malformed);
    assert_eq!(crooked(&|header| header.core.strategy = StrategyKind::Flat), malformed);
    assert!(swarm.leadership.path_message(0, &[0; 16]).is_ok());
    let mut flat = Swarm::<S>::formed(106, 2);
    assert_eq!(flat.leadership.path_message(0, &[0; 16]), Err(Error::UnsupportedStrategy));
}

fn a_freed_slot_is_filled_again_in_the_same_epoch<S: Suite>() {
    let mut swarm = tree_after::<S>(107, 4);
    swarm.add_edge();
    let slot = swarm.slot(2);
    let output = swarm.rekey(&[4], vec![slot]);
    assert_eq!((output.assigned, output.dropped), (vec![slot], vec![slot]));
    assert!([0, 1, 3, 4].into_iter().all(|index| swarm.agrees(index)) && !swarm.agrees(2));
    // A member that joins again leaves and joins.
    let output = swarm.join(&[0]);
    assert!(output.header.core.removed.contains(0) && output.header.core.added.contains(0));
    assert!([0, 1, 3, 4].into_iter().all(|index| swarm.agrees(index)));
    swarm.expire();
    assert!([0, 1, 3, 4].into_iter().all(|index| swarm.agrees(index)));
}

fn masses_leave_and_join_in_one_epoch<S: Suite>() {
    let mut swarm = tree_after::<S>(108, 13);
    (0..9).for_each(|_| swarm.add_edge());
    let output = swarm.rekey(&(13..22).collect::<Vec<_>>(), vec![0, 2, 3, 8, 9, 10, 11]);
    assert_eq!(output.assigned, [0, 2, 3, 8, 9, 10, 11, 13, 14]);
    let gone = [0, 2, 3, 8, 9, 10, 11];
    for round in 0..3 {
        for index in 0..22 {
            assert_eq!(swarm.agrees(index), !gone.contains(&index), "edge {index}, round {round}");
        }
        swarm.expire();
    }
}

/// Makes a tree of 72 members of which every second one has left, in more runs than a header lists, and to
/// which two have come. Nobody knows yet.
fn after_a_mass_leave<S: Suite>(seed: u64) -> (Swarm<S>, Vec<Slot>) {
    let mut swarm = tree_after::<S>(seed, 72);
    (0..2).for_each(|_| swarm.add_edge());
    let gone: Vec<Slot> = (0..72).step_by(2).collect();
    let (output, secrets) = swarm.rekey_undelivered(&[72, 73], gone.clone());
    let core = &output.header.core;
    assert!(core.removed.is_empty() && core.added.is_empty() && !core.removes_nobody());
    assert_eq!(core.changes, Some(output.changes.digest()));
    assert_eq!(output.changes.removed.iter().collect::<Vec<_>>(), gone);
    assert_eq!(output.changes.added.iter().collect::<Vec<_>>(), [0, 2]);
    swarm.deliver_joins(&[72, 73], &secrets, &output);
    (swarm, gone)
}

fn an_epoch_that_lists_no_slots_shows_each_member_whether_it_is_out<S: Suite>() {
    let (mut swarm, gone) = after_a_mass_leave::<S>(118);
    let (header, wraps) = (swarm.last().header.clone(), swarm.last().wraps.clone().unwrap());
    // A path of a slot that was filled again is for who is there now.
    let path = EpochPart::Path(swarm.path_message(2).unwrap());
    assert_eq!(swarm.give(2, &header, &path), Err(Error::SealBroken));
    assert_eq!(swarm.leadership.path_message(4, &[0; 16]), Err(Error::WrongSlot));
    for slot in 0..72 {
        let out = gone.contains(&slot);
        for delta in [wraps.branch(slot), wraps.whole()] {
            assert_eq!((delta.root(), delta.keeps(slot)), (header.entries_root, Some(!out)), "{slot}");
            if out {
                assert_eq!(swarm.give(slot as usize, &header, &EpochPart::Delta(delta)), Err(Error::Removed));
            }
        }
    }
    // One follows by its path message, the others by wraps.
    swarm.catch_up(1).unwrap();
    (2..72).for_each(|index| drop(swarm.deliver(index)));
    for _ in 0..2 {
        assert!((0..72).all(|index| swarm.agrees(index) != gone.contains(&(index as u32))));
        assert!(swarm.agrees(72) && swarm.agrees(73));
        swarm.expire();
    }
}

fn nobody_else_can_show_a_member_that_it_is_out<S: Suite>() {
    let (mut swarm, _) = after_a_mass_leave::<S>(119);
    let (header, wraps) = (swarm.last().header.clone(), swarm.last().wraps.clone().unwrap());
    // The part of a member that is out, for one that is not.
    let others = wraps.branch(30);
    assert_eq!((others.keeps(30), others.keeps(61)), (Some(false), None));
    assert_eq!(swarm.give(61, &header, &EpochPart::Delta(others)), Err(Error::MissingEntry));
    // Parts that say so and are not the leader's: of 64 slots around the member nothing is left.
    let own = wraps.branch(61).encode();
    let mut refused = 0;
    for place in 0..8 * 24 {
        let mut bytes = own.clone();
        bytes[place / 8] ^= 1 << (place % 8);
        let Ok(forged) = Delta::decode(&bytes) else { continue };
        assert_eq!(swarm.give(61, &header, &EpochPart::Delta(forged)), Err(Error::WrongWraps), "bit {place}");
        refused += 1;
    }
    // Height 7, the root refreshed, and nothing of either child.
    let empty = Delta::decode(&[7 | 32, 3]).unwrap();
    assert_eq!(empty.keeps(61), Some(false));
    assert_eq!(swarm.give(61, &header, &EpochPart::Delta(empty)), Err(Error::WrongWraps));
    assert!(refused > 0);
    // A proof of another epoch, and a digest of other slots.
    swarm.deliver(61).unwrap();
    swarm.rekey_undelivered(&[], vec![61]);
    let proof = swarm.last().wraps.clone().unwrap().branch(61);
    assert_eq!(proof.keeps(61), Some(false));
    swarm.broadcasts.pop();
    assert_eq!(swarm.give(71, &header, &EpochPart::Delta(proof)), Err(Error::WrongWraps));
    let mut other = header.clone();
    other.core.changes = Some([1; 32]);
    let refused = Header::decode(&other.encode(&swarm.deployment), &swarm.deployment).unwrap();
    let none = quiver_ainq::RevocationStatement::empty();
    let alpha = crate::swarm::name("alpha");
    let refused = refused.verify(&swarm.deployment, &alpha, None, &none, crate::swarm::NOW);
    assert_eq!(refused.map(drop), Err(Error::InvalidSignature));
    swarm.give(71, &header, &EpochPart::Delta(wraps.branch(71))).unwrap();
}

fn the_tree_doubles_when_it_is_full<S: Suite>() {
    let mut swarm = tree_after::<S>(109, 2);
    for size in 3..=9 {
        swarm.add_edge();
        let output = swarm.join(&[size - 1]);
        let height = usize::from(output.header.core.height);
        assert_eq!(1 << height, size.next_power_of_two());
        assert!((0..size).all(|index| swarm.agrees(index)), "{size} members");
    }
    // It may grow by several levels at once, and shrinks only when a term opens.
    let mut swarm = tree_after::<S>(110, 1);
    (0..8).for_each(|_| swarm.add_edge());
    swarm.join(&(1..9).collect::<Vec<_>>());
    assert!((0..9).all(|index| swarm.agrees(index)));
    swarm.rekey(&[], (2..9).collect());
    assert!((0..2).all(|index| swarm.agrees(index)));
    assert_eq!(swarm.expire().header.core.height, 4);
    assert_eq!(swarm.open(&[0, 1]).header.core.height, 1);
    assert!((0..2).all(|index| swarm.agrees(index)));
}

fn a_group_may_empty_and_fill_again<S: Suite>() {
    let mut swarm = tree_after::<S>(111, 3);
    swarm.rekey(&[], vec![0, 1, 2]);
    swarm.expire();
    assert!((0..3).all(|index| !swarm.agrees(index)));
    swarm.join(&[2, 0]);
    assert!(swarm.agrees(0) && !swarm.agrees(1) && swarm.agrees(2));
    swarm.remove(2);
    assert!(swarm.agrees(0) && !swarm.agrees(2));
}

fn a_term_opens_by_entries_and_its_paths_follow<S: Suite>() {
    let mut swarm = tree_after::<S>(112, 5);
    let output = swarm.open_undelivered(&[0, 1, 2, 4]);
    assert_eq!((output.header.core.kind, output.entries.len()), (EpochKind::Open, 4));
    // A follower has the key at once, and its path only when that arrives.
    for index in [0, 1, 2, 4] {
        let entry = swarm.last().entry(swarm.slot(index)).unwrap().clone();
        swarm.give(index, &output.header, &EpochPart::Entry(entry)).unwrap();
        assert!(swarm.agrees(index) && !swarm.edges[index].membership.as_ref().unwrap().has_path());
    }
    swarm.catch_up(0).unwrap();
    assert!(swarm.agrees(0) && swarm.edges[0].membership.as_ref().unwrap().has_path());
    assert_eq!(swarm.leadership.path_message(3, &[0; 16]), Err(Error::WrongSlot));
    swarm.rekey_undelivered(&[], vec![]);
    let next = swarm.last().clone();
    swarm.deliver_one(0, &next).unwrap();
    assert_eq!(swarm.deliver_one(1, &next), Err(Error::MissingPath));
    (1..5).for_each(|index| drop(swarm.deliver(index)));
    assert!([0, 1, 2, 4].into_iter().all(|index| swarm.agrees(index)) && !swarm.agrees(3));
    // The absent member's slot is in the roster but has no key; it joins again, or is removed.
    swarm.join(&[3]);
    assert!((0..5).all(|index| swarm.agrees(index)));
    swarm.open(&[0, 1]);
    swarm.rekey(&[], vec![3]);
    assert!(swarm.agrees(0) && swarm.agrees(1));
}

fn a_term_opens_by_wraps_and_paths_are_there_at_once<S: Suite>() {
    let mut swarm = tree_after::<S>(114, 9);
    let present = [0, 1, 2, 4, 5, 6, 8];
    let output = swarm.open_undelivered(&present);
    let wraps = output.wraps.as_ref().unwrap();
    assert_eq!(output.header.entries_root, wraps.root());
    // The wraps show that who is absent has none.
    assert_eq!(wraps.whole().keeps(swarm.slot(3)), Some(false));
    let parts: Vec<Delta> = wraps.chunks(1).into_iter().map(|(_, part)| part).collect();
    assert!(parts.len() > 1);
    for index in present {
        let slot = swarm.slot(index);
        let own = parts.iter().find(|part| part.covers(slot)).unwrap();
        let other = parts.iter().find(|part| !part.covers(slot)).unwrap();
        let given = |swarm: &mut Swarm<S>, part: &Delta| {
            swarm.give(index, &output.header, &EpochPart::Delta(part.clone()))
        };
        assert_eq!(given(&mut swarm, other), Err(Error::MissingEntry));
        given(&mut swarm, own).unwrap();
        assert!(swarm.agrees(index) && swarm.edges[index].membership.as_ref().unwrap().has_path());
        assert_eq!(given(&mut swarm, own), Err(Error::Stale));
    }
    // An absent member follows neither the whole nor its own part.
    for delta in [wraps.whole(), wraps.branch(swarm.slot(3))] {
        assert_eq!(swarm.give(3, &output.header, &EpochPart::Delta(delta)), Err(Error::MissingEntry));
    }
    // The next epochs' wraps are of use to everybody at once, joins and leaves.
    swarm.rekey(&[3], vec![swarm.slot(5)]);
    assert!([0, 1, 2, 3, 4, 6, 8].into_iter().all(|index| swarm.agrees(index)));
    assert!(!swarm.agrees(5) && !swarm.agrees(7));
    swarm.expire();
    assert!([0, 1, 2, 3, 4, 6, 8].into_iter().all(|index| swarm.agrees(index)));
}

fn a_term_opens_by_a_path_alone<S: Suite>() {
    let mut swarm = tree_after::<S>(115, 4);
    let output = swarm.open_undelivered(&[0, 1, 2, 3]);
    let (own, others) =
        (swarm.path_message(swarm.slot(0)).unwrap(), swarm.path_message(swarm.slot(1)).unwrap());
    assert_eq!(swarm.give(0, &output.header, &EpochPart::Path(others.clone())), Err(Error::WrongSlot));
    let mut relabelled = others;
    relabelled.slot = swarm.slot(0);
    assert_eq!(swarm.give(0, &output.header, &EpochPart::Path(relabelled)), Err(Error::SealBroken));
    // Another spare pair than the leader's opens none.
    let spare = SparePair::generate(swarm.edges[0].spare.q(), &mut swarm.rng);
    let spare = core::mem::replace(&mut swarm.edges[0].spare, spare);
    assert_eq!(swarm.give(0, &output.header, &EpochPart::Path(own.clone())), Err(Error::SealBroken));
    swarm.edges[0].spare = spare;
    swarm.give(0, &output.header, &EpochPart::Path(own)).unwrap();
    assert!(swarm.agrees(0) && swarm.edges[0].membership.as_ref().unwrap().has_path());
    swarm.rekey_undelivered(&[], vec![swarm.slot(2)]);
    let next = swarm.last().clone();
    swarm.deliver_one(0, &next).unwrap();
    assert!(swarm.agrees(0));
}

fn changed_wraps_of_an_opening_are_noticed_and_change_nothing<S: Suite>() {
    let mut swarm = tree_after::<S>(116, 5);
    let output = swarm.open_undelivered(&[0, 1, 2, 3, 4]);
    let (header, before) = (output.header.encode(&swarm.deployment), everything_of(&swarm));
    let wraps = output.wraps.as_ref().unwrap();
    let with = |delta: &[u8]| accept(&swarm, &header, &EpochPart::Delta(Delta::decode(delta)?));
    for delta in [wraps.whole().encode(), wraps.branch(swarm.slot(0)).encode()] {
        for place in 0..delta.len() {
            let mut changed = delta.clone();
            changed[place] ^= 1 << (place % 8);
            let error = with(&changed).unwrap_err();
            assert!(
                matches!(error, Error::WrongWraps | Error::Malformed("wraps")),
                "byte {place}: {error:?}"
            );
        }
        with(&delta).unwrap();
    }
    // Another pair than the leader's derives another key.
    let spare = SparePair::generate(swarm.edges[0].spare.q(), &mut swarm.rng);
    let spare = core::mem::replace(&mut swarm.edges[0].spare, spare);
    let whole = EpochPart::Delta(wraps.whole());
    assert_eq!(swarm.give(0, &output.header, &whole), Err(Error::WrongTag));
    // Wraps of another opening are not this one's, nor are those of an epoch.
    swarm.edges[0].spare = spare;
    assert_eq!(everything_of(&swarm), before);
    let second = swarm.open_undelivered(&[0, 1, 2, 3, 4]);
    assert_eq!(swarm.give(0, &second.header, &whole), Err(Error::WrongWraps));
    swarm.give(0, &second.header, &EpochPart::Delta(second.wraps.unwrap().whole())).unwrap();
    assert!(swarm.agrees(0));
}

fn a_lost_path_message_costs_nothing_but_another<S: Suite>() {
    let mut swarm = tree_after::<S>(113, 2);
    // Both chains are where the epoch is, whatever was sent under them and lost.
    for _ in 0..3 {
        swarm.path_message(0).unwrap();
    }
    swarm.add_edge();
    swarm.join(&[2]);
    let slot = swarm.slot(1);
    swarm.rekey(&[], vec![slot]);
    assert!(swarm.agrees(0) && swarm.agrees(2));
}

#[test]
fn settling_early_late_or_never_gives_the_same_epochs() {
    let history = |settle: &dyn Fn(&mut Swarm<Ristretto255>, u32)| {
        let mut swarm = Swarm::<Ristretto255>::formed(116, 3);
        for round in 0..4 {
            settle(&mut swarm, round);
            swarm.expire();
            assert!((0..3).all(|index| swarm.agrees(index)));
        }
        swarm.last().entries.clone()
    };
    let never = history(&|_, _| {});
    assert_eq!(never, history(&|swarm, _| swarm.leadership.settle()));
    let sometimes = history(&|swarm, round| (0..round % 3).for_each(|_| swarm.leadership.settle()));
    assert_eq!(never, sometimes);
}

/// A group of some edges, and more outside of it, whose newcomers follow by wraps.
fn with_outsiders<S: Suite>(seed: u64, members: usize, outside: usize) -> Swarm<S> {
    let mut swarm = tree_after::<S>(seed, members);
    (0..outside).for_each(|_| swarm.add_edge());
    swarm.by_wraps = true;
    swarm
}

fn newcomers_follow_by_wraps_and_by_a_part_of_them<S: Suite>() {
    let mut swarm = with_outsiders::<S>(118, 3, 9);
    // The tree grows from four leaves to sixteen, so there are new roots, too.
    let output = swarm.join(&(3..12).collect::<Vec<_>>());
    assert!(output.newcomers_follow && output.header.core.height == 4);
    assert!((0..12).all(|index| swarm.agrees(index)));
    // An epoch without newcomers renews the root's key as before.
    let before = swarm.leadership.group_key().fingerprint(&[0; 32]);
    let expiry = swarm.expire();
    assert!(!expiry.newcomers_follow && expiry.wraps.unwrap().whole().as_bytes().len() > 64);
    assert_ne!(swarm.leadership.group_key().fingerprint(&[0; 32]), before);
    assert!((0..12).all(|index| swarm.agrees(index)));
    // They hold their paths, and need none.
    for index in 3..12 {
        assert!(swarm.edges[index].membership.as_ref().unwrap().has_path());
    }
    // A newcomer that goes is out.
    swarm.remove(7);
    assert!((0..12).filter(|index| *index != 7).all(|index| swarm.agrees(index)) && !swarm.agrees(7));
    // Into the freed slot comes another, while a member beside it goes.
    swarm.add_edge();
    let slot = swarm.slot(6);
    assert!(swarm.rekey(&[12], vec![slot]).newcomers_follow);
    assert!([0, 5, 8, 12].into_iter().all(|index| swarm.agrees(index)) && !swarm.agrees(6));
}

fn newcomers_that_follow_get_no_slot_that_is_freed_with_them<S: Suite>() {
    let mut swarm = with_outsiders::<S>(119, 4, 2);
    let slot = swarm.slot(2);
    // A wrap under the newcomer's leaf would stand where the leaver looks for its own.
    assert_eq!(swarm.rekey(&[4], vec![slot]).assigned, [4]);
    assert_eq!(swarm.deliver(2).unwrap_err(), Error::Removed);
    assert_eq!(swarm.join(&[5]).assigned, [slot]);
    assert!([0, 1, 3, 4, 5].into_iter().all(|index| swarm.agrees(index)));
    // Under flat there is nothing to follow.
    let mut flat = Swarm::<S>::formed_by(StrategyKind::Flat, 120, 2);
    flat.by_wraps = true;
    flat.add_edge();
    assert!(!flat.join(&[2]).newcomers_follow && flat.agrees(2));
}

fn a_newcomer_takes_only_what_is_made_for_it<S: Suite>() {
    let mut swarm = with_outsiders::<S>(121, 4, 3);
    let (output, secrets) = swarm.rekey_undelivered(&[4, 5], vec![]);
    let (wraps, header) = (output.wraps.as_ref().unwrap(), &output.header);
    let [first, second] = [output.assigned[0], output.assigned[1]];
    let with = |index, e, slot, delta: &Delta| swarm.join_by_wraps(index, e, header, slot, delta).map(drop);
    let own = wraps.branch(first);
    // Another's slot, a member's, one beyond the tree.
    assert_eq!(with(4, &secrets[0], second, &wraps.whole()), Err(Error::WrongTag));
    assert_eq!(with(4, &secrets[0], swarm.slot(0), &wraps.whole()), Err(Error::MissingEntry));
    assert_eq!(with(4, &secrets[0], 1 << 19, &wraps.whole()), Err(Error::MissingEntry));
    // Another's one-time secret, and a drone that did not ask.
    assert_eq!(with(4, &secrets[1], first, &own), Err(Error::WrongTag));
    assert_eq!(with(6, &secrets[0], first, &own), Err(Error::WrongTag));
    // Wraps of another epoch, and changed ones.
    let before = swarm.broadcasts[swarm.broadcasts.len() - 2].wraps.as_ref().unwrap().whole();
    assert_eq!(with(4, &secrets[0], first, &before), Err(Error::WrongWraps));
    let mut bytes = own.encode();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    assert_eq!(with(4, &secrets[0], first, &Delta::decode(&bytes).unwrap()), Err(Error::WrongWraps));
    assert_eq!(with(4, &secrets[0], first, &own), Ok(()));
    assert_eq!(with(5, &secrets[1], second, &wraps.whole()), Ok(()));
    // Refused: a spare pair in place of the ephemeral one, and an epoch that adds no member.
    let spare = SparePair::generate(1, &mut swarm.rng);
    let (context, verified) = (swarm.context(), swarm.verified(header));
    let keypair = &swarm.edges[4].keypair;
    let refused = GroupMembership::join_by_wraps(&context, keypair, &spare, &verified, first, &own).map(drop);
    assert_eq!(refused, Err(Error::WrongSpare));
    swarm.rekey_undelivered(&[], vec![]);
    let expiry = swarm.last().clone();
    let delta = expiry.wraps.as_ref().unwrap().whole();
    let late = swarm.join_by_wraps(4, &secrets[0], &expiry.header, first, &delta).map(drop);
    assert_eq!(late, Err(Error::MissingEntry));
}
