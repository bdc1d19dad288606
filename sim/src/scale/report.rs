//! The report of runs of several sizes: drawings with error bars and fits, tables.

use quiver_ainq::StrategyKind;
use quiver_report::{
    Axis, CellValue, Column, Experiment, Highlight, Ink, Machine, Making, Plot, Report, Series, Table, Unit,
    counted,
};

use super::fit::{Fit, Form};
use super::quantity::{QUANTITIES, ScaleQuantity};
use super::{RunSeries, ScaleRuns};
use crate::plan::WorldKind;
use crate::report::{RunOutcome, RunReport};

/// Points of a curve that was fitted.
const CURVE: u32 = 24;

/// Repeated measurements at one size.
#[derive(Clone, Debug, PartialEq)]
struct RepeatedFigures {
    drones: u32,
    /// Figures in ascending order, at least one.
    figures: Vec<f64>,
}

impl RepeatedFigures {
    fn median(&self) -> f64 {
        let (half, count) = (self.figures.len() / 2, self.figures.len());
        if count % 2 == 1 {
            self.figures[half]
        } else {
            f64::midpoint(self.figures[half - 1], self.figures[half])
        }
    }

    fn least(&self) -> f64 {
        self.figures[0]
    }

    fn greatest(&self) -> f64 {
        self.figures[self.figures.len() - 1]
    }
}

impl ScaleRuns {
    /// Table, drawings and fits.
    #[must_use]
    pub fn report(&self, making: Making) -> Report {
        let plots =
            self.measured().filter_map(|quantity| Some(self.plot(quantity, quantity.axis?))).collect();
        let mut tables = vec![self.fits()];
        if self.is_repeated() {
            tables.extend([
                self.spreads("times", "Times", Unit::Seconds),
                self.spreads("sizes", "Sizes", Unit::Bytes),
            ]);
        }
        tables.push(self.figures());
        let outcome = self.outcome();
        let interrupted = outcome == RunOutcome::Interrupted;
        let mut method = vec![self.about_repetitions()];
        method.push(
            "a and b are of the best fit a·nᵇ by least squares of the logarithms of all figures, in seconds or bytes; b \
             has a 95 % interval, and R² says how much of the variation the fit explains. If the interval of b includes 0, \
             and R² is below 0.9 or b nearer to 0 than 0.1, the figures do not say that the quantity grows: the form is a \
             constant, their geometric mean. If a line c + d·n of least relative errors comes closer than a·nᵇ, the form is \
             that line."
                .into(),
        );
        let experiment = Experiment {
            slug: "growth".into(),
            title: "Growth".into(),
            about: vec![self.about()],
            method,
            plots,
            tables,
            ..Experiment::default()
        };
        Report {
            slug: if interrupted { "scale-interrupted" } else { "scale" }.into(),
            title: if interrupted {
                format!("Re-keys of growing groups, interrupted after {}", self.finished())
            } else {
                "Re-keys of growing groups".into()
            },
            lead: Vec::new(),
            highlights: self.highlights(),
            experiments: vec![experiment],
            sources: Vec::new(),
            machine: Machine::here(),
            date: making.date,
            version: making.version,
            command: making.command,
            passed: outcome.passed(),
            files: Vec::new(),
        }
    }

    fn about(&self) -> String {
        let groups =
            "Each line is a group that was formed, re-keyed, and left by one drone in a hundred, with";
        let Some(plan) = self.runs.first().map(|run| &run.plan) else { return groups.into() };
        let cryptography = if plan.toy { "toy cryptography" } else { "real cryptography" };
        let mut about = match plan.world {
            WorldKind::Live => format!("{groups} {cryptography} and a libp2p node per drone."),
            WorldKind::Virtual => format!("{groups} {cryptography}, in virtual time."),
        };
        if plan.relays > 0 {
            about += &format!(" The drones were behind {}.", counted(plan.relays, "relay"));
        }
        match plan.deputies {
            0 => {}
            1 => about += " The leader had a deputy and was lost at the end.",
            deputies => about += &format!(" The leader had {deputies} deputies and was lost at the end."),
        }
        about
    }

    fn about_repetitions(&self) -> String {
        if !self.is_repeated() {
            return "One run per point: no spread is known. `--repetitions` makes more.".into();
        }
        "Points are medians of the runs of one size, each with a seed of its own; bars reach from the least figure to the \
         greatest."
            .into()
    }

    /// The quantities that these runs have.
    fn measured(&self) -> impl Iterator<Item = &'static ScaleQuantity> + '_ {
        QUANTITIES.iter().filter(move |quantity| self.runs.iter().any(|run| quantity.figure(run).is_some()))
    }

