//! The command line of an edge: what is typed wrong is named, with what is right; files and directories that
//! are none; signals while it waits.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use quiver_service_testing::deployment::ANY;
use quiver_service_testing::{Process, TestDeployment, eventually, text};

use crate::enrol;

/// Address at which nothing listens.
const NOBODY: &str = "/ip4/127.0.0.1/tcp/9";

#[test]
fn enrol_is_spelt_in_one_way_and_the_other_names_it() {
    let bench = TestDeployment::new();
    let output = bench.run("edge", &["enroll", "-d", "one"]);
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains("a similar subcommand exists: 'enrol'"), "{complaint}");
}

#[test]
fn advice_can_be_typed_as_it_is_and_untold_connections_are_not_invented() {
    let bench = TestDeployment::new();
    let token = bench.token("edge-1", &["--group", "alpha"]);
    let at = ["--deployment", "kgc-data/deployment.toml"];
    fs::copy(bench.path(&token), bench.path("my token")).expect("copy");
    fs::set_permissions(bench.path("my token"), fs::Permissions::from_mode(0o644)).expect("chmod");
    let enrol = [&["enrol", "-d", "one", "--token", "my token"][..], &at].concat();
    bench.refused("edge", &enrol, 6, &["my token can be read", "chmod 600 'my token'"]);
    fs::create_dir(bench.path("to kens")).expect("mkdir");
    let run = [&["run", "-d", "one", "--token-dir", "to kens", "--leader", NOBODY][..], &at].concat();
    bench.refused("edge", &run, 1, &["no token is left in to kens", "--out 'to kens'`"]);
    for words in [&["status"][..], &["health"], &["send", "hello"]] {
        let words = [words, &["-d", "my token"]].concat();
        bench.refused("edge", &words, 2, &["my token is a file, not a directory"]);
    }
    let hurried = ["enrol", "-d", "one", "--token", &token, "--kgc", NOBODY, "--enrol-timeout", "0s"];
    let output = bench.run("edge", &[&hurried[..], &at].concat());
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(8), "{told}");
    assert!(told.contains("not enrolled within 0s: ") && !told.contains("is connected"), "{told}");
}

/// Asserts that a command ends with this code, says this, and advises to change nothing.
fn refused_without_advice(bench: &TestDeployment, args: &[&str], code: i32, part: &str) {
    let output = bench.run("edge", args);
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {complaint}");
    assert!(complaint.contains(part), "{args:?}: `{part}` is not in: {complaint}");
    assert!(!complaint.contains("chmod"), "{args:?}: {complaint}");
}

#[test]
fn directories_pipes_and_devices_are_refused_as_what_they_are() {
    let bench = TestDeployment::with_passphrase();
    let token = bench.token("edge-1", &[]);
    assert!(Command::new("mkfifo").arg(bench.path("pipe")).status().expect("mkfifo").success());
    let refused = |args: &[&str], code, part: &str| refused_without_advice(&bench, args, code, part);
    for (given, part) in [
        ("/tmp", "/tmp is a directory, not a file"),
        ("pipe", "pipe is a named pipe, not a file"),
        ("/dev/null", "/dev/null is a device, not a file"),
        ("none.token", "there is no file none.token"),
        ("operator.pub", "operator.pub: this is the operator's public key; give a token"),
    ] {
        refused(&enrol("one", given, NOBODY), 2, part);
    }
    let with = |flag, given| [&enrol("one", &token, NOBODY)[..], &[flag, given]].concat();
    refused(&with("--key-file", "/usr"), 6, "/usr: this is a directory, not a file");
    refused(&with("--passphrase-file", "/tmp"), 6, "/tmp: this is a directory, not a file");
    refused(&with("--passphrase-file", "none"), 6, "none: there is no such file");
    refused(&with("--config", "kgc-data"), 2, "kgc-data is a directory, not a file");
    let open = bench.path("open");
    fs::create_dir(&open).expect("mkdir");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).expect("chmod");
    refused(&enrol("open", &token, NOBODY), 6, "other users may write to the directory open (mode 1777)");
    refused(&enrol(&token, &token, NOBODY), 2, "edge-1.token is a file, not a directory");
    std::os::unix::fs::symlink("loop", bench.path("loop")).expect("symlink");
    refused(&enrol("loop", &token, NOBODY), 2, "loop is a symbolic link that leads nowhere, not a directory");
    assert!(!bench.path("one/drone.state").exists(), "nothing was begun");
}

