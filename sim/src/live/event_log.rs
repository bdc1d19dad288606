//! Records the events of all nodes, wherever they run, and lets phases wait for a goal.
//!
//! A phase states a [`PhaseGoal`] for some drones. Every event re-evaluates the goal for the one drone it is
//! about, so waiting costs nothing per drone, however many there are; only a new epoch at the leader
//! re-evaluates all.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quiver_ainq::Epoch;
use quiver_crypto::Secret;
use quiver_report::ProgressStep;
use tokio::sync::Notify;

use super::drone_event::{DroneEvent, EventSink, Exported};
use crate::measure;

/// Interval at which progress is displayed while waiting.
const TICK: Duration = Duration::from_millis(100);

/// A group key as a node exported it.
#[derive(Clone, Debug)]
pub(crate) struct HeldGroupKey {
    /// Epoch of the key.
    pub(crate) epoch: Epoch,
    /// The exported secret; `None` if the machine had none to export although it reported the epoch.
    pub(crate) key: Option<Secret<32>>,
    /// Time since which it is held.
    pub(crate) at: Instant,
}

/// The log of a drone.
#[derive(Clone, Debug, Default)]
pub(crate) struct DroneLog {
    /// Every key it ever had, in order.
    pub(crate) keys: Vec<HeldGroupKey>,
    /// Time of its enrolment.
    pub(crate) enrolled: Option<Instant>,
    /// Time at which it reported that it left.
    pub(crate) left: Option<Instant>,
    /// Time at which it was refused.
    pub(crate) refused: Option<Instant>,
    /// Number of times it received each message, and the first time.
    pub(crate) received: BTreeMap<u32, (u32, Instant)>,
    /// Messages that no node sent.
    pub(crate) unknown_messages: u32,
    /// Number of times it opened each sealed order, and the first time.
    pub(crate) opened: BTreeMap<u32, (u32, Instant)>,
    /// Times at which it received an envelope whose policy its attributes do not satisfy.
    pub(crate) unfit: Vec<Instant>,
    /// The order for the second phase that it has, as it was handed on.
    pub(crate) order: Option<(Vec<u8>, Instant)>,
    /// The content that it read, and the time.
    pub(crate) read: Option<(Vec<u8>, Instant)>,
    /// Result of its last anonymous join (true if it was admitted), and the time.
    pub(crate) admitted: Option<(bool, Instant)>,
    /// True if it was evicted from the group.
    pub(crate) evicted: bool,
}

impl DroneLog {
    fn note(&mut self, what: DroneEvent, at: Instant) {
        match what {
            DroneEvent::Enrolled => self.enrolled = Some(at),
            DroneEvent::Key { term, counter, key } => {
                let key = key.map(|Exported(key)| key);
                self.keys.push(HeldGroupKey { epoch: Epoch { term, counter }, key, at });
            }
            DroneEvent::MessageReceived(number) => self.received.entry(number).or_insert((0, at)).0 += 1,
            DroneEvent::UnknownMessage => self.unknown_messages += 1,
            DroneEvent::EnvelopeOpened(number) => self.opened.entry(number).or_insert((0, at)).0 += 1,
            DroneEvent::EnvelopeNotSatisfied => self.unfit.push(at),
            DroneEvent::OrderReceived(data) => self.order = Some((data, at)),
            DroneEvent::OrderRead(text) => self.read = Some((text, at)),
            DroneEvent::Admitted(_) => self.admitted = Some((true, at)),
            DroneEvent::PolicyNotSatisfied => self.admitted = Some((false, at)),
            DroneEvent::Left => self.left = Some(at),
            DroneEvent::Evicted => self.evicted = true,
            DroneEvent::Refused => self.refused = Some(at),
        }
    }
}

/// An epoch as the leader reported it.
#[derive(Clone, Debug)]
pub(crate) struct LeaderEpoch {
    /// Key of the epoch.
    pub(crate) held: HeldGroupKey,
    /// The drones in it, ascending.
    pub(crate) members: Vec<u32>,
    /// Members with names that are no drone's.
    pub(crate) strangers: Vec<String>,
    /// Pseudonyms of anonymous members that no drone has reported yet.
    pub(crate) anonymous: Vec<[u8; 16]>,
}

