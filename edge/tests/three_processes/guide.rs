//! The commands of README.md, docs/guide.md and docs/recovery.md, run in order as a reader would run them: no document
//! promises what does not happen.
//!
//! A fence of shell says how its commands are run:
//!
//! | fence | its commands |
//! |---|---|
//! | `sh run` | each is run to its end |
//! | `sh terminal=NAME` | the same in the terminal of this name, where the last one stays; what stayed there gets Ctrl-C |
//! | `sh terminal=NAME ends=SIGNAL` | has none: what stays in this terminal gets INT (Ctrl-C), or is lost (KILL) |
//! | `sh not-run: REASON` | are not run |
//!
//! A comment behind a command says what it does; a command without succeeds:
//!
//! | comment | the command |
//! |---|---|
//! | `# prints: TEXT` | prints a line with this text, and succeeds; `…` stands for any text |
//! | `# soon prints: TEXT` | the same, if it is repeated for a while |
//! | `# NAME prints: TEXT` | succeeds, and what stays in the terminal of this name prints it |
//! | `# fails: TEXT`, `# fails, REASON` | prints it, and fails |
//! | `# soon fails: TEXT` | the same, if it is repeated for a while |
//!
//! Other words in a comment are for readers. Ports are mapped to free ones, so that the test runs beside a deployment.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread::sleep;
use std::time::Duration;

use quiver_service_testing::build::{program, root};
use quiver_service_testing::timeout::Deadline;
use quiver_service_testing::{Process, text};
use tempfile::TempDir;

/// The documents of a first reading, in their order.
const DOCUMENTS: [&str; 2] = ["README.md", "docs/guide.md"];
/// The document of recoveries.
const RECOVERY: &str = "docs/recovery.md";
/// Blocks that cannot be run here, with a reason in their fence.
const MOST_NOT_RUN: usize = 7;
/// Time for what comes soon. An alarm of a copy takes up to 65 s, and to end another 35.
const SOON: Duration = Duration::from_secs(120);

/// Way in which the commands of a block are run.
#[derive(Debug, PartialEq, Eq)]
enum How {
    Run,
    Terminal(String),
    Ends(String, Ending),
    NotRun(String),
}

/// The end of what stays in a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Interrupted,
    Lost,
}

/// Commands under one fence.
#[derive(Debug)]
struct Block {
    how: How,
    commands: Vec<Step>,
}

/// A command, and what its comment says of it.
#[derive(Debug)]
struct Step {
    /// Document and line.
    place: String,
    command: String,
    promise: Promise,
}

#[derive(Debug, PartialEq, Eq)]
enum Promise {
    Succeeds,
    Prints(String),
    SoonPrints(String),
    TerminalPrints { name: String, text: String },
    Fails(String),
    SoonFails(String),
}

impl Promise {
    fn parse(comment: &str) -> Self {
        let (verb, rest) = comment.split_at(comment.find([':', ',']).unwrap_or(comment.len()));
        let text = rest.strip_prefix(':').map_or("", str::trim).to_owned();
        match (verb, verb.strip_suffix("prints").map(str::trim)) {
            ("fails", _) => Self::Fails(text),
            ("soon fails", _) => Self::SoonFails(text),
            (_, Some("")) => Self::Prints(text),
            (_, Some("soon")) => Self::SoonPrints(text),
            (_, Some(name)) => Self::TerminalPrints { name: name.trim_start_matches("the ").into(), text },
            (_, None) => Self::Succeeds,
        }
    }
}

