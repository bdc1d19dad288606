//! A running program.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::timeout::eventually;

/// A running program, whose output goes to files. A clone is the same program, which is killed, by its own
/// process id, when the last is dropped.
#[derive(Clone, Debug)]
pub struct Process {
    child: Arc<Mutex<Running>>,
    out: PathBuf,
    err: PathBuf,
}

#[derive(Debug)]
struct Running(Child);

impl Running {
    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Process {
    /// Starts it; its output goes to `log` with the endings `out` and `err`.
    ///
    /// # Panics
    /// If it cannot be started: the message says what to install where that is the reason.
    #[must_use]
    pub fn start(mut command: Command, log: &Path) -> Self {
        let (out, err) = (log.with_extension("out"), log.with_extension("err"));
        command.stdin(Stdio::null());
        command.stdout(File::create(&out).expect("create")).stderr(File::create(&err).expect("create"));
        let child = command.spawn().unwrap_or_else(|error| {
            let program = command.get_program().to_string_lossy();
            panic!("cannot start {program}: {error}; docs/firmware-development.md says what emulation needs")
        });
        Self { child: Arc::new(Mutex::new(Running(child))), out, err }
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// SIGKILL: no chance to tidy up.
    pub fn kill(&self) {
        self.running().kill();
    }

    /// The exit status, once it has ended by itself.
    pub fn wait(&self) -> ExitStatus {
        eventually("the process ends", || self.running().0.try_wait().expect("wait"))
    }

    /// Whether it still runs.
    pub fn is_running(&self) -> bool {
        self.running().0.try_wait().expect("wait").is_none()
    }

    /// The first line of standard output that contains `part`.
    #[must_use]
    pub fn line(&self, part: &str) -> String {
        let find = || text(&self.out).lines().find(|line| line.contains(part)).map(String::from);
        eventually(&format!("a line with `{part}`; {}", self.story()), find)
    }

    /// Waits until it has logged this.
    pub fn logged(&self, part: &str) {
        eventually(&format!("`{part}` in {}", self.err.display()), || {
            text(&self.err).contains(part).then_some(())
        });
    }

    /// The address on which it listens.
    #[must_use]
    pub fn address(&self) -> String {
        self.line("listening on ").trim_start_matches("listening on ").into()
    }

    /// The end of its log.
    #[must_use]
    pub fn story(&self) -> String {
        let log = text(&self.err);
        let lines: Vec<_> = log.lines().filter(|line| !line.contains("TRACE")).collect();
        format!("{}\n{}", self.err.display(), lines[lines.len().saturating_sub(15)..].join("\n"))
    }
}

/// The content of a file, or nothing.
#[must_use]
pub fn text(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}
