//! Secrecy: which epochs an adversary cannot open. Each test first shows that the adversary does open what it
//! should be able to: a search that finds nothing anywhere would prove nothing.

use quiver_ainq::{Ristretto255, StrategyKind, Suite};

use crate::adversary::Adversary;
use crate::swarm::Swarm;

for_each_strategy! {
    a_leaver_cannot_compute_any_later_key;
    a_newcomer_cannot_compute_any_earlier_key;
    stolen_long_term_keys_open_nothing_recorded;
}

// Openings of a captured memory under `tree`, where it holds a path, are explored with symbols inside the
// crate.
for_each_suite! {
    a_captured_drone_opens_no_earlier_epoch;
    a_captured_leader_opens_no_earlier_epoch;
    newcomers_that_follow_by_wraps_open_what_is_theirs_and_leavers_nothing_more;
    masks_are_not_reused_as_they_were_in_the_paper;
}

fn a_leaver_cannot_compute_any_later_key<S: Suite>(strategy: StrategyKind) {
    let mut swarm = Swarm::<S>::formed_by(strategy, 11, 3);
    swarm.expire();
    swarm.open(&[0, 1, 2]);
    swarm.expire();
    let left_at = swarm.broadcasts.len();
    swarm.remove(1);
    swarm.expire();
    swarm.add_edge();
    // A newcomer takes the slot over.
    assert_eq!(swarm.join(&[3]).assigned, [1]);
    swarm.open(&[0, 2, 3]);
    swarm.expire();

    let mut leaver = Adversary::outside(&swarm);
    leaver.takes(&swarm.edges[1].kept);
    let all = swarm.broadcasts.clone();
    // All epochs it was a member of, the empty first one excepted: it keeps those keys.
    assert!(all[1..left_at].iter().all(|epoch| leaver.opens(epoch, &all)));
    assert!(!all[left_at..].iter().any(|epoch| leaver.opens(epoch, &all)));
}

fn a_newcomer_cannot_compute_any_earlier_key<S: Suite>(strategy: StrategyKind) {
    let mut swarm = Swarm::<S>::formed_by(strategy, 12, 2);
    swarm.expire();
    swarm.open(&[0, 1]);
    swarm.remove(0);
    let joined_at = swarm.broadcasts.len();
    swarm.add_edge();
    // It gets a slot that was used before.
    assert_eq!(swarm.join(&[2]).assigned, [0]);
    swarm.expire();

    let mut newcomer = Adversary::outside(&swarm);
    newcomer.takes(&swarm.edges[2].kept);
    let all = swarm.broadcasts.clone();
    assert!(all[joined_at..].iter().all(|epoch| newcomer.opens(epoch, &all)));
    assert!(!all[..joined_at].iter().any(|epoch| newcomer.opens(epoch, &all)));
}

fn a_captured_drone_opens_no_earlier_epoch<S: Suite>() {
    let mut swarm = Swarm::<S>::formed(13, 2);
    swarm.expire();
    swarm.open(&[0, 1]);
    swarm.expire();
    let now = swarm.broadcasts.len();
    let mut captor = Adversary::outside(&swarm);
    // Its memory: y, the unused spare, W of the next wrap. What it used is erased.
    captor.captures(&swarm.edges[0]);
    swarm.expire();
    let all = swarm.broadcasts.clone();
    assert!(captor.opens(&all[now], &all), "the captor follows the group from here on");
    assert!(!all[..now].iter().any(|epoch| captor.opens(epoch, &all)));
}

fn a_captured_leader_opens_no_earlier_epoch<S: Suite>() {
    let mut swarm = Swarm::<S>::formed(14, 3);
    swarm.expire();
    swarm.open(&[0, 1, 2]);
    swarm.expire();
    let now = swarm.broadcasts.len();
    let mut captor = Adversary::outside(&swarm);
    // The leader's memory: its own y, and the same ratchets the members have. No l, no T, no e.
    captor.takes_scalars(&[swarm.leader.to_bytes().to_vec()]);
    for edge in &swarm.edges {
        captor.takes_state(&edge.membership.as_ref().unwrap().encode());
    }
    swarm.expire();
    let all = swarm.broadcasts.clone();
    assert!(captor.opens(&all[now], &all));
    assert!(!all[..now].iter().any(|epoch| captor.opens(epoch, &all)));
}

