//! Benchmarks of encrypting, decrypting and combining keys, all contenders in one run, in CPU time; then the
//! ratios.
//!
//! `cargo bench --manifest-path sim/lab/commonware/Cargo.toml`

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Duration;

use criterion::Criterion;
use quiver_commonware::{CpuTime, IbeContender, contenders, verdict};

/// An operation under test: its name, and a contender's implementation.
type Measured = (&'static str, fn(&mut IbeContender) -> bool);

const OPERATIONS: [Measured; 3] = [
    ("encrypt", |contender| (contender.encrypt)()),
    ("decrypt", |contender| (contender.decrypt)()),
    ("combine", |contender| (contender.combine)()),
];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers");
    if folder.exists() {
        // Medians of another run shall not be compared with this one's.
        fs::remove_dir_all(&folder)?;
    }
    let mut criterion = Criterion::default()
        .with_measurement(CpuTime)
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .output_directory(&folder)
        .configure_from_args();
    let mut contenders = contenders()?;
    for (name, operation) in OPERATIONS {
        let mut group = criterion.benchmark_group(name);
        for contender in &mut contenders {
            group.bench_function(contender.name, |bencher| bencher.iter(|| operation(contender)));
        }
        group.finish();
    }
    criterion.final_summary();
    println!("{}", verdict::table(&folder));
    Ok(())
}
