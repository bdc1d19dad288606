//! The header is that of the sources, and programs in C do what the examples say: with real services on
//! loopback, linked to the shared library and to the static one.

#[path = "header/generate.rs"]
mod generate;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use quiver_service_testing::deployment::{ANY, PASSPHRASE};
use quiver_service_testing::{Process, TestDeployment, eventually, text};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Folder in which cargo puts the libraries that it builds for this test: beside it.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    test.parent().expect("a file is in a directory").into()
}

/// Compiles a program, and gives a command that runs it with the shared library.
fn compile(bench: &TestDeployment, source: &str, link: &[&str]) -> Command {
    let program = bench.path(&format!("program{}", link.len()));
    let mut compiler = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    compiler.args(["-std=c11", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"]);
    compiler.arg(root()).arg(root().join(source)).arg("-L").arg(libraries());
    compiler.args(link).arg("-lpthread").arg("-o").arg(&program);
    let output = compiler.output().expect("a C compiler runs");
    assert!(output.status.success(), "{source}: {}", String::from_utf8_lossy(&output.stderr));
    let mut command = Command::new(program);
    command.current_dir(bench.path("")).env("LD_LIBRARY_PATH", libraries());
    command.env("QUIVER_PASSPHRASE", PASSPHRASE).env("RUST_LOG", "trace");
    command
}

#[test]
fn header_is_that_of_the_sources() {
    let mut made = Vec::new();
    generate::header().write(&mut made);
    let kept = fs::read_to_string(root().join("quiver.h")).expect("the header");
    let hint = "run: cargo run -p libquiver --example header > edge/libquiver/quiver.h";
    assert!(String::from_utf8(made).expect("utf-8") == kept, "quiver.h is not up to date; {hint}");
}

#[test]
fn wrong_calls_are_answered_with_a_code_and_words() {
    let (bench, other) = (TestDeployment::new(), TestDeployment::new());
    let (token, foreign) = (bench.token("edge-1", &[]), other.token("edge-1", &[]));
    let mut program = compile(&bench, "tests/refusals.c", &["-lquiver"]);
    program.args(["data", "kgc-data/deployment.toml", &token]).arg(other.path(&foreign));
    let output = program.output().expect("it runs");
    let words = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{:?}: {words}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "the library prints nothing");
}

#[test]
#[expect(clippy::print_stdout, reason = "nothing is skipped silently")]
fn fork_with_the_same_number_has_no_drone() {
    const IMPOSSIBLE: i32 = 77;
    let bench = TestDeployment::new();
    let token = bench.token("edge-1", &[]);
    let mut program = compile(&bench, "tests/namespaces.c", &["-lquiver"]);
    let output = program.args(["data", "kgc-data/deployment.toml", &token]).output().expect("it runs");
    let words = String::from_utf8_lossy(&output.stdout);
    if output.status.code() == Some(IMPOSSIBLE) {
        println!("not tested: this process may make no PID namespace");
        return;
    }
    assert!(output.status.success(), "{:?}: {words}", output.status);
}

/// The example, with its input.
struct Talk {
    child: Child,
    input: Option<ChildStdin>,
    out: PathBuf,
}

impl Talk {
    fn start(mut command: Command, out: PathBuf) -> Self {
        let to = |path: &Path| fs::File::create(path).expect("create");
        command.stdin(Stdio::piped()).stdout(to(&out)).stderr(to(&out.with_extension("err")));
        let mut child = command.spawn().expect("it starts");
        let input = child.stdin.take();
        Self { child, input, out }
    }

    fn says(&mut self, line: &str) {
        let mut input = self.input.as_ref().expect("it listens");
        input.write_all(format!("{line}\n").as_bytes()).expect("it listens");
    }

    fn line(&self, part: &str) {
        let errors = self.out.with_extension("err");
        eventually(&format!("`{part}`; {}{}", text(&self.out), text(&errors)), || {
            text(&self.out).contains(part).then_some(())
        });
    }

    /// The input ends; so does it, well, and has complained of nothing.
    fn ends(mut self) {
        self.input = None;
        let status = eventually("the program ends", || self.child.try_wait().expect("wait"));
        let errors = text(&self.out.with_extension("err"));
        assert!(status.success() && errors.is_empty(), "{status}: {errors}");
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Group {
    bench: TestDeployment,
    kgc: Process,
    leader: Process,
    edge: Process,
}

impl Group {
    fn new() -> Self {
        let bench = TestDeployment::new();
        let kgc = bench.kgc(ANY);
        let lead = bench.token("leader-1", &["--leads", "alpha"]);
        let leader = bench.leader(&kgc.address(), ANY, Some(&lead), &[]);
        bench.token("edge-2", &["--group", "alpha"]);
        let edge = bench.edge("edge-2", &kgc.address(), &leader.address());
        bench.served(1, (0, 0));
        Self { bench, kgc, leader, edge }
    }

    /// The example at its first start.
    fn talk(&self, name: &str, link: &[&str]) -> Talk {
        let token = self.bench.token(name, &["--group", "alpha"]);
        let mut command = compile(&self.bench, "examples/talk.c", link);
        command.args([&format!("{name}-data"), &self.leader.address()]);
        command.args(["kgc-data/deployment.toml", &token, &self.kgc.address()]);
        Talk::start(command, self.bench.path(&format!("log-{name}.out")))
    }
}

fn example_talks(link: &[&str]) {
    let group = Group::new();
    let mut talk = group.talk("edge-1", link);
    talk.line("enrolled as edge-1");
    talk.line("joined, with a key for this application");
    let before = group.bench.served(2, (0, 0));
    talk.says("hello from C");
    let heard = group.edge.line("hello from C");
    assert!(heard.contains("\"from\":\"edge-1\"") && heard.contains("\"signed\":true"), "{heard}");
    group.bench.ok("edge", &["send", "-d", "edge-2-data", "hello\x1b[2J to C"]);
    talk.line("[chat] edge-2: hello.[2J to C");
    group.bench.ok("edge", &["send", "-d", "edge-2-data", "--unsigned", "who am I?"]);
    talk.line("as it claims: who am I?");
    group.bench.ok("leader", &["rekey"]);
    let (term, counter) = group.bench.served(2, before);
    talk.line(&format!("epoch: term {term}, counter {counter}"));
    let out = talk.out.clone();
    talk.ends();
    assert!(text(&out).contains("left the group"), "{}", text(&out));
    group.bench.served(1, (term, counter));
}

#[test]
fn example_joins_a_group_and_talks_by_the_shared_library() {
    example_talks(&["-lquiver"]);
}

#[test]
fn example_joins_a_group_and_talks_by_the_static_library() {
    // Libraries of the system that Rust's standard library needs.
    example_talks(&["-l:libquiver.a", "-lm", "-ldl", "-lrt", "-lgcc_s"]);
}

#[test]
fn example_outlives_its_leader_and_sends_when_it_is_back() {
    let mut group = Group::new();
    let mut talk = group.talk("edge-1", &["-lquiver"]);
    talk.line("joined");
    let before = group.bench.served(2, (0, 0));
    let address = group.leader.address();
    group.leader.kill();
    // A write to the dead one must not end the program by SIGPIPE.
    talk.says("does anybody hear?");
    let socket = address.split("/p2p/").next().expect("an address").to_string();
    group.leader = group.bench.leader(&group.kgc.address(), &socket, None, &[]);
    let (term, counter) = group.bench.served(2, before);
    talk.line(&format!("epoch: term {term}, counter {counter}"));
    talk.says("back again");
    group.edge.line("back again");
    let _ = talk.child.kill();
}