/// The blocks of a document, or the place of one that does not say how it is run.
fn blocks(document: &str, text: &str) -> Result<Vec<Block>, String> {
    let mut blocks = Vec::new();
    let mut lines =
        text.lines().enumerate().map(|(number, line)| (format!("{document}:{}", number + 1), line));
    while let Some((place, line)) = lines.next() {
        let refuse = |why: &str| Err(format!("{place}: {why}"));
        if line.starts_with("    ") {
            return refuse("commands are in fences: ```sh run");
        }
        let Some(fence) = line.strip_prefix("```") else { continue };
        let body: Vec<(String, &str)> = lines.by_ref().take_while(|(_, line)| *line != "```").collect();
        let how = match fence.split_once(' ') {
            Some(("sh", "run")) => How::Run,
            Some(("sh", how)) => match (how.strip_prefix("terminal="), how.strip_prefix("not-run: ")) {
                (Some(name), _) => match name.split_once(" ends=") {
                    Some((name, "INT")) => How::Ends(name.into(), Ending::Interrupted),
                    Some((name, "KILL")) => How::Ends(name.into(), Ending::Lost),
                    Some(_) => return refuse("what stays in a terminal ends by INT or KILL"),
                    None => How::Terminal(name.into()),
                },
                (_, Some(reason)) => How::NotRun(reason.into()),
                _ => return refuse("say how it is run: sh run, sh terminal=NAME or sh not-run: REASON"),
            },
            None if ["rust", "text", "toml"].contains(&fence) => continue,
            _ => return refuse("say what it is: sh run, text, rust or toml"),
        };
        let commands = commands(body);
        if matches!(how, How::Ends(..)) && !commands.is_empty() {
            return refuse("what ends a terminal has no commands");
        }
        let unclear = |step: &&Step| step.promise == Promise::Succeeds && step.command.contains(" prints:");
        if let Some(step) = commands.iter().find(unclear) {
            return Err(format!("{}: `# NAME prints: TEXT` is the whole comment", step.place));
        }
        blocks.push(Block { how, commands });
    }
    Ok(blocks)
}

/// Commands of one or several lines; lines of nothing but a comment are left out.
fn commands(lines: Vec<(String, &str)>) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut goes_on = false;
    for (place, line) in lines {
        match steps.last_mut().filter(|_| goes_on) {
            Some(step) => step.command += &format!("\n{line}"),
            None if line.trim().is_empty() || line.starts_with('#') => continue,
            None => steps.push(Step { place, command: line.into(), promise: Promise::Succeeds }),
        }
        let Some(step) = steps.last_mut() else { continue };
        let here = step.command.contains("<<'EOF'");
        goes_on = line.ends_with('\\') || (here && line != "EOF");
        let mut ends = step.command.lines();
        let end = if here { ends.next() } else { ends.next_back() };
        let comment = end.and_then(|line| line.split_once(" # "));
        step.promise = comment.map_or(Promise::Succeeds, |(_, comment)| Promise::parse(comment.trim()));
    }
    steps
}

/// Returns true if one of the lines contains the text, whatever stands for `…` and however wide the gaps are.
fn shows(output: &str, text: &str) -> bool {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    output.lines().map(words).any(|line| {
        let parts = words(text);
        let mut rest = line.as_str();
        parts.split('…').all(|part| match rest.split_once(part.trim()) {
            Some((_, behind)) => {
                rest = behind;
                true
            }
            None => false,
        })
    })
}

/// Ctrl-C, upon which a program ends well.
fn interrupt(process: &Process) -> Result<(), String> {
    process.signal("INT");
    let deadline = Deadline::after(SOON);
    while process.is_running() {
        if deadline.left().is_zero() {
            return Err(format!("it goes on in spite of Ctrl-C: {}", process.story()));
        }
        sleep(Duration::from_millis(20));
    }
    if process.wait().success() { Ok(()) } else { Err(format!("Ctrl-C ended it: {}", process.story())) }
}

/// Readers of this process so far, whose ports differ.
static READERS: AtomicU16 = AtomicU16::new(0);

/// Reader of a document: a directory, an environment, and what stays in terminals.
struct Reader {
    home: TempDir,
    /// Processes, and as how many they were begun.
    terminals: BTreeMap<String, Process>,
    begun: usize,
    /// First port to look for free ones at: below those that the system gives to whoever asks for any.
    first_port: u16,
    ports: BTreeMap<u16, u16>,
}

