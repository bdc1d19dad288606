//! A deployment in a temporary directory with a KGC and a leader that is a gateway, both processes of their own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use quiver_ainq::{Deployment, IssuedToken, Ristretto255};
use quiver_service::deployment_file::DeploymentFile;
use quiver_service::token_file::{self, Wanted};
use serde_json::Value;
use tempfile::TempDir;

/// How long anything may take; a loaded machine is slow.
const PATIENCE: Duration = Duration::from_secs(120);
/// Any free port.
pub(crate) const ANY: &str = "/ip4/127.0.0.1/tcp/0";

/// The program of this name. `leader` is built for this test; `kgc` lies beside it, and is built if it does not.
fn program(name: &str) -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    let leader = Path::new(env!("CARGO_BIN_EXE_leader"));
    let directory = leader.parent().expect("directory");
    BUILT.get_or_init(|| {
        if directory.join("kgc").exists() {
            return;
        }
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "-p", "quiver-kgc", "--target-dir"]);
        build.arg(directory.parent().expect("target directory"));
        if directory.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().expect("cargo").success(), "cannot build kgc");
    });
    directory.join(name)
}

/// What the time is for these tests.
#[expect(clippy::disallowed_methods, reason = "a test of real processes runs in real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Waits until `look` finds something.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(now() < deadline, "waited in vain: {what}");
        sleep(Duration::from_millis(20));
    }
}

/// A running program. Killed, by its own process id, when dropped.
pub(crate) struct Process {
    child: Child,
    out: PathBuf,
    err: PathBuf,
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

    /// SIGTERM, and the exit code.
    pub(crate) fn terminate(&mut self) -> Option<i32> {
        let killed = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(killed.expect("kill").success());
        eventually("the process ends", || self.child.try_wait().expect("wait")).code()
    }

    /// The first line of standard output that contains `part`.
    pub(crate) fn line(&self, part: &str) -> String {
        let find = || read(&self.out).lines().find(|line| line.contains(part)).map(String::from);
        eventually(&format!("a line with `{part}` in:\n{}\n{}", read(&self.out), read(&self.err)), find)
    }

    /// Waits until it has logged this.
    pub(crate) fn logged(&self, part: &str) {
        self.logged_times(part, 1);
    }

    /// Waits until it has logged this so often.
    pub(crate) fn logged_times(&self, part: &str, times: usize) {
        let what = format!("{times} times `{part}`");
        eventually(&what, || (self.log().matches(part).count() >= times).then_some(()));
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        read(&self.err)
    }

    /// Bytes of memory it uses.
    pub(crate) fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("status");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
        line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number") * 1024
    }

    fn address(&self) -> String {
        self.line("listening on ").trim_start_matches("listening on ").into()
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// A deployment with a running KGC.
pub(crate) struct Bench {
    directory: TempDir,
    started: AtomicUsize,
    pub(crate) kgc: Option<Process>,
    pub(crate) kgc_at: String,
}

impl Bench {
    /// One operator, one KGC, a token for a leader of `alpha`.
    pub(crate) fn new() -> Self {
        let (directory, started) = (tempfile::tempdir().expect("tempdir"), AtomicUsize::new(0));
        let mut bench = Self { directory, started, kgc: None, kgc_at: String::new() };
        bench.ok("kgc", &["operator", "new", "--out", "operator", "--suite", "ristretto255"]);
        bench.ok(
            "kgc",
            &["init", "--deployment", "alps", "--operator", "operator.pub", "--suite", "ristretto255"],
        );
        bench.token_file("leader-1", &["--leads", "alpha"]);
        let kgc = bench.start("kgc", &["serve", "--listen", ANY]);
        bench.kgc_at = kgc.address();
        bench.kgc = Some(kgc);
        bench
    }

    fn token_file(&self, name: &str, rest: &[&str]) -> String {
        let file = format!("{name}.token");
        let issue = ["token", "issue", "--operator", "operator.key", "--name", name, "--out", &file];
        self.ok("kgc", &[&issue[..], rest].concat());
        file
    }

    /// A token for a drone that may join `alpha`.
    pub(crate) fn token(&self, name: &str) -> IssuedToken<Ristretto255> {
        let file = self.token_file(name, &["--group", "alpha"]);
        let path = self.directory.path().join(file);
        token_file::read(&path, &self.deployment(), Wanted::Edge).expect("token")
    }

    pub(crate) fn deployment(&self) -> Deployment<Ristretto255> {
        let path = self.directory.path().join("kgc-data/deployment.toml");
        DeploymentFile::read(&path).expect("read").pin().expect("pin")
    }

    /// A leader that is a gateway for these lines; waits until it listens.
    pub(crate) fn leader(&self, lines: &[&str]) -> Process {
        let places = ["serve", "--json", "--kgc", &self.kgc_at, "--listen", ANY];
        let first = ["--deployment", "kgc-data/deployment.toml", "--token", "leader-1.token"];
        let lines = lines.iter().flat_map(|line| ["--serial", line]);
        let leader = self.start("leader", &places.into_iter().chain(first).chain(lines).collect::<Vec<_>>());
        leader.address();
        leader
    }

    pub(crate) fn ok(&self, name: &str, args: &[&str]) -> String {
        let output = self.run(name, args);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{name} {args:?}: {complaint}");
        String::from_utf8(output.stdout).expect("utf-8")
    }

    fn run(&self, name: &str, args: &[&str]) -> Output {
        self.command(name, args).output().expect("run")
    }

    fn command(&self, name: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program(name));
        command.args(args).current_dir(self.directory.path()).stdin(Stdio::null());
        command.env_clear().env("QUIVER_PASSPHRASE", "correct-horse-battery-staple");
        command.env("RUST_LOG", "info,quiver_gateway=debug").env("QUIVER_LEADER_BATCHING", "50ms");
        command
    }

    fn start(&self, name: &str, args: &[&str]) -> Process {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let path = |end: &str| self.directory.path().join(format!("log-{number:03}-{name}.{end}"));
        let (out, err) = (path("out"), path("err"));
        let mut command = self.command(name, args);
        command.stdout(File::create(&out).expect("create")).stderr(File::create(&err).expect("create"));
        Process { child: command.spawn().expect("spawn"), out, err }
    }

    pub(crate) fn status(&self) -> Option<Value> {
        let output = self.run("leader", &["status", "--json"]);
        output.status.success().then(|| serde_json::from_slice(&output.stdout).expect("json"))
    }

    /// Makes a new epoch.
    pub(crate) fn rekey(&self) {
        self.ok("leader", &["rekey"]);
    }

    /// The leader's epoch and its digest, once all of so many members hold it.
    pub(crate) fn epoch(&self, members: u64) -> ((u64, u64), String) {
        eventually(&format!("{members} members served"), || {
            let status = self.status()?;
            let epoch = (status["term"].as_u64()?, status["counter"].as_u64()?);
            let digest = status["epoch_digest"].as_str()?.to_string();
            (status["acknowledged"] == members).then_some((epoch, digest))
        })
    }
}
