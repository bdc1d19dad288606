//! A deployment in a temporary directory, and the real programs running in it as processes of their own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

pub(crate) const PASSPHRASE: &str = "correct-horse-battery-staple";
/// How long anything may take; a loaded machine is slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program of this name. `edge` is built for this test; the other two lie beside it, and are built if they do not
/// (`cargo test --workspace` builds them, `cargo test -p quiver-edge` does not).
pub(crate) fn program(name: &str) -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    let edge = Path::new(env!("CARGO_BIN_EXE_edge"));
    let directory = edge.parent().expect("directory");
    BUILT.get_or_init(|| {
        if ["kgc", "leader"].iter().all(|name| directory.join(name).exists()) {
            return;
        }
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "-p", "quiver-kgc", "-p", "quiver-leader", "--target-dir"]);
        build.arg(directory.parent().expect("target directory"));
        if directory.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().expect("cargo").success(), "cannot build kgc and leader");
    });
    directory.join(name)
}

/// A running program. Killed, by its own process id, when dropped.
pub(crate) struct Process {
    child: Child,
    pub(crate) out: PathBuf,
    pub(crate) err: PathBuf,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Process {
    /// SIGKILL: no chance to tidy up.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// SIGTERM, and the exit status.
    pub(crate) fn terminate(&mut self) -> ExitStatus {
        let killed = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(killed.expect("kill").success());
        self.wait()
    }

    /// The exit status, once it has ended by itself.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        eventually("the process ends", || self.child.try_wait().expect("wait"))
    }

    /// The first line of standard output that contains `part`.
    pub(crate) fn line(&self, part: &str) -> String {
        let find = || text(&self.out).lines().find(|line| line.contains(part)).map(String::from);
        eventually(&format!("a line with `{part}`; {}", self.story()), find)
    }

    /// Waits until it has logged this.
    pub(crate) fn logged(&self, part: &str) {
        let find = || text(&self.err).contains(part).then_some(());
        eventually(&format!("`{part}` in {}", self.err.display()), find);
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> String {
        let line = self.line("listening on ");
        line.trim_start_matches("listening on ").into()
    }

    fn story(&self) -> String {
        let log = text(&self.err);
        let tail: Vec<_> = log.lines().filter(|line| !line.contains("TRACE")).collect();
        format!("{}\n{}", self.err.display(), tail[tail.len().saturating_sub(15)..].join("\n"))
    }
}

pub(crate) fn text(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// Waits until `look` finds something.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    #[expect(clippy::disallowed_methods, reason = "a test of real processes waits in real time")]
    let now = Instant::now;
    let deadline = now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(now() < deadline, "waited in vain: {what}");
        sleep(Duration::from_millis(50));
    }
}

/// A deployment.
pub(crate) struct Bench {
    directory: TempDir,
    started: AtomicUsize,
}

impl Bench {
    /// One operator, one KGC (not running), no drones.
    pub(crate) fn new() -> Self {
        Self::with_suite("ristretto255")
    }

    pub(crate) fn with_suite(suite: &str) -> Self {
        let bench = Self { directory: tempfile::tempdir().expect("tempdir"), started: AtomicUsize::new(0) };
        bench.ok("kgc", &["operator", "new", "--out", "operator", "--suite", suite]);
        bench.ok("kgc", &["init", "--deployment", "alps", "--operator", "operator.pub", "--suite", suite]);
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A command in the deployment's directory, with the passphrase in the environment and everything logged.
    pub(crate) fn command(&self, name: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program(name));
        command.args(args).current_dir(self.directory.path()).stdin(Stdio::null());
        command.env_clear().env("QUIVER_PASSPHRASE", PASSPHRASE).env("RUST_LOG", "trace");
        // Nobody here is far away: retry soon.
        command.env("QUIVER_EDGE_RETRY", "300ms").env("QUIVER_EDGE_RETRY_MAX", "2s");
        command.env("QUIVER_LEADER_BATCHING", "50ms").env("QUIVER_KGC_POLL", "100ms");
        command
    }

    /// Runs to the end; its output is kept for the log scan.
    pub(crate) fn run(&self, name: &str, args: &[&str]) -> Output {
        self.finish(name, self.command(name, args))
    }

    pub(crate) fn finish(&self, name: &str, mut command: Command) -> Output {
        let output = command.output().expect("run");
        let (out, err) = self.logs(name);
        fs::write(out, &output.stdout).expect("write");
        fs::write(err, &output.stderr).expect("write");
        output
    }

    pub(crate) fn ok(&self, name: &str, args: &[&str]) -> String {
        let output = self.run(name, args);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{name} {args:?}: {complaint}");
        String::from_utf8(output.stdout).expect("utf-8")
    }

    /// Runs, and expects this exit code and a complaint that contains all `parts`.
    pub(crate) fn refused(&self, name: &str, args: &[&str], code: i32, parts: &[&str]) {
        self.expect_refusal(name, self.command(name, args), code, parts);
    }

