//! The bench shell in QEMU: counts instructions.

#![no_std]
#![no_main]

#[cortex_m_rt::entry]
fn main() -> ! {
    quiver_mps2::shell::start()
}
