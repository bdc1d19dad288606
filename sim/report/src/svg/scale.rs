//! Scales: positions of values along an axis, and the labels beside it.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use super::{Format, visible};
use crate::{Axis, Plot, Scale, Unit};

/// Greatest number of labels of an axis upwards. Of powers of ten beyond, every second or third is labelled.
const MOST_LABELS: usize = 9;

impl Format {
    /// Greatest number of labels of the horizontal axis.
    const fn most_labels(self) -> usize {
        match self {
            Self::Wide => MOST_LABELS,
            Self::Narrow => 6,
        }
    }
}

/// Greatest number of steps of a linear axis.
const MOST_STEPS: f64 = 6.0;

/// Layout of a plot with both axes, which all its panels share.
pub(super) struct PlotLayout {
    pub(super) x: AxisSpan,
    pub(super) y: AxisSpan,
}

/// An axis in drawing coordinates: values themselves, or their decimal logarithms.
#[derive(Clone)]
pub(super) struct AxisSpan {
    scale: Scale,
    unit: Unit,
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

impl PlotLayout {
    pub(super) fn of(plot: &Plot, format: Format) -> Self {
        let series = || plot.panels.iter().flat_map(|panel| &panel.series);
        let xs = series().flat_map(visible).map(|(x, _)| x);
        let ys = series().flat_map(visible).map(|(_, y)| y);
        // Two panels in a row have half the room each.
        let across = if plot.panels.len() > 1 { Format::Narrow } else { format };
        Self { x: AxisSpan::of(&plot.x, xs, across.most_labels()), y: AxisSpan::of(&plot.y, ys, MOST_LABELS) }
    }

    /// The points in drawing coordinates, those left out that have none.
    pub(super) fn place(&self, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
        points.iter().filter_map(|&(x, y)| Some((self.x.place(x)?, self.y.place(y)?))).collect()
    }
}

impl AxisSpan {
    fn of(axis: &Axis, values: impl Iterator<Item = f64>, most_labels: usize) -> Self {
        let placed: Vec<f64> = values.filter_map(|value| place(axis.scale, value)).collect();
        let least = placed.iter().copied().fold(f64::INFINITY, f64::min);
        let most = placed.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (scale, unit) = (axis.scale, axis.unit);
        if scale == Scale::Log
            && let Some(ticks) = fine(least, most, most_labels)
            && let (Some(low), Some(high)) = (ticks.first().copied(), ticks.last().copied())
        {
            return Self { scale, unit, low, high, ticks };
        }
        let (low, high, step) = match scale {
            Scale::Log => decades(least, most, most_labels),
            Scale::Linear => steps(most),
        };
        let mut ticks = Vec::new();
        let mut tick = low;
        while tick <= high + step * 1e-6 {
            ticks.push(tick);
            tick += step;
        }
        Self { scale, unit, low, high, ticks }
    }

    /// Label of a tick.
    fn label(&self, tick: f64) -> String {
        match self.scale {
            Scale::Linear => self.unit.tick(tick),
            Scale::Log => self.unit.tick(10_f64.powf(tick)),
        }
    }

    fn place(&self, value: f64) -> Option<f64> {
        place(self.scale, value)
    }
}

impl Ranged for AxisSpan {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let share = (value - self.low) / (self.high - self.low);
        #[expect(clippy::cast_possible_truncation, reason = "pixels of a drawing")]
        let offset = (share * f64::from(to - from)).round() as i32;
        from + offset
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for AxisSpan {
    fn format(value: &f64) -> String {
        value.to_string()
    }

    fn format_ext(&self, value: &f64) -> String {
        self.label(*value)
    }
}

fn place(scale: Scale, value: f64) -> Option<f64> {
    match scale {
        _ if !value.is_finite() => None,
        Scale::Linear => Some(value),
        Scale::Log => (value > 0.0).then(|| value.log10()),
    }
}

/// Once, twice and five times the powers of ten around the values, if so many labels have room.
fn fine(least: f64, most: f64, most_labels: usize) -> Option<Vec<f64>> {
    // Twenty decades have too many.
    if !(least <= most && most - least < 20.0) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "logarithms of numbers that are shown")]
    let (first, last) = (least.floor() as i32, most.ceil() as i32);
    let all =
        (first..=last + 1).flat_map(|power| [1.0_f64, 2.0, 5.0].map(|of| f64::from(power) + of.log10()));
    let all: Vec<f64> = all.collect();
    let low = all.iter().rposition(|tick| *tick <= least + 1e-9)?;
    let high = all.iter().position(|tick| *tick >= most - 1e-9)?.max(low + 1);
    (high - low < most_labels).then(|| all[low..=high].to_vec())
}