fn stolen_long_term_keys_open_nothing_recorded<S: Suite>(strategy: StrategyKind) {
    let mut swarm = Swarm::<S>::formed_by(strategy, 15, 2);
    swarm.expire();
    swarm.open(&[0, 1]);
    swarm.expire();
    let all = swarm.broadcasts.clone();
    let mut thief = Adversary::outside(&swarm);
    // y of every drone: the edges', the leader's.
    thief.takes_scalars(&[swarm.leader.to_bytes().to_vec()]);
    for edge in &swarm.edges {
        thief.takes_scalars(&[edge.keypair.to_bytes().to_vec()]);
    }
    assert!(!all.iter().any(|epoch| thief.opens(epoch, &all)));
    // With the one-time scalars, which no drone has any more, it would.
    thief.takes_scalars(&swarm.edges[0].kept.scalars);
    assert!(all[1..].iter().all(|epoch| thief.opens(epoch, &all)));
}

fn newcomers_that_follow_by_wraps_open_what_is_theirs_and_leavers_nothing_more<S: Suite>() {
    let mut swarm = Swarm::<S>::formed_by(StrategyKind::Tree, 19, 3);
    swarm.by_wraps = true;
    swarm.expire();
    swarm.add_edge();
    swarm.add_edge();
    let joined_at = swarm.broadcasts.len();
    let slot = swarm.slot(1);
    // Two come and one goes; the tree grows.
    assert!(swarm.rekey(&[3, 4], vec![slot]).newcomers_follow);
    assert!([0, 2, 3, 4].into_iter().all(|index| swarm.agrees(index)));
    swarm.expire();
    let all = swarm.broadcasts.clone();
    for index in [3, 4] {
        let mut newcomer = Adversary::outside(&swarm);
        newcomer.takes(&swarm.edges[index].kept);
        assert!(all[joined_at..].iter().all(|epoch| newcomer.opens(epoch, &all)));
        assert!(!all[..joined_at].iter().any(|epoch| newcomer.opens(epoch, &all)));
    }
    let mut leaver = Adversary::outside(&swarm);
    leaver.takes(&swarm.edges[1].kept);
    assert!(all[1..joined_at].iter().all(|epoch| leaver.opens(epoch, &all)));
    assert!(!all[joined_at..].iter().any(|epoch| leaver.opens(epoch, &all)));
}

fn masks_are_not_reused_as_they_were_in_the_paper<S: Suite>() {
    let mut swarm = Swarm::<S>::formed(16, 2);
    swarm.expire();
    swarm.expire();
    // One key leaks, of an epoch in the middle.
    let all = swarm.broadcasts.clone();
    let mut insider = Adversary::outside(&swarm);
    insider.takes(&swarm.edges[0].kept);
    assert!(insider.opens(&all[2], &all));
    let mut analyst = Adversary::outside(&swarm);
    analyst.takes_key_of(&insider);
    assert!(analyst.opens(&all[2], &all));
    assert!(!analyst.opens(&all[1], &all) && !analyst.opens(&all[3], &all));
}

#[test]
fn nothing_secret_is_printed() {
    let mut swarm = Swarm::<Ristretto255>::formed(17, 1);
    swarm.expire();
    let edge = &swarm.edges[0];
    let member = edge.membership.as_ref().unwrap();
    let key = member.group_key().unwrap();
    let (traffic, digest) = (key.traffic(member.digest()), *member.digest());
    let sender = quiver_ainq::Sender::new(&traffic, digest, 0, 1, [0; 8]);
    let receiver = quiver_ainq::Receiver::new(traffic.clone(), digest, edge.keypair.public().handle());
    let printed = format!(
        "{:?} {key:?} {traffic:?} {sender:?} {receiver:?} {:?} {member:?} {:?}",
        swarm.leadership, edge.spare, edge.keypair
    );
    let state = member.encode();
    let secrets =
        [&state[state.len() - 64..state.len() - 32], &state[state.len() - 32..], &edge.spare.encode()[8..]];
    for secret in secrets {
        assert!(!printed.contains(&hex::encode(secret)));
        assert!(!printed.contains(&format!("{secret:?}")));
    }
    // Only public values and names are printed.
    assert!(printed.contains("GroupKey(32 bytes)") && printed.contains("TrafficKey(32 bytes)"));
}