impl Reader {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("tempdir");
        let number = READERS.fetch_add(1, Ordering::Relaxed) % 50;
        let first_port =
            10_000 + u16::try_from(std::process::id() % 20).unwrap_or_default() * 1_000 + number * 20;
        Self { home, terminals: BTreeMap::new(), begun: 0, first_port, ports: BTreeMap::new() }
    }

    fn read(&mut self, block: &Block) -> Result<(), String> {
        if let How::Ends(name, ending) = &block.how {
            let process =
                self.terminals.remove(name).ok_or(format!("nothing stays in the terminal {name}"))?;
            return match ending {
                Ending::Interrupted => interrupt(&process),
                Ending::Lost => {
                    process.kill();
                    Ok(())
                }
            };
        }
        let (last, others) = match (&block.how, block.commands.split_last()) {
            (How::NotRun(_) | How::Ends(..), _) | (_, None) => return Ok(()),
            (How::Run, _) => (None, &block.commands[..]),
            (How::Terminal(name), Some((last, others))) => (Some((name, last)), others),
        };
        if let Some(process) = last.and_then(|(name, _)| self.terminals.remove(name)) {
            interrupt(&process)?;
        }
        for step in others {
            self.execute(step).map_err(|error| format!("{}: `{}`\n{error}", step.place, step.command))?;
        }
        if let Some((name, step)) = last {
            self.stay(name, step).map_err(|error| format!("{}: `{}`\n{error}", step.place, step.command))?;
        }
        Ok(())
    }

    fn execute(&mut self, step: &Step) -> Result<(), String> {
        let heard = match &step.promise {
            Promise::TerminalPrints { name, .. } => self.output_of(name)?.map(|output| output.len()),
            _ => [0, 0],
        };
        let deadline = Deadline::after(SOON);
        loop {
            let output = self.shell(&step.command, false).output().expect("bash");
            let printed = [output.stdout, output.stderr].concat();
            let printed = String::from_utf8_lossy(&printed);
            let (well, kept) = match &step.promise {
                Promise::Succeeds | Promise::TerminalPrints { .. } => (true, true),
                Promise::Prints(text) | Promise::SoonPrints(text) => (true, shows(&printed, text)),
                Promise::Fails(text) | Promise::SoonFails(text) => {
                    (false, shows(&printed, text) || text.is_empty())
                }
            };
            if output.status.success() == well && kept {
                break;
            }
            if !matches!(step.promise, Promise::SoonPrints(_) | Promise::SoonFails(_))
                || deadline.left().is_zero()
            {
                return Err(format!("{}, and printed:\n{printed}", output.status));
            }
            sleep(Duration::from_millis(200));
        }
        match &step.promise {
            Promise::TerminalPrints { name, text } => self.wait_for(name, heard, text),
            _ => Ok(()),
        }
    }

    /// Begins what stays, and waits until it has printed what it promises.
    fn stay(&mut self, name: &str, step: &Step) -> Result<(), String> {
        self.begun += 1;
        let log = self.home.path().join(format!("terminal-{}-{name}", self.begun));
        let process = Process::start(self.shell(&step.command, true), &log);
        self.terminals.insert(name.into(), process);
        match &step.promise {
            Promise::Prints(text) => self.wait_for(name, [0, 0], text),
            other => Err(format!("what stays says what it prints, and not {other:?}")),
        }
    }

    /// Log and output of what stays in a terminal.
    fn output_of(&self, name: &str) -> Result<[String; 2], String> {
        let process = self.terminals.get(name).ok_or(format!("nothing stays in the terminal {name}"))?;
        if !process.is_running() {
            return Err(format!("{name} has ended: {}", process.story()));
        }
        Ok([text(&process.err), text(&process.out)])
    }

    /// Waits until what stays in a terminal has printed a text, behind what it had printed before.
    fn wait_for(&self, name: &str, before: [usize; 2], text: &str) -> Result<(), String> {
        let deadline = Deadline::after(SOON);
        loop {
            let outputs = self.output_of(name)?;
            let new = outputs.iter().zip(before).filter_map(|(output, before)| output.get(before..));
            if new.into_iter().any(|output| shows(output, text)) {
                return Ok(());
            }
            if deadline.left().is_zero() {
                return Err(format!("{name} does not print `{text}` but:\n{}", outputs.join("\n")));
            }
            sleep(Duration::from_millis(20));
        }
    }

    /// A shell that goes on in the directory and with the variables of the one before.
    fn shell(&mut self, command: &str, stays: bool) -> Command {
        const SCRIPT: &str = r#"
            [ ! -e "$STATE" ] || . "$STATE"
            [ "$2" != stays ] || eval "exec $1"
            eval "$1"; code=$?
            { export -p; printf 'cd %q\n' "$PWD"; } > "$STATE"
            exit $code"#;
        let (home, programs) = (self.home.path().to_owned(), program("kgc"));
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", programs.parent().unwrap_or(Path::new(".")).display());
        let command = self.with_free_ports(command);
        let mut shell = Command::new(if stays { "bash" } else { "timeout" });
        if !stays {
            shell.args([&SOON.as_secs().to_string(), "bash"]);
        }
        shell.args(["-c", SCRIPT, "bash", &command, if stays { "stays" } else { "ends" }]);
        shell.current_dir(&home).env_clear().env("HOME", &home).env("PATH", path);
        shell.env("STATE", home.join(".state"));
        for (service, port) in [("KGC", 7000), ("LEADER", 7001)] {
            let address = self.with_free_ports(&format!("/ip4/127.0.0.1/tcp/{port}"));
            shell.env(format!("QUIVER_{service}_LISTEN"), address);
        }
        // Everything is local: retry soon.
        shell.env("QUIVER_EDGE_RETRY", "300ms").env("QUIVER_EDGE_RETRY_MAX", "1s");
        shell.env("QUIVER_LEADER_BATCHING", "50ms").env("QUIVER_KGC_POLL", "100ms");
        shell
    }

    /// The command with free ports in place of those of multiaddresses and of `127.0.0.1:PORT`.
    fn with_free_ports(&mut self, command: &str) -> String {
        const BEFORE: [&str; 2] = ["/tcp/", "127.0.0.1:"];
        let (mut mapped, mut rest) = (String::new(), command);
        while let Some(end) = BEFORE.iter().filter_map(|before| Some(rest.find(before)? + before.len())).min()
        {
            let (before, behind) = rest.split_at(end);
            let digits = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
            let port =
                behind[..digits].parse().map_or_else(|_| behind[..digits].into(), |port| self.port(port));
            mapped += &format!("{before}{port}");
            rest = &behind[digits..];
        }
        mapped + rest
    }

    /// The free port in place of this one.
    fn port(&mut self, port: u16) -> String {
        let taken: Vec<u16> = self.ports.values().copied().collect();
        let free =
            |port: &u16| !taken.contains(port) && TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
        let begin = self.first_port;
        let mapped = self.ports.entry(port).or_insert_with(|| (begin..).find(free).expect("a free port"));
        mapped.to_string()
    }
}

