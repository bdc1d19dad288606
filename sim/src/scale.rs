//! Measures how the costs of a group's re-keys grow with its size: live runs of several sizes, strategies and
//! transports, and a fit.

use quiver_ainq::StrategyKind;
use quiver_report::{
    Axis, Column, Experiment, Highlight, Ink, Machine, Making, Plot, Progress, Report, Series, Table, Unit,
    Value, counted,
};
use quiver_world::run::{Operation, Phase};

use crate::live;
use crate::plan::{Plan, TransportKind};
use crate::report::{Outcome, RunReport};
use crate::{Result, SimError};

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePlan {
    /// Sizes of groups, in drones.
    pub drones: Vec<u32>,
    /// Re-key strategies.
    pub strategies: Vec<StrategyKind>,
    /// Transports.
    pub transports: Vec<TransportKind>,
    /// Seed of all random choices.
    pub seed: u64,
}

/// Live runs of all sizes, in ascending order of drones.
#[derive(Clone, Debug)]
pub struct ScaleRuns(Vec<RunReport>);

impl ScalePlan {
    /// The runs, the smallest first.
    fn plans(&self) -> Vec<Plan> {
        let mut sizes = self.drones.clone();
        sizes.sort_unstable();
        sizes.dedup();
        let of_size = |drones: u32| {
            let pairs = self
                .strategies
                .iter()
                .flat_map(|strategy| self.transports.iter().map(move |transport| (*strategy, *transport)));
            pairs.map(move |(strategy, transport)| Plan {
                drones,
                strategy,
                transport,
                seed: self.seed,
                join_percent: 0.0,
                messages: 0,
                restart_leader: false,
                ..Plan::default()
            })
        };
        sizes.into_iter().flat_map(of_size).collect()
    }

    /// Carries out all runs.
    ///
    /// # Errors
    /// [`SimError::Usage`] before the first run if any of them cannot be carried out, else as for [`live::run`].
    pub fn run(&self, progress: &Progress) -> Result<ScaleRuns> {
        let plans = self.plans();
        if plans.is_empty() {
            return Err(SimError::Usage("nothing to measure: give sizes, strategies and transports".into()));
        }
        for plan in &plans {
            live::check(plan)?;
        }
        // A run takes about as long as it has drones.
        let drones = |plans: &[Plan]| plans.iter().map(|plan| plan.drones as usize).sum();
        let step = progress.step("drones in all runs", drones(&plans));
        let mut runs = Vec::with_capacity(plans.len());
        for (index, plan) in plans.iter().enumerate() {
            let run = live::run(plan, &Progress::hidden())?;
            step.done(drones(&plans[..=index]));
            progress.note(&line(&run));
            runs.push(run);
        }
        Ok(ScaleRuns(runs))
    }
}

/// One run in a line.
fn line(run: &RunReport) -> String {
    let plan = &run.plan;
    let rekey = operation(run, Phase::Rekey);
    let cpu = rekey.and_then(|rekey| rekey.leader_cpu).map_or_else(|| "–".into(), Unit::duration);
    let passed = if run.outcome() == Outcome::Passed { "passed" } else { "FAILED" };
    format!(
        "{}, {} over {}: {passed} in {}, {cpu} CPU time of the leader per re-key",
        counted(plan.drones, "drone"),
        plan.strategy,
        plan.transport.name(),
        Unit::duration(run.wall)
    )
}

fn operation(run: &RunReport, phase: Phase) -> Option<&Operation> {
    run.operations.iter().find(|operation| operation.phase == phase)
}

/// A figure of an operation.
struct Quantity {
    key: &'static str,
    title: &'static str,
    phase: Phase,
    unit: Unit,
    of: fn(&Operation) -> Option<f64>,
}

const fn quantity(
    key: &'static str,
    title: &'static str,
    phase: Phase,
    unit: Unit,
    of: fn(&Operation) -> Option<f64>,
) -> Quantity {
    Quantity { key, title, phase, unit, of }
}

