//! Programs and images, built by cargo as they are shipped; nothing is built that is up to date.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The target of all images.
pub const TARGET: &str = "thumbv7em-none-eabihf";

/// The repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("two levels up").into()
}

/// The service or tool of this name: `kgc`, `leader` or `edge`. From the directory that the environment
/// variable `QUIVER_PROGRAMS` names, if it is set; else built.
///
/// # Panics
/// If they do not build.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    static BUILT: OnceLock<Vec<PathBuf>> = OnceLock::new();
    if let Some(directory) = std::env::var_os("QUIVER_PROGRAMS") {
        return PathBuf::from(directory).join(name);
    }
    let all = BUILT.get_or_init(|| {
        let packages = ["-p", "quiver-kgc", "-p", "quiver-leader", "-p", "quiver-edge"];
        build(&root().join("Cargo.toml"), &packages)
    });
    named(all, name)
}

/// An image of a package in `embedded/`, as it is flashed: the binary `name`, with these features.
///
/// It lies in a file of its own, because cargo puts all images of one name into one place, whatever their
/// features.
///
/// # Panics
/// If it does not build.
#[must_use]
pub fn image(package: &str, name: &str, features: &str) -> PathBuf {
    image_of("release", package, name, features)
}

/// The same by another profile than `release`.
///
/// # Panics
/// If it does not build.
#[must_use]
pub fn image_of(profile: &str, package: &str, name: &str, features: &str) -> PathBuf {
    let manifest = root().join("embedded/Cargo.toml");
    let what =
        ["--profile", profile, "--target", TARGET, "-p", package, "--bin", name, "--features", features];
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let built = named(&build(&manifest, &what), name);
    let own = built.with_file_name(format!("{name}[{}]", features.replace(',', "+")));
    let copy = own.with_extension(std::process::id().to_string());
    fs::copy(&built, &copy).and_then(|_| fs::rename(&copy, &own)).expect("the image can be copied");
    own
}

fn named(built: &[PathBuf], name: &str) -> PathBuf {
    let found = built.iter().find(|path| path.file_name().is_some_and(|file| file == name));
    found.unwrap_or_else(|| panic!("{name} is not among {built:?}")).clone()
}

/// Builds, and returns the executables.
fn build(manifest: &Path, what: &[&str]) -> Vec<PathBuf> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--locked", "--message-format", "json-render-diagnostics", "--manifest-path"]);
    // From the workspace's own directory, so that its cargo configuration counts and ours does not.
    cargo.arg(manifest).args(what).current_dir(manifest.parent().expect("a file has a directory"));
    let output = cargo.stderr(Stdio::inherit()).output().expect("cargo runs");
    assert!(output.status.success(), "does not build: {what:?}");
    let lines = output.stdout.split(|&byte| byte == b'\n');
    let messages = lines.filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
    messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).collect()
}
