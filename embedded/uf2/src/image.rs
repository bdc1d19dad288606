//! The flash content of an ELF file.

use object::read::elf::{ElfFile32, ProgramHeader};
use object::{Architecture, Object, ObjectSymbol, elf};

use crate::Uf2Error;

/// The flash of an nRF52840 in bytes, from address 0 on.
pub const FLASH_LEN: u32 = 1 << 20;

/// Bytes of the master boot record, which lies at the beginning in every layout with a USB bootloader.
const BOOT_RECORD_LEN: u32 = 0x1000;

/// The bytes that a program wants in flash: pieces in the order of their addresses, none of them empty, none
/// overlapping another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pieces: Vec<(u32, Vec<u8>)>,
}

impl Image {
    /// The image in an ELF file: what its loadable segments hold in the file, at their load addresses.
    ///
    /// # Errors
    /// [`Uf2Error::NotAnImage`], [`Uf2Error::Empty`], [`Uf2Error::OutsideFlash`], [`Uf2Error::Overlap`],
    /// [`Uf2Error::OverBootloader`], and [`Uf2Error::OverState`] if the symbol `_state_start` gives the
    /// state's address.
    pub fn from_elf(file: &[u8]) -> Result<Self, Uf2Error> {
        let not_an_image = |why: object::Error| Uf2Error::NotAnImage(why.to_string());
        let elf = ElfFile32::<object::Endianness>::parse(file).map_err(not_an_image)?;
        if elf.architecture() != Architecture::Arm || !elf.is_little_endian() {
            return Err(Uf2Error::NotAnImage(format!("{:?}", elf.architecture())));
        }
        let mut pieces = Vec::new();
        for segment in elf.elf_program_headers() {
            let endian = elf.endian();
            if segment.p_type(endian) != elf::PT_LOAD || segment.p_filesz(endian) == 0 {
                continue;
            }
            let bytes = segment
                .data(endian, file)
                .map_err(|()| Uf2Error::NotAnImage("a segment is cut off".into()))?;
            pieces.push((segment.p_paddr(endian), bytes.to_vec()));
        }
        let image = Self::new(pieces)?;
        if image.start() < BOOT_RECORD_LEN {
            return Err(Uf2Error::OverBootloader { start: image.start() });
        }
        let state = elf
            .symbols()
            .find(|symbol| symbol.name() == Ok("_state_start"))
            .map(|symbol| symbol.address() as u32);
        if let Some(state) = state.filter(|state| image.end() > *state) {
            return Err(Uf2Error::OverState { end: image.end(), state });
        }
        Ok(image)
    }

    /// An image of pieces in any order.
    ///
    /// # Errors
    /// [`Uf2Error::Empty`], [`Uf2Error::OutsideFlash`], [`Uf2Error::Overlap`].
    pub fn new(mut pieces: Vec<(u32, Vec<u8>)>) -> Result<Self, Uf2Error> {
        pieces.retain(|(_, bytes)| !bytes.is_empty());
        pieces.sort();
        if pieces.is_empty() {
            return Err(Uf2Error::Empty);
        }
        let mut next = 0;
        for (start, bytes) in &pieces {
            let (start, len) = (u64::from(*start), bytes.len() as u64);
            if start + len > u64::from(FLASH_LEN) {
                return Err(Uf2Error::OutsideFlash { start, len });
            }
            if start < next {
                return Err(Uf2Error::Overlap { at: start as u32 });
            }
            next = start + len;
        }
        Ok(Self { pieces })
    }

    /// Pieces of the image, in the order of their addresses.
    #[must_use]
    pub fn pieces(&self) -> &[(u32, Vec<u8>)] {
        &self.pieces
    }

    /// The first address.
    #[must_use]
    pub fn start(&self) -> u32 {
        self.pieces.first().map_or(0, |(start, _)| *start)
    }

    /// The address after the last.
    #[must_use]
    pub fn end(&self) -> u32 {
        self.pieces.last().map_or(0, |(start, bytes)| start + bytes.len() as u32)
    }
}

#[cfg(test)]
mod tests {
    use object::write::elf::{FileHeader, ProgramHeader, Sym, Writer};

    use super::*;

