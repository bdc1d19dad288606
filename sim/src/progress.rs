//! Progress bars on standard error, if it is a terminal.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

const TEMPLATE: &str = "{prefix:<24} {bar:30} {human_pos:>7}/{human_len:<7} {elapsed:>4}";

/// Where progress is shown. Cheap to clone; clones share the terminal.
#[derive(Clone, Debug)]
pub struct Progress {
    bars: MultiProgress,
}

impl Progress {
    /// Shows bars if `wanted` and standard error is a terminal.
    pub fn new(wanted: bool) -> Self {
        let target = if wanted && std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr_with_hz(8)
        } else {
            ProgressDrawTarget::hidden()
        };
        Self { bars: MultiProgress::with_draw_target(target) }
    }

    /// Shows nothing.
    pub fn hidden() -> Self {
        Self::new(false)
    }

    /// A bar for one step.
    pub(crate) fn step(&self, name: impl Into<Cow<'static, str>>, length: usize) -> Step {
        let style = ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = self.bars.add(ProgressBar::new(length as u64));
        bar.set_style(style.progress_chars("━╸ "));
        bar.set_prefix(name);
        bar.enable_steady_tick(Duration::from_millis(250));
        Step { bar }
    }

    /// Tells what somebody has to do for it to go on: above the bars, and in the log.
    pub(crate) fn note(&self, text: &str) {
        tracing::info!("{text}");
        // Hidden bars show nothing.
        let _ = self.bars.println(text);
    }

    /// Runs `print` while no bar is drawn, so that neither garbles the other.
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bars.suspend(print)
    }
}

/// One bar. It stays on the screen when it is dropped.
#[derive(Debug)]
pub(crate) struct Step {
    bar: ProgressBar,
}

impl Step {
    /// So many are done.
    pub(crate) fn done(&self, count: usize) {
        self.bar.set_position(count as u64);
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        self.bar.abandon();
    }
}