/// The log of the leader.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaderLog {
    /// Epochs of the leader in order.
    pub(crate) epochs: Vec<LeaderEpoch>,
    /// Number of times it received each message.
    pub(crate) received: BTreeMap<u32, u32>,
    /// Messages that no node sent.
    pub(crate) unknown_messages: u32,
    /// Number of its enrolments.
    pub(crate) enrolments: u32,
}

/// The logs of all nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Logs {
    /// Logs of drones by index.
    pub(crate) drones: Vec<DroneLog>,
    /// The leader's.
    pub(crate) leader: LeaderLog,
    /// The drones that have reported each pseudonym.
    pub(crate) pseudonyms: BTreeMap<[u8; 16], u32>,
    /// Number of members of the leader's newest epoch.
    pub(crate) members: usize,
    /// The key hash H(D, P) to which the KGC bound each name.
    pub(crate) pins: BTreeMap<String, [u8; 32]>,
    /// Offences that nodes reported of each other, with their counts.
    pub(crate) offences: BTreeMap<String, u64>,
}

impl Logs {
    /// Counts anonymous members whose drones have reported their pseudonyms as members of the epoch.
    fn recognise(&mut self) {
        let Self { pseudonyms, leader, .. } = self;
        for epoch in leader.epochs.iter_mut().filter(|epoch| !epoch.anonymous.is_empty()) {
            let LeaderEpoch { members, anonymous, .. } = epoch;
            anonymous.retain(|pseudonym| match pseudonyms.get(pseudonym) {
                None => true,
                Some(drone) => {
                    if let Err(place) = members.binary_search(drone) {
                        members.insert(place, *drone);
                    }
                    false
                }
            });
        }
    }
}

/// The goal that a phase waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PhaseGoal {
    /// The drone has a key of its own.
    Enrolled,
    /// The drone holds the leader's newest key, which is newer than `after`, and as many have it as are
    /// waited for.
    Synced {
        /// The newest epoch before.
        after: Option<Epoch>,
    },
    /// The drone received this message.
    MessageReceived(u32),
    /// The drone opened this sealed order.
    Opened(u32),
    /// The drone opened this sealed order, or knows that it does not fit.
    EnvelopeReceived(u32),
    /// The drone has the order for the second phase.
    HasOrder,
    /// The drone has read it.
    ReadOrder,
    /// The drone was admitted anonymously, or denied.
    Decided,
    /// The drone left.
    Left,
    /// The drone was refused.
    Refused,
}

impl PhaseGoal {
    /// Time at which the drone reached the goal; `None` if it has not. So many are waited for.
    fn reached(self, drone: &DroneLog, logs: &Logs, waited_for: usize) -> Option<Instant> {
        match self {
            Self::Enrolled => drone.enrolled,
            Self::HasOrder => drone.order.as_ref().map(|(_, at)| *at),
            Self::ReadOrder => drone.read.as_ref().map(|(_, at)| *at),
            Self::Decided => drone.admitted.map(|(_, at)| at),
            Self::Left => drone.left,
            Self::Refused => drone.refused,
            Self::Opened(number) => drone.opened.get(&number).map(|(_, at)| *at),
            Self::EnvelopeReceived(number) => {
                drone.opened.get(&number).map(|(_, at)| *at).or(drone.unfit.first().copied())
            }
            Self::MessageReceived(number) => drone.received.get(&number).map(|(_, at)| *at),
            Self::Synced { after } => {
                let newest = logs.leader.epochs.last()?;
                let mine = drone.keys.last()?;
                let there =
                    mine.epoch == newest.held.epoch && Some(mine.epoch) > after && logs.members == waited_for;
                there.then_some(mine.at)
            }
        }
    }
}

