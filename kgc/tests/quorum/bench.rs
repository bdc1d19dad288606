//! A quorum in a temporary directory, and its KGCs as processes.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use quiver_service_testing::deployment::status;
use quiver_service_testing::{Process, eventually, text};
use serde_json::Value;
use tempfile::TempDir;

/// Key that opens the state files. No passphrase: stretching one takes a while each time.
pub(crate) const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// The quorum.
pub(crate) struct Bench {
    directory: TempDir,
    ports: Vec<u16>,
    started: AtomicUsize,
}

impl Bench {
    /// An operator, and ports for five KGCs.
    pub(crate) fn empty() -> Self {
        // All at once, so that they differ.
        let taken: Vec<_> = (0..5).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let ports = taken.iter().map(|port| port.local_addr().expect("address").port()).collect();
        let bench =
            Self { directory: tempfile::tempdir().expect("tempdir"), ports, started: AtomicUsize::new(0) };
        bench.write("key", KEY);
        fs::set_permissions(bench.path("key"), fs::Permissions::from_mode(0o600)).expect("chmod");
        bench.ok(0, &["operator", "new"]);
        bench
    }

    /// KGCs that have pinned one another and do not run yet.
    pub(crate) fn new(members: u16, threshold: u16) -> Self {
        let bench = Self::empty();
        let parts: String = (1..=members).map(|id| bench.key(id)).collect();
        bench.write("quorum.toml", &format!("deployment = 'alps'\nthreshold = {threshold}\n{parts}"));
        let said: Vec<_> = (1..=members).map(|id| bench.init(id)).collect();
        let fingerprint =
            |text: &String| text.lines().find(|line| line.contains("fingerprint")).map(String::from);
        assert!(
            said.iter().all(|text| fingerprint(text).is_some() && fingerprint(text) == fingerprint(&said[0]))
        );
        bench
    }

    /// `kgc quorum key`: this KGC's part of the init file.
    pub(crate) fn key(&self, id: u16) -> String {
        self.ok(id, &["quorum", "key", "--id", &id.to_string(), "--address", &self.address(id)])
    }

    /// `kgc quorum init`.
    pub(crate) fn init(&self, id: u16) -> String {
        self.ok(id, &["quorum", "init", "--file", "quorum.toml", "--operator", "operator.pub"])
    }

    /// Puts a backup of the transport key into an empty data directory.
    pub(crate) fn restore_transport(&self, id: u16, bytes: &[u8]) {
        let directory = self.path(&format!("kgc-{id}"));
        fs::DirBuilder::new().mode(0o700).create(&directory).expect("mkdir");
        let file = directory.join("transport.state");
        fs::write(&file, bytes).expect("write");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("chmod");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("write");
    }

    /// Address at which a KGC listens.
    pub(crate) fn address(&self, id: u16) -> String {
        format!("/ip4/127.0.0.1/tcp/{}", self.ports[usize::from(id) - 1])
    }

    fn command(&self, id: u16, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kgc"));
        command.args(["--data-dir", &format!("kgc-{id}"), "--key-file", "key"]).args(args);
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        command.env_clear().env("QUIVER_KGC_POLL", "100ms").env("RUST_LOG", "info");
        command
    }

    fn run(&self, id: u16, args: &[&str]) -> Output {
        self.command(id, args).output().expect("run")
    }

    pub(crate) fn ok(&self, id: u16, args: &[&str]) -> String {
        let output = self.run(id, args);
        assert!(output.status.success(), "KGC {id}, {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("utf-8")
    }

    pub(crate) fn json(&self, id: u16, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(id, args)).expect("json")
    }

    /// Runs; its exit code, and what it complains of.
    pub(crate) fn answer(&self, id: u16, args: &[&str]) -> (Option<i32>, String) {
        let output = self.run(id, args);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Runs, and expects this exit code and a complaint that contains `part`.
    pub(crate) fn refused(&self, id: u16, args: &[&str], code: i32, part: &str) {
        let (ended, complaint) = self.answer(id, args);
        assert_eq!(ended, Some(code), "KGC {id}, {args:?}: {complaint}");
        assert!(complaint.contains(part), "KGC {id}, {args:?}: `{part}` is not in: {complaint}");
    }

    /// Starts a KGC.
    pub(crate) fn serve(&self, id: u16) -> Process {
        self.start(id, &["serve", "--listen", &self.address(id)])
    }

    /// Starts a command whose output goes to files.
    pub(crate) fn start(&self, id: u16, args: &[&str]) -> Process {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        Process::start(self.command(id, args), &self.path(&format!("log-{number:03}-kgc-{id}")))
    }

    /// Status of a running KGC.
    pub(crate) fn status(&self, id: u16) -> Option<Value> {
        status(&self.run(id, &["quorum", "status", "--json"]))
    }

    /// Waits until a KGC serves drones with shares of this version, and is connected with all others that do.
    pub(crate) fn serving(&self, id: u16, version: u32) {
        eventually(&format!("KGC {id} serves with version {version}"), || {
            let status = self.status(id)?;
            let ready =
                status["serving"] == true && status["statement"] == true && status["ceremony"].is_null();
            let others = status["others"].as_array()?.iter().all(|other| other["agrees"] == true);
            (ready && others && status["version"] == version).then_some(())
        });
    }

    /// Refreshes the shares of all KGCs; `kgcs[i]` is KGC i + 1.
    ///
    /// A KGC joins a refresh of another's no more than once a minute; so all but the last are given the command. The last is
    /// stopped until they take part, because a command after the end would begin another refresh; restarted, it joins.
    pub(crate) fn refresh(&self, kgcs: &mut [Process], version: u32) {
        let (last, others) = kgcs.split_last_mut().expect("several");
        let ids = 1..=u16::try_from(others.len()).expect("few");
        last.signal("STOP");
        let commands: Vec<_> =
            ids.clone().map(|id| self.start(id, &["quorum", "refresh", "--json"])).collect();
        for id in ids.clone() {
            eventually(&format!("KGC {id} takes part"), || {
                (self.status(id)?["ceremony"]["kind"] == "refresh").then_some(())
            });
        }
        last.kill();
        *last = self.serve(ids.end() + 1);
        for command in commands {
            assert!(command.wait().success(), "{}", command.story());
            let done: Value = serde_json::from_str(&text(&command.out)).expect("json");
            assert_eq!(done["done"]["version"], version);
        }
        (1..=ids.end() + 1).for_each(|id| self.serving(id, version));
    }

    /// Waits until a KGC has shares of this version in force.
    pub(crate) fn in_force(&self, id: u16, version: u32) {
        eventually(&format!("KGC {id} has version {version} in force"), || self.has_in_force(id, version));
    }

    /// Returns `Some` once a version of a KGC's shares is in force.
    pub(crate) fn has_in_force(&self, id: u16, version: u32) -> Option<()> {
        let status = self.status(id)?;
        (status["version"] == version && status["ceremony"].is_null()).then_some(())
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }
}
