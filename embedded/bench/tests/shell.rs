//! The shell, line by line, on a target that is a table of numbers.

use std::collections::BTreeMap;
use std::future::ready;
use std::ops::ControlFlow;
use std::time::Duration;

use quiver_bench::native::wait_for;
use quiver_bench::{About, BenchError, BenchTarget, Peaks};

const ABOUT: About<'static> = About { board: "toy", mcu: "none" };

/// A clock that advances by as much at every call, and counts as many instructions.
struct Toy {
    now: Duration,
    step: Duration,
    free: Option<usize>,
    /// Number of pauses after which the benchmark is asked to end.
    patience: u32,
    pauses: u32,
    counts: bool,
}

impl Toy {
    fn new() -> Self {
        let step = Duration::from_micros(3);
        Self { now: Duration::ZERO, step, free: None, patience: u32::MAX, pauses: 0, counts: true }
    }
}

impl BenchTarget for Toy {
    fn now(&mut self) -> Duration {
        self.now += self.step;
        self.now
    }

    fn instructions(&mut self) -> Option<u64> {
        self.counts.then_some(self.now.as_nanos() as u64)
    }

    fn free_heap(&mut self) -> Option<usize> {
        self.free
    }

    fn peaks(&mut self) -> Peaks {
        Peaks { heap: Some(11), stack: None }
    }

    fn pause(&mut self) -> impl Future<Output = ControlFlow<()>> {
        self.pauses += 1;
        let enough = self.pauses >= self.patience;
        ready(if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

fn on(toy: &mut Toy, line: &str) -> (Result<(), BenchError>, String) {
    let mut out = String::new();
    let done = wait_for(quiver_bench::run(line, &ABOUT, toy, &mut out));
    (done, out)
}

fn fields(block: &str) -> BTreeMap<&str, &str> {
    block.lines().filter_map(|line| line.split_once(": ")).collect()
}

#[test]
fn output_has_board_mcu_parameters_iterations_and_microseconds() {
    let (done, out) = on(&mut Toy::new(), "bench aes-cbc 5 4");
    assert_eq!(done, Ok(()));
    let fields = fields(&out);
    assert_eq!((fields["Board"], fields["MCU"], fields["Benchmark"]), ("toy", "none", "aes-cbc"));
    assert_eq!((fields["Parameters"], fields["Iterations"]), ("4 blocks of 16 bytes, key of 16 bytes", "5"));
    for (name, value) in
        [("Total", "15.000 us"), ("Average", "3.000 us"), ("Minimum", "3.000 us"), ("Maximum", "3.000 us")]
    {
        assert_eq!(fields[name], value, "{name}");
    }
    assert_eq!((fields["Instructions"], fields["Heap"]), ("3000", "11 bytes"));
    assert!(!fields.contains_key("Stack"), "{out}");
    assert!(fields["At 64 MHz"].ends_with("ms, estimated"), "{out}");
}

#[test]
fn first_word_bench_may_be_left_out() {
    assert_eq!(on(&mut Toy::new(), "sha 1 64"), on(&mut Toy::new(), "  bench  sha 1\t64 "));
}

#[test]
fn target_that_counts_no_instructions_says_nothing_of_them() {
    let (done, out) = on(&mut Toy { counts: false, ..Toy::new() }, "sha 2");
    assert!(done.is_ok() && !out.contains("nstructions") && !out.contains("64 MHz"), "{out}");
}

#[test]
fn wrong_line_gets_the_usage_and_measures_nothing() {
    let wrong = [
        "",
        "bench",
        "bench nothing 1",
        "bench aes-ecb",
        "bench aes-ecb x",
        "bench aes-ecb 0",
        "bench aes-ecb -1",
        "bench aes-ecb +1",
        "bench aes-ecb 1000001",
        "bench aes-ecb 99999999999999999999",
        "bench aes-ecb 1 0",
        "bench aes-ecb 1 4097",
        "bench aes-ecb 1 1 1",
        "bench sha 1 65537",
        "bench aead 1 1 1",
        "bench datagram 1 0",
        "bench datagram 1 171",
        "bench kem 1 ml-kem-512",
        "bench kem 1 ml-kem-768 1",
        "bench aes-cbc 1 \u{1F681}",
        "bench\u{0}aes-ecb 1",
    ];
    for line in wrong {
        let mut toy = Toy::new();
        let (done, out) = on(&mut toy, line);
        assert!(
            matches!(done, Err(BenchError::Usage(_) | BenchError::OutOfBounds { .. })),
            "{line:?}: {done:?}"
        );
        assert!(out.starts_with("error: ") && out.contains("\nusage: bench "), "{line:?}: {out}");
        assert_eq!(toy.pauses, 0, "{line:?}");
    }
}

#[test]
fn help_is_no_error() {
    let (done, out) = on(&mut Toy::new(), "bench help");
    assert!(done.is_ok() && out.starts_with("usage: bench "));
}

#[test]
fn what_does_not_fit_into_the_heap_is_refused_beforehand() {
    let (done, out) = on(&mut Toy { free: Some(16_000), ..Toy::new() }, "bench aes-ecb 1 1001");
    assert_eq!(done, Err(BenchError::TooLittleMemory { needed: 16_016, free: 16_000 }));
    assert_eq!(out, "error: takes 16016 bytes of heap, and 16000 are free\n");
    let (done, _) = on(&mut Toy { free: Some(16_000), ..Toy::new() }, "bench aes-ecb 1 1000");
    assert_eq!(done, Ok(()));
}

#[test]
fn who_asks_to_end_gets_the_figures_so_far() {
    let mut toy = Toy { patience: 3, ..Toy::new() };
    let (done, out) = on(&mut toy, "bench aead 1000");
    assert_eq!((done, toy.pauses), (Ok(()), 3));
    assert_eq!(fields(&out)["Iterations"], "3");
    assert!(out.contains("Ended: as asked, of 1000 iterations\n"), "{out}");
    assert_eq!(out.matches("Board:").count(), 1, "nothing else is begun");
}

#[test]
fn benchmark_ends_after_ten_minutes() {
    let mut toy = Toy { step: Duration::from_secs(50), ..Toy::new() };
    let (done, out) = on(&mut toy, "bench sha 1000000");
    assert!(done.is_ok() && toy.pauses < 20, "{}", toy.pauses);
    assert!(out.contains("Ended: after ten minutes, of 1000000 iterations\n"), "{out}");
}

#[test]
fn rsa_encrypts_and_decrypts_apart() {
    let (done, out) = on(&mut Toy::new(), "bench rsa 2 100");
    assert_eq!(done, Ok(()));
    let blocks: Vec<_> = out.split_terminator("\n\n").map(fields).collect();
    assert_eq!([0, 1].map(|block: usize| blocks[block]["Benchmark"]), ["rsa encrypt", "rsa decrypt"]);
    assert_eq!(blocks[1]["Parameters"], "RSA-1024, PKCS #1 v1.5, 100 bytes");
    let (done, _) = on(&mut Toy::new(), "bench rsa 1 118");
    assert_eq!(done, Err(BenchError::OutOfBounds { what: "block size", least: 1, most: 117 }));
}

#[test]
fn native_shell_measures() {
    let mut out = String::new();
    assert_eq!(quiver_bench::native::run("bench sha 3 64", &mut out), Ok(()));
    let fields = fields(&out);
    assert_eq!((fields["Board"], fields["MCU"]), ("native", std::env::consts::ARCH));
    assert!(!fields.contains_key("Instructions"));
}