/// Whole powers of ten around the values.
fn decades(least: f64, most: f64, most_labels: usize) -> (f64, f64, f64) {
    if least > most {
        return (0.0, 1.0, 1.0);
    }
    // A value that is a power of ten but for rounding shall not open another decade.
    let low = (least + 1e-9).floor();
    let high = (most - 1e-9).ceil().max(low + 1.0);
    let mut step = 1.0;
    while (high - low) / step >= most_labels as f64 {
        step += 1.0;
    }
    (low, low + ((high - low) / step).ceil() * step, step)
}

/// Span from zero in steps of 1, 2 or 5 times a power of ten.
fn steps(most: f64) -> (f64, f64, f64) {
    let most = if most > 0.0 { most } else { 1.0 };
    let power = 10_f64.powf((most / MOST_STEPS).log10().floor());
    let fitting = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let step = fitting.into_iter().find(|step| most / step <= MOST_STEPS).unwrap_or(10.0 * power);
    (0.0, (most / step - 1e-9).ceil().max(1.0) * step, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_axes_take_round_steps_from_zero() {
        assert_eq!(steps(60.0), (0.0, 60.0, 10.0));
        assert_eq!(steps(59.0), (0.0, 60.0, 10.0));
        assert_eq!(steps(7.0), (0.0, 8.0, 2.0));
        assert_eq!(steps(f64::NEG_INFINITY), (0.0, 1.0, 0.2));
    }

    #[test]
    fn logarithmic_axes_take_whole_decades() {
        let decades = |least, most| decades(least, most, MOST_LABELS);
        assert_eq!(decades(0.0, 6.0), (0.0, 6.0, 1.0));
        assert_eq!(decades(-5.7, -0.1), (-6.0, 0.0, 1.0));
        assert_eq!(decades(2.0, 2.0), (2.0, 3.0, 1.0));
        assert_eq!(decades(f64::INFINITY, f64::NEG_INFINITY), (0.0, 1.0, 1.0));
        let (low, high, step) = decades(-9.0, 9.0);
        assert!((high - low) / step < 9.0 && high >= 9.0 && low <= -9.0);
    }

    #[test]
    fn a_short_logarithmic_axis_begins_and_ends_at_its_values() {
        let ticks = |least: f64, most: f64| fine(least.log10(), most.log10(), MOST_LABELS);
        let values =
            |ticks: Vec<f64>| ticks.into_iter().map(|tick| 10_f64.powf(tick).round()).collect::<Vec<_>>();
        assert_eq!(ticks(50.0, 900.0).map(values), Some(vec![50.0, 100.0, 200.0, 500.0, 1000.0]));
        assert_eq!(ticks(100.0, 100.0).map(values), Some(vec![100.0, 200.0]));
        assert_eq!(ticks(1.0, 1e6), None);
        assert_eq!(fine(f64::INFINITY, f64::NEG_INFINITY, MOST_LABELS), None);
        assert_eq!(fine(-300.0, 300.0, MOST_LABELS), None);
    }

    #[test]
    fn labels_are_in_the_axis_unit() {
        let axis = Axis::log("time", Unit::Seconds);
        let span = AxisSpan::of(&axis, [1e-6, 1.0].into_iter(), MOST_LABELS);
        assert_eq!(span.label(-6.0), "1 µs");
        assert_eq!(span.label(-1.0), "100 ms");
        assert_eq!(span.place(0.0), None);
    }
}
