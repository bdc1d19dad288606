//! A deployment in a temporary directory: operator, KGC, leader, edges and tokens, by the real programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tempfile::TempDir;

use crate::build::program;
use crate::process::{Process, text};
use crate::timeout::eventually;

/// Key that opens the state files: stretching a passphrase takes longer than most tests.
pub const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
/// Passphrase of every program of a deployment [`with_passphrase`](TestDeployment::with_passphrase).
pub const PASSPHRASE: &str = "correct-horse-battery-staple";
/// Any free port.
pub const ANY: &str = "/ip4/127.0.0.1/tcp/0";

/// A deployment.
#[derive(Debug)]
pub struct TestDeployment {
    directory: TempDir,
    started: AtomicUsize,
    level: &'static str,
    has_passphrase: bool,
    log_format: &'static str,
}

impl Default for TestDeployment {
    fn default() -> Self {
        Self::new()
    }
}

impl TestDeployment {
    /// One operator, one KGC (not running), no drones.
    #[must_use]
    pub fn new() -> Self {
        Self::create(false)
    }

    /// The same whose state files a passphrase opens.
    #[must_use]
    pub fn with_passphrase() -> Self {
        Self::create(true)
    }

    fn create(has_passphrase: bool) -> Self {
        let directory = tempfile::tempdir().expect("tempdir");
        let deployment = Self {
            directory,
            started: AtomicUsize::new(0),
            level: "trace",
            has_passphrase,
            log_format: "text",
        };
        fs::write(deployment.key_file(), KEY).expect("write");
        fs::set_permissions(deployment.key_file(), fs::Permissions::from_mode(0o600)).expect("chmod");
        deployment.ok("kgc", &["operator", "new", "--out", "operator"]);
        deployment.ok("kgc", &["init", "--deployment", "alps", "--operator", "operator.pub"]);
        deployment
    }

    /// The same whose programs log no more than this.
    #[must_use]
    pub fn logging(self, level: &'static str) -> Self {
        Self { level, ..self }
    }

    /// File with the [`KEY`].
    #[must_use]
    pub fn key_file(&self) -> PathBuf {
        self.path("state.key")
    }

    /// Returns true if a passphrase opens the state files, and not the key.
    #[must_use]
    pub fn has_passphrase(&self) -> bool {
        self.has_passphrase
    }

    /// The same whose programs log JSON, which has the ids of requests.
    #[must_use]
    pub fn logging_json(self) -> Self {
        Self { log_format: "json", ..self }
    }

    /// A file of the deployment.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// An unused name for a program's log: see [`Process::start`].
    #[must_use]
    pub fn log(&self, name: &str) -> PathBuf {
        self.path(&format!("log-{:03}-{name}", self.started.fetch_add(1, Ordering::Relaxed)))
    }