/// Goal and results of a phase.
#[derive(Debug)]
pub(crate) struct Reached {
    /// Time at which each drone reached the goal.
    pub(crate) drones: Vec<(u32, Instant)>,
    /// Drones that were late.
    pub(crate) missing: Vec<u32>,
}

/// The state of a drone that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitState {
    Awaited,
    There(Instant),
}

struct GoalWait {
    goal: PhaseGoal,
    /// Index of a drone in `standings`; `None` if it is not waited for.
    place: Vec<Option<usize>>,
    standings: Vec<(u32, WaitState)>,
    awaited: usize,
}

impl GoalWait {
    fn there(&self) -> usize {
        self.standings.len() - self.awaited
    }
}

#[derive(Default)]
struct EventLogState {
    logs: Logs,
    wait: Option<GoalWait>,
}

impl EventLogState {
    /// Evaluates the goal for one drone. Returns whether all have reached it.
    fn reconsider(&mut self, index: u32) -> bool {
        let Some(wait) = &mut self.wait else { return false };
        let Some(Some(place)) = wait.place.get(index as usize) else {
            return false;
        };
        let waited_for = wait.standings.len();
        let (Some(log), Some((_, standing))) =
            (self.logs.drones.get(index as usize), wait.standings.get_mut(*place))
        else {
            return false;
        };
        let now = match wait.goal.reached(log, &self.logs, waited_for) {
            Some(since) => WaitState::There(since),
            None => WaitState::Awaited,
        };
        match (*standing == WaitState::Awaited, now == WaitState::Awaited) {
            (true, false) => wait.awaited -= 1,
            (false, true) => wait.awaited += 1,
            _ => {}
        }
        *standing = now;
        wait.awaited == 0
    }

    /// Evaluates the goal for every drone. Returns whether all have reached it.
    fn reconsider_all(&mut self) -> bool {
        let waited_for: Vec<u32> = match &self.wait {
            Some(wait) => wait.standings.iter().map(|(index, _)| *index).collect(),
            None => return false,
        };
        // The last one's answer is that about all.
        waited_for.into_iter().fold(false, |_, index| self.reconsider(index))
    }

    /// Number of drones that have reached the goal. While members wait for the newest key, those that hold any key
    /// newer than before the wait: nobody has reached that goal until all are members.
    fn progress(&self) -> usize {
        let Some(wait) = &self.wait else { return 0 };
        let PhaseGoal::Synced { after } = wait.goal else { return wait.there() };
        let held = wait.standings.iter().filter_map(|(index, _)| self.logs.drones.get(*index as usize));
        held.filter(|log| log.keys.last().map(|held| held.epoch) > after).count()
    }

    /// Counts the members of the newest epoch.
    fn count_members(&mut self) {
        let newest = self.logs.leader.epochs.last();
        self.logs.members = newest.map_or(0, |epoch| epoch.members.len() + epoch.anonymous.len());
    }
}

/// The log to which all nodes report their events.
#[derive(Default)]
pub(crate) struct EventLog {
    state: Mutex<EventLogState>,
    reached: Notify,
}

impl EventLog {
    /// An event log for so many drones.
    pub(crate) fn new(drones: usize) -> Self {
        let event_log = Self::default();
        event_log.lock().logs.drones.resize_with(drones, DroneLog::default);
        event_log
    }

    fn lock(&self) -> MutexGuard<'_, EventLogState> {
        // A panic while reporting ends that node's task; its earlier reports are whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an event of a drone.
    #[cfg(test)]
    pub(crate) fn drone(&self, index: u32, record: impl FnOnce(&mut DroneLog, Instant)) {
        let now = measure::now();
        self.record(index, |log| record(log, now));
    }

    /// Records an event of a drone elsewhere, at that time of this process's clock.
    pub(crate) fn record_at(&self, index: u32, what: DroneEvent, at: Instant) {
        if let DroneEvent::Admitted(pseudonym) = what {
            let mut state = self.lock();
            state.logs.pseudonyms.insert(pseudonym, index);
            state.logs.recognise();
            state.count_members();
        }
        self.record(index, |log| log.note(what, at));
    }

