//! Shows progress on standard error: bars on a terminal, elsewhere a line now and then for what takes long.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

const TEMPLATE: &str = "{prefix:<24} {bar:30} {human_pos:>7}/{human_len:<7} {elapsed:>4}, {eta} left";

/// Seconds between two lines about a step.
const LINES_APART: u64 = 15;
/// Time after which a wait is shown.
const SHOWN_AFTER: Duration = Duration::from_secs(2);

/// Progress bars or lines of a program. Cheap to clone; clones share the terminal.
#[derive(Clone, Debug)]
pub struct Progress {
    bars: MultiProgress,
    /// True if lines are printed instead of bars.
    lines: bool,
}

impl Progress {
    /// Shows it if `wanted`.
    pub fn new(wanted: bool) -> Self {
        let drawn = wanted && std::io::stderr().is_terminal();
        let target = if drawn { ProgressDrawTarget::stderr_with_hz(8) } else { ProgressDrawTarget::hidden() };
        Self { bars: MultiProgress::with_draw_target(target), lines: wanted && !drawn }
    }

    /// Shows nothing.
    pub fn hidden() -> Self {
        Self::new(false)
    }

    /// Shows how far one step is.
    pub fn step(&self, name: impl Into<Cow<'static, str>>, length: usize) -> ProgressStep {
        let style = ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = self.bars.add(ProgressBar::new(length as u64));
        bar.set_style(style.progress_chars("━╸ "));
        bar.set_prefix(name);
        bar.enable_steady_tick(Duration::from_millis(250));
        ProgressStep { bar, next_line: self.lines.then(|| AtomicU64::new(LINES_APART)) }
    }

    /// Shows how far a wait is that is most often over at once: as a step if it is not, otherwise never.
    pub fn wait(&self, name: impl Into<Cow<'static, str>>, length: usize) -> ProgressWait {
        ProgressWait {
            progress: self.clone(),
            name: name.into(),
            length,
            clock: ProgressBar::hidden(),
            step: None,
        }
    }

    /// Prints an instruction for the user: above the bars, and in the log.
    pub fn note(&self, text: &str) {
        tracing::info!("{text}");
        if self.lines {
            say(text);
        } else {
            // Hidden bars print nothing.
            let _ = self.bars.println(text);
        }
    }

    /// Runs `print` while no bar is drawn, so that neither garbles the other.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bars.suspend(print)
    }
}

/// A step. Its bar stays on the screen when it is dropped.
#[derive(Debug)]
pub struct ProgressStep {
    bar: ProgressBar,
    /// Seconds after which the next line is due, in place of a bar.
    next_line: Option<AtomicU64>,
}

impl ProgressStep {
    /// Shows that `count` are done.
    pub fn done(&self, count: usize) {
        self.bar.set_position(count as u64);
        if let Some(line) = self.line() {
            say(&line);
        }
    }

    /// The line that is due by now.
    fn line(&self) -> Option<String> {
        let (next, elapsed) = (self.next_line.as_ref()?, self.bar.elapsed().as_secs());
        if elapsed < next.load(Ordering::Relaxed) {
            return None;
        }
        next.store(elapsed.saturating_add(LINES_APART), Ordering::Relaxed);
        let (name, count, length) = (self.bar.prefix(), self.bar.position(), self.bar.length()?);
        Some(format!("{name}: {count} of {length} after {elapsed} s"))
    }
}

impl Drop for ProgressStep {
    fn drop(&mut self) {
        self.bar.abandon();
    }
}

/// A wait. Nothing of it is on the screen before it has lasted a while.
#[derive(Debug)]
pub struct ProgressWait {
    progress: Progress,
    name: Cow<'static, str>,
    length: usize,
    /// Knows since when; never drawn.
    clock: ProgressBar,
    step: Option<ProgressStep>,
}

impl ProgressWait {
    /// Shows that `count` of those that are waited for are there.
    pub fn done(&mut self, count: usize) {
        let waited = self.clock.elapsed();
        if self.step.is_none() && waited >= SHOWN_AFTER {
            let mut step = self.progress.step(self.name.clone(), self.length);
            step.bar = step.bar.clone().with_elapsed(waited);
            self.step = Some(step);
        }
        if let Some(step) = &self.step {
            step.done(count);
        }
    }
}

fn say(line: &str) {
    // There may be no reader any more.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Receives the progress of an experiment.
pub trait Observer {
    /// A task of so many steps begins; the one before has ended.
    fn begin(&mut self, task: &str, steps: usize);

    /// Notes that `steps` more are done.
    fn advance(&mut self, steps: usize);
}

/// Shows nothing.
impl Observer for () {
    fn begin(&mut self, _: &str, _: usize) {}

    fn advance(&mut self, _: usize) {}
}

/// Shows a bar for each task.
#[derive(Debug)]
pub struct Bars {
    progress: Progress,
    step: Option<(ProgressStep, usize)>,
}

impl Bars {
    /// Bars on this terminal.
    #[must_use]
    pub fn new(progress: Progress) -> Self {
        Self { progress, step: None }
    }
}

impl Observer for Bars {
    fn begin(&mut self, task: &str, steps: usize) {
        self.step = Some((self.progress.step(task.to_string(), steps), 0));
    }

    fn advance(&mut self, steps: usize) {
        if let Some((step, done)) = &mut self.step {
            *done += steps;
            step.done(*done);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_due_now_and_then_and_none_for_what_is_soon_done() {
        let progress = Progress { lines: true, ..Progress::hidden() };
        let mut step = progress.step("joined", 200);
        let mut line = |count, elapsed| {
            step.bar.set_position(count);
            step.bar = step.bar.clone().with_elapsed(Duration::from_secs(elapsed));
            step.line()
        };
        assert_eq!(line(3, LINES_APART - 1), None);
        assert_eq!(line(120, 20).as_deref(), Some("joined: 120 of 200 after 20 s"));
        assert_eq!(line(121, 20 + LINES_APART - 1), None);
        assert!(line(121, 20 + LINES_APART).is_some());
    }
    #[test]
    fn a_wait_is_shown_only_if_it_lasts() {
        let progress = Progress { lines: true, ..Progress::hidden() };
        let mut wait = progress.wait("acknowledged", 7);
        wait.done(3);
        assert!(wait.step.is_none());
        wait.clock = wait.clock.clone().with_elapsed(SHOWN_AFTER);
        wait.done(3);
        let step = wait.step.as_mut().expect("it lasts");
        assert_eq!(step.line(), None);
        step.bar = step.bar.clone().with_elapsed(Duration::from_secs(LINES_APART));
        assert_eq!(step.line().as_deref(), Some("acknowledged: 3 of 7 after 15 s"));
    }
}
