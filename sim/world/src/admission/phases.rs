//! The phases of anonymous admission: members are exactly those that the policy admits, and nothing links
//! their memberships.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use quiver_admission::{AnonymousEvent, Ending};
use quiver_ainq::Suite;
use quiver_group::{EdgeCommand, LeaderEvent};
use quiver_machine::Either;

use super::{AT_ONCE, AdmissionNodeEvent, CheckpointError, Sightings, is_unsatisfied, linked};
use crate::EPOCH_START;
use crate::run::Phase;
use crate::run::phases::Phases;
use crate::{Action, Invariant};

/// Time after the end of a period in which no member is left, and none is back yet: clocks count whole
/// seconds.
const BETWEEN_PERIODS: Duration = Duration::from_millis(1_500);

/// Anonymous members, as drones and leader report them.
#[derive(Debug, Default)]
pub(crate) struct AnonymousMembers<S: Suite> {
    inside: BTreeSet<u32>,
    outside: BTreeSet<u32>,
    /// All pseudonyms of drones and of the leader.
    had: BTreeSet<[u8; 16]>,
    given: BTreeSet<[u8; 16]>,
    /// Refusals of drones whose credential was in order.
    troubles: Vec<String>,
    pub(crate) sightings: Sightings<S>,
}

impl<S: Suite> AnonymousMembers<S> {
    pub(crate) fn edge(&mut self, number: u32, event: &AdmissionNodeEvent) {
        let AdmissionNodeEvent::Anonymous(event) = event else { return };
        match event {
            AnonymousEvent::Admitted { pseudonym, .. } => {
                self.had.insert(pseudonym.0);
                self.outside.remove(&number);
                self.inside.insert(number);
            }
            AnonymousEvent::Ended(why) => {
                self.inside.remove(&number);
                match why {
                    why if is_unsatisfied(why) => {
                        self.outside.insert(number);
                    }
                    Ending::Denied(error) if why.is_final() => {
                        self.troubles.push(format!("edge-{number} was refused without a reason: {error}"));
                    }
                    _ => {}
                }
            }
            AnonymousEvent::Edge(_) => {}
        }
    }

    pub(crate) fn leader(&mut self, event: &LeaderEvent) {
        if let LeaderEvent::Admitted { pseudonym, .. } = event {
            self.given.insert(pseudonym.0);
        }
    }

    fn decided(&self, drones: &[u32]) -> u32 {
        let decided = |drone: &&u32| self.inside.contains(*drone) || self.outside.contains(*drone);
        u32::try_from(drones.iter().filter(decided).count()).unwrap_or(u32::MAX)
    }
}

