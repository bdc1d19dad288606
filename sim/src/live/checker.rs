//! Checks the invariants on what every node reported.
//!
//! Of the simulator's invariants the live world checks these; the reuse of a mask is not visible from
//! outside.

use std::collections::BTreeSet;

use quiver_ainq::Epoch;
use quiver_crypto::Secret;
use quiver_world::Invariant;
use quiver_world::run::RunViolation;

use super::drone_name;
use super::event_log::{HeldGroupKey, LeaderEpoch, Logs};

/// Compares reports with each other, and collects violations.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    pub(crate) violations: Vec<RunViolation>,
    pub(crate) checks: u64,
    step: String,
    /// Number of the leader's epochs, and of every drone's keys, that have been checked.
    epochs_seen: usize,
    keys_seen: Vec<usize>,
}

/// A message that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentMessage {
    pub(crate) number: u32,
    /// The drone that sent it; `None` for the leader.
    pub(crate) by: Option<u32>,
    /// The drones that shall receive it.
    pub(crate) audience: BTreeSet<u32>,
}

impl Checker {
    /// Sets the step after which violations are found from now on.
    pub(crate) fn after(&mut self, step: &str) {
        self.step = step.to_string();
    }

    /// Checks one thing for each drone; those for which it is wrong violate the invariant.
    pub(crate) fn none<'a>(
        &mut self,
        invariant: Invariant,
        detail: &str,
        drones: impl IntoIterator<Item = (u32, bool)> + 'a,
    ) {
        let mut wrong = Vec::new();
        for (drone, is_wrong) in drones {
            self.checks += 1;
            if is_wrong {
                wrong.push(drone);
            }
        }
        if !wrong.is_empty() {
            self.violate(invariant, detail.to_string(), &wrong);
        }
    }

    /// Checks one thing that is about no drone in particular.
    pub(crate) fn that(&mut self, invariant: Invariant, holds: bool, detail: impl FnOnce() -> String) {
        self.checks += 1;
        if !holds {
            self.violate(invariant, detail(), &[]);
        }
    }

    fn violate(&mut self, invariant: Invariant, detail: String, drones: &[u32]) {
        self.violations.push(RunViolation {
            invariant,
            step: self.step.clone(),
            drones: drones.iter().map(|drone| drone_name(*drone)).collect(),
            detail,
        });
    }

    /// Compares every key that was reported since the last time. `authorised` may be in the group.
    pub(crate) fn keys(&mut self, logs: &Logs, authorised: &BTreeSet<u32>) {
        self.leader_epochs(logs, authorised);
        let epochs = &logs.leader.epochs;
        self.keys_seen.resize(logs.drones.len(), 0);
        let mut wrong = WrongKeys::default();
        for ((drone, log), seen) in (0..).zip(&logs.drones).zip(&mut self.keys_seen) {
            let before = seen.checked_sub(1).and_then(|last| log.keys.get(last)).map(|held| held.epoch);
            let mut newest = before;
            for held in log.keys.iter().skip(*seen) {
                self.checks += 1;
                if newest.is_some_and(|newest| held.epoch < newest) {
                    wrong.regressed.push(drone);
                }
                newest = newest.max(Some(held.epoch));
                wrong.sort(drone, held, epochs);
            }
            *seen = log.keys.len();
        }
        self.report(&wrong);
    }

    /// Checks the leader's epochs since the last time.
    fn leader_epochs(&mut self, logs: &Logs, authorised: &BTreeSet<u32>) {
        let epochs = &logs.leader.epochs;
        let mut before = self.epochs_seen.checked_sub(1).and_then(|last| epochs.get(last));
        for epoch in epochs.iter().skip(self.epochs_seen) {
            let rises = before.is_none_or(|before| before.held.epoch < epoch.held.epoch);
            let differs = before.is_none_or(|before| before.held.key != epoch.held.key);
            self.that(Invariant::NoEpochRegression, rises, || "the leader's epoch does not rise".into());
            self.that(Invariant::Agreement, differs, || "two epochs of the leader have the same key".into());
            self.that(Invariant::Agreement, epoch.held.key.is_some(), || "the leader has no key".into());
            self.that(Invariant::NoUnauthorisedMember, epoch.strangers.is_empty(), || {
                format!("not a drone of this run: {}", epoch.strangers.join(", "))
            });
            self.none(
                Invariant::NoUnauthorisedMember,
                "the leader has members that are not authorised",
                epoch.members.iter().map(|member| (*member, !authorised.contains(member))),
            );
            before = Some(epoch);
        }
        self.epochs_seen = epochs.len();
    }

    fn report(&mut self, wrong: &WrongKeys) {
        let found = [
            (Invariant::NoEpochRegression, "went back to an older epoch", &wrong.regressed),
            (Invariant::Agreement, "has another key than the leader", &wrong.disagree),
            (Invariant::Agreement, "reports an epoch that the leader never made", &wrong.unknown),
            (Invariant::ForwardSecrecyAfterLeave, "holds a key made after it left", &wrong.after_leave),
            (Invariant::BackwardSecrecyBeforeJoin, "holds a key made before it joined", &wrong.before_join),
            (Invariant::NoUnauthorisedMember, "holds a key and was never a member", &wrong.never),
        ];
        for (invariant, detail, drones) in found {
            if !drones.is_empty() {
                self.violate(invariant, detail.into(), drones);
            }
        }
    }

    /// Compares what drones outside the group could export now with every key of the group.
    pub(crate) fn outsiders(&mut self, logs: &Logs, exported: &[(u32, Option<Secret<32>>)]) {
        let mut wrong = WrongKeys::default();
        for (drone, key) in exported {
            self.checks += 1;
            let Some(key) = key else { continue };
            match logs.leader.epochs.iter().find(|epoch| epoch.held.key.as_ref() == Some(key)) {
                // A key of the time when it was a member is no secret from it.
                Some(epoch) if epoch.members.binary_search(drone).is_ok() => {}
                Some(epoch) => wrong.file(*drone, epoch, &logs.leader.epochs),
                None => wrong.unknown.push(*drone),
            }
        }
        self.report(&wrong);
    }

    /// Compares what members export now with the leader's newest key.
    pub(crate) fn members(&mut self, logs: &Logs, exported: &[(u32, Option<Secret<32>>)]) {
        let newest = logs.leader.epochs.last().and_then(|epoch| epoch.held.key.as_ref());
        self.none(
            Invariant::Agreement,
            "does not export the leader's newest key",
            exported.iter().map(|(drone, key)| (*drone, newest.is_none() || key.as_ref() != newest)),
        );
    }

    /// Checks that each message was received exactly once by its audience and by no other drone.
    pub(crate) fn messages(&mut self, logs: &Logs, sent: &[SentMessage]) {
        for message in sent {
            let count =
                |drone: usize| logs.drones[drone].received.get(&message.number).map_or(0, |(n, _)| *n);
            self.none(
                Invariant::Delivery,
                &format!("message {} was not received exactly once", message.number),
                message.audience.iter().map(|drone| (*drone, count(*drone as usize) != 1)),
            );
            self.none(
                Invariant::Delivery,
                &format!("message {} was received outside its audience", message.number),
                (0..)
                    .zip(&logs.drones)
                    .filter(|(drone, _)| !message.audience.contains(drone))
                    .map(|(drone, _)| (drone, count(drone as usize) != 0)),
            );
            let wanted = u32::from(message.by.is_some());
            let received = logs.leader.received.get(&message.number).copied().unwrap_or_default();
            self.that(Invariant::Delivery, received == wanted, || {
                format!("the leader received message {} {received} times, not {wanted}", message.number)
            });
        }
        let numbers: BTreeSet<u32> = sent.iter().map(|message| message.number).collect();
        self.none(
            Invariant::Delivery,
            "received a message that no node sent",
            (0..).zip(&logs.drones).map(|(drone, log)| {
                (
                    drone,
                    log.unknown_messages != 0 || log.received.keys().any(|number| !numbers.contains(number)),
                )
            }),
        );
        self.that(Invariant::Delivery, logs.leader.unknown_messages == 0, || {
            "the leader received a message that no node sent".into()
        });
    }

    /// Checks that no drone was evicted but these.
    pub(crate) fn evictions(&mut self, logs: &Logs, evicted: &BTreeSet<u32>) {
        self.none(
            Invariant::Persistence,
            "was evicted from the group",
            (0..).zip(&logs.drones).map(|(drone, log)| (drone, log.evicted && !evicted.contains(&drone))),
        );
    }
}