#[test]
fn variables_that_look_like_numbers_are_texts_where_texts_are_wanted() {
    let bench = TestDeployment::new();
    let token = bench.token("leader-1", &["--leads", "alpha"]);
    for group in ["42", "007", "true", "4.5"] {
        let mut command = bench.command("edge", &["run"]);
        command.env("QUIVER_EDGE_GROUP", group).env("QUIVER_EDGE_DATA_DIR", "2026");
        bench.expect_refusal("edge", command, 2, &["no deployment"]);
    }
    let mut command = bench.command("leader", &["serve"]);
    command.env("QUIVER_LEADER_VALIDITY", "600");
    bench.expect_refusal("leader", command, 2, &["QUIVER_LEADER_VALIDITY", "600s"]);
    for (variable, value, told) in [
        ("QUIVER_LEADER_STRATEGY", "1", "`1` is not one of `flat`, `tree`"),
        ("QUIVER_LEADER_MAX_MEMBERS", "1e3", "expected a whole number"),
        ("QUIVER_LEADER_MAX_MEMBERS", "many", "expected a whole number"),
        ("QUIVER_LEADER_MAX_MEMBERS", "-3", "expected a whole number"),
        ("QUIVER_LEADER_MAX_MEMBERS", "4294967296", "expected a whole number"),
    ] {
        let mut command = bench.command("leader", &["serve"]);
        command.env(variable, value);
        bench.expect_refusal("leader", command, 2, &[&format!("variable {variable}"), told]);
    }
    for (variable, told) in [
        ("QUIVER_LEADER_PEER", "`peer`: 7001: invalid multiaddr; write HOST:PORT"),
        ("QUIVER_LEADER_SYSTEM_ID", "7001: write NAME=ID"),
        ("QUIVER_LEADER_ALLOW", "`allow`: 7001 is not a serial"),
    ] {
        let mut command = bench
            .command("leader", &["serve", "--deployment", "kgc-data/deployment.toml", "--token", &token]);
        command.env(variable, "7001");
        bench.expect_refusal("leader", command, 2, &[told]);
    }
    let mut command = bench.command("edge", &["run"]);
    command.env("QUIVER_EDGE_METRICS", "9464");
    bench.expect_refusal("edge", command, 2, &["QUIVER_EDGE_METRICS"]);
}

#[test]
fn operators_keys_are_told_apart() {
    let bench = TestDeployment::new();
    let issue = ["token", "issue", "--operator", "operator.pub", "--name", "edge-1"];
    bench.refused("kgc", &issue, 2, &["the operator's public key", "give", "secret key (operator.key)"]);
    bench.refused(
        "kgc",
        &["token", "issue", "--operator", "/etc", "--name", "edge-1"],
        2,
        &["is a directory"],
    );
    let init = ["init", "-d", "other", "--deployment", "alps", "--operator", "operator.key"];
    bench.refused("kgc", &init, 2, &["the operator's secret key", "give", "public key (operator.pub)"]);
    assert!(!bench.path("edge-1.token").exists() && !bench.path("other").exists());
}

/// Runs a line of bash in which `$0` is the edge's program.
fn bash(bench: &TestDeployment, line: &str) -> Output {
    let edge = bench.command("edge", &[]);
    let mut bash = Command::new("bash");
    bash.args(["-c", line]).arg(edge.get_program()).current_dir(bench.path("")).stdin(Stdio::null());
    bash.envs(edge.get_envs().filter_map(|(name, value)| Some((name, value?))));
    bench.finish("bash", bash)
}

#[test]
fn token_may_come_out_of_a_pipe_that_the_shell_made() {
    let bench = TestDeployment::with_passphrase();
    let kgc = bench.kgc(ANY);
    bench.token("edge-1", &[]);
    let line = format!(
        "\"$0\" enrol -d one --kgc {} --deployment kgc-data/deployment.toml --token <(cat edge-1.token)",
        kgc.address()
    );
    let output = bash(&bench, &line);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(String::from_utf8_lossy(&output.stdout).contains("enrolled as edge-1"), "{complaint}");
}

#[test]
fn signal_ends_the_wait_for_a_token_that_does_not_come() {
    let bench = TestDeployment::with_passphrase();
    // The signal comes once the program handles it: number 15 of the mask.
    let line = "\"$0\" enrol -d one --deployment kgc-data/deployment.toml --token <(sleep 60 2>/dev/null) & \
                until grep -qE '^State:.*Z|^SigCgt:.*[4-7c-f][0-9a-f]{3}$' /proc/$!/status; do sleep 0.02; done; \
                kill -TERM $!; wait $!";
    let output = bash(&bench, line);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(143), "{complaint}");
    assert!(complaint.contains("edge: interrupted by SIGTERM"), "{complaint}");
}

