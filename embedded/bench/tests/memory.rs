//! The heap that a benchmark asks for is the heap that it takes, by arkworks as on boards. With `std` there
//! would be the tables that a host's process makes once.
#![cfg(not(feature = "std"))]

use std::alloc::System;
use std::future::ready;
use std::ops::ControlFlow;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use peakmem_alloc::{PeakMemAlloc, PeakMemAllocTrait};
use quiver_bench::{About, BenchError, BenchTarget};

#[global_allocator]
static HEAP: PeakMemAlloc<System> = PeakMemAlloc::system();

/// A target with so much heap, or without a limit.
struct Target(Option<usize>);

impl BenchTarget for Target {
    fn now(&mut self) -> Duration {
        Duration::ZERO
    }

    fn free_heap(&mut self) -> Option<usize> {
        self.0
    }

    fn pause(&mut self) -> impl Future<Output = ControlFlow<()>> {
        ready(ControlFlow::Continue(()))
    }
}

fn run(line: &str, free: Option<usize>, out: &mut String) -> Result<(), BenchError> {
    let mut target = Target(free);
    let about = About { board: "toy", mcu: "none" };
    let future = pin!(quiver_bench::run(line, &about, &mut target, out));
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("nothing here waits"),
    }
}

/// Bytes that the shell takes besides: the line, the output, names.
const SHELL: usize = 2048;

/// Bytes of heap that a board with 256 KiB of RAM has left.
const BOARD: usize = 180 * 1024;

/// One test, because every allocation of the process counts.
#[test]
fn no_benchmark_takes_more_heap_than_it_asks_for_nor_asks_for_much_more() {
    let schemes = ["yct14", "gpsw06", "fabeo-kp", "fabeo-cp"];
    let operations = ["setup", "encrypt", "keygen", "decrypt"];
    let schemes = schemes.into_iter().flat_map(|scheme| operations.map(|operation| (scheme, operation)));
    let schemes = schemes.flat_map(|(scheme, operation)| {
        ["1", "30", "30 10"].map(|attributes| format!("abe 1 {scheme} {operation} {attributes}"))
    });
    let others = [
        "sha 1 65536",
        "aead 1 65536",
        "aes-cbc 1 4096",
        "rsa 1 117",
        "ainq 1",
        "datagram 1",
        "kem 1",
        "kem 1 ml-kem-1024",
        "group 1 sample-g2",
        "group 1 multiply-gt",
        "pairing 1 1",
        "pairing 1 30",
    ];
    // The other random trees, in which the published decryption ran out of memory.
    let trees = (1..10).map(|tree| format!("abe 1 gpsw06 decrypt 30 {tree}"));
    let lines = others.map(String::from).into_iter().chain(schemes).chain(trees);
    for line in lines {
        let mut out = String::with_capacity(1 << 14);
        let Err(BenchError::TooLittleMemory { needed, free: 0 }) = run(&line, Some(0), &mut out) else {
            panic!("{line}: is not refused without any heap")
        };
        HEAP.reset_peak_memory();
        assert_eq!(run(&line, Some(needed), &mut out), Ok(()), "{line}");
        let taken = HEAP.get_peak_memory();
        assert!(taken <= needed + SHELL, "{line}: takes {taken}, asks for {needed}");
        assert!(
            !line.contains("gpsw06") || needed <= BOARD,
            "{line}: asks for {needed}, more than a board has"
        );
        // The heap of a random tree is not known beforehand.
        let known = line.split(' ').count() < 6;
        assert!(!known || needed <= 3 * taken + SHELL, "{line}: asks for {needed}, takes {taken}");
    }
}
