//! Scales: positions of values along an axis, and the labels beside it.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use super::visible;
use crate::{Axis, Plot, Scale, Unit};

/// Greatest number of labels of an axis of powers of ten; beyond, every second or third power is labelled.
const MOST_DECADES: usize = 9;

/// Greatest number of steps of a linear axis.
const MOST_STEPS: f64 = 6.0;

/// Both axes of a plot, which all its panels share.
pub(super) struct Layout {
    pub(super) x: Span,
    pub(super) y: Span,
}

/// One axis in drawing coordinates: values themselves, or their decimal logarithms.
#[derive(Clone)]
pub(super) struct Span {
    scale: Scale,
    unit: Unit,
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

impl Layout {
    pub(super) fn of(plot: &Plot) -> Self {
        let series = || plot.panels.iter().flat_map(|panel| &panel.series);
        let xs = series().flat_map(visible).map(|(x, _)| x);
        let ys = series().flat_map(visible).map(|(_, y)| y);
        Self { x: Span::of(&plot.x, xs), y: Span::of(&plot.y, ys) }
    }

    /// The points in drawing coordinates, those left out that have none.
    pub(super) fn place(&self, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
        points.iter().filter_map(|&(x, y)| Some((self.x.place(x)?, self.y.place(y)?))).collect()
    }
}

impl Span {
    fn of(axis: &Axis, values: impl Iterator<Item = f64>) -> Self {
        let placed: Vec<f64> = values.filter_map(|value| place(axis.scale, value)).collect();
        let least = placed.iter().copied().fold(f64::INFINITY, f64::min);
        let most = placed.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (low, high, step) = match axis.scale {
            Scale::Log => decades(least, most),
            Scale::Linear => steps(most),
        };
        let mut ticks = Vec::new();
        let mut tick = low;
        while tick <= high + step * 1e-6 {
            ticks.push(tick);
            tick += step;
        }
        Self { scale: axis.scale, unit: axis.unit, low, high, ticks }
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

impl Ranged for Span {
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

impl ValueFormatter<f64> for Span {
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

/// Whole powers of ten around the values.
fn decades(least: f64, most: f64) -> (f64, f64, f64) {
    if least > most {
        return (0.0, 1.0, 1.0);
    }
    // A value that is a power of ten but for rounding shall not open another decade.
    let low = (least + 1e-9).floor();
    let high = (most - 1e-9).ceil().max(low + 1.0);
    let mut step = 1.0;
    while (high - low) / step >= MOST_DECADES as f64 {
        step += 1.0;
    }
    (low, low + ((high - low) / step).ceil() * step, step)
}

/// From zero in steps of 1, 2 or 5 times a power of ten.
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
        assert_eq!(decades(0.0, 6.0), (0.0, 6.0, 1.0));
        assert_eq!(decades(-5.7, -0.1), (-6.0, 0.0, 1.0));
        assert_eq!(decades(2.0, 2.0), (2.0, 3.0, 1.0));
        assert_eq!(decades(f64::INFINITY, f64::NEG_INFINITY), (0.0, 1.0, 1.0));
        let (low, high, step) = decades(-9.0, 9.0);
        assert!((high - low) / step < 9.0 && high >= 9.0 && low <= -9.0);
    }

    #[test]
    fn labels_are_in_the_axis_unit() {
        let axis = Axis::log("time", Unit::Seconds);
        let span = Span::of(&axis, [1e-6, 1.0].into_iter());
        assert_eq!(span.label(-6.0), "1 µs");
        assert_eq!(span.label(-1.0), "100 ms");
        assert_eq!(span.place(0.0), None);
    }
}