#[test]
fn readme_and_guide_do_in_order_what_they_say() {
    let mut reader = Reader::new();
    let mut not_run = Vec::new();
    for document in DOCUMENTS {
        let text = fs::read_to_string(root().join(document)).expect("read");
        for block in blocks(document, &text).unwrap_or_else(|error| panic!("{error}")) {
            if let How::NotRun(reason) = &block.how {
                not_run.push(reason.clone());
            }
            reader.read(&block).unwrap_or_else(|error| panic!("{error}"));
        }
    }
    for name in reader.terminals.keys() {
        reader.output_of(name).unwrap_or_else(|error| panic!("{error}"));
    }
    assert!(reader.begun >= 5, "services were started");
    assert!(not_run.len() <= MOST_NOT_RUN, "more than {MOST_NOT_RUN} blocks are not run: {not_run:#?}");
}

#[test]
#[ignore = "once more the beginning of the test above; `.ci/without` runs it with programs that lack features"]
fn three_terminals_of_the_readme_need_no_feature() {
    let mut reader = Reader::new();
    let text = fs::read_to_string(root().join("README.md")).expect("read");
    for block in blocks("README.md", &text).unwrap_or_else(|error| panic!("{error}")) {
        reader.read(&block).unwrap_or_else(|error| panic!("{error}"));
    }
    for name in reader.terminals.keys() {
        reader.output_of(name).unwrap_or_else(|error| panic!("{error}"));
    }
    assert_eq!(reader.begun, 3, "KGC, leader and edge were started");
}

