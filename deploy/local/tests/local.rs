//! The command `quiver-local` with the real programs: a deployment comes up, passes a message, evicts, ends, and
//! comes up again with the same keys.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use quiver_service_testing::build::program;
use quiver_service_testing::{Process, eventually, text};
use serde_json::Value;
use tempfile::TempDir;

/// Folders of a test, and the programs.
struct Bench {
    place: TempDir,
    programs: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let programs = program("kgc").parent().expect("a directory").to_path_buf();
        Self { place: tempfile::tempdir().expect("tempdir"), programs }
    }

    fn folder(&self) -> PathBuf {
        self.place.path().join("demo")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quiver-local"));
        command.args(words).current_dir(self.place.path()).env("QUIVER_PROGRAMS", &self.programs);
        // Settings of another deployment are not for this one.
        command
            .env("QUIVER_KGC_LISTEN", "/ip4/127.0.0.1/tcp/1")
            .env("QUIVER_PASSPHRASE", "of another deployment");
        command.stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("run")
    }

    /// Starts `up`, whose events are JSON lines. `run` tells logs apart.
    fn up(&self, run: &str, flags: &[&str]) -> Process {
        let words = [&["up", "demo", "--json", "--wait", "10m"], flags].concat();
        Process::start(self.command(&words), &self.place.path().join(format!("log-{run}")))
    }

    /// The same, once everything runs, with what it said about that.
    fn up_and_ready(&self, run: &str, flags: &[&str]) -> (Process, Value) {
        let process = self.up(run, flags);
        let line = eventually("everything runs", || {
            assert!(process.is_running(), "it ended: {}", process.story());
            text(&process.out).lines().find(|line| line.contains("\"event\":\"ready\"")).map(String::from)
        });
        (process, serde_json::from_str(&line).expect("json"))
    }

    /// A program in the folder, to a good end.
    fn ok(&self, name: &str, words: &[&str]) -> String {
        let output = Command::new(self.programs.join(name)).args(words).current_dir(self.folder()).output();
        let output = output.expect("run");
        assert!(output.status.success(), "{name} {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("utf-8")
    }

    fn log_says(&self, service: &str, part: &str) {
        let log = self.folder().join("logs").join(format!("{service}.log"));
        eventually(&format!("`{part}` in {}", log.display()), || text(&log).contains(part).then_some(()));
    }

    /// The KGC's audit table: how many keys it has issued.
    fn keys_issued(&self) -> usize {
        let lines = self.ok("kgc", &["audit", "-d", "kgc", "--key-file", "state.key", "--json"]);
        lines.lines().filter(|line| line.contains("\"key issued\"")).count()
    }
}

/// Process ids of the services that an event lists.
fn pids(ready: &Value) -> Vec<u64> {
    let services = ready["services"].as_array().expect("services");
    services.iter().map(|service| service["pid"].as_u64().expect("a process")).collect()
}