/// The process ends with the code of this signal, and says so and what to do.
fn interrupted(process: &Process, signal: &str, part: &str) {
    process.signal(signal);
    let code = if signal == "INT" { 130 } else { 143 };
    assert_eq!(process.wait().code(), Some(code), "{}", process.story());
    let last = text(&process.err).lines().last().unwrap_or_default().to_owned();
    assert!(last.contains(&format!("interrupted by SIG{signal} before it was done; ")), "{last}");
    assert!(last.contains(part), "{last}");
}

#[test]
fn interrupted_enrolment_is_told_and_goes_on_without_the_token() {
    let bench = TestDeployment::new();
    let token = bench.token("edge-1", &[]);
    for signal in ["TERM", "INT"] {
        let edge = bench.start("edge", &enrol("one", &token, NOBODY));
        edge.logged("no connection");
        interrupted(&edge, signal, "what was begun is kept: give the same command again");
    }
    let kgc = bench.kgc(ANY);
    let said = bench.ok("edge", &["enrol", "-d", "one", "--kgc", &kgc.address()]);
    assert!(said.contains("enrolled as edge-1"), "{said}");
    assert_eq!(bench.keys_issued(), 1);
}

#[test]
fn interrupted_wait_and_fetch_are_told() {
    let bench = TestDeployment::new();
    let kgc = bench.kgc(ANY);
    let token = bench.token("edge-1", &[]);
    bench.ok("edge", &enrol("one", &token, &kgc.address()));
    interrupted_wait(&bench);
    let fetch = ["abe", "fetch", "-d", "one", "--kgc", NOBODY];
    let edge = bench.start("edge", &fetch);
    edge.logged("no connection");
    interrupted(&edge, "INT", "what was fetched is kept");
}

/// Interrupts a command that waits for a file, and logs nothing.
fn interrupted_wait(bench: &TestDeployment) {
    let issue = ["token", "issue", "-d", "later", "--operator", "operator.key", "--name", "edge-9"];
    let waiting = bench.start("kgc", &[&issue[..], &["--wait", "60s"]].concat());
    waiting.handles("INT");
    interrupted(&waiting, "INT", "give the same command again");
    assert!(!bench.path("edge-9.token").exists());
}

#[test]
fn senseless_values_and_flags_are_refused_with_the_reason() {
    let bench = TestDeployment::new();
    let refused = |program: &str, args: &[&str], part: &str| {
        let output = bench.run(program, args);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {complaint}");
        assert!(complaint.contains(part), "{args:?}: `{part}` is not in: {complaint}");
    };
    refused("edge", &["enrol", "--enrol-timeout", "-5m"], "\"-5m\" is negative; write 5m");
    refused("edge", &["enrol", "--enrol-timeout", "10"], "\"10\" has no unit; write 10s or 10m");
    refused("edge", &["run", "--answers", "-5"], "-5 is not in 1..");
    refused("leader", &["serve", "--validity", "-1s"], "\"-1s\" is negative; write 1s");
    refused("leader", &["serve", "--max-members", "-5"], "invalid value '-5' for '--max-members <N>'");
    let issue = ["token", "issue", "--operator", "operator.key", "--name", "edge-1"];
    refused("kgc", &[&issue[..], &["--expires", "-5m"]].concat(), "\"-5m\" lies in the past");
    refused("kgc", &[&issue[..], &["--not-after", "10"]].concat(), "\"10\" has no unit; write 10d or 10h");
    assert!(!bench.path("edge-1.token").exists());
    // Only services are traced.
    for (program, command) in [("edge", "status"), ("leader", "rekey"), ("kgc", "audit")] {
        refused(program, &[command, "--otlp", "http://127.0.0.1:4318"], "unexpected argument '--otlp'");
    }
}

