//! Waits between attempts to open what is not there, and complaints that are not repeated.

use std::io;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// The wait after a first failure; doubles with each further one.
const FIRST: Duration = Duration::from_millis(250);
/// Time that something has to be open before the failures before it are forgiven.
const PROVEN: Duration = Duration::from_secs(5);

/// Waits longer from failure to failure.
#[derive(Debug)]
pub(crate) struct Pause {
    place: String,
    longest: Duration,
    wait: Duration,
    /// Time at which the next attempt is due, once somebody waits for it.
    due: Option<Instant>,
    opened: Option<Instant>,
    complaint: String,
}

impl Pause {
    /// Never waits longer than `longest`.
    pub(crate) fn new(place: String, longest: Duration) -> Self {
        Self { place, longest, wait: Duration::ZERO, due: None, opened: None, complaint: String::new() }
    }

    /// Waits until another attempt is due; not before the first. A wait that is interrupted, by datagrams
    /// that nobody can take meanwhile for instance, becomes no longer by that.
    pub(crate) async fn wait(&mut self) {
        // An endpoint that was open for seconds is no failure of the kind that longer waits are for.
        if self.opened.take().is_some_and(|at| at.elapsed() >= PROVEN) {
            self.wait = Duration::ZERO;
        }
        // Kept while the caller waits for something else as well, so that its loop does not begin the wait
        // anew.
        let due = *self.due.get_or_insert_with(|| Instant::now() + self.wait);
        // A sleep takes a millisecond even if it is over.
        if due > Instant::now() {
            sleep_until(due).await;
        }
        self.due = None;
        self.wait = (self.wait * 2).max(FIRST).min(self.longest);
    }

    /// The attempt has succeeded.
    pub(crate) fn opened(&mut self) {
        tracing::info!(place = %self.place, "open");
        self.opened = Some(Instant::now());
        self.complaint.clear();
    }

    /// Notes that an attempt failed, or that what was open has ended.
    pub(crate) fn failed(&mut self, reason: &io::Error) {
        let reason = reason.to_string();
        if self.complaint != reason {
            tracing::warn!(place = %self.place, "not open: {reason}; trying again");
            self.complaint = reason;
        }
    }
}

/// A stream that its other end has closed.
pub(crate) fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the other end closed it")
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn interruptions_do_not_make_a_wait_longer() {
        let mut pause = Pause::new("a line".into(), Duration::from_secs(10));
        pause.wait().await;
        pause.failed(&closed());
        // Frames that nobody can take meanwhile, ten in the time of the wait.
        let mut interruptions = 0;
        while timeout(FIRST / 10, pause.wait()).await.is_err() {
            interruptions += 1;
            assert!(interruptions < 100, "the wait begins anew each time");
        }
    }
}