#[test]
fn recoveries_do_in_order_what_they_say() {
    let mut reader = Reader::new();
    let text = fs::read_to_string(root().join(RECOVERY)).expect("read");
    for block in blocks(RECOVERY, &text).unwrap_or_else(|error| panic!("{error}")) {
        assert!(!matches!(block.how, How::NotRun(_)), "every recovery is run: {block:?}");
        reader.read(&block).unwrap_or_else(|error| panic!("{error}"));
    }
    for name in reader.terminals.keys() {
        reader.output_of(name).unwrap_or_else(|error| panic!("{error}"));
    }
    assert!(reader.begun >= 20, "services were started, lost and restored");
}

/// Carries out a document of these lines.
fn comes_of(lines: &[&str]) -> Result<(), String> {
    let mut reader = Reader::new();
    blocks("x.md", &lines.join("\n"))?.iter().try_for_each(|block| reader.read(block))
}

#[test]
fn promise_that_is_not_kept_is_an_error_with_its_line() {
    for (line, complaint) in [
        ("false", "exit status: 1"),
        ("echo one  # prints: two", "printed:\none"),
        ("true      # fails: one", "exit status: 0"),
        ("true      # fails, as nobody thought", "exit status: 0"),
        ("echo one >&2; false # fails: two", "printed:\none"),
        ("true      # kgc prints: one", "nothing stays in the terminal kgc"),
    ] {
        let error = comes_of(&["Text.", "```sh run", "true", line, "```"]).expect_err(line);
        assert!(error.starts_with("x.md:4: ") && error.contains(complaint), "{line}: {error}");
    }
    let error = comes_of(&["```sh terminal=a ends=INT", "```"]).expect_err("nothing stays there");
    assert!(error.contains("nothing stays in the terminal a"), "{error}");
    let error = comes_of(&["```sh terminal=a", "sleep 60", "```"]).expect_err("says nothing");
    assert!(error.contains("says what it prints"), "{error}");
}

#[test]
fn promises_that_are_kept_pass_and_the_shell_goes_on_where_it_was() {
    let terminal = r#"trap 'exit 0' INT; echo began; for i in {1..100}; do [ ! -e heard ] || { echo "[a] heard: it"; rm heard; }; sleep 0.1 & wait $!; done"#;
    let script =
        format!("printf '%s\\n' '#!/bin/bash' '{}' > stays; chmod +x stays", terminal.replace('\'', r"'\''"));
    comes_of(&[
        "```sh run",
        "export A=1 B='two words'; mkdir -p folder; cd folder",
        "echo \"$A $B\" $(basename \"$PWD\")   # prints: 1 two … folder",
        "echo one; false                     # fails: one",
        "cat > file <<'EOF'",
        "a  b # no comment",
        "EOF",
        "cat file   # prints: a b",
        "if [ -e again ]; then echo twice; else touch again; false; fi   # soon prints: twice",
        &script,
        "```",
        "```sh terminal=one",
        "./stays  # prints: began",
        "```",
        "```sh run",
        "touch heard  # the one prints: [a] … it",
        "```",
        "```sh terminal=one",
        "./stays  # prints: began",
        "```",
        "```sh terminal=one ends=INT",
        "```",
        "```sh terminal=one",
        "./stays  # prints: began",
        "```",
        "```sh terminal=one ends=KILL",
        "```",
        "```sh run",
        "touch soon; if [ -e later ]; then echo late; false; else touch later; fi   # soon fails: late",
        "```",
        "```sh not-run: it fails",
        "false",
        "```",
    ])
    .expect("all promises are kept");
}

#[test]
fn block_that_does_not_say_how_it_is_run_is_refused() {
    for line in ["```", "```sh", "```bash", "```sh maybe", "```sh terminal=a ends=soon", "    kgc serve"] {
        let error = comes_of(&["Text.", "", line, "true", "```"]).expect_err(line);
        assert!(error.starts_with("x.md:3: "), "{line}: {error}");
    }
}
