//! A deployment in a temporary directory: operator, KGC, leader and tokens, by the real programs.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tempfile::TempDir;

use crate::build::program;
use crate::process::Process;
use crate::timeout::eventually;

/// Passphrase of every program.
pub const PASSPHRASE: &str = "correct-horse-battery-staple";
/// The group of the leader here.
pub const GROUP: &str = "alpha";
/// Any free port.
pub const ANY: &str = "/ip4/127.0.0.1/tcp/0";

/// A deployment.
#[derive(Debug)]
pub struct Deployment {
    directory: TempDir,
    started: AtomicUsize,
}

impl Default for Deployment {
    fn default() -> Self {
        Self::new()
    }
}

impl Deployment {
    /// One operator, one KGC (not running), no drones.
    #[must_use]
    pub fn new() -> Self {
        let deployment =
            Self { directory: tempfile::tempdir().expect("tempdir"), started: AtomicUsize::new(0) };
        deployment.ok("kgc", &["operator", "new", "--out", "operator", "--suite", "ristretto255"]);
        let init = ["init", "--deployment", "alps", "--operator", "operator.pub", "--suite", "ristretto255"];
        deployment.ok("kgc", &init);
        deployment
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

    /// A program in the deployment's directory, with the passphrase in the environment and everything logged.
    #[must_use]
    pub fn command(&self, name: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program(name));
        command.args(args).current_dir(self.directory.path()).stdin(Stdio::null());
        command.env_clear().env("QUIVER_PASSPHRASE", PASSPHRASE).env("RUST_LOG", "trace");
        // Everything is local: retry soon.
        command.env("QUIVER_EDGE_RETRY", "300ms").env("QUIVER_EDGE_RETRY_MAX", "2s");
        command.env("QUIVER_LEADER_BATCHING", "50ms").env("QUIVER_KGC_POLL", "100ms");
        command
    }

    /// Runs to the end.
    #[must_use]
    pub fn run(&self, name: &str, args: &[&str]) -> Output {
        let output = self.command(name, args).output().expect("run");
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

    /// Starts a program that stays.
    #[must_use]
    pub fn start(&self, name: &str, args: &[&str]) -> Process {
        Process::start(self.command(name, args), &self.log(name))
    }

    /// Issues a token by the deployment's operator, in the file `NAME.token`, whose name is returned.
    #[must_use]
    pub fn token(&self, name: &str, rest: &[&str]) -> String {
        let file = format!("{name}.token");
        let issue = ["token", "issue", "--name", name, "--out", &file, "--operator", "operator.key"];
        self.ok("kgc", &[&issue[..], rest].concat());
        file
    }

    /// The KGC, running.
    #[must_use]
    pub fn kgc(&self) -> Process {
        self.start("kgc", &["serve", "--listen", ANY])
    }

    /// The leader of [`GROUP`], running, and the gateway of boards behind these ports.
    #[must_use]
    pub fn leader(&self, kgc: &Process, boards: &[u16]) -> Process {
        let at = kgc.address();
        let first = !self.path("leader-data").exists();
        let token = first.then(|| self.token("leader-1", &["--leads", GROUP]));
        let serials: Vec<_> = boards.iter().map(|port| format!("tcp:127.0.0.1:{port}")).collect();
        let mut args = vec!["serve", "--kgc", &at, "--listen", ANY];
        args.extend(["--deployment", "kgc-data/deployment.toml"]);
        args.extend(token.iter().flat_map(|token| ["--token", token]));
        args.extend(serials.iter().flat_map(|serial| ["--serial", serial]));
        self.start("leader", &args)
    }

    /// A drone that is a service, of [`GROUP`], running; what happens to it is in its output as JSON.
    #[must_use]
    pub fn edge(&self, name: &str, kgc: &Process, leader: &Process) -> Process {
        let (data, token) = (format!("{name}-data"), self.token(name, &["--group", GROUP]));
        let (kgc, leader) = (kgc.address(), leader.address());
        let places = ["run", "--json", "-d", &data, "--kgc", &kgc, "--leader", &leader];
        let means = ["--deployment", "kgc-data/deployment.toml", "--token", &token];
        self.start("edge", &[&places[..], &means].concat())
    }

    /// Grants a drone this key of the authority, and waits until the running KGC has read it.
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
        let output = self.run("leader", &["status", "--json"]);
        output.status.success().then(|| serde_json::from_slice(&output.stdout).expect("json"))
    }

    /// Waits until the leader has so many members that all acknowledged an epoch after this one; returns that
    /// epoch: its term and counter.
    #[must_use]
    pub fn served(&self, members: u64, after: (u64, u64)) -> (u64, u64) {
        eventually(&format!("{members} members served after {after:?}"), || {
            let status = self.leader_status()?;
            let epoch = (status["term"].as_u64()?, status["counter"].as_u64()?);
            (status["acknowledged"] == members && epoch > after).then_some(epoch)
        })
    }

    /// Number of keys that the KGC has issued.
    #[must_use]
    pub fn keys_issued(&self) -> usize {
        let lines = self.ok("kgc", &["audit", "--json"]);
        lines.lines().filter(|line| line.contains("\"key issued\"")).count()
    }

    /// Everything that any program or board wrote to its output, log or console, by file.
    #[must_use]
    pub fn all_logs(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(self.directory.path()).expect("read");
        let paths = entries.map(|entry| entry.expect("entry").path());
        let is_log =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log-"));
        paths.filter(is_log).map(|path| (path.clone(), fs::read(&path).expect("read"))).collect()
    }
}
