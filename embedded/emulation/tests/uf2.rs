//! The images for boards with a bootloader, as UF2 files: every byte arrives where it belongs, and nothing
//! anywhere else.

use std::fs;

use object::read::elf::{ElfFile32, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol, elf};
use quiver_emulation::build::image;
use quiver_uf2::{BLOCK_LEN, FLASH_LEN, Image, blocks, read_blocks};

/// Flash that a bootloader leaves to the program, as docs/firmware.md has it: its first byte, and the state's
/// first byte.
struct Window {
    program: usize,
    state: usize,
}

/// Erased flash with the segments of the ELF file at their load addresses.
fn flashed(file: &[u8]) -> Vec<u8> {
    let elf = ElfFile32::<Endianness>::parse(file).expect("an ELF file");
    let mut flash = vec![0xFF; FLASH_LEN as usize];
    for segment in elf.elf_program_headers() {
        let (endian, bytes) = (elf.endian(), segment.data(elf.endian(), file).expect("not cut off"));
        if segment.p_type(endian) == elf::PT_LOAD && !bytes.is_empty() {
            let at = segment.p_paddr(endian) as usize;
            flash[at..at + bytes.len()].copy_from_slice(bytes);
        }
    }
    flash
}

fn symbol(file: &[u8], name: &str) -> usize {
    let elf = ElfFile32::<Endianness>::parse(file).expect("an ELF file");
    let symbol =
        elf.symbols().find(|symbol| symbol.name() == Ok(name)).expect("a symbol of the linker script");
    symbol.address() as usize
}

fn arrives_whole(name: &str, features: &str, window: &Window) {
    let file = fs::read(image("quiver-nrf52840", name, features)).expect("read");
    assert_eq!(symbol(&file, "_state_start"), window.state, "{features}");
    let uf2 = blocks(&Image::from_elf(&file).expect("an image for this layout"));
    assert_eq!(uf2.len() % BLOCK_LEN, 0);

    let mut flash = vec![0xFF; FLASH_LEN as usize];
    let mut touched = 0;
    for (address, payload) in read_blocks(&uf2).expect("a bootloader takes it") {
        let at = address as usize;
        assert!(at >= window.program && at + payload.len() <= window.state, "{name}, {features}: {at:#x}");
        flash[at..at + payload.len()].copy_from_slice(&payload);
        touched += payload.len();
    }
    assert!(flash == flashed(&file), "{name}, {features}: what a bootloader writes is what was linked");
    assert!(touched > 0x8000, "{touched} bytes are no such program");

    // The vector table: a stack in RAM, and an address within the program.
    let word = |at: usize| u32::from_le_bytes(flash[at..at + 4].try_into().expect("four")) as usize;
    let (stack, reset) = (word(window.program), word(window.program + 4));
    assert!((0x2000_0000..=0x2004_0000).contains(&stack), "{stack:#x}");
    assert!(reset % 2 == 1 && (window.program..window.state).contains(&reset), "{reset:#x}");
}

#[test]
fn edge_for_a_feather_arrives_whole_and_within_its_window() {
    arrives_whole("edge", "feather", &Window { program: 0x2_6000, state: 0xE_A000 });
}

#[test]
fn gateway_for_dongles_arrives_whole_and_within_its_window() {
    arrives_whole("gateway", "dongle", &Window { program: 0x2_6000, state: 0xE_A000 });
    arrives_whole("gateway", "factory-bootloader", &Window { program: 0x1000, state: 0xD_6000 });
}

#[test]
fn image_for_a_debug_probe_is_refused() {
    let file = fs::read(image("quiver-nrf52840", "gateway", "")).expect("read");
    assert!(Image::from_elf(&file).is_err(), "it would lie over the bootloader");
}
