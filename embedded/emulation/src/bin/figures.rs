//! Measures the firmware: instructions, stack and heap of every operation, counted in QEMU; flash and RAM of
//! the images.
//!
//! ```text
//! cargo run --manifest-path embedded/Cargo.toml -p quiver-emulation --bin figures -- check
//! ```
//!
//! compares them with `embedded/figures.csv` and fails if any is more than 3 % above what is recorded there
//! or above its budget; `record` in place of `check` writes them there, beside what else is recorded. `show
//! 'bench sha 3 256'` measures single lines.
#![forbid(unsafe_code)]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use quiver_bench::estimate::Mix;
use quiver_bench::figures::{self, Figures, LINES, Quantity, Subject};
use quiver_bench::transcript;
use quiver_emulation::board::{EmulatedBoard, Time, qemu};
use quiver_emulation::build::image;
use quiver_emulation::size::ImageSize;
use quiver_service_testing::build::root;

/// An image whose flash and RAM are recorded.
struct Recorded {
    /// Name in the record.
    name: &'static str,
    package: &'static str,
    binary: &'static str,
    features: &'static str,
}

/// Bytes of flash that an image may take: as much as the bootloaders of the supported boards leave it, between
/// the SoftDevice and the state (docs/firmware.md).
const FLASH: u64 = 0xE_A000 - 0x2_6000;
/// Bytes of RAM that variables, buffers and tasks of an image may take.
const STATIC_RAM: u64 = 64 * 1024;

const IMAGES: [Recorded; 5] = [
    Recorded { name: "mps2-edge", package: "quiver-mps2", binary: "mps2-edge", features: "edge" },
    Recorded {
        name: "mps2-envelopes",
        package: "quiver-mps2",
        binary: "mps2-envelopes",
        features: "edge,envelopes",
    },
    Recorded { name: "nrf52840-edge", package: "quiver-nrf52840", binary: "edge", features: "" },
    Recorded {
        name: "nrf52840-datagrams",
        package: "quiver-nrf52840",
        binary: "edge",
        features: "broadcasts,datagrams",
    },
    Recorded {
        name: "nrf52840-envelopes",
        package: "quiver-nrf52840",
        binary: "edge",
        features: "envelopes",
    },
];

/// Limit of an operation.
#[derive(Clone, Copy)]
enum Goal {
    Instructions(u64),
    /// Microseconds at 64 MHz, as the shell estimates them at most.
    Microseconds(u64),
}

/// Limits by benchmark and parameters as recorded. A third of 4.82 s, which is published for YCT14 on an
/// nRF52840, are 1.606.
const GOALS: [(&str, &str, Goal); 11] = [
    ("ainq first-key-flat", "group of 100", Goal::Instructions(3_500_000)),
    ("ainq first-key-tree", "group of 100", Goal::Instructions(3_500_000)),
    ("ainq rekey-flat-unsigned", "group of 100", Goal::Instructions(200_000)),
    ("ainq rekey-tree-unsigned", "group of 100", Goal::Instructions(200_000)),
    ("ainq evict-flat-unsigned", "group of 100", Goal::Instructions(200_000)),
    ("ainq evict-tree-unsigned", "group of 100", Goal::Instructions(200_000)),
    ("ainq secret", "QUIVER-AINQ-RISTRETTO255-SHA512-v1", Goal::Instructions(750_000)),
    // 10 ms from one caller to the other, on two boards.
    ("datagram seal", "AES-128-CCM, 40 bytes", Goal::Microseconds(5_000)),
    ("datagram open", "AES-128-CCM, 40 bytes", Goal::Microseconds(5_000)),
    ("abe yct14 encrypt", "30 attributes, conjunction", Goal::Microseconds(1_606_000)),
    ("pairing", "BLS12-381, 1 pairs", Goal::Microseconds(950_000)),
];

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["record"] => record(),
        ["check"] => check(),
        ["show", ref lines @ ..] if !lines.is_empty() => {
            say(&run(lines));
            ExitCode::SUCCESS
        }
        _ => {
            complain("usage: figures record | check | show LINE...");
            ExitCode::from(2)
        }
    }
}

