//! `sim`: thousands of Quiver drones in one process, with the real protocol code.

use std::process::ExitCode;

fn main() -> ExitCode {
    quiver_sim::main()
}