fn leader_cpu(operation: &Operation) -> Option<f64> {
    operation.leader_cpu.map(|cpu| cpu.as_secs_f64())
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn leader_bytes(operation: &Operation) -> Option<f64> {
    operation.leader_bytes.map(|bytes| bytes as f64)
}

fn p50(operation: &Operation) -> Option<f64> {
    operation.to_all.map(|all| all.p50.as_secs_f64())
}

fn p99(operation: &Operation) -> Option<f64> {
    operation.to_all.map(|all| all.p99.as_secs_f64())
}

const QUANTITIES: [Quantity; 8] = [
    quantity("rekey_cpu_seconds", "re-key: CPU time of the leader", Phase::Rekey, Unit::Seconds, leader_cpu),
    quantity("rekey_bytes", "re-key: sent by the leader", Phase::Rekey, Unit::Bytes, leader_bytes),
    quantity("rekey_p50_seconds", "re-key: half of the drones have it", Phase::Rekey, Unit::Seconds, p50),
    quantity("rekey_p99_seconds", "re-key: 99 % have it", Phase::Rekey, Unit::Seconds, p99),
    quantity(
        "leave_cpu_seconds",
        "1 % leave: CPU time of the leader",
        Phase::Leave,
        Unit::Seconds,
        leader_cpu,
    ),
    quantity("leave_bytes", "1 % leave: sent by the leader", Phase::Leave, Unit::Bytes, leader_bytes),
    quantity("form_cpu_seconds", "form: CPU time of the leader", Phase::Form, Unit::Seconds, leader_cpu),
    quantity("form_p99_seconds", "form: 99 % have it", Phase::Form, Unit::Seconds, p99),
];

impl ScaleRuns {
    /// Whether every run passed.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let passed = self.0.iter().all(|run| run.outcome() == Outcome::Passed);
        if passed { Outcome::Passed } else { Outcome::Failed }
    }

    /// The failed invariants of the runs that failed.
    #[must_use]
    pub fn failures(&self) -> String {
        let failed = self.0.iter().filter(|run| run.outcome() == Outcome::Failed);
        failed.map(|run| format!("{}: {}", line(run), run.failures())).collect::<Vec<_>>().join("\n")
    }

    /// The pairs of strategy and transport that were measured, in order of appearance.
    fn pairs(&self) -> Vec<(StrategyKind, TransportKind)> {
        let mut pairs = Vec::new();
        for plan in self.0.iter().map(|run| &run.plan) {
            if !pairs.contains(&(plan.strategy, plan.transport)) {
                pairs.push((plan.strategy, plan.transport));
            }
        }
        pairs
    }

    /// A quantity over the number of drones.
    fn points(&self, pair: (StrategyKind, TransportKind), quantity: &Quantity) -> Vec<(f64, f64)> {
        let of_pair = self.0.iter().filter(|run| (run.plan.strategy, run.plan.transport) == pair);
        of_pair
            .filter_map(|run| Some((run.plan.drones.into(), (quantity.of)(operation(run, quantity.phase)?)?)))
            .collect()
    }

    /// Table, drawings and fits.
    #[must_use]
    pub fn report(&self, making: Making) -> Report {
        let plots = QUANTITIES[..4].iter().map(|quantity| self.plot(quantity)).collect();
        let experiment = Experiment {
            slug: "growth".into(),
            title: "Growth".into(),
            about: vec![
                "Each line is a group that was formed, re-keyed on expiry, and left by one drone in a hundred, with \
                 real cryptography and a libp2p node per drone."
                    .into(),
            ],
            method: vec![
                "One run per point. The exponent b is that of the best fit a·nᵇ by least squares of the logarithms; \
                 R² says how much of the variation it explains. b = 1 is growth in step with the group, b = 0 none."
                    .into(),
            ],
            plots,
            tables: vec![self.fits(), self.figures()],
            ..Experiment::default()
        };
        Report {
            slug: "scale".into(),
            title: "Re-keys of growing groups".into(),
            lead: Vec::new(),
            highlights: self.highlights(),
            experiments: vec![experiment],
            sources: Vec::new(),
            machine: Machine::here(),
            date: making.date,
            version: making.version,
            command: making.command,
            passed: Some(self.outcome() == Outcome::Passed),
            files: Vec::new(),
        }
    }

    fn plot(&self, quantity: &Quantity) -> Plot {
        let first = self.0.first().map(|run| run.plan.transport);
        let series = self.pairs().into_iter().map(|pair| {
            let ink = if pair.0 == StrategyKind::Flat { Ink::Flat } else { Ink::Tree };
            let name = format!("{} over {}", pair.0, pair.1.name());
            let series = Series::new(&name, ink, self.points(pair, quantity));
            if Some(pair.1) == first { series } else { series.dashed() }
        });
        let (x, y) = (Axis::log("drones", Unit::Count), Axis::log("", quantity.unit));
        let slug = quantity.key.replace('_', "-");
        Plot::single(
            &slug,
            &format!("{}, over the number of drones.", quantity.title),
            x,
            y,
            series.collect(),
        )
    }

    fn fits(&self) -> Table {
        let columns = vec![
            Column::text("quantity", "quantity"),
            Column::text("strategy", "strategy"),
            Column::text("transport", "transport"),
            Column::new("exponent", "exponent b", Unit::Number).strong(),
            Column::new("r_squared", "R²", Unit::Number),
        ];
        let mut table = Table::new("fits", "Growth as a·nᵇ", columns);
        for quantity in &QUANTITIES {
            for pair in self.pairs() {
                let fit = Fit::of(&self.points(pair, quantity));
                table.push(vec![
                    quantity.title.into(),
                    pair.0.to_string().as_str().into(),
                    pair.1.name().into(),
                    fit.map(|fit| fit.exponent).into(),
                    fit.map(|fit| fit.r_squared).into(),
                ]);
            }
        }
        table.notes.push("A fit needs three sizes.".into());
        table
    }

    fn figures(&self) -> Table {
        let mut columns = vec![
            Column::text("strategy", "strategy"),
            Column::text("transport", "transport"),
            Column::new("drones", "drones", Unit::Count),
        ];
        columns.extend(
            QUANTITIES.iter().map(|quantity| Column::new(quantity.key, quantity.title, quantity.unit)),
        );
        columns.push(Column::new("peak_memory_bytes", "peak memory so far", Unit::Bytes));
        let mut table = Table::new("figures", "All figures", columns);
        for run in &self.0 {
            let figure =
                |quantity: &Quantity| Value::from(operation(run, quantity.phase).and_then(quantity.of));
            #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
            let memory = run.peak_memory.map(|bytes| bytes as f64);
            let mut row: Vec<Value> = vec![
                run.plan.strategy.to_string().as_str().into(),
                run.plan.transport.name().into(),
                run.plan.drones.into(),
            ];
            row.extend(QUANTITIES.iter().map(figure));
            row.push(memory.into());
            table.push(row);
        }
        table
    }

    fn highlights(&self) -> Vec<Highlight> {
        let fit = |pair| Some((pair, Fit::of(&self.points(pair, &QUANTITIES[0]))?));
        self.pairs()
            .into_iter()
            .filter_map(fit)
            .map(|((strategy, transport), fit)| Highlight {
                what: format!("CPU time of the leader per re-key, {strategy} over {}", transport.name()),
                figure: format!("n^{:.2}", fit.exponent),
                beside: format!("R² {:.3}", fit.r_squared),
            })
            .collect()
    }
}