#[test]
fn values_given_twice_are_refused_on_the_command_line_in_files_and_in_variables() {
    let bench = TestDeployment::new();
    let serial = "00".repeat(16);
    for (program, command, flag, value) in [
        ("leader", "serve", "--listen", "127.0.0.1:0"),
        ("leader", "serve", "--peer", "127.0.0.1:7"),
        ("leader", "serve", "--kgc", "127.0.0.1:7"),
        ("leader", "serve", "--allow", serial.as_str()),
        ("leader", "serve", "--mavlink", "udpin:127.0.0.1:14550"),
        ("leader", "serve", "--carrier", "udp:127.0.0.1:14800"),
        ("edge", "run", "--leader", "127.0.0.1:7"),
        ("edge", "run", "--kgc", "127.0.0.1:7"),
        ("edge", "relay", "--listen", "127.0.0.1:0"),
    ] {
        let told = format!("the value {value} is given twice for '{flag} ");
        let others =
            if command == "relay" { &["--leader", "127.0.0.1:7", "--group", "alpha"][..] } else { &[] };
        let output = bench.run(program, &[&[command, flag, value, flag, value][..], others].concat());
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{program} {flag}: {complaint}");
        assert!(complaint.contains(&told), "{program} {flag}: {complaint}");
    }
    let twice = ["serve", "--system-id", "edge-1=1", "--system-id", "edge-1=1"];
    bench.refused("leader", &twice, 2, &["key `system_id`: edge-1=1 stands there twice"]);
    for (program, command, key) in
        [("leader", "serve", "peer"), ("leader", "serve", "listen"), ("edge", "run", "leader")]
    {
        fs::write(bench.path("twice.toml"), format!("{key} = [\"127.0.0.1:7\", \"127.0.0.1:7\"]"))
            .expect("write");
        let told = format!("key `{key}`: 127.0.0.1:7 stands there twice");
        bench.refused(program, &[command, "--config", "twice.toml"], 2, &["twice.toml", &told]);
        let mut with = bench.command(program, &[command]);
        let variable = format!("QUIVER_{}_{}", program.to_uppercase(), key.to_uppercase());
        with.env(&variable, "127.0.0.1:7,127.0.0.1:7");
        bench.expect_refusal(program, with, 2, &[&variable, "127.0.0.1:7 stands there twice"]);
    }
}

#[test]
fn numbers_out_of_their_range_are_refused_with_the_range() {
    let bench = TestDeployment::new();
    for (program, command, flag, range) in [
        ("leader", "serve", "--max-members", "1..=1048576"),
        ("leader", "serve", "--baud", "1200..=4000000"),
        ("leader", "serve", "--mavlink-log-limit", "1..=1000000"),
        ("leader", "status", "--laggards", "0..=1000"),
        ("leader", "evict", "--system-id", "1..=4294967295"),
        ("leader", "evict", "--slot", "0..=4294967295"),
        ("edge", "run", "--answers", "1..=4294967295"),
        ("edge", "relay", "--max-drones", "1..=16384"),
    ] {
        for value in ["-1", "1e9", "99999999999999999999", "9999999999", "", "x"] {
            let output = bench.run(program, &[command, &format!("{flag}={value}")]);
            let complaint = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{program} {flag} {value}: {complaint}");
            assert!(complaint.contains(range), "{program} {flag} {value}: {complaint}");
        }
    }
    for (program, command, key, range) in [
        ("leader", "status", "MAX_MEMBERS", "from 1 to 1048576"),
        ("leader", "status", "BAUD", "from 1200 to 4000000"),
        ("leader", "status", "MAVLINK_LOG_LIMIT", "from 1 to 1000000"),
        ("edge", "status", "ANSWERS", "from 1 to 4294967295"),
        ("edge", "status", "MAVLINK_LOG_LIMIT", "from 1 to 1000000"),
    ] {
        for value in ["0", "-1", "1e9", "99999999999999999999", "9999999999", "", "x"] {
            let mut with = bench.command(program, &[command]);
            let variable = format!("QUIVER_{}_{key}", program.to_uppercase());
            with.env(&variable, value);
            bench.expect_refusal(program, with, 2, &[&variable, &format!("expected a whole number {range}")]);
        }
    }
}

#[test]
fn help_that_cannot_be_printed_is_a_failure_and_a_reader_that_went_away_is_none() {
    let bench = TestDeployment::new();
    for program in ["kgc", "leader", "edge"] {
        for words in [&["--help"][..], &["-h"], &["help"], &["health", "--help"], &["--version"]] {
            let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("open");
            let output = bench.command(program, words).stdout(full).output().expect("run");
            let complaint = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{program} {words:?}: {complaint}");
            let told = format!("{program}: cannot print the result: No space left");
            assert!(complaint.starts_with(&told), "{program} {words:?}: {complaint}");
            let (reader, writer) = std::io::pipe().expect("pipe");
            drop(reader);
            let output = bench.command(program, words).stdout(writer).output().expect("run");
            assert_eq!(output.status.code(), Some(0), "{program} {words:?}");
        }
    }
}

