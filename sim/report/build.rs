//! Notes which compiler builds this, for the reports.

use std::env;
use std::process::Command;

fn main() {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().ok();
    let version = output.and_then(|output| String::from_utf8(output.stdout).ok());
    let version = version.as_deref().map_or("an unknown rustc", str::trim);
    println!("cargo::rustc-env=REPORT_RUSTC={version}");
    println!("cargo::rerun-if-changed=build.rs");
}
