//! `QUIVER_SIMD` is read once for each process, so another one has to read it.

/// Runs a test of this program again, alone, with each value of the variable.
pub(crate) fn passes_with_every_value(test: &str) {
    for value in ["avx2", "serial", "nothing of the kind"] {
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test])
            .env("QUIVER_SIMD", value)
            .output()
            .unwrap()
            .status;
        assert!(status.success(), "QUIVER_SIMD={value}");
    }
}