    /// Forgets whether these were admitted or denied.
    pub(crate) fn reset_admission(&self, drones: &[u32]) {
        let mut state = self.lock();
        for drone in drones {
            if let Some(log) = state.logs.drones.get_mut(*drone as usize) {
                log.admitted = None;
            }
        }
    }

    fn record(&self, index: u32, record: impl FnOnce(&mut DroneLog)) {
        let mut state = self.lock();
        let Some(log) = state.logs.drones.get_mut(index as usize) else {
            return;
        };
        record(log);
        if state.reconsider(index) {
            self.reached.notify_one();
        }
    }

    /// Records an event of the leader.
    pub(crate) fn leader(&self, record: impl FnOnce(&mut LeaderLog, Instant)) {
        let now = measure::now();
        let mut state = self.lock();
        let epochs = state.logs.leader.epochs.len();
        record(&mut state.logs.leader, now);
        if state.logs.leader.epochs.len() == epochs {
            return;
        }
        state.logs.recognise();
        state.count_members();
        if state.reconsider_all() {
            self.reached.notify_one();
        }
    }

    /// The KGC bound a name to a key.
    pub(crate) fn pinned(&self, name: String, pin: [u8; 32]) {
        self.lock().logs.pins.insert(name, pin);
    }

    /// Reads the logs.
    pub(crate) fn with_logs<T>(&self, read: impl FnOnce(&Logs) -> T) -> T {
        read(&self.lock().logs)
    }

    /// The newest epoch of the leader.
    pub(crate) fn newest(&self) -> Option<Epoch> {
        self.with_logs(|logs| logs.leader.epochs.last().map(|epoch| epoch.held.epoch))
    }

    /// Sets the goal to be waited for, before its cause.
    pub(crate) fn expect(&self, goal: PhaseGoal, drones: &[u32]) {
        let mut state = self.lock();
        let mut place = vec![None; state.logs.drones.len()];
        for (at, index) in drones.iter().enumerate() {
            if let Some(slot) = place.get_mut(*index as usize) {
                *slot = Some(at);
            }
        }
        let standings = drones.iter().map(|index| (*index, WaitState::Awaited)).collect();
        state.wait = Some(GoalWait { goal, place, standings, awaited: drones.len() });
        for index in drones {
            state.reconsider(*index);
        }
    }

    /// Number of drones on the way to the goal, or there.
    pub(crate) fn progress(&self) -> usize {
        self.lock().progress()
    }

    /// Waits until all drones are where they shall be, or until the time is over.
    pub(crate) async fn reached(&self, within: Duration, step: &ProgressStep) -> Reached {
        let deadline = measure::now() + within;
        loop {
            let (done, over) = {
                let state = self.lock();
                (state.progress(), state.wait.as_ref().is_none_or(|wait| wait.awaited == 0))
            };
            step.done(done);
            if over || measure::now() >= deadline {
                return self.finish();
            }
            // The last drone notifies; the tick only moves the bar.
            let _ = tokio::time::timeout(TICK, self.reached.notified()).await;
        }
    }

    fn finish(&self) -> Reached {
        let Some(wait) = self.lock().wait.take() else {
            return Reached { drones: Vec::new(), missing: Vec::new() };
        };
        let (mut drones, mut missing) = (Vec::new(), Vec::new());
        for (index, standing) in wait.standings {
            match standing {
                WaitState::There(at) => drones.push((index, at)),
                WaitState::Awaited => missing.push(index),
            }
        }
        Reached { drones, missing }
    }
}

impl EventSink for EventLog {
    fn record_event(&self, drone: u32, what: DroneEvent) {
        self.record_at(drone, what, measure::now());
    }

    fn order_of(&self, drone: u32) -> Option<Vec<u8>> {
        self.with_logs(|logs| logs.drones.get(drone as usize)?.order.as_ref().map(|(order, _)| order.clone()))
    }

