//! Writes `memory.x` for the board that the features name, and its place to the linker.

use std::env;
use std::fs;
use std::path::PathBuf;

/// Flash layout of program and state; addresses in bytes.
struct Layout {
    /// The program's first byte: its vector table.
    program: u32,
    /// First byte of the state, the end of the program's flash. A page's start.
    state: u32,
    /// The end of the state. A page's start.
    end: u32,
}

/// The state takes 10 pages of 4,096 bytes in every layout.
fn layout() -> Layout {
    let has = |feature: &str| env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    if has("DONGLE") && has("FEATHER") {
        panic!("one board, please: `dongle` or `feather`");
    }
    if has("FACTORY_BOOTLOADER") {
        // The MBR below 0x1000, Nordic's bootloader from 0xE0000.
        Layout { program: 0x1000, state: 0xD_6000, end: 0xE_0000 }
    } else if has("DONGLE") || has("FEATHER") {
        // MBR and S140 6.1.1 below 0x26000, the bootloader from 0xF4000, and before that the 10 pages that it
        // leaves to the program's own data (Adafruit_nRF52_Bootloader: linker/nrf52840.ld,
        // src/usb/uf2/uf2cfg.h, and DFU_APP_DATA_RESERVED in its Makefile).
        Layout { program: 0x2_6000, state: 0xE_A000, end: 0xF_4000 }
    } else {
        // The whole flash is ours.
        Layout { program: 0, state: 0xF_6000, end: 0x10_0000 }
    }
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let Layout { program, state, end } = layout();
    // In KiB. Opening an envelope takes half of the heap for pairings, and 44 KB of stack at most.
    let stack = if env::var_os("CARGO_FEATURE_ENVELOPES").is_some() { 64 } else { 80 };
    let memory = format!(
        "/* The stack lies below everything else in RAM: what overflows it leaves the memory and faults, instead of\n\
         overwriting variables. The heap is what the variables leave of RAM. */\n\
         MEMORY\n{{\n\
         FLASH : ORIGIN = {program:#x}, LENGTH = {:#x}\n\
         STACK : ORIGIN = 0x20000000, LENGTH = {stack}K\n\
         RAM : ORIGIN = 0x20000000 + {stack}K, LENGTH = 256K - {stack}K\n\
         }}\n\
         _stack_start = ORIGIN(STACK) + LENGTH(STACK);\n\
         _stack_end = ORIGIN(STACK);\n\
         _state_start = {state:#x};\n\
         _state_end = {end:#x};\n",
        state - program
    );
    fs::write(out.join("memory.x"), memory).expect("OUT_DIR can be written to");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo::rustc-link-search={}", out.display());
        println!("cargo::rustc-link-arg-bins=--nmagic");
        println!("cargo::rustc-link-arg-bins=-Tlink.x");
        println!("cargo::rustc-link-arg-bins=-Tdefmt.x");
        // Functions of the same instructions are one function: a kilobyte of flash.
        println!("cargo::rustc-link-arg-bins=--icf=all");
    }
}