#[derive(Default)]
struct WrongKeys {
    regressed: Vec<u32>,
    disagree: Vec<u32>,
    unknown: Vec<u32>,
    after_leave: Vec<u32>,
    before_join: Vec<u32>,
    never: Vec<u32>,
}

impl WrongKeys {
    /// Notes a violation by a key, if there is one.
    fn sort(&mut self, drone: u32, held: &HeldGroupKey, epochs: &[LeaderEpoch]) {
        let Some(epoch) = find(epochs, held.epoch) else {
            self.unknown.push(drone);
            return;
        };
        if epoch.members.binary_search(&drone).is_err() {
            self.file(drone, epoch, epochs);
        } else if held.key.is_none() || held.key != epoch.held.key {
            self.disagree.push(drone);
        }
    }

    /// The drone holds the key of an epoch that it is not in: which invariant that breaks.
    fn file(&mut self, drone: u32, epoch: &LeaderEpoch, epochs: &[LeaderEpoch]) {
        let in_it = |other: &&LeaderEpoch| other.members.binary_search(&drone).is_ok();
        let member_before =
            epochs.iter().filter(|other| other.held.epoch <= epoch.held.epoch).any(|other| in_it(&other));
        let member_after =
            epochs.iter().filter(|other| other.held.epoch > epoch.held.epoch).any(|other| in_it(&other));
        match (member_before, member_after) {
            (true, _) => self.after_leave.push(drone),
            (false, true) => self.before_join.push(drone),
            (false, false) => self.never.push(drone),
        }
    }
}

/// The leader's epochs rise, but the checker must not rely on it.
fn find(epochs: &[LeaderEpoch], wanted: Epoch) -> Option<&LeaderEpoch> {
    epochs.iter().rev().find(|epoch| epoch.held.epoch == wanted)
}

#[cfg(test)]
mod tests;
