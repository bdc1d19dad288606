//! Compares schemes over one radio: the same membership events, played in the arena of [`quiver_contenders`].

mod report;

use std::time::Duration;

use cpu_time::ThreadTime;
use quiver_contenders::arena::MAX_MEMBERS;
use quiver_contenders::schemes::{SchemeKind, Setting};
use quiver_contenders::{
    Arena, ArenaCarrier, ArenaEvent, ArenaViolation, ContenderError, Facts, Outcome, ProbeFindings, probe,
};
use quiver_report::Observer;
use quiver_world::radio::{Loss, Preset, RadioError};

use crate::{LabError, Result};

pub use self::report::report;

/// Carrier of a comparison, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// A radio of the simulator.
    Radio(Preset),
    /// A reliable stream to each member.
    Tcp,
}

impl std::fmt::Display for Carrier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Radio(preset) => preset.fmt(f),
            Self::Tcp => f.pad("tcp"),
        }
    }
}

impl std::str::FromStr for Carrier {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if name == "tcp" {
            return Ok(Self::Tcp);
        }
        name.parse().map(Self::Radio).map_err(|error: RadioError| format!("{error}; or tcp"))
    }
}

/// Time under way of a stream.
const STREAM_DELAY: Duration = Duration::from_millis(10);

/// Schemes, sizes and the carrier of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct RadioPlan {
    /// Carrier of all messages.
    pub carrier: Carrier,
    /// Share of frames lost, or of segments.
    pub loss: f64,
    /// Group sizes, ascending, each from [`RadioPlan::LEAST`] to [`RadioPlan::MOST`].
    pub drones: Vec<u32>,
    /// Schemes, in the order of tables.
    pub schemes: Vec<SchemeKind>,
    /// Processor time that one scheme may take for one size, its preparation included. The event that it had not ended
    /// by then is left out, and so is everything after it, and every larger size. One input of a machine is not cut.
    pub budget: Duration,
    /// Seed of keys and of the radio.
    pub seed: u64,
}

impl RadioPlan {
    /// The smallest group that all events are possible in.
    pub const LEAST: u32 = 8;
    /// The largest group.
    pub const MOST: u32 = MAX_MEMBERS;

    /// The link of this plan.
    ///
    /// # Errors
    /// If the loss is no probability.
    pub fn link(&self) -> Result<ArenaCarrier, RadioError> {
        let loss = Loss::independent(self.loss)?;
        Ok(match self.carrier {
            // As the simulator has it: broadcasts of several frames have parity frames.
            Carrier::Radio(preset) => {
                ArenaCarrier::Radio { profile: Box::new(preset.profile().with_coding()), loss }
            }
            Carrier::Tcp => ArenaCarrier::Streams { delay: STREAM_DELAY, loss: self.loss },
        })
    }
}

/// An event of one scheme in one group.
#[derive(Clone, Debug, PartialEq)]
pub struct RadioRow {
    /// Members before the first event.
    pub drones: u32,
    /// The scheme.
    pub scheme: SchemeKind,
    /// The event.
    pub event: ArenaEvent,
    /// Costs of the event.
    pub outcome: Outcome,
}

/// A scheme that used its budget up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RadioCut {
    /// Size at which it happened.
    pub drones: u32,
    /// The scheme.
    pub scheme: SchemeKind,
    /// Before this event, or in it.
    pub event: ArenaEvent,
}

/// Properties of a scheme, and what the adversary found.
#[derive(Clone, Debug, PartialEq)]
pub struct Portrait {
    /// The scheme.
    pub scheme: SchemeKind,
    /// Properties that no figure shows.
    pub facts: Facts,
    /// Findings of the probe.
    pub findings: ProbeFindings,
}

/// Results of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct RadioComparison {
    /// The plan.
    pub plan: RadioPlan,
    /// Rows by size, scheme and event.
    pub rows: Vec<RadioRow>,
    /// Omitted measurements.
    pub cuts: Vec<RadioCut>,
    /// The schemes.
    pub portraits: Vec<Portrait>,
    /// Violations in the runs.
    pub violations: Vec<(SchemeKind, u32, ArenaViolation)>,
}

