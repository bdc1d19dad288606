//! The edge role in QEMU.

#![no_std]
#![no_main]

#[cortex_m_rt::entry]
fn main() -> ! {
    quiver_mps2::edge::start()
}
