//! Prints the header: `cargo run -p libquiver --example header > edge/libquiver/quiver.h`.

use std::io::stdout;

#[path = "../tests/header/generate.rs"]
mod generate;

fn main() {
    generate::header().write(stdout());
}
