//! Measures how the costs of a group's re-keys grow with its size: runs of several sizes, strategies and networks, each as
//! often as it is wanted, and fits.

mod fit;
mod quantity;
mod report;

use quiver_ainq::StrategyKind;
use quiver_report::{Progress, Unit, counted};
use quiver_world::run::Phase;

use self::quantity::operation;
use crate::plan::{Plan, TransportKind, WorldKind};
use crate::report::{RunOutcome, RunReport};
use crate::{Result, SimError, interrupt, live, virtual_world};

/// Most repetitions of a size.
pub const MAX_REPETITIONS: u32 = 1_000;

/// Plan of the measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalePlan {
    /// Sizes of groups, in drones, each once.
    pub drones: Vec<u32>,
    /// Re-key strategies, each once.
    pub strategies: Vec<StrategyKind>,
    /// Transports of the live world, each once; one that stands for all in the virtual world.
    pub transports: Vec<TransportKind>,
    /// Number of runs of each size, strategy and transport: with the seeds from that of `usual` on.
    pub repetitions: u32,
    /// World, radio, relays, deputies and first seed of all runs.
    pub usual: Plan,
}

/// Runs of all sizes, in ascending order of drones.
#[derive(Clone, Debug)]
pub struct ScaleRuns {
    /// The runs that are finished.
    runs: Vec<RunReport>,
    /// Number of runs that were planned.
    planned: usize,
}

impl ScalePlan {
    /// Sizes, strategies and transports of live runs over the memory transport, once each.
    #[must_use]
    pub fn of(drones: &[u32], strategies: &[StrategyKind]) -> Self {
        Self {
            drones: drones.to_vec(),
            strategies: strategies.to_vec(),
            transports: vec![TransportKind::Memory],
            repetitions: 1,
            usual: Plan::default(),
        }
    }

    /// The runs, the smallest first.
    fn plans(&self) -> Vec<Plan> {
        let mut sizes = self.drones.clone();
        sizes.sort_unstable();
        let mut plans = Vec::new();
        for drones in sizes {
            for strategy in &self.strategies {
                for transport in &self.transports {
                    let plan = |repetition| Plan {
                        drones,
                        strategy: *strategy,
                        transport: *transport,
                        seed: self.usual.seed.wrapping_add(repetition),
                        join_percent: 0.0,
                        messages: 0,
                        restart_leader: false,
                        ..self.usual.clone()
                    };
                    plans.extend((0..u64::from(self.repetitions)).map(plan));
                }
            }
        }
        plans
    }

    /// Refuses what cannot be measured, saying why.
    pub(crate) fn check(&self) -> Result<()> {
        self.check_counts()?;
        for plan in self.plans() {
            match plan.world {
                WorldKind::Live => live::check(&plan)?,
                WorldKind::Virtual => virtual_world::check(&plan)?,
            }
        }
        Ok(())
    }

    fn check_counts(&self) -> Result<()> {
        let usage = |text: String| Err(SimError::Usage(text));
        if self.drones.is_empty() || self.strategies.is_empty() || self.transports.is_empty() {
            return usage("nothing to measure: give sizes, strategies and transports".into());
        }
        if self.repetitions == 0 || self.repetitions > MAX_REPETITIONS {
            return usage(format!("--repetitions takes 1 to {MAX_REPETITIONS}, not {}", self.repetitions));
        }
        let transports = self.transports.iter().map(|transport| transport.name().to_owned());
        let twice = twice(self.drones.iter().map(u32::to_string))
            .or_else(|| twice(self.strategies.iter().map(ToString::to_string)))
            .or_else(|| twice(transports));
        match twice {
            Some(value) => usage(format!(
                "{value} is given twice; --repetitions 3 makes three runs of each size, strategy and transport"
            )),
            None => Ok(()),
        }
    }

    /// Carries out all runs, until the user interrupts.
    ///
    /// # Errors
    /// [`SimError::Usage`] before the first run if any of them cannot be carried out, [`SimError::Interrupted`] if none was
    /// finished, else as for [`live::run`] and [`virtual_world::run`].
    pub fn run(&self, progress: &Progress) -> Result<ScaleRuns> {
        self.check()?;
        let plans = self.plans();
        // A run takes about as long as it has drones.
        let drones = |plans: &[Plan]| plans.iter().map(|plan| plan.drones as usize).sum();
        let step = progress.step("drones in all runs", drones(&plans));
        let mut runs = Vec::with_capacity(plans.len());
        for (index, plan) in plans.iter().enumerate() {
            let run = match plan.world {
                WorldKind::Live => live::run(plan, &Progress::hidden()),
                WorldKind::Virtual => {
                    virtual_world::run(plan, &Progress::hidden(), false, &mut |_| {}).map(|(run, _)| run)
                }
            };
            // A run that is interrupted has no figures of its last phases: it is left out.
            if interrupt::is_requested() {
                break;
            }
            let run = run?;
            step.done(drones(&plans[..=index]));
            progress.note(&line(&run));
            runs.push(run);
        }
        if runs.is_empty() {
            return Err(SimError::Interrupted);
        }
        Ok(ScaleRuns { runs, planned: plans.len() })
    }
}

