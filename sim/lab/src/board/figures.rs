//! Figures of the native bench shell, and the recorded ones of images.

use std::collections::BTreeMap;

use quiver_bench::estimate::Mix;
use quiver_bench::figures::{self, Figures, Quantity, Subject};
use quiver_bench::native;
use quiver_bench::transcript::{self, BenchmarkOutcome};
use quiver_report::Observer;

use super::plan::BoardPlan;
use crate::Result;

/// Recorded by `docs/firmware-development.md`'s command, checked in CI.
const RECORDED: &str = include_str!("../../../../embedded/figures.csv");

/// The image whose benchmarks are recorded.
const EMULATED: &str = "mps2-an386";

/// Measurements on both sides.
pub(super) struct BoardMeasurements {
    /// Outcomes by benchmark and parameters.
    native: BTreeMap<(String, String), BenchmarkOutcome>,
    recorded: Figures,
}

/// Figures of one benchmark, in seconds, instructions and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Figure {
    pub(super) native: Option<f64>,
    pub(super) instructions: Option<f64>,
    /// Times at 64 MHz, the least and the greatest.
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    pub(super) heap: Option<f64>,
    pub(super) stack: Option<f64>,
}

impl BoardMeasurements {
    pub(super) fn take(plan: &BoardPlan, observer: &mut dyn Observer) -> Result<Self> {
        let lines = plan.lines();
        observer.begin("the native shell", lines.len());
        let mut native = BTreeMap::new();
        for line in lines {
            let mut out = String::new();
            native::run(&line, &mut out)?;
            let outcomes = transcript::parse(&out)?.into_iter();
            native.extend(
                outcomes.map(|outcome| ((outcome.benchmark.clone(), outcome.parameters.clone()), outcome)),
            );
            observer.advance(1);
        }
        Ok(Self { native, recorded: figures::read(RECORDED)? })
    }

    pub(super) fn native(&self, benchmark: &str, parameters: &str) -> Option<&BenchmarkOutcome> {
        self.native.get(&(benchmark.into(), parameters.into()))
    }

    /// Every benchmark whose name has this prefix, with its parameters.
    pub(super) fn beginning(&self, prefix: &str) -> impl Iterator<Item = (&str, &str)> {
        self.native
            .keys()
            .filter(move |(benchmark, _)| benchmark.starts_with(prefix))
            .map(|(benchmark, parameters)| (benchmark.as_str(), parameters.as_str()))
    }

    pub(super) fn figure(&self, benchmark: &str, parameters: &str) -> Figure {
        let recorded = |quantity| self.recorded(EMULATED, benchmark, parameters, quantity);
        let instructions = recorded(Quantity::Instructions);
        let estimate = instructions.map(|count| Mix::of(benchmark).estimate(count));
        let number = |value: Option<u64>| value.map(float);
        let seconds = |micros: Option<u64>| micros.map(|micros| float(micros) / 1e6);
        Figure {
            native: self.native(benchmark, parameters).map(|outcome| outcome.average / 1e6),
            instructions: number(instructions),
            low: seconds(estimate.map(|estimate| estimate.low)),
            high: seconds(estimate.map(|estimate| estimate.high)),
            heap: number(recorded(Quantity::Heap)),
            stack: number(recorded(Quantity::Stack)),
        }
    }

    fn recorded(&self, image: &str, benchmark: &str, parameters: &str, quantity: Quantity) -> Option<u64> {
        let [image, benchmark, parameters] = [image, benchmark, parameters].map(String::from);
        self.recorded.get(&Subject { image, benchmark, parameters, quantity }).copied()
    }

    /// Images with their flash and static RAM in bytes.
    pub(super) fn images(&self) -> Vec<(&str, Option<f64>, Option<f64>)> {
        let own = self.recorded.keys().filter(|subject| subject.benchmark.is_empty());
        let mut names: Vec<&str> = own.map(|subject| subject.image.as_str()).collect();
        names.dedup();
        let of = |image, quantity| self.recorded(image, "", "", quantity).map(float);
        names
            .into_iter()
            .map(|image| (image, of(image, Quantity::Flash), of(image, Quantity::StaticRam)))
            .collect()
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures are far below 2^52")]
const fn float(value: u64) -> f64 {
    value as f64
}
