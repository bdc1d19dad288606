//! The functions in assembly, as they are linked into an image: SHA-256's compression and erasure
//! (`quiver-crypto`), and the product in the field of BLS12-381 (`quiver-pairing`).

use std::path::Path;
use std::process::Command;

use quiver_emulation::build::image;
use quiver_emulation::model::python;

#[test]
fn functions_in_assembly_do_what_they_stand_for_and_nothing_else() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/assembly/functions.py");
    let multiply = &["quiver_fp_multiply"][..];
    for (image, more) in [
        (image("quiver-nrf52840", "edge", ""), &[][..]),
        (image("quiver-mps2", "mps2-edge", "edge"), &[]),
        (image("quiver-mps2", "mps2-envelopes", "edge,envelopes"), multiply),
    ] {
        let mut command = Command::new(python());
        let output = command
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .arg(&script)
            .arg(&image)
            .args(more)
            .output()
            .expect("python runs");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {complaint}", image.display());
    }
}