    fn of_group(&self, group: &RunSeries) -> impl Iterator<Item = &RunReport> {
        self.runs.iter().filter(move |run| RunSeries::of(&run.plan) == *group)
    }

    /// Returns true if there is a size with several runs.
    fn is_repeated(&self) -> bool {
        self.groups().iter().any(|group| {
            let mut sizes: Vec<u32> = self.of_group(group).map(|run| run.plan.drones).collect();
            let runs = sizes.len();
            sizes.dedup();
            sizes.len() < runs
        })
    }

    /// A quantity of every run of a group, over the number of drones.
    fn points(&self, group: &RunSeries, quantity: &ScaleQuantity) -> Vec<(f64, f64)> {
        let runs = self.of_group(group);
        runs.filter_map(|run| Some((run.plan.drones.into(), quantity.figure(run)?))).collect()
    }

    /// A quantity of a group, at each size, in ascending order.
    fn spread(&self, group: &RunSeries, quantity: &ScaleQuantity) -> Vec<RepeatedFigures> {
        let mut sizes: Vec<RepeatedFigures> = Vec::new();
        for run in self.of_group(group) {
            let (drones, Some(figure)) = (run.plan.drones, quantity.figure(run)) else { continue };
            match sizes.last_mut().filter(|size| size.drones == drones) {
                Some(size) => size.figures.push(figure),
                None => sizes.push(RepeatedFigures { drones, figures: vec![figure] }),
            }
        }
        for size in &mut sizes {
            size.figures.sort_unstable_by(f64::total_cmp);
        }
        sizes
    }

    fn plot(&self, quantity: &ScaleQuantity, axis: &str) -> Plot {
        let groups = self.groups();
        let first = groups.first().map(|group| group.network.clone());
        let one_network = groups.iter().all(|group| Some(&group.network) == first.as_ref());
        let (mut measured, mut fitted) = (Vec::new(), Vec::new());
        for group in &groups {
            let ink = if group.strategy == StrategyKind::Flat { Ink::Flat } else { Ink::Tree };
            let sizes = self.spread(group, quantity);
            let points = sizes.iter().map(|size| (size.drones.into(), size.median())).collect();
            let repeated = sizes.iter().filter(|size| size.figures.len() > 1);
            let bars = repeated.map(|size| (size.drones.into(), size.least(), size.greatest())).collect();
            let series = Series::new(&group.name(), ink, points).with_spread(bars);
            measured.push(if Some(&group.network) == first.as_ref() { series } else { series.dashed() });
            if let Some((fit, from, to)) = Fit::of(&self.points(group, quantity))
                .zip(sizes.first().zip(sizes.last()))
                .map(|(fit, (first, last))| (fit, f64::from(first.drones), f64::from(last.drones)))
            {
                let of = if one_network { group.strategy.to_string() } else { group.name() };
                let name = format!("fit of {of}: {}", fit.formula(quantity.unit));
                fitted.push(Series::fit(&name, ink, curve(&fit, from, to)));
            }
        }
        let (x, y) = (Axis::log("drones", Unit::Count), Axis::log(axis, quantity.unit));
        let caption = format!("{}, over the number of drones.", quantity.title);
        let series = fitted.into_iter().chain(measured).collect();
        Plot::single(&quantity.key.replace('_', "-"), &caption, x, y, series)
    }

    fn fits(&self) -> Table {
        let columns = vec![
            Column::text("quantity", "quantity"),
            Column::text("strategy", "strategy"),
            Column::text("network", "network"),
            Column::text("form", "form that suits best").strong(),
            Column::new("factor", "a", Unit::Number),
            Column::new("exponent", "exponent b", Unit::Number),
            Column::new("exponent_low", "b from", Unit::Number),
            Column::new("exponent_high", "to", Unit::Number),
            Column::new("r_squared", "R²", Unit::Number),
            Column::new("offset", "c", Unit::Number),
            Column::new("each", "d", Unit::Number),
        ];
        let mut table = Table::new("fits", "Growth: a·nᵇ, a constant c, or c + d·n", columns);
        for quantity in self.measured() {
            for group in self.groups() {
                let fit = Fit::of(&self.points(&group, quantity));
                let (offset, each) = match fit.map(|fit| fit.form) {
                    Some(Form::Constant(always)) => (Some(always), None),
                    Some(Form::Linear { offset, each }) => (Some(offset), Some(each)),
                    Some(Form::Power) | None => (None, None),
                };
                let form = fit.map(|fit| fit.formula(quantity.unit));
                table.push(vec![
                    quantity.title.into(),
                    group.strategy.to_string().as_str().into(),
                    group.network.as_str().into(),
                    form.as_deref().into(),
                    fit.map(|fit| fit.factor).into(),
                    fit.map(|fit| fit.exponent).into(),
                    fit.map(|fit| fit.exponent - fit.uncertainty).into(),
                    fit.map(|fit| fit.exponent + fit.uncertainty).into(),
                    fit.map(|fit| fit.r_squared).into(),
                    offset.into(),
                    each.into(),
                ]);
            }
        }
        table.notes.push("A fit needs three sizes. a, c and d are in seconds or bytes.".into());
        table
    }

