//! The edge role with envelopes in QEMU. An image of its own name, so that both can be there at once.

#![no_std]
#![no_main]

#[cortex_m_rt::entry]
fn main() -> ! {
    quiver_mps2::edge::start()
}
