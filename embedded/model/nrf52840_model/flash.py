"""Flash as cells of a NOR array, kept in a file (PS 4.3).

Writing can only clear bits; a word takes two writes between erases (PS 4.3, n_WRITE); erasing a page sets all its bits.
A supply that fails in the middle of a write leaves some of the bits cleared, and in the middle of an erase a page of which some
words are erased and one is anything.

The file holds 1 MiB of flash, 4 KiB of UICR, and one byte per word of both that counts its writes since the last erase. It
is mapped into memory, so that every operation is in the file even if the process is killed.
"""

import mmap
import random
from pathlib import Path

from .faults import ModelFault, PowerLost

PAGE = 4096
FLASH_SIZE, UICR_BASE, UICR_SIZE = 1 << 20, 0x1000_1000, PAGE
CELLS = FLASH_SIZE + UICR_SIZE
WRITES_PER_WORD = 2


class Array:
    """A range of cells at an address, with the writes per word since the last erase."""

    def __init__(self, base: int, cells: memoryview, writes: memoryview, supply: "Supply"):
        self.base, self.size = base, len(cells)
        self.cells = cells
        self._writes = writes
        self._supply = supply
        # How often each page was erased since the model began.
        self.erasures = [0] * (len(cells) // PAGE)

    def word(self, address: int) -> int:
        """The word at `address`."""
        at = address - self.base
        return int.from_bytes(self.cells[at : at + 4], "little")

    def program(self, address: int, value: int) -> int:
        """Writes a word; returns what the cells hold then."""
        at = address - self.base
        old = self.word(address)
        torn = self._supply.operate()
        new = old & (value | torn.getrandbits(32)) if torn else old & value
        self.cells[at : at + 4] = new.to_bytes(4, "little")
        self._writes[at // 4] = min(self._writes[at // 4] + 1, 255)
        self._supply.check()
        if self._writes[at // 4] > WRITES_PER_WORD:
            raise ModelFault(f"flash word 0x{address:08x} is written a third time since its page was erased")
        return new

    def erase(self, address: int, size: int) -> None:
        """Sets every bit of `size` bytes at `address`."""
        at = address - self.base
        for page in range(at // PAGE, (at + size) // PAGE):
            self.erasures[page] += 1
        torn = self._supply.operate()
        if torn:
            end = at + torn.randrange(size // 4) * 4
            self.cells[end : end + 4] = (self.word(self.base + end) | torn.getrandbits(32)).to_bytes(4, "little")
        else:
            end = at + size
        self.cells[at:end] = b"\xff" * (end - at)
        self._writes[at // 4 : end // 4] = bytes((end - at) // 4)
        self._supply.check()

    def install(self, address: int, data: bytes) -> None:
        """Puts an image in place, as a programmer does that erases first."""
        at = address - self.base
        self.cells[at : at + len(data)] = data
        self._writes[at // 4 : -(-(at + len(data)) // 4)] = bytes(-(-(at + len(data)) // 4) - at // 4)


class Supply:
    """Counts flash operations (word writes and page erases) and fails at one of them if told to."""

    def __init__(self, seed: int):
        self.operations = 0
        self.fail_at: int | None = None
        self._seed = seed
        self._failed = False

    def operate(self) -> random.Random | None:
        """Another operation begins; if the supply fails in it, where the chance of what is left comes from."""
        self.operations += 1
        self._failed = self.operations == self.fail_at
        return random.Random(f"supply {self._seed} {self.operations}") if self._failed else None

    def check(self) -> None:
        """Raises `PowerLost` if the operation just done was the supply's last."""
        if self._failed:
            self._failed = False
            raise PowerLost(self.operations)


class Storage:
    """Flash and UICR in one file, or in memory."""

    def __init__(self, path: Path | None, seed: int):
        size = CELLS + CELLS // 4
        if path is None:
            backing: mmap.mmap | bytearray = bytearray(size)
            fresh = True
        else:
            fresh = not path.exists()
            if fresh:
                path.write_bytes(bytes(size))
            if path.stat().st_size != size:
                raise ModelFault(f"{path} is not a flash file: {size} bytes expected")
            with path.open("r+b") as file:
                backing = mmap.mmap(file.fileno(), size)
        view = memoryview(backing)
        if fresh:
            view[:CELLS] = b"\xff" * CELLS
        self.supply = Supply(seed)
        counts = view[CELLS:]
        self.flash = Array(0, view[:FLASH_SIZE], counts[: FLASH_SIZE // 4], self.supply)
        self.uicr = Array(UICR_BASE, view[FLASH_SIZE:CELLS], counts[FLASH_SIZE // 4 :], self.supply)