impl<S: Suite> Phases<'_, S> {
    pub(crate) fn is_anonymous(&self) -> bool {
        self.plan.admission.is_some()
    }

    /// Divides drones into those that the policy admits, and the rest.
    fn sorted(&self, drones: &[u32]) -> Result<(Vec<u32>, Vec<u32>), CheckpointError> {
        let (mut inside, mut outside) = (Vec::new(), Vec::new());
        for drone in drones {
            let Some(checkpoint) = self.world.fleet().checkpoint() else { break };
            let admitted = checkpoint.admits(&checkpoint.fields(*drone))?;
            if admitted { inside.push(*drone) } else { outside.push(*drone) }
        }
        Ok((inside, outside))
    }

    /// Admits drones anonymously, in waves as large as the gate has room for.
    pub(crate) fn admit_anonymous(&mut self, phase: Phase, newcomers: &[u32]) -> bool {
        let (inside, outside) = match self.sorted(newcomers) {
            Ok(sorted) => sorted,
            Err(error) => {
                self.violate(Invariant::Admission, &phase, error.to_string());
                return false;
            }
        };
        let mark = self.mark();
        self.members.extend(&inside);
        for wave in newcomers.chunks(AT_ONCE) {
            for drone in wave {
                self.world.schedule(self.world.time(), Action::Join(*drone));
            }
            let of = u32::try_from(wave.len()).unwrap_or(u32::MAX);
            if !self.until(phase, of, |phases| phases.arrivals.anonymous.decided(wave)) {
                return false;
            }
        }
        let there = inside.is_empty() || self.synced(phase, &mark);
        let count = format!("{} of {} admitted", inside.len(), newcomers.len());
        self.operate(phase, count, &mark, &inside);
        there && self.check_keys(&phase, &outside) && self.check_doors(&phase)
    }

    /// Checks that exactly the members are in, and only they were admitted.
    fn check_doors(&mut self, step: &dyn fmt::Display) -> bool {
        let (anonymous, members) = (&self.arrivals.anonymous, self.members.iter().copied().collect());
        let mut wrong = anonymous.troubles.clone();
        let intruders = anonymous.inside.difference(&members).count();
        let shut_out = members.difference(&anonymous.inside).count();
        let strangers = anonymous.given.symmetric_difference(&anonymous.had).count();
        self.checks +=
            anonymous.inside.len() as u64 + anonymous.outside.len() as u64 + anonymous.given.len() as u64;
        if intruders > 0 {
            wrong.push(format!("{intruders} are members although they do not satisfy the policy"));
        }
        if shut_out > 0 {
            wrong.push(format!("{shut_out} are not members although they satisfy the policy"));
        }
        if strangers > 0 {
            wrong.push(format!("{strangers} pseudonyms are known only to the leader or only to a drone"));
        }
        let held = wrong.is_empty();
        wrong.into_iter().for_each(|detail| self.violate(Invariant::Admission, step, detail));
        held
    }

    /// Makes all members leave, and all drones that ever wanted to join apply again with the same
    /// credentials.
    pub(crate) fn rejoin_all(&mut self) -> bool {
        if !self.is_anonymous() {
            return true;
        }
        let (mark, before) = (self.mark(), self.arrivals.left);
        let (members, all) =
            (std::mem::take(&mut self.members), u32::try_from(self.arrivals.anonymous.inside.len()));
        self.world.command_edges(
            members.iter().copied(),
            &Either::Left(EdgeCommand::Leave),
            &mut self.arrivals,
        );
        let all = all.unwrap_or(u32::MAX);
        if !self.until(Phase::LeaveAll, all, |phases| phases.arrivals.left - before) {
            return false;
        }
        self.operate(Phase::LeaveAll, all.to_string(), &mark, &members);
        let mut drones: Vec<u32> =
            members.into_iter().chain(self.arrivals.anonymous.outside.clone()).collect();
        drones.sort_unstable();
        self.admit_anonymous(Phase::ComeAgain, &drones)
    }

    /// The period ends, and with it every membership. With the credentials of the next one all come back.
    pub(crate) fn end_of_period(&mut self) -> bool {
        let Some(checkpoint) = self.world.fleet().checkpoint() else { return true };
        let ends = checkpoint.end_of(checkpoint.period_at(self.world.unix())) - EPOCH_START;
        self.world.run_until(Duration::from_secs(ends), &mut self.arrivals);
        let (mark, members) = (self.mark(), std::mem::take(&mut self.members));
        let tried: Vec<u32> = members.iter().chain(&self.arrivals.anonymous.outside).copied().collect();
        self.world.run_for(BETWEEN_PERIODS, &mut self.arrivals);
        let left = self.world.leader(0).map_or(0, |leader| leader.status().members);
        if left > 0 {
            let detail = format!("{left} are members although their period is over");
            self.violate(Invariant::Admission, &"end of a period", detail);
        }
        if !self.check_keys(&"end of a period", &tried) || left > 0 {
            return false;
        }
        self.arrivals.anonymous.outside.clear();
        let of = u32::try_from(tried.len()).unwrap_or(u32::MAX);
        if !self.until(Phase::NextPeriod, of, |phases| phases.arrivals.anonymous.decided(&tried)) {
            return false;
        }
        self.members = members;
        let there = self.members.is_empty() || self.synced(Phase::NextPeriod, &mark);
        let members = self.members.clone();
        self.operate(Phase::NextPeriod, format!("{} of {of} admitted", members.len()), &mark, &members);
        there && self.check_keys(&Phase::NextPeriod, &[]) && self.check_doors(&Phase::NextPeriod)
    }

    /// Checks at the end that no message from or to the leader links two memberships of one drone.
    pub(crate) fn check_unlinkability(&mut self) -> bool {
        if !self.is_anonymous() {
            return true;
        }
        let lives = self.arrivals.anonymous.sightings.lives();
        self.checks += lives.len() as u64;
        let linked = linked(&lives);
        if !linked.is_empty() {
            let told = linked.iter().map(|(drone, stretch)| format!("edge-{drone} by {:02x?}", stretch));
            let numbers: Vec<String> = told.collect();
            let (count, numbers) = (linked.len(), numbers.join(", "));
            let detail = format!("the leader can link two memberships of {count} drones ({numbers})");
            self.violate(Invariant::Unlinkability, &"all phases", detail);
        }
        linked.is_empty() && self.check_doors(&"all phases")
    }
}
