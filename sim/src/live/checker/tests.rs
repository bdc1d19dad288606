//! The checker against fabricated reports, each with exactly one thing wrong.

use super::*;
use crate::live::event_log::DroneLog;
use crate::measure;

fn epoch(counter: u64) -> Epoch {
    Epoch { term: 1 << 16, counter }
}

fn held(counter: u64, key: u8) -> HeldGroupKey {
    HeldGroupKey { epoch: epoch(counter), key: Some(Secret::new([key; 32])), at: measure::now() }
}

fn led(counter: u64, key: u8, members: &[u32]) -> LeaderEpoch {
    LeaderEpoch { held: held(counter, key), members: members.to_vec(), strangers: vec![], anonymous: vec![] }
}

/// Drones 0 and 1 form a group, 0 leaves, 2 joins; 3 never may. The key of epoch n is n.
fn history() -> Logs {
    let mut logs = Logs { drones: vec![DroneLog::default(); 4], ..Logs::default() };
    logs.leader.epochs = vec![led(1, 1, &[0, 1]), led(2, 2, &[1]), led(3, 3, &[1, 2])];
    logs.drones[0].keys = vec![held(1, 1)];
    logs.drones[1].keys = vec![held(1, 1), held(2, 2), held(3, 3)];
    logs.drones[2].keys = vec![held(3, 3)];
    logs
}

fn check(logs: &Logs) -> Vec<RunViolation> {
    let mut checker = Checker::default();
    checker.after("a test");
    checker.keys(logs, &BTreeSet::from([0, 1, 2]));
    assert!(checker.checks > 0);
    checker.violations
}

/// The only violation.
fn only(violations: &[RunViolation]) -> (Invariant, Vec<String>) {
    assert_eq!(violations.len(), 1, "{violations:?}");
    (violations[0].invariant, violations[0].drones.clone())
}

#[test]
fn honest_history_passes() {
    assert_eq!(check(&history()), []);
}

#[test]
fn planted_wrong_key_breaks_agreement() {
    let mut logs = history();
    logs.drones[1].keys[2] = held(3, 77);
    assert_eq!(only(&check(&logs)), (Invariant::Agreement, vec![drone_name(1)]));
}

#[test]
fn missing_key_of_a_member_breaks_agreement() {
    let mut logs = history();
    logs.drones[2].keys[0].key = None;
    assert_eq!(only(&check(&logs)), (Invariant::Agreement, vec![drone_name(2)]));
}

#[test]
fn epoch_the_leader_never_made_breaks_agreement() {
    let mut logs = history();
    logs.drones[2].keys.push(held(9, 9));
    assert_eq!(only(&check(&logs)), (Invariant::Agreement, vec![drone_name(2)]));
}

#[test]
fn leaver_with_a_later_key_breaks_forward_secrecy() {
    let mut logs = history();
    logs.drones[0].keys.push(held(2, 2));
    assert_eq!(only(&check(&logs)), (Invariant::ForwardSecrecyAfterLeave, vec![drone_name(0)]));
}

#[test]
fn newcomer_with_an_earlier_key_breaks_backward_secrecy() {
    let mut logs = history();
    logs.drones[2].keys.insert(0, held(2, 2));
    assert_eq!(only(&check(&logs)), (Invariant::BackwardSecrecyBeforeJoin, vec![drone_name(2)]));
}

#[test]
fn outsider_with_a_key_is_unauthorised() {
    let mut logs = history();
    logs.drones[3].keys.push(held(3, 3));
    assert_eq!(only(&check(&logs)), (Invariant::NoUnauthorisedMember, vec![drone_name(3)]));
}

#[test]
fn leader_that_lets_in_an_outsider_is_caught() {
    let mut logs = history();
    logs.leader.epochs[2].members.push(3);
    assert_eq!(only(&check(&logs)), (Invariant::NoUnauthorisedMember, vec![drone_name(3)]));
    let mut logs = history();
    logs.leader.epochs[2].strangers.push("mallory".into());
    let violations = check(&logs);
    assert!(violations[0].detail.contains("mallory"), "{violations:?}");
}

#[test]
fn drone_that_goes_back_is_caught() {
    let mut logs = history();
    logs.drones[1].keys.push(held(2, 2));
    assert_eq!(only(&check(&logs)), (Invariant::NoEpochRegression, vec![drone_name(1)]));
}

#[test]
fn regression_between_two_looks_is_caught() {
    let mut logs = history();
    let mut checker = Checker::default();
    let authorised = BTreeSet::from([0, 1, 2]);
    checker.keys(&logs, &authorised);
    checker.keys(&logs, &authorised);
    assert_eq!(checker.violations, []);
    logs.drones[1].keys.push(held(1, 1));
    logs.leader.epochs.push(led(2, 2, &[1, 2]));
    checker.keys(&logs, &authorised);
    let found: Vec<Invariant> = checker.violations.iter().map(|v| v.invariant).collect();
    assert_eq!(found, [Invariant::NoEpochRegression, Invariant::NoEpochRegression]);
}

