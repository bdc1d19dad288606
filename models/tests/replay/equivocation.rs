//! Lives in which a leader opens a term under both of its keys: who follows which of its headers, who has proof of it,
//! and that a life with one step changed is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use quiver_ainq::Epoch;
use quiver_message::Message;

use crate::lives::{Kind, Lives};
use crate::recording::{Node, Recording, Step};
use crate::rules::Prefix;
use crate::table::Table;
use crate::{Tally, accept, few_lives, kind, wire};

/// Returns true if the leader with two keys opened the term of this epoch.
fn is_made_twice(life: &Recording, epoch: Epoch) -> bool {
    life.group.two_keys.is_some() && life.group.opener(epoch) == life.group.two_keys
}

/// Lives without a second factor, which drones do not share with that leader, so that members follow its headers. They
/// are recorded once for all tests.
fn lives() -> &'static [(String, Recording)] {
    static LIVES: OnceLock<Vec<(String, Recording)>> = OnceLock::new();
    LIVES.get_or_init(|| {
        let follow =
            |kind: &Kind| *kind == Kind::FLAT || kind.has_relays() || kind.has_a_quorum_and_deputies();
        few_lives(follow, &[3], Lives::record_with_two_keys)
    })
}

/// D of the headers that the leader made of one epoch, as members follow them, with those members.
fn followers(life: &Recording) -> BTreeMap<Epoch, BTreeMap<[u8; 32], BTreeSet<Node>>> {
    let mut followers = BTreeMap::<_, BTreeMap<_, BTreeSet<Node>>>::new();
    for step in &life.steps {
        if let Step::Activated { at, epoch, digest, .. } = step
            && is_made_twice(life, *epoch)
        {
            followers.entry(*epoch).or_default().entry(*digest).or_default().insert(at);
        }
    }
    followers
}

/// Nodes that had proof, with the place where they said so.
fn convicted(life: &Recording) -> Vec<(usize, Node)> {
    let steps = life.steps.iter().enumerate();
    let convicted = steps.filter_map(|(place, step)| match step {
        Step::Convicted { at, .. } => Some((place, *at)),
        _ => None,
    });
    convicted.collect()
}

#[test]
fn lives_with_a_leader_of_two_keys_are_runs_of_the_models() {
    let table = Table::read();
    for (what, life) in lives() {
        accept(what, &table, life);
        // Some members follow the one header and some the other, none both.
        for (epoch, followers) in followers(life) {
            assert_eq!(followers.len(), 2, "{what}: headers of {epoch:?} that somebody follows");
            let both = followers.values().fold(0, |all, some| all + some.len());
            let all: BTreeSet<Node> = followers.values().flatten().copied().collect();
            assert_eq!(all.len(), both, "{what}: somebody follows both headers of {epoch:?}");
        }
        let convicted: BTreeSet<Node> = convicted(life).into_iter().map(|(_, node)| node).collect();
        for (role, least) in [("edge", 3), ("leader", 1), ("kgc", 1)] {
            let found = convicted.iter().filter(|node| node.starts_with(role)).count();
            assert!(found >= least, "{what}: {found} nodes had proof of a role: {role}");
        }
        // A deputy, or the leader again, opens a term above it, which those follow who refuse the other.
        let newest = life.steps.iter().rev().find_map(|step| match step {
            Step::Activated { at, epoch, .. } if convicted.contains(at) => Some(*epoch),
            _ => None,
        });
        assert!(newest.is_some_and(|epoch| !is_made_twice(life, epoch)), "{what}: {newest:?}");
    }
}

#[test]
fn a_life_with_a_leader_of_two_keys_and_one_field_altered_is_refused() {
    let table = Table::read();
    let mut tally = Tally::default();
    for (what, life) in lives() {
        let mut prefix = Prefix::new(life, &table);
        let mut seen = BTreeMap::<String, usize>::new();
        for (place, step) in life.steps.iter().enumerate() {
            let Step::Sent { from, .. } = step else { continue };
            let kind = match (life.group.two_keys == Some(*from), kind(life, &table, step)) {
                (true, kind) => format!("of two keys, {kind}"),
                (false, kind) if kind == "EquivocationProof" => kind,
                (false, _) => continue,
            };
            let number = seen.entry(kind.clone()).or_default();
            *number += 1;
            if *number > 3 {
                continue;
            }
            for _ in 0..prefix.refuses_alterations(what, place) {
                tally.count(&kind, true);
            }
        }
    }
    let altered: BTreeMap<&str, usize> = tally.0.iter().map(|(kind, (of, _))| (&kind[..], *of)).collect();
    assert_eq!(altered.len(), 3, "{altered:?}");
    assert!(altered.values().sum::<usize>() >= 100, "{altered:?}");
}

