//! The functions in assembly, as they are linked into an image: copying and comparing memory (`quiver-copy`), and SHA-256's compression
//! (`quiver-sha256`).

use std::path::Path;
use std::process::Command;

use quiver_emulation::build::image;
use quiver_emulation::model::python;

#[test]
fn functions_in_assembly_do_what_they_stand_for_and_nothing_else() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/assembly/functions.py");
    for (package, name) in [("quiver-nrf52840", "edge"), ("quiver-mps2", "mps2-edge")] {
        let features = if name == "edge" { "" } else { "edge" };
        let image = image(package, name, features);
        let mut command = Command::new(python());
        let output = command
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .arg(&script)
            .arg(&image)
            .output()
            .expect("python runs");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {complaint}");
    }
}