/// Returns true if a process runs: it is there, and is no entry that waits for its parent.
fn runs(pid: u64) -> bool {
    let stat = text(Path::new(&format!("/proc/{pid}/stat")));
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

fn all_ended(pids: &[u64]) {
    eventually("no process is left", || pids.iter().all(|&pid| !runs(pid)).then_some(()));
}

fn refused(output: &Output, code: i32, parts: &[&str]) {
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{complaint}");
    for part in parts {
        assert!(complaint.contains(part), "`{part}` is not in: {complaint}");
    }
}

#[test]
fn deployment_comes_up_works_ends_and_comes_up_again_with_the_same_keys() {
    let bench = Bench::new();
    let (first, ready) = bench
        .up_and_ready("first", &["--drones", "2", "--mavlink", "--port", "any", "--mavlink-port", "any"]);
    let services: Vec<_> = ready["services"].as_array().expect("services").iter().collect();
    let names: Vec<_> = services.iter().map(|service| service["name"].as_str().expect("name")).collect();
    assert_eq!(names, ["kgc", "leader-1", "edge-1", "edge-2"]);
    for service in &services {
        assert_eq!(service["ready"], true, "{service}");
        for listens in service["listens"].as_array().expect("listens") {
            assert!(listens.as_str().is_some_and(|listens| listens.contains("127.0.0.1:")), "{listens}");
        }
    }

    // A message passes, and a drone that is evicted reads no further one.
    bench.ok("leader", &["send", "-d", "leader-1", "return to base"]);
    bench.log_says("edge-1", "leader-1 (signed): return to base");
    bench.log_says("edge-2", "leader-1 (signed): return to base");
    assert!(bench.ok("leader", &["status", "-d", "leader-1"]).contains("mavlink"));
    bench.ok("leader", &["evict", "-d", "leader-1", "edge-2"]);
    bench.log_says("edge-2", "evicted from the group");
    bench.ok("leader", &["send", "-d", "leader-1", "without the second"]);
    bench.log_says("edge-1", "without the second");
    let second_log = text(&bench.folder().join("logs/edge-2.log"));
    assert!(!second_log.contains("without the second"), "{second_log}");

    // Another command beside it is refused, and `status` says what runs.
    refused(&bench.run(&["up", "demo"]), 5, &["runs already", &first.id().to_string(), "quiver-local down"]);
    let status = bench.run(&["status", "demo", "--json"]);
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
    let status: Value = serde_json::from_slice(&status.stdout).expect("json");
    assert_eq!(status[0]["pid"], ready["services"][0]["pid"]);

    // Ctrl-C ends everything.
    first.signal("INT");
    assert!(first.wait().success(), "{}", first.story());
    let first_pids = pids(&ready);
    assert!(first_pids.iter().all(|&pid| !runs(pid)), "a process is left");
    refused(&bench.run(&["down", "demo"]), 4, &["nothing runs"]);
    refused(&bench.run(&["status", "demo"]), 4, &["nothing runs"]);
    let (keys, issued) = (text(&bench.folder().join("kgc/deployment.toml")), bench.keys_issued());
    assert_eq!(issued, 3);

    // The same command, with fewer words: the folder knows the rest. The evicted drone does not hold it up.
    let (second, ready) = bench.up_and_ready("second", &[]);
    let services = ready["services"].as_array().expect("services");
    assert_eq!(services.len(), 4);
    let trouble: Vec<_> = services.iter().filter(|service| service["ready"] != true).collect();
    assert_eq!(trouble.len(), 1, "{trouble:?}");
    assert_eq!(trouble[0]["name"], "edge-2");
    bench.ok("leader", &["send", "-d", "leader-1", "again"]);
    bench.log_says("edge-1", "leader-1 (signed): again");
    assert!(bench.run(&["down", "demo"]).status.success());
    assert!(second.wait().success(), "{}", second.story());
    all_ended(&pids(&ready));
    assert_eq!(text(&bench.folder().join("kgc/deployment.toml")), keys);
    assert_eq!(bench.keys_issued(), issued, "nobody enrolled again");

    // The Procfile has what runs, for whoever goes on by hand.
    let procfile = text(&bench.folder().join("Procfile"));
    for name in names {
        assert!(procfile.lines().any(|line| line.starts_with(&format!("{name}: "))), "{procfile}");
    }
}

#[test]
fn killed_command_leaves_nothing_that_blocks_the_next() {
    let bench = Bench::new();
    // As it makes keys; wherever that is.
    let early = bench.up("early", &["--drones", "1", "--port", "any"]);
    eventually("it began", || bench.folder().join("logs/setup.log").exists().then_some(()));
    early.kill();
    // Between two steps, when everything runs.
    let (killed, ready) = bench.up_and_ready("killed", &[]);
    killed.kill();
    let (last, again) = bench.up_and_ready("last", &["--drones", "2", "--deputy"]);
    all_ended(&pids(&ready));
    assert_eq!(again["services"].as_array().expect("services").len(), 5, "{again}");
    assert_eq!(bench.keys_issued(), 4, "the first leader and drone kept their keys, the others enrolled");
    // A service that is killed is named, with what starts it again; the others go on.
    let pid = again["services"][3]["pid"].as_u64().expect("a process").to_string();
    assert!(Command::new("kill").args(["-KILL", &pid]).status().expect("kill").success());
    let said = last.line("\"event\":\"ended\"");
    assert!(said.contains("edge-1") && said.contains("edge run -d edge-1"), "{said}");
    assert!(last.is_running());
    assert!(last.terminate().success(), "{}", last.story());
    all_ended(&pids(&again));
}

#[test]
fn busy_ports_and_foreign_folders_are_refused_before_anything_is_made() {
    let bench = Bench::new();
    let held = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind");
    let port = held.local_addr().expect("address").port().clamp(1024, 65_000).to_string();
    let holds = held.local_addr().expect("address").port().to_string() == port;
    if holds {
        let said = bench.run(&["up", "demo", "--port", &port]);
        refused(&said, 5, &[&format!("TCP port {port} for kgc"), "--port any"]);
        assert!(!bench.folder().join("kgc").exists() && !bench.folder().join("operator.key").exists());
    }
    let foreign = bench.place.path().join("thesis");
    fs::create_dir(&foreign).expect("create");
    fs::write(foreign.join("thesis.tex"), "x").expect("write");
    refused(&bench.run(&["up", "thesis"]), 2, &["belongs to something else"]);
    assert_eq!(fs::read_dir(&foreign).expect("read").count(), 1, "nothing was added");
    refused(&bench.run(&["down", "thesis"]), 2, &["is no folder of quiver-local"]);
    // `up` would not take these.
    for folder in ["thesis", "thesis/thesis.tex"] {
        let advice =
            format!("{folder} is no folder of quiver-local; give the one that `quiver-local up` was given");
        refused(&bench.run(&["status", folder]), 2, &[&advice]);
    }
    let advice = "my thesis is no folder of quiver-local; `quiver-local up 'my thesis'` makes it one";
    refused(&bench.run(&["status", "my thesis"]), 2, &[advice]);
    refused(&bench.run(&["up", "other", "--programs", "thesis"]), 2, &["no program `kgc`", "cargo services"]);
    refused(
        &bench.run(&["up", "other", "--programs", "nowhere"]),
        2,
        &["no program `kgc` in nowhere: it is not there"],
    );
    assert!(!bench.place.path().join("other").exists(), "a folder without programs is of no use");
}

#[test]
fn help_that_cannot_be_printed_is_a_failure() {
    let bench = Bench::new();
    for words in [&["--help"][..], &["--version"], &["up", "--help"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("open");
        let output = bench.command(words).stdout(full).output().expect("run");
        assert_eq!(output.status.code(), Some(1), "{words:?}: {output:?}");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains("cannot print the result: No space left"), "{words:?}: {told}");
    }
}
