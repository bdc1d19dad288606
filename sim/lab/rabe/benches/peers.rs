//! Benchmarks of key generation, encryption and decryption with 1 and 30 attributes, all contenders in one
//! run, in CPU time; then the ratios.
//!
//! `cargo bench --manifest-path sim/lab/rabe/Cargo.toml`

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Duration;

use cpu_time::ThreadTime;
use criterion::{BenchmarkId, Criterion, SamplingMode};
use quiver_rabe::{AbeContender, CpuTime, verdict};

/// An operation under test: its name, and a contender's implementation.
type Measured = (&'static str, fn(&mut AbeContender) -> bool);

/// An operation that takes longer is not sampled: rabe's ac17 spends seconds on a key for a policy of 30
/// attributes.
const TOO_LONG: Duration = Duration::from_secs(2);

const OPERATIONS: [Measured; 3] = [
    ("generate", |contender| (contender.generate)()),
    ("encrypt", |contender| (contender.encrypt)()),
    ("decrypt", |contender| (contender.decrypt)()),
];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers");
    if folder.exists() {
        // Medians of another run shall not be compared with this one's.
        fs::remove_dir_all(&folder)?;
    }
    let mut criterion = Criterion::default()
        .with_measurement(CpuTime)
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600))
        .output_directory(&folder)
        .configure_from_args();
    let mut sizes = Vec::new();
    for attributes in [1, verdict::MANY] {
        sizes.push((attributes, AbeContender::all(attributes)?));
    }
    for (name, operation) in OPERATIONS {
        let mut group = criterion.benchmark_group(name);
        group.sampling_mode(SamplingMode::Flat);
        for (attributes, contenders) in &mut sizes {
            for contender in contenders {
                let since = ThreadTime::now();
                operation(contender);
                let once = since.elapsed();
                if once > TOO_LONG {
                    println!("{name}/{}/{attributes}: {once:.1?}, once; too long to sample", contender.name);
                    continue;
                }
                let id = BenchmarkId::new(&contender.name, *attributes);
                group.bench_function(id, |bencher| bencher.iter(|| operation(contender)));
            }
        }
        group.finish();
    }
    criterion.final_summary();
    println!("{}", verdict::table(&folder));
    Ok(())
}
