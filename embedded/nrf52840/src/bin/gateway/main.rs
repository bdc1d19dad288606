//! The gateway's image. On a host there is none: its workspace is checked there as a whole.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate alloc;
#[cfg(target_os = "none")]
mod image;

#[cfg(not(target_os = "none"))]
fn main() -> std::process::ExitCode {
    std::process::ExitCode::FAILURE
}
