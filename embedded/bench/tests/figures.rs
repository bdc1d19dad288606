//! Figures from the shell's output to the file and back, and the reported differences.

use std::ops::ControlFlow;
use std::time::Duration;

use quiver_bench::figures::{self, FigureChange, Figures, LINES, Quantity, Subject};
use quiver_bench::native::wait_for;
use quiver_bench::transcript::{self, TranscriptError};
use quiver_bench::{About, BenchError, BenchTarget};

const TRANSCRIPT: &str = "\
> bench ainq 2 secret
Board: mps2-an386
MCU: Cortex-M4F
Benchmark: ainq secret
Parameters: ristretto255, of a kind
Iterations: 2
Total: 52300.000 us
Average: 26150.000 us
Minimum: 26149.500 us
Maximum: 26150.500 us
Instructions: 653930
Minimum instructions: 653900
Maximum instructions: 653960
At 64 MHz: 13.282 to 14.712 ms, estimated
Heap: 0 bytes
Stack: 1234 bytes

link: up
> ";

fn subject(quantity: Quantity) -> Subject {
    Subject {
        image: "toy".into(),
        benchmark: "ainq secret".into(),
        parameters: "ristretto255, of a kind".into(),
        quantity,
    }
}

#[test]
fn transcript_gives_figures_that_are_written_and_read_again() {
    let outcomes = transcript::parse(TRANSCRIPT).unwrap();
    assert_eq!(outcomes.len(), 1);
    assert_eq!((outcomes[0].board.as_str(), outcomes[0].mcu.as_str()), ("mps2-an386", "Cortex-M4F"));
    assert_eq!((outcomes[0].iterations, outcomes[0].average), (2, 26_150.0));
    assert_eq!(outcomes[0].at_64_mhz, Some((13.282, 14.712)));
    let figures = figures::of("toy", &outcomes);
    let expected = [(Quantity::Instructions, 653_930), (Quantity::Heap, 0), (Quantity::Stack, 1234)];
    assert_eq!(figures, expected.map(|(quantity, value)| (subject(quantity), value)).into());
    let text = figures::write(&figures);
    assert!(text.contains("\ntoy,ainq secret,\"ristretto255, of a kind\",instructions,653930\n"), "{text}");
    assert_eq!(figures::read(&text), Ok(figures));
}

#[test]
fn transcript_with_an_error_or_without_a_field_is_refused() {
    let refused = transcript::parse("> bench x\nerror: no such benchmark\n");
    assert_eq!(refused, Err(TranscriptError::Refused("no such benchmark".into())));
    for (name, line) in [("Total", "Total: 52300.000 us\n"), ("Iterations", "Iterations: 2\n")] {
        let broken = transcript::parse(&TRANSCRIPT.replace(line, ""));
        assert_eq!(broken, Err(TranscriptError::Field { field: name, benchmark: "ainq secret".into() }));
    }
}

#[test]
fn figure_above_the_tolerance_fails_and_one_below_is_told() {
    let with = |value| Figures::from([(subject(Quantity::Instructions), value)]);
    let recorded = with(1000);
    for (measured, fails) in [(1031, Some(true)), (1030, None), (1000, None), (970, None), (969, Some(false))]
    {
        let differences = figures::compare(&recorded, &with(measured));
        assert_eq!(differences.first().map(FigureChange::fails), fails, "{measured}");
    }
    let unrecorded = figures::compare(&Figures::new(), &with(5));
    assert!(unrecorded[0].fails() && unrecorded[0].to_string().ends_with("of which nothing is recorded"));
    assert_eq!(figures::compare(&recorded, &Figures::new()), []);
}

#[test]
fn malformed_figures_are_refused_with_their_line() {
    let header = "image,benchmark,parameters,quantity,value\n";
    for (row, what) in [
        ("a,b,c,instructions", "other than five fields"),
        ("a,b,c,instructions,1,2", "other than five fields"),
        ("a,b,c,cycles,1", "an unknown quantity"),
        ("a,b,c,instructions,-1", "no number"),
        ("a,b,\"c,instructions,1", "a quotation mark that nothing closes"),
        ("a,b,c,instructions,1\na,b,c,instructions,2", "recorded twice"),
    ] {
        let error = figures::read(&format!("{header}{row}\n")).unwrap_err();
        assert_eq!(error.what, what, "{row}");
        assert!(error.line >= 2);
    }
    assert!(figures::read("").is_err());
}

#[test]
fn recorded_figures_can_be_read_and_are_written_as_they_stand() {
    let text = include_str!("../../figures.csv");
    let rows: String =
        text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    assert_eq!(figures::write(&figures::read(text).unwrap()), rows);
}

/// A target without heap: every known line is refused for want of memory before anything is measured.
struct Destitute;

impl BenchTarget for Destitute {
    fn now(&mut self) -> Duration {
        Duration::ZERO
    }

    fn free_heap(&mut self) -> Option<usize> {
        Some(0)
    }

    async fn pause(&mut self) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

#[test]
fn every_line_that_is_measured_in_emulation_is_one_that_the_shell_takes() {
    let about = About { board: "toy", mcu: "none" };
    for line in LINES {
        let done = wait_for(quiver_bench::run(line, &about, &mut Destitute, &mut String::new()));
        assert!(matches!(done, Err(BenchError::TooLittleMemory { .. })), "{line}: {done:?}");
    }
}

#[test]
fn every_line_that_is_measured_in_emulation_has_figures() {
    let recorded = figures::read(include_str!("../../figures.csv")).unwrap();
    for line in LINES {
        let words: Vec<&str> = line.split(' ').collect();
        let name = if words[1] == "abe" { format!("abe {}", words[3]) } else { words[1].into() };
        assert!(recorded.keys().any(|subject| subject.benchmark.starts_with(&name)), "{line}");
    }
}