    /// Medians and extremes of the quantities of one unit.
    fn spreads(&self, slug: &str, caption: &str, unit: Unit) -> Table {
        let columns = vec![
            Column::text("quantity", "quantity"),
            Column::text("strategy", "strategy"),
            Column::text("network", "network"),
            Column::new("drones", "drones", Unit::Count),
            Column::new("runs", "runs", Unit::Count),
            Column::new("least", "least", unit),
            Column::new("median", "median", unit).strong(),
            Column::new("greatest", "greatest", unit),
        ];
        let mut table =
            Table::new(slug, &format!("{caption}: medians and extremes of the runs of each size"), columns);
        for quantity in self.measured().filter(|quantity| quantity.unit == unit) {
            for group in self.groups() {
                for size in self.spread(&group, quantity) {
                    table.push(vec![
                        quantity.title.into(),
                        group.strategy.to_string().as_str().into(),
                        group.network.as_str().into(),
                        size.drones.into(),
                        size.figures.len().into(),
                        size.least().into(),
                        size.median().into(),
                        size.greatest().into(),
                    ]);
                }
            }
        }
        table
    }

    fn figures(&self) -> Table {
        let mut columns = vec![
            Column::text("strategy", "strategy"),
            Column::text("network", "network"),
            Column::new("drones", "drones", Unit::Count),
            Column::text("seed", "seed"),
        ];
        columns
            .extend(self.measured().map(|quantity| Column::new(quantity.key, quantity.title, quantity.unit)));
        columns.push(Column::new("peak_memory_bytes", "peak memory so far", Unit::Bytes));
        let mut table = Table::new("figures", "All figures", columns);
        for run in &self.runs {
            #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
            let memory = run.peak_memory.map(|bytes| bytes as f64);
            let group = RunSeries::of(&run.plan);
            let mut row: Vec<CellValue> = vec![
                group.strategy.to_string().as_str().into(),
                group.network.as_str().into(),
                run.plan.drones.into(),
                run.plan.seed.to_string().as_str().into(),
            ];
            row.extend(self.measured().map(|quantity| CellValue::from(quantity.figure(run))));
            row.push(memory.into());
            table.push(row);
        }
        table
    }

    fn highlights(&self) -> Vec<Highlight> {
        let Some(quantity) = self.measured().next() else { return Vec::new() };
        let fit = |group: RunSeries| {
            let fit = Fit::of(&self.points(&group, quantity))?;
            let (low, high) = (fit.exponent - fit.uncertainty, fit.exponent + fit.uncertainty);
            Some(Highlight {
                what: format!("{}, {}", quantity.title, group.name()),
                figure: fit.formula(quantity.unit),
                beside: format!("exponent {low:.2} to {high:.2} (95 %), R² {:.3}", fit.r_squared),
            })
        };
        self.groups().into_iter().filter_map(fit).collect()
    }
}