    /// A program in the deployment's directory, with what opens its state, and everything logged.
    #[must_use]
    pub fn command(&self, name: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program(name));
        command.env_clear().env("RUST_LOG", self.level);
        if self.has_passphrase {
            command.env("QUIVER_PASSPHRASE", PASSPHRASE);
        } else {
            command.arg("--key-file").arg(self.key_file());
        }
        command.args(args).current_dir(self.directory.path()).stdin(Stdio::null());
        for program in ["KGC", "LEADER", "EDGE"] {
            command.env(format!("QUIVER_{program}_LOG_FORMAT"), self.log_format);
        }
        // Everything is local: retry soon.
        command.env("QUIVER_EDGE_RETRY", "300ms").env("QUIVER_EDGE_RETRY_MAX", "2s");
        command.env("QUIVER_LEADER_BATCHING", "50ms").env("QUIVER_KGC_POLL", "100ms");
        command
    }

    /// Runs to the end; its output is kept for scans of all logs.
    #[must_use]
    pub fn run(&self, name: &str, args: &[&str]) -> Output {
        self.finish(name, self.command(name, args))
    }

    /// The same with a command that was changed.
    #[must_use]
    pub fn finish(&self, name: &str, mut command: Command) -> Output {
        let output = command.output().expect("run");
        let log = self.log(name);
        fs::write(log.with_extension("out"), &output.stdout).expect("write");
        fs::write(log.with_extension("err"), &output.stderr).expect("write");
        output
    }

    /// Runs to a good end, and gives its output.
    ///
    /// # Panics
    /// If it fails, with its complaint.
    pub fn ok(&self, name: &str, args: &[&str]) -> String {
        let output = self.run(name, args);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name} {args:?}: {complaint}");
        String::from_utf8(output.stdout).expect("utf-8")
    }

    /// Runs, and expects this exit code and a complaint that contains all `parts`.
    ///
    /// # Panics
    /// If it ends otherwise.
    pub fn refused(&self, name: &str, args: &[&str], code: i32, parts: &[&str]) {
        self.expect_refusal(name, self.command(name, args), code, parts);
    }

    /// The same with a command that was changed.
    ///
    /// # Panics
    /// If it ends otherwise.
    pub fn expect_refusal(&self, name: &str, command: Command, code: i32, parts: &[&str]) {
        let words = format!("{command:?}");
        let output = self.finish(name, command);
        assert_refusal(&words, output.status, &String::from_utf8_lossy(&output.stderr), code, parts);
    }

    /// Runs an enrolment that times out, with all `parts` in the last line of its log. The limit is one second; if a part is
    /// missing it is raised, because the reason needs an answer and a busy machine answers late.
    ///
    /// # Panics
    /// If it ends otherwise.
    pub fn gives_up(&self, args: &[&str], parts: &[&str]) {
        let mut last = String::new();
        for time in ["1s", "4s", "16s", "50s"] {
            let output = self.run("edge", &[args, &["--enrol-timeout", time]].concat());
            last = String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().into();
            assert_eq!(output.status.code(), Some(8), "{args:?}: {last}");
            assert!(last.contains(&format!("not enrolled within {time}")), "{args:?}: {last}");
            if parts.iter().all(|part| last.contains(part)) {
                return;
            }
        }
        panic!("{args:?}: {parts:?} are not in: {last}");
    }

    /// Runs a service that refuses to start because another process with its key answers, with all `parts` in the last line
    /// of its log. Runs it again if it starts, as it does if the other takes more than two seconds to answer.
    ///
    /// # Panics
    /// If it ends otherwise.
    pub fn finds_its_double(&self, name: &str, args: &[&str], parts: &[&str]) {
        eventually("it finds that another answers", || {
            let double = self.start(name, args);
            let listens = eventually("it ends or serves", || {
                let listens = text(&double.out).contains("listening on");
                (listens || !double.is_running()).then_some(listens)
            });
            (!listens)
                .then(|| assert_refusal(&format!("{args:?}"), double.wait(), &text(&double.err), 5, parts))
        });
    }

    /// Starts a program that stays.
    #[must_use]
    pub fn start(&self, name: &str, args: &[&str]) -> Process {
        self.begin(name, self.command(name, args))
    }

    /// The same with a command that was changed.
    #[must_use]
    pub fn begin(&self, name: &str, command: Command) -> Process {
        Process::start(command, &self.log(name))
    }

    /// Issues a token by the deployment's operator, in the file `NAME.token`, whose name is returned.
    pub fn token(&self, name: &str, rest: &[&str]) -> String {
        self.token_by(name, &[&["--operator", "operator.key"], rest].concat())
    }

    /// A token by whatever operator `rest` names. Takes the place of an older one.
    pub fn token_by(&self, name: &str, rest: &[&str]) -> String {
        let file = format!("{name}.token");
        let _ = fs::remove_file(self.path(&file));
        self.ok("kgc", &[&["token", "issue", "--name", name, "--out", &file], rest].concat());
        file
    }

    /// The KGC, running.
    #[must_use]
    pub fn kgc(&self, listen: &str) -> Process {
        self.start("kgc", &["serve", "--listen", listen])
    }

    /// A leader, running: for the first time if it has a token. `rest` goes to its command line.
    #[must_use]
    pub fn leader(&self, kgc: &str, listen: &str, token: Option<&str>, rest: &[&str]) -> Process {
        let deployment = ["--deployment", "kgc-data/deployment.toml"];
        let serve = ["serve", "--kgc", kgc, "--listen", listen];
        let token: Vec<_> = token.iter().flat_map(|token| ["--token", token]).collect();
        self.start("leader", &[&serve[..], &deployment, &token, rest].concat())
    }

    /// A drone whose token was issued, running; what happens to it is in its output as JSON.
    #[must_use]
    pub fn edge(&self, name: &str, kgc: &str, leader: &str) -> Process {
        let (data, token) = (format!("{name}-data"), format!("{name}.token"));
        let places = ["run", "--json", "-d", &data, "--kgc", kgc, "--leader", leader];
        let means = ["--deployment", "kgc-data/deployment.toml", "--token", &token];
        self.start("edge", &[&places[..], &means].concat())
    }

    /// Grants a drone this key of an authority, and waits until the running KGC has read it.
    ///
    /// # Panics
    /// If it cannot be granted.
    pub fn grant(&self, kgc: &Process, drone: &str, what: &[&str]) {
        let said = self.ok("kgc", &[&["abe", "grant", "--drone", drone][..], what].concat());
        let revision = said.split("revision ").nth(1).and_then(|rest| rest.split(':').next());
        kgc.logged(&format!("attribute grant {} in the registry", revision.expect("a revision")));
    }

    /// The leader's status.
    #[must_use]
    pub fn leader_status(&self) -> Option<Value> {
        status(&self.run("leader", &["status", "--json"]))
    }

    /// An edge's status.
    #[must_use]
    pub fn edge_status(&self, name: &str) -> Option<Value> {
        status(&self.run("edge", &["status", "--json", "-d", &format!("{name}-data")]))
    }

    /// Waits until the leader has so many members that all acknowledged an epoch after this one; returns that
    /// epoch: its term and counter.
    pub fn served(&self, members: u64, after: (u64, u64)) -> (u64, u64) {
        eventually(&format!("{members} members served after {after:?}"), || {
            let status = self.leader_status()?;
            let epoch = (status["term"].as_u64()?, status["counter"].as_u64()?);
            (status["acknowledged"] == members && epoch > after).then_some(epoch)
        })
    }

    /// Waits until the edge holds this epoch's key.
    pub fn synced(&self, name: &str, epoch: (u64, u64)) -> Value {
        eventually(&format!("{name} in sync with {epoch:?}"), || {
            let status = self.edge_status(name)?;
            let held = (status["term"].as_u64()?, status["counter"].as_u64()?);
            (status["synced"] == true && held >= epoch).then_some(status)
        })
    }

    /// Number of keys that the KGC has issued.
    #[must_use]
    pub fn keys_issued(&self) -> usize {
        let lines = self.ok("kgc", &["audit", "--json"]);
        lines.lines().filter(|line| line.contains("\"key issued\"")).count()
    }

    /// Collects all that any program wrote to its output or log, by file.
    #[must_use]
    pub fn all_logs(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(self.directory.path()).expect("read");
        let paths = entries.map(|entry| entry.expect("entry").path());
        let is_log =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log-"));
        paths.filter(is_log).map(|path| (path.clone(), fs::read(&path).expect("read"))).collect()
    }
}

/// Checks the exit code of a command, and that the last line of its log contains all `parts`.
fn assert_refusal(command: &str, status: ExitStatus, log: &str, code: i32, parts: &[&str]) {
    let last = log.lines().last().unwrap_or_default();
    assert_eq!(status.code(), Some(code), "{command}: {last}");
    for part in parts {
        assert!(last.contains(part), "{command}: `{part}` is not in: {last}");
    }
}

/// Status of the running process of a program; `None` if there is none.
#[must_use]
pub fn status(output: &Output) -> Option<Value> {
    output.status.success().then(|| serde_json::from_slice(&output.stdout).expect("json"))
}
