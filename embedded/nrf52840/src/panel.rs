//! LED patterns, and the button that must be held. Time is counted in ticks of [`TICK_MS`].

/// Milliseconds from tick to tick.
pub const TICK_MS: u64 = 50;

/// Ticks that the button must be held without a break: 5 s.
pub const HOLD_TICKS: u16 = 100;

/// State of the LEDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lights {
    /// The green one (blue on a Feather).
    pub good: bool,
    /// The red one.
    pub bad: bool,
}

/// A pattern of the LEDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// No provisioning to work with yet: a short green flash every 2 s.
    Idle,
    /// Looking for someone to talk to: green, half a second on and off.
    Searching,
    /// Work under way: green, ten times a second.
    Busy,
    /// Steadily green.
    Good,
    /// Fault: steadily red.
    Bad,
}

impl Show {
    /// The LEDs at this tick; while the button is held, both flash in turn instead.
    #[must_use]
    pub const fn lights(self, tick: u32, held: bool) -> Lights {
        if held {
            let odd = tick % 4 < 2;
            return Lights { good: odd, bad: !odd };
        }
        let good = match self {
            Self::Idle => tick.is_multiple_of(40),
            Self::Searching => tick % 20 < 10,
            Self::Busy => tick.is_multiple_of(2),
            Self::Good => true,
            Self::Bad => false,
        };
        Lights { good, bad: matches!(self, Self::Bad) }
    }
}

/// A button that must be held.
///
/// A button that is down at the start (because it brought up the bootloader, because it is stuck, or because
/// there is none) counts only after it was released once.
#[derive(Debug, Default)]
pub struct Hold {
    released: bool,
    down: u16,
}

impl Hold {
    /// Takes the button's position at a tick; true once, when it was held for [`HOLD_TICKS`].
    pub fn tick(&mut self, down: bool) -> bool {
        if !down {
            self.released = true;
            self.down = 0;
            return false;
        }
        if self.released {
            self.down = self.down.saturating_add(1);
        }
        self.down == HOLD_TICKS
    }

    /// Returns true if it is being held.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        // Not for a touch: half a second.
        self.down >= 10
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held_at(positions: impl IntoIterator<Item = bool>) -> std::vec::Vec<usize> {
        let mut hold = Hold::default();
        positions.into_iter().enumerate().filter_map(|(at, down)| hold.tick(down).then_some(at)).collect()
    }

    fn pressed(ticks: usize) -> impl Iterator<Item = bool> {
        core::iter::repeat_n(true, ticks)
    }

    #[test]
    fn a_button_held_for_five_seconds_counts_once() {
        assert_eq!(u64::from(HOLD_TICKS) * TICK_MS, 5_000);
        assert_eq!(held_at([false].into_iter().chain(pressed(1_000))), [100]);
    }

    #[test]
    fn a_button_released_too_early_counts_for_nothing() {
        let twice = [false].into_iter().chain(pressed(99)).chain([false]).chain(pressed(99));
        assert_eq!(held_at(twice), []);
    }

    #[test]
    fn a_button_that_is_down_from_the_start_counts_only_after_its_release() {
        assert_eq!(held_at(pressed(70_000)), []);
        assert_eq!(held_at(pressed(500).chain([false]).chain(pressed(100))), [600]);
    }

    #[test]
    fn every_state_looks_different() {
        let all = [Show::Idle, Show::Searching, Show::Busy, Show::Good, Show::Bad];
        let film = |show: Show| (0..40).map(|tick| show.lights(tick, false)).collect::<std::vec::Vec<_>>();
        for (at, one) in all.iter().enumerate() {
            assert!(all[at + 1..].iter().all(|other| film(*one) != film(*other)), "{one:?}");
        }
    }

    #[test]
    fn red_is_for_trouble_and_for_the_button_alone() {
        for show in [Show::Idle, Show::Searching, Show::Busy, Show::Good] {
            assert!((0..100).all(|tick| !show.lights(tick, false).bad));
            assert!((0..100).any(|tick| show.lights(tick, true).bad));
        }
        assert!((0..100).all(|tick| Show::Bad.lights(tick, false) == Lights { good: false, bad: true }));
    }
}
