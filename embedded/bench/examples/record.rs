//! Writes the scripts that edges replay in `bench ainq`: `cargo run -p quiver-bench --features std --example
//! record`.

#[path = "../recorder/recorder.rs"]
mod recorder;

use std::path::Path;

use quiver_ainq::StrategyKind;

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    for (name, strategy) in [("flat.bin", StrategyKind::Flat), ("tree.bin", StrategyKind::Tree)] {
        std::fs::write(folder.join(name), recorder::record(strategy))?;
    }
    Ok(())
}
