//! Images, built by cargo as they are shipped; nothing is built that is up to date.

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use quiver_service_testing::build::{build, named, root};

/// The target of all images.
pub const TARGET: &str = "thumbv7em-none-eabihf";

/// An image of a package in `embedded/`, as it is flashed: the binary `name`, with these features.
///
/// It lies in a file of its own, because cargo puts all images of one name into one place, whatever their
/// features.
///
/// # Panics
/// If it does not build.
#[must_use]
pub fn image(package: &str, name: &str, features: &str) -> PathBuf {
    let manifest = root().join("embedded/Cargo.toml");
    let what = ["--release", "--target", TARGET, "-p", package, "--bin", name, "--features", features];
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let built = named(&build(&manifest, &what), name);
    let own = built.with_file_name(format!("{name}[{}]", features.replace(',', "+")));
    let copy = own.with_extension(std::process::id().to_string());
    fs::copy(&built, &copy).and_then(|_| fs::rename(&copy, &own)).expect("the image can be copied");
    own
}
