"""Reads firmware images: ELF files as the linker writes them."""

from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile

from .flash import FLASH_SIZE


class ImageError(Exception):
    """The file is not an image for this chip."""


@dataclass(frozen=True)
class Image:
    """What is put into flash, and where the RTT control block lies in RAM (if the image logs)."""

    segments: list[tuple[int, bytes]]
    rtt: int | None = None

    @property
    def vectors(self) -> int:
        """Where the vector table lies: at the image's beginning, 0 unless it is linked to run under a bootloader."""
        return min(address for address, _ in self.segments)


def load(path: Path) -> Image:
    """Reads the loadable segments of an ELF file at their load addresses."""
    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            segments = [
                (segment["p_paddr"], segment.data())
                for segment in elf.iter_segments("PT_LOAD")
                if segment["p_filesz"]
            ]
            table = elf.get_section_by_name(".symtab")
            symbols = (table.get_symbol_by_name("_SEGGER_RTT") or []) if table else []
    except Exception as error:
        raise ImageError(f"{path}: {error}") from error
    if not segments or any(address + len(data) > FLASH_SIZE for address, data in segments):
        raise ImageError(f"{path}: nothing to load, or outside the 1 MiB of flash")
    return Image(segments, symbols[0]["st_value"] if symbols else None)
