//! Anonymous members: admitted by a secret from elsewhere, like others within the term, and gone with it.

use quiver_ainq::{
    Admission, AgreedSecret, Anonymous, Batch, EpochPart, Error, GroupKey, GroupMembership, Pseudonym, Slot,
    StrategyKind, Suite, leave_tag,
};

use crate::swarm::{Broadcast, NOW, Swarm, times};

const SECRET: [u8; 32] = [7; 32];

fn member(number: u8) -> Anonymous {
    Anonymous { pseudonym: Pseudonym([number; 16]), until: NOW + 60 }
}

/// Makes an epoch that admits an anonymous member, after joins and removals by name. Returns its slot.
fn admit<S: Suite>(swarm: &mut Swarm<S>, number: u8, removals: Vec<Slot>) -> Slot {
    let (member, secret) = (member(number), AgreedSecret::new(&SECRET));
    let admissions = vec![Admission { member, secret, kem: None }];
    let batch = Batch { admissions, removals, ..Batch::default() };
    let output = swarm.leadership.rekey(&swarm.leader, batch, &times(), &mut swarm.rng).unwrap();
    swarm.broadcasts.push(Broadcast::of(&output));
    let slot = output.admitted[0];
    if output.wraps.is_some() {
        swarm.path_message(slot).unwrap();
    }
    slot
}

fn enter<S: Suite>(
    swarm: &Swarm<S>,
    pseudonym: &Pseudonym,
    secret: &AgreedSecret,
    slot: Slot,
) -> Result<GroupMembership<S>, Error> {
    let (context, broadcast) = (swarm.context(), swarm.last().clone());
    let header = swarm.verified(&broadcast.header);
    GroupMembership::admitted(&context, pseudonym, (secret, None), &header, &broadcast.part(slot).unwrap())
}

/// State of a member in this slot after the newest epoch.
fn follow<S: Suite>(swarm: &Swarm<S>, membership: &GroupMembership<S>) -> Result<GroupMembership<S>, Error> {
    let broadcast = swarm.last().clone();
    let part = match &broadcast.wraps {
        Some(wraps) => EpochPart::Delta(wraps.whole()),
        None => broadcast.part(membership.slot()).unwrap(),
    };
    membership.advance_in_term(&swarm.verified(&broadcast.header), &part)
}

fn key<S: Suite>(membership: &GroupMembership<S>) -> Option<[u8; 32]> {
    let test = crate::swarm::name("test");
    membership.group_key().map(|key: &GroupKey| *key.export(&test, membership.digest()).expose())
}

fn leaders_key<S: Suite>(swarm: &Swarm<S>) -> Option<[u8; 32]> {
    let test = crate::swarm::name("test");
    Some(*swarm.leadership.group_key().export(&test, swarm.leadership.digest()).expose())
}

fn member_without_a_name_holds_the_keys_of_its_time_and_no_others<S: Suite>(strategy: StrategyKind) {
    let mut swarm = Swarm::<S>::formed_by(strategy, 1, 3);
    let hash = swarm.leadership.roster().hash();
    let before = leaders_key(&swarm);
    let slot = admit(&mut swarm, 1, Vec::new());
    assert_eq!(swarm.leadership.roster().hash(), hash, "nobody copies it");
    assert_eq!((swarm.leadership.roster().len(), slot), (4, 3));
    assert_eq!(swarm.leadership.roster().anonymous(slot), Some(&member(1)));
    let mut membership = enter(&swarm, &member(1).pseudonym, &AgreedSecret::new(&SECRET), slot).unwrap();
    assert_eq!(key(&membership), leaders_key(&swarm));
    assert_ne!(key(&membership), before);
    let auth = swarm.leadership.auth_key(slot).unwrap();
    let tags = [auth, membership.auth_key()].map(|auth| leave_tag::<S>(auth, membership.digest()));
    assert_eq!(tags[0], tags[1]);
    for index in 0..3 {
        swarm.deliver(index).unwrap();
    }
    for _ in 0..3 {
        swarm.expire();
        membership = follow(&swarm, &membership).unwrap();
        assert_eq!(key(&membership), leaders_key(&swarm));
    }
    // Another takes its slot in the epoch that puts it out.
    let other = admit(&mut swarm, 2, vec![slot]);
    assert_eq!(other, slot);
    assert!(follow(&swarm, &membership).is_err());
    assert!(enter(&swarm, &member(1).pseudonym, &AgreedSecret::new(&SECRET), slot).is_err());
    let other = enter(&swarm, &member(2).pseudonym, &AgreedSecret::new(&SECRET), slot).unwrap();
    assert_eq!(key(&other), leaders_key(&swarm));
}

fn only_this_secret_under_this_pseudonym_in_this_slot_enters<S: Suite>(strategy: StrategyKind) {
    let mut swarm = Swarm::<S>::formed_by(strategy, 2, 2);
    let slot = admit(&mut swarm, 1, Vec::new());
    let (pseudonym, secret) = (member(1).pseudonym, AgreedSecret::new(&SECRET));
    let fails = |pseudonym: &Pseudonym, secret: &AgreedSecret| {
        matches!(enter(&swarm, pseudonym, secret, slot), Err(Error::WrongTag | Error::SealBroken))
    };
    assert!(fails(&member(2).pseudonym, &secret));
    assert!(fails(&pseudonym, &AgreedSecret::new(&[8; 32])));
    assert!(!fails(&pseudonym, &secret));
    // A named member's entry is of no use to an anonymous one.
    swarm.add_edge();
    let output = swarm.join(&[2]);
    let joined = enter(&swarm, &pseudonym, &secret, output.assigned[0]);
    assert!(matches!(joined, Err(Error::WrongTag | Error::SealBroken)));
}

fn term_that_opens_knows_nobody_without_a_name<S: Suite>(strategy: StrategyKind) {
    let mut swarm = Swarm::<S>::formed_by(strategy, 3, 2);
    let slot = admit(&mut swarm, 1, Vec::new());
    let membership = enter(&swarm, &member(1).pseudonym, &AgreedSecret::new(&SECRET), slot).unwrap();
    for index in 0..2 {
        swarm.deliver(index).unwrap();
    }
    let hash = swarm.leadership.roster().hash();
    let output = swarm.open(&[0, 1]);
    assert!(output.entries.iter().all(|entry| entry.slot != slot));
    assert_eq!(swarm.leadership.roster().len(), 2);
    assert_eq!(output.header.core.roster_hash, hash);
    assert!(swarm.leadership.auth_key(slot).is_none() && swarm.leadership.roster().vacant() == Some(slot));
    let (header, part) = (swarm.verified(&output.header), EpochPart::Entry(output.entries[0].clone()));
    assert!(membership.advance_in_term(&header, &part).is_err());
    swarm.expire();
    let part = swarm.last().part(0).unwrap();
    assert!(membership.advance_in_term(&swarm.verified(&swarm.last().header), &part).is_err());
}

for_each_strategy! {
    member_without_a_name_holds_the_keys_of_its_time_and_no_others;
    only_this_secret_under_this_pseudonym_in_this_slot_enters;
    term_that_opens_knows_nobody_without_a_name;
}