    pub(crate) fn expect_refusal(&self, name: &str, command: Command, code: i32, parts: &[&str]) {
        let words = format!("{command:?}");
        let output = self.finish(name, command);
        let complaint = String::from_utf8_lossy(&output.stderr);
        let last = complaint.lines().last().unwrap_or_default();
        assert_eq!(output.status.code(), Some(code), "{words}: {last}");
        for part in parts {
            assert!(last.contains(part), "{words}: `{part}` is not in: {last}");
        }
    }

    /// Starts a process whose output goes to files.
    pub(crate) fn start(&self, name: &str, args: &[&str]) -> Process {
        self.begin(name, self.command(name, args))
    }

    /// The same with a command that was changed.
    pub(crate) fn begin(&self, name: &str, mut command: Command) -> Process {
        let (out, err) = self.logs(name);
        command.stdout(File::create(&out).expect("create"));
        Self::spawn(command, out, err)
    }

    /// Starts a process that has been told where its output goes.
    pub(crate) fn launch(&self, name: &str, command: Command) -> Process {
        let (out, err) = self.logs(name);
        Self::spawn(command, out, err)
    }

    fn spawn(mut command: Command, out: PathBuf, err: PathBuf) -> Process {
        command.stderr(File::create(&err).expect("create"));
        Process { child: command.spawn().expect("spawn"), out, err }
    }

    fn logs(&self, name: &str) -> (PathBuf, PathBuf) {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let log = |end: &str| self.path(&format!("log-{number:03}-{name}.{end}"));
        (log("out"), log("err"))
    }

    /// Everything any process wrote to its output or log.
    pub(crate) fn all_logs(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(self.directory.path()).expect("read");
        let paths = entries.map(|entry| entry.expect("entry").path());
        let is_log =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log-"));
        paths.filter(is_log).map(|path| (path.clone(), fs::read(&path).expect("read"))).collect()
    }

    /// A token by the deployment's operator, in a file named after the drone.
    pub(crate) fn token(&self, name: &str, rest: &[&str]) -> String {
        self.token_by(name, &[&["--operator", "operator.key"], rest].concat())
    }

    /// A token by whatever operator `rest` names. Takes the place of an older one.
    pub(crate) fn token_by(&self, name: &str, rest: &[&str]) -> String {
        let file = format!("{name}.token");
        let _ = fs::remove_file(self.path(&file));
        self.ok("kgc", &[&["token", "issue", "--name", name, "--out", &file], rest].concat());
        file
    }

    pub(crate) fn kgc(&self, listen: &str) -> Process {
        self.start("kgc", &["serve", "--listen", listen])
    }

    pub(crate) fn leader(&self, kgc: &str, listen: &str, token: Option<&str>) -> Process {
        let mut args =
            vec!["serve", "--kgc", kgc, "--listen", listen, "--deployment", "kgc-data/deployment.toml"];
        args.extend(token.iter().flat_map(|token| ["--token", token]));
        self.start("leader", &args)
    }

    pub(crate) fn edge(&self, name: &str, kgc: &str, leader: &str) -> Process {
        let (data, token) = (format!("{name}-data"), format!("{name}.token"));
        let places = ["run", "--json", "-d", &data, "--kgc", kgc, "--leader", leader];
        self.start(
            "edge",
            &[&places[..], &["--deployment", "kgc-data/deployment.toml", "--token", &token]].concat(),
        )
    }

    pub(crate) fn leader_status(&self) -> Option<Value> {
        status(&self.run("leader", &["status", "--json"]))
    }

    pub(crate) fn edge_status(&self, name: &str) -> Option<Value> {
        status(&self.run("edge", &["status", "--json", "-d", &format!("{name}-data")]))
    }

    /// Waits until the leader has so many members that all acknowledged an epoch after this one; returns that epoch.
    pub(crate) fn served(&self, members: u64, after: (u64, u64)) -> (u64, u64) {
        eventually(&format!("{members} members served after {after:?}"), || {
            let status = self.leader_status()?;
            let epoch = (status["term"].as_u64()?, status["counter"].as_u64()?);
            (status["acknowledged"] == members && epoch > after).then_some(epoch)
        })
    }

    /// Waits until the edge holds this epoch's key.
    pub(crate) fn synced(&self, name: &str, epoch: (u64, u64)) -> Value {
        eventually(&format!("{name} in sync with {epoch:?}"), || {
            let status = self.edge_status(name)?;
            let held = (status["term"].as_u64()?, status["counter"].as_u64()?);
            (status["synced"] == true && held >= epoch).then_some(status)
        })
    }
}

fn status(output: &Output) -> Option<Value> {
    output.status.success().then(|| serde_json::from_slice(&output.stdout).expect("json"))
}
