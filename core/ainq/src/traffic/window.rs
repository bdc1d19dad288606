//! The replay window of a sender: which of its last 1,024 messages were received.

/// Number of message numbers below the highest that are remembered.
pub const WINDOW: u64 = 1024;

const WORDS: usize = 16;

/// The highest number received and a bit for each of the last [`WINDOW`].
#[derive(Clone, Debug)]
pub struct Window {
    /// One more than the highest number received; numbers from here on are new.
    next: u64,
    /// Numbers below this are never accepted.
    floor: u64,
    /// Number n is at bit n mod 1,024.
    seen: [u64; WORDS],
}

impl Window {
    /// A window that accepts `floor` and above.
    #[must_use]
    pub const fn from(floor: u64) -> Self {
        Self { next: floor, floor, seen: [0; WORDS] }
    }

    /// Returns true if a number is new, as far as the window records.
    #[must_use]
    pub fn accepts(&self, number: u64) -> bool {
        if number >= self.next {
            return true;
        }
        // §13.5: a window of 1,024 message numbers.
        let recent = self.next - number <= WINDOW;
        recent && number >= self.floor && !self.bit(number)
    }

    /// Remembers a number that was accepted.
    pub fn mark(&mut self, number: u64) {
        if number >= self.next {
            let skipped = (number - self.next).min(WINDOW);
            // Bits of numbers that fell out of the window now stand for the skipped ones.
            (self.next..self.next.saturating_add(skipped)).for_each(|n| self.set(n, false));
            self.next = number.saturating_add(1);
        }
        self.set(number, true);
    }

    /// One more than the highest number received.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }

    fn bit(&self, number: u64) -> bool {
        self.seen.get(word(number)).is_some_and(|bits| bits >> (number % 64) & 1 == 1)
    }

    fn set(&mut self, number: u64, value: bool) {
        if let Some(bits) = self.seen.get_mut(word(number)) {
            let mask = 1 << (number % 64);
            *bits = if value { *bits | mask } else { *bits & !mask };
        }
    }
}

const fn word(number: u64) -> usize {
    (number / 64) as usize % WORDS
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_window_accepts_each_recent_number_once(steps in proptest::collection::vec((0..3000u64, any::<bool>()), 1..300)) {
            let (mut window, mut taken, mut highest) = (Window::from(0), BTreeSet::new(), None::<u64>);
            for (distance, ahead) in steps {
                let base = highest.unwrap_or(0);
                let number = if ahead { base + distance } else { base.saturating_sub(distance) };
                let recent = highest.is_none_or(|highest| number + WINDOW > highest);
                let expected = recent && !taken.contains(&number);
                prop_assert_eq!(window.accepts(number), expected);
                if expected {
                    window.mark(number);
                    taken.insert(number);
                    highest = highest.max(Some(number));
                }
            }
        }
    }

    #[test]
    fn nothing_below_the_floor_is_accepted() {
        let mut window = Window::from(64);
        assert!(!window.accepts(63) && window.accepts(64));
        window.mark(70);
        assert!(!window.accepts(63) && window.accepts(64) && !window.accepts(70));
    }

    #[test]
    fn the_last_number_there_is_does_not_overflow() {
        let mut window = Window::from(0);
        window.mark(u64::MAX - 1);
        assert!(!window.accepts(u64::MAX - 1) && window.accepts(u64::MAX));
    }
}