#[test]
fn what_can_never_work_is_refused_before_a_token_is_used() {
    let bench = TestDeployment::new();
    let (token, lead) =
        (bench.token("edge-1", &["--group", "alpha"]), bench.token("leader-1", &["--leads", "alpha"]));
    let deployment = ["--deployment", "kgc-data/deployment.toml", "--kgc", NOBODY];
    let serve = [&["serve", "-d", "l", "--token", &lead][..], &deployment].concat();
    let leader =
        |args: &[&str], told: &[&str]| bench.refused("leader", &[&serve[..], args].concat(), 2, told);
    for (listen, why) in [
        ("localhost:7001", "an address of its machine"),
        ("224.0.0.1:7001", "no address of one machine"),
        ("255.255.255.255:7001", "no address of one machine"),
        ("/ip4/127.0.0.1/tcp/7001/ws", "not supported"),
        ("/ip4/127.0.0.1", "neither TCP nor QUIC"),
    ] {
        leader(&["--listen", listen], &["`listen`", listen, why, "write HOST:PORT"]);
        let relay = ["relay", "-d", "r", "--group", "alpha", "--leader", NOBODY, "--listen", listen];
        bench.refused("edge", &relay, 2, &[listen, why]);
    }
    leader(&["--serial", "/tmp"], &["/tmp is a directory, and no serial line"]);
    leader(&["--serial", "/dev/none:115200"], &["write /dev/none, and the rate as --baud 115200"]);
    leader(&["--relay", "relay-1.seed"], &["relay-1.seed is no relay's identity", "edge relay-keys"]);
    leader(&["--serial", "/dev/null"], &["/dev/null is a device of the kernel"]);
    leader(&["--serial", "tcp:0.0.0.0:5555"], &["tcp:0.0.0.0:5555", "no address of one machine"]);
    leader(&["--otlp", "http://127.0.0.1:0"], &["write http://HOST:PORT"]);
    leader(&["--otlp", "http://0.0.0.0:4318"], &["no collector can be reached there"]);
    let run = ["run", "-d", "one", "--leader", NOBODY, "--token", &token];
    let run = [&run[..], &deployment].concat();
    let edge = |args: &[&str], told: &[&str]| bench.refused("edge", &[&run[..], args].concat(), 2, told);
    for address in
        ["0.1.2.3:7001", "[::ffff:0.0.0.0]:7001", "[fe80::1]:7001", "/dns4//tcp/7001", "/dns/a..b/tcp/1"]
    {
        edge(&["--leader", address], &["`leader`", "nothing can be reached there"]);
    }
    edge(&["--otlp", "http://user:hush-hush@127.0.0.1:4318"], &["leave out what stands before the @"]);
    let star = ["--carrier", "star:127.0.0.1:14800"];
    edge(
        &[&star[..], &["--mavlink", "udpout:0.0.0.0:14550"]].concat(),
        &["`udpout:0.0.0.0:14550` is not an endpoint", "this machine is 127.0.0.1"],
    );
    edge(
        &["--mavlink", "udpin:127.0.0.1:14550", "--carrier", "star:127.0.0.1:14550"],
        &["`star:127.0.0.1:14550` sends to `udpin:127.0.0.1:14550` of this process"],
    );
    edge(
        &[&star[..], &["--mavlink", "serial:/etc/passwd"]].concat(),
        &["/etc/passwd is a file, and no serial line"],
    );
    edge(&[&star[..], &["--mavlink", "tcp:224.0.0.1:5760"]].concat(), &["no address of one machine"]);
    edge(
        &["--mavlink", "udpin:127.0.0.1:14550", "--carrier", "star:0.0.0.0:14800"],
        &["this machine is 127.0.0.1"],
    );
    edge(
        &[&star[..], &["--mavlink", "udpin:127.0.0.1:14550", "--mavlink-log", &token]].concat(),
        &["is a file, not a directory"],
    );
    let into_kgc = ["run", "-d", "kgc-data", "--leader", NOBODY, "--token", &token];
    bench.refused("edge", &into_kgc, 2, &["kgc-data is the data directory of a KGC"]);
    let output = bench.run("edge", &[&run[..], &["--otlp", "http://user:hush-hush@127.0.0.1:4318"]].concat());
    assert!(!String::from_utf8_lossy(&output.stderr).contains("hush-hush"), "no password is repeated");
    for (metrics, why) in
        [("localhost:9464", "write the IP address"), ("224.0.0.1:9464", "no service can listen there")]
    {
        let output = bench.run("edge", &[&run[..], &["--metrics", metrics]].concat());
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && complaint.contains(why), "{metrics}: {complaint}");
    }
    // Neither token was used.
    let kgc = bench.kgc(ANY);
    assert!(bench.ok("edge", &enrol("one", &token, &kgc.address())).contains("enrolled as edge-1"));
    assert_eq!(bench.keys_issued(), 1);
    bench.refused("kgc", &["serve", "-d", "one"], 2, &["one is the data directory of a drone"]);
}

