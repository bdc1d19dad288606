//! The program `edge`.

use std::process::ExitCode;

fn main() -> ExitCode {
    quiver_edge::program()
}
