//! Flash and RAM that an image takes before it runs.

use std::fs;
use std::path::Path;

use object::{Object, ObjectSection, SectionFlags, SectionKind, elf};

/// First address of RAM on a Cortex-M.
const RAM: u64 = 0x2000_0000;

/// Bytes of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageSize {
    /// Flash: code, constants, and initial values of variables.
    pub flash: u64,
    /// Variables in RAM: neither stack nor heap.
    pub static_ram: u64,
}

impl ImageSize {
    /// Measures the image in this ELF file.
    ///
    /// # Panics
    /// If it cannot be read.
    #[must_use]
    pub fn of(image: &Path) -> Self {
        let bytes = fs::read(image).unwrap_or_else(|error| panic!("{}: {error}", image.display()));
        let file =
            object::File::parse(&*bytes).unwrap_or_else(|error| panic!("{}: {error}", image.display()));
        let mut size = Self::default();
        for section in file.sections() {
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
            if sh_flags & u64::from(elf::SHF_ALLOC) == 0 {
                continue;
            }
            if section.kind() != SectionKind::UninitializedData {
                size.flash += section.size();
            }
            if section.address() >= RAM {
                size.static_ram += section.size();
            }
        }
        size
    }
}