#[test]
fn what_is_asked_for_wrongly_is_told_by_the_codes_of_the_table() {
    let bench = TestDeployment::new();
    let long = "x".repeat(65_537);
    for program in ["edge", "leader"] {
        bench.refused(program, &["send", &long], 2, &["65537 bytes; the longest has 65536"]);
    }
    for (input, part) in [("none.env", "there is no file"), ("kgc-data", "is a directory, not a file")] {
        let mut open = bench.command("edge", &["envelope", "open", input, "--out", "none.txt"]);
        open.env("QUIVER_EDGE_DEPLOYMENT", "kgc-data/deployment.toml");
        bench.expect_refusal("edge", open, 2, &[input, part]);
    }
    for unknown in [&["drone", "revoke", "edge-9"][..], &["token", "revoke", "edge-9"]] {
        bench.refused("kgc", unknown, 3, &["edge-9"]);
    }
}

#[test]
fn kgc_out_of_reach_is_one_code_with_and_without_a_running_edge() {
    let bench = TestDeployment::new();
    let kgc = bench.kgc(ANY);
    let at = kgc.address();
    let token = bench.token("edge-1", &["--group", "alpha"]);
    bench.ok("edge", &enrol("one", &token, &at));
    kgc.kill();
    let run = bench.start("edge", &["run", "-d", "one", "--kgc", &at, "--leader", NOBODY]);
    run.logged("no connection");
    let fetch = ["abke", "fetch", "-d", "one"];
    eventually("the running edge is asked", || {
        bench.run("edge", &["status", "-d", "one"]).status.success().then_some(())
    });
    bench.refused("edge", &fetch, 8, &["is the KGC running and reachable?"]);
    assert_eq!(run.terminate().code(), Some(0));
    let mut alone = bench.command("edge", &[&fetch[..], &["--kgc", &at]].concat());
    alone.env("QUIVER_EDGE_ENROL_TIMEOUT", "1s");
    bench.expect_refusal("edge", alone, 8, &["is the KGC running and reachable?"]);
}

#[test]
fn health_needs_no_address_where_the_service_runs() {
    let bench = TestDeployment::new();
    bench.refused("kgc", &["health"], 4, &["no kgc is running", "kgc serve"]);
    let kgc = bench.kgc(ANY);
    let ready = || bench.run("kgc", &["health"]).status.success().then_some(());
    eventually("the KGC is ready", ready);
    let token = bench.token("leader-1", &["--leads", "alpha"]);
    let leader = bench.leader(&kgc.address(), ANY, Some(&token), &[]);
    leader.line("listening on");
    eventually("the leader is ready", || bench.run("leader", &["health"]).status.success().then_some(()));
    assert!(bench.ok("leader", &["health", "--live"]).contains("alive"));
    leader.kill();
    bench.refused("leader", &["health"], 4, &["no leader is running"]);
}

#[test]
fn service_that_listens_on_loopback_alone_says_so_first() {
    let bench = TestDeployment::new();
    let kgc = bench.kgc(ANY);
    kgc.line("listening on");
    let first = text(&kgc.out).lines().next().unwrap_or_default().to_owned();
    assert!(first.starts_with("only this machine can reach this service"), "{first}");
    assert!(first.ends_with("--listen /ip4/0.0.0.0/tcp/0"), "{first}");
}

#[test]
fn log_lines_are_short_and_their_times_are_in_seconds() {
    let bench = TestDeployment::new().logging("info");
    let kgc = bench.kgc(ANY);
    let token = bench.token("edge-1", &[]);
    bench.ok("edge", &enrol("one", &token, &kgc.address()));
    let line = kgc.logged("key issued");
    let (time, rest) = line.split_once(' ').expect("a time");
    assert_eq!(time.len(), "2026-01-31T12:00:00Z".len(), "{line}");
    assert!(rest.starts_with("INFO  key issued name=edge-1 serial="), "{line}");
}
