//! [`Delay`], with the interface of the crate `futures-timer`, on tokio's timers.
//!
//! libp2p's streams, requests and pings each wait with a `Delay`: four are made for every message, and nearly all
//! are dropped unused. `futures-timer` has a thread of its own, which it wakes when one is made and again when it is
//! dropped. tokio's wheel takes a lock for either, on the thread that is at work, and here nothing is done before a
//! delay is first polled. libp2p has no setting for another timer, so the workspace puts this crate in the place of
//! `futures-timer` (`[patch.crates-io]`).

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// A duration that no process waits for, where the end of a longer one is no time that can be told: 30 years.
const FOREVER: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// A future that is ready once a duration has passed.
pub struct Delay {
    end: Instant,
    /// tokio's timer, from the first poll on.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Delay {
    /// A delay that ends a duration from now.
    #[must_use]
    pub fn new(duration: Duration) -> Self {
        Self { end: after(duration), sleep: None }
    }

    /// Lets it end a duration from now, also if it has ended already.
    pub fn reset(&mut self, duration: Duration) {
        self.end = after(duration);
        if let Some(sleep) = &mut self.sleep {
            sleep.as_mut().reset(self.end);
        }
    }
}

impl Future for Delay {
    type Output = ();

    /// # Panics
    /// Outside of a runtime of tokio with its timers enabled.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let end = self.end;
        self.sleep.get_or_insert_with(|| Box::pin(sleep_until(end))).as_mut().poll(cx)
    }
}

impl fmt::Debug for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delay").finish_non_exhaustive()
    }
}

fn after(duration: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(duration).unwrap_or_else(|| now + FOREVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_delay_ends_when_its_duration_has_passed_since_it_was_made() {
        let start = Instant::now();
        let delay = Delay::new(3 * SECOND);
        tokio::time::advance(SECOND).await;
        delay.await;
        let waited = start.elapsed();
        assert!((3 * SECOND..4 * SECOND).contains(&waited), "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_delay_is_reset_before_and_after_its_end() {
        let start = Instant::now();
        let mut delay = Delay::new(SECOND);
        delay.reset(5 * SECOND);
        (&mut delay).await;
        assert!(start.elapsed() >= 5 * SECOND);
        // Ended: still ready, until it is reset.
        (&mut delay).await;
        let again = Instant::now();
        delay.reset(2 * SECOND);
        (&mut delay).await;
        let waited = again.elapsed();
        assert!((2 * SECOND..3 * SECOND).contains(&waited), "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_duration_does_not_overflow() {
        let endless = tokio::time::timeout(3600 * SECOND, Delay::new(Duration::MAX));
        assert!(endless.await.is_err());
    }

    #[test]
    fn a_delay_can_be_made_outside_of_a_runtime() {
        let mut delay = Delay::new(Duration::ZERO);
        delay.reset(Duration::ZERO);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(delay);
    }
}
