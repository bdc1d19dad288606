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
    child: Arc<Mutex<RunningProcess>>,
    /// The file of its standard output.
    pub out: PathBuf,
    /// The file of its log.
    pub err: PathBuf,
}

#[derive(Debug)]
struct RunningProcess(Child);

impl RunningProcess {
    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Process {
    /// Starts it; its output goes to `log` with the endings `out` and `err`.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(mut command: Command, log: &Path) -> Self {
        command.stdin(Stdio::null()).stdout(File::create(log.with_extension("out")).expect("create"));
        Self::launch(command, log)
    }

    /// Starts a program as [`start`](Self::start) does, of which the caller has set the standard output.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn launch(mut command: Command, log: &Path) -> Self {
        command.stderr(File::create(log.with_extension("err")).expect("create"));
        Self::spawn(command, log)
    }

    /// Starts a program of which the caller has set standard output and standard error.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn spawn(mut command: Command, log: &Path) -> Self {
        let (out, err) = (log.with_extension("out"), log.with_extension("err"));
        let child = command.spawn().unwrap_or_else(|error| {
            let program = command.get_program().to_string_lossy();
            panic!("cannot start {program}: {error}; docs/firmware-development.md says what emulation needs")
        });
        Self { child: Arc::new(Mutex::new(RunningProcess(child))), out, err }
    }

    /// Process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.running().0.id()
    }

    fn running(&self) -> MutexGuard<'_, RunningProcess> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// SIGKILL: no chance to tidy up.
    pub fn kill(&self) {
        self.running().kill();
    }

    /// The signal of this name. `STOP`: it does nothing any more until it is told `CONT`.
    pub fn signal(&self, name: &str) {
        let id = self.running().0.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status();
        assert!(sent.expect("kill").success());
    }

    /// Waits until it handles the signal of this name: before, one ends it at once.
    ///
    /// # Panics
    /// If it does not come to that, or for another signal than `INT` and `TERM`.
    pub fn handles(&self, name: &str) {
        let bit = match name {
            "INT" => 1 << 1,
            "TERM" => 1 << 14,
            _ => panic!("which bit is {name}?"),
        };
        let status = format!("/proc/{}/status", self.id());
        eventually(&format!("it handles SIG{name}"), || {
            let status = fs::read_to_string(&status).ok()?;
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?.trim();
            (u64::from_str_radix(caught, 16).ok()? & bit != 0).then_some(())
        });
    }

    /// SIGTERM, and the exit status.
    #[must_use]
    pub fn terminate(&self) -> ExitStatus {
        self.signal("TERM");
        self.wait()
    }

    /// The exit status, once it has ended by itself.
    pub fn wait(&self) -> ExitStatus {
        eventually("the process ends", || self.running().0.try_wait().expect("wait"))
    }

    /// Returns true if the process still runs.
    pub fn is_running(&self) -> bool {
        self.running().0.try_wait().expect("wait").is_none()
    }

    /// The first line of standard output that contains `part`.
    pub fn line(&self, part: &str) -> String {
        eventually(&format!("a line with `{part}`; {}", self.story()), || line_with(&self.out, part))
    }

    /// The first line that it has logged with `part`.
    pub fn logged(&self, part: &str) -> String {
        eventually(&format!("`{part}` in {}", self.err.display()), || line_with(&self.err, part))
    }

    /// Waits until it has logged this so often.
    pub fn logged_times(&self, part: &str, times: usize) {
        let what = format!("{times} times `{part}`");
        eventually(&what, || (text(&self.err).matches(part).count() >= times).then_some(()));
    }

    /// The address on which it listens, once it does.
    pub fn address(&self) -> String {
        self.line("listening on ").trim_start_matches("listening on ").into()
    }

    /// Bytes of memory it uses.
    #[must_use]
    pub fn resident(&self) -> u64 {
        let id = self.running().0.id();
        let status = fs::read_to_string(format!("/proc/{id}/status")).expect("status");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
        line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number") * 1024
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

fn line_with(path: &Path, part: &str) -> Option<String> {
    text(path).lines().find(|line| line.contains(part)).map(String::from)
}
