//! Retransmission timeout of fragments, as RFC 6298 has it for TCP.
//!
//! A radio behind a slow line, a board that computes between two frames, a gateway on a busy host: what an
//! answer takes is not known beforehand and changes, and who repeats too early makes a slow medium slower. So
//! it is measured. An answer that could be one to a repetition measures nothing (Karn's algorithm); while
//! there are only such answers, the time that was waited last stays, so that a message can be answered before
//! it is repeated.
//!
//! | RFC 6298 | here |
//! |---|---|
//! | SRTT, RTTVAR | `mean`, `spread` |
//! | RTO, at least 1 s | [`RetransmissionTimer::wait`], at least [`EndpointLimits::repeat_after`](crate::EndpointLimits::repeat_after), at most [`SLOWEST`] |

use core::time::Duration;

/// The longest time to wait for an answer, in milliseconds.
const SLOWEST: u32 = 8_000;

/// All times are in milliseconds.
#[derive(Debug)]
pub(crate) struct RetransmissionTimer {
    least: u32,
    /// Round-trip time: mean and mean deviation. `None` until one was measured.
    taken: Option<(u32, u32)>,
    wait: u32,
    /// Time and number of the fragment that asked for an answer, and was not repeated since.
    asked: Option<(Duration, u32)>,
}

impl RetransmissionTimer {
    /// `least`: the shortest time to wait.
    pub(crate) fn new(least: Duration) -> Self {
        let least = milliseconds(least).clamp(1, SLOWEST);
        Self { least, taken: None, wait: least, asked: None }
    }

    /// Time to wait for an answer.
    pub(crate) fn wait(&self) -> Duration {
        Duration::from_millis(u64::from(self.wait))
    }

    /// The `number`-th fragment of a message leaves for the first time, and asks for an answer.
    pub(crate) fn asks(&mut self, now: Duration, number: u32) {
        self.asked.get_or_insert((now, number));
    }

    /// Notes that a fragment is repeated: a later answer may be one to its first time.
    pub(crate) fn repeats(&mut self) {
        // RFC 6298, 3: what was repeated is not measured.
        self.asked = None;
    }

    /// The other side has the `number`-th fragment of the message.
    pub(crate) fn answered(&mut self, now: Duration, number: u32) {
        let Some((at, _)) = self.asked.take_if(|(_, asked)| *asked <= number) else { return };
        let took = milliseconds(now.saturating_sub(at)).min(SLOWEST);
        let (mean, spread) = match self.taken {
            // RFC 6298, 2.2.
            None => (took, took / 2),
            // RFC 6298, 2.3: an eighth of the difference into the mean, a quarter into the deviation.
            Some((mean, spread)) => {
                ((7 * mean + took).div_ceil(8), (3 * spread + mean.abs_diff(took)).div_ceil(4))
            }
        };
        self.taken = Some((mean, spread));
        // RFC 6298, 2.3: the mean and four deviations.
        self.wait = (mean + 4 * spread).clamp(self.least, SLOWEST);
    }

    /// Doubles the wait, because nothing came for as long as that.
    pub(crate) fn back_off(&mut self) {
        // RFC 6298, 5.5: twice as long.
        self.wait = (2 * self.wait).min(SLOWEST);
        self.asked = None;
    }

    /// The next message begins.
    pub(crate) fn forget(&mut self) {
        self.asked = None;
    }
}

fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    /// A message whose answer takes so long.
    fn exchange(timer: &mut RetransmissionTimer, took: u64) {
        timer.asks(ms(1_000), 1);
        timer.answered(ms(1_000 + took), 1);
        timer.forget();
    }

    #[test]
    fn waits_longer_than_answers_take_and_never_shorter_than_the_least() {
        let mut timer = RetransmissionTimer::new(ms(250));
        assert_eq!(timer.wait(), ms(250));
        exchange(&mut timer, 20);
        assert_eq!(timer.wait(), ms(250));
        for _ in 0..20 {
            exchange(&mut timer, 1_200);
        }
        assert!(timer.wait() > ms(1_200) && timer.wait() < ms(2_000), "{timer:?}");
        exchange(&mut timer, 60_000);
        assert_eq!(timer.wait(), ms(8_000));
        for _ in 0..60 {
            exchange(&mut timer, 20);
        }
        assert_eq!(timer.wait(), ms(250), "and what was slow is forgotten");
    }

    #[test]
    fn answer_to_what_was_repeated_measures_nothing_and_the_longer_wait_stays_until_one_does() {
        let mut timer = RetransmissionTimer::new(ms(250));
        for _ in 0..4 {
            timer.asks(ms(0), 1);
            timer.back_off();
            timer.repeats();
            timer.answered(ms(700), 2);
            timer.forget();
        }
        assert_eq!(
            (timer.wait(), timer.taken),
            (ms(4_000), None),
            "long enough to see the answer to the next"
        );
        exchange(&mut timer, 700);
        assert_eq!(timer.wait(), ms(2_100));
        (0..9).for_each(|_| timer.back_off());
        assert_eq!(timer.wait(), ms(8_000));
    }

    #[test]
    fn answer_to_an_earlier_fragment_is_none_to_a_later_one() {
        let mut timer = RetransmissionTimer::new(ms(250));
        timer.asks(ms(0), 4);
        timer.asks(ms(500), 8);
        timer.answered(ms(600), 3);
        assert_eq!(timer.taken, None);
        timer.answered(ms(800), 4);
        assert_eq!(timer.taken, Some((800, 400)), "counted from the fragment that it answers");
    }
}