    /// An ELF file with these loadable segments (load address, bytes) and perhaps the symbol of the state.
    fn elf(machine: u16, segments: &[(u32, &[u8])], state: Option<u32>) -> Vec<u8> {
        let mut file = Vec::new();
        let mut writer = Writer::new(object::Endianness::Little, false, &mut file);
        writer.reserve_file_header();
        writer.reserve_program_headers(segments.len() as u32);
        let offsets: Vec<_> = segments.iter().map(|(_, bytes)| writer.reserve(bytes.len(), 4)).collect();
        writer.reserve_null_section_index();
        writer.reserve_null_symbol_index();
        let name = writer.add_string(b"_state_start");
        if state.is_some() {
            writer.reserve_symbol_index(None);
        }
        writer.reserve_symtab_section_index();
        writer.reserve_strtab_section_index();
        writer.reserve_shstrtab_section_index();
        writer.reserve_symtab();
        writer.reserve_strtab();
        writer.reserve_shstrtab();
        writer.reserve_section_headers();

        let header = FileHeader {
            os_abi: 0,
            abi_version: 0,
            e_type: elf::ET_EXEC,
            e_machine: machine,
            e_entry: 0,
            e_flags: 0,
        };
        writer.write_file_header(&header).unwrap();
        writer.write_align_program_headers();
        for ((load, bytes), offset) in segments.iter().zip(&offsets) {
            writer.write_program_header(&ProgramHeader {
                p_type: elf::PT_LOAD,
                p_flags: elf::PF_R,
                p_offset: *offset as u64,
                p_vaddr: 0x2000_0000,
                p_paddr: u64::from(*load),
                p_filesz: bytes.len() as u64,
                p_memsz: bytes.len() as u64,
                p_align: 4,
            });
        }
        for (_, bytes) in segments {
            writer.write_align(4);
            writer.write(bytes);
        }
        writer.write_null_symbol();
        if let Some(address) = state {
            writer.write_symbol(&Sym {
                name: Some(name),
                section: None,
                st_info: elf::STB_GLOBAL << 4,
                st_other: 0,
                st_shndx: elf::SHN_ABS,
                st_value: u64::from(address),
                st_size: 0,
            });
        }
        writer.write_strtab();
        writer.write_shstrtab();
        writer.write_null_section_header();
        writer.write_symtab_section_header(1);
        writer.write_strtab_section_header();
        writer.write_shstrtab_section_header();
        file
    }

    #[test]
    fn segments_lie_at_their_load_addresses_in_order() {
        let file =
            elf(elf::EM_ARM, &[(0x2_6100, b"data"), (0x2_6000, b"program"), (0x2_7000, b"")], Some(0xE_A000));
        let image = Image::from_elf(&file).unwrap();
        assert_eq!(image.pieces(), [(0x2_6000, b"program".to_vec()), (0x2_6100, b"data".to_vec())]);
        assert_eq!((image.start(), image.end()), (0x2_6000, 0x2_6104));
    }

    #[test]
    fn program_for_a_debug_probe_is_refused() {
        let refused = Image::from_elf(&elf(elf::EM_ARM, &[(0, b"program")], None));
        assert_eq!(refused, Err(Uf2Error::OverBootloader { start: 0 }));
    }

    #[test]
    fn program_that_reaches_into_its_state_is_refused() {
        let program: &[u8] = &[0; 16];
        let make = |state| Image::from_elf(&elf(elf::EM_ARM, &[(0x2_6000, program)], Some(state)));
        assert!(make(0x2_6010).is_ok());
        assert_eq!(make(0x2_600C), Err(Uf2Error::OverState { end: 0x2_6010, state: 0x2_600C }));
    }

    #[test]
    fn what_is_no_program_for_this_processor_is_refused() {
        assert!(matches!(Image::from_elf(b"no ELF"), Err(Uf2Error::NotAnImage(_))));
        assert!(matches!(
            Image::from_elf(&elf(elf::EM_386, &[(0x2_6000, b"x")], None)),
            Err(Uf2Error::NotAnImage(_))
        ));
        assert_eq!(Image::from_elf(&elf(elf::EM_ARM, &[], None)), Err(Uf2Error::Empty));
        let mut cut = elf(elf::EM_ARM, &[(0x2_6000, b"x")], None);
        cut.truncate(100);
        assert!(matches!(Image::from_elf(&cut), Err(Uf2Error::NotAnImage(_))));
    }

    #[test]
    fn pieces_outside_flash_or_on_top_of_each_other_are_refused() {
        let make = |pieces: &[(u32, usize)]| {
            Image::new(pieces.iter().map(|(start, len)| (*start, vec![0; *len])).collect())
        };
        assert!(make(&[(FLASH_LEN - 4, 4)]).is_ok());
        assert_eq!(make(&[(FLASH_LEN - 4, 5)]), Err(Uf2Error::OutsideFlash { start: 0xF_FFFC, len: 5 }));
        assert_eq!(make(&[(u32::MAX, 4)]), Err(Uf2Error::OutsideFlash { start: 0xFFFF_FFFF, len: 4 }));
        assert_eq!(make(&[(8, 4), (0, 9)]), Err(Uf2Error::Overlap { at: 8 }));
    }
}
