//! The same membership events through MLS and through Quiver; [`radio`]: through any scheme over a radio.
//!
//! One group of N drones under a leader, who is MLS's only committer, and one ordinary member that follows
//! for real. Each event starts from N drones: Quiver undoes it afterwards, uncounted; MLS goes back to a
//! saved state, so that its tree is each time as warm as it was.
//!
//! | counted as | MLS | Quiver |
//! |---|---|---|
//! | leader CPU | check key packages, commit, serialise, apply | check join requests, make the epoch, encode, step the chains |
//! | member CPU | parse, verify and apply a commit | verify the header, unwrap, step |
//! | newcomer CPU | `Welcome` and tree: verify all of it | verify the header, agree with the leader, unwrap |
//! | broadcast | the same for several receivers, once: commit; welcome and tree if several join | header and wraps, slots of newcomers that follow by these; within a term of `tree` the message with a short header |
//! | unicast | welcome and tree if one joins | path messages of fewer than eight newcomers, with the header, under `tree` |
//!
//! Messages of newcomers are not counted. [`quiver_mls`] lists the choices in favour of MLS.

mod event;
mod mls;
mod quiver;
pub mod radio;
mod report;
mod system;

use std::time::Duration;

use quiver_report::Observer;

use crate::Result;
use crate::measure::Effort;

pub use self::event::{Cost, MembershipEvent};
pub use self::report::report;
pub use self::system::System;

/// Number of drones beyond which nothing is compared, however fast the machine is.
const MOST: u32 = 1 << 17;

/// Sizes, systems and effort of the comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparisonPlan {
    /// Group sizes, ascending, each from [`ComparisonPlan::LEAST`] on.
    pub drones: Vec<u32>,
    /// True to go on after the last size, each twice the one before, for as long as MLS keeps within the
    /// budget.
    pub onward: bool,
    /// CPU time that one system may take for one size, its preparation included. Work not done by then is
    /// left out, and so is every larger size.
    pub budget: Duration,
    /// Repetitions of each event.
    pub effort: Effort,
    /// Seed of Quiver's keys; MLS takes its randomness from the system.
    pub seed: u64,
}

impl Default for ComparisonPlan {
    /// 100 to 2,000 drones, and as far as MLS goes in a minute.
    fn default() -> Self {
        let effort = Effort { budget: Duration::from_millis(300), least: 3, most: 31 };
        Self {
            drones: vec![100, 500, 1000, 2000],
            onward: true,
            budget: Duration::from_secs(60),
            effort,
            seed: 1,
        }
    }
}

impl ComparisonPlan {
    /// The smallest group that all events are possible in.
    pub const LEAST: u32 = 8;

    /// The largest group.
    pub const MOST: u32 = MOST;

    /// The sizes one after another, until MLS was cut.
    fn size_after(&self, done: usize, last: Option<u32>, cut: bool) -> Option<u32> {
        let further = || {
            let doubled = last?.checked_mul(2)?;
            (self.onward && !cut && doubled <= MOST).then_some(doubled)
        };
        self.drones.get(done).copied().or_else(further)
    }
}

/// An event in one group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ComparisonRow {
    /// Drones in the group, without the leader.
    pub drones: u32,
    /// The system.
    pub system: System,
    /// The event.
    pub event: MembershipEvent,
    /// Cost of the event.
    pub cost: Cost,
}

/// A system that had used up its budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Size at which it had.
    pub drones: u32,
    /// The system.
    pub system: System,
    /// Work that it was doing.
    pub doing: String,
}

/// All that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct MlsComparison {
    /// The plan.
    pub plan: ComparisonPlan,
    /// Rows by size, system and event.
    pub rows: Vec<ComparisonRow>,
    /// Omitted measurements, and the reasons.
    pub cuts: Vec<Cut>,
}

impl MlsComparison {
    /// Costs of an event, if it was measured.
    #[must_use]
    pub fn cost(&self, drones: u32, system: System, event: MembershipEvent) -> Option<&Cost> {
        let wanted = (drones, system, event);
        self.rows.iter().find(|row| (row.drones, row.system, row.event) == wanted).map(|row| &row.cost)
    }

    /// The sizes that were measured, ascending.
    #[must_use]
    pub fn sizes(&self) -> Vec<u32> {
        let mut sizes: Vec<u32> = self.rows.iter().map(|row| row.drones).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    fn is_cut(&self, system: System) -> bool {
        self.cuts.iter().any(|cut| cut.system == system)
    }
}

/// Carries out the plan. Calls `finished` after each size of each system.
///
/// # Errors
/// [`LabError::Mls`](crate::LabError::Mls) or [`LabError::Protocol`](crate::LabError::Protocol) if a side
/// refuses an operation; [`LabError::WrongKey`](crate::LabError::WrongKey) if a member's key is not the
/// leader's.
pub fn measure(
    plan: &ComparisonPlan,
    observer: &mut dyn Observer,
    finished: &mut dyn FnMut(&MlsComparison),
) -> Result<MlsComparison> {
    let mut comparison = MlsComparison { plan: plan.clone(), rows: Vec::new(), cuts: Vec::new() };
    let (mut done, mut last) = (0, None);
    while let Some(drones) = plan.size_after(done, last, comparison.is_cut(System::MlsOneCommitter)) {
        for system in System::ALL {
            if !comparison.is_cut(system) {
                system::measure(&mut comparison, system, drones, observer)?;
                finished(&comparison);
            }
        }
        (done, last) = (done + 1, Some(drones));
    }
    Ok(comparison)
}

#[cfg(test)]
mod tests;
