//! Generates the header from the crate's sources.

use std::path::Path;

/// The header.
pub(crate) fn header() -> cbindgen::Bindings {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("a configuration");
    let modules = ["codes", "interface", "options", "event", "state"];
    let builder = modules.iter().fold(cbindgen::Builder::new().with_config(config), |builder, module| {
        builder.with_src(root.join(format!("src/{module}.rs")))
    });
    builder.generate().expect("the sources parse")
}