    fn offence(&self, who: &str, offence: &dyn Display) {
        tracing::warn!(who, %offence, "blamed a peer");
        let kind = format!("{}: {offence}", who.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-'));
        *self.lock().logs.offences.entry(kind).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quiver_report::Progress;

    fn step() -> ProgressStep {
        Progress::hidden().step("test", 1)
    }

    fn epoch(counter: u64) -> Epoch {
        Epoch { term: 1 << 16, counter }
    }

    fn held(counter: u64) -> HeldGroupKey {
        HeldGroupKey { epoch: epoch(counter), key: Some(Secret::new([1; 32])), at: measure::now() }
    }

    fn lead(event_log: &EventLog, counter: u64, members: Vec<u32>) {
        event_log.leader(|log, _| {
            log.epochs.push(LeaderEpoch {
                held: held(counter),
                members,
                strangers: vec![],
                anonymous: vec![],
            });
        });
    }

    fn hold(event_log: &EventLog, drone: u32, counter: u64) {
        event_log.drone(drone, |log, _| log.keys.push(held(counter)));
    }

    #[test]
    fn progress_counts_members_before_all_are_in_the_newest_epoch() {
        let event_log = EventLog::new(3);
        event_log.expect(PhaseGoal::Synced { after: Some(epoch(1)) }, &[0, 1, 2]);
        hold(&event_log, 0, 1);
        assert_eq!(event_log.progress(), 0, "an older key");
        lead(&event_log, 2, vec![0, 1]);
        hold(&event_log, 0, 2);
        hold(&event_log, 1, 2);
        assert_eq!(event_log.progress(), 2);
        lead(&event_log, 3, vec![0, 1, 2]);
        hold(&event_log, 2, 3);
        assert_eq!(event_log.progress(), 3);
    }

    #[tokio::test]
    async fn goal_is_reached_when_the_last_drone_reports() {
        let event_log = EventLog::new(3);
        event_log.expect(PhaseGoal::Enrolled, &[0, 2]);
        event_log.drone(0, |log, at| log.enrolled = Some(at));
        event_log.drone(1, |log, at| log.enrolled = Some(at));
        let early = event_log.reached(Duration::from_millis(1), &step()).await;
        assert_eq!((early.drones.len(), early.missing), (1, vec![2]));

        event_log.expect(PhaseGoal::Enrolled, &[0, 2]);
        event_log.drone(2, |log, at| log.enrolled = Some(at));
        let reached = event_log.reached(Duration::from_secs(10), &step()).await;
        assert_eq!((reached.drones.len(), reached.missing.len()), (2, 0));
    }

    #[tokio::test]
    async fn a_newer_epoch_at_the_leader_takes_the_goal_back() {
        let event_log = EventLog::new(2);
        let goal = PhaseGoal::Synced { after: None };
        event_log.expect(goal, &[0, 1]);
        hold(&event_log, 0, 1);
        hold(&event_log, 1, 1);
        lead(&event_log, 1, vec![0, 1]);
        lead(&event_log, 2, vec![0, 1]);
        hold(&event_log, 0, 2);
        let reached = event_log.reached(Duration::from_millis(1), &step()).await;
        assert_eq!(reached.missing, [1]);
    }

    #[tokio::test]
    async fn synced_needs_a_newer_epoch_and_the_right_members() {
        let event_log = EventLog::new(2);
        lead(&event_log, 1, vec![0]);
        hold(&event_log, 0, 1);
        event_log.expect(PhaseGoal::Synced { after: Some(epoch(1)) }, &[0]);
        assert_eq!(event_log.reached(Duration::ZERO, &step()).await.missing, [0]);
        event_log.expect(PhaseGoal::Synced { after: None }, &[0, 1]);
        assert_eq!(event_log.reached(Duration::ZERO, &step()).await.missing, [0, 1]);
        event_log.expect(PhaseGoal::Synced { after: None }, &[0]);
        assert!(event_log.reached(Duration::ZERO, &step()).await.missing.is_empty());
    }
}