#[test]
fn same_key_in_two_epochs_is_caught() {
    let mut logs = history();
    logs.leader.epochs[2] = led(3, 2, &[1, 2]);
    logs.drones[1].keys[2] = held(3, 2);
    logs.drones[2].keys[0] = held(3, 2);
    assert_eq!(only(&check(&logs)).0, Invariant::Agreement);
}

#[test]
fn export_of_who_is_outside_is_compared_with_every_key() {
    let logs = history();
    let secret = |key: u8| Some(Secret::new([key; 32]));
    let export = |drone, key| {
        let mut checker = Checker::default();
        checker.outsiders(&logs, &[(drone, key)]);
        checker.violations.first().map(|violation| violation.invariant)
    };
    assert_eq!(export(0, None), None);
    assert_eq!(export(0, secret(3)), Some(Invariant::ForwardSecrecyAfterLeave));
    assert_eq!(export(2, secret(1)), Some(Invariant::BackwardSecrecyBeforeJoin));
    assert_eq!(export(3, secret(2)), Some(Invariant::NoUnauthorisedMember));
    assert_eq!(export(3, secret(99)), Some(Invariant::Agreement));
}

#[test]
fn export_of_members_is_compared_with_the_newest_key() {
    let logs = history();
    let mut checker = Checker::default();
    checker.members(&logs, &[(1, Some(Secret::new([3; 32]))), (2, Some(Secret::new([3; 32])))]);
    assert_eq!(checker.violations, []);
    checker.members(&logs, &[(1, Some(Secret::new([2; 32]))), (2, None)]);
    assert_eq!(only(&checker.violations), (Invariant::Agreement, vec![drone_name(1), drone_name(2)]));
}

fn received(logs: &mut Logs, drone: usize, number: u32, times: u32) {
    logs.drones[drone].received.insert(number, (times, measure::now()));
}

/// Message 5 by the leader to 1 and 2, message 6 by drone 1 to drone 2, all delivered.
fn talk() -> (Logs, Vec<SentMessage>) {
    let mut logs = history();
    received(&mut logs, 1, 5, 1);
    received(&mut logs, 2, 5, 1);
    received(&mut logs, 2, 6, 1);
    logs.leader.received.insert(6, 1);
    let sent = |number, by, audience: &[u32]| SentMessage {
        number,
        by,
        audience: audience.iter().copied().collect(),
    };
    (logs, vec![sent(5, None, &[1, 2]), sent(6, Some(1), &[2])])
}

fn listen(logs: &Logs, sent: &[SentMessage]) -> Vec<RunViolation> {
    let mut checker = Checker::default();
    checker.messages(logs, sent);
    checker.violations
}

#[test]
fn messages_heard_once_by_their_audience_pass() {
    let (logs, sent) = talk();
    assert_eq!(listen(&logs, &sent), []);
}

#[test]
fn message_lost_doubled_or_overheard_breaks_delivery() {
    let spoilers: [fn(&mut Logs); 5] = [
        |logs| received(logs, 1, 5, 2),
        |logs| {
            logs.drones[2].received.remove(&6);
        },
        |logs| received(logs, 0, 5, 1),
        |logs| received(logs, 1, 6, 1),
        |logs| {
            logs.leader.received.insert(6, 2);
        },
    ];
    for (number, spoil) in spoilers.into_iter().enumerate() {
        let (mut logs, sent) = talk();
        spoil(&mut logs);
        let violations = listen(&logs, &sent);
        assert_eq!(only(&violations).0, Invariant::Delivery, "spoiler {number}");
    }
}

#[test]
fn message_that_nobody_sent_breaks_delivery() {
    let (mut logs, sent) = talk();
    received(&mut logs, 2, 99, 1);
    assert_eq!(only(&listen(&logs, &sent)), (Invariant::Delivery, vec![drone_name(2)]));
    let (mut logs, sent) = talk();
    logs.drones[1].unknown_messages = 1;
    assert_eq!(only(&listen(&logs, &sent)), (Invariant::Delivery, vec![drone_name(1)]));
}

#[test]
fn long_lists_of_drones_are_cut() {
    let violation = RunViolation {
        invariant: Invariant::Convergence,
        step: "join".into(),
        drones: (0..100).map(drone_name).collect(),
        detail: "late".into(),
    };
    let text = violation.to_string();
    assert!(
        text.starts_with("convergence (after join): late: drone-00000") && text.ends_with("and 80 more"),
        "{text}"
    );
}