impl RadioComparison {
    /// Costs of an event, if it was played.
    #[must_use]
    pub fn outcome(&self, drones: u32, scheme: SchemeKind, event: ArenaEvent) -> Option<&Outcome> {
        let wanted = (drones, scheme, event);
        self.rows.iter().find(|row| (row.drones, row.scheme, row.event) == wanted).map(|row| &row.outcome)
    }

    fn is_cut(&self, scheme: SchemeKind) -> bool {
        self.cuts.iter().any(|cut| cut.scheme == scheme)
    }
}

fn refused(error: ContenderError) -> LabError {
    LabError::Contender(error)
}

/// Carries out the plan. Calls `finished` after each size of each scheme.
///
/// # Errors
/// [`LabError::Usage`] for a loss that is no probability, [`LabError::Contender`] if a scheme cannot be set up.
pub fn measure(
    plan: &RadioPlan,
    observer: &mut dyn Observer,
    finished: &mut dyn FnMut(&RadioComparison),
) -> Result<RadioComparison> {
    let played = play_all(plan, observer, finished)?;
    Ok(RadioComparison { portraits: portraits(plan, observer)?, ..played })
}

/// Properties of the plan's schemes, and what an adversary finds that knows none of them.
fn portraits(plan: &RadioPlan, observer: &mut dyn Observer) -> Result<Vec<Portrait>> {
    observer.begin("an adversary that knows no scheme", plan.schemes.len());
    let mut portraits = Vec::new();
    for scheme in &plan.schemes {
        let mut contender = scheme.build(probe::setting(plan.seed)).map_err(refused)?;
        let findings = probe(contender.as_mut(), plan.seed).map_err(refused)?;
        portraits.push(Portrait { scheme: *scheme, facts: contender.facts(), findings });
        observer.advance(1);
    }
    Ok(portraits)
}

/// Costs of the plan's events.
fn play_all(
    plan: &RadioPlan,
    observer: &mut dyn Observer,
    finished: &mut dyn FnMut(&RadioComparison),
) -> Result<RadioComparison> {
    let link = plan.link().map_err(|error| LabError::Usage(error.to_string()))?;
    let mut comparison = RadioComparison {
        plan: plan.clone(),
        rows: Vec::new(),
        cuts: Vec::new(),
        portraits: Vec::new(),
        violations: Vec::new(),
    };
    for drones in &plan.drones {
        for scheme in &plan.schemes {
            if !comparison.is_cut(*scheme) {
                play(&mut comparison, &link, *scheme, *drones, observer)?;
                finished(&comparison);
            }
        }
    }
    Ok(comparison)
}

fn play(
    comparison: &mut RadioComparison,
    link: &ArenaCarrier,
    scheme: SchemeKind,
    drones: u32,
    observer: &mut dyn Observer,
) -> Result<()> {
    let plan = comparison.plan.clone();
    let events: Vec<ArenaEvent> = ArenaEvent::ALL.into_iter().filter(|event| scheme.has(*event)).collect();
    observer.begin(&format!("{}: {drones} drones", scheme.name()), events.len() + 1);
    let since = ThreadTime::now();
    let newcomers = ArenaEvent::newcomers(drones);
    let setting = Setting {
        members: drones + newcomers,
        founders: drones,
        pace: link.pace(),
        shared_medium: link.is_shared(),
        seed: plan.seed,
    };
    let mut contender = scheme.build(setting).map_err(refused)?;
    let mut arena =
        Arena::new(contender.as_mut(), link.clone(), drones, newcomers, plan.seed).map_err(refused)?;
    observer.advance(1);
    for event in events {
        arena.limit_processor_time(plan.budget.saturating_sub(since.elapsed()));
        let outcome = arena.play(event).map_err(refused)?;
        if outcome.is_cut {
            comparison.cuts.push(RadioCut { drones, scheme, event });
            break;
        }
        comparison.rows.push(RadioRow { drones, scheme, event, outcome });
        observer.advance(1);
    }
    let violations = arena.violations().iter().map(|violation| (scheme, drones, violation.clone()));
    comparison.violations.extend(violations);
    Ok(())
}

#[cfg(test)]
mod tests;
