//! Loss that a sender sees.

/// Attempts before which nothing is said of the loss.
const FEWEST_ATTEMPTS: u32 = 32;
/// Attempts after which what was seen counts half.
const MEMORY: u32 = 16_384;

/// The share of a sender's unicast frames that their receivers acknowledged. Recent ones count more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObservedLoss {
    attempts: u32,
    acknowledged: u32,
}

impl ObservedLoss {
    /// Maximum share of frames that counts as lost: beyond, more parity only keeps the channel from others.
    pub const MOST: f64 = 0.5;

    /// Notes that so many frames were sent, repeats included, and how many of them were acknowledged.
    pub fn note(&mut self, attempts: u32, acknowledged: u32) {
        if self.attempts >= MEMORY {
            self.attempts /= 2;
            self.acknowledged /= 2;
        }
        self.attempts = self.attempts.saturating_add(attempts);
        self.acknowledged = self.acknowledged.saturating_add(acknowledged.min(attempts));
    }

    /// Share of the frames that was acknowledged; `None` before the 32nd frame.
    pub fn acknowledged(&self) -> Option<f64> {
        let known = self.attempts >= FEWEST_ATTEMPTS;
        known.then(|| f64::from(self.acknowledged) / f64::from(self.attempts))
    }

    /// Estimated probability that a frame is lost, from 0 to [`MOST`](Self::MOST): the share that was not
    /// acknowledged. 0 before the 32nd frame.
    pub fn estimate(&self) -> f64 {
        self.acknowledged().map_or(0.0, |share| (1.0 - share).clamp(0.0, Self::MOST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_is_what_was_not_acknowledged() {
        let mut seen = ObservedLoss::default();
        seen.note(31, 1);
        assert_eq!((seen.acknowledged(), seen.estimate()), (None, 0.0), "nothing is known yet");
        seen.note(1, 1);
        assert_eq!(seen.estimate(), 0.5, "bounded");
        let mut seen = ObservedLoss::default();
        seen.note(100, 80);
        assert!((seen.estimate() - 0.2).abs() < 1e-9);
        seen.note(100, 200);
        assert!((seen.estimate() - 0.1).abs() < 1e-9, "no more are acknowledged than were sent");
    }

    #[test]
    fn what_is_long_ago_counts_less() {
        let mut seen = ObservedLoss::default();
        seen.note(MEMORY, MEMORY / 2);
        (0..64).for_each(|_| seen.note(1024, 1024));
        assert!(seen.estimate() < 0.01, "{}", seen.estimate());
        seen.note(u32::MAX, u32::MAX);
        seen.note(u32::MAX, 0);
        assert!((0.0..=0.5).contains(&seen.estimate()));
    }
}
