//! Total, least and most of what was measured, in fixed memory.

use core::time::Duration;

/// Total, count and range of one quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SampleRange {
    pub(crate) total: u64,
    least: Option<u64>,
    pub(crate) most: u64,
    count: u64,
}

impl SampleRange {
    pub(crate) fn add(&mut self, value: u64) {
        self.total = self.total.saturating_add(value);
        self.least = Some(self.least.map_or(value, |least| least.min(value)));
        self.most = self.most.max(value);
        self.count += 1;
    }

    pub(crate) fn least(&self) -> u64 {
        self.least.unwrap_or_default()
    }

    /// Rounded down; zero of nothing.
    pub(crate) fn average(&self) -> u64 {
        self.total.checked_div(self.count).unwrap_or_default()
    }

    pub(crate) const fn count(&self) -> u64 {
        self.count
    }
}

/// A measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) nanoseconds: u64,
    pub(crate) instructions: Option<u64>,
}

impl Sample {
    /// Difference of clock and counter before and after.
    pub(crate) fn between(before: (Duration, Option<u64>), after: (Duration, Option<u64>)) -> Self {
        let elapsed = after.0.saturating_sub(before.0);
        let counted = before.1.zip(after.1).map(|(before, after)| after.saturating_sub(before));
        Self { nanoseconds: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX), instructions: counted }
    }

    /// Difference of this sample and another that is a part of it.
    pub(crate) fn without(self, part: Self) -> Self {
        let instructions =
            self.instructions.zip(part.instructions).map(|(whole, part)| whole.saturating_sub(part));
        Self { nanoseconds: self.nanoseconds.saturating_sub(part.nanoseconds), instructions }
    }
}

/// Statistics over all iterations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Statistics {
    pub(crate) nanoseconds: SampleRange,
    pub(crate) instructions: Option<SampleRange>,
}

impl Statistics {
    pub(crate) fn add(&mut self, sample: Sample) {
        self.nanoseconds.add(sample.nanoseconds);
        if let Some(instructions) = sample.instructions {
            self.instructions.get_or_insert_default().add(instructions);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_has_total_average_least_and_most() {
        let mut spread = SampleRange::default();
        assert_eq!((spread.average(), spread.least(), spread.most), (0, 0, 0));
        for value in [5, 3, 9] {
            spread.add(value);
        }
        assert_eq!((spread.total, spread.average(), spread.least(), spread.most), (17, 5, 3, 9));
        assert_eq!(spread.count(), 3);
    }

    #[test]
    fn sample_without_its_part_is_the_rest_in_time_and_instructions() {
        let whole = Sample { nanoseconds: 100, instructions: Some(1000) };
        let part = Sample { nanoseconds: 30, instructions: Some(400) };
        assert_eq!(whole.without(part), Sample { nanoseconds: 70, instructions: Some(600) });
        let uncounted = Sample { nanoseconds: 30, instructions: None };
        assert_eq!(whole.without(uncounted).instructions, None);
    }

    #[test]
    fn clock_that_goes_back_gives_zero() {
        let sample = Sample::between((Duration::from_secs(2), Some(7)), (Duration::from_secs(1), Some(3)));
        assert_eq!(sample, Sample { nanoseconds: 0, instructions: Some(0) });
    }
}
