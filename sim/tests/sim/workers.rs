//! Runs whose drones are hosted by `sim worker` processes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use serde_json::Value;

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may be over.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn sim(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sim"));
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env_remove("RUST_LOG");
    command
}

/// A port of loopback that was free just now.
fn free_address() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().to_string()
}

const PLAN: [&str; 8] = ["-n", "40", "--transport", "tcp", "--messages", "6", "--json", "--no-results"];

fn run(address: &str, workers: &str) -> Command {
    let mut command = sim(&["run"]);
    command.args(PLAN).args(["--workers", workers, "--bind", address]);
    command
}

fn worker(address: &str) -> Running {
    let mut command = sim(&["worker", address]);
    Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

fn summary(output: &Output) -> Value {
    let shown = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {shown}"))
}

#[test]
fn drones_of_three_workers_hold_every_invariant_and_the_keys_of_drones_in_one_process() {
    let address = free_address();
    // Workers may come first.
    let workers: Vec<Running> = (0..3).map(|_| worker(&address)).collect();
    let output = run(&address, "3").output().unwrap();
    let spread = summary(&output);
    assert!(output.status.success(), "{spread:#}");
    assert_eq!(spread["passed"], true);
    let hosted: Vec<u64> = spread["workers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|worker| worker["drones"].as_u64().unwrap())
        .collect();
    // 40 of the group, 4 newcomers, 1 outsider.
    assert_eq!(hosted, [15, 15, 15]);
    for mut worker in workers {
        assert!(worker.0.wait().unwrap().success());
    }

    let mut together = sim(&["run"]);
    let together = summary(&together.args(PLAN).output().unwrap());
    assert_eq!(spread["keys_digest"], together["keys_digest"]);
    assert_eq!(spread["choices_digest"], together["choices_digest"]);
    let operations = |run: &Value| {
        let operations = run["operations"].as_array().unwrap().clone();
        operations
            .iter()
            .map(|operation| (operation["operation"].clone(), operation["drones"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(operations(&spread), operations(&together));
}

#[test]
fn drones_behind_relays_of_two_workers_have_the_keys_of_drones_without_and_cost_the_leader_little() {
    let address = free_address();
    let workers: Vec<Running> = (0..2).map(|_| worker(&address)).collect();
    let tree = ["--strategy", "tree"];
    let relayed = run(&address, "2").args(tree).args(["--relays", "2"]).output().unwrap();
    assert!(relayed.status.success(), "{:#}", summary(&relayed));
    for mut worker in workers {
        assert!(worker.0.wait().unwrap().success());
    }
    let alone = sim(&["run"]).args(PLAN).args(tree).output().unwrap();
    let (relayed, alone) = (summary(&relayed), summary(&alone));
    assert_eq!((&relayed["passed"], &alone["passed"]), (&true.into(), &true.into()));
    assert_eq!(relayed["keys_digest"], alone["keys_digest"]);
    let sent = |run: &Value| {
        let operations = run["operations"].as_array().unwrap();
        let rekey = operations.iter().find(|one| one["phase"] == "re-key").unwrap();
        rekey["leader_bytes_sent"].as_u64().unwrap()
    };
    assert!(sent(&relayed) * 5 < sent(&alone), "{} and {}", sent(&relayed), sent(&alone));
}

/// Operations of a run, each with its number of drones.
type Operations = Vec<(Value, Value)>;

/// The operations of a run with these options over two workers and in one process.
fn spread_and_together(options: &[&str]) -> (Operations, Operations) {
    let plan = [
        "-n",
        "12",
        "--transport",
        "tcp",
        "--messages",
        "2",
        "--no-restart-leader",
        "--json",
        "--no-results",
    ];
    let operations = |output: Output| {
        let summary = summary(&output);
        assert!(output.status.success(), "{summary:#}");
        assert_eq!(summary["passed"], true);
        let operations = summary["operations"].as_array().unwrap().clone();
        operations.into_iter().map(|one| (one["operation"].clone(), one["drones"].clone())).collect()
    };
    let address = free_address();
    let workers: Vec<Running> = (0..2).map(|_| worker(&address)).collect();
    let mut command = sim(&["run"]);
    command.args(plan).args(options).args(["--workers", "2", "--bind", &address]);
    let spread = operations(command.output().unwrap());
    for mut worker in workers {
        assert!(worker.0.wait().unwrap().success());
    }
    let together = operations(sim(&["run"]).args(plan).args(options).output().unwrap());
    (spread, together)
}

#[test]
fn drones_of_workers_open_envelopes_and_orders_as_those_in_one_process() {
    let (spread, together) =
        spread_and_together(&["--envelopes", "--orders", "--kgcs", "3", "--threshold", "2"]);
    assert_eq!(spread, together);
    let members = 12 + 2 - 1;
    for operation in [
        "envelope (to 3)",
        "order sealed to phase 2",
        "phase 2 requested early (13 refused)",
        "phase 2 released (2 of 3)",
    ] {
        assert!(spread.contains(&(operation.into(), members.into())), "{operation}: {spread:?}");
    }
}

#[test]
fn drones_of_workers_join_anonymously_as_those_in_one_process() {
    let (spread, together) = spread_and_together(&["--admission"]);
    assert_eq!(spread, together);
    let admissions = spread.iter().filter(|(operation, _)| operation.as_str().unwrap().contains("admitted"));
    assert!(admissions.count() >= 2, "{spread:?}");
}

/// Reads what a run logs, until its workers have their drones.
fn wait_until_all_are_at_work(log: &mut impl BufRead) {
    let mut line = String::new();
    while !line.contains("all workers are at work") {
        line.clear();
        assert_ne!(log.read_line(&mut line).unwrap(), 0, "the run ended early");
    }
}

#[test]
fn worker_ends_with_its_run_whatever_it_is_at() {
    let address = free_address();
    let mut command = run(&address, "1");
    let mut running = Running(command.env("RUST_LOG", "quiver_sim=info").spawn().unwrap());
    let mut worker = worker(&address);
    wait_until_all_are_at_work(&mut BufReader::new(running.0.stderr.take().unwrap()));
    running.0.kill().unwrap();
    assert_eq!(worker.0.wait().unwrap().code(), Some(1));
}

#[test]
fn drones_of_a_worker_that_dies_count_as_crashed_and_the_others_go_on() {
    let address = free_address();
    let mut command = run(&address, "2");
    command.args(["--deputies", "1"]).env("RUST_LOG", "quiver_sim=info");
    let mut running = Running(command.spawn().unwrap());
    let survivor = worker(&address);
    let mut victim = worker(&address);
    let mut log = BufReader::new(running.0.stderr.take().unwrap());
    wait_until_all_are_at_work(&mut log);
    victim.0.kill().unwrap();
    let rest = thread::spawn(move || {
        let mut rest = String::new();
        log.read_to_string(&mut rest).map(|_| rest)
    });
    let mut stdout = running.0.stdout.take().unwrap();
    let mut output = String::new();
    stdout.read_to_string(&mut output).unwrap();
    let status = running.0.wait().unwrap();
    let log = rest.join().unwrap().unwrap();
    let summary: Value = serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {log}"));
    assert_eq!(status.code(), Some(1), "{summary:#}");
    assert_eq!(summary["passed"], false);
    // Nothing is wrong with those that are alive.
    assert_eq!(summary["violations"].as_array().unwrap().len(), 0, "{summary:#}");
    let workers = summary["workers"].as_array().unwrap();
    let crashed: Vec<&Value> = workers.iter().filter(|worker| !worker["crashed"].is_null()).collect();
    assert_eq!(crashed.len(), 1, "{summary:#}");
    assert!(log.contains("count as crashed"), "{log}");
    let last = summary["operations"].as_array().unwrap().last().unwrap();
    assert!(last["operation"].as_str().unwrap().starts_with("leader lost"), "{summary:#}");
    assert!(last["drones"].as_u64().unwrap() < 40);
    drop(survivor);
}

#[test]
fn strangers_are_turned_away_and_the_run_goes_on() {
    let address = free_address();
    let running = thread::spawn({
        let mut command = run(&address, "1");
        command.args(["--timeout", "60s"]);
        move || command.output().unwrap()
    });
    let dial = || loop {
        match TcpStream::connect(&address) {
            Ok(stream) => return stream,
            Err(_) => thread::yield_now(),
        }
    };
    let long = vec![b'x'; 2 << 20];
    for words in
        [b"GET / HTTP/1.1\r\n\r\n".as_slice(), b"{\"Hello\":{\"version\":\"0\"}}\n", b"\xff\n", &long]
    {
        let mut stream = dial();
        // It may hang up before it has read all of it.
        let _ = stream.write_all(words);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty());
    }
    // One after the other they would take two minutes.
    let _silent: Vec<TcpStream> = (0..12).map(|_| dial()).collect();
    let _worker = worker(&address);
    let output = running.join().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_cannot_work_is_said() {
    let refusal = |words: &[&str], code: i32| {
        let output = sim(words).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let text = refusal(&["run", "--workers", "2"], 2);
    assert!(text.contains("--transport tcp"), "{text}");
    let text = refusal(&["run", "--transport", "tcp", "--workers", "2", "--mavlink"], 2);
    assert!(text.contains("--mavlink") && text.contains("--workers"), "{text}");
    let text = refusal(&["run", "--transport", "tcp", "--workers", "2", "--bind", "0.0.0.0:0"], 2);
    assert!(text.contains("reach this host"), "{text}");
    for nowhere in ["nowhere", "nowhere:", ":7400", "nowhere:http", "nowhere:0"] {
        let text = refusal(&["worker", nowhere], 2);
        assert!(text.contains("expected a host and a port"), "{text}");
    }
    let address = free_address();
    let words =
        ["run", "--transport", "tcp", "-n", "2", "--workers", "1", "--timeout", "1s", "--bind", &address];
    let text = refusal(&words, 1);
    assert!(text.contains("0 of 1 worker connected within 1 s"), "{text}");
    let text = refusal(&["worker", &address, "--patience", "0s"], 1);
    assert!(text.contains(&address) && text.contains("no run there"), "{text}");
}
