//! Services whose standard output and log are full, closed, or read by nobody: they go on, and end when they are told to.
//! A command whose result cannot be printed fails, although its work is done.

use std::fs::File;
use std::io::{PipeReader, PipeWriter, Write, pipe};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use quiver_service_testing::deployment::ANY;
use quiver_service_testing::{Process, TestDeployment, eventually};

use super::enrol;
use super::swarm::{Swarm, socket_of};

/// Place of a service's standard output and log.
#[derive(Debug)]
enum Place {
    /// A full disk.
    Full,
    /// None: both were closed.
    Closed,
    /// A pipe that is full, because its reader, which is there, reads nothing.
    Unread { writer: PipeWriter, _reader: PipeReader },
}

impl Place {
    fn unread() -> Self {
        let (reader, mut writer) = pipe().expect("pipe");
        let has_room = |writer: &PipeWriter| {
            let mut polled = [PollFd::new(writer.as_fd(), PollFlags::POLLOUT)];
            poll(&mut polled, PollTimeout::ZERO).expect("poll") > 0
        };
        while has_room(&writer) {
            writer.write_all(&[b'.'; 4096]).expect("write");
        }
        Self::Unread { writer, _reader: reader }
    }

    /// Starts a program whose standard output and log go there.
    fn start(&self, bench: &TestDeployment, name: &str, args: &[&str]) -> Process {
        let mut command = bench.command(name, args);
        match self {
            Self::Full => {
                let full = || File::options().write(true).open("/dev/full").expect("open");
                command.stdout(full()).stderr(full());
            }
            Self::Closed => {
                let mut shell = Command::new("sh");
                shell
                    .args(["-c", "exec \"$0\" \"$@\" >&- 2>&-"])
                    .arg(command.get_program())
                    .args(command.get_args());
                shell.env_clear().current_dir(bench.path("")).stdin(Stdio::null());
                for (variable, value) in command.get_envs() {
                    shell.env(variable, value.expect("a value"));
                }
                command = shell;
            }
            Self::Unread { writer, .. } => {
                let end = || writer.try_clone().expect("clone");
                command.stdout(end()).stderr(end());
            }
        }
        Process::spawn(command, &bench.log(name))
    }
}

#[test]
fn services_go_on_where_nobody_takes_their_output_and_end_when_they_are_told_to() {
    let mut swarm = Swarm::new();
    let mut epoch = swarm.in_sync((0, 0));
    let listening = |at: &str| socket_of(at).to_owned();
    let (kgc_at, leader_at) = (listening(&swarm.kgc_at), listening(&swarm.leader_at));
    let data = ["--deployment", "kgc-data/deployment.toml"];
    for (number, place) in [Place::Full, Place::Closed, Place::unread()].into_iter().enumerate() {
        let bench = &swarm.bench;
        for service in [&swarm.kgc, &swarm.leader, &swarm.edges[0]] {
            assert!(service.terminate().success(), "{place:?}: {}", service.story());
        }
        swarm.kgc = place.start(bench, "kgc", &["serve", "--listen", &kgc_at]);
        let serve = ["serve", "--kgc", &swarm.kgc_at, "--listen", &leader_at];
        swarm.leader = place.start(bench, "leader", &[&serve[..], &data].concat());
        let run =
            ["run", "--json", "-d", "edge-1-data", "--kgc", &swarm.kgc_at, "--leader", &swarm.leader_at];
        swarm.edges[0] = place.start(bench, "edge", &[&run[..], &data].concat());
        epoch = swarm.in_sync(epoch);
        bench.ok("leader", &["rekey"]);
        epoch = swarm.in_sync(epoch);
        // More than one pipe takes, in lines that are longer than a piece.
        for message in 0..12 {
            bench.ok("leader", &["send", &format!("LONG-{number}-{message} {}", "x".repeat(8192))]);
        }
        swarm.message_arrives(&format!("STILL-HERE-{number}"));
        bench.ok("kgc", &["health"]);
        bench.ok("edge", &["health", "-d", "edge-1-data"]);
        let name = format!("new-{number}");
        let token = bench.token(&name, &["--group", "alpha"]);
        let enrolled = bench.ok("edge", &enrol(&name, &token, &swarm.kgc_at));
        assert!(enrolled.contains(&format!("enrolled as {name}")), "{enrolled}");
    }
    for service in [&swarm.kgc, &swarm.leader, &swarm.edges[0]] {
        assert!(service.terminate().success());
    }
}

#[test]
fn service_whose_output_is_lost_says_so_in_its_log() {
    let bench = TestDeployment::new();
    let mut command = bench.command("kgc", &["serve", "--listen", ANY]);
    command.stdout(File::options().write(true).open("/dev/full").expect("open"));
    let kgc = Process::launch(command, &bench.log("kgc"));
    kgc.logged("standard output cannot be written, and its lines are lost until it can: No space left");
    // The first line is lost before the service listens, and a signal that comes so early is answered with a failure.
    eventually("it serves", || bench.run("kgc", &["health"]).status.success().then_some(()));
    assert!(kgc.terminate().success(), "{}", kgc.story());
}

#[test]
fn enrolment_that_cannot_be_printed_is_a_failure_and_is_done() {
    let bench = TestDeployment::new();
    let kgc = bench.kgc(ANY);
    let at = kgc.address();
    let token = bench.token("edge-1", &["--group", "alpha"]);
    for told in ["enrolled as edge-1", "already enrolled"] {
        let words = enrol("one", &token, &at);
        let mut command = bench.command("edge", &words);
        command.stdout(File::options().write(true).open("/dev/full").expect("open"));
        bench.expect_refusal("edge", command, 1, &["edge: cannot print the result: No space left"]);
        assert!(bench.ok("edge", &words).contains("already enrolled"), "{told} could not be printed");
    }
    assert!(bench.ok("kgc", &["audit"]).contains("key issued"));
}