#[test]
fn nobody_follows_two_headers_of_an_epoch_or_a_leader_against_which_it_has_proof() {
    let table = Table::read();
    let (mut other, mut acknowledged, mut spoken) = (0, 0, 0);
    for (what, life) in lives() {
        let (followers, convicted) = (followers(life), convicted(life));
        let mut prefix = Prefix::new(life, &table);
        for (place, step) in life.steps.iter().enumerate() {
            match step {
                Step::Activated { at, epoch, digest, slot } if is_made_twice(life, *epoch) => {
                    prefix.extend(place);
                    for digest in followers[epoch].keys().filter(|other| *other != digest) {
                        let follows = Step::Activated { at, epoch: *epoch, digest: *digest, slot: *slot };
                        let taken = !prefix.refuses([&follows]) || !prefix.refuses([step, &follows]);
                        assert!(!taken, "{what}: {at} follows the other header of {epoch:?}");
                        other += 1;
                    }
                }
                // What it sent before says nothing afterwards.
                Step::Convicted { at, .. } if !at.starts_with("kgc") => {
                    prefix.extend(place + 1);
                    for step in &life.steps[..place] {
                        let Step::Sent { from, bytes, .. } = step else { continue };
                        let under = match wire::decode(&life.deployment, bytes).as_deref() {
                            Ok(Message::Ack(ack)) if from == at => ack.epoch,
                            Ok(Message::GroupMessage(message)) if from == at => message.epoch,
                            _ => continue,
                        };
                        if is_made_twice(life, under) {
                            assert!(prefix.refuses([step]), "{what}: {at} has erased the key of {under:?}");
                            let said = kind(life, &table, step) == "GroupMessage";
                            *if said { &mut spoken } else { &mut acknowledged } += 1;
                        }
                    }
                }
                _ => {}
            }
        }
        assert!(!convicted.is_empty(), "{what}");
    }
    assert!(
        other >= 20 && acknowledged >= 20,
        "{other} other headers, {acknowledged} acknowledgements, {spoken} messages"
    );
}

#[test]
fn proof_of_two_headers_without_its_cause_is_refused() {
    let table = Table::read();
    let mut tally = Tally::default();
    for (what, life) in lives() {
        let start = Prefix::new(life, &table);
        for (place, at) in convicted(life) {
            let step = &life.steps[place];
            // Before anything was shown, and twice.
            let again: Vec<&Step> = life.steps[..place].iter().chain([step, step]).collect();
            assert!(start.refuses([step]), "{what}: {at} has proof of what nobody made");
            tally.count("before its cause", true);
            let kgc = at.starts_with("kgc");
            assert_eq!(start.refuses(again), !kgc, "{what}: {at} has proof twice");
            // Without the proofs that it was sent, and without all headers but one.
            let mut headers = BTreeMap::new();
            let shown = |step: &&Step| {
                let (Step::Sent { to, bytes, .. } | Step::Injected { to, bytes, .. }) = step else {
                    return true;
                };
                match wire::decode(&life.deployment, bytes).as_deref() {
                    Ok(Message::EquivocationProof(_)) => *to != at,
                    Ok(Message::Rekey(rekey)) if is_made_twice(life, rekey.header.core.epoch) => {
                        let digest = rekey.header.digest(&life.deployment);
                        *to != at || *headers.entry(rekey.header.core.epoch).or_insert(digest) == digest
                    }
                    _ => true,
                }
            };
            let without: Vec<&Step> = life.steps[..=place].iter().filter(shown).collect();
            assert!(start.refuses(without), "{what}: {at} has proof without having seen both headers");
            tally.count("without its cause", true);
            // Nobody hands proof on who has none.
            let sent = |step: &&Step| match step {
                Step::Sent { from, bytes, .. } => {
                    *from == at
                        && matches!(
                            wire::decode(&life.deployment, bytes).as_deref(),
                            Ok(Message::EquivocationProof(_))
                        )
                }
                _ => false,
            };
            if let Some(proof) = life.steps[place..].iter().find(sent) {
                let silent: Vec<&Step> = life.steps[..place].iter().chain([proof]).collect();
                assert!(start.refuses(silent), "{what}: {at} hands proof on that it does not have");
                tally.count("left out", true);
            }
        }
    }
    assert!(tally.0["before its cause"].0 >= 20 && tally.0["left out"].0 >= 10, "{:?}", tally.0);
}

#[test]
fn list_of_a_kgc_that_had_proof_names_the_leader() {
    let table = Table::read();
    let mut refused = 0;
    let lives = few_lives(|kind| *kind == Kind::FLAT, &[3], Lives::record_with_two_keys_and_a_list);
    for (what, life) in &lives {
        accept(what, &table, life);
        let is_list = |step: &&Step| match step {
            Step::Sent { from, bytes, .. } => {
                from.starts_with("kgc")
                    && matches!(
                        wire::decode(&life.deployment, bytes).as_deref(),
                        Ok(Message::RevocationList(_))
                    )
            }
            _ => false,
        };
        for (place, _) in convicted(life).into_iter().filter(|(_, at)| at.starts_with("kgc")) {
            let (before, conviction) = (&life.steps[..place], &life.steps[place]);
            // The one list that it had signed, and sends now for the first time.
            let Some(list) = before.iter().rfind(is_list) else { continue };
            let others: Vec<&Step> = before.iter().filter(|step| !is_list(step)).collect();
            let start = Prefix::new(life, &table);
            let without = others.iter().copied().chain([list]);
            assert!(!start.refuses(without), "{what}: a list of a KGC that has no proof");
            let proof = others.iter().copied().chain([conviction]);
            assert!(!start.refuses(proof.clone()), "{what}: proof beside a list that nobody was sent");
            let after = proof.chain([list]);
            assert!(start.refuses(after), "{what}: a list without the leader against which there is proof");
            refused += 1;
        }
    }
    assert!(refused > 0, "no KGC had sent a list before it had proof");
}