/// A fit from one size to another, evenly on a logarithmic axis.
fn curve(fit: &Fit, from: f64, to: f64) -> Vec<(f64, f64)> {
    let at = |step: u32| from * (to / from).powf(f64::from(step) / f64::from(CURVE));
    (0..=CURVE).map(|step| (at(step), fit.at(at(step)))).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use quiver_report::Progress;
    use quiver_world::run::{Phase, PhaseCosts};

    use super::*;
    use crate::plan::Plan;
    use crate::report::tests::sample;
    use crate::scale::ScalePlan;

    fn making() -> Making {
        Making {
            date: std::time::SystemTime::UNIX_EPOCH,
            version: "0.1.0".into(),
            command: "sim scale".into(),
        }
    }

    /// Runs in which the leader takes so many milliseconds to re-key.
    fn runs(planned: usize, figures: &[(u32, u64, u64)]) -> ScaleRuns {
        let run = |(drones, seed, cpu): &(u32, u64, u64)| RunReport {
            plan: Plan { drones: *drones, seed: *seed, ..Plan::default() },
            operations: vec![PhaseCosts {
                leader_cpu: Some(Duration::from_millis(*cpu)),
                ..PhaseCosts::new(Phase::Rekey, *drones as usize, Duration::from_secs(1))
            }],
            ..sample()
        };
        ScaleRuns { runs: figures.iter().map(run).collect(), planned }
    }

    #[test]
    fn report_has_a_row_per_run_and_a_fit_per_quantity_and_strategy() {
        let runs = ScalePlan::of(&[3, 6, 9], &StrategyKind::ALL).run(&Progress::hidden()).unwrap();
        assert_eq!(runs.outcome(), RunOutcome::Passed, "{}", runs.failures());
        let report = runs.report(making());
        let tables: Vec<&Table> = report.tables().collect();
        // Rows that only a radio or a deputy has are left out.
        assert_eq!((tables[0].rows.len(), tables[1].rows.len()), (2 * 9, 6));
        let row = ["flat".into(), "memory".into(), 9_u32.into()];
        assert!(tables[1].figure(&row, "rekey_bytes").unwrap() > 0.0);
        let fitted = ["re-key: sent by the leader".into(), "flat".into(), "memory".into()];
        let exponent = tables[0].figure(&fitted, "exponent").unwrap();
        assert!((0.2..1.2).contains(&exponent), "{exponent}");
        assert_eq!(report.plots().count(), 4);
        assert!(report.plots().all(|plot| !plot.x.title.is_empty() && !plot.y.title.is_empty()));
        report.page().unwrap();
    }

    #[test]
    fn repetitions_have_a_median_extremes_and_error_bars() {
        let runs = runs(6, &[(10, 1, 3), (10, 2, 9), (10, 3, 4), (20, 1, 8), (20, 2, 6), (20, 3, 6)]);
        let report = runs.report(making());
        let times = report.tables().find(|table| table.slug == "times").unwrap();
        let row = |drones: u32| {
            let row =
                ["re-key: CPU time of the leader".into(), "flat".into(), "memory".into(), drones.into()];
            ["runs", "least", "median", "greatest"].map(|key| times.figure(&row, key).unwrap())
        };
        assert_eq!((row(10), row(20)), ([3.0, 0.003, 0.004, 0.009], [3.0, 0.006, 0.006, 0.008]));
        let plot = report.plots().next().unwrap();
        let measured = &plot.panels[0].series[0];
        assert_eq!(measured.points, [(10.0, 0.004), (20.0, 0.006)]);
        assert_eq!(measured.spread, [(10.0, 0.003, 0.009), (20.0, 0.006, 0.008)]);
        let figures = report.tables().find(|table| table.slug == "figures").unwrap();
        assert_eq!(figures.rows.len(), 6);
        // Of an even number the median lies between the two in the middle.
        assert!(
            (RepeatedFigures { drones: 1, figures: vec![1.0, 2.0, 4.0, 9.0] }.median() - 3.0).abs() < 1e-12
        );
    }

    #[test]
    fn fits_are_drawn_and_a_constant_is_none_of_the_powers() {
        let constant = runs(4, &[(10, 1, 5), (100, 1, 5), (1000, 1, 5), (3000, 1, 5)]).report(making());
        assert_eq!(constant.highlights[0].figure, "5.00 ms, constant");
        assert!(constant.terminal().contains("5.00 ms, constant"), "{}", constant.terminal());
        let linear = runs(3, &[(100, 1, 24), (1000, 1, 60), (3000, 1, 140)]).report(making());
        assert_eq!(linear.highlights[0].figure, "20.0 ms + 40.0 µs·n");
        let plot = linear.plots().next().unwrap();
        let fit = plot.panels[0].series.iter().find(|series| series.fitted).unwrap();
        let ((first, _), (last, end)) = (fit.points[0], fit.points[CURVE as usize]);
        assert!((first - 100.0).abs() < 1e-6 && (last - 3000.0).abs() < 1e-6 && (end - 0.14).abs() < 1e-6);
    }

    #[test]
    fn an_interrupted_measurement_says_how_far_it_came() {
        let runs = runs(12, &[(10, 1, 5), (20, 1, 7)]);
        assert_eq!(runs.outcome(), RunOutcome::Interrupted);
        let report = runs.report(making());
        assert_eq!((report.slug.as_str(), report.passed), ("scale-interrupted", None));
        assert!(report.title.ends_with("interrupted after 2 of 12 runs"), "{}", report.title);
    }
}