/// The best fit of y = a·x^b by least squares of the logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fit {
    exponent: f64,
    r_squared: f64,
}

impl Fit {
    /// `None` for fewer than three different sizes, or figures that have no logarithm.
    #[expect(clippy::cast_precision_loss, reason = "few points")]
    fn of(points: &[(f64, f64)]) -> Option<Self> {
        let logarithms: Vec<(f64, f64)> =
            points.iter().filter(|(x, y)| *x > 0.0 && *y > 0.0).map(|(x, y)| (x.ln(), y.ln())).collect();
        if logarithms.len() < 3 {
            return None;
        }
        let count = logarithms.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| logarithms.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let sum = |of: &dyn Fn(f64, f64) -> f64| {
            logarithms.iter().map(|point| of(point.0 - x, point.1 - y)).sum::<f64>()
        };
        let (xx, xy, yy) = (sum(&|dx, _| dx * dx), sum(&|dx, dy| dx * dy), sum(&|_, dy| dy * dy));
        if xx <= 0.0 {
            return None;
        }
        // Figures that are all the same are explained by any line that is level.
        let r_squared = if yy > 0.0 { xy * xy / (xx * yy) } else { 1.0 };
        Some(Self { exponent: xy / xx, r_squared })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::MAX_DRONES;

    fn plan(drones: &[u32]) -> ScalePlan {
        ScalePlan {
            drones: drones.to_vec(),
            strategies: StrategyKind::ALL.to_vec(),
            transports: vec![TransportKind::Memory],
            seed: 1,
        }
    }

    #[test]
    fn smallest_groups_are_measured_first_and_each_once() {
        let plans = plan(&[30, 10, 30]).plans();
        let order: Vec<(u32, StrategyKind)> = plans.iter().map(|plan| (plan.drones, plan.strategy)).collect();
        let (flat, tree) = (StrategyKind::Flat, StrategyKind::Tree);
        assert_eq!(order, [(10, flat), (10, tree), (30, flat), (30, tree)]);
    }

    #[test]
    fn sizes_that_cannot_be_are_refused_before_the_first_run() {
        for plan in [plan(&[10, MAX_DRONES + 1]), plan(&[])] {
            assert!(matches!(plan.run(&Progress::hidden()), Err(SimError::Usage(_))), "{plan:?}");
        }
    }

    #[test]
    fn a_fit_finds_the_exponent_of_a_power_and_needs_three_points() {
        let power = |b: f64| [10.0, 100.0, 1000.0, 5000.0].map(|x: f64| (x, 3.0 * x.powf(b)));
        for b in [0.0, 0.5, 1.0, 2.0] {
            let fit = Fit::of(&power(b)).unwrap();
            assert!((fit.exponent - b).abs() < 1e-9 && (fit.r_squared - 1.0).abs() < 1e-6, "{fit:?}");
        }
        assert_eq!(Fit::of(&power(1.0)[..2]), None);
        assert_eq!(Fit::of(&[(1.0, 1.0); 5]), None);
        assert_eq!(Fit::of(&[(1.0, 0.0), (2.0, 0.0), (3.0, 0.0)]), None);
        let scattered = Fit::of(&[(1.0, 1.0), (10.0, 100.0), (100.0, 1.0)]).unwrap();
        assert!(scattered.r_squared < 0.01, "{scattered:?}");
    }

    #[test]
    fn report_has_a_row_per_run_and_a_fit_per_quantity_and_strategy() {
        let runs = plan(&[3, 6, 9]).run(&Progress::hidden()).unwrap();
        assert_eq!(runs.outcome(), Outcome::Passed, "{}", runs.failures());
        let making = Making {
            date: std::time::SystemTime::UNIX_EPOCH,
            version: "0.1.0".into(),
            command: "sim scale".into(),
        };
        let report = runs.report(making);
        let tables: Vec<&Table> = report.tables().collect();
        assert_eq!((tables[0].rows.len(), tables[1].rows.len()), (2 * QUANTITIES.len(), 6));
        let row = ["flat".into(), "memory".into(), 9_u32.into()];
        assert!(tables[1].figure(&row, "rekey_bytes").unwrap() > 0.0);
        let fitted = ["re-key: sent by the leader".into(), "flat".into(), "memory".into()];
        let exponent = tables[0].figure(&fitted, "exponent").unwrap();
        assert!((0.2..1.2).contains(&exponent), "{exponent}");
        assert_eq!(report.plots().count(), 4);
        report.page().unwrap();
    }
}
