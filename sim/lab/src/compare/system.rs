//! The systems that are compared, and the measurement of one of them.

use std::time::Duration;

use cpu_time::ThreadTime;
use quiver_ainq::StrategyKind;
use quiver_report::{Ink, Observer};
use serde::Serialize;

use super::event::{Cost, MembershipEvent, Sample};
use super::mls::MlsGroup;
use super::quiver::QuiverGroup;
use super::{ComparisonPlan, ComparisonRow, Cut, MlsComparison};
use crate::Result;
use crate::measure::Effort;

/// A system under comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum System {
    /// MLS after one committer added all members: the tree is blank but for the committer's path.
    MlsOneCommitter,
    /// MLS after a member of each pair has committed: the tree is full.
    MlsWarm,
    /// Quiver, one wrap for each drone.
    Flat,
    /// Quiver, a key tree.
    Tree,
}

impl System {
    /// All, in the order they are measured.
    pub const ALL: [Self; 4] = [Self::MlsOneCommitter, Self::MlsWarm, Self::Flat, Self::Tree];

    /// Name of the system for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MlsOneCommitter => "MLS, one committer",
            Self::MlsWarm => "MLS, warm tree",
            Self::Flat => "Quiver, flat",
            Self::Tree => "Quiver, tree",
        }
    }

    pub(super) const fn ink(self) -> Ink {
        match self {
            Self::MlsOneCommitter | Self::MlsWarm => Ink::Rival,
            Self::Flat => Ink::Flat,
            Self::Tree => Ink::Tree,
        }
    }

    fn prepared(
        self,
        plan: &ComparisonPlan,
        drones: u32,
        budget: &CpuBudget,
    ) -> Result<Option<Box<dyn ComparedSystem>>> {
        Ok(match self {
            Self::MlsOneCommitter => Some(Box::new(MlsGroup::one_committer(drones)?)),
            Self::MlsWarm => {
                MlsGroup::warm(drones, budget)?.map(|group| Box::new(group) as Box<dyn ComparedSystem>)
            }
            Self::Flat => Some(Box::new(QuiverGroup::new(StrategyKind::Flat, drones, plan.seed)?)),
            Self::Tree => Some(Box::new(QuiverGroup::new(StrategyKind::Tree, drones, plan.seed)?)),
        })
    }

    /// A warm tree is not formed by one event.
    const fn has(self, event: MembershipEvent) -> bool {
        !matches!((self, event), (Self::MlsWarm, MembershipEvent::Form))
    }
}

/// A group of one of the systems.
pub(super) trait ComparedSystem {
    /// Plays the event once, and restores the group.
    fn play(&mut self, event: MembershipEvent) -> Result<Sample>;
}

/// CPU time of this thread that may be spent.
pub(super) struct CpuBudget {
    since: ThreadTime,
    limit: Duration,
}

impl CpuBudget {
    fn new(limit: Duration) -> Self {
        Self { since: ThreadTime::now(), limit }
    }

    pub(super) fn is_spent(&self) -> bool {
        self.since.elapsed() >= self.limit
    }
}

/// Adds a system's rows for one size, or where its measurement was cut.
pub(super) fn measure(
    comparison: &mut MlsComparison,
    system: System,
    drones: u32,
    observer: &mut dyn Observer,
) -> Result<()> {
    let plan = comparison.plan.clone();
    observer.begin(&format!("{}: {drones} drones", system.name()), MembershipEvent::ALL.len() + 1);
    let budget = CpuBudget::new(plan.budget);
    let cut = |doing: &str| Cut { drones, system, doing: doing.into() };
    let Some(mut group) = system.prepared(&plan, drones, &budget)? else {
        comparison.cuts.push(cut("warming the tree"));
        return Ok(());
    };
    observer.advance(1);
    for event in MembershipEvent::ALL.into_iter().filter(|event| system.has(*event)) {
        if budget.is_spent() {
            comparison.cuts.push(cut(event.title()));
            return Ok(());
        }
        let samples = samples(group.as_mut(), event, plan.effort, &budget)?;
        comparison.rows.extend(Cost::of(&samples).map(|cost| ComparisonRow { drones, system, event, cost }));
        observer.advance(1);
    }
    Ok(())
}

/// Repeats until it is enough, or too much. The first run warms up and is dropped if there is another.
fn samples(
    group: &mut dyn ComparedSystem,
    event: MembershipEvent,
    effort: Effort,
    budget: &CpuBudget,
) -> Result<Vec<Sample>> {
    let mut samples = vec![group.play(event)?];
    let mut spent = samples[0].leader;
    let enough = effort.budget.as_secs_f64();
    while !budget.is_spent()
        && (samples.len() <= effort.least || (samples.len() < effort.most && spent < enough))
    {
        let sample = group.play(event)?;
        spent += sample.leader;
        samples.push(sample);
    }
    if samples.len() > 1 {
        samples.remove(0);
    }
    Ok(samples)
}
