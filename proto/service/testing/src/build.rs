//! Programs, built by cargo as they are shipped; nothing is built that is up to date.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).expect("three levels up").into()
}

/// The service of this name: `kgc`, `leader` or `edge`. From the directory that the environment variable
/// `QUIVER_PROGRAMS` names, if it is set; else from beside the program or the test that asks, where `cargo build` and
/// `cargo test --workspace` build them; else built.
///
/// # Panics
/// If they do not build.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    static BUILT: OnceLock<Vec<PathBuf>> = OnceLock::new();
    if let Some(directory) = std::env::var_os("QUIVER_PROGRAMS") {
        return PathBuf::from(directory).join(name);
    }
    let asks = std::env::current_exe().expect("a program has a path");
    // A test lies in `deps`.
    let mut beside = asks.ancestors().skip(1).take(2).map(|directory| directory.join(name));
    if let Some(beside) = beside.find(|beside| beside.is_file()) {
        return beside;
    }
    let all = BUILT.get_or_init(|| {
        let packages = ["-p", "quiver-kgc", "-p", "quiver-leader", "-p", "quiver-edge"];
        build(&root().join("Cargo.toml"), &packages)
    });
    named(all, name)
}

/// The executable of this name.
///
/// # Panics
/// If it was not built.
#[must_use]
pub fn named(built: &[PathBuf], name: &str) -> PathBuf {
    let found = built.iter().find(|path| path.file_name().is_some_and(|file| file == name));
    found.unwrap_or_else(|| panic!("{name} is not among {built:?}")).clone()
}

/// Builds, and returns the executables.
///
/// # Panics
/// If it does not build.
#[must_use]
pub fn build(manifest: &Path, what: &[&str]) -> Vec<PathBuf> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--locked", "--message-format", "json-render-diagnostics", "--manifest-path"]);
    // From the workspace's own directory, so that its cargo configuration counts and ours does not.
    cargo.arg(manifest).args(what).current_dir(manifest.parent().expect("a file has a directory"));
    // A wrapper that lints changes what the compiler makes of a crate: as shipped means without one.
    cargo.env_remove("RUSTC_WORKSPACE_WRAPPER");
    let output = cargo.stderr(Stdio::inherit()).output().expect("cargo runs");
    assert!(output.status.success(), "does not build: {what:?}");
    let lines = output.stdout.split(|&byte| byte == b'\n');
    let messages = lines.filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
    messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).collect()
}