#[expect(clippy::print_stdout, reason = "a program's output")]
fn say(text: &str) {
    println!("{text}");
}

#[expect(clippy::print_stderr, reason = "a program's complaints")]
fn complain(text: &str) {
    eprintln!("{text}");
}

fn recorded_at() -> PathBuf {
    root().join("embedded/figures.csv")
}

fn recorded() -> Figures {
    let text = fs::read_to_string(recorded_at()).expect("embedded/figures.csv can be read");
    figures::read(&text).unwrap_or_else(|error| panic!("embedded/figures.csv: {error}"))
}

fn record() -> ExitCode {
    let mut all = recorded();
    let (measured, over) = measure();
    let count = measured.len();
    all.extend(measured);
    fs::write(recorded_at(), figures::write(&all)).expect("embedded/figures.csv can be written");
    say(&format!("{count} figures recorded"));
    over.iter().for_each(|text| complain(text));
    if over.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn check() -> ExitCode {
    let recorded = recorded();
    let (measured, over) = measure();
    let differences = figures::compare(&recorded, &measured);
    for difference in &differences {
        if difference.fails() { complain(&difference.to_string()) } else { say(&difference.to_string()) }
    }
    over.iter().for_each(|text| complain(text));
    let bad = differences.iter().any(figures::FigureChange::fails) || !over.is_empty();
    if bad {
        complain("if this is meant: `figures record`, and say why in the commit");
        return ExitCode::FAILURE;
    }
    say(&format!("{} figures are as recorded, within {} %", measured.len(), figures::TOLERANCE));
    ExitCode::SUCCESS
}

/// All figures, and which budgets are no longer kept.
fn measure() -> (Figures, Vec<String>) {
    let output = run(&LINES);
    let outcomes = transcript::parse(&output).unwrap_or_else(|error| panic!("{error}\n{output}"));
    let mut measured = figures::of("mps2-an386", &outcomes);
    let mut over = missed(&measured);
    for recorded in &IMAGES {
        let size = ImageSize::of(&image(recorded.package, recorded.binary, recorded.features));
        let quantities =
            [(Quantity::Flash, size.flash, FLASH), (Quantity::StaticRam, size.static_ram, STATIC_RAM)];
        for (quantity, bytes, limit) in quantities {
            let (image, none) = (recorded.name.to_string(), String::new());
            let subject = Subject { image, benchmark: none.clone(), parameters: none, quantity };
            let text = format!("{subject}: {bytes}, above the budget of {limit}");
            if bytes > limit {
                over.push(text);
            }
            measured.insert(subject, bytes);
        }
    }
    (measured, over)
}

/// Operations that exceed their limits.
fn missed(measured: &Figures) -> Vec<String> {
    let mut missed = Vec::new();
    for (benchmark, parameters, goal) in GOALS {
        let (image, quantity) = ("mps2-an386".to_string(), Quantity::Instructions);
        let subject = Subject { image, benchmark: benchmark.into(), parameters: parameters.into(), quantity };
        let text = match (measured.get(&subject), goal) {
            (None, _) => format!("{subject}: not measured, although there is a goal"),
            (Some(&count), Goal::Instructions(most)) if count > most => {
                format!("{subject}: {count}, above the goal of {most}")
            }
            (Some(&count), Goal::Microseconds(most)) => {
                let high = Mix::of(benchmark).estimate(count).high;
                if high <= most {
                    continue;
                }
                format!("{subject}: {count}, estimated {high} us at most, above the goal of {most}")
            }
            _ => continue,
        };
        missed.push(text);
    }
    missed
}

/// The bench shell's output for these lines, in one run.
fn run(lines: &[&str]) -> String {
    let image = image("quiver-mps2", "mps2-bench", "bench");
    let directory = tempfile::tempdir().expect("tempdir");
    let log: &Path = &directory.path().join("bench");
    let mut board = EmulatedBoard::start(log, |ports| qemu(&image, Time::Instructions, &[], ports));
    board.console.line("ready");
    for line in lines {
        board.console.type_line(line);
        board.console.line("ready");
    }
    board.console.said().join("\n")
}
