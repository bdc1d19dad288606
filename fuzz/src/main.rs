//! libFuzzer's program for all targets: feeds the one that `QUIVER_FUZZ_TARGET` names. Into the folder that
//! `QUIVER_FUZZ_SEEDS` names, if any, it first writes the target's valid inputs. Without a target of that name it
//! prints the names of all, one a line, and ends with status 2. An argument is libFuzzer's own (`-help=1`).
#![no_main]

use std::io::{self, Write};
use std::path::Path;
use std::process::exit;
use std::sync::LazyLock;
use std::{env, fs};

use quiver_fuzz::targets::{FuzzTarget, TARGETS};

static TARGET: LazyLock<&FuzzTarget> = LazyLock::new(|| {
    let name = env::var("QUIVER_FUZZ_TARGET").unwrap_or_default();
    TARGETS.iter().find(|target| target.name == name).unwrap_or_else(|| refuse(&name))
});

/// Names the targets and ends.
fn refuse(name: &str) -> ! {
    let names: String = TARGETS.iter().map(|target| format!("{}\n", target.name)).collect();
    // A reader that has closed its end needs no list.
    let _ = writeln!(io::stderr(), "error: QUIVER_FUZZ_TARGET is {name:?}; the targets are:");
    let _ = io::stdout().write_all(names.as_bytes());
    exit(2)
}

/// Writes the target's valid inputs into the folder asked for.
fn write_seeds(target: &FuzzTarget) -> io::Result<()> {
    let Some(folder) = env::var_os("QUIVER_FUZZ_SEEDS") else { return Ok(()) };
    fs::create_dir_all(&folder)?;
    for (number, seed) in (target.seeds)().iter().enumerate() {
        fs::write(Path::new(&folder).join(format!("seed-{number}")), seed)?;
    }
    Ok(())
}

libfuzzer_sys::fuzz_target!(
    init: write_seeds(*TARGET).expect("the folder for the target's valid inputs can be written"),
    |bytes: &[u8]| (TARGET.body)(bytes)
);
