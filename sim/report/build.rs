//! Notes which compiler builds this, and from which commit, for the reports.

mod commit;

use std::env;
use std::path::Path;
use std::process::Command;

use self::commit::{Checkout, is_hash};

/// Names the commit where the sources are built outside of their repository, as in a container.
const GIVEN: &str = "QUIVER_COMMIT";

fn main() {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().ok();
    let version = output.and_then(|output| String::from_utf8(output.stdout).ok());
    let version = version.as_deref().map_or("an unknown rustc", str::trim);
    println!("cargo::rustc-env=REPORT_RUSTC={version}");
    println!("cargo::rustc-env=REPORT_COMMIT={}", commit());
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=commit.rs");
    println!("cargo::rerun-if-env-changed={GIVEN}");
}

fn commit() -> String {
    if let Some(given) = env::var(GIVEN).ok().filter(|given| is_hash(given)) {
        return given;
    }
    // Times of a build without optimisation mean nothing. It names no commit, so that a commit does not compile the report, the
    // simulator and the lab anew.
    if env::var("PROFILE").is_ok_and(|profile| profile == "debug") {
        return "unknown".into();
    }
    let package = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    let checkout = Checkout::read(&Path::new(&package).join("../.."));
    // Only files that are there: one that is not would have this run at every build.
    for file in &checkout.files {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    checkout.commit.unwrap_or_else(|| "unknown".into())
}