/// A value that is there twice.
fn twice(values: impl Iterator<Item = String>) -> Option<String> {
    let mut values: Vec<String> = values.collect();
    values.sort_unstable();
    values.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].clone())
}

/// A run in a line.
fn line(run: &RunReport) -> String {
    let plan = &run.plan;
    let rekey = operation(run, Phase::Rekey);
    let cpu = rekey.and_then(|rekey| rekey.leader_cpu).map_or_else(|| "–".into(), Unit::duration);
    let passed = if run.outcome() == RunOutcome::Passed { "passed" } else { "FAILED" };
    format!(
        "{}, {}, seed {}: {passed} in {}, {cpu} CPU time of the leader per re-key",
        counted(plan.drones, "drone"),
        RunSeries::of(plan).name(),
        plan.seed,
        Unit::duration(run.wall)
    )
}

/// Runs that differ in their size alone.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RunSeries {
    strategy: StrategyKind,
    /// The transport, or the radio of the virtual world.
    network: String,
}

impl RunSeries {
    fn of(plan: &Plan) -> Self {
        let network = match plan.world {
            WorldKind::Live => plan.transport.name(),
            WorldKind::Virtual => plan.radio.as_deref().unwrap_or("virtual time"),
        };
        Self { strategy: plan.strategy, network: network.into() }
    }

    fn name(&self) -> String {
        format!("{} over {}", self.strategy, self.network)
    }
}

impl ScaleRuns {
    /// Outcome of all runs, which passed if each did.
    #[must_use]
    pub fn outcome(&self) -> RunOutcome {
        if self.runs.iter().any(|run| run.outcome() != RunOutcome::Passed) {
            RunOutcome::Failed
        } else if self.runs.len() < self.planned {
            RunOutcome::Interrupted
        } else {
            RunOutcome::Passed
        }
    }

    /// Number of finished runs, and of those that were planned: `5 of 12 runs`.
    #[must_use]
    pub fn finished(&self) -> String {
        format!("{} of {}", self.runs.len(), counted(self.planned as u64, "run"))
    }

    /// The failures of the runs that failed.
    #[must_use]
    pub fn failures(&self) -> String {
        let failed = self.runs.iter().filter(|run| run.outcome() == RunOutcome::Failed);
        failed.map(|run| format!("{}: {}", line(run), run.failures())).collect::<Vec<_>>().join("\n")
    }

    /// The groups that were measured, in order of appearance.
    fn groups(&self) -> Vec<RunSeries> {
        let mut groups = Vec::new();
        for group in self.runs.iter().map(|run| RunSeries::of(&run.plan)) {
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::MAX_DRONES;

    #[test]
    fn smallest_groups_are_measured_first_and_each_as_often_as_wanted() {
        let plan = ScalePlan { repetitions: 2, ..ScalePlan::of(&[30, 10], &StrategyKind::ALL) };
        let order: Vec<(u32, StrategyKind, u64)> =
            plan.plans().iter().map(|plan| (plan.drones, plan.strategy, plan.seed)).collect();
        let (flat, tree) = (StrategyKind::Flat, StrategyKind::Tree);
        let of_size = |n| [(n, flat, 1), (n, flat, 2), (n, tree, 1), (n, tree, 2)];
        assert_eq!(order, [of_size(10), of_size(30)].concat());
    }

    #[test]
    fn what_cannot_be_is_refused_before_the_first_run() {
        let flat = [StrategyKind::Flat];
        let good = ScalePlan::of(&[10], &flat);
        let of_the_virtual_world = |usual| ScalePlan {
            usual: Plan { world: WorldKind::Virtual, ..usual },
            ..ScalePlan::of(&[10, 20], &flat)
        };
        for (plan, why) in [
            (ScalePlan::of(&[10, MAX_DRONES + 1], &flat), "too many"),
            (ScalePlan::of(&[], &flat), "nothing to measure"),
            (ScalePlan::of(&[10, 20, 10], &flat), "10 is given twice; --repetitions 3"),
            (ScalePlan::of(&[10], &[StrategyKind::Tree, StrategyKind::Tree]), "tree is given twice"),
            (ScalePlan { repetitions: 0, ..good.clone() }, "--repetitions takes 1 to 1000"),
            (ScalePlan { repetitions: MAX_REPETITIONS + 1, ..good }, "--repetitions takes 1 to 1000"),
            (of_the_virtual_world(Plan { relays: 2, ..Plan::default() }), "--relays is for --world live"),
            (of_the_virtual_world(Plan { deputies: 1, ..Plan::default() }), "--deputies is for --world live"),
            (of_the_virtual_world(Plan { radio: Some("lora-sf7".into()), ..Plan::default() }), "--depot"),
        ] {
            match plan.run(&Progress::hidden()) {
                Err(SimError::Usage(text)) => assert!(text.contains(why), "{text}"),
                other => panic!("{why}: {other:?}"),
            }
        }
    }
}
